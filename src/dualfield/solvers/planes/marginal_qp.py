"""The dual in marginals of cliques, given to a solver of quadratic programmes as a whole."""

from __future__ import annotations

import importlib
import signal
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from dualfield.data.arrays import Floats, Ints
from dualfield.objectives import Objective
from dualfield.solvers.base import Progress, Solution, Status, StopRule
from dualfield.solvers.needs import Need, a_chain, free_signs, losses_of_planes, native_losses, squared_norm
from dualfield.solvers.planes.course import Look, Looks, PlaneCourse, primal_value
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver
from dualfield.structures import Chain

__all__ = ["MarginalQP"]


@register
@dataclass(frozen=True)
class MarginalQP(Solver):
    r"""The max-margin Markov network's dual as one sparse quadratic programme.

    The dual sees a mixture of labellings only through the marginals of its cliques, and there are few of them (Taskar,
    Guestrin and Koller 2003; Pérez-Cruz et al. 2007, section 1.2.1). They are marginals of a chain if those of
    neighbouring cliques agree where they overlap:

    .. math::
        \max_{\mu \ge 0} \; \sum_i c_i \langle \Delta_i, \mu_i \rangle - \tfrac{1}{2} \|w(\mu)\|^2 \quad
        \text{with} \quad \sum_{c \to s} \mu_{t}(c) = \sum_{s \to c} \mu_{t+1}(c), \qquad \sum_s \mu_0(s) = 1

    Clarabel, an interior-point solver, does the work: ``pip install clarabel``. For small problems, and as an
    independent answer. Needs chains, costs that are sums over nodes, and no signs of weights.

    Parameters
    ----------
    most_variables : int, default=500_000
        Problems with more marginals are refused.

    Examples
    --------
    >>> from dualfield.solvers import MarginalQP
    >>> MarginalQP().most_variables
    500000
    """

    name: ClassVar[str] = "marginal"
    needs: ClassVar[tuple[Need, ...]] = (
        losses_of_planes,
        squared_norm,
        free_signs,
    )

    most_variables: int = 500_000

    def missing(self, objective: Any) -> str | None:
        """Say what an objective has that this solver cannot take.

        Parameters
        ----------
        objective : PlaneProblem
            What is to be minimised.

        Returns
        -------
        str or None
            A sentence; None if nothing is missing.

        Examples
        --------
        >>> from dualfield.solvers import MarginalQP
        >>> MarginalQP().missing(None)
        'Its labellings have no marginals: only chains have them.'
        """
        if not isinstance(objective, Objective):
            return "Its labellings have no marginals: only chains have them."
        reason = a_chain(objective)
        if reason is not None:
            return reason
        reason = super().missing(objective)
        if reason is not None:
            return reason
        if objective.loss.rescaling != "margin":
            return "Rescaled slacks are not sums over cliques."
        reason = native_losses(objective)
        if reason is not None:
            return reason
        size = _Flows.count(objective)
        if size > self.most_variables:
            return f"It has {size} marginals, more than the {self.most_variables} allowed."
        return None

    def solve(
        self,
        objective: Objective,
        rule: StopRule,
        start: Floats | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Floats]:
        """Solve an objective.

        Parameters
        ----------
        objective : Objective
            What to minimise.
        rule : StopRule
            ``tol`` is handed on; ``max_passes`` is not used.
        start : array of shape (n_parameters,), default=None
            A point that is returned unless the answer is better.
        callbacks : Callbacks or callable, default=None
            Called after each pass with objective, dual, gap, passes and seconds.
        random_state : None
            Not used.

        Returns
        -------
        Solution[Floats]
            The point, its gap and the course.

        Examples
        --------
        >>> from dualfield.solvers import MarginalQP, StopRule, prototypes
        >>> problem = prototypes.objective(temperature=0.0)
        >>> round(MarginalQP().solve(problem, StopRule(1e-9)).objective, 6)
        0.25
        """
        suited(self, objective)
        course = PlaneCourse(objective, StopRule(rule.tol), callbacks)
        return course.follow(_looks(objective, start, rule.tol), self.name)


def _chain_of(problem: Objective) -> Chain:
    structure = problem.score_map.structure
    assert isinstance(structure, Chain)
    return structure


def _looks(problem: Objective, start: Floats | None, tol: float) -> Looks:
    w = np.zeros(problem.n_parameters) if start is None else np.asarray(start, dtype=np.float64)
    yield Look(w, primal_value(problem, w, problem.planes(w)), 0.0, 1.0)
    flows = _Flows(problem)
    with _Interrupt() as interrupt:
        shares = flows.consistent(_quadratic_programme(flows, tol, interrupt))
    w = flows.truth - flows.features.T @ (flows.weights * shares)
    dual = float((flows.weights * flows.costs) @ shares) - 0.5 * float(w @ w)
    if not np.allclose(flows.balance @ shares, flows.sums, rtol=0.0, atol=1e-9):
        dual = 0.0  # left too early: these are no marginals, and prove nothing
    yield Look(w, primal_value(problem, w, problem.planes(w)), dual, 2.0)
    return Status.INTERRUPTED if interrupt.came else Status.STALLED


class _Interrupt:
    """Hears Ctrl-C while native code of others runs, which would not look at signals before its end.

    An exception in their callback would lose the point that they have reached; so would one right after it.
    """

    def __init__(self) -> None:
        self.came = False
        self._before: Any = None

    def __enter__(self) -> _Interrupt:
        hears = threading.current_thread() is threading.main_thread()
        if hears and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _hear(self, *_: object) -> None:
        self.came = True


def _quadratic_programme(flows: _Flows, tol: float, interrupt: _Interrupt) -> Floats:
    """Minimise half the squared norm of w minus the expected cost; w is a variable beside the flows."""
    try:
        clarabel: Any = importlib.import_module("clarabel")
    except ImportError as error:
        raise ImportError("solver='marginal' needs the package clarabel: pip install clarabel.") from error
    n, used = flows.n, np.unique(flows.features.indices)
    p = len(used)
    mixed = (scipy.sparse.diags_array(flows.weights) @ flows.features[:, used]).T
    equal = scipy.sparse.block_array([[mixed, scipy.sparse.eye_array(p)], [flows.balance, None]])
    signs = scipy.sparse.hstack([-scipy.sparse.eye_array(n), scipy.sparse.csr_array((n, p))])
    constraints = scipy.sparse.csc_matrix(scipy.sparse.vstack([equal, signs]))
    right = np.concatenate([flows.truth[used], flows.sums, np.zeros(n)])
    square = scipy.sparse.csc_matrix(
        scipy.sparse.block_diag([scipy.sparse.csr_array((n, n)), scipy.sparse.eye_array(p)])
    )
    linear = np.concatenate([-flows.weights * flows.costs, np.zeros(p)])
    cones = [clarabel.ZeroConeT(p + len(flows.sums)), clarabel.NonnegativeConeT(n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = min(1e-8, 0.01 * tol)
    solver = clarabel.DefaultSolver(square, linear, constraints, right, cones, settings)
    if hasattr(solver, "set_termination_callback"):  # newer versions ask after every iteration
        solver.set_termination_callback(lambda _: interrupt.came)
    found = np.asarray(solver.solve().x[:n], dtype=np.float64)
    return np.where(np.isfinite(found), found, 0.0)  # where it was left before the first step


class _Flows:
    """Marginals as flows through the states of chains: of first labels, and of windows of labels."""

    def __init__(self, problem: Objective) -> None:
        chain, lengths = _chain_of(problem), problem.examples.nodes.lengths
        windows = np.flatnonzero(chain.clique_allowed)
        k, m = chain.n_labels, len(windows)
        some = np.flatnonzero(lengths > 0)
        sizes = k + m * (lengths[some] - 1)
        self._begins = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.n = int(self._begins[-1])
        owner = np.repeat(np.arange(len(some)), sizes)
        at = np.arange(self.n) - self._begins[owner]
        self._step = np.where(at < k, 0, (at - k) // max(m, 1) + 1)
        code = np.where(at < k, at, (at - k) % max(m, 1))
        self._is_first, self._owner = at < k, owner
        self._window = np.where(self._is_first, -1, windows[np.minimum(code, m - 1)] if m else -1)
        self.label = np.where(self._is_first, code, chain.cliques[self._window, -1] if m else 0)
        self._problem, self._some = problem, some
        self.weights = problem.weights[some][owner]
        self._node = problem.examples.nodes.offsets[some][owner] + self._step
        self.costs = problem.node_costs(self._node, self.label)
        self._last = self._step == lengths[some][owner] - 1
        self.forbidden = np.zeros(self.n, dtype=bool)
        for flags, where in ((chain.allowed_start, self._is_first), (chain.allowed_stop, self._last)):
            if flags is not None:
                self.forbidden |= where & ~flags[self.label]

    @staticmethod
    def count(problem: Objective) -> int:
        chain, lengths = _chain_of(problem), problem.examples.nodes.lengths
        return int((chain.n_labels + chain.clique_allowed.sum() * (lengths[lengths > 0] - 1)).sum())

    @cached_property
    def features(self) -> scipy.sparse.csr_array:
        """Features of each flow."""
        parts, every, ones = self._problem.features, np.arange(self.n), np.ones(self.n)
        inner, first, last = np.flatnonzero(~self._is_first), np.flatnonzero(self._is_first), np.flatnonzero(self._last)
        chain = _chain_of(self._problem)
        start, stop = chain.n_cliques, chain.n_cliques + chain.n_labels
        edge = np.searchsorted(chain.edge_nodes(self._problem.examples.nodes.shape), self._node[inner])
        entries = [
            parts.labels(self._node, self.label, ones, every),
            parts.edges(edge, self._window[inner], ones[inner], inner),
            parts.shared(self._window[inner], ones[inner], inner),
            parts.shared(start + self.label[first], ones[first], first),
            parts.shared(stop + self.label[last], ones[last], last),
        ]
        return parts.matrix(entries, self.n)

    @cached_property
    def states(self) -> tuple[Ints, Ints]:
        """The state that each flow leaves, -1 for first labels, and the one that it enters; numbered over all steps."""
        chain = _chain_of(self._problem)
        into = np.full((self.n, chain.order), -1, dtype=np.int64)
        out = into.copy()
        inner = ~self._is_first
        into[inner], out[inner] = chain.cliques[self._window[inner], 1:], chain.cliques[self._window[inner], :-1]
        into[self._is_first, -1] = self.label[self._is_first]
        # The place in time is part of the name of a state.
        named = np.concatenate([np.column_stack([self._node - inner, out]), np.column_stack([self._node, into])])
        _, number = np.unique(named, axis=0, return_inverse=True)
        number = np.asarray(number).ravel()
        return np.where(inner, number[: self.n], -1), number[self.n :]

    @cached_property
    def balance(self) -> scipy.sparse.csr_array:
        """Rows: what enters a state leaves it; first labels sum to one; what is forbidden is zero."""
        leaves, enters = self.states
        n_states = int(max(leaves.max(initial=-1), enters.max(initial=-1))) + 1
        inner, before_end = np.flatnonzero(leaves >= 0), np.flatnonzero(~self._last)
        forbidden, first = np.flatnonzero(self.forbidden), np.flatnonzero(self._is_first)
        rows = [leaves[inner], enters[before_end], n_states + self._owner[first]]
        rows.append(n_states + len(self._some) + np.arange(len(forbidden)))
        columns = [inner, before_end, first, forbidden]
        signs = [np.full(len(one), sign) for one, sign in zip(columns, (-1.0, 1.0, 1.0, 1.0), strict=True)]
        self._n_states = n_states
        matrix = scipy.sparse.csr_array(
            (np.concatenate(signs), (np.concatenate(rows), np.concatenate(columns))),
            shape=(n_states + len(self._some) + len(forbidden), self.n),
        )
        used = np.flatnonzero(np.diff(matrix.indptr) > 0)
        self._sums = np.concatenate([np.zeros(n_states), np.ones(len(self._some)), np.zeros(len(forbidden))])[used]
        return matrix[used]

    @property
    def sums(self) -> Floats:
        """Right sides of the balance."""
        _ = self.balance
        return np.asarray(self._sums)

    @cached_property
    def truth(self) -> Floats:
        """Weighted features of the true labellings."""
        problem = self._problem
        every = np.flatnonzero(self.label == problem.examples.labels[self._node])
        chain = _chain_of(problem)
        true = np.full(problem.examples.nodes.n_nodes, -1, dtype=np.int64)
        inner = np.ones(problem.examples.nodes.n_nodes, dtype=bool)
        inner[problem.examples.nodes.offsets[:-1][problem.examples.nodes.lengths > 0]] = False
        true[inner] = chain.clique_indices(problem.examples.labels, problem.examples.nodes.offsets)
        chosen = every[self._window[every] == true[self._node[every]]]
        return np.asarray(self.features[chosen].T @ self.weights[chosen])

    def consistent(self, flows: Floats) -> Floats:
        """Make flows exact: the Markov chain that has these, up to rounding, as its marginals."""
        leaves, enters = self.states
        flows = np.where(self.forbidden, 0.0, np.maximum(flows, 0.0))
        exact, n_states = np.zeros(self.n), int(enters.max(initial=-1)) + 1
        arrived: Floats = np.zeros(n_states)
        for step in range(int(self._step.max(initial=-1)) + 1):
            here = np.flatnonzero(self._step == step)
            source = self._owner[here] if step == 0 else leaves[here]
            mass = np.ones(len(self._some)) if step == 0 else arrived
            total = np.bincount(source, flows[here], minlength=len(mass))
            share = flows[here] / np.where(total > 0.0, total, 1.0)[source]
            exact[here] = mass[source] * share
            arrived = np.bincount(enters[here], exact[here], minlength=n_states).astype(np.float64)
        return exact
