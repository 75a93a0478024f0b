"""Model files: which data a model takes, and opening it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dualfield.cli.reading.columns import ColumnChoice
from dualfield.cli.reading.data_files import FORMATS

if TYPE_CHECKING:
    from dualfield.io import FileColumns
    from dualfield.io.json_graphs import JsonGraphReader
    from dualfield.structures import LabelGraph


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model and what it works on.

    Attributes
    ----------
    path : str
        The file.
    model : estimator
        The model.
    kind : str
        The format of its data, a key of `FORMATS`; empty if there is none.
    obstacle : str
        Why there is none.
    """

    path: str
    model: Any
    kind: str
    obstacle: str = ""

    @property
    def tagger(self) -> Any:
        """The model of sequences that has the weights; with sub-states, that of the states."""
        return getattr(self.model, "states_", self.model)

    @property
    def columns(self) -> FileColumns | None:
        """The columns of the training data, if `dualfield train` has written the file."""
        found: FileColumns | None = getattr(self.model, "file_columns_", None)
        return found

    @property
    def n_columns(self) -> int:
        """How many columns the template reads; 0 if there is none."""
        return int(self.tagger.template_.n_columns) if self.kind == "conll" else 0

    def choice(self, features: tuple[int, ...] | None, label: int | None = None) -> ColumnChoice:
        """Return which columns to read, as the options --columns and --label say."""
        return ColumnChoice(features, label, self.path, self.columns, self.n_columns)

    @property
    def _structured(self) -> Any:
        return self.model.model if isinstance(self.model, FrozenTagger) else self.tagger.model_

    @property
    def tree_columns(self) -> tuple[int, ...]:
        """Columns of the tokens of trees: that of words alone, or those of words and tags."""
        return (0, 1)[: getattr(self._structured.structure, "n_columns", None) or 2]

    def parse(self, X: Any) -> tuple[list[Any], dict[int, str]]:
        """Return the trees of sentences, None for those that the grammar cannot parse, and why these have none."""
        threads = self.model.threads if isinstance(self.model, FrozenTagger) else self.tagger.n_jobs
        found: tuple[list[Any], dict[int, str]] = self._structured.predict_possible(X, threads or 1)
        return found

    @property
    def label_graph(self) -> LabelGraph | None:
        """How rows with several labels became graphs, if it is a model of such rows."""
        found: LabelGraph | None = getattr(self.model, "label_graph_", None)
        return found

    @property
    def n_features(self) -> int | None:
        """Columns of svmlight's examples; None for other models."""
        if self.label_graph is not None:
            return self.label_graph.n_features
        return int(self.model.n_features_in_) if self.kind == "svmlight" else None

    def graph_reader(self) -> JsonGraphReader | None:
        """Return what reads graphs as those of the training data; None for other models."""
        if self.kind != "graphs":
            return None
        from dualfield.io.json_graphs import JsonGraphReader

        model = self.tagger.model_
        n_columns, n_types, width = model.n_columns, model.structure.n_types, model.n_edge_columns
        edges = "no features" if not model.has_edge_features else "attributes" if width is None else _numbers(width)
        return JsonGraphReader(
            structure=model.structure.name,
            nodes=_numbers(n_columns) if model.vocabulary is None else "attributes",
            edges=edges,
            typed=n_types > 1,
            as_in="training",
            n_types=n_types,
        )

    @property
    def names(self) -> list[str]:
        """The labels, as they are written."""
        found = self.model.classes_ if self.label_graph is None else self.label_graph.names
        return [str(name) for name in found]

    def relaxed(self, X: Any) -> Any:
        """Return for each graph whether it is too wide for exact answers, and has bounds only."""
        from dualfield.structures.relaxed import relaxed_examples

        tagger = self.tagger
        return relaxed_examples(tagger.structure_, tagger.decision_scores(X).shape)

    def check_probabilities(self, option: str) -> None:
        """Raise an error if an option needs probabilities, which a model does not have."""
        if not hasattr(self.model, "predict_proba"):
            raise click.UsageError(
                f"{option} needs probabilities, which {self.path} does not have: a {type(self.model).__name__} has "
                "margins. Train with --calibrate, or call calibrate(X, y) in Python, to make probabilities of them."
            )
        if self.kind in ("graphs", "multilabel") and getattr(self.tagger.structure_, "inference", "") == "trw":
            raise click.UsageError(
                f"{option} needs probabilities, which {self.path} does not have: it was trained with --inference trw, "
                "which only bounds them."
            )


@dataclass(frozen=True)
class FrozenTagger:
    """A model that predicts with some threads, without an estimator round it."""

    model: Any
    threads: int
    file_columns_: FileColumns | None = None

    @property
    def classes_(self) -> Any:
        """The labels."""
        return self.model.classes

    @property
    def vocabulary_(self) -> Any:
        """The attributes."""
        return self.model.vocabulary

    @property
    def template_(self) -> Any:
        """What makes attributes of columns."""
        return self.model.template

    def predict(self, X: Any) -> Any:
        """Return the best labelling of each sentence."""
        return self.model.predict(X, None, self.threads)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of labels."""
        return self.model.predict_proba(X, None, self.threads)

    def k_best(self, X: Any, k: int) -> Any:
        """Return the best labellings with their probabilities."""
        return self.model.k_best(X, k, None, self.threads)

    def predict_spans(self, X: Any) -> Any:
        """Return the spans of the best labelling of each sentence, with their probabilities."""
        from dualfield.models.spans import predict_spans

        model, scores = self.model, self.model.scores(X, None, self.threads)
        temperature = model.probability_temperature
        return predict_spans(model.structure, scores, model.names, "O", 0.0, temperature, self.threads)


def load_tagger(path: Path, *, mmap: bool, threads: int) -> LoadedModel:
    """Open a model to predict with: as `load_model` does, or without the estimator, whose imports take a while."""
    from dualfield.io import FileColumns
    from dualfield.models.structured import StructuredModel
    from dualfield.persistence.file import open_model

    if is_crfsuite_model(path):
        return load_model(path, mmap=mmap, threads=threads)
    file = open_model(path, mmap=mmap)
    if file.metadata.get("estimator") == "CRF":
        with file.at_fault():
            record = file.record
            frozen = StructuredModel.from_record(record.child("model"))
            known = "file_columns" in record.names()
            columns = FileColumns.from_record(record.child("file_columns")) if known else None
        if frozen.vocabulary is not None and not frozen.has_kernel and frozen.structure.name not in _GRAPHS:
            tagger = FrozenTagger(frozen, threads, columns)
            kind = "crfsuite" if frozen.template is None else "conll"
            return LoadedModel(os.fspath(path), tagger, _TREES.get(frozen.structure.name, kind))
    return load_model(path, mmap=mmap, threads=threads)


def load_model(path: Path, *, mmap: bool = False, threads: int = 1, for_data: bool = True) -> LoadedModel:
    """Open a model of dualfield or of CRFsuite; with for_data, only if there are files of data that it works on."""
    from dualfield.estimators import CRF, load

    model: Any = CRF.from_crfsuite(path) if is_crfsuite_model(path) else load(path, mmap=mmap)
    loaded = LoadedModel(os.fspath(path), model, *_kind(model))
    if for_data and loaded.obstacle:
        raise click.ClickException(f"{path}: {loaded.obstacle}.")
    model.n_jobs = threads
    return loaded


def is_crfsuite_model(path: Path) -> bool:
    """Tell by the first bytes."""
    with path.open("rb") as file:
        return file.read(4) == b"lCRF"


_GRAPHS = ("graph", "tree")  # structures whose examples come as graphs in JSON
_TREES = {"spans": "trees", "grammar": "trees", "dependency": "conllu"}  # structures with files of their own
_NUMBERS = "works on matrices of numbers, for which there is no file format here"


def _kind(model: Any) -> tuple[str, str]:
    """Return the format of a model's data; or nothing, and why."""
    from dualfield.estimators import ConditionalGraphicalModel, DiscriminativeBayesNet, LatentChain

    if isinstance(model, ConditionalGraphicalModel):
        return "", _NUMBERS
    if isinstance(model, DiscriminativeBayesNet):
        return "", "works on tables of categories, for which there is no file format here"
    if hasattr(model, "n_features_in_"):
        return "svmlight", ""
    if not isinstance(getattr(model, "latent", None), LatentChain | None):
        return "", "does not label sequences; use it in Python"
    tagger = getattr(model, "states_", model)
    if tagger.structure_.name in _GRAPHS:
        return _graph_kind(model, tagger.structure_)
    if tagger.structure_.name in _TREES:
        reads_words = tagger.vocabulary_ is not None or tagger.model_.n_columns == 0  # rules alone have scores
        return (_TREES[tagger.structure_.name], "") if reads_words else ("", _NUMBERS)
    if tagger.template_ is not None:
        return "conll", ""
    return ("crfsuite", "") if tagger.vocabulary_ is not None else ("", _NUMBERS)


def _graph_kind(model: Any, structure: Any) -> tuple[str, str]:
    """Return the format of the data of a model of graphs; or nothing, and why."""
    graph = getattr(model, "label_graph_", None)
    if graph is None:
        return "graphs", ""
    n_types = max(len(graph.edges), 1)
    if model.model_.n_columns != graph.n_columns or structure.n_types != n_types:
        return "", "is altered: its weights are not those of its labels and features"
    return "multilabel", ""


def _numbers(n: int) -> str:
    return f"{n} number{'s' * (n != 1)}"


def data_of(loaded: LoadedModel) -> str:
    """Say what a model works on."""
    return FORMATS[loaded.kind] if loaded.kind else "Python"


def is_tagger(loaded: LoadedModel) -> bool:
    """Tell whether a model labels sequences or examples by linear scores, whose weights have names."""
    return hasattr(loaded.tagger, "top_features")
