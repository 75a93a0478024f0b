"""Objectives: a model's formula bound to data and C. All that a solver sees."""

from dualfield.objectives.chain_loss import ChainLoss
from dualfield.objectives.kernel_softmax import KernelSoftmax

__all__ = ["ChainLoss", "KernelSoftmax"]
