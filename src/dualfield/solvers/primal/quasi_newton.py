"""Limited-memory BFGS, with OWL-QN where there is a penalty on absolute values."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield._native import StateError
from dualfield.data.arrays import Floats
from dualfield.data.on_disk import joined
from dualfield.solvers.kept_state import kept_count, kept_numbers
from dualfield.solvers.primal.l1_quadratic import pseudo_gradient

State = dict[str, NDArray[Any]]

_ARMIJO, _CURVATURE = 1e-4, 0.9
ROUNDING = 1e-14  # of values, beside their size: they are sums over all examples
_SHRINKS = 0.99  # a step that no value can judge must make the gradient so much shorter
_MOST_TRIES = 30
_PAIRS = ("moved", "change")


class Point(NamedTuple):
    """A point, its value with all penalties, and the gradient of the smooth part."""

    x: Floats
    value: float
    gradient: Floats


class LimitedMemory:
    """Steps of L-BFGS on a smooth function plus ``l1`` times the sum of absolute values.

    Without ``l1`` the line search meets the Wolfe conditions (Nocedal and Wright, algorithm 7.5). Where values differ
    by rounding only, it meets the approximate ones of Hager and Zhang 2005, which look at slopes, and the gradient must
    get shorter. With ``l1``, steps follow Andrew and Gao 2007: directions are made from the pseudo-gradient, keep its
    signs, and end where a coordinate would change sign.

    Parameters
    ----------
    evaluate : callable
        x to value (with the penalties) and gradient of the smooth part.
    start : array
        Where to begin.
    memory : int
        Pairs of vectors kept.
    l1 : float, default=0.0
        Weight of the absolute values.
    resume : dict, default=None
        A :meth:`state` to go on from instead.
    on_disk : bool, default=False
        Whether the pairs are in temporary files; the steps are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.primal.quasi_newton import LimitedMemory
    >>> run = LimitedMemory(lambda x: (float(((x - 3.0) ** 2).sum()), 2.0 * (x - 3.0)), np.zeros(2), 5)
    >>> while run.step():
    ...     pass
    >>> run.point.x.round(6)
    array([3., 3.])
    """

    def __init__(
        self,
        evaluate: Callable[[Floats], tuple[float, Floats]],
        start: Floats,
        memory: int,
        l1: float = 0.0,
        resume: State | None = None,
        on_disk: bool = False,
    ) -> None:
        self._evaluate, self._l1, self._on_disk = evaluate, l1, on_disk
        self._pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=memory)
        self.n_evaluations = 0
        if resume is not None:
            self._restore(resume, len(start), memory)
        else:
            self.point = self._at(np.array(start, dtype=np.float64))

    def step(self) -> bool:
        """Go one step downhill; False where no step does.

        Returns
        -------
        bool
            Whether the point got better.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers.primal.quasi_newton import LimitedMemory
        >>> LimitedMemory(lambda x: (float(x @ x), 2.0 * x), np.zeros(1), 5).step()   # there already
        False
        """
        steepest = -pseudo_gradient(self.point.x, self.point.gradient, self._l1)
        direction = self._direction(steepest)
        if self._l1:
            direction[direction * steepest <= 0.0] = 0.0
        slope = -float(direction @ steepest)
        if not slope < 0.0 and self._pairs:  # the pairs have lost touch
            self._pairs.clear()
            direction = steepest.copy()
            slope = -float(direction @ steepest)
        if not slope < 0.0:
            return False
        first = 1.0 if self._pairs else min(1.0, 1.0 / max(float(np.linalg.norm(direction)), 1e-300))
        found = self._project(direction, steepest, slope, first) if self._l1 else self._wolfe(direction, slope, first)
        if found is None or not (found.value < self.point.value or self._is_flatter(found)):
            if not self._pairs:
                return False
            self._pairs.clear()
            return self.step()
        moved, change = found.x - self.point.x, found.gradient - self.point.gradient
        curvature = float(moved @ change)
        # Beside both lengths: the test must not depend on the units of x. Squares may vanish where both are tiny.
        lengths = float(np.linalg.norm(moved) * np.linalg.norm(change))
        if curvature > 1e-10 * lengths and float(change @ change) > 0.0:
            self._keep(moved, change, 1.0 / curvature)
        self.point = found
        return True

    def _is_flatter(self, found: Point) -> bool:
        """Whether a point is better as far as slopes tell, where values cannot."""
        shorter = np.linalg.norm(found.gradient) <= _SHRINKS * np.linalg.norm(self.point.gradient)
        return not self._l1 and bool(shorter)

    def state(self) -> State:
        """Return arrays with which the steps can go on later just as they would now.

        Returns
        -------
        dict
            Arrays by name.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers.primal.quasi_newton import LimitedMemory
        >>> square = lambda x: (float(((x - 3.0) ** 4).sum()), 4.0 * (x - 3.0) ** 3)
        >>> run = LimitedMemory(square, np.zeros(2), 5)
        >>> again = LimitedMemory(square, np.zeros(2), 5, resume=run.state())
        >>> run.step(), again.step(), bool((run.point.x == again.point.x).all())
        (True, True, True)
        """
        return {
            "x": self.point.x,
            "moved": joined([moved for moved, _, _ in self._pairs], self._on_disk),
            "change": joined([change for _, change, _ in self._pairs], self._on_disk),
            "factor": np.array([factor for _, _, factor in self._pairs]),
            "n_evaluations": np.array([self.n_evaluations], dtype=np.uint64),
        }

    def _restore(self, state: State, size: int, memory: int) -> None:
        """Go on from a state, which comes from a file: what can be computed is not in it."""
        factors = kept_numbers(state, "factor")
        if len(factors) > memory:
            raise StateError(f"factor has {len(factors)} entries; expected up to {memory}")
        moved, change = (kept_numbers(state, name, len(factors) * size).reshape(-1, size) for name in _PAIRS)
        with np.errstate(over="ignore"):
            curvature = np.einsum("ij,ij->i", moved, change)
        if not np.allclose(factors * curvature, 1.0, rtol=1e-6):
            raise StateError("factor does not agree with moved and change")
        x = kept_numbers(state, "x", size)
        self.point = Point(x, *self._evaluate(x))
        for pair in zip(moved, change, factors.tolist(), strict=True):
            self._keep(*pair)
        self.n_evaluations = kept_count(state, "n_evaluations")

    def _keep(self, moved: Floats, change: Floats, factor: float) -> None:
        self._pairs.append((joined([moved], self._on_disk), joined([change], self._on_disk), factor))

    def _at(self, x: Floats) -> Point:
        self.n_evaluations += 1
        return Point(x, *self._evaluate(x))

    def _direction(self, steepest: Floats) -> Floats:
        """Multiply with the inverse Hessian of the pairs: the two loops."""
        direction = steepest.copy()
        shares = []
        for moved, change, factor in reversed(self._pairs):
            share = factor * float(moved @ direction)
            direction -= share * change
            shares.append(share)
        if self._pairs:
            _, change, factor = self._pairs[-1]
            direction *= 1.0 / (factor * float(change @ change))
        for (moved, change, factor), share in zip(self._pairs, reversed(shares), strict=True):
            direction += (share - factor * float(change @ direction)) * moved
        return direction

    def _wolfe(self, direction: Floats, slope: float, length: float) -> Point | None:
        """Find a step by doubling and cutting until both Wolfe conditions hold; the best fall otherwise."""
        low, high, best = 0.0, np.inf, None
        for _ in range(_MOST_TRIES):
            tried = self._at(self.point.x + length * direction)
            if self._is_too_far(tried, direction, length, slope):
                high = length
                # The minimum of the parabola through what is known, kept inside.
                rise = tried.value - self.point.value - slope * length
                cut = -slope * length / (2.0 * rise) if np.isfinite(rise) and rise > 0 else 0.1
                length = low + (high - low) * min(0.5, max(0.1, cut)) if low == 0.0 else 0.5 * (low + high)
                continue
            if best is None or tried.value < best.value:
                best = tried
            if float(tried.gradient @ direction) >= _CURVATURE * slope:
                return tried
            low = length
            length = 2.0 * low if np.isinf(high) else 0.5 * (low + high)
            if high - low <= 1e-12 * low:
                break
        return best

    def _is_too_far(self, tried: Point, direction: Floats, length: float, slope: float) -> bool:
        """Whether the value falls too little; where that is a matter of rounding, whether the slope has turned."""
        if abs(tried.value - self.point.value) <= ROUNDING * abs(self.point.value):
            return not float(tried.gradient @ direction) <= (2.0 * _ARMIJO - 1.0) * slope
        return not tried.value <= self.point.value + _ARMIJO * length * slope

    def _project(self, direction: Floats, steepest: Floats, slope: float, length: float) -> Point | None:
        """Halve the step until the value falls; coordinates stop at zero."""
        orthant = np.where(self.point.x != 0.0, np.sign(self.point.x), np.sign(steepest))
        for _ in range(_MOST_TRIES):
            x = self.point.x + length * direction
            x[x * orthant < 0.0] = 0.0
            tried = self._at(x)
            fall = float(steepest @ (x - self.point.x))
            if tried.value <= self.point.value - _ARMIJO * fall:
                return tried
            length *= 0.5
        return None
