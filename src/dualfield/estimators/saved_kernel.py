"""Kernel logistic regression in model files: points, coefficients and classes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dualfield.data.checks import check_label_kernel
from dualfield.estimators.saved import field
from dualfield.estimators.saved_labels import (
    class_record,
    restored_classes,
    restored_feature_names,
    save_feature_names,
)
from dualfield.persistence.file import ModelFile
from dualfield.persistence.parameters import ParameterWriter, read_csr


def saved_parts(model: Any, writer: ParameterWriter) -> dict[str, Any]:
    """Return what a fitted model consists of; arrays go to the writer."""
    arrays, labels, points = writer.arrays, class_record(model.classes_), model.points_
    arrays |= {"dual_coef": model.dual_coef_, "intercept": model.intercept_, "fit_weights": model._fit_weights}
    if sparse.issparse(points):
        kind = writer.csr("points", points)
    elif points is not None:
        arrays["points"], kind = points, "dense"
    else:
        kind = "precomputed"
    return {
        "labels": labels,
        "points": {
            "kind": kind,
            "n_points": int(model.dual_coef_.shape[1]),
            "n_features": int(model.n_features_in_),
            "names": save_feature_names(model, arrays),
            "gamma": float(model._fit_gamma),
        },
    }


def restored_parts(file: ModelFile, model: Any) -> dict[str, Any]:
    """Return the fitted attributes in a file, all but those that grow with the number of points."""
    classes = restored_classes(file)
    record = field(file, "points", dict)
    gamma = field(file, "gamma", float, record)
    if not (math.isfinite(gamma) and gamma > 0.0):
        raise file.fault(f"is altered: its gamma must be a float in (0, inf). Got {gamma!r}.")
    pinned = len(classes) == 2 and model.label_kernel is None
    if model.label_kernel is not None:
        try:
            check_label_kernel(type(model).__name__, model.label_kernel, len(classes))
        except ValueError as error:
            raise file.fault(f"is altered: {error}") from None
    intercept = np.array(file.array("intercept", np.float64, (1 if pinned else len(classes),)))
    if not (intercept < np.inf).all():
        raise file.fault("is altered: array 'intercept' must have numbers below infinity.")
    parts: dict[str, Any] = {"classes_": classes, "intercept_": intercept, "_fit_gamma": gamma}
    parts["n_features_in_"] = n_features = field(file, "n_features", int, record)
    if field(file, "names", bool, record):
        parts["feature_names_in_"] = restored_feature_names(file, n_features)
    return parts


class KernelPoints:
    """The points of a model and their coefficients, in its file."""

    names = ("points_", "dual_coef_", "_fit_weights")

    def __init__(self, file: ModelFile, n_outputs: int, is_precomputed: bool) -> None:
        self.file, self.n_outputs = file, n_outputs
        record = field(file, "points", dict)
        self.kind, self.n_points = field(file, "kind", str, record), field(file, "n_points", int, record)
        self.n_features = field(file, "n_features", int, record)
        if (self.kind == "precomputed") != is_precomputed:
            raise file.fault(f"is altered: its points are {self.kind!r:.100}, which its kernel does not take.")
        if self.n_points < 1 or self.n_features < 1:
            raise file.fault("is altered: it must have points and features.")
        self._arrays(verify=False)  # sizes and types; the arrays are left alone

    def _arrays(self, *, verify: bool = True) -> dict[str, NDArray[Any]]:
        file, shape = self.file, (self.n_points, self.n_features)
        found = {
            "dual_coef": file.array("dual_coef", np.float64, (self.n_outputs, self.n_points), verify=verify),
            "fit_weights": file.array("fit_weights", np.float64, (None,), verify=verify),
        }
        if self.kind == "dense":
            found["points"] = file.array("points", None, shape, verify=verify)
            if found["points"].dtype not in (np.float32, np.float64):
                raise file.fault(f"is altered: its points must be float32 or float64. Got {found['points'].dtype}.")
        elif self.kind in ("csr_matrix", "csr_array"):
            for part in ("data", "indices", "indptr"):
                file.array(f"points.{part}", None, (None,), verify=verify)
        elif self.kind != "precomputed":
            raise file.fault(f"is altered: its points are of an unknown kind, {self.kind!r:.100}.")
        elif self.n_features != self.n_points:
            raise file.fault("is altered: a precomputed kernel has a column for each point.")
        return found

    def whole(self) -> dict[str, Any]:
        """Return points, coefficients and weights, where they are in memory, checked."""
        found, points = self._arrays(), None
        if self.kind == "dense":
            points = found["points"]
        elif self.kind != "precomputed":
            points = read_csr(self.file, self.kind, "points", [self.n_points, self.n_features])
            if points.dtype not in (np.float32, np.float64):
                raise self.file.fault(f"is altered: its points must be float32 or float64. Got {points.dtype}.")
        numbers = {**found, "points": points.data if sparse.issparse(points) else found.get("points", np.zeros(0))}
        for name, values in numbers.items():
            if not np.isfinite(values).all():
                raise self.file.fault(f"is altered: array {name!r} must have finite numbers.")
        if (found["fit_weights"] < 0.0).any():
            raise self.file.fault("is altered: array 'fit_weights' must have weights of at least 0.")
        return {"points_": points, "dual_coef_": found["dual_coef"], "_fit_weights": found["fit_weights"]}
