"""Input of conditional graphical models: sequences of numbers, and tables of fixed size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from dualfield.data.batch import Batch
from dualfield.data.labels import Labels


def read_sequences(X: Any, lengths: ArrayLike | None, n_columns: int | None) -> tuple[Any, NDArray[np.int64]]:
    """Return the rows of all nodes as one matrix, dense or sparse, and the number of nodes of each sequence."""
    batch = Batch.build(X, lengths=lengths, n_columns=n_columns)
    if batch.vocabulary is not None and batch.n_examples == 0:  # an empty list has no type of its own
        raise ValueError("X must have at least one sequence. Got none.")
    return number_rows(batch, "X"), batch.lengths


def number_rows(batch: Batch, name: str) -> Any:
    """Return the rows of a batch as one matrix, dense or sparse, or raise an error that calls it by a name."""
    if batch.vocabulary is not None:
        raise TypeError(f"{name} must be numbers, which kernels compare. Got attributes instead.")
    return batch.to_csr() if batch.dense is None else batch.dense


def check_no_table(X: Any, y: Any, lengths: ArrayLike | None, graph: Any) -> None:
    """Raise where a graph of sequences is given a matrix, and a row of labels for each row of it."""
    sizes: list[tuple[int, ...]] = [np.shape(one) if hasattr(one, "shape") else () for one in (X, as_table(y))]
    if lengths is None and len(sizes[0]) == len(sizes[1]) == 2 and sizes[0][0] == sizes[1][0] and sizes[1][1] > 1:
        nodes = ", ".join(f"({node},)" for node in range(min(sizes[1][1], 3)))
        more = ", ..." if sizes[1][1] > 3 else ""
        raise ValueError(
            f"graph={graph!r} is for sequences, but y has shape {sizes[1]}, several labels for each row of X. Use "
            f"graph='tree', or a list of cliques such as [{nodes}{more}] for labels without a connection."
        )


def read_fixed(model: Any, X: Any, lengths: ArrayLike | None, *, reset: bool) -> tuple[Any, int, int | None]:
    """Return rows of input, the number of examples, and that of their nodes; None where these share one row.

    Rows are compared with those of training, or with `reset` kept in mind as those of training.
    """
    if lengths is not None:
        raise ValueError("lengths must be None with a graph of fixed size: every example has the same nodes.")
    settings = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
    if (X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim) != 3:
        array = validate_data(model, X, reset=reset, **settings)
        rows: Any = np.ascontiguousarray(array) if isinstance(array, np.ndarray) else sparse.csr_array(array)
        return rows, int(rows.shape[0]), None
    array = check_array(X, allow_nd=True, input_name="X", **settings)
    n, n_nodes, width = array.shape
    if reset:
        model.n_features_in_ = int(width)
    elif width != model.n_features_in_:
        raise ValueError(f"X has {width} columns; expected {model.n_features_in_}, as in training.")
    return np.ascontiguousarray(array).reshape(-1, width), int(n), int(n_nodes)


def read_fixed_labels(y: Any) -> tuple[Labels, NDArray[np.int32]]:
    """Return the labels, and their codes of shape (n, n_nodes)."""
    table = as_table(y)
    if len(np.shape(table)) != 2 or not np.shape(table)[1]:
        raise ValueError(
            f"y must have shape (n, n_nodes), a label for each node of each example. Got {np.shape(table)} instead."
        )
    n, n_nodes = np.shape(table)
    offsets = np.arange(n + 1, dtype=np.int64) * n_nodes
    labels = Labels.fit(table, offsets)
    return labels, labels.encode(table, offsets).reshape(n, n_nodes)


def as_table(y: Any) -> Any:
    """Return labels in rows: sparse indicators and data frames as arrays, lists as they are."""
    if hasattr(y, "toarray"):  # scipy's sparse indicators
        return y.toarray()
    if hasattr(y, "to_numpy"):
        return y.to_numpy()
    return np.asarray(y) if hasattr(y, "__array__") else y
