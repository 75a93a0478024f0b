"""What a solver is: settings of an algorithm, what it needs of an objective, and how it solves one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from dualfield.solvers.base import Progress, Solution, StopRule
from dualfield.solvers.needs import Need

__all__ = ["Solver"]


class Solver(ABC):
    """Minimises objectives. A user-defined object is one, too, if it has ``name``, ``missing`` and ``solve``.

    Attributes
    ----------
    name : str
        What users write for it, and what :attr:`Solution.solver` says. One name is one class.
    needs : tuple of callables
        What it needs of an objective; each returns a sentence where that is missing.
    makes_epochs : bool
        Whether it makes a number of passes, some tens if no limit is given, and does not aim at a gap.
    certifies : bool
        Whether it knows objective and gap on its way; otherwise at the end only.
    safeguarded : bool
        Whether it is to be left alone: its result is never worse than where it could have begun, or it minimises
        nothing in particular.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield import CRF
    >>> from dualfield.solvers import Solution, Solver, Status, Trace
    >>> class Steps(Solver):
    ...     name = "steps"
    ...
    ...     def missing(self, objective):
    ...         return None if hasattr(objective, "evaluate") else "It has no gradients."
    ...
    ...     def solve(self, objective, rule, start=None, callbacks=None, random_state=None):
    ...         w = np.zeros(objective.n_parameters) if start is None else start
    ...         for n_iter in range(1, 1000):
    ...             value, gap = objective.certify(w)
    ...             if gap <= rule.tol * (value - gap):
    ...                 break
    ...             w = w - 0.2 * (w + objective.evaluate(w)[1])
    ...         course = Trace.from_rows(np.array([[value, value - gap, gap, float(n_iter), 0.0]]))
    ...         status = Status.CONVERGED
    ...         return Solution(
    ...             parameters=w, objective=value, gap=gap, status=status, n_iter=n_iter, trace=course, solver=self.name
    ...         )
    >>> model = CRF(solver=Steps()).fit([[["a"], ["b"]], [["b"]]], [["x", "y"], ["y"]])
    >>> model.solver_, model.dual_gap_ <= 1e-4 * model.objective_
    ('steps', True)
    """

    name: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()
    makes_epochs: ClassVar[bool] = False
    certifies: ClassVar[bool] = True
    safeguarded: ClassVar[bool] = False

    def missing(self, objective: Any) -> str | None:
        """Say what an objective lacks for this solver; it is asked before the solve begins.

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
        >>> from dualfield.solvers import FlowSwap, prototypes
        >>> FlowSwap().missing(prototypes.objective(temperature=1.0))
        'It has a temperature above zero: it is not the hinge.'
        """
        for need in self.needs:
            reason = need(objective)
            if reason is not None:
                return reason
        return None

    @abstractmethod
    def solve(
        self,
        objective: Any,
        rule: StopRule,
        start: Any = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Any]:
        """Solve an objective.

        Parameters
        ----------
        objective : objective
            What to minimise.
        rule : StopRule
            When to stop.
        start : array or other point, default=None
            Where to begin: parameters as a solution has them.
        callbacks : Callbacks or callable, default=None
            Called now and then with objective, dual, gap, passes and seconds.
        random_state : int, default=None
            Seed of what is random.

        Returns
        -------
        Solution
            The point, its gap and the course.

        Examples
        --------
        >>> from dualfield.solvers import LBFGS, StopRule, prototypes
        >>> LBFGS().solve(prototypes.objective(temperature=1.0), StopRule(1e-6)).status.value
        'converged'
        """
