"""Objectives: a model's formula bound to data and C. All that a solver sees."""

from dualfield.objectives.examples import Examples
from dualfield.objectives.kernel_margin import KernelMargin
from dualfield.objectives.kernel_objective import KernelObjective
from dualfield.objectives.kernel_softmax import KernelSoftmax
from dualfield.objectives.objective import Objective
from dualfield.objectives.partitioned import PartitionedObjective
from dualfield.objectives.planes import PlaneProblem, Planes
from dualfield.objectives.planes_custom import CustomPlanes
from dualfield.objectives.planes_network import NetworkPlanes
from dualfield.objectives.streamed import CorpusWeights, StreamedObjective, StreamedStorage

__all__ = [
    "CorpusWeights",
    "CustomPlanes",
    "Examples",
    "KernelMargin",
    "KernelObjective",
    "KernelSoftmax",
    "NetworkPlanes",
    "Objective",
    "PartitionedObjective",
    "PlaneProblem",
    "Planes",
    "StreamedObjective",
    "StreamedStorage",
]
