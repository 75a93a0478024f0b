"""The models, with scikit-learn's manners."""

from dualfield.estimators.crf import CRF
from dualfield.estimators.kernel_logistic import KernelLogisticRegression

__all__ = ["CRF", "KernelLogisticRegression"]
