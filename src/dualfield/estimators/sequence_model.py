"""What a fitted model of label sequences consists of, how it reads its input, and how it is saved."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dualfield.data import Batch, Labels, Vocabulary
from dualfield.data.checks import check_column_names
from dualfield.estimators.saved import Savable, field, from_file
from dualfield.estimators.saved_expansion import restored_expansion, saved_expansion
from dualfield.estimators.saved_labels import restored_feature_names, save_feature_names
from dualfield.estimators.saved_tagger import Scored, StoredWeights, restored_parts, saved_parts
from dualfield.features import Template
from dualfield.persistence.file import ModelFile
from dualfield.persistence.parameters import ParameterWriter
from dualfield.scores import Expansion, LinearScores
from dualfield.structures import Chain, Scores
from dualfield.structures.checks import n_threads

Floats = NDArray[np.float64]


class SequenceModel(Savable, BaseEstimator):  # type: ignore[misc]
    """The fitted parts of a model of label sequences.

    Weights are in memory, or in a mapped file that is looked up for every batch until all of them are asked for.
    """

    _asked_with: ClassVar[tuple[str, ...]] = ("temperature", "template")
    n_jobs: int | None
    temperature: float
    template: Any
    classes_: NDArray[Any]
    labels_: Labels
    structure_: Chain
    vocabulary_: Vocabulary | None
    pair_vocabulary_: Vocabulary | None
    n_features_: int
    score_map_: LinearScores = from_file()
    parameters_: Floats = from_file()
    expansion_: Expansion | None = None

    def _read(self, X: Any, lengths: ArrayLike | None) -> tuple[Batch, Batch | None]:
        """Turn input into rows of the columns seen in training; the second batch has those that score label pairs."""
        check_is_fitted(self)
        if self._of_fit("template") is not None and not isinstance(X, Batch):
            self._check_no_lengths(lengths)
            rows = self._template().read(X, vocabulary=self.vocabulary_, pair_vocabulary=self.pair_vocabulary_)
            return rows.nodes, rows.pairs if self.score_map_.pair is not None else None
        expansion = self.expansion_
        n_columns = self.score_map_.node.n_columns if expansion is None else expansion.n_columns
        numeric = None if self.vocabulary_ is not None else n_columns
        batch = Batch.build(X, lengths=lengths, vocabulary=self.vocabulary_, n_columns=numeric)
        check_column_names(self, batch, "as in training")
        return batch, batch if self.score_map_.pair is not None else None

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
            nodes = pairs = Batch.build(X, lengths=lengths, vocabulary=Vocabulary(), grow=True)
        else:
            self._check_no_lengths(lengths)
            nodes, pairs = self._template().read(X)
        return stored.scored(nodes, pairs, words, self.pair_vocabulary_)

    @staticmethod
    def _check_no_lengths(lengths: ArrayLike | None) -> None:
        if lengths is not None:
            raise ValueError("lengths must be None with a template: X is a list of sentences.")

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

    def _saved(self, writer: ParameterWriter) -> dict[str, Any]:
        self._check_template()
        names = {"feature_names": True} if save_feature_names(self, writer.arrays) else {}
        return {**saved_parts(self, writer), "expansion": saved_expansion(self.expansion_, writer), **names}

    def _restore(self, file: ModelFile) -> None:
        self.__dict__.update(restored_parts(file))
        self._check_template()
        self.expansion_ = restored_expansion(file, len(self.labels_))
        if self.expansion_ is not None:
            self.n_features_ += self.expansion_.coefficients.size
        if "feature_names" in file.metadata and field(file, "feature_names", bool):
            record = field(file, "features", dict)
            n_columns = field(file, "n_columns", int, record) if self.expansion_ is None else self.expansion_.n_columns
            self.feature_names_in_ = restored_feature_names(file, n_columns)
        self._waiting = StoredWeights(file, self.structure_)
        if not file.is_mapped:
            self._finish()
