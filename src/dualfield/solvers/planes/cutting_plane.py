"""Cutting planes: a growing model of the losses, solved exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.engines.blas_threads import one_blas_thread
from dualfield.objectives import PlaneProblem
from dualfield.solvers.base import Progress, Solution, Status, StopRule
from dualfield.solvers.needs import Need, losses_of_planes, squared_norm
from dualfield.solvers.planes.course import Look, Looks, PlaneCourse, even_groups, group_sums, primal_value
from dualfield.solvers.planes.simplex_master import SimplexMaster
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver

__all__ = ["Cuts", "CuttingPlane"]

_IDLE = 30  # rounds after which a plane without a share is dropped


@dataclass(frozen=True, eq=False)
class Cuts:
    """Planes that bound sums of losses from below, to begin with: each is a sum over the examples of a group.

    Parameters
    ----------
    slopes : scipy.sparse.csr_array of shape (m, n_parameters)
        Slopes, with the weights of the examples.
    offsets : array of shape (m,)
        Offsets, with the weights of the examples.
    groups : int array of shape (m,)
        The group of each.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> from dualfield.solvers import Cuts
    >>> Cuts(scipy.sparse.csr_array([[1.0]]), np.array([0.5]), np.array([0])).offsets
    array([0.5])
    """

    slopes: scipy.sparse.csr_array
    offsets: Floats
    groups: NDArray[np.int64]


@register
@dataclass(frozen=True)
class CuttingPlane(Solver):
    r"""Bound the losses from below by the planes met so far, minimise that bound, and add the planes at its minimum.

    With one slack the losses of all examples are one function, and each round adds one plane that is a sum over them
    (Joachims, Finley and Yu 2009); with n slacks each example has planes of its own (Tsochantaridis et al. 2005). In
    between, examples form groups: more groups need fewer rounds, and larger quadratic programmes. These are solved
    exactly, by Newton steps on the shares of the planes. Planes without a share for 30 rounds are dropped. Takes every
    objective made of planes, also with weights that must not be negative.

    Parameters
    ----------
    slack : {"one", "n"} or int, default=16
        Number of groups of examples that share a slack.

    Examples
    --------
    >>> from dualfield.solvers import CuttingPlane
    >>> CuttingPlane(slack="one").slack
    'one'
    """

    name: ClassVar[str] = "cutting_plane"
    needs: ClassVar[tuple[Need, ...]] = (losses_of_planes, squared_norm)

    slack: Literal["one", "n"] | int = 16

    def groups(self, n_examples: int) -> NDArray[np.int64]:
        """Return the group of each example.

        Parameters
        ----------
        n_examples : int
            Number of examples.

        Returns
        -------
        int array of shape (n_examples,)
            Numbers from 0.

        Examples
        --------
        >>> from dualfield.solvers import CuttingPlane
        >>> CuttingPlane(slack=2).groups(5)
        array([0, 0, 0, 1, 1])
        """
        known = {"one": 1, "n": n_examples}
        count = known.get(self.slack, 0) if isinstance(self.slack, str) else self.slack
        if isinstance(count, bool) or not isinstance(count, int) or (count < 1 and n_examples > 0):
            raise ValueError(
                f"The 'slack' parameter of CuttingPlane must be 'one', 'n' or an int in [1, inf). Got {self.slack!r}."
            )
        return even_groups(n_examples, count)

    def solve(
        self,
        objective: PlaneProblem,
        rule: StopRule,
        start: Floats | Cuts | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Floats]:
        """Solve an objective.

        Parameters
        ----------
        objective : PlaneProblem
            What to minimise.
        rule : StopRule
            When to stop.
        start : array of shape (n_parameters,) or Cuts, default=None
            Where the first planes are taken, or planes to begin with; None: at zero.
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
        >>> from dualfield.solvers import CuttingPlane, StopRule, prototypes
        >>> problem = prototypes.objective(temperature=0.0)
        >>> solution = CuttingPlane().solve(problem, StopRule(1e-9))
        >>> solution.status.value, round(solution.objective, 6)
        ('converged', 0.25)
        """
        suited(self, objective)
        course = PlaneCourse(objective, rule, callbacks)
        # Small dense systems gain nothing from many BLAS threads, and would differ in the last bit.
        with one_blas_thread():
            return course.follow(self._looks(objective, start, course), self.name)

    def _looks(self, problem: PlaneProblem, start: Floats | Cuts | None, course: PlaneCourse) -> Looks:
        groups = self.groups(problem.n_examples)
        sums = group_sums(problem, groups)
        n_groups = sums.shape[0]
        positive = problem.regulariser.positive
        master = SimplexMaster(problem.n_parameters, n_groups, positive)
        w = np.zeros(problem.n_parameters)
        if isinstance(start, Cuts):
            master.add(start.slopes, start.offsets, start.groups)
            master.solve(0.0)
            w = master.w
        elif start is not None:
            w = np.array(start, dtype=np.float64)
            if positive is not None:
                w[positive] = np.maximum(w[positive], 0.0)
        idle, passes, exactness = np.zeros(len(master.offsets), dtype=np.int64), 0.0, np.inf
        while True:
            planes = problem.planes(w)
            passes += 1.0
            yield Look(w, primal_value(problem, w, planes), master.dual, passes)
            slopes, offsets = (sums @ planes.slopes).tocsr(), np.asarray(sums @ planes.offsets)
            known = np.zeros(n_groups)
            if len(master.blocks):
                np.maximum.at(known, master.blocks, master.offsets + master.slopes @ w)
            higher = np.flatnonzero(offsets + slopes @ w > known)
            wanted = max(0.05 * course.gap, 1e-15 * course.primal)
            if not len(higher) and wanted >= exactness:  # neither new planes nor a better mixture of the old ones
                return Status.STALLED
            exactness = wanted
            used = np.append(master.shares > 0.0, np.ones(len(higher), dtype=bool))
            master.add(slopes[higher], offsets[higher], higher)
            idle = np.where(used, 0, np.append(idle, np.zeros(len(higher), dtype=np.int64)) + 1)
            if (idle > _IDLE).any():
                master.keep(idle <= _IDLE)
                idle = idle[idle <= _IDLE]
            master.solve(exactness)
            w = master.w
