"""One type of clique of a conditional graphical model, in a model file: label tuples, kernel, points, coefficients."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.estimators.graphical_problems import CliqueModel
from dualfield.estimators.graphical_scores import SummedKernel
from dualfield.estimators.saved import field
from dualfield.kernels import Kernel
from dualfield.kernels.kernel import KERNEL_NAMES
from dualfield.persistence.file import ModelFile
from dualfield.persistence.parameters import ParameterWriter, read_csr
from dualfield.solvers import Status


def n_states(model: Any) -> int:
    """Return the number of labels, that of blank nodes included."""
    return len(model.labels_) + int(model._is_chain and any(model._of_fit("padding")))


def _check_type(model: Any, size: Any, key: Any) -> None:
    """Raise an error unless a clique of the graph can be of a type."""
    largest = model.graph_ + 1 if model._is_chain else max(map(len, model.graph_))
    if type(size) is not int or not 1 <= size <= largest:
        raise ValueError(f"a clique must have 1 to {largest} nodes. Got {size!r:.100}.")
    if model._tying == "shared":
        good = type(key) is str and key == "shared"
    elif model._is_chain:
        good = type(key) is int and 0 <= key < 2**31
    else:
        good = type(key) is tuple and len(key) == len(set(key)) == size
        good = good and all(type(node) is int and 0 <= node < model.n_nodes_ for node in key)
    if not good:
        raise ValueError(f"tying={model._tying!r:.100} gives no clique of {size} nodes the key {key!r:.100}.")


def saved_model(owner: Any, writer: ParameterWriter, at: int, model: CliqueModel) -> dict[str, Any]:
    """Return the metadata of one type; arrays go to the writer."""
    name, kind = f"models.{at}", None
    _check_type(owner, model.size, model.key)
    if model.estimator is not None:
        raise ValueError("it was fitted with a base_estimator, which is code.")
    _check_tuples(model.tuples, n_states(owner))
    writer.arrays[f"{name}.tuples"] = model.tuples
    if model.coefficients is not None:
        shapes = model.coefficients.shape[1], model.points.shape[1]
        if shapes != (_n_outputs(owner, model.size, len(model.tuples)), _width(owner, model.size, model.kernel)):
            raise ValueError("its 'features' or 'padding' are not those that it was fitted with.")
        if not np.isfinite(model.coefficients).all():
            raise ValueError("it has coefficients that are not finite.")
        writer.arrays[f"{name}.coefficients"] = model.coefficients
        if isinstance(model.points, np.ndarray):
            writer.arrays[f"{name}.points"], kind = model.points, "dense"
        else:
            ordered = model.points.copy()
            ordered.sum_duplicates()
            kind = writer.csr(f"{name}.points", ordered)
    return {
        "size": model.size,
        "key": list(model.key) if isinstance(model.key, tuple) else model.key,
        "n_cliques": int(model.n_cliques),
        "kernel": _kernel_record(model.kernel),
        "points": kind,
        "objective": float(model.objective),
        "gap": float(model.dual_gap),
        "n_iter": int(model.n_iter),
        "status": None if model.status is None else model.status.value,
    }


def _kernel_record(kernel: Kernel | None) -> dict[str, Any] | None:
    if kernel is None:
        return None
    summed = isinstance(kernel.function, SummedKernel)
    inner: Kernel = kernel.function.kernel if isinstance(kernel.function, SummedKernel) else kernel
    if callable(inner.function):
        raise ValueError("it was fitted with a kernel of your own, which is code.")
    numbers = {"gamma": float(inner.gamma), "coef0": float(inner.coef0), "degree": float(inner.degree)}
    return {"function": inner.function, **numbers, "summed": summed}


def _check_tuples(tuples: NDArray[np.int32], states: int) -> None:
    if not len(tuples) or tuples.min() < 0 or tuples.max() >= states:
        raise ValueError(f"label tuples must have codes in [0, {states}), and there must be one.")
    if len(tuples) > 1:
        # Rows in order and distinct: the first difference to the row before is a rise.
        steps = np.diff(tuples.astype(np.int64), axis=0)
        first = np.take_along_axis(steps, (steps != 0).argmax(axis=1)[:, None], axis=1)
        if (first <= 0).any():
            raise ValueError("label tuples must be distinct and in order.")


def _n_outputs(owner: Any, size: int, n_tuples: int) -> int:
    """Return the columns that the coefficients of a type have."""
    return size * n_states(owner) if owner._of_fit("features") == "tied" else n_tuples


def _width(owner: Any, size: int, kernel: Kernel | None) -> int:
    """Return the columns that the points of a type have: a row for each node, or one where all share it."""
    is_summed = kernel is not None and isinstance(kernel.function, SummedKernel)
    once = owner._of_fit("features") == "tied" or (not owner._is_chain and owner._is_shared_input and not is_summed)
    return int(owner.n_features_in_) * (1 if once else size)


class StoredModels:
    """The models of all types of cliques, in a file."""

    names = ("clique_models_",)

    def __init__(self, owner: Any, file: ModelFile) -> None:
        records = field(file, "models", list)
        if not all(isinstance(record, dict) for record in records) or not records:
            raise file.fault("is altered: it must have a model for each type of clique.")
        self.parts = [_StoredModel(owner, file, at, record) for at, record in enumerate(records)]
        if len({(part.size, part.key) for part in self.parts}) < len(records):
            raise file.fault("is altered: it has two models for one type of clique.")

    def whole(self) -> dict[str, Any]:
        """Return all models, checked."""
        return {"clique_models_": {(part.size, part.key): part.whole() for part in self.parts}}


class _StoredModel:
    """The model of one type: its metadata, checked at once, and its arrays."""

    def __init__(self, owner: Any, file: ModelFile, at: int, record: dict[str, Any]) -> None:
        self.file, self.name, self.states = file, f"models.{at}", n_states(owner)
        self.size, key = field(file, "size", int, record), field(file, "key", (str, int, list), record)
        try:
            self.key: Hashable = tuple(key) if isinstance(key, list) else key
            _check_type(owner, self.size, self.key)
        except (TypeError, ValueError) as error:
            raise file.fault(f"is altered: {error}") from None
        self.n_cliques, self.n_iter = field(file, "n_cliques", int, record), field(file, "n_iter", int, record)
        self.objective, self.dual_gap = field(file, "objective", float, record), field(file, "gap", float, record)
        self.status, self.kind = restored_status(file, record), field(file, "points", (str, type(None)), record)
        kernel = field(file, "kernel", (dict, type(None)), record)
        if (kernel is None) != (self.kind is None):
            raise file.fault("is altered: a kernel needs points, and points need a kernel.")
        self.kernel = None if kernel is None else _restored_kernel(file, kernel, self.size)
        self.width = _width(owner, self.size, self.kernel)
        n_tuples = next(iter(file.shape(f"{self.name}.tuples")), 0)
        self.n_outputs = _n_outputs(owner, self.size, n_tuples)
        self._arrays(verify=False)  # sizes and types; the arrays are left alone

    def _arrays(self, *, verify: bool = True) -> tuple[NDArray[np.int32], NDArray[Any] | None, NDArray[Any] | None]:
        file, name = self.file, self.name
        tuples = file.array(f"{name}.tuples", np.int32, (None, self.size), verify=verify)
        if self.kind is None:
            return tuples, None, None
        coefficients = file.array(f"{name}.coefficients", np.float64, (None, self.n_outputs), verify=verify)
        points = None
        if self.kind == "dense":
            points = file.array(f"{name}.points", None, (len(coefficients), self.width), verify=verify)
        elif self.kind in ("csr_array", "csr_matrix"):
            for part in ("data", "indices", "indptr"):
                file.array(f"{name}.points.{part}", None, (None,), verify=verify)
        else:
            raise file.fault(f"is altered: its points are of an unknown kind, {self.kind!r:.100}.")
        return tuples, coefficients, points

    def whole(self) -> CliqueModel:
        tuples, coefficients, points = self._arrays()
        try:
            _check_tuples(tuples, self.states)
        except ValueError as error:
            raise self.file.fault(f"is altered: {error}") from None
        if self.kind is not None and coefficients is not None:
            where = f"{self.name}.points"
            matrix: Any = points
            if points is None:
                matrix = read_csr(self.file, self.kind, where, [len(coefficients), self.width])
                if not matrix.has_canonical_format:  # SciPy would put it in order, in the file
                    raise self.file.fault(f"is altered: the rows of matrix {where!r} must have their columns in order.")
            if matrix.dtype not in (np.float32, np.float64):
                raise self.file.fault(f"is altered: array {where!r} must be float32 or float64. Got {matrix.dtype}.")
            numbers = {where: matrix.data if points is None else matrix, f"{self.name}.coefficients": coefficients}
            for name, values in numbers.items():
                if not np.isfinite(values).all():
                    raise self.file.fault(f"is altered: array {name!r} must have finite numbers.")
            points = matrix
        return CliqueModel(
            self.size,
            self.key,
            tuples,
            self.n_cliques,
            self.kernel,
            points,
            coefficients,
            None,
            self.objective,
            self.dual_gap,
            self.n_iter,
            self.status,
        )


def _restored_kernel(file: ModelFile, record: dict[str, Any], size: int) -> Kernel:
    function = field(file, "function", str, record)
    gamma, coef0, degree = (field(file, name, float, record) for name in ("gamma", "coef0", "degree"))
    named = function in KERNEL_NAMES and function != "precomputed"
    if not (named and math.isfinite(gamma) and gamma > 0 and math.isfinite(coef0) and 0 <= degree < math.inf):
        raise file.fault(
            f"is altered: it has no kernel {function!r:.100} with gamma={gamma}, coef0={coef0}, {degree=}."
        )
    kernel = Kernel(function, gamma, coef0, degree)
    return Kernel(SummedKernel(kernel, size)) if field(file, "summed", bool, record) else kernel


def restored_status(file: ModelFile, record: dict[str, Any]) -> Status:
    """Return how a solver ended."""
    status = field(file, "status", str, record)
    if status not in [known.value for known in Status]:
        raise file.fault(f"is altered: its status is {status!r:.100}.")
    return Status(status)
