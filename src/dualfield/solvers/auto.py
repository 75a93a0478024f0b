"""The choice of a solver, by the problem and by counted work, never by the clock: the same data give the same model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dualfield.objectives import KernelSoftmax, Objective, StreamedObjective
from dualfield.solvers.base import KernelPoint, Progress, Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.dual.block_dual import BlockDual
from dualfield.solvers.dual.flow_swap import FlowSwap
from dualfield.solvers.dual.hinge_stages import solve_in_stages
from dualfield.solvers.dual.local_blocks import LocalBlocks
from dualfield.solvers.dual.path_blocks import PathBlocks
from dualfield.solvers.kernel.ascent import KernelAscent
from dualfield.solvers.kernel.joint import JointOnline
from dualfield.solvers.kernel.newton import NewtonCG
from dualfield.solvers.kernel.tasks import SMALL
from dualfield.solvers.kernel.working_set import WorkingSet
from dualfield.solvers.needs import a_chain, losses_of_planes
from dualfield.solvers.planes.course import offered
from dualfield.solvers.planes.cutting_plane import CuttingPlane
from dualfield.solvers.primal.lbfgs import LBFGS
from dualfield.solvers.primal.relay import never_worse_than_zero, solve_in_turn
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver

__all__ = ["Auto"]

_PATIENCE = 400.0  # passes of the block dual; L-BFGS, whose gap is coarser, seldom needs more
# OWL-QN needs thousands: its bounds are far off, unless weights are so few that Newton's method ends it.
_PATIENCE_LASSO, _FEW_WEIGHTS = 4000.0, 1000
# On trees and graphs a pass of the block dual costs about two of L-BFGS, which needs some 50 to 200.
_PATIENCE_GRAPHS = 100.0
# Weights that so many nodes share are few: L-BFGS finds them at once; blocks would move them to and fro.
_SHARED = 20
# With few features flows are degenerate and swaps may crawl, while some ten planes describe the loss of all examples.
FEW_FEATURES = 1000
# On a relaxation a pass over the tables costs less than one of inference, and they wait for fewer features.
_FEW_TO_RELAX = 100
# One that takes the problem wherever this solver does.
_SPECIALISTS: tuple[Solver, ...] = (
    NewtonCG(),
    LBFGS(),
    FlowSwap(),
    LocalBlocks(),
    PathBlocks(),
    CuttingPlane(),
    KernelAscent(),
    JointOnline(),
)


@register
@dataclass(frozen=True)
class Auto(Solver):
    """The solver that suits the problem; where it stalls or is slow, another one goes on.

    - Kernel machines: Newton's method on small problems; on larger ones working sets, and Newton's method where they
      are slow or stall.
    - Log-loss of linear models: block dual ascent where it can take the problem; L-BFGS (OWL-QN for absolute values)
      where it cannot, stalls or would take hundreds of passes, thousands with many weights and absolute values. Chains
      with features of label pairs, and trees and graphs whose weights are shared by 20 nodes each, are for L-BFGS. A
      start that is worse than weights of zero is dropped, and where a fit from a start does not converge, another one
      begins without it: the result is never worse than that of a fit without a start, nor than weights of zero.
    - Hinge loss of chains, trees and graphs: swaps of mass, with few features in turns with mixtures of planes if that
      takes too long.
    - Hinge loss on a relaxation: tables of nodes and edges; with few features after cutting planes, which end where
      the points of the relaxation are not good enough for them.
    - Hinge loss of other structures: mixtures of labellings where features are many.
    - Compiled corpora: block dual ascent for the log-loss, flows of labellings for the hinge.
    - Other losses made of planes: cutting planes.
    - Structured models with a kernel, and kernels on pairs of point and label: the solver that there is.

    The choice depends on the problem and on counted work, never on the clock: the same data give the same model.

    Examples
    --------
    >>> from dualfield.solvers import Auto, StopRule, prototypes
    >>> Auto().solve(prototypes.kernel_softmax(), StopRule(1e-3)).solver
    'newton'
    >>> Auto().solve(prototypes.objective(temperature=1.0), StopRule(1e-3)).solver
    'block_dual'
    """

    name: ClassVar[str] = "auto"
    safeguarded: ClassVar[bool] = True

    def missing(self, objective: Any) -> str | None:
        """Say what an objective lacks: some solver must be able to take it.

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
        >>> from dualfield.solvers import Auto, prototypes
        >>> Auto().missing(prototypes.objective(0.0)) is None
        True
        """
        if isinstance(objective, StreamedObjective):
            return (BlockDual() if objective.temperature > 0.0 else FlowSwap()).missing(objective)
        return "No solver can take it in this form." if _specialist(objective) is None else None

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
        objective, rule, start, callbacks, random_state
            As for :meth:`Solver.solve`.

        Returns
        -------
        Solution
            The point, its gap and the course.

        Examples
        --------
        >>> from dualfield.solvers import Auto, StopRule, prototypes
        >>> Auto().solve(prototypes.custom_planes(), StopRule(1e-3)).solver
        'cutting_plane'
        """
        suited(self, objective)
        chosen = _specialist(objective)
        assert chosen is not None
        if isinstance(objective, StreamedObjective):
            if isinstance(chosen, BlockDual):
                return solve_in_turn([chosen], objective, rule, start, callbacks, random_state)
            found = chosen.solve(objective, rule, start, callbacks, random_state)
            return never_worse_than_zero(objective, found, rule.tol)
        if isinstance(chosen, NewtonCG):
            return _solve_kernel_machine(objective, rule, start, callbacks)
        if isinstance(chosen, LBFGS):
            first = BlockDual(patience=_patience(objective))
            is_primal = _is_primal(objective) or first.missing(objective, rule.tol) is not None
            turns = [chosen] if is_primal else [first, chosen]
            return solve_in_turn(turns, objective, rule, start, callbacks, random_state)
        if isinstance(chosen, FlowSwap | PathBlocks):
            if isinstance(chosen, FlowSwap) and objective.score_map.n_features <= FEW_FEATURES:
                found = solve_in_stages(objective, rule, start, Callbacks.of(callbacks), random_state or 0)
            else:
                found = chosen.solve(objective, rule, start, callbacks, random_state)
            return never_worse_than_zero(objective, found, rule.tol)
        if isinstance(chosen, CuttingPlane):
            start = offered(objective, start)
            if LocalBlocks().missing(objective) is None:
                return solve_in_turn([chosen, LocalBlocks()], objective, rule, start, callbacks, random_state)
        return chosen.solve(objective, rule, start, callbacks, random_state)


def _patience(objective: Any) -> float:
    if not objective.regulariser.l1_ratio:
        return _PATIENCE if a_chain(objective) is None else _PATIENCE_GRAPHS
    return _PATIENCE_LASSO if objective.n_parameters > _FEW_WEIGHTS else _PATIENCE


def _is_primal(objective: Any) -> bool:
    """Return whether log-losses are for L-BFGS alone, by what there is of weights and nodes."""
    if not isinstance(objective, Objective):
        return False
    if a_chain(objective) is None:
        # With features of label pairs every edge has scores of its own, and a dual point as large.
        return objective.score_map.pair is not None
    return not objective.regulariser.l1_ratio and objective.examples.nodes.n_nodes >= _SHARED * objective.n_parameters


def _specialist(objective: Any) -> Solver | None:
    """Return the first solver that suits; what does without planes is for many features, where planes would be many."""
    if isinstance(objective, StreamedObjective):
        return BlockDual() if objective.temperature > 0.0 else FlowSwap()
    for solver in _SPECIALISTS:
        if solver.missing(objective) is None:
            few = _FEW_TO_RELAX if isinstance(solver, LocalBlocks) else FEW_FEATURES
            if isinstance(solver, LocalBlocks | PathBlocks) and objective.score_map.n_features <= few:
                continue
            return solver
    return None


def works_on_planes(solver: Any, objective: Any) -> bool:
    """Return whether a solver, or the one that is chosen, works on planes: it keeps its best point, but no state."""
    chosen = _specialist(objective) if isinstance(solver, Auto) else solver
    return losses_of_planes in getattr(chosen, "needs", ())


def _solve_kernel_machine(
    objective: KernelSoftmax, rule: StopRule, start: KernelPoint | None, callbacks: Progress | None
) -> Solution[KernelPoint]:
    fits = objective.fits(4)
    if takes_newton(objective):
        return NewtonCG().solve(objective, rule, start, callbacks)
    # Recomputed rows make every product of Newton's method as dear as the whole matrix.
    patience = (100.0 if rule.tol >= 1e-4 else 300.0) if fits else np.inf
    first = WorkingSet(patience=patience).solve(objective, rule, start, callbacks)
    if first.status is not Status.TOO_SLOW and (first.status is not Status.STALLED or not fits):
        return first
    end = first.trace.end
    later = Callbacks.of(callbacks).later(end.passes, end.seconds)
    return NewtonCG().solve(objective, rule.after(first.trace), first.parameters, later).after(first)


def takes_newton(objective: KernelSoftmax) -> bool:
    """Return whether :class:`Auto` solves a problem by Newton's method from the beginning."""
    return objective.label_kernel is not None or (objective.size <= SMALL and objective.fits(12))
