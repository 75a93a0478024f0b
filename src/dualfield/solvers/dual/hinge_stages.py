"""The hinge where mass can be swapped: swaps, and mixtures of planes where these crawl."""

from __future__ import annotations

import dataclasses

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.objectives import Objective
from dualfield.solvers.base import Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks, StageCallbacks
from dualfield.solvers.dual.flow_swap import FlowSwap
from dualfield.solvers.planes.simplicial import Simplicial, SimplicialParts
from dualfield.solvers.trace import Trace, relative_gap

__all__ = ["solve_in_stages"]

PATIENCE = 300.0  # passes of swaps to begin with: enough for most problems
_SHARE = 2.0  # work of mixtures for each unit of work of swaps
# What a pass of swaps costs, in multiplications of a dense system: for each node, and for each feature of a node. There
# are few labels with mass, however many there are.
_NODE, _FEATURE = 2000.0, 25.0


def solve_in_stages(
    objective: Objective, rule: StopRule, start: Floats | None, callbacks: Callbacks, seed: int
) -> Solution[Floats]:
    """Swap mass as long as that promises to end soon, else let mixtures of planes run in turns with it.

    Where features have offsets or different scales, or C is large, swaps crawl and mixtures of planes, whose steps are
    Newton's, do not; where there are many labels and features it is the other way round. Nobody knows beforehand. Turns
    get twice as long each time, and are measured in counted work, so that the whole takes a few times as long as the
    better one alone, and comes out the same on every machine. The result is the best point of all stages with the best
    bound of all.

    Parameters
    ----------
    objective : Objective
        The hinge of chains, trees or graphs. There must be few parameters: mixtures are solved densely.
    rule : StopRule
        When to stop.
    start : array of shape (n_parameters,) or None
        Weights that the result must not be worse than.
    callbacks : Callbacks
        Goes along. States are kept of the first stage, which lead to the others again.
    seed : int
        Seed of the order of the examples.

    Returns
    -------
    Solution
        The point, its gap and the whole course.

    Examples
    --------
    >>> from dualfield.solvers import Callbacks, StopRule, prototypes
    >>> from dualfield.solvers.dual.hinge_stages import solve_in_stages
    >>> solve_in_stages(prototypes.objective(temperature=0.0), StopRule(1e-6), None, Callbacks(), 0).solver
    'flow_swap'
    """
    return _Stages(objective, rule, callbacks, seed).to_the_end(start)


class _Stages:
    """Two solvers that take turns, and what they have reached together."""

    def __init__(self, objective: Objective, rule: StopRule, callbacks: Callbacks, seed: int) -> None:
        self._objective, self._rule, self._whole, self._seed = objective, rule, callbacks, seed
        self._mixtures: SimplicialParts | None = None
        self._callbacks: StageCallbacks | None = None  # of the mixtures
        self._n_mixed = 0  # rows of their trace that are in the whole one
        self._swapped = 0.0  # passes

    def to_the_end(self, start: Floats | None) -> Solution[Floats]:
        patience = PATIENCE
        first = StopRule(self._rule.tol, min(patience, self._rule.max_passes))
        found = FlowSwap().solve(self._objective, first, start, self._whole, self._seed)
        self._found, self._flow = found, found.dual
        self._swapped = float(found.trace.passes[-1])
        crawls = moves = True  # swaps are not done, mixtures can go on
        while crawls and self._goes_on():
            is_stuck = found.status is Status.STALLED
            if moves and (is_stuck or not _ends_soon(found.trace, self._rule.tol)):
                work = np.inf if is_stuck else _SHARE * patience * self._pass_work()
                moves = self._mix(work).status is Status.TOO_SLOW
                if not self._goes_on():
                    break
            patience = 2.0 * patience if moves else np.inf
            crawls = moves or not is_stuck
            found = found if is_stuck else self._swap(patience)
        return self._found

    def _goes_on(self) -> bool:
        over = self._found.status not in (Status.ITERATION_LIMIT, Status.STALLED, Status.TOO_SLOW)
        return not over and self._passes < self._rule.max_passes

    @property
    def _passes(self) -> float:
        return float(self._found.trace.passes[-1])

    def _pass_work(self) -> float:
        """Return what a pass of swaps costs, in multiplications of a dense system."""
        batch = self._objective.examples.nodes
        return _NODE * batch.n_nodes + _FEATURE * float(batch.to_csr().nnz)

    def _mix(self, work: float) -> Solution[Floats]:
        """Let mixtures do some more work."""
        spent, seconds = self._passes - self._n_mixed, float(self._found.trace.seconds[-1])
        if self._mixtures is None or self._callbacks is None:
            self._callbacks = self._whole.later(spent, seconds)
            self._mixtures = SimplicialParts(
                Simplicial(), self._objective, self._rest(), self._found.parameters, self._callbacks
            )
        self._callbacks.passes = spent
        mixed = self._mixtures.go_on(self._mixtures.work + work)
        rows = mixed.trace.rows()[self._n_mixed :]  # their clock has run on while swaps were made
        self._take(mixed, Trace.from_rows(rows).spent(-self._n_mixed, self._callbacks.seconds - seconds))
        self._n_mixed = len(mixed.trace)
        return mixed

    def _swap(self, until: float) -> Solution[Floats]:
        """Let swaps go on from where they were."""
        spent, seconds = self._passes, float(self._found.trace.seconds[-1])
        rest = StopRule(self._rule.tol, min(until - self._swapped, self._rest().max_passes))
        callbacks = self._whole.later(spent, seconds)
        more = FlowSwap().solve(self._objective, rest, self._found, callbacks, self._seed)
        self._flow, self._swapped = more.dual, self._swapped + float(more.trace.passes[-1])
        self._take(more, more.trace)
        return more

    def _rest(self) -> StopRule:
        return self._rule.after(self._found.trace)

    def _take(self, stage: Solution[Floats], course: Trace) -> None:
        """Keep the best point and the best bound, and what was done since the last stage."""
        found = self._found
        bound = max(found.objective - found.gap, stage.objective - stage.gap)
        best = found if found.objective <= stage.objective else stage
        objective = np.minimum(np.minimum.accumulate(course.objective), found.objective)
        dual = np.maximum(np.maximum.accumulate(course.dual), found.objective - found.gap)
        course = Trace(objective, dual, np.maximum(objective - dual, 0.0), course.passes, course.seconds)
        gap = max(best.objective - bound, 0.0)
        self._found = dataclasses.replace(
            stage,
            parameters=best.parameters,
            objective=best.objective,
            gap=gap,
            status=Status.CONVERGED if relative_gap(best.objective, gap) <= self._rule.tol else stage.status,
            trace=course,
            dual=self._flow,
        ).after(found)


def _ends_soon(trace: Trace, tol: float) -> bool:
    """Whether twice the passes would be enough, if the gap falls as much as it did over the last half of them."""
    passes, gap = trace.passes, trace.gap
    half = float(gap[int(np.searchsorted(passes, 0.5 * passes[-1]))])
    if not 0.0 < gap[-1] < half < np.inf:
        return False
    return relative_gap(float(trace.objective[-1]), float(gap[-1] * gap[-1] / half)) <= tol
