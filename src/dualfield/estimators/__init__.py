"""The models, with scikit-learn's manners."""

from dualfield.estimators.kernel_logistic import KernelLogisticRegression

__all__ = ["KernelLogisticRegression"]
