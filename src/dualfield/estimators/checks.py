"""Parameters that several estimators have: checks, and the solvers that they name."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from dualfield.data import Labels
from dualfield.data.arrays import Floats, Ints
from dualfield.data.checks import check_choice, check_flag, check_integer, check_number
from dualfield.data.partial_labels import PartialLabels
from dualfield.features import Template
from dualfield.kernels.gamma import check_kernel
from dualfield.kernels.kernel import KERNEL_NAMES
from dualfield.kernels.landmarks import check_landmarks
from dualfield.solvers import Simplicial, StopRule, prototypes, solver_classes, solver_names
from dualfield.solvers.registry import pick_solver

_KERNELS = tuple(name for name in KERNEL_NAMES if name != "precomputed")


def _has_attributes(X: Any) -> bool:
    """Whether single nodes come with attributes, and not as the rows of a matrix."""
    first = None if hasattr(X, "shape") or not isinstance(X, (list, tuple)) or not X else X[0]
    return isinstance(first, (str, dict)) or (
        isinstance(first, (list, tuple)) and bool(first) and isinstance(first[0], str)
    )


def matrix_rows(model: Any, X: Any, *, reset: bool) -> Any:
    """Return the rows of a matrix as scikit-learn reads them; single nodes with attributes are left as they are."""
    return X if _has_attributes(X) else validate_data(model, X, accept_sparse="csr", dtype=np.float64, reset=reset)


def matrix_and_classes(model: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return rows of a matrix and their classes as scikit-learn reads them."""
    if _has_attributes(X):
        return X, y
    rows, targets = validate_data(model, X, y, accept_sparse="csr", dtype=np.float64)
    check_classification_targets(targets)
    classes, codes = np.unique(targets, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have at least two classes. Got one class: {classes[0]!r}.")
    kind: Any = {"U": "str", "S": "str", "O": "str", "b": "bool"}.get(classes.dtype.kind, "int")
    return rows, PartialLabels(Labels(classes, kind, True), codes.astype(np.int32), None)


def check_structured(model: Any) -> None:
    """Raise unless the parameters that all estimators of dependent labels have make sense."""
    owner = type(model).__name__
    check_choice(owner, "kernel_on", model.kernel_on, ("nodes", "pairs", "both"))
    given = {
        "kernel_approx": model.kernel_approx is not None,
        "transition_scale": model.transition_scale != 1.0,
        "kernel_on": model.kernel_on != "nodes",
    }
    for name, is_given in given.items():
        if model.kernel is None and is_given:
            raise ValueError(f"The {name!r} parameter of {owner} needs a kernel.")
    if model.pair_gamma is not None and model.kernel_on == "nodes":
        raise ValueError(f"The 'pair_gamma' parameter of {owner} needs kernel_on='pairs' or 'both'.")
    check_choice(owner, "features", model.features, ("observed", "all"))
    check_integer(owner, "min_freq", model.min_freq, 0)
    if model.features == "all" and model.min_freq > 0:
        raise ValueError(
            f"The 'min_freq' parameter of {owner} must be 0 with features='all', which gives every attribute a "
            f"weight for every label, however rare. Got {model.min_freq!r}. Use features='observed', or min_freq=0."
        )
    check_flag(owner, "start_stop", model.start_stop)
    check_flag(owner, "warm_start", model.warm_start)
    check_number(owner, "tol", model.tol, 0.0, open_low=True)
    check_integer(owner, "max_iter", model.max_iter, 1, or_none=True)
    check_integer(owner, "verbose", model.verbose, 0)
    if model.template is not None and not isinstance(model.template, (str, Template)):
        raise ValueError(
            f"The 'template' parameter of {owner} must be None, a Template or its text. Got {model.template!r} instead."
        )


def check_structured_kernel(model: Any, temperature: float) -> Any:
    """Raise unless the parameters of a model with a kernel make sense together; return its solver."""
    owner = type(model).__name__
    check_kernel(owner, model, _KERNELS)
    check_landmarks(owner, model.kernel_approx)
    if model.kernel_approx is not None and model.kernel_on != "nodes":
        raise ValueError(
            f"The 'kernel_approx' parameter of {owner} must be None with kernel_on={model.kernel_on!r}: landmarks are "
            "nodes, not pairs of them."
        )
    check_number(owner, "cache_size", model.cache_size, 0.0)
    check_number(owner, "transition_scale", model.transition_scale, 0.0, open_low=True)
    for name, plain in (("l1_ratio", 0.0), ("pair_features", False), ("min_freq", 0), ("positive", None)):
        value = getattr(model, name, plain)
        if value is not plain and value != plain:
            raise ValueError(f"The {name!r} parameter of {owner} is for features, and a kernel has none to list.")
    if getattr(model, "rescaling", "margin") != "margin":
        raise ValueError(f"The 'rescaling' parameter of {owner} must be 'margin' with a kernel.")
    return pick_solver(owner, model.solver, prototypes.kernel_objective(temperature))


def table_solver(model: Any) -> Any:
    """Check the parameters of training, and return the solver; one given by name has the settings of the model."""
    owner = type(model).__name__
    check_number(owner, "eta", model.eta, 0.0)
    check_number(owner, "floor", model.floor, 0.0, open_low=True)
    if model.floor >= 1.0:
        raise ValueError(f"The 'floor' parameter of {owner} must be a float in (0, 1). Got {model.floor!r} instead.")
    check_number(owner, "tol", model.tol, 0.0, open_low=True)
    check_integer(owner, "max_iter", model.max_iter, 1, or_none=True)
    check_integer(owner, "max_columns", model.max_columns, 1)
    if not isinstance(model.n_blocks, str) or model.n_blocks != "auto":
        check_integer(owner, "n_blocks", model.n_blocks, 1)
    check_flag(owner, "warm_start", model.warm_start)
    check_integer(owner, "verbose", model.verbose, 0)
    if hasattr(model.solver, "missing") and model.solver.missing(prototypes.tables()) is None:
        return model.solver
    names = tuple(solver_names(prototypes.tables()))
    check_choice(owner, "solver", model.solver, names, "a solver object that takes a regulariser")
    chosen = solver_classes()[model.solver]
    return Simplicial(model.n_blocks, int(model.max_columns)) if chosen is Simplicial else chosen()


def check_floor(model: Any, reference: Floats, rows: Ints) -> None:
    """Raise unless the floor leaves room in every row (-1: no row), and where there are margins the reference is above.

    The reference is the start of the training, which must obey the floor.
    """
    owner, inside = type(model).__name__, rows >= 0
    longest = int(np.bincount(rows[inside]).max())
    if float(model.floor) * longest >= 1.0:
        raise ValueError(
            f"The 'floor' parameter of {owner} must be below 1 / {longest}: a row has {longest} entries. "
            f"Got {model.floor!r} instead."
        )
    if float(model.eta) == 0.0:
        return
    sums = np.bincount(rows[inside], reference[inside])
    least = float((reference[inside] / sums[rows[inside]]).min())
    if least < float(model.floor):
        name, remedy = ("smoothing", "Raise smoothing") if isinstance(model.prior, str) else ("prior", "Change it")
        raise ValueError(
            f"The {name!r} parameter of {owner} must leave no entry of the reference below floor={model.floor!r} of "
            f"the sum of its row. Got one of {least:.3g}. {remedy}, or lower floor."
        )


def table_rule(model: Any) -> StopRule:
    """Return when training stops."""
    return StopRule.of(None, model.tol, model.max_iter)
