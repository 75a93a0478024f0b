"""Input of conditional graphical models: sequences, tables of fixed size, and trees or graphs of any shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_sample_weight

from dualfield.data import Batch, Labels
from dualfield.data.arrays import Floats
from dualfield.data.fixed_size import check_no_table, number_rows, read_fixed, read_fixed_labels, read_sequences
from dualfield.estimators.graphical_parameters import (
    chain_order,
    check_combined,
    check_padding,
    combined_weights,
    unseen_score,
)
from dualfield.features.reading import read_examples
from dualfield.models.graphical.clique_graph import put_together, seen_tuples
from dualfield.models.graphical.model import GraphicalModel
from dualfield.objectives.clique_problems import LabelledExamples, padded_codes
from dualfield.scores.cliques import (
    ChainLayout,
    GraphLayout,
    ShapeLayout,
    check_covered,
    check_graph,
    joined_nodes,
    with_blank_row,
)
from dualfield.structures import mutual_information, spanning_tree
from dualfield.structures.pairwise import Pairwise

# The model before it has learnt anything, what to train it on, and the sizes of cliques that need a model.
Task = tuple[GraphicalModel, LabelledExamples, set[int]]


def read_training(estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None, lengths: ArrayLike | None) -> Task:
    """Return what a fit needs, in the form that the graph of an estimator asks for; sets its number of columns."""
    if isinstance(estimator.graph, Pairwise):
        return _read_shapes(estimator, X, y, sample_weight, lengths)
    read = _read_fixed if chain_order(estimator.graph) is None else _read_sequences
    return read(estimator, X, y, sample_weight, lengths)


def read_input(estimator: Any, model: GraphicalModel, X: Any, lengths: ArrayLike | None) -> tuple[Any, Any, Any]:
    """Return rows, where they belong, as in :meth:`GraphicalModel.answer`, and features of edges or None."""
    if isinstance(model.graph, Pairwise):
        nodes, edges = _open(model.graph, X, lengths, model.n_features, model.n_edge_features or None)
        return number_rows(nodes, "X"), nodes.shape, _edge_rows(model, nodes, edges)
    if model.is_chain:
        return *read_sequences(X, lengths, model.n_features), None
    matrix, n, n_rows = read_fixed(estimator, X, lengths, reset=False)
    if n_rows != (None if model.is_shared_input else model.n_nodes):
        shape = "(n, d)" if model.is_shared_input else f"(n, {model.n_nodes}, d)"
        raise ValueError(f"X must have shape {shape}, as in training. Got {np.shape(X)} instead.")
    return matrix, n, None


def _read_sequences(estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None, lengths: ArrayLike | None) -> Task:
    check_no_table(X, y, lengths, estimator.graph)
    matrix, counts = read_sequences(X, lengths, None)
    if not counts.sum():
        raise ValueError("X must have at least one node. Got none.")
    offsets = np.concatenate([[0], np.cumsum(counts)])
    labels = Labels.fit(y, offsets)
    codes = labels.encode(y, offsets)
    weights = _example_weights(sample_weight, len(counts))
    order = chain_order(estimator.graph)
    assert order is not None
    check_combined(estimator.combine, order)
    estimator.n_features_in_ = int(matrix.shape[1])
    model = _without_cliques(estimator, "shared", labels=labels, graph=order)
    layout = ChainLayout(counts[counts > 0], model.padding, model.tying)
    data = LabelledExamples(
        layout=layout,
        matrix=with_blank_row(matrix, model.padding),
        codes=padded_codes(layout, codes, len(labels)),
        weights=weights[counts > 0],
        n_states=model.n_states,
        is_weighted=sample_weight is not None,
    )
    return model, data, model.sizes(combined_weights(estimator.combine))


def _read_fixed(estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None, lengths: ArrayLike | None) -> Task:
    if any(check_padding(estimator.padding)):
        raise ValueError("padding is for sequences: it must be (0, 0) with a graph of fixed size.")
    matrix, n, n_rows = read_fixed(estimator, X, lengths, reset=True)
    labels, codes = read_fixed_labels(y)
    if n != len(codes):
        raise ValueError(f"y has {len(codes)} examples; X has {n}.")
    n_nodes = codes.shape[1]
    if n_rows not in (None, n_nodes):
        wanted = f"(n, d), or (n, {n_nodes}, d) with a row for each node"
        raise ValueError(f"X must have shape {wanted}. Got {np.shape(X)} instead.")
    weights = _example_weights(sample_weight, n)
    graph: list[Any]
    if isinstance(estimator.graph, str):
        graph = spanning_tree(mutual_information(codes, weights=weights)) or [(0,)]
    else:
        graph = check_graph(estimator.graph, n_nodes)
    check_combined(estimator.combine, max((len(clique) for clique in graph), default=1) - 1)
    model = _without_cliques(
        estimator, "position", labels=labels, graph=graph, n_nodes=n_nodes, is_shared_input=n_rows is None
    )
    scored, by_size = model.fixed_cliques(combined_weights(estimator.combine))
    check_covered(scored, n_nodes)
    layout = GraphLayout(n, n_nodes, by_size, model.tying, model.is_shared_input)
    keys = [layout.key(clique) for clique in scored]
    seen = seen_tuples(codes[weights > 0], list(scored), keys)
    put_together(n_nodes, len(labels), seen, with_lists=model.unseen == -np.inf)
    data = LabelledExamples(
        layout=layout,
        matrix=matrix,
        codes=codes.ravel(),
        weights=weights,
        n_states=len(labels),
        is_weighted=sample_weight is not None,
    )
    return model, data, set(by_size)


def _read_shapes(estimator: Any, X: Any, y: Any, sample_weight: ArrayLike | None, lengths: ArrayLike | None) -> Task:
    if any(check_padding(estimator.padding)):
        raise ValueError("padding is for sequences: it must be (0, 0) with trees and graphs.")
    nodes, edges = _open(estimator.graph, X, lengths)
    matrix, shape = number_rows(nodes, "X"), nodes.shape
    if not shape.n_nodes:
        raise ValueError("X must have at least one node. Got none.")
    own = None if edges is None else number_rows(edges, "edge_features")
    if own is not None and estimator.features != "joint":
        raise ValueError(
            f"features={estimator.features!r} makes the input of an edge of its nodes alone, but edges of X have "
            f"features. Use 'joint', or leave them out."
        )
    flat = shape.flat_labels(y)
    labels = Labels.fit(flat, shape.offsets)
    codes = labels.encode(flat, shape.offsets)
    weights = _example_weights(sample_weight, shape.n_examples)
    check_combined(estimator.combine, 1)
    types = joined_nodes(shape)[1]
    structure = estimator.graph.for_labels(labels.classes, codes, shape, owner=type(estimator).__name__)
    if types.size and types.max() >= structure.n_types:
        raise ValueError(
            f"types must be in [0, {structure.n_types}), as graph={estimator.graph!r} says. Got {types.max()}."
        )
    estimator.n_features_in_ = int(matrix.shape[1])
    width = 0 if own is None else int(own.shape[1])
    model = _without_cliques(estimator, "type", labels=labels, graph=structure, n_edge_features=width)
    combine = combined_weights(estimator.combine)
    if combine is None or 1 in combine:
        structure.native(shape)  # says what is no tree, or too wide to be put together again
    sizes = model.sizes(combine)
    data = LabelledExamples(
        layout=ShapeLayout(shape, sizes, model.tying, own),
        matrix=matrix,
        codes=codes,
        weights=weights,
        n_states=len(labels),
        is_weighted=sample_weight is not None,
    )
    return model, data, sizes


def _open(
    structure: Pairwise,
    X: Any,
    lengths: ArrayLike | None,
    n_columns: int | None = None,
    n_edge_columns: int | None = None,
) -> tuple[Batch, Batch | None]:
    return read_examples(structure, X, lengths, None, None, n_columns=n_columns, n_edge_columns=n_edge_columns)


def _edge_rows(model: GraphicalModel, nodes: Batch, edges: Batch | None) -> Any:
    """Return the features of edges, which there are where training had some; graphs without edges have none."""
    if edges is not None and not model.n_edge_features:
        raise ValueError("X has edge features; the training data had none.")
    if edges is not None or not model.n_edge_features:
        return None if edges is None else number_rows(edges, "edge_features")
    if len(joined_nodes(nodes.shape)[0]):
        raise ValueError("X has no edge features; the training data had some.")
    return np.zeros((0, model.n_edge_features))


def _without_cliques(estimator: Any, tying: str, **found: Any) -> GraphicalModel:
    """Return the model before it has learnt anything; `tying` is what None stands for."""
    return GraphicalModel(
        n_features=estimator.n_features_in_,
        models={},
        tying=tying if estimator.tying is None else estimator.tying,
        padding=check_padding(estimator.padding),
        unseen=unseen_score(estimator.unseen),
        features=estimator.features,
        **found,
    )


def _example_weights(sample_weight: ArrayLike | None, n: int) -> Floats:
    weights: Floats = _check_sample_weight(sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight must have an entry above zero. Got zeros only.")
    return weights
