"""What a fitted HMM consists of, and how it scores observations."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from dualfield import _native
from dualfield.data import Batch, Labels, Vocabulary
from dualfield.data.observations import Observations, read_streams
from dualfield.estimators.hmm_training import read_states
from dualfield.estimators.tagger import SequenceTagger
from dualfield.scores.stored import Scored
from dualfield.scores.tables import TableLayout, Tables, clamped
from dualfield.solvers import Status
from dualfield.structures import Scores
from dualfield.structures.checks import n_threads

__all__ = ["TableTagger"]

Floats = NDArray[np.float64]


class TableTagger(SequenceTagger):
    """A tagger whose weights are tables of log-probabilities.

    Rows that sum to less than one are used as they are: probabilities of states are those given that nothing was
    unknown. To normalise rows would change the predictions that they were trained for.

    Attributes
    ----------
    symbols_ : array, or list of arrays
        The symbols with columns of their own, sorted; a list for several streams.
    rare_classes_ : list of str, or list of lists
        The classes of rare symbols; their columns come after those of symbols.

    Examples
    --------
    >>> from dualfield import DiscriminativeHMM
    >>> from dualfield.estimators.hmm_prediction import TableTagger
    >>> issubclass(DiscriminativeHMM, TableTagger)
    True
    """

    floor: float
    unknown: str
    observations_: Observations
    layout_: TableLayout
    symbols_: Any
    rare_classes_: Any

    def _keep_tables(self, observations: Observations, labels: Labels, layout: TableLayout, parameters: Floats) -> None:
        """Set what predictions need."""
        tables = layout.unpack(parameters)
        unknown = [np.log(np.maximum(_missing(table), float(self.floor))) for table in tables.emission]
        self.labels_, self.classes_ = labels, labels.classes
        self.observations_, self.layout_ = observations, layout
        self.vocabulary_, self.pair_vocabulary_ = Vocabulary.from_attributes(observations.attributes()), None
        self.score_map_, self.structure_ = layout.score_map, layout.score_map.structure
        self.parameters_ = layout.with_unknown(parameters, unknown)
        self.n_features_ = sum(table.size for table in tables.every())
        self.symbols_ = _single([table.symbols for table in observations.tables])
        self.rare_classes_ = _single([list(table.classes) for table in observations.tables])

    def _tables(self) -> Tables:
        """Return the tables of log-probabilities."""
        check_is_fitted(self)
        return self.layout_.unpack(self.parameters_)

    @property
    def startprob_(self) -> Floats:
        """Probabilities of the first state, shape (n_states,)."""
        return np.asarray(np.exp(self._tables().start))

    @property
    def transmat_(self) -> Floats:
        """Probabilities of the next state, shape (n_states, n_states), a row for each state before it."""
        return np.asarray(np.exp(self._tables().transition))

    @property
    def emissionprob_(self) -> Any:
        """Probabilities of symbols, shape (n_states, n_symbols), a row for each state; a list for several streams.

        Columns are ``symbols_``, then ``rare_classes_``.
        """
        return _single([np.exp(table) for table in self._tables().emission])

    @property
    def missing_mass_(self) -> dict[str, Any]:
        """What rows lack to one, for "start", "transition" and "emission" (a list for several streams).

        The probability of something unknown; 0 up to rounding in most rows. NaN unless the fit has converged: before
        that a row may lack what the solution does not.
        """
        tables = self._tables()
        lacks = [_missing(table) for table in tables.every()]
        if self.status_ is not Status.CONVERGED:
            lacks = [np.full_like(lack, np.nan) for lack in lacks]
        return {"start": float(lacks[0]), "transition": lacks[1], "emission": _single(lacks[2:])}

    def _read(self, X: Any, lengths: ArrayLike | None) -> tuple[Batch, Batch | None]:
        check_is_fitted(self)
        return self.observations_.batch(read_streams(X, lengths), self.unknown), None

    def _scored(self, X: Any, lengths: ArrayLike | None) -> Scored:
        nodes, _ = self._read(X, lengths)
        return Scored(self.score_map_, self.parameters_, nodes, None)

    def _plain_scores(self, X: Any, lengths: ArrayLike | None) -> Scores:
        """Return scores, also of sequences that are impossible."""
        return super()._scores(X, lengths)

    def _scores(self, X: Any, lengths: ArrayLike | None) -> Scores:
        return self._known_scores(X, None, lengths)

    def _known_scores(self, X: Any, known: Any, lengths: ArrayLike | None, *, name: str = "known") -> Scores:
        """Return scores in which no other state competes with known ones; every sequence must be possible."""
        scores = self._plain_scores(X, lengths)
        if known is not None:
            found = read_states(known, scores.offsets, self.labels_, name=name)
            allowed = found.allowed
            if allowed is None:
                allowed = found.codes[:, None] == np.arange(len(self.labels_))
            scores = clamped(scores, allowed)
        if np.isfinite(self.parameters_).all():
            return scores
        possible = self.structure_.is_possible(scores, n_jobs=self.n_jobs)
        if not possible.all():
            raise ValueError(impossible(f"X[{int(possible.argmin())}]"))
        return scores

    def predict(self, X: Any, *, known: Any = None, lengths: ArrayLike | None = None) -> list[Any]:
        """Return the most probable states of each sequence, by the algorithm of Viterbi.

        Parameters
        ----------
        X : list of sequences, or flat list or array with `lengths`
            Observations, as in ``fit``.
        known : list of lists of labels, default=None
            States that are known; None at a node: to be predicted.
        lengths : array of int, default=None
            How many items of a flat `X` each sequence has.

        Returns
        -------
        list of lists, or of arrays if the training labels were arrays
            States.

        Examples
        --------
        >>> from dualfield import DiscriminativeHMM
        >>> model = DiscriminativeHMM(eta=0.0).fit([["a", "b", "a"]], [["x", "y", "x"]])
        >>> model.predict([["a", "b"]]), model.predict([["a", "b"]], known=[["y", None]])
        ([['x', 'y']], [['y', 'y']])
        """
        check_is_fitted(self)
        if known is None and np.isfinite(self.parameters_).all():
            score_map, parameters, nodes, _ = self._scored(X, lengths)
            codes, offsets = _native.tag(score_map.bind(nodes), parameters, n_threads(self.n_jobs)), nodes.offsets
        else:
            scores = self._known_scores(X, known, lengths)
            codes, offsets = self.structure_.argmax(scores, n_jobs=self.n_jobs), scores.offsets
        result: list[Any] = self.labels_.decode(codes, offsets)
        return result

    def predict_proba(
        self, X: Any, *, pairwise: bool = False, known: Any = None, lengths: ArrayLike | None = None
    ) -> Any:
        """Return the probability of each state at each node, given all observations.

        Parameters
        ----------
        X, known, lengths
            As in :meth:`predict`.
        pairwise : bool, default=False
            Also return the probability of each pair of neighbouring states.

        Returns
        -------
        list of arrays of shape (T_i, n_states)
            Rows sum to 1; columns follow ``classes_``. With `pairwise`, a second list of arrays of shape
            (T_i - 1, n_states, n_states), state on the left first.

        Examples
        --------
        >>> from dualfield import DiscriminativeHMM
        >>> model = DiscriminativeHMM(eta=0.0, smoothing=1.0).fit([["a", "b", "a"]], [["x", "y", "x"]])
        >>> model.predict_proba([["a", "b"]])[0].round(2)
        array([[0.86, 0.14],
               [0.2 , 0.8 ]])
        """
        if known is None:
            return super().predict_proba(X, pairwise=pairwise, lengths=lengths)
        scores = self._known_scores(X, known, lengths)
        answer = self.structure_.marginals(scores, cliques="each" if pairwise else None, n_jobs=self.n_jobs)
        nodes = [answer.node[a:b] for a, b in itertools.pairwise(scores.offsets.tolist())]
        if answer.clique is None:
            return nodes
        edges = np.concatenate([[0], np.cumsum(scores.lengths - 1)]).tolist()
        return nodes, [answer.clique[a:b] for a, b in itertools.pairwise(edges)]


def impossible(what: str, where: str = "") -> str:
    """Say that observations cannot be."""
    return (
        f"{what} is impossible under the model{where}: no path of states has a probability above 0. Fit with smoothing "
        "above 0, or with a prior without zeros."
    )


def _missing(table: Floats) -> Floats:
    """Return what the rows of a table of log-probabilities lack to one."""
    return np.asarray(np.maximum(1.0 - np.exp(table).sum(axis=-1), 0.0))


def _single(parts: list[Any]) -> Any:
    """Return the one part that there is, or all of them."""
    return parts[0] if len(parts) == 1 else parts
