"""Working sets, with a kernel matrix or with rows of it on demand."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dualfield import _native
from dualfield.objectives import KernelSoftmax
from dualfield.solvers.base import KernelPoint, Progress, Solution, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.kernel.tasks import (
    SMALL,
    Stage,
    kernel_solution,
    kernel_task,
    solve_certified,
)
from dualfield.solvers.needs import Need, kernel_machine, separate_classes
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver

__all__ = ["Online", "WorkingSet"]

# How often the rounding errors of the scores are corrected before the matrix is computed in double precision.
_REFINEMENTS = 3


@register
@dataclass(frozen=True)
class WorkingSet(Solver):
    """Dual ascent on greedy working sets: the points that own most of the gap, solved together.

    Needs a kernel matrix within the budget, or else computes rows again. Single precision for more than 2500 points:
    4 n² bytes, at most the budget, plus a constant times n; double precision below, and where single is not enough.

    Parameters
    ----------
    size : int, default=256
        Points in a set.
    keep : float, default=0.5
        Share of a set that stays in the next one.
    inner_passes : int, default=30
        Most passes over a set.
    inner_tol : float, default=0.02
        A set is left when a pass gains less than this share of the first.
    set_tol : float, default=0.2
        With a bias a set is solved by Newton's method until its gap is this share of what was gained.
    patience : float, default=inf
        Give up where more passes over the kernel matrix than this are expected.

    Examples
    --------
    >>> from dualfield import KernelLogisticRegression
    >>> from dualfield.solvers import WorkingSet
    >>> KernelLogisticRegression(solver=WorkingSet(size=128)).solver.size
    128
    """

    name: ClassVar[str] = "working_set"
    needs: ClassVar[tuple[Need, ...]] = (
        kernel_machine,
        separate_classes,
    )

    size: int = 256
    keep: float = 0.5
    inner_passes: int = 30
    _: KW_ONLY
    inner_tol: float = 0.02
    set_tol: float = 0.2
    patience: float = np.inf

    def solve(
        self,
        objective: KernelSoftmax,
        rule: StopRule,
        start: KernelPoint | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[KernelPoint]:
        """Solve an objective.

        Parameters
        ----------
        objective : KernelSoftmax
            What to minimise.
        rule : StopRule
            When to stop.
        start : KernelPoint, default=None
            Where to begin.
        callbacks : Callbacks or callable, default=None
            Called now and then with objective, dual, gap, passes and seconds.
        random_state : None
            Not used: nothing is random.

        Returns
        -------
        Solution
            The point, its gap and the course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> from dualfield.solvers import StopRule, WorkingSet
        >>> y = np.array([0, 1, 0, 1], dtype=np.int32)
        >>> problem = KernelSoftmax(
        ...     Kernel(), np.eye(4), y, weights=np.ones(4), n_classes=2, with_bias=True, pinned=True
        ... )
        >>> WorkingSet().solve(problem, StopRule(1e-3)).status.value
        'converged'
        """
        suited(self, objective)
        return self._run(objective, Stage(start, rule, Callbacks.of(callbacks)))

    def _run(self, objective: KernelSoftmax, first: Stage, stored: bool | None = None) -> Solution[KernelPoint]:
        """Solve an objective; with ``stored=False`` rows are computed on demand, whatever the budget."""

        def run(single: bool, stage: Stage) -> Solution[KernelPoint]:
            result = _native.solve_working_set(
                objective.matrix(single=single, stored=stored),
                kernel_task(objective, stage),
                self.size,
                self.keep,
                self.inner_passes,
                self.inner_tol,
                self.set_tol,
                min(self.patience, 1e300),
            )
            return kernel_solution(result, self.name)

        single = objective.size > SMALL and first.rule.tol > 1e-8
        return solve_certified(objective, run, first, single=single, corrections=_REFINEMENTS)


@register
@dataclass(frozen=True)
class Online(Solver):
    """The working-set method with rows of the kernel matrix computed when they are needed: no matrix is ever kept.

    Memory is linear in the number of points: what the row cache may use (``cache_size``, at least ``size`` rows).

    Parameters
    ----------
    size : int, default=128
        Points in a set.
    keep : float, default=0.5
        Share of a set that stays in the next one.

    Examples
    --------
    >>> from dualfield.solvers import Online
    >>> Online().size
    128
    """

    name: ClassVar[str] = "online"
    needs: ClassVar[tuple[Need, ...]] = (
        kernel_machine,
        separate_classes,
    )

    size: int = 128
    keep: float = 0.5

    def solve(
        self,
        objective: KernelSoftmax,
        rule: StopRule,
        start: KernelPoint | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[KernelPoint]:
        """Solve an objective; see :meth:`WorkingSet.solve`.

        Parameters
        ----------
        objective, rule, start, callbacks, random_state
            As for :meth:`WorkingSet.solve`.

        Returns
        -------
        Solution
            The point, its gap and the course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> from dualfield.solvers import Online, StopRule
        >>> y = np.array([0, 1, 0, 1], dtype=np.int32)
        >>> problem = KernelSoftmax(
        ...     Kernel(), np.eye(4), y, weights=np.ones(4), n_classes=2, with_bias=True, pinned=True
        ... )
        >>> Online().solve(problem, StopRule(1e-3)).status.value
        'converged'
        """
        suited(self, objective)
        inner, first = WorkingSet(size=self.size, keep=self.keep), Stage(start, rule, Callbacks.of(callbacks))
        return replace(inner._run(objective, first, stored=False), solver=self.name)
