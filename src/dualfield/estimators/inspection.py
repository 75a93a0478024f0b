"""A look inside a fitted model of sequences: its weights, its spans, and why it predicts what it predicts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from dualfield.data import Batch, Labels, Vocabulary
from dualfield.data.checks import check_integer, check_number
from dualfield.estimators.base import Estimator
from dualfield.models.explanation import Explanation, LinearSequence, column_name, explain, window_labels
from dualfield.models.spans import PredictedSpan, predict_spans
from dualfield.scores import Expansion, LinearScores
from dualfield.structures import Chain, Scores, Structure

__all__ = ["TaggerInspection", "TopFeatures"]

Floats = NDArray[np.float64]
Ranked = list[tuple[Any, float]]


@dataclass(frozen=True)
class TopFeatures:
    """The weights that matter most; made by :meth:`TaggerInspection.top_features`.

    Attributes
    ----------
    positive, negative : list of ((attribute, label), weight)
        Attributes that speak most for a label, and most against one.
    likely, unlikely : list of ((label, label), weight)
        Transitions with the largest and the lowest weights.

    Examples
    --------
    >>> from dualfield.estimators.inspection import TopFeatures
    >>> print(TopFeatures([(("word:Rex", "name"), 1.5)], [], [(("name", "other"), 0.25)], []))
    Attributes for a label
        +1.500  word:Rex -> name
    Transitions, likely
        +0.250  name -> other
    """

    positive: Ranked
    negative: Ranked
    likely: Ranked
    unlikely: Ranked

    def __str__(self) -> str:
        titles = (
            "Attributes for a label",
            "Attributes against a label",
            "Transitions, likely",
            "Transitions, unlikely",
        )
        lines = []
        for title, ranked in zip(titles, (self.positive, self.negative, self.likely, self.unlikely), strict=True):
            lines += [title] if ranked else []
            lines += [f"    {weight:+.3f}  {' -> '.join(map(str, key))}" for key, weight in ranked]
        return "\n".join(lines)


class TaggerInspection(Estimator, ABC):
    """What can be asked of a fitted model of sequences beyond labels and their probabilities.

    Columns of numeric input are called ``x[0]``, ``x[1]``, and so on.

    Examples
    --------
    >>> from dualfield import CRF
    >>> model = CRF().fit([[["a"], ["b"]]], [["x", "y"]])
    >>> sorted(model.state_features_), sorted(model.transition_features_)
    ([('a', 'x'), ('b', 'y')], [('x', 'y')])
    """

    n_jobs: int | None
    temperature: float
    labels_: Labels
    structure_: Structure
    vocabulary_: Vocabulary | None
    pair_vocabulary_: Vocabulary | None
    score_map_: LinearScores
    expansion_: Expansion | None
    parameters_: Floats

    def _need_columns(self, what: str) -> None:
        """Raise where node scores come from a kernel, which gives columns no weights."""
        if self.expansion_ is not None:
            raise AttributeError(f"{what} needs weights of columns. With a kernel see expansion_ and transitions_.")

    @abstractmethod
    def _read(self, X: Any, lengths: ArrayLike | None) -> tuple[Batch, Batch | None]:
        """Turn input into rows of the columns seen in training."""

    @abstractmethod
    def _scores(self, X: Any, lengths: ArrayLike | None) -> Scores:
        """Return the scores of input."""

    def predict_spans(
        self, X: Any, *, outside: str = "O", min_proba: float = 0.0, lengths: ArrayLike | None = None
    ) -> list[list[PredictedSpan]]:
        """Return the spans that the best labelling marks, each with the probability of exactly that span.

        The probability is that of all labellings together in which :func:`dualfield.metrics.spans` finds the same type,
        start and stop; it is exact. A span may be probable though no single labelling is. Where the model may break the
        rules of its scheme (``constraints=None``), ``I-x`` that follows neither ``B-x`` nor ``I-x`` begins a span, in
        the best labelling and in all others alike.

        Parameters
        ----------
        X, lengths
            As in ``predict``.
        outside : str, default="O"
            The label outside of all spans.
        min_proba : float, default=0.0
            Spans that are less probable are left out.

        Returns
        -------
        list of lists of PredictedSpan
            (type, start, stop, probability), for each sequence from left to right.

        Examples
        --------
        >>> from dualfield import CRF
        >>> X = [[["the"], ["big"], ["dog"], ["ran"]], [["a"], ["dog"], ["ran"]]]
        >>> model = CRF(C=10.0, tol=1e-9).fit(X, [["B-NP", "I-NP", "I-NP", "O"], ["B-NP", "I-NP", "O"]])
        >>> (span,) = model.predict_spans([[["the"], ["dog"], ["ran"]]])[0]
        >>> span.type, span.start, span.stop, round(span.probability, 2)
        ('NP', 0, 2, 0.9)
        """
        check_number("predict_spans", "min_proba", min_proba, 0.0)
        scores, structure = self._scores(X, lengths), self.structure_
        if not isinstance(structure, Chain):
            raise ValueError(f"Spans are parts of sequences; this model labels a {type(structure).__name__}.")
        return predict_spans(
            structure, scores, self._names(), outside, min_proba, float(self._of_fit("temperature")), self.n_jobs
        )

    def explain(self, xseq: Any, top: int = 10) -> Explanation:
        """Say why each token of a sequence has its label.

        For each token the predicted labelling is held against the best one that has another label there. Their scores
        differ by a sum over attributes and transitions at all places where the labellings differ, which is given in
        full: nothing is approximated.

        Parameters
        ----------
        xseq : list of items, or matrix of shape (n_nodes, n_columns)
            One sequence.
        top : int, default=10
            How many contributions are printed for a token; the record has them all.

        Returns
        -------
        Explanation
            A record for each token; print it to read it.

        Examples
        --------
        >>> from dualfield import CRF
        >>> X = [[["the"], ["dog"]], [["dogs"], ["run"]], [["the"], ["run"]]]
        >>> model = CRF(tol=1e-12).fit(X, [["DT", "NN"], ["NN", "VB"], ["DT", "NN"]])
        >>> print(model.explain([["the"], ["run"]])[1])
        1: NN with probability 0.47, not VB; the scores differ by 0.90
            +1.025  transition: DT > NN, not DT > VB
            -0.128  run: NN, not VB
        """
        check_integer("explain", "top", top, 1)
        self._need_columns("explain")
        nodes, pairs = self._read([xseq], None)
        sequence = LinearSequence(
            self.score_map_, self.parameters_, nodes, pairs, self.vocabulary_, self.pair_vocabulary_, self._names()
        )
        return explain(sequence, float(self._of_fit("temperature")), int(top))

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """Weights of attributes that are not zero, by (attribute, label), as sklearn-crfsuite has them."""
        check_is_fitted(self)
        self._need_columns("state_features_")
        table, weights = self.score_map_.node, self.score_map_.unpack(self.parameters_).node
        kept = np.flatnonzero(weights)
        columns, labels = table.columns[kept].tolist(), self.labels_.classes[table.outputs[kept]].tolist()
        names = [f"x[{at}]" for at in range(table.n_columns)] if self.vocabulary_ is None else list(self.vocabulary_)
        keys = zip((names[column] for column in columns), labels, strict=True)
        return dict(zip(keys, weights[kept].tolist(), strict=True))

    @property
    def transition_features_(self) -> dict[tuple[Any, ...], float]:
        """Weights of transitions that are not zero, by (label, next label), or by all labels of a longer window."""
        check_is_fitted(self)
        weights, names = self.score_map_.unpack(self.parameters_).cliques, self._names()
        kept = np.flatnonzero(weights)
        windows = (window_labels(names, row) for row in self.structure_.cliques[kept].tolist())
        return dict(zip(windows, weights[kept].tolist(), strict=True))

    def top_features(self, n: int = 10, label: Any = None) -> TopFeatures:
        """Return the attributes and transitions with the largest weights.

        Parameters
        ----------
        n : int, default=10
            How many of each kind, at most.
        label : str, int or bool, default=None
            Only weights of this label, and of transitions to it or from it. None: all.

        Returns
        -------
        TopFeatures
            The largest first; print it to read it.

        Examples
        --------
        >>> from dualfield import CRF
        >>> X = [[["the"], ["dog"]], [["dogs"], ["run"]], [["the"], ["run"]]]
        >>> model = CRF(C=3.0, tol=1e-12).fit(X, [["DT", "NN"], ["NN", "VB"], ["DT", "NN"]])
        >>> print(model.top_features(2, label="DT"))
        Attributes for a label
            +1.281  the -> DT
        Transitions, likely
            +1.715  DT -> NN
        """
        check_is_fitted(self)
        check_integer("top_features", "n", n, 1)
        weights, table, names = self.score_map_.unpack(self.parameters_), self.score_map_.node, self._names()
        cliques, here, among = self.structure_.cliques, slice(None), slice(None)
        if label is not None:
            if label not in names:
                raise ValueError(f"The 'label' parameter of top_features must be a label of the model. Got {label!r}.")
            here, among = table.outputs == names.index(label), (cliques == names.index(label)).any(axis=1)
        n_features = len(weights.node) if self.expansion_ is None else 0  # a kernel gives columns no weights
        features, windows = np.arange(len(weights.node))[here][:n_features], np.arange(len(cliques))[among]
        found: list[Ranked] = []
        for sign in (1.0, -1.0):
            ranked = features[_largest(sign * weights.node[features], int(n))].tolist()
            columns = (np.searchsorted(table.indptr, ranked, side="right") - 1).tolist()
            keys = [
                (column_name(self.vocabulary_, column), names[table.outputs[at]])
                for column, at in zip(columns, ranked, strict=True)
            ]
            found.append(list(zip(keys, weights.node[ranked].tolist(), strict=True)))
        for sign in (1.0, -1.0):
            ranked = windows[_largest(sign * weights.cliques[windows], int(n))].tolist()
            found.append([(window_labels(names, cliques[at].tolist()), float(weights.cliques[at])) for at in ranked])
        return TopFeatures(*found)

    def _names(self) -> list[Any]:
        names: list[Any] = self.labels_.classes.tolist()
        return names


def _largest(values: Floats, n: int) -> NDArray[np.int64]:
    """Return the places of the n largest values above zero, the largest first."""
    chosen = np.arange(len(values)) if n >= len(values) else np.argpartition(-values, n - 1)[:n]
    chosen = chosen[values[chosen] > 0.0]
    return chosen[np.lexsort((chosen, -values[chosen]))]
