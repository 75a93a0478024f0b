"""Working sets of labellings, one for each example."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from dualfield.data.arrays import Floats
from dualfield.objectives import PlaneProblem, Planes
from dualfield.solvers.base import Progress, Solution, StopRule
from dualfield.solvers.needs import Need, free_signs, losses_of_planes, squared_norm
from dualfield.solvers.planes.course import Look, Looks, PlaneCourse, primal_value
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver

__all__ = ["LabellingSet"]

_MOST_SWEEPS = 50
_MOST_PAIRS = 200


@register
@dataclass(frozen=True)
class LabellingSet(Solver):
    r"""Dual ascent on sets of labellings that grow where they are violated: the hidden Markov support vector machine.

    The dual has a variable :math:`\alpha_i(y)` for each of exponentially many labellings, and nearly all are zero
    (Altun, Tsochantaridis and Hofmann 2003; Pérez-Cruz et al. 2007, section 1.2.1). Each example keeps the few that are
    not: a round adds the labelling that is most violated, and sweeps over the examples move shares between pairs of
    labellings of one example, each with the exact step, until the sets give nothing more. Labellings that have had no
    share for some rounds are dropped.

    Parameters
    ----------
    patience : int, default=10
        Rounds for which a labelling without a share is kept.

    Examples
    --------
    >>> from dualfield.solvers import LabellingSet
    >>> LabellingSet().patience
    10
    """

    name: ClassVar[str] = "labelling_set"
    needs: ClassVar[tuple[Need, ...]] = (
        losses_of_planes,
        squared_norm,
        free_signs,
    )

    patience: int = 10

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
        objective, rule, callbacks
            As for :meth:`CuttingPlane.solve`.
        start : array of shape (n_parameters,), default=None
            Where the first labellings are found; None: at zero.
        random_state : int, default=None
            Seed of the order of examples.

        Returns
        -------
        Solution[Floats]
            The point, its gap and the course.

        Examples
        --------
        >>> from dualfield.solvers import LabellingSet, StopRule, prototypes
        >>> problem = prototypes.objective(temperature=0.0)
        >>> round(LabellingSet().solve(problem, StopRule(1e-9)).objective, 6)
        0.25
        """
        suited(self, objective)
        if isinstance(self.patience, bool) or not isinstance(self.patience, int) or self.patience < 1:
            raise ValueError(
                f"The 'patience' parameter of LabellingSet must be an int in [1, inf). Got {self.patience!r} instead."
            )
        course = PlaneCourse(objective, rule, callbacks)
        return course.follow(self._looks(objective, start, course, random_state), self.name)

    def _looks(self, problem: PlaneProblem, start: Floats | None, course: PlaneCourse, random_state: Any) -> Looks:
        rng = check_random_state(random_state)
        sets = [_Set(float(c)) for c in problem.weights]
        w = np.zeros(problem.n_parameters)
        planes, at = problem.planes(w), w
        yield Look(w, primal_value(problem, w, planes), 0.0, 1.0)
        if start is not None:
            at = np.asarray(start, dtype=np.float64)
            planes = problem.planes(at)
            yield Look(at, primal_value(problem, at, planes), 0.0, 2.0)
        passes = 1.0 if start is None else 2.0
        while True:
            for i in np.flatnonzero(planes.values(at) > 0.0).tolist():
                sets[i].add(planes, i)
            active = [one for one in sets if one.c > 0.0 and len(one.offsets)]
            for _ in range(_MOST_SWEEPS):
                left = sum(active[k].ascend(w) for k in rng.permutation(len(active)))
                if left <= 0.1 * course.gap:
                    break
            for one in active:
                one.drop(self.patience)
            # The weights are made anew of the shares: rounding must not enter the bound.
            w = np.zeros(problem.n_parameters)
            for one in active:
                one.subtract(w, one.shares)
            planes, at, passes = problem.planes(w), w, passes + 1.0
            dual = sum(one.c * float(one.offsets @ one.shares) for one in active) - 0.5 * float(w @ w)
            yield Look(w, primal_value(problem, w, planes), dual, passes)


class _Set:
    """The labellings of one example, their shares, and the inner products of their slopes; the truth is the rest."""

    def __init__(self, c: float) -> None:
        self.c, self.offsets, self.shares = c, np.zeros(0), np.zeros(0)
        self._rows: list[tuple[NDArray[np.int32], Floats]] = []
        self._keys: list[Hashable] = []
        self._idle: list[int] = []
        self._gram = np.zeros((0, 0))

    def add(self, planes: Planes, i: int) -> None:
        """Take in the plane of a row, unless it is there."""
        if planes.keys[i] in self._keys:
            return
        entries = slice(int(planes.slopes.indptr[i]), int(planes.slopes.indptr[i + 1]))
        places, values = planes.slopes.indices[entries], planes.slopes.data[entries]
        n = len(self._rows)
        gram = np.zeros((n + 1, n + 1))
        gram[:n, :n] = self._gram
        dense = dict(zip(places.tolist(), values.tolist(), strict=True))
        for k, (other, theirs) in enumerate(self._rows):
            gram[n, k] = gram[k, n] = sum(
                dense.get(place, 0.0) * value for place, value in zip(other.tolist(), theirs.tolist(), strict=True)
            )
        gram[n, n] = float(values @ values)
        self._gram = gram
        self._rows.append((places, values))
        self._keys.append(planes.keys[i])
        self._idle.append(0)
        self.offsets, self.shares = np.append(self.offsets, planes.offsets[i]), np.append(self.shares, 0.0)

    def ascend(self, w: Floats) -> float:
        """Maximise the dual over these shares by pairs, and move w along; returns what could be gained before."""
        heights = self.offsets + np.array([values @ w[places] for places, values in self._rows])
        # The truth is the last one, with a plane of zeros.
        heights, shares = np.append(heights, 0.0), np.append(self.shares, max(1.0 - self.shares.sum(), 0.0))
        gram = np.pad(self._gram, (0, 1))
        gain = first = float(heights.max() - heights @ shares)
        if first <= 0.0:
            return 0.0
        for _ in range(_MOST_PAIRS):
            best = int(np.argmax(heights))
            worst = int(np.argmin(np.where(shares > 0.0, heights, np.inf)))
            rise = heights[best] - heights[worst]
            curvature = self.c * (gram[best, best] - 2.0 * gram[best, worst] + gram[worst, worst])
            step = shares[worst] if curvature * shares[worst] <= rise else rise / curvature
            shares[best] += step
            shares[worst] -= step
            heights -= self.c * step * (gram[best] - gram[worst])
            gain = float(heights.max() - heights @ shares)
            if gain <= 1e-3 * first:
                break
        moved = shares[:-1] - self.shares
        self.shares = shares[:-1]
        self.subtract(w, moved)
        return self.c * first

    def subtract(self, w: Floats, shares: Floats) -> None:
        """Move w by what these shares add to it."""
        for (places, values), share in zip(self._rows, shares.tolist(), strict=True):
            if share != 0.0:
                w[places] -= self.c * share * values

    def drop(self, patience: int) -> None:
        """Forget labellings that have had no share for long."""
        self._idle = [0 if share > 0.0 else idle + 1 for share, idle in zip(self.shares, self._idle, strict=True)]
        kept = [k for k, idle in enumerate(self._idle) if idle <= patience]
        if len(kept) < len(self._rows):
            self.offsets, self.shares, self._gram = (
                self.offsets[kept],
                self.shares[kept],
                self._gram[np.ix_(kept, kept)],
            )
            self._rows, self._keys = [self._rows[k] for k in kept], [self._keys[k] for k in kept]
            self._idle = [self._idle[k] for k in kept]
