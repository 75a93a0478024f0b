"""Newton's method on few coordinates, for functions with a penalty on absolute values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dualfield._native import StateError
from dualfield.data.arrays import Floats
from dualfield.solvers.kept_state import kept_count, kept_indices, kept_numbers
from dualfield.solvers.primal.l1_quadratic import minimise_l1_quadratic, pseudo_gradient
from dualfield.solvers.primal.quasi_newton import Point, State

_ARMIJO = 1e-3
_MOST_TRIES = 40
_DIFFERENCE = 1e-4  # length of differences, for features of size one
_LEAST = 1e-10  # eigenvalues of the Hessian, scaled to a diagonal of ones, are at least this
_LAG, _FALL = 5, 0.5  # so many steps must make the slope this much smaller
_ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


class ProximalNewton:
    """Steps to the minimum of a quadratic model with the penalty itself, so that coordinates change sign freely.

    Where the penalty is weak beside the curvature, directions that keep their signs, as those of OWL-QN do, stop at
    every zero on the way. Here the model is minimised over all signs. Its Hessian, for coordinates that are not zero
    or do not stay there, comes from differences of gradients, two evaluations for each, and is kept up by BFGS until
    steps get short.

    Parameters
    ----------
    evaluate : callable
        x to value (with the penalties) and gradient of the smooth part.
    start : Point or dict
        Where to begin; or a :meth:`state`, to go on from it.
    l1 : float
        Weight of the absolute values.
    reach : array
        Above zero: by how much a unit of each coordinate changes scores, roughly. Differences are that much shorter.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.primal.proximal_newton import ProximalNewton
    >>> from dualfield.solvers.primal.quasi_newton import Point
    >>> evaluate = lambda x: (float(((x - 3.0) ** 2).sum() + np.abs(x).sum()), 2.0 * (x - 3.0))
    >>> run = ProximalNewton(evaluate, Point(np.zeros(2), *evaluate(np.zeros(2))), 1.0, np.ones(2))
    >>> while run.step():
    ...     pass
    >>> run.point.x.round(6)
    array([2.5, 2.5])
    """

    def __init__(
        self,
        evaluate: Callable[[Floats], tuple[float, Floats]],
        start: Point | State,
        l1: float,
        reach: Floats,
    ) -> None:
        self._evaluate, self._l1, self._reach = evaluate, l1, reach
        self.n_evaluations = 0
        self._known = np.zeros(0, dtype=np.int64)
        self._hessian = np.zeros((0, 0))
        self._slopes: list[float] = []  # of the steps since the Hessian was computed
        if isinstance(start, dict):
            self._restore(start)
        else:
            self.point = start

    def step(self) -> bool:
        """Go one step downhill; False where no step does.

        Returns
        -------
        bool
            Whether the value fell, or, where rounding hides that, the slope.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers.primal.proximal_newton import ProximalNewton
        >>> from dualfield.solvers.primal.quasi_newton import Point
        >>> there = Point(np.zeros(1), 0.0, np.zeros(1))
        >>> ProximalNewton(lambda x: (float(x @ x), 2.0 * x), there, 1.0, np.ones(1)).step()   # there already
        False
        """
        x, _, gradient = self.point
        free = np.flatnonzero((x != 0.0) | (np.abs(gradient) > self._l1))
        slope = self._slope(self.point)
        if not slope > 0.0:
            return False
        fresh = self._is_lagging(slope)
        self._learn(free, anew=fresh)
        found = self._search(free, slope)
        if found is None and not fresh:  # differences again, here
            self._learn(free, anew=True)
            found = self._search(free, slope)
        if found is None:
            return False
        self._slopes.append(slope)
        self._keep_up(found)
        self.point = found
        return True

    def state(self) -> State:
        """Return arrays with which the steps can go on later just as they would now.

        Returns
        -------
        dict
            Arrays by name.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers.primal.proximal_newton import ProximalNewton
        >>> from dualfield.solvers.primal.quasi_newton import Point
        >>> square = lambda x: (float(((x - 3.0) ** 4).sum() + np.abs(x).sum()), 4.0 * (x - 3.0) ** 3)
        >>> run = ProximalNewton(square, Point(np.ones(2), *square(np.ones(2))), 1.0, np.ones(2))
        >>> again = ProximalNewton(square, run.state(), 1.0, np.ones(2))
        >>> run.step(), again.step(), bool((run.point.x == again.point.x).all())
        (True, True, True)
        """
        return {
            "x": self.point.x,
            "known": self._known,
            "hessian": self._hessian.ravel(),
            "slopes": np.array(self._slopes),
            "n_evaluations": np.array([self.n_evaluations], dtype=np.uint64),
        }

    def _restore(self, state: State) -> None:
        """Go on from a state, which comes from a file: what can be computed is not in it."""
        size = len(self._reach)
        x = kept_numbers(state, "x", size)
        self._known = kept_indices(state, "known", size)
        n_known = self._known.size
        self._hessian = kept_numbers(state, "hessian", n_known * n_known).reshape(n_known, n_known).copy()
        if not np.array_equal(self._hessian, self._hessian.T) or (self._hessian.diagonal() < 0.0).any():
            raise StateError("hessian is not the matrix of a convex function")
        self._slopes = kept_numbers(state, "slopes").tolist()
        self.n_evaluations = kept_count(state, "n_evaluations")
        self.point = Point(x, *self._evaluate(x))

    def _at(self, x: Floats) -> Point:
        self.n_evaluations += 1
        return Point(x, *self._evaluate(x))

    def _slope(self, point: Point) -> float:
        """Return the size of the pseudo-gradient, every coordinate beside what it can reach."""
        return float(np.linalg.norm(pseudo_gradient(point.x, point.gradient, self._l1) / self._reach))

    def _is_lagging(self, slope: float) -> bool:
        return len(self._slopes) >= _LAG and slope > _FALL * self._slopes[-_LAG]

    def _learn(self, free: NDArray[np.int64], anew: bool) -> None:
        """Compute the Hessian for coordinates that it does not have yet, or all of it."""
        kept = np.zeros(0, dtype=np.int64) if anew else self._known
        new = np.setdiff1d(free, kept)
        if anew:
            self._slopes.clear()
        if not new.size:
            return
        known = np.concatenate([kept, new])
        hessian = np.zeros((known.size, known.size))
        hessian[: kept.size, : kept.size] = self._hessian if not anew else 0.0
        for at, j in enumerate(new, start=kept.size):
            length = _DIFFERENCE / self._reach[j]
            ends = []
            for sign in (1.0, -1.0):
                x = self.point.x.copy()
                x[j] += sign * length
                ends.append(self._at(x).gradient[known])
            hessian[at] = hessian[:, at] = (ends[0] - ends[1]) / (2.0 * length)
        block = hessian[kept.size :, kept.size :]
        hessian[kept.size :, kept.size :] = 0.5 * (block + block.T)
        least = _LEAST * abs(self.point.value) * self._reach[known] ** 2
        self._known, self._hessian = known, _positive(hessian, least)

    def _search(self, free: NDArray[np.int64], slope: float) -> Point | None:
        """Go towards the minimum of the model, half as far while that is too far."""
        x, value, gradient = self.point
        order = np.argsort(self._known)
        places = order[np.searchsorted(self._known, free, sorter=order)]
        matrix = self._hessian[np.ix_(places, places)]
        if not np.isfinite(matrix).all():  # it came from a file, or a step was too short to divide by
            return None
        end = minimise_l1_quadratic(matrix, gradient[free] - matrix @ x[free], self._l1, x[free])
        direction = np.zeros_like(x)
        direction[free] = end - x[free]
        change = float(gradient @ direction) + self._l1 * float((np.abs(end) - np.abs(x[free])).sum())
        if not change < 0.0:
            return None
        rounding = _ROUNDING * abs(value) * (1.0 + float(np.abs(x) @ self._reach))  # losses are differences of scores
        length = 1.0
        for _ in range(_MOST_TRIES):
            target = x + length * direction
            if length == 1.0:
                target[free] = end  # exact zeros
            tried = self._at(target)
            if tried.value <= value + _ARMIJO * length * change and tried.value < value:
                return tried
            # Where rounding hides whether the value falls, the slope tells.
            if tried.value <= value + rounding and self._slope(tried) <= _FALL * slope:
                return tried
            length *= 0.5
        return None

    def _keep_up(self, found: Point) -> None:
        """Change the Hessian so that it explains the last step (BFGS)."""
        moved = (found.x - self.point.x)[self._known]
        change = (found.gradient - self.point.gradient)[self._known]
        curvature, bent = float(moved @ change), self._hessian @ moved
        if curvature > 1e-10 * float(np.linalg.norm(moved) * np.linalg.norm(change)):
            self._hessian += np.outer(change, change) / curvature - np.outer(bent, bent) / float(moved @ bent)


def _positive(matrix: Floats, least: Floats) -> Floats:
    """Raise the eigenvalues that differences leave negative, or zero, with coordinates scaled to curvature one."""
    scale = np.sqrt(np.maximum(np.diag(matrix), least))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    raised = (vectors * np.maximum(values, _LEAST)) @ vectors.T
    with np.errstate(over="ignore"):
        return np.asarray(0.5 * (raised + raised.T) * np.outer(scale, scale))
