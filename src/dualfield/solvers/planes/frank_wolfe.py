"""Block-coordinate Frank-Wolfe on planes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from dualfield.data.arrays import Floats
from dualfield.objectives import PlaneProblem
from dualfield.solvers.base import Progress, Solution, StopRule
from dualfield.solvers.needs import Need, free_signs, losses_of_planes, squared_norm
from dualfield.solvers.planes.course import Look, Looks, PlaneCourse, primal_value
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver

__all__ = ["PlaneFrankWolfe"]

_BETWEEN_LOOKS = 5


@register
@dataclass(frozen=True)
class PlaneFrankWolfe(Solver):
    r"""Move the mixture of one example towards its highest plane, with the exact step; then another example.

    Block-coordinate Frank-Wolfe (Lacoste-Julien et al. 2013). Examples are drawn in proportion to their part of the
    duality gap as last seen (Osokin et al. 2016), with a tenth of the chance spread evenly, and the weighted average of
    the points is certified beside the last one. One call of the oracle for each step: for outputs that users bring
    along and, on chains, to compare with :class:`FlowSwap`. Memory: one sparse vector for each example.

    Parameters
    ----------
    gap_sampling : bool, default=True
        Draw by gaps; otherwise in a random order.
    average : bool, default=True
        Certify the average too.

    Examples
    --------
    >>> from dualfield.solvers import PlaneFrankWolfe
    >>> PlaneFrankWolfe(average=False).gap_sampling
    True
    """

    name: ClassVar[str] = "frank_wolfe"
    needs: ClassVar[tuple[Need, ...]] = (
        losses_of_planes,
        squared_norm,
        free_signs,
    )

    gap_sampling: bool = True
    average: bool = True

    def solve(
        self,
        objective: PlaneProblem,
        rule: StopRule,
        start: Floats | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Floats]:
        """Solve an objective.

        Parameters
        ----------
        objective, rule, start, callbacks, random_state
            As for :meth:`LabellingSet.solve`.

        Returns
        -------
        Solution[Floats]
            The point, its gap and the course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.objectives import CustomPlanes
        >>> from dualfield.regularisers import SquaredNorm
        >>> from dualfield.solvers import PlaneFrankWolfe, StopRule
        >>> class Choice:
        ...     def joint_feature(self, x, y):
        ...         return x[y]
        ...     def loss(self, y_true, y):
        ...         return float(y != y_true)
        ...     def argmax(self, w, x, y_true=None):
        ...         return int((x @ w + (0.0 if y_true is None else np.arange(len(x)) != y_true)).argmax())
        >>> problem = CustomPlanes(Choice(), [np.eye(2)], [1], np.ones(1), SquaredNorm(2))
        >>> round(PlaneFrankWolfe().solve(problem, StopRule(1e-9)).objective, 6)
        0.25
        """
        suited(self, objective)
        course = PlaneCourse(objective, rule, callbacks)
        return course.follow(self._looks(objective, start, random_state), self.name)

    def _looks(self, problem: PlaneProblem, start: Floats | None, random_state: Any) -> Looks:
        rng, n = check_random_state(random_state), problem.n_examples
        state = _Mixtures(problem, start)
        yield from state.looks(self.average)
        active = np.flatnonzero(problem.weights > 0.0)
        while True:
            for _ in range(_BETWEEN_LOOKS):
                order = rng.permutation(active)
                for at in range(len(order)):
                    i = state.draw(rng, active) if self.gap_sampling else int(order[at])
                    state.step(i)
                state.passes += len(order) / max(n, 1)
            yield from state.looks(self.average)


class _Mixtures:
    """The mixture of each example: its part of w and of the linear term of the dual, and its gap."""

    def __init__(self, problem: PlaneProblem, start: Floats | None) -> None:
        n, p = problem.n_examples, problem.n_parameters
        self._problem, self.passes = problem, 0.0
        self._parts = [scipy.sparse.csr_array((1, p)) for _ in range(n)]
        self._linear, self._gaps, self._steps = np.zeros(n), np.ones(n), 0
        self._w, self._mean = np.zeros(p), np.zeros(p)
        self._start = None if start is None else np.asarray(start, dtype=np.float64)

    def draw(self, rng: Any, active: NDArray[np.int64]) -> int:
        chances = self._gaps[active]
        total = float(chances.sum())
        even = np.full(len(active), 1.0 / len(active))
        return int(rng.choice(active, p=even if total <= 0.0 else 0.9 * chances / total + 0.1 * even))

    def step(self, i: int) -> None:
        planes = self._problem.planes(self._w, np.array([i]))
        c = float(self._problem.weights[i])
        corner, value = (-c * planes.slopes).tocsr(), c * float(planes.offsets[0])
        apart = (self._parts[i] - corner).tocsr()
        gap = float((apart @ self._w)[0]) - float(self._linear[i]) + value
        self._gaps[i] = max(gap, 0.0)
        squared = float(apart.data @ apart.data)
        if gap > 0.0:
            length = 1.0 if squared <= gap else gap / squared
            self._w[apart.indices] -= length * apart.data
            self._parts[i] = (self._parts[i] - length * apart).tocsr()
            self._linear[i] += length * (value - self._linear[i])
        self._steps += 1
        self._mean += 2.0 / (self._steps + 1.0) * (self._w - self._mean)

    def looks(self, average: bool) -> Any:
        """Certify where it stands; gaps are known anew for all examples."""
        problem = self._problem
        together = scipy.sparse.vstack(self._parts, format="csr")
        self._w = np.asarray(together.sum(axis=0)).ravel()  # rounding must not enter the bound
        dual = float(self._linear.sum()) - 0.5 * float(self._w @ self._w)
        planes = problem.planes(self._w)
        heights = problem.weights * np.maximum(planes.values(self._w), 0.0)
        self._gaps = np.maximum(heights - self._linear + together @ self._w, 0.0)
        self.passes += 1.0
        yield Look(self._w, primal_value(problem, self._w, planes), dual, self.passes)
        others = [self._mean] if average and self._steps else []
        if self._start is not None:
            others, self._start = [*others, self._start], None
        for w in others:
            self.passes += 1.0
            yield Look(w, primal_value(problem, w, problem.planes(w)), dual, self.passes)
