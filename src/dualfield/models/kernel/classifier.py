"""Classes by an expansion in kernel functions: what a kernel logistic regression has found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax

from dualfield.data.arrays import Floats
from dualfield.data.checks import check_label_kernel
from dualfield.data.records import Fields, Record
from dualfield.data.value_records import read_classes, values_record
from dualfield.models.temperature_scaling import Calibration, HeldOut, held_out_rows
from dualfield.scores import Expansion
from dualfield.solvers.kernel.joint import joint_scores


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelClassifier:
    """Scores of classes, s(x) = Σ_j B_j k(x_j, x) T + b, and the softmax over them.

    Parameters
    ----------
    expansion : Expansion
        Kernel, points x_j and coefficients B, of shape (n_points, n_outputs): one output for two classes, which is the
        score of the second against the first, else one for each class.
    bias : array of shape (n_outputs,)
        b; −inf for a class that never occurs.
    classes : array of shape (n_classes,)
        The labels, sorted.
    label_kernel : array of shape (n_classes, n_classes) or callable, default=None
        T; None: the identity. A function of two pairs of point and label takes the place of the kernel.
    point_weights : array of shape (n,)
        Of the points that it was fitted to: another fit begins at the same dual point for other weights.
    calibration : Calibration, default=None
        The temperature by which scores are divided before they become probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels import Kernel
    >>> from dualfield.models.kernel.classifier import KernelClassifier
    >>> from dualfield.scores import Expansion
    >>> expansion = Expansion(Kernel("linear"), np.array([[1.0]]), np.array([[2.0]]))
    >>> model = KernelClassifier(
    ...     expansion=expansion, bias=np.zeros(1), classes=np.array(["no", "yes"]), point_weights=np.ones(1)
    ... )
    >>> model.predict(np.array([[-1.0], [3.0]]))
    array(['no', 'yes'], dtype='<U3')
    """

    expansion: Expansion
    bias: Floats
    classes: NDArray[Any]
    label_kernel: Floats | Callable[..., float] | None = None
    point_weights: Floats
    calibration: Calibration | None = None

    @property
    def dual_coef(self) -> Floats:
        """Coefficients, a row for each output."""
        return self.expansion.coefficients.T

    @property
    def points(self) -> Any:
        """The points of the expansion."""
        return self.expansion.points

    def decision_function(self, X: Any, n_threads: int = 1) -> Floats:
        """Return scores: of the second class against the first with two classes, else of every class."""
        expansion, label_kernel = self.expansion, self.label_kernel
        if callable(label_kernel):
            scores = joint_scores(label_kernel, X, np.asarray(self.points), self.classes, expansion.coefficients)
        else:
            scores = expansion.kernel.scores(X, self.points, expansion.coefficients, n_threads)
            if label_kernel is not None:
                scores = scores @ label_kernel
        scores = scores + self.bias
        if len(self.classes) > 2:
            return np.asarray(scores)
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0])

    def predict_log_proba(self, X: Any, n_threads: int = 1) -> Floats:
        """Return the logarithms of probabilities."""
        scores = self.decision_function(X, n_threads)
        if self.calibration is not None:
            scores = scores / self.calibration.temperature
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))

    def calibrated(self, calibration: Calibration | None) -> Self:
        """Return the same model with another temperature of its probabilities; None: that of the fit."""
        return replace(self, calibration=calibration)

    def held_out(self, X: Any, y: Any, n_threads: int = 1) -> HeldOut:
        """Return the scores of points that it was not fitted to, with their classes."""
        scores = self.decision_function(X, n_threads)
        node = np.column_stack([np.zeros_like(scores), scores]) if scores.ndim == 1 else scores
        return held_out_rows(self.classes, node, y)

    def predict(self, X: Any, n_threads: int = 1) -> NDArray[Any]:
        """Return the most probable class of each point."""
        scores = self.decision_function(X, n_threads)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes[codes])

    def record(self) -> Fields:
        """Return what the model consists of."""
        if callable(self.label_kernel):
            raise ValueError("The model cannot be saved: its label kernel is user-defined, which is code.")
        return {
            "labels": values_record(self.classes),
            "expansion": self.expansion.record(),
            "bias": self.bias,
            "label_kernel": self.label_kernel,
            "point_weights": self.point_weights,
            "calibration": None if self.calibration is None else self.calibration.record(),
        }

    @classmethod
    def from_record(cls, record: Record) -> KernelClassifier:
        """Make a model of its record, which is checked; in a mapped file numbers are checked at their first use."""
        classes = read_classes(record.child("labels"), least=2)
        n, label_kernel = len(classes), None
        if record.has("label_kernel"):
            label_kernel = check_label_kernel(cls.__name__, record.array("label_kernel", np.float64), n)
        n_outputs = 1 if n == 2 and label_kernel is None else n
        bias = np.array(record.array("bias", np.float64, (n_outputs,)))
        record.check(bool((bias < np.inf).all()), f"array {record.place('bias')!r} must have numbers below infinity.")
        weights = record.array("point_weights", np.float64, (None,), finite=True, check="later")

        def check_weights() -> None:
            what = f"array {record.place('point_weights')!r} must have weights of at least 0."
            record.check(not (weights < 0.0).any(), what)

        record.source.later(check_weights)
        return cls(
            expansion=Expansion.from_record(record.child("expansion"), n_outputs),
            bias=bias,
            classes=classes,
            label_kernel=label_kernel,
            point_weights=weights,
            calibration=Calibration.from_record(record.child("calibration")) if record.has("calibration") else None,
        )
