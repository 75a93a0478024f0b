"""The models, with scikit-learn's manners."""

from dualfield.estimators.checkpoint import Checkpoint
from dualfield.estimators.crf import CRF
from dualfield.estimators.kernel_logistic import KernelLogisticRegression
from dualfield.estimators.loading import load

__all__ = ["CRF", "Checkpoint", "KernelLogisticRegression", "load"]
