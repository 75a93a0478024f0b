"""A model for each type of clique, put together again: what a conditional graphical model has found."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Labels
from dualfield.data.arrays import Floats
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.models.graphical.clique_readers import Answer, ChainReader, GraphReader
from dualfield.models.graphical.clique_scores import CliqueBank, CliqueTable
from dualfield.models.graphical.clique_shapes import ShapeInput, ShapeReader
from dualfield.models.temperature_scaling import Calibration
from dualfield.objectives.clique_problems import needed_sizes
from dualfield.scores.cliques import Tying, check_graph, graph_cliques
from dualfield.solvers.kernel.cliques import CliqueModel
from dualfield.structures import FactorGraph
from dualfield.structures.checks import n_threads
from dualfield.structures.pairwise import Pairwise
from dualfield.structures.registry import structure_from_record

# Predictions make tables of these sizes; no record may ask for more.
_MOST_TUPLES = 2**24
_MOST_BLANKS = 64
_HIGHEST_ORDER = 63
_MOST_NODES = 22  # of a clique of a fixed graph, whose parts may all be listed
_FEATURES = ("joint", "tied", "tied_separately", "tied_printed")
_KINDS = ("kernel", "log", "tied")

Form = int | list[tuple[int, ...]] | Pairwise


@dataclass(frozen=True, eq=False)
class HeldOutCliques:
    """What a temperature is chosen by, as :class:`dualfield.models.temperature_scaling.HeldOut`.

    Parameters
    ----------
    answer : Answer
        With the scores of all cliques.
    codes : int32 array of shape (n_nodes,)
        The true labels.
    """

    answer: Answer
    codes: NDArray[np.int32]
    least: ClassVar[float] = 0.0

    @property
    def values(self) -> Floats:
        """What the temperature divides."""
        return np.concatenate([np.zeros(0), *self.answer.values])

    def losses(self, temperature: float, n_jobs: int | None) -> Floats:
        """Return -log p(label) of each node at a temperature."""
        found = np.zeros(len(self.codes))
        for nodes, marginals in self.answer.marginals or ():
            rows, codes = marginals(temperature), self.codes[nodes]
            found[nodes] = -np.log(np.maximum(rows[np.arange(len(codes)), codes], 1e-300))
        return found


@dataclass(frozen=True, eq=False, kw_only=True)
class GraphicalModel:
    """Cliques of sequences, of a graph of fixed size, or of trees or graphs, each with the model of its type.

    Parameters
    ----------
    labels : Labels
        The labels of nodes.
    n_features : int
        Columns of the input.
    graph : int, list of tuples, Tree or Graph
        The order of a chain, the cliques of a fixed graph, or what examples of any shape are.
    n_edge_features : int
        Columns of features that edges of graphs have of their own.
    n_nodes : int or None
        Nodes of a fixed graph.
    is_shared_input : bool
        Whether all nodes of a fixed graph share one row of the input.
    models : dict
        From (size, key) to the model of each type of clique.
    tying : {"shared", "position", "type"} or callable
        What gives a clique its key.
    padding : tuple of two ints
        Blank nodes before and behind each sequence.
    unseen : float or None
        The score of label tuples that were not seen; None: they back off to smaller cliques.
    features : {"joint", "tied", "tied_separately", "tied_printed"}
        What the input of a clique consists of.
    kind : str
        How models are asked for scores, see :func:`dualfield.models.graphical.clique_scores.tuple_scores`.
    kind_of_probability : str or None
        The same for probabilities; None: the models have none.
    calibration : Calibration or None
        How the temperature of the probabilities was chosen, if it was.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield import ConditionalGraphicalModel
    >>> X, y = np.array([[0.0], [1.0], [1.0]]), ["a", "b", "b"]
    >>> model = ConditionalGraphicalModel(0, loss="log").fit(X, y, lengths=[2, 1]).model_
    >>> model.answer(X, np.array([3])).labels
    array([0, 1, 1], dtype=int32)
    """

    labels: Labels
    n_features: int
    graph: Form
    n_edge_features: int = 0
    n_nodes: int | None = None
    is_shared_input: bool = False
    models: Mapping[tuple[int, Hashable], CliqueModel]
    tying: Tying
    padding: tuple[int, int] = (0, 0)
    unseen: float | None = None
    features: str = "joint"
    kind: str = "kernel"
    kind_of_probability: str | None = None
    calibration: Calibration | None = None

    @property
    def is_chain(self) -> bool:
        """Whether it is a model of sequences."""
        return isinstance(self.graph, int)

    @property
    def classes(self) -> NDArray[Any]:
        """The labels, sorted."""
        return self.labels.classes

    @property
    def order(self) -> int:
        """The number of nodes of the largest clique, minus 1."""
        if isinstance(self.graph, Pairwise):
            return 1
        return self.graph if isinstance(self.graph, int) else max(map(len, self.graph)) - 1

    @property
    def n_states(self) -> int:
        """Number of labels, that of blank nodes included."""
        return len(self.labels) + int(self.is_chain and any(self.padding))

    def answer(
        self,
        matrix: Any,
        where: NDArray[np.int64] | int | Shape,
        edge_features: Any = None,
        *,
        question: str = "labels",
        **settings: Any,
    ) -> Answer:
        """Label all nodes of some examples; `question` may also be "probabilities", "marginals" or "bounds".

        The rows of all examples lie one after another in the matrix; `where` are the nodes of each sequence, for a
        fixed graph the number of examples, or the shape of trees or graphs. Settings are `combine`, weights of the
        orders, None adds up the cliques as they are; `backoff_cost`; and `n_jobs`.
        """
        reader: Any = self._reader(question in ("probabilities", "marginals"), **settings)
        found: Answer = reader.answer(*self._given(matrix, where, edge_features), question=question)
        return found

    def calibrated(self, calibration: Calibration | None) -> Self:
        """Return the same model with another temperature of its probabilities; None: that of the fit."""
        return replace(self, calibration=calibration)

    def held_out(
        self, matrix: Any, where: Any, edge_features: Any, codes: NDArray[np.int32], **settings: Any
    ) -> HeldOutCliques:
        """Return the scores of examples that it was not trained on, whatever the temperature, and their labels."""
        answer = self.answer(matrix, where, edge_features, question="marginals", **settings)
        if len(answer.labels) != len(codes):
            raise ValueError(f"y must have a label for each of the {len(answer.labels)} nodes of X. Got {len(codes)}.")
        assert answer.marginals is not None
        return HeldOutCliques(answer, codes)

    def tables(
        self, matrix: Any, where: NDArray[np.int64] | int | Shape, edge_features: Any = None, **settings: Any
    ) -> dict[int, CliqueTable]:
        """Return the scores of all cliques by order."""
        reader: Any = self._reader(False, **settings)
        found: dict[int, CliqueTable] = reader.tables(*self._given(matrix, where, edge_features))
        return found

    @staticmethod
    def _given(matrix: Any, where: Any, edge_features: Any) -> tuple[Any, ...]:
        if isinstance(where, Shape):
            return (ShapeInput(matrix=matrix, shape=where, edge_features=edge_features),)
        return matrix, where

    def sizes(self, combine: dict[int, float] | None) -> set[int]:
        """Return the sizes of cliques that need a model; not for fixed graphs, where some cliques of a size do."""
        return needed_sizes(combine or {self.order: 1.0}, self.unseen is None, self.features == "tied_separately")

    def _reader(
        self,
        with_probabilities: bool,
        combine: dict[int, float] | None = None,
        backoff_cost: float = 0.0,
        n_jobs: int | None = None,
    ) -> ChainReader | GraphReader | ShapeReader:
        bank = CliqueBank(
            models=self.models,
            n_labels=len(self.labels),
            has_blanks=self.is_chain and any(self.padding),
            kind=self.kind_of_probability if with_probabilities and self.kind_of_probability else self.kind,
            is_summed=self.features == "tied_separately",
            unseen=self.unseen,
            cost=backoff_cost,
            n_threads=n_threads(n_jobs),
        )
        T = 1.0 if self.calibration is None else self.calibration.temperature
        if isinstance(self.graph, int):
            weights = combine or {self.graph: 1.0}
            return ChainReader(bank, weights, padding=self.padding, tying=self.tying, n_jobs=n_jobs, temperature=T)
        if isinstance(self.graph, Pairwise):
            return ShapeReader(
                bank=bank,
                structure=self.graph,
                weights=combine or {1: 1.0},
                sizes=self.sizes(combine),
                tying=self.tying,
                n_jobs=n_jobs,
                temperature=T,
            )
        assert self.n_nodes is not None
        return GraphReader(
            bank,
            *self.fixed_cliques(combine),
            n_nodes=self.n_nodes,
            tying=self.tying,
            is_shared_input=self.is_shared_input,
            temperature=T,
        )

    def fixed_cliques(
        self, combine: dict[int, float] | None
    ) -> tuple[dict[tuple[int, ...], float], dict[int, list[tuple[int, ...]]]]:
        """Return the cliques of a fixed graph with a score, and their weights; by size, all that need a model."""
        assert isinstance(self.graph, list)
        return graph_cliques(self.graph, combine, self.unseen is None, self.features == "tied_separately")

    def record(self) -> Fields:
        """Return what the model consists of."""
        if callable(self.tying):
            raise ValueError("The model cannot be saved: its tying is user-defined, which is code.")
        models = [model.record() for model in self.models.values()]
        try:
            self._check_extent(None)
        except ValueError as error:
            raise ValueError(f"The model cannot be saved: {error}") from None
        return {
            "labels": self.labels.record(),
            "n_features": int(self.n_features),
            "n_edge_features": int(self.n_edge_features),
            "order": self.graph if isinstance(self.graph, int) else None,
            "cliques": [list(clique) for clique in self.graph] if isinstance(self.graph, list) else None,
            "structure": self.graph.record() if isinstance(self.graph, Pairwise) else None,
            "n_nodes": self.n_nodes,
            "is_shared_input": bool(self.is_shared_input),
            "tying": self.tying,
            "padding": list(self.padding),
            "unseen": self.unseen,
            "features": self.features,
            "kind": self.kind,
            "calibration": None if self.calibration is None else self.calibration.record(),
            "models": models,
        }

    @classmethod
    def from_record(cls, record: Record) -> GraphicalModel:
        """Make a model of its record, which is checked; in a mapped file numbers are checked at their first use."""
        labels = Labels.from_record(record.child("labels"))
        graph, n_nodes = _read_graph(record, len(labels))
        before, after = record.items("padding", int, 2)
        tyings = ("shared", "type") if isinstance(graph, Pairwise) else ("shared", "position")
        kind = record.text("kind", _KINDS)
        settings: dict[str, Any] = {
            "labels": labels,
            "n_features": record.integer("n_features", 1),
            "n_edge_features": record.integer("n_edge_features", 0),
            "graph": graph,
            "n_nodes": n_nodes,
            "is_shared_input": record.flag("is_shared_input"),
            "tying": record.text("tying", tyings),
            "padding": (before, after),
            "unseen": record.number("unseen") if record.has("unseen") else None,
            "features": record.text("features", _FEATURES),
            "kind": kind,
            "kind_of_probability": "log" if kind == "log" else None,
            "calibration": Calibration.from_record(record.child("calibration")) if record.has("calibration") else None,
        }
        record.check(
            kind == "log" or settings["calibration"] is None, "models without probabilities have no temperature."
        )
        model = cls(models={}, **settings)
        model._check_extent(record)
        listed = [CliqueModel.from_record(one, model.n_states) for one in record.children("models")]
        record.check(bool(listed), "it must have a model for each type of clique.")
        for at, one in enumerate(listed):
            model._check_type(record, f"{record.place('models')}.{at}", one)
        models = {(one.size, one.key): one for one in listed}
        record.check(len(models) == len(listed), "it has two models for one type of clique.")
        return cls(models=models, **settings)

    def _check_type(self, record: Record, place: str, model: CliqueModel) -> None:
        """Raise an error unless a clique of the graph can be of a type, with points and coefficients of its shape."""
        size, key, largest = model.size, model.key, self.order + 1
        record.check(size <= largest, f"a clique must have 1 to {largest} nodes. Got {size!r:.100}.")
        if self.tying == "shared":
            good = type(key) is str and key == "shared"
        elif isinstance(self.graph, Pairwise):
            good = type(key) is int and 0 <= key < (self.graph.n_types if size > 1 else 1)
        elif self.is_chain:
            good = type(key) is int and 0 <= key < 2**31
        else:
            nodes, n_nodes = key if isinstance(key, tuple) else (), self.n_nodes or 0
            good = len(nodes) == size and all(type(node) is int and 0 <= node < n_nodes for node in nodes)
            good = good and len(set(nodes)) == size
        record.check(good, f"tying={self.tying!r:.100} gives no clique of {size} nodes the key {key!r:.100}.")
        if model.coefficients is None:
            return
        n_outputs = size * self.n_states if self.features == "tied" else len(model.tuples)
        # A row for each node, or one where all share it.
        once = self.features == "tied" or (not self.is_chain and self.is_shared_input and not model.is_summed)
        width = self.n_features * (1 if once else size) + (self.n_edge_features if size > 1 else 0)
        expected = {"coefficients": n_outputs, "points": width}
        for name, width in expected.items():
            shape = getattr(model, name).shape
            what = f"array '{place}.{name}' must have shape ({shape[0]}, {width}). Got {shape}."
            record.check(shape[1] == width, what)

    def _check_extent(self, record: Record | None) -> None:
        """Raise an error unless predictions fit into memory."""
        fault = ValueError if record is None else record.fault
        if isinstance(self.graph, Pairwise):
            if self.n_states**2 > _MOST_TUPLES:
                raise fault(f"an edge has more than {_MOST_TUPLES} pairs of labels.")
            if any(self.padding):
                raise fault(f"padding must be (0, 0) for trees and graphs. Got {self.padding!r:.100}.")
            if self.n_edge_features and self.features != "joint":
                raise fault(f"features must be 'joint' where edges have features. Got {self.features!r:.100}.")
            return
        if self.n_edge_features:
            raise fault("only the edges of graphs have features of their own.")
        if isinstance(self.graph, int):
            if self.graph > _HIGHEST_ORDER:
                raise fault(f"its order must be at most {_HIGHEST_ORDER}. Got {self.graph!r:.100}.")
            if not all(0 <= n <= _MOST_BLANKS for n in self.padding):
                raise fault(f"padding must be at most {_MOST_BLANKS}. Got {self.padding!r:.100}.")
            # For a short chain of many labels logarithms need no large powers.
            if (self.graph + 1) * math.log(self.n_states) > math.log(_MOST_TUPLES):
                raise fault(f"a clique of {self.graph + 1} nodes has more than {_MOST_TUPLES} label tuples.")
            return
        nodes = {node for clique in self.graph for node in clique}
        if len(nodes) != self.n_nodes:
            raise fault(f"its cliques must have all of its nodes, {self.n_nodes!r:.100}.")
        if max(map(len, self.graph)) > _MOST_NODES:
            raise fault(f"a clique must have at most {_MOST_NODES} nodes.")
        FactorGraph([self.n_states] * len(nodes), self.graph)  # says what is too wide


def _read_graph(record: Record, n_labels: int) -> tuple[Form, int | None]:
    """Return the graph of a model, and the number of its nodes if that is fixed."""
    kinds = ("order", "cliques", "structure")
    record.check(sum(map(record.has, kinds)) == 1, "it must be a chain or have a graph.")
    record.check(record.has("n_nodes") == record.has("cliques"), "its graph must have a number of nodes.")
    if record.has("order"):
        return record.integer("order", 0, _HIGHEST_ORDER), None
    if record.has("cliques"):
        n_nodes = record.integer("n_nodes", 1)
        return check_graph(record.items("cliques", list), n_nodes), n_nodes
    structure = structure_from_record(record.child("structure"))
    if not isinstance(structure, Pairwise) or not structure.is_free or structure.n_labels != n_labels:
        raise record.fault(f"its structure must be a tree or graph of {n_labels} labels, all allowed.")
    return structure, None
