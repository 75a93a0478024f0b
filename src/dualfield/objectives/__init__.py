"""Objectives: a model's formula bound to data and C. All that a solver sees."""

from dualfield.objectives.chain_loss import ChainLoss
from dualfield.objectives.kernel_chain import KernelChain
from dualfield.objectives.kernel_margin import KernelMargin
from dualfield.objectives.kernel_softmax import KernelSoftmax
from dualfield.objectives.planes import PlaneProblem, Planes
from dualfield.objectives.planes_chain import ChainPlanes
from dualfield.objectives.planes_custom import CustomPlanes

__all__ = [
    "ChainLoss",
    "ChainPlanes",
    "CustomPlanes",
    "KernelChain",
    "KernelMargin",
    "KernelSoftmax",
    "PlaneProblem",
    "Planes",
]
