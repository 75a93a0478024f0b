"""Hinge losses on partitions: the planes of a partition are added up where it is, and it has one slack."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from dualfield.data.arrays import Floats
from dualfield.objectives.part_problem import PartProblem
from dualfield.objectives.partitioned import PartitionedObjective
from dualfield.objectives.planes import PlaneProblem, Planes
from dualfield.regularisers import Regulariser


class PartitionPlanes(PlaneProblem):
    """The same problem in the eyes of cutting planes: each partition is an example, whose plane is a sum of planes.

    Parameters
    ----------
    objective : PartitionedObjective
        At T = 0.
    """

    temperature = 0.0
    convex = True

    def __init__(self, objective: PartitionedObjective) -> None:
        self._objective = objective

    @property
    def n_examples(self) -> int:
        """Number of partitions."""
        return len(self._objective.parts)

    @property
    def n_parameters(self) -> int:
        """Length of w."""
        return self._objective.n_parameters

    @property
    def weights(self) -> Floats:
        """Ones: planes have the weights of their examples already."""
        return np.ones(self.n_examples)

    @property
    def regulariser(self) -> Regulariser:
        """R of the formula."""
        return self._objective.regulariser

    def planes(self, w: Floats, examples: Any = None) -> Planes:
        """Return the plane of each partition that reaches its losses at w.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.
        examples : int array, default=None
            Which partitions; None: all. All are asked in either case.

        Returns
        -------
        Planes
            One for each.
        """
        objective = self._objective
        objective.n_rounds += 1
        handles = objective.engine.map(PartProblem.evaluate, objective.parts, objective.travelling(w))
        losses, slopes = np.zeros(self.n_examples), np.zeros((self.n_examples, self.n_parameters))
        for at, (loss, _, _, gradient) in enumerate(objective.engine.in_order(handles)):
            losses[at], slopes[at] = loss, objective.whole(gradient)
        objective.engine.release(handles)
        chosen = np.arange(self.n_examples) if examples is None else np.asarray(examples, dtype=np.int64)
        offsets = losses - slopes @ w
        keys = [slopes[at].tobytes() for at in chosen]
        return Planes(chosen, offsets[chosen], scipy.sparse.csr_array(slopes[chosen]), keys)
