"""Where a descent on partitions may begin: at the average of what each partition finds on its own."""

from __future__ import annotations

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.objectives import PartitionedObjective
from dualfield.objectives.part_problem import PartProblem
from dualfield.objectives.touched import TouchedValues
from dualfield.solvers.base import StopRule
from dualfield.solvers.dual.block_dual import BlockDual

__all__ = ["averaged_start"]

_PASSES = 5


def averaged_start(objective: PartitionedObjective, seed: int = 0, n_passes: int = _PASSES) -> Floats | None:
    """Let each partition make some passes of block dual ascent on its own examples, and average the weights.

    A weight is averaged over the partitions that have its feature: others know nothing of it. It takes one exchange.

    Parameters
    ----------
    objective : PartitionedObjective
        With half the squared norm as penalty.
    seed : int, default=0
        Of the order of examples.
    n_passes : int, default=5
        Passes of each partition.

    Returns
    -------
    array of shape (n_parameters,) or None
        The average; None if it is worse than weights of zero.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.engines import Serial
    >>> from dualfield.objectives import PartitionedObjective
    >>> from dualfield.objectives.part_problem import PartProblem
    >>> from dualfield.solvers import prototypes
    >>> from dualfield.solvers.primal.averaged_start import averaged_start
    >>> whole = prototypes.objective(temperature=1.0)
    >>> n = whole.score_map.used_places.size
    >>> part = PartProblem(
    ...     examples=whole.examples,
    ...     score_map=whole.score_map,
    ...     loss=whole.loss,
    ...     places=np.arange(n, dtype=np.int32),
    ...     size=n,
    ... )
    >>> engine = Serial()
    >>> twice = PartitionedObjective(engine, engine.map(lambda one: one, [part, part]), whole.score_map)
    >>> start = averaged_start(twice)
    >>> twice.value(start) < twice.value(np.zeros_like(start))
    True
    """
    weights, counts = (objective.whole(one) for one in objective.sum_of(_fitted, n_passes, seed))
    start = weights / np.maximum(counts, 1.0)
    return start if objective.value(start) <= objective.value(np.zeros_like(start)) else None


def _fitted(part: PartProblem, n_passes: int, seed: int) -> tuple[TouchedValues, TouchedValues]:
    """Return the weights that a partition finds on its own, and a one for each."""
    weights = np.zeros(part.score_map.n_parameters)
    if not part.is_empty:
        rule = StopRule(1e-12, float(n_passes))
        weights = BlockDual(memory=np.inf).solve(part.objective, rule, None, None, seed).parameters
    return part.at_model(weights), part.at_model(np.ones_like(weights))
