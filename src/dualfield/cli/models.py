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
    def names(self) -> list[str]:
        """The labels, as they are written."""
        return [str(name) for name in self.model.classes_]

    def check_probabilities(self, option: str) -> None:
        """Raise an error if an option needs probabilities, which a model does not have."""
        if not hasattr(self.model, "predict_proba"):
            raise click.UsageError(
                f"{option} needs probabilities, which {self.path} does not have: a {type(self.model).__name__} has "
                "margins. Train with --calibrate, or call calibrate(X, y) in Python, to make probabilities of them."
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
        if frozen.vocabulary is not None and not frozen.has_kernel:
            tagger = FrozenTagger(frozen, threads, columns)
            return LoadedModel(os.fspath(path), tagger, "crfsuite" if frozen.template is None else "conll")
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
    if tagger.template_ is not None:
        return "conll", ""
    return ("crfsuite", "") if tagger.vocabulary_ is not None else ("", _NUMBERS)


def data_of(loaded: LoadedModel) -> str:
    """Say what a model works on."""
    return FORMATS[loaded.kind] if loaded.kind else "Python"


def is_tagger(loaded: LoadedModel) -> bool:
    """Tell whether a model labels sequences or examples by linear scores, whose weights have names."""
    return hasattr(loaded.tagger, "top_features")
