"""Conditional graphical models in model files: labels, the graph, and a model for each type of clique.

What is saved is what :class:`ConditionalGraphicalModel` predicts from; a file and a fitted model pass the same checks,
so that whatever can be saved can be loaded. The numbers of a mapped file are checked when they are first needed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from numpy.typing import NDArray

from dualfield.estimators.graphical_parameters import chain_order, check_combined, check_graph, check_parameters
from dualfield.estimators.graphical_predictor import GraphicalPredictor
from dualfield.estimators.graphical_problems import CliqueModel
from dualfield.estimators.graphical_training import summary
from dualfield.estimators.saved import Savable, field, from_file
from dualfield.estimators.saved_cliques import StoredModels, n_states, restored_status, saved_model
from dualfield.estimators.saved_labels import (
    label_record,
    restored_feature_names,
    restored_labels,
    save_feature_names,
)
from dualfield.persistence.file import ModelFile
from dualfield.persistence.parameters import FREE_WINDOWS, ParameterWriter
from dualfield.solvers.trace import relative_gap
from dualfield.structures import Chain, Graph

# Predictions make tables of these sizes; no file may ask for more.
_MOST_TUPLES = 2**24
_MOST_BLANKS = 64
_HIGHEST_ORDER = 63
_MOST_NODES = 22  # of a clique of a fixed graph, whose parts may all be listed


class SavableCliques(Savable, GraphicalPredictor):
    """A model of cliques that can be saved."""

    kernel: Any
    status_: Any
    clique_models_: dict[tuple[int, Hashable], CliqueModel] = from_file()

    def _check_restored(self) -> None:
        check_parameters(self)

    def _saved(self, writer: ParameterWriter) -> dict[str, Any]:
        fixed = not self._is_chain
        try:
            _check_extent(self)
            records = [saved_model(self, writer, at, one) for at, one in enumerate(self.clique_models_.values())]
        except ValueError as error:
            raise ValueError(f"The model cannot be saved: {error}") from None
        return {
            "labels": label_record(self.labels_),
            "graph": {
                "n_features": int(self.n_features_in_),
                "names": save_feature_names(self, writer.arrays),
                "order": None if fixed else int(self.graph_),
                "cliques": [list(clique) for clique in self.graph_] if fixed else None,
                "n_nodes": int(self.n_nodes_) if fixed else None,
                "shared_input": bool(self._is_shared_input) if fixed else None,
            },
            "models": records,
        }

    def _restore(self, file: ModelFile) -> None:
        for name in ("base_estimator", "kernel", "tying"):
            if callable(getattr(self, name)) or (name == "base_estimator" and self.base_estimator is not None):
                raise file.fault(f"is altered: its {name!r} cannot be in a file.")
        self.labels_ = restored_labels(file)
        self.classes_ = self.labels_.classes
        _restore_graph(self, file)
        try:
            _check_extent(self)
        except ValueError as error:
            raise file.fault(f"is altered: {error}") from None
        models = StoredModels(self, file)
        if summary(models.parts) != (self.objective_, self.dual_gap_, self.n_iter_, self.status_):
            raise file.fault("is altered: its 'training' must be the sum of that of all types of cliques.")
        self._waiting = models
        if not file.is_mapped:
            self._finish()

    def _training(self, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        return {
            "objective": float(self.objective_),
            "gap": float(self.dual_gap_),
            "relative_gap": float(relative_gap(self.objective_, self.dual_gap_)),
            "n_iter": int(self.n_iter_),
            "status": self.status_.value,
        }

    def _restore_training(self, file: ModelFile) -> None:
        record = field(file, "training", dict)
        self.objective_, self.dual_gap_ = field(file, "objective", float, record), field(file, "gap", float, record)
        self.n_iter_, self.status_ = field(file, "n_iter", int, record), restored_status(file, record)


def _restore_graph(model: Any, file: ModelFile) -> None:
    record = field(file, "graph", dict)
    model.n_features_in_ = field(file, "n_features", int, record)
    if model.n_features_in_ < 1:
        raise file.fault("is altered: it must have features.")
    if field(file, "names", bool, record):
        model.feature_names_in_ = restored_feature_names(file, model.n_features_in_)
    if model._is_chain:
        model.graph_ = field(file, "order", int, record)
        return
    model.n_nodes_ = field(file, "n_nodes", int, record)
    model._is_shared_input = field(file, "shared_input", bool, record)
    listed = field(file, "cliques", list, record)
    try:
        model.graph_ = check_graph(listed, model.n_nodes_)
    except (TypeError, ValueError) as error:
        raise file.fault(f"is altered: {error}") from None


def _check_extent(model: Any) -> None:
    """Raise an error unless the parameters ask for the graph that was trained, and predictions fit into memory."""
    graph, padding, combine = model._of_fit("graph"), model._of_fit("padding"), model.combine
    order = chain_order(graph)
    if order is not None:
        before, after = padding
        if order != model.graph_:
            raise ValueError(f"its graph is a chain of order {model.graph_!r:.100}, the parameter says {order!r:.100}.")
        if order > _HIGHEST_ORDER:
            raise ValueError(f"its order must be at most {_HIGHEST_ORDER}. Got {order!r:.100}.")
        if max(before, after) > _MOST_BLANKS:
            raise ValueError(f"padding must be at most {_MOST_BLANKS}. Got {padding!r:.100}.")
        if isinstance(graph, Chain) and (graph.n_labels or 0) ** (order + 1) > FREE_WINDOWS:
            raise ValueError(f"graph={graph!r} lists more windows of labels than a file takes; use {order}.")
        # For a short chain of many labels logarithms need no large powers.
        if (order + 1) * math.log(n_states(model)) > math.log(_MOST_TUPLES):
            raise ValueError(f"a clique of {order + 1} nodes has more than {_MOST_TUPLES} label tuples.")
        check_combined(combine, order)
        return
    nodes = {node for clique in model.graph_ for node in clique}
    if len(nodes) != model.n_nodes_:
        raise ValueError(f"its cliques must have all of its nodes, {model.n_nodes_!r:.100}.")
    if max(map(len, model.graph_)) > _MOST_NODES:
        raise ValueError(f"a clique must have at most {_MOST_NODES} nodes.")
    if graph != "tree" and check_graph(graph, model.n_nodes_) != model.graph_:
        raise ValueError("its cliques are not those of the 'graph' parameter.")
    check_combined(combine, max(map(len, model.graph_)) - 1)
    Graph([n_states(model)] * model.n_nodes_, list(model._fixed_cliques()[0]))  # says what is too wide
