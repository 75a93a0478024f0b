"""Stochastic subgradients on planes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from dualfield.data.arrays import Floats
from dualfield.objectives import PlaneProblem
from dualfield.solvers.base import Progress, Solution, Status, StopRule
from dualfield.solvers.needs import Need, free_signs, losses_of_planes, squared_norm
from dualfield.solvers.planes.course import Look, Looks, PlaneCourse, primal_value
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver

__all__ = ["PlaneSGD"]

_EPOCHS = 30


@register
@dataclass(frozen=True)
class PlaneSGD(Solver):
    r"""Step along a subgradient of one example's loss and the penalty's share of it, with steps 1 / t; averaged.

    .. math::
        w \leftarrow (1 - 1/t) \, w - (n c_i / t) \, a_i, \qquad a_i \text{ the slope of the highest plane at } w

    Each epoch visits all examples in a new order. At its end w is the mixture of all planes met so far, each example's
    with equal shares: a point of the dual, which gives a duality gap. The average of the points of the later half is
    looked at as well. Quick to a good model, slow to an exact one.

    Examples
    --------
    >>> from dualfield.solvers import PlaneSGD
    >>> PlaneSGD()
    PlaneSGD()
    """

    name: ClassVar[str] = "plane_sgd"
    needs: ClassVar[tuple[Need, ...]] = (
        losses_of_planes,
        squared_norm,
        free_signs,
    )
    makes_epochs: ClassVar[bool] = True

    def solve(
        self,
        objective: PlaneProblem,
        rule: StopRule,
        start: Floats | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Floats]:
        """Solve an objective as far as the epochs go.

        Parameters
        ----------
        objective, callbacks, random_state
            As for :meth:`LabellingSet.solve`.
        rule : StopRule
            ``max_passes`` is the number of epochs, 30 if it is infinite; ends earlier where the gap is small enough.
        start : array of shape (n_parameters,), default=None
            A point that is returned unless a better one is found.

        Returns
        -------
        Solution[Floats]
            The point, its gap and the course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.objectives import CustomPlanes
        >>> from dualfield.regularisers import SquaredNorm
        >>> from dualfield.solvers import PlaneSGD, StopRule
        >>> class Choice:
        ...     def joint_feature(self, x, y):
        ...         return x[y]
        ...     def loss(self, y_true, y):
        ...         return float(y != y_true)
        ...     def argmax(self, w, x, y_true=None):
        ...         return int((x @ w + (0.0 if y_true is None else np.arange(len(x)) != y_true)).argmax())
        >>> problem = CustomPlanes(Choice(), [np.eye(2)], [1], np.ones(1), SquaredNorm(2))
        >>> solution = PlaneSGD().solve(problem, StopRule(1e-9, 100))
        >>> round(solution.objective, 6)
        0.25
        """
        suited(self, objective)
        epochs = _EPOCHS if np.isinf(rule.max_passes) else int(rule.max_passes)
        course = PlaneCourse(objective, StopRule(rule.tol), callbacks)
        return course.follow(self._looks(objective, start, epochs, random_state), self.name)

    def _looks(self, problem: PlaneProblem, start: Floats | None, epochs: int, random_state: Any) -> Looks:
        rng, n = check_random_state(random_state), problem.n_examples
        w, t, costs = np.zeros(problem.n_parameters), 0, 0.0
        mean, n_mean = np.zeros(problem.n_parameters), 0
        if start is not None:
            w0 = np.asarray(start, dtype=np.float64)
            yield Look(w0, primal_value(problem, w0, problem.planes(w0)), 0.0, 0.0)
        for epoch in range(1, epochs + 1):
            for i in rng.permutation(n).tolist():
                planes = problem.planes(w, np.array([i]))
                t += 1
                c = float(problem.weights[i])
                w *= 1.0 - 1.0 / t
                w[planes.slopes.indices] -= (n * c / t) * planes.slopes.data
                costs += c * float(planes.offsets[0])
                if 2 * epoch > epochs:
                    n_mean += 1
                    mean += (w - mean) / n_mean
            # Each example has met `epoch` planes: their equal mixture is w.
            dual = costs / epoch - 0.5 * float(w @ w)
            yield Look(w, primal_value(problem, w, problem.planes(w)), dual, float(epoch))
            if n_mean:
                yield Look(mean, primal_value(problem, mean, problem.planes(mean)), dual, float(epoch))
        return Status.FINISHED
