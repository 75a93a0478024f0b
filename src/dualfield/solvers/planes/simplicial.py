"""Restricted simplicial decomposition: the dual on the vertices met so far, near an anchor that moves."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.data.user_warnings import warn_user
from dualfield.engines.blas_threads import one_blas_thread
from dualfield.objectives import PlaneProblem, Planes
from dualfield.regularisers import PlaneRegulariser
from dualfield.solvers.base import Progress, Solution, Status, StopRule
from dualfield.solvers.needs import Need, losses_of_planes, plane_regulariser
from dualfield.solvers.planes.course import Look, Looks, PlaneCourse, even_groups, group_sums
from dualfield.solvers.planes.mixture_master import MixtureMaster
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver
from dualfield.structures.checks import check_int

__all__ = ["Simplicial"]

_BLOCKS = 100
_PULL = 0.1  # to begin with, in units of the weight of a loss
_SERIOUS = 0.5  # the share of the promised decrease that moves the anchor
_SCALES = (1.0, 0.99, 0.9, 0.5)  # mixtures drawn towards the planes 0, whose bounds are tried, too
_EXACTNESS = 0.1  # of the mixtures, beside the gap
_IDLE = 0.05  # planes with no larger part of the mean share are melted; less where the relative gap is small
_ROUNDING = 1e-15
_MOST_IDLE = 5  # rounds without new planes in which mixtures may get more exact


@register
@dataclass(frozen=True)
class Simplicial(Solver):
    r"""Maximise the dual over mixtures of the vertices met so far, and add the vertices at its maximum.

    .. math::
        \max_{(\mu, \omega) \in \mathcal{D}} \; \omega + \min_w \, [ R(w) + \langle \mu, w \rangle ], \qquad
        \mathcal{D} = \sum_i c_i \, \mathrm{conv} \{ (a_i(y), b_i(y)) : y \}

    is the dual of :math:`\min_w R(w) + \sum_i c_i \max_y [ b_i(y) + \langle a_i(y), w \rangle ]`. The inner minimum is
    a smooth function of :math:`\mu` for half the squared norm. For tables of probabilities it is not, and a term
    :math:`\frac{\gamma}{2} \|w - \bar w\|^2` makes it so (Yu, Bertsekas and Rousu): the anchor :math:`\bar w` moves
    when half of the decrease that the dual promises was found, so that the objective falls at every move, and
    :math:`\gamma` is halved when that takes one round.

    The examples form blocks, each with a mixture of its own: more blocks need fewer rounds, and larger programmes.
    Every mixture gives a bound from below on the objective; the result is the best point of all rounds, with the best
    bound.

    Parameters
    ----------
    n_blocks : int or "auto", default="auto"
        Number of blocks; "auto": 100, or one for each example if there are fewer.
    max_columns : int, default=60
        How many vertices a block keeps. Where more have a share, the smallest are melted into one.

    Examples
    --------
    >>> from dualfield.solvers import Simplicial
    >>> Simplicial(n_blocks=1).max_columns
    60
    """

    name: ClassVar[str] = "simplicial"
    needs: ClassVar[tuple[Need, ...]] = (losses_of_planes, plane_regulariser)

    n_blocks: int | Literal["auto"] = "auto"
    max_columns: int = 60

    def n_groups(self, n_examples: int) -> int:
        """Return how many blocks there are for so many examples.

        Parameters
        ----------
        n_examples : int
            Number of losses.

        Returns
        -------
        int
            At most `n_examples`.

        Examples
        --------
        >>> from dualfield.solvers import Simplicial
        >>> Simplicial().n_groups(1000), Simplicial(n_blocks=20).n_groups(5)
        (100, 5)
        """
        count = _BLOCKS if self.n_blocks == "auto" else check_int("Simplicial", "n_blocks", self.n_blocks, 1)
        return min(count, n_examples)

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
        objective : PlaneProblem
            The losses.
        rule : StopRule
            When to stop.
        start : array of shape (n_parameters,), default=None
            Where to begin; None: where the regulariser is least.
        callbacks : Callbacks or callable, default=None
            Called after each pass with objective, dual, gap, passes and seconds.
        random_state : None
            Not used.

        Returns
        -------
        Solution[Floats]
            The point, its gap and the course. Its ``dual`` holds the mixture of the best bound, ``slope`` and
            ``offset``, and the values of the objective at the anchors, ``anchors``, which fall.

        Examples
        --------
        >>> from dualfield.solvers import Simplicial, StopRule, prototypes
        >>> problem = prototypes.objective(temperature=0.0)
        >>> solution = Simplicial().solve(problem, StopRule(1e-9))
        >>> solution.status.value, round(solution.objective, 6)
        ('converged', 0.25)
        """
        suited(self, objective)
        parts = SimplicialParts(self, objective, rule, start, callbacks)
        solution = parts.go_on()
        parts.warn(solution.status)
        return solution


class SimplicialParts:
    """A run of :class:`Simplicial` that can be left and gone on with.

    Parameters
    ----------
    settings, objective, rule, start, callbacks
        As for :meth:`Simplicial.solve`.

    Examples
    --------
    >>> from dualfield.solvers import Simplicial, StopRule, prototypes
    >>> from dualfield.solvers.planes.simplicial import SimplicialParts
    >>> problem = prototypes.objective(temperature=0.0)
    >>> parts = SimplicialParts(Simplicial(), problem, StopRule(1e-9))
    >>> parts.go_on(1.0).status.value, parts.go_on().status.value
    ('too_slow', 'converged')
    """

    def __init__(
        self,
        settings: Simplicial,
        objective: PlaneProblem,
        rule: StopRule,
        start: Floats | None = None,
        callbacks: Progress | None = None,
    ) -> None:
        regulariser = objective.regulariser
        assert isinstance(regulariser, PlaneRegulariser)
        self._course = PlaneCourse(objective, rule, callbacks, regulariser.resolution)
        self._run = _Run(settings, objective, regulariser, rule, self._course)
        self._looks = self._run.looks(start)

    @property
    def work(self) -> float:
        """Multiplications in the systems of mixtures so far: what rounds cost beside their pass over the data."""
        return self._run.work

    def go_on(self, work: float = np.inf) -> Solution[Floats]:
        """Run on.

        Parameters
        ----------
        work : float, default=inf
            Stop as too slow at the end of the round in which :attr:`work` gets here.

        Returns
        -------
        Solution[Floats]
            What all parts together have reached; iterations are those of this one.
        """
        # Small dense systems gain nothing from many BLAS threads, and would differ in the last bit.
        with one_blas_thread():
            solution = self._course.follow(self._part(work), Simplicial.name)
        return dataclasses.replace(solution, dual=self._run.dual())

    def warn(self, status: Status) -> None:
        """Say that the limit on vertices may be the reason why the tolerance was not reached.

        Parameters
        ----------
        status : Status
            How the run ended.
        """
        self._run.warn(status)

    def _part(self, work: float) -> Looks:
        while True:
            try:
                look = next(self._looks)
            except StopIteration as end:
                status: Status = end.value
                return status
            yield look
            if self.work >= work:
                return Status.TOO_SLOW


class _Run:
    """One course of the solver."""

    def __init__(
        self,
        settings: Simplicial,
        problem: PlaneProblem,
        regulariser: PlaneRegulariser,
        rule: StopRule,
        course: PlaneCourse,
    ) -> None:
        self._settings, self._problem, self._regulariser = settings, problem, regulariser
        self._rule, self._course = rule, course
        n_groups = settings.n_groups(problem.n_examples)
        check_int("Simplicial", "max_columns", settings.max_columns, 1)
        self._sums = group_sums(problem, even_groups(problem.n_examples, n_groups))
        self._master = MixtureMaster(regulariser, self._sums.shape[0])
        self._bound, self._slope, self._offset = -np.inf, np.zeros(problem.n_parameters), 0.0
        self._anchor_values: list[float] = []
        self._crowded = False

    def warn(self, status: Status) -> None:
        """Say that the limit on vertices may be the reason why the tolerance was not reached."""
        if self._crowded and status in (Status.ITERATION_LIMIT, Status.STALLED):
            warn_user(
                f"Blocks had more than max_columns={self._settings.max_columns} vertices with a share, and lost some. "
                f"Increase max_columns or n_blocks."
            )

    @property
    def work(self) -> float:
        return self._master.work

    def dual(self) -> dict[str, NDArray[Any]]:
        return {"slope": self._slope, "offset": np.array(self._offset), "anchors": np.array(self._anchor_values)}

    def looks(self, start: Floats | None) -> Looks:
        anchored, master = self._regulariser.needs_anchor, self._master
        w = self._regulariser.origin() if start is None else self._regulariser.nearest(np.asarray(start, np.float64))
        planes, passes, gap, waited, idle = self._problem.planes(w), 1.0, np.inf, False, 0
        anchor, at_anchor = w, self._value(w, planes)
        pull = _PULL * float(self._problem.weights.mean())
        self._anchor_values.append(at_anchor)
        self._improve_bound()
        yield Look(w, at_anchor, self._bound, passes)
        if anchored:
            master.move_anchor(anchor, pull)
        while True:
            added = self._add(planes, w)
            master.solve(max(_EXACTNESS * min(gap, self._course.gap), _ROUNDING * self._course.primal))
            w, promised = master.response.w, master.value
            planes, passes = self._problem.planes(w), passes + 1.0
            value = self._value(w, planes)
            self._improve_bound()
            yield Look(w, value, self._bound, passes)
            away = w - anchor
            gap = max(value + (0.5 * pull * float(away @ away) if anchored else 0.0) - promised, 0.0)
            self._crowded |= master.trim(self._settings.max_columns, self._idle())
            if anchored and gap <= (1.0 - _SERIOUS) * (at_anchor - promised):
                pull = pull if waited else 0.5 * pull
                anchor, at_anchor, waited = w, value, False
                self._anchor_values.append(value)
                master.move_anchor(anchor, pull)
                idle = 0
            else:
                waited, idle = True, 0 if added else idle + 1
                if idle > _MOST_IDLE:
                    return Status.STALLED  # neither new planes nor better mixtures of the old ones

    def _idle(self) -> float:
        return min(_IDLE, 1.5 * self._course.gap / max(self._course.primal, np.finfo(float).tiny))

    def _value(self, w: Floats, planes: Planes) -> float:
        return self._regulariser.value(w) + float(self._problem.weights @ planes.losses(w))

    def _improve_bound(self) -> None:
        """Take the bound of the mixture, or of the mixture drawn towards the planes 0, if it is better."""
        slope, offset = self._master.slope, self._master.offset
        for scale in _SCALES:
            bound = scale * offset - self._regulariser.conjugate(-scale * slope)
            if bound > self._bound:
                self._bound, self._slope, self._offset = bound, scale * slope, scale * offset

    def _add(self, planes: Planes, w: Floats) -> int:
        """Add the planes of blocks that are higher at w than those known; return how many."""
        master = self._master
        slopes, offsets = (self._sums @ planes.slopes).tocsr(), np.asarray(self._sums @ planes.offsets)
        known = np.zeros(self._sums.shape[0])
        if len(master.blocks):
            np.maximum.at(known, master.blocks, master.offsets + master.slopes @ w)
        higher = np.flatnonzero(offsets + slopes @ w > known)
        master.add(slopes[higher], offsets[higher], higher)
        return len(higher)
