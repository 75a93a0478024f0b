"""Node scores from a kernel in model files: points, coefficients and kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from dualfield.estimators.saved import field
from dualfield.kernels import Kernel
from dualfield.kernels.kernel import KERNEL_NAMES
from dualfield.persistence.file import ModelFile
from dualfield.persistence.parameters import ParameterWriter, read_csr
from dualfield.scores import Expansion


def saved_expansion(expansion: Expansion | None, writer: ParameterWriter) -> dict[str, Any] | None:
    """Return the metadata; arrays go to the writer."""
    if expansion is None:
        return None
    points, kernel = expansion.points, expansion.kernel
    writer.arrays["expansion.coefficients"] = expansion.coefficients
    kind = "dense"
    if sparse.issparse(points):
        kind = writer.csr("expansion.points", points)
    else:
        writer.arrays["expansion.points"] = points
    return {
        "kernel": str(kernel.function),
        "gamma": float(kernel.gamma),
        "coef0": float(kernel.coef0),
        "degree": float(kernel.degree),
        "points": kind,
        "n_points": int(points.shape[0]),
        "n_columns": expansion.n_columns,
    }


def expansion_record(file: ModelFile) -> dict[str, Any] | None:
    """Return the record of the node scores in a file; None: they are weights of columns."""
    record: dict[str, Any] | None = field(file, "expansion", (dict, type(None)))
    return record


def restored_expansion(file: ModelFile, n_labels: int) -> Expansion | None:
    """Return the node scores in a file, checked."""
    record = expansion_record(file)
    if record is None:
        return None
    name, kind = field(file, "kernel", str, record), field(file, "points", str, record)
    if name not in KERNEL_NAMES or name == "precomputed":
        raise file.fault(f"is altered: it has no kernel {name!r:.100}.")
    numbers = [field(file, part, float, record) for part in ("gamma", "coef0", "degree")]
    if not all(map(math.isfinite, numbers)) or numbers[0] <= 0.0:
        raise file.fault(f"is altered: the parameters of its kernel are {numbers}.")
    shape = [field(file, part, int, record) for part in ("n_points", "n_columns")]
    if min(shape) < 0:
        raise file.fault(f"is altered: it has points of shape {shape}.")
    coefficients = file.array("expansion.coefficients", np.float64, (shape[0], n_labels))
    if kind == "dense":
        points = file.array("expansion.points", None, tuple(shape))
        values = points
    elif kind in ("csr_array", "csr_matrix"):
        points = read_csr(file, kind, "expansion.points", shape)
        values = points.data
    else:
        raise file.fault(f"is altered: its points are of an unknown kind, {kind!r:.100}.")
    if values.dtype not in (np.float32, np.float64) or not np.isfinite(values).all():
        raise file.fault("is altered: its points must be finite numbers of type float32 or float64.")
    if not np.isfinite(coefficients).all():
        raise file.fault("is altered: array 'expansion.coefficients' must have finite numbers.")
    return Expansion(Kernel(name, *numbers), points, coefficients)
