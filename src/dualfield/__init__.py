"""Structured prediction with honest probabilities and a proof of optimality."""

from dualfield.estimators import CRF, KernelLogisticRegression

__version__ = "0.1.0.dev0"
__all__ = ["CRF", "KernelLogisticRegression"]
