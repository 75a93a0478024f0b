"""Sequential minimal optimisation over whole labellings of short chains."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp, xlogy

from dualfield.data.arrays import Floats
from dualfield.kernels.mercer import ROUNDING, check_curvature, check_values
from dualfield.objectives import KernelObjective
from dualfield.solvers.base import KernelParts, Progress, Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.needs import Need, a_chain, kernel_nodes, positive_temperature
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver
from dualfield.solvers.trace import Trace
from dualfield.structures import Chain

__all__ = ["LabellingSMO"]


@register
@dataclass(frozen=True)
class LabellingSMO(Solver):
    """Sequential minimal optimisation over whole labellings (Memisevic 2006, section 4.2).

    The dual point of an example is a distribution over all of its labellings. A step moves mass between two of them,
    the pair that violates optimality most, by an exact search along the line. It is there to compare with: the number
    of labellings grows exponentially with the length, so that longer chains are refused.

    Parameters
    ----------
    max_labellings : int, default=4096
        Most labellings that an example may have.
    n_pairs : int, default=4
        Steps at an example in a row.

    Examples
    --------
    >>> from dualfield.solvers import LabellingSMO
    >>> LabellingSMO().max_labellings
    4096
    """

    name: ClassVar[str] = "labelling_smo"
    needs: ClassVar[tuple[Need, ...]] = (
        kernel_nodes,
        a_chain,
        positive_temperature,
    )

    max_labellings: int = 4096
    n_pairs: int = 4

    def missing(self, objective: Any) -> str | None:
        """Say what an objective lacks: all labellings of an example are listed, so there must not be too many.

        Parameters
        ----------
        objective : objective
            What is to be minimised.

        Returns
        -------
        str or None
            A sentence; None if nothing is missing.

        Examples
        --------
        >>> from dualfield.solvers import LabellingSMO, prototypes
        >>> LabellingSMO(max_labellings=3).missing(prototypes.kernel_objective(temperature=1.0))
        'A chain of 2 nodes with 2 labels has 4 labellings, and the limit is 3.'
        """
        reason = super().missing(objective)
        if reason is not None:
            return reason
        n_labels, longest = objective.structure.n_labels, int(np.diff(objective.offsets).max(initial=0))
        count = float(n_labels) ** float(longest)
        if count <= self.max_labellings:
            return None
        return (
            f"A chain of {longest} nodes with {n_labels} labels has {count:.3g} labellings, and the limit is "
            f"{self.max_labellings}."
        )

    def solve(
        self,
        objective: KernelObjective,
        rule: StopRule,
        start: KernelParts | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[KernelParts]:
        """Solve an objective.

        Parameters
        ----------
        objective : KernelObjective
            The problem, with T > 0.
        rule : StopRule
            When to stop.
        start : KernelParts, default=None
            Not used: the distribution over labellings cannot be told from coefficients.
        callbacks : Callbacks or callable, default=None
            Called after each pass with objective, dual, gap, passes and seconds.
        random_state : int, default=None
            Seed of the order of examples.

        Returns
        -------
        Solution
            As from :meth:`KernelAscent.solve`.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelObjective
        >>> from dualfield.solvers import LabellingSMO, StopRule
        >>> from dualfield.structures import Chain
        >>> X, y = np.array([[0.0], [1.0], [0.0]]), np.array([0, 1, 0], dtype=np.int32)
        >>> problem = KernelObjective(Chain(2), Kernel(), X, offsets=np.array([0, 2, 3]), labels=y, weights=np.ones(2))
        >>> LabellingSMO().solve(problem, StopRule(1e-6, 1000)).status.value
        'converged'
        """
        suited(self, objective)
        run, report = _Run(objective), Callbacks.of(callbacks)
        random, began = np.random.default_rng(random_state or 0), time.perf_counter()
        rows: list[tuple[float, float, float, float, float]] = []
        status = Status.ITERATION_LIMIT
        while True:
            primal, gap = run.certificate()
            is_last = len(rows) >= rule.max_passes
            if is_last or gap <= rule.tol * (primal - gap) or gap == 0.0:  # as it seems
                run.rebuild()
                primal, gap = run.certificate()
            rows.append((primal, primal - gap, gap, float(len(rows)), time.perf_counter() - began))
            report(*rows[-1])
            if gap <= rule.tol * (primal - gap) or gap == 0.0:
                status = Status.CONVERGED
                break
            if is_last:
                break
            for i in random.permutation(len(run.tables)):
                run.visit(int(i), self.n_pairs)
        n_iter = max(1, len(rows) - 1)
        trace = Trace.from_rows(np.array(rows))
        scores = float(objective.scale) * run.weights
        return Solution(
            parameters=KernelParts(run.coefficients, scores),
            objective=primal,
            gap=gap,
            status=status,
            n_iter=n_iter,
            trace=trace,
            solver=self.name,
        )


class _Run:
    """Distributions over labellings, and what belongs to them: coefficients, scores, weights."""

    def __init__(self, problem: KernelObjective) -> None:
        n_labels, lengths = problem.structure.n_labels, np.diff(problem.offsets)
        self.problem, self.temperature = problem, float(problem.temperature)
        assert problem.kernel is not None
        self.gram = problem.kernel.values(problem.points, problem.points, problem.n_threads)
        self.mask = problem.score_map.clique_mask
        n_ends = 2 * n_labels * int(problem.with_ends)
        self.weights = np.zeros(problem.structure.n_cliques + n_ends)
        self.coefficients = np.zeros((len(problem.labels), n_labels))
        self.tables = [_Labellings(problem, i) for i in range(len(lengths))]
        self._each = np.repeat(problem.weights, lengths)
        check_values(self.gram)
        self._roots = np.sqrt(np.maximum(self.gram.diagonal(), 0.0))
        self.rebuild()

    def rebuild(self) -> None:
        """Compute coefficients, weights and scores from the distributions, without the rounding of earlier steps."""
        self.weights[:], self.coefficients[:] = 0.0, 0.0
        for i, table in enumerate(self.tables):
            table.alpha /= table.alpha.sum()
            self._add(i, table.features(table.truth) - table.alpha @ table.all_features(), table.distance_from_truth())
        self.scores = self.gram @ self.coefficients

    def _add(self, i: int, change: Floats, nodes: Floats) -> None:
        """Add an example's share to the weights of cliques and ends, and to its coefficients."""
        table = self.tables[i]
        self.weights += table.weight * change
        self.coefficients[table.rows] += table.weight * nodes

    def _totals(self, i: int) -> Floats:
        table = self.tables[i]
        steps = np.arange(len(table.rows))
        node = self.scores[table.rows][steps, table.labellings].sum(axis=1)
        return np.asarray(node + table.all_features() @ self.weights)

    def visit(self, i: int, n_pairs: int) -> None:
        """Move mass between pairs of labellings."""
        table = self.tables[i]
        for _ in range(n_pairs):
            totals = self._totals(i) + table.cost
            slope = totals - self.temperature * np.log(table.alpha)
            high, low = int(slope.argmax()), int(slope.argmin())
            if slope[high] - slope[low] <= 1e-12:
                return
            nodes = table.nodes_of(high) - table.nodes_of(low)
            change = table.features(high) - table.features(low)
            own = self.gram[np.ix_(table.rows, table.rows)]
            bend = float(np.vdot(nodes, own @ nodes))
            check_curvature(bend, float(np.abs(own).sum()))
            square = max(bend, 0.0) + float((change**2).sum())
            step = self._search(table, high, low, totals[high] - totals[low], square)
            table.alpha[high] += step
            table.alpha[low] -= step
            self._add(i, -step * change, -step * nodes)
            self.scores -= step * table.weight * (self.gram[:, table.rows] @ nodes)

    def _search(self, table: _Labellings, high: int, low: int, difference: float, square: float) -> float:
        """Return the best step along the line, where the slope of the dual is zero, by bisection."""
        begin, end = 0.0, float(table.alpha[low])
        for _ in range(80):
            step = 0.5 * (begin + end)
            entropy = np.log((table.alpha[high] + step) / max(table.alpha[low] - step, 1e-300))
            if difference - self.temperature * entropy - step * table.weight * square > 0.0:
                begin = step
            else:
                end = step
        return begin

    def certificate(self) -> tuple[float, float]:
        """Return the primal value and the duality gap, with the rounding of both."""
        bend, scale = float(np.vdot(self.coefficients, self.scores)), self._magnitude()
        check_curvature(bend, scale)
        square = 0.5 * (bend + float(self.weights @ self.weights))
        losses, values = 0.0, 0.0
        for i, table in enumerate(self.tables):
            totals = self._totals(i)
            best = self.temperature * logsumexp((totals + table.cost) / self.temperature)
            losses += table.weight * (best - totals[table.truth])
            entropy = -float(xlogy(table.alpha, table.alpha).sum())
            values += table.weight * (self.temperature * entropy + float(table.alpha @ table.cost))
        primal, dual = square + losses, values - square
        reach = float(self._each @ np.abs(self.scores).max(axis=1, initial=0.0)) + primal
        check_curvature(primal - dual, scale + 1e-6 * reach)
        return primal, max(primal - dual, 0.0) + ROUNDING * (scale + reach)

    def _magnitude(self) -> float:
        """Return what sums over products of kernel values and coefficients are added up from, at most."""
        sums = self._roots @ np.abs(self.coefficients)
        return float(sums @ sums + self.weights @ self.weights)


class _Labellings:
    """All labellings of one example."""

    def __init__(self, problem: KernelObjective, i: int) -> None:
        begin, end = (int(at) for at in problem.offsets[i : i + 2])
        self.rows, self.weight = np.arange(begin, end), float(problem.weights[i])
        chain, length = problem.structure, end - begin
        assert isinstance(chain, Chain)
        every = np.array(list(itertools.product(range(chain.n_labels), repeat=length)), dtype=np.int32)
        every = every.reshape(-1, length)
        offsets = np.arange(len(every) + 1, dtype=np.int64) * length
        cliques = chain.clique_indices(every.ravel(), offsets).reshape(len(every), -1)
        allowed = ((cliques >= 0) & chain.clique_allowed[np.maximum(cliques, 0)].astype(bool)).all(axis=1)
        for flags, at in ((chain.allowed_start, 0), (chain.allowed_stop, -1)):
            if flags is not None and length:
                allowed &= np.asarray(flags, dtype=bool)[every[:, at]]
        self.labellings, self._cliques = every[allowed], cliques[allowed]
        truth = problem.labels[begin:end]
        found = np.flatnonzero((self.labellings == truth).all(axis=1))
        if not found.size:
            raise ValueError(f"The labels of example {i} are not allowed by the structure.")
        self.truth, n = int(found[0]), len(self.labellings)
        self.cost = np.zeros(n) if problem.cost is None else problem.cost[truth, self.labellings].sum(axis=1)
        # Nearly all of the mass at the truth; logarithms want some everywhere.
        self.alpha = np.full(n, 0.01 / n)
        self.alpha[self.truth] += 0.99
        self._n_labels, self._table = chain.n_labels, self._all_features(problem)

    def _all_features(self, problem: KernelObjective) -> Floats:
        n_cliques, n_labels = problem.structure.n_cliques, problem.structure.n_labels
        table = np.zeros((len(self.labellings), n_cliques + 2 * n_labels * int(problem.with_ends)))
        at = np.arange(len(self.labellings))
        for edge in self._cliques.T:
            table[at, edge] += problem.score_map.clique_mask[edge]
        if problem.with_ends and self.labellings.shape[1]:
            table[at, n_cliques + self.labellings[:, 0]] += 1.0
            table[at, n_cliques + n_labels + self.labellings[:, -1]] += 1.0
        return float(problem.scale) * table

    def all_features(self) -> Floats:
        """Return counts of cliques and ends of each labelling."""
        return self._table

    def features(self, at: int) -> Floats:
        """Return those of one labelling."""
        return np.asarray(self._table[at])

    def nodes_of(self, at: int) -> Floats:
        """Return the indicator of the labels of a labelling, by nodes."""
        return np.asarray(np.eye(self._n_labels)[self.labellings[at]], dtype=np.float64)

    def distance_from_truth(self) -> Floats:
        """Return the indicator of the true labels minus the marginals, by nodes."""
        marginals = np.zeros((len(self.rows), self._n_labels))
        for t in range(len(self.rows)):
            np.add.at(marginals[t], self.labellings[:, t], self.alpha)
        distance: Floats = self.nodes_of(self.truth) - marginals
        return distance
