"""Dual ascent on a compiled corpus: sentences are read, visited and written back block by block."""

from __future__ import annotations

from typing import Any

from dualfield import _native
from dualfield.data.arrays import Floats
from dualfield.objectives import StreamedObjective
from dualfield.objectives.streamed import refused_blocks
from dualfield.solvers.base import Solution, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.dual.native_solution import native_solution

# Vectors as long as w: with squares alone, with absolute values, and for the hinge, which keeps means and the best.
_VECTORS, _VECTORS_NET, _VECTORS_HINGE = 2, 8, 4
_ENDLESS = 1e300


def solve_streamed(
    objective: StreamedObjective, rule: StopRule, start: Floats | None, callbacks: Callbacks, seed: int, solver: Any
) -> Solution[Floats]:
    """Minimise log-losses by the block dual, and hinge losses by flows."""
    ratio, is_hinge = objective.regulariser.l1_ratio or 0.0, objective.temperature == 0.0
    fixed = objective.fixed_bytes(_VECTORS_HINGE if is_hinge else _VECTORS_NET if ratio > 0.0 else _VECTORS)
    native = _native.solve_streamed_hinge if is_hinge else _native.solve_streamed_dual
    with refused_blocks():
        result: Any = native(
            objective.native,
            start,
            rule.tol,
            rule.max_passes,
            seed,
            objective.n_threads,
            min(getattr(solver, "patience", _ENDLESS), _ENDLESS),
            ratio,
            int(objective.storage.memory),
            fixed,
            objective.folder,
            objective.storage.path or "",
            callbacks,
        )
    return native_solution(result, solver.name)
