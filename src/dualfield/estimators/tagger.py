"""What every model of label sequences can be asked, whatever it was trained with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from dualfield import _native
from dualfield.data.checks import check_integer
from dualfield.estimators.inspection import TaggerInspection
from dualfield.estimators.sequence_model import SequenceModel
from dualfield.structures import Scores
from dualfield.structures.checks import n_threads

__all__ = ["SequenceTagger"]

Floats = NDArray[np.float64]


class SequenceTagger(SequenceModel, TaggerInspection):
    """A linear model of label sequences: prediction, probabilities and a look inside.

    Models such as :class:`dualfield.CRF` add how it is trained.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The labels, sorted; the order of all columns of probabilities.
    labels_ : Labels
        Their codes.
    structure_ : Chain
        Which labels may follow each other.
    vocabulary_ : Vocabulary or None
        The attributes that the columns stand for; None for numeric input.
    score_map_ : LinearScores
        Which features there are.
    parameters_ : array
        Their weights, in the order of the score map.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.estimators.tagger import SequenceTagger
    >>> isinstance(CRF(), SequenceTagger)
    True
    """

    def _heat(self) -> dict[str, Any]:
        """Arguments of every question about probabilities."""
        return {"temperature": float(self._of_fit("temperature")), "n_jobs": self.n_jobs}

    def decision_scores(self, X: Any, *, lengths: ArrayLike | None = None) -> Scores:
        """Return the scores of all labels and transitions: what ``structure_`` can be asked about.

        Parameters
        ----------
        X : list, generator, array or sparse matrix
            Sequences, in any form that :meth:`dualfield.data.Batch.build` takes.
        lengths : array of int, default=None
            How many rows of a flat `X` each sequence has.

        Returns
        -------
        Scores
            Node scores of shape (n_nodes, n_labels), transitions, and those of the ends.

        Examples
        --------
        >>> from dualfield import CRF
        >>> model = CRF().fit([[["a"], ["b"]]], [["x", "y"]])
        >>> model.decision_scores([[["a"]]]).node.shape
        (1, 2)
        """
        return self._scores(X, lengths)

    def predict(self, X: Any, *, lengths: ArrayLike | None = None) -> Any:
        """Return the most probable labelling of each sequence.

        Parameters
        ----------
        X, lengths
            As in :meth:`decision_scores`.

        Returns
        -------
        list of lists, or of arrays if the training labels were arrays
            Labels.

        Examples
        --------
        >>> from dualfield import CRF
        >>> CRF().fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]]).predict([[["a"], ["a"], ["b"]]])
        [['x', 'x', 'y']]
        """
        score_map, parameters, nodes, pairs = self._scored(X, lengths)
        codes = _native.tag(score_map.bind(nodes, pairs), parameters, n_threads(self.n_jobs))
        return self._decoded(codes, nodes.offsets)

    def _decoded(self, codes: NDArray[np.int32], offsets: NDArray[np.int64]) -> Any:
        """Return labels as users pass them: for each example, or in a row where every node is one."""
        return self.labels_.decode(codes, None if self.structure_.is_flat else offsets)

    def predict_single(self, xseq: Any) -> Any:
        """Return the most probable labelling of one sequence.

        Parameters
        ----------
        xseq : list of items, or matrix of shape (n_nodes, n_columns)
            One sequence.

        Returns
        -------
        list or array
            Its labels.

        Examples
        --------
        >>> from dualfield import CRF
        >>> CRF().fit([[["a"], ["b"]]], [["x", "y"]]).predict_single([["b"]])
        ['y']
        """
        return self.predict([xseq])[0]

    def predict_proba(self, X: Any, *, pairwise: bool = False, lengths: ArrayLike | None = None) -> Any:
        """Return the probability of each label at each node.

        Parameters
        ----------
        X, lengths
            As in :meth:`decision_scores`.
        pairwise : bool, default=False
            Also return the probability of each pair of neighbouring labels; chains of order 1 only.

        Returns
        -------
        list of arrays of shape (T_i, n_labels)
            Rows sum to 1; columns follow ``classes_``. With `pairwise`, a second list of arrays of shape
            (T_i - 1, n_labels, n_labels), label on the left first.

        Examples
        --------
        >>> from dualfield import CRF
        >>> model = CRF().fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]])
        >>> model.predict_proba([[["a"], ["b"]]])[0].round(2)
        array([[0.68, 0.32],
               [0.32, 0.68]])
        """
        check_is_fitted(self)
        reason = self.structure_.no_pairs if pairwise else None
        if reason is not None:
            raise ValueError(f"pairwise {reason}")
        scores = self.decision_scores(X, lengths=lengths)
        answer = self.structure_.marginals(scores, cliques="each" if pairwise else None, **self._heat())
        if self.structure_.is_flat:
            return answer.node
        nodes = _split(answer.node, scores.offsets)
        if answer.clique is None:
            return nodes
        return nodes, _split(answer.clique, np.searchsorted(self.structure_.edge_nodes(scores.shape), scores.offsets))

    def predict_marginals(self, X: Any, *, lengths: ArrayLike | None = None) -> Any:
        """Return probabilities as sklearn-crfsuite does: a dict for each node.

        Parameters
        ----------
        X, lengths
            As in :meth:`decision_scores`.

        Returns
        -------
        list of lists of dicts
            From label to probability. :meth:`predict_proba` gives arrays, which are smaller and faster.

        Examples
        --------
        >>> from dualfield import CRF
        >>> sorted(CRF().fit([[["a"], ["b"]]], [["x", "y"]]).predict_marginals([[["a"]]])[0][0])
        ['x', 'y']
        """
        check_is_fitted(self)
        names = self._names()
        rows = self.predict_proba(X, lengths=lengths)
        if self.structure_.is_flat:
            return [dict(zip(names, row, strict=True)) for row in np.asarray(rows).tolist()]
        return [[dict(zip(names, row, strict=True)) for row in np.asarray(one).tolist()] for one in rows]

    def predict_marginals_single(self, xseq: Any) -> Any:
        """Return the probabilities of one sequence as dicts.

        Parameters
        ----------
        xseq : list of items, or matrix of shape (n_nodes, n_columns)
            One sequence.

        Returns
        -------
        list of dicts
            From label to probability.

        Examples
        --------
        >>> from dualfield import CRF
        >>> len(CRF().fit([[["a"], ["b"]]], [["x", "y"]]).predict_marginals_single([["a"], ["b"]]))
        2
        """
        return self.predict_marginals([xseq])[0]

    def score_sequences(self, X: Any, y: Any, *, lengths: ArrayLike | None = None) -> Floats:
        """Return the log-probability of given labellings.

        Parameters
        ----------
        X, lengths
            As in :meth:`decision_scores`.
        y : list of lists of labels
            One labelling for each sequence.

        Returns
        -------
        array of shape (n_sequences,)
            log p(y | x); minus infinity for a labelling that is not allowed.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import CRF
        >>> model = CRF().fit([[["a"], ["b"]]], [["x", "y"]])
        >>> labellings = [["x", "x"], ["x", "y"], ["y", "x"], ["y", "y"]]
        >>> np.exp(model.score_sequences([[["a"], ["b"]]] * 4, labellings)).sum().round(6)
        np.float64(1.0)
        """
        scores = self.decision_scores(X, lengths=lengths)
        codes = self.labels_.encode(y, scores.offsets)
        total = self.structure_.log_partition(scores, **self._heat())
        found = self.structure_.score(scores, codes, n_jobs=self.n_jobs)
        return np.asarray((found - total) / self._of_fit("temperature"))

    def k_best(self, X: Any, k: int, *, lengths: ArrayLike | None = None) -> list[list[tuple[Any, float]]]:
        """Return the k most probable labellings of each sequence, best first.

        Parameters
        ----------
        X, lengths
            As in :meth:`decision_scores`.
        k : int
            How many; a sequence that has fewer gets fewer.

        Returns
        -------
        list of lists of (labels, probability)
            The first labels are those of :meth:`predict`.

        Examples
        --------
        >>> from dualfield import CRF
        >>> model = CRF().fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]])
        >>> [(labels, round(p, 2)) for labels, p in model.k_best([[["a"]]], 2)[0]]
        [(['x'], 0.65), (['y'], 0.35)]
        """
        check_integer(type(self).__name__ + ".k_best", "k", k, 1)
        scores = self.decision_scores(X, lengths=lengths)
        best = self.structure_.k_best(scores, int(k), n_jobs=self.n_jobs)
        total = self.structure_.log_partition(scores, **self._heat())
        probability = np.exp((best.scores - total[:, None]) / self._of_fit("temperature"))
        found = np.isfinite(best.scores)
        ranked = [self._decoded(np.maximum(codes, 0), scores.offsets) for codes in best.labels]
        return [
            [(ranked[r][i], float(probability[i, r])) for r in range(int(k)) if found[i, r]]
            for i in range(scores.n_examples)
        ]

    def sample(
        self, X: Any, n_samples: int = 1, *, random_state: Any = None, lengths: ArrayLike | None = None
    ) -> list[list[Any]]:
        """Draw labellings from the model's distribution.

        Parameters
        ----------
        X, lengths
            As in :meth:`decision_scores`.
        n_samples : int, default=1
            Draws for each sequence.
        random_state : int, RandomState or None, default=None
            Seed.

        Returns
        -------
        list of lists of labellings
            ``n_samples`` for each sequence.

        Examples
        --------
        >>> from dualfield import CRF
        >>> draws = CRF().fit([[["a"], ["b"]]], [["x", "y"]]).sample([[["a"]]], 5, random_state=0)
        >>> len(draws[0]), len(draws[0][0])
        (5, 1)
        """
        scores = self.decision_scores(X, lengths=lengths)
        draws = self.structure_.sample(scores, n_samples, random_state=random_state, **self._heat())
        by_draw = [self._decoded(codes, scores.offsets) for codes in draws]
        return [[one[i] for one in by_draw] for i in range(scores.n_examples)]

    def score(self, X: Any, y: Any, *, lengths: ArrayLike | None = None) -> float:
        """Return the share of nodes whose label is predicted right.

        Parameters
        ----------
        X, lengths
            As in :meth:`decision_scores`.
        y : list of lists of labels
            True labels; those not seen in training count as errors.

        Returns
        -------
        float
            In [0, 1].

        Examples
        --------
        >>> from dualfield import CRF
        >>> CRF().fit([[["a"], ["b"]]], [["x", "y"]]).score([[["a"], ["b"]]], [["x", "z"]])
        0.5
        """
        predicted = self.predict(X, lengths=lengths)
        if len(predicted) != len(y):
            raise ValueError(f"y must have a labelling for each of the {len(predicted)} sequences. Got {len(y)}.")
        if self.structure_.is_flat:
            return (
                float(np.mean([guess == truth for guess, truth in zip(predicted, y, strict=True)])) if len(y) else 1.0
            )
        right = total = 0
        for i, (guess, truth) in enumerate(zip(predicted, y, strict=True)):
            if len(guess) != len(truth):
                raise ValueError(f"y[{i}] has {len(truth)} labels; X[{i}] has {len(guess)} nodes.")
            right += sum(a == b for a, b in zip(guess, truth, strict=True))
            total += len(truth)
        return right / total if total else 1.0

    @property
    def coef_(self) -> scipy.sparse.csr_array | Floats:
        """Weights of the columns, shape (n_labels, n_columns): sparse for attributes, dense for dense input."""
        check_is_fitted(self)
        self._need_columns("coef_")
        weights = self.score_map_.state_weights(self.parameters_)
        return weights if self.vocabulary_ is not None else weights.toarray()

    @property
    def transitions_(self) -> Floats:
        """Weights of transitions, shape (n_labels, n_labels), label on the left first; (n_cliques,) above order 1."""
        check_is_fitted(self)
        cliques = self.score_map_.unpack_shared(self.parameters_)[0]
        return self.structure_.table_of(cliques)

    @property
    def start_(self) -> Floats:
        """Weights of the first label, shape (n_labels,)."""
        check_is_fitted(self)
        return self.score_map_.unpack(self.parameters_).start

    @property
    def stop_(self) -> Floats:
        """Weights of the last label, shape (n_labels,)."""
        check_is_fitted(self)
        return self.score_map_.unpack(self.parameters_).stop


def _split(rows: NDArray[Any], offsets: Sequence[int] | NDArray[Any]) -> list[NDArray[Any]]:
    return [rows[a:b] for a, b in itertools.pairwise(offsets)]
