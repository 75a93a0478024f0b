"""Objectives: a model's formula bound to data and C. All that a solver sees."""

from dualfield.objectives.chain_loss import ChainLoss
from dualfield.objectives.kernel_chain import KernelChain
from dualfield.objectives.kernel_margin import KernelMargin
from dualfield.objectives.kernel_softmax import KernelSoftmax
from dualfield.objectives.planes import PlaneProblem, Planes
from dualfield.objectives.planes_chain import ChainPlanes
from dualfield.objectives.planes_custom import CustomPlanes
from dualfield.objectives.planes_network import NetworkPlanes
from dualfield.regularisers.base import Interior, Regulariser, Response
from dualfield.regularisers.squared_norm import SquaredNorm
from dualfield.regularisers.table_divergence import TableDivergence

__all__ = [
    "ChainLoss",
    "ChainPlanes",
    "CustomPlanes",
    "Interior",
    "KernelChain",
    "KernelMargin",
    "KernelSoftmax",
    "NetworkPlanes",
    "PlaneProblem",
    "Planes",
    "Regulariser",
    "Response",
    "SquaredNorm",
    "TableDivergence",
]
