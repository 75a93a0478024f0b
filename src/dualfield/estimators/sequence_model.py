"""What a fitted model of label sequences consists of, how it reads its input, and how it is saved."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from dualfield.data import Batch, Labels, Vocabulary
from dualfield.data.checks import check_column_names
from dualfield.data.mapped_vocabulary import read_vocabulary
from dualfield.data.records import Fields, Record
from dualfield.data.value_records import names_record, read_names
from dualfield.estimators.base import Estimator
from dualfield.features import Template
from dualfield.features.reading import read_examples
from dualfield.scores import Expansion, LinearScores
from dualfield.scores.stored import Scored, StoredWeights, weights_record
from dualfield.structures import Scores, Structure
from dualfield.structures.checks import n_threads
from dualfield.structures.registry import structure_from_record

Floats = NDArray[np.float64]


class FromFile:
    """An attribute that a mapped model takes from its file when it is first asked for.

    What is set on the model itself comes before it.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: SequenceModel | None, owner: type) -> Any:
        if model is None:
            return self
        model._finish()  # another thread may have done it by now
        if self._name not in vars(model):
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}")
        return vars(model)[self._name]


def from_file() -> Any:
    """Declare an attribute that may wait in a mapped file, of any type."""
    return FromFile()


class SequenceModel(Estimator):
    """The fitted parts of a model of label sequences.

    Weights are in memory, or in a mapped file that is looked up for every batch until all of them are asked for.
    """

    _asked_with: ClassVar[tuple[str, ...]] = ("temperature", "template")
    n_jobs: int | None
    temperature: float
    template: Any
    classes_: NDArray[Any]
    labels_: Labels
    structure_: Structure
    vocabulary_: Vocabulary | None
    pair_vocabulary_: Vocabulary | None
    n_features_: int
    score_map_: LinearScores = from_file()
    parameters_: Floats = from_file()
    expansion_: Expansion | None = None
    _waiting: StoredWeights | None = None

    def _read(self, X: Any, lengths: ArrayLike | None) -> tuple[Batch, Batch | None]:
        """Turn input into rows of the columns seen in training; the second batch has those that score label pairs."""
        check_is_fitted(self)
        expansion, words = self.expansion_, self.vocabulary_
        n_columns = self.score_map_.node.n_columns if expansion is None else expansion.n_columns
        numeric = None if words is not None else n_columns
        template = None if self._of_fit("template") is None else self._template()
        nodes, pairs = read_examples(
            self.structure_, X, lengths, template, words, self.pair_vocabulary_, n_columns=numeric
        )
        is_plain = template is None or isinstance(X, Batch)
        if is_plain:
            check_column_names(self, nodes, "as in training")
            pairs = nodes
        return nodes, pairs if self.score_map_.pair is not None else None

    def _scored(self, X: Any, lengths: ArrayLike | None) -> Scored:
        """Read input, and find the weights that score it: all, or those in a mapped file that it needs."""
        check_is_fitted(self)
        words, stored = self.vocabulary_, None if "parameters_" in vars(self) else self._waiting
        expansion = self.expansion_
        if not isinstance(stored, StoredWeights) or words is None or isinstance(X, Batch) or expansion is not None:
            nodes, pairs = self._read(X, lengths)
            nodes = nodes if expansion is None else expansion.columns(nodes, n_threads(self.n_jobs))
            return Scored(self.score_map_, self.parameters_, nodes, pairs)
        if self._of_fit("template") is None:
            nodes, _ = read_examples(self.structure_, X, lengths, None, Vocabulary(), grow=True)
            return stored.scored(nodes, nodes, words, self.pair_vocabulary_)
        nodes, pairs = read_examples(self.structure_, X, lengths, self._template(), None)
        return stored.scored(nodes, pairs, words, self.pair_vocabulary_)

    def _scores(self, X: Any, lengths: ArrayLike | None) -> Scores:
        read = self._scored(X, lengths)
        return read.score_map.scores(read.parameters, read.nodes, read.pairs, n_threads(self.n_jobs))

    def _template(self) -> Template:
        template = self._of_fit("template")
        return template if isinstance(template, Template) else Template.parse(str(template))

    def __sklearn_is_fitted__(self) -> bool:
        return "labels_" in vars(self)

    def _check_template(self) -> None:
        """Raise an error unless the template makes what the vocabularies hold: of tokens, and of pairs or not."""
        own_pairs = self.pair_vocabulary_ is not None and self.pair_vocabulary_ is not self.vocabulary_
        is_given = self._of_fit("template") is not None
        if own_pairs != (is_given and self._template().has_pairs) or (is_given and self.vocabulary_ is None):
            raise ValueError(
                f"The 'template' parameter of {type(self).__name__} does not make the attributes that the model has "
                "weights for. Give it the template of the fit."
            )

    def _finish(self) -> None:
        """Set what a mapped file still holds, unless a later fit has set it."""
        super()._finish()
        waiting = self._waiting
        if waiting is not None and not {"score_map_", "parameters_"} <= vars(self).keys():
            score_map, parameters = waiting.whole()
            self.__dict__.setdefault("score_map_", score_map)
            self.__dict__.setdefault("parameters_", parameters)
        self._waiting = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_waiting"}

    def _model_record(self) -> Fields:
        self._check_template()
        return {
            "labels": self.labels_.record(),
            "expansion": None if self.expansion_ is None else self.expansion_.record(),
            "names": names_record(getattr(self, "feature_names_in_", None)),
            **self._weights_record(),
        }

    def _weights_record(self) -> Fields:
        """Return the part without the labels: chain, vocabularies and weights."""
        words, pair_words = self.vocabulary_, self.pair_vocabulary_
        kind = "none" if pair_words is None else "shared" if pair_words is words else "own"
        return {
            "structure": self.structure_.record(),
            "vocabulary": None if words is None else words.record(),
            "pair_attributes": kind,
            "pair_vocabulary": pair_words.record() if pair_words is not None and kind == "own" else None,
            "weights": weights_record(self.score_map_, self.parameters_),
        }

    def _restore_model(self, record: Record) -> None:
        self.labels_ = Labels.from_record(record.child("labels"))
        self.__dict__["classes_"] = self.labels_.classes  # which may be a property, too
        n_columns = None
        if record.has("expansion"):
            self.expansion_ = Expansion.from_record(record.child("expansion"), len(self.labels_))
            n_columns = self.expansion_.n_columns
        self._restore_weights(record, len(self.labels_), n_columns)
        self._check_template()
        assert self._waiting is not None
        names = read_names(record, "names", self._waiting.node.n_columns if n_columns is None else n_columns)
        if names is not None:
            self.feature_names_in_ = names
        if not record.source.is_mapped:
            self._finish()

    def _restore_weights(self, record: Record, n_labels: int, n_inputs: int | None = None) -> None:
        """Set the chain over so many labels, the vocabularies, and where the weights are.

        A kernel stands between so many columns of the input and those that score labels.
        """
        self.structure_ = structure_from_record(record.child("structure"))
        found = self.structure_.n_labels
        record.check(found == n_labels, f"its structure must have {n_labels} labels. Got {found}.")
        self._waiting = StoredWeights(record.child("weights"), self.structure_)
        n_columns = self._waiting.node.n_columns
        n_pairs = None if self._waiting.pair is None else self._waiting.pair.n_columns
        self.n_features_ = self._waiting.n_features
        if self.expansion_ is not None:
            self.n_features_ += self.expansion_.coefficients.size
        self.vocabulary_ = self.pair_vocabulary_ = None
        if record.has("vocabulary"):
            words = read_vocabulary(record.child("vocabulary"), n_columns if n_inputs is None else n_inputs)
            self.vocabulary_ = words
        kind = record.text("pair_attributes", ("none", "shared", "own"))
        if kind == "own":
            own = record.child("pair_vocabulary")
            self.pair_vocabulary_ = read_vocabulary(own, own.shape("offsets")[0] - 1 if n_pairs is None else n_pairs)
        elif kind == "shared":
            record.check(n_pairs in (n_columns, None), f"it has {n_pairs} columns of pairs for {n_columns} attributes.")
            self.pair_vocabulary_ = self.vocabulary_
        record.check(
            record.has("pair_vocabulary") == (kind == "own"), "it has attributes of pairs that it does not use."
        )
