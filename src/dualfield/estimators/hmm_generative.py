"""What only a generative model can be asked: how probable observations are, states as they come in, new sequences."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from dualfield.data.checks import check_integer
from dualfield.estimators.hmm_prediction import TableTagger, impossible
from dualfield.scores.tables import Tables, normalised

__all__ = ["GenerativeTagger", "StateFilter"]

Floats = NDArray[np.float64]
_SMALL_SUM = 1e-200  # terms that underflow are below 1e-307, so that a larger sum has them right


class GenerativeTagger(TableTagger):
    """A model of states and observations together.

    Tables are used as they are, also where rows sum to less than one: probabilities are those given that nothing was
    unknown.

    Examples
    --------
    >>> from dualfield import DiscriminativeHMM
    >>> from dualfield.estimators.hmm_generative import GenerativeTagger
    >>> issubclass(DiscriminativeHMM, GenerativeTagger)
    True
    """

    def score_samples(self, X: Any, y: Any = None, *, lengths: ArrayLike | None = None) -> Floats:
        """Return the log-probability of observations, or of states and observations together.

        Parameters
        ----------
        X : list of sequences, or flat list or array with `lengths`
            Observations, as in ``fit``.
        y : list of lists of labels, default=None
            States; None where one is not known, which sums over it. None: no state is known.
        lengths : array of int, default=None
            How many items of a flat `X` each sequence has.

        Returns
        -------
        array of shape (n_sequences,)
            log P(observations, states that are known); with ``unknown="skip"``, of the symbols that are known.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import DiscriminativeHMM
        >>> model = DiscriminativeHMM(eta=0.0).fit([["a", "b", "b"]], [["x", "x", "y"]])
        >>> total = model.score_samples([["a"]])
        >>> joint = model.score_samples([["a"], ["a"]], [["x"], ["y"]])
        >>> bool(np.isclose(np.exp(joint).sum(), np.exp(total[0])))
        True
        """
        scores = self._known_scores(X, y, lengths, name="y")
        return self.structure_.log_partition(scores, n_jobs=self.n_jobs)

    def filter(self, X: Any, *, lengths: ArrayLike | None = None) -> list[Floats]:
        r"""Return the probability of each state given the observations so far: no look ahead.

        .. math::
            \alpha_t(s) \propto P(o_t \mid s) \sum_{s'} \alpha_{t-1}(s') P(s \mid s')

        Parameters
        ----------
        X, lengths
            As in :meth:`score_samples`.

        Returns
        -------
        list of arrays of shape (T_i, n_states)
            P(state at t | observations up to t). The last row is that of ``predict_proba``, which looks at all.

        Examples
        --------
        >>> from dualfield import DiscriminativeHMM
        >>> model = DiscriminativeHMM(eta=0.0).fit([["a", "b", "b", "b"]] * 9, [["x", "x", "y", "y"]] * 9)
        >>> model.filter([["a", "b", "b"]])[0].round(2)
        array([[1.  , 0.  ],
               [0.33, 0.67],
               [0.1 , 0.9 ]])
        """
        scores = self._plain_scores(X, lengths)
        assert scores.transition is not None
        assert scores.start is not None
        step = _FilterStep(scores.start, scores.transition.reshape(scores.n_labels, scores.n_labels))
        order = np.argsort(-scores.lengths, kind="stable")  # the longest first: those still running are a range
        lengths_left = scores.lengths[order]
        out = np.empty_like(scores.node)
        logs: Floats | None = None
        for t in range(int(lengths_left[0])):
            running = int(np.searchsorted(-lengths_left, -t, side="left"))
            at = scores.offsets[order[:running]] + t
            logs, totals = step(None if logs is None else logs[:running], scores.node[at])
            if not np.isfinite(totals).all():
                sequence = int(order[int(np.argmin(np.isfinite(totals)))])
                raise ValueError(impossible(f"X[{sequence}]", f" up to position {t}"))
            out[at] = np.exp(logs)
        return [out[a:b] for a, b in itertools.pairwise(scores.offsets.tolist())]

    def start_filter(self) -> StateFilter:
        """Return a filter that is fed one observation at a time.

        Returns
        -------
        StateFilter
            At the start of a sequence.

        Examples
        --------
        >>> from dualfield import DiscriminativeHMM
        >>> model = DiscriminativeHMM(eta=0.0).fit([["a", "b", "b", "b"]] * 9, [["x", "x", "y", "y"]] * 9)
        >>> state = model.start_filter()
        >>> for symbol in ("a", "b", "b"):
        ...     state.step(symbol).round(2)
        array([1., 0.])
        array([0.33, 0.67])
        array([0.1, 0.9])
        """
        check_is_fitted(self)
        return StateFilter(self)

    def sample(  # type: ignore[override]
        self, n_sequences: int = 1, length: int | ArrayLike = 10, *, random_state: Any = None
    ) -> tuple[list[Any], list[Any]]:
        """Draw new sequences: states, and observations of them.

        Rows of tables that sum to less than one are normalised first.

        Parameters
        ----------
        n_sequences : int, default=1
            How many.
        length : int or array of shape (n_sequences,), default=10
            How long: an HMM does not say when a sequence ends.
        random_state : int, RandomState or None, default=None
            Seed.

        Returns
        -------
        X : list of lists or arrays
            Observations in the form that ``fit`` takes: arrays if all symbols are int, tuples for several streams. A
            class of rare symbols is drawn as its name, such as ``<rare>``.
        y : list of lists, or of arrays if the training labels were arrays
            States.

        Examples
        --------
        >>> from dualfield import DiscriminativeHMM
        >>> model = DiscriminativeHMM(eta=0.0, smoothing=0.0).fit([["a", "b", "a", "b"]], [["x", "y", "x", "y"]])
        >>> model.sample(2, 3, random_state=0)
        ([['a', 'b', 'a'], ['a', 'b', 'a']], [['x', 'y', 'x'], ['x', 'y', 'x']])
        """
        check_is_fitted(self)
        owner = f"{type(self).__name__}.sample"
        check_integer(owner, "n_sequences", n_sequences, 1)
        lengths = np.asarray(length)
        if lengths.dtype.kind not in "iu" or lengths.shape not in ((), (n_sequences,)) or not (lengths >= 1).all():
            raise ValueError(
                f"The 'length' parameter of {owner} must be an int in [1, inf), or {n_sequences} of them. "
                f"Got {length!r} instead."
            )
        rng = check_random_state(random_state)
        tables = normalised(self._tables().map(np.exp))
        lengths = np.broadcast_to(lengths, (int(n_sequences),)).astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        states = _drawn_states(tables, lengths, offsets, rng)
        streams = [_drawn(table[states], rng) for table in tables.emission]
        return self.observations_.decode(streams, offsets), self.labels_.decode(states, offsets)

    def sample_states(
        self, X: Any, n_samples: int = 1, *, random_state: Any = None, lengths: ArrayLike | None = None
    ) -> list[list[Any]]:
        """Draw states of given observations.

        Parameters
        ----------
        X, lengths
            As in :meth:`score_samples`.
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
        >>> from dualfield import DiscriminativeHMM
        >>> model = DiscriminativeHMM(eta=0.0).fit([["a", "b"]], [["x", "y"]])
        >>> len(model.sample_states([["a", "b", "b"]], 5, random_state=0)[0])
        5
        """
        return super().sample(X, n_samples, random_state=random_state, lengths=lengths)


class StateFilter:
    """The states of one sequence that is still coming in; made by :meth:`GenerativeTagger.start_filter`.

    Attributes
    ----------
    probabilities : array of shape (n_states,) or None
        P(state | observations so far); None before the first.
    log_likelihood : float
        Logarithm of the probability of the observations so far.
    n_steps : int
        How many there were.

    Examples
    --------
    >>> from dualfield import DiscriminativeHMM
    >>> state = DiscriminativeHMM(eta=0.0).fit([["a", "b"]], [["x", "y"]]).start_filter()
    >>> _ = state.step("a"), state.step("b")
    >>> state.n_steps, round(state.log_likelihood, 3)
    (2, -0.335)
    """

    def __init__(self, _model: Any) -> None:
        tables = _model._tables()
        self._model, self._step = _model, _FilterStep(tables.start, tables.transition)
        self._logs: Floats | None = None
        self.probabilities: Floats | None = None
        self.log_likelihood, self.n_steps = 0.0, 0

    def step(self, symbol: Any) -> Floats:
        """Take in one observation.

        Parameters
        ----------
        symbol : str or int, or tuple of them
            The observation; a tuple has one symbol for each stream.

        Returns
        -------
        array of shape (n_states,)
            P(state | observations so far).

        Examples
        --------
        >>> from dualfield import DiscriminativeHMM
        >>> DiscriminativeHMM(eta=0.0).fit([["a", "b"]], [["x", "y"]]).start_filter().step("a").round(3)
        array([0.992, 0.008])
        """
        logs, totals = self._step(self._logs, self._model._plain_scores([[symbol]], None).node)
        if not np.isfinite(totals[0]):
            raise ValueError(impossible(f"Observation {self.n_steps}, {symbol!r},", " after those before it"))
        self._logs, self.probabilities = logs, np.exp(logs[0])
        self.log_likelihood += float(totals[0])
        self.n_steps += 1
        return self.probabilities


class _FilterStep:
    """One step of the filter, for several sequences at once.

    States are kept as logarithms: a state whose probability is too small for a number may be the only one that later
    observations allow.
    """

    def __init__(self, start: Floats, transition: Floats) -> None:
        self.start, self.transition = start, transition  # logarithms
        self.plain, self.open = np.exp(transition), (transition > -np.inf).astype(np.float64)

    def __call__(self, before: Floats | None, node: Floats) -> tuple[Floats, Floats]:
        """Return log P(state | observations so far), and the log-probability of the observation given those before it.

        Rows of ``before`` and ``node`` are sequences; None: this is the first observation. A log-probability of -inf
        says that the observation is impossible; its row of states is then of no use.
        """
        joint = node + (self.start if before is None else self._ahead(before))
        peak = joint.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):  # -inf - -inf, where all is impossible
            totals = peak + np.log(np.exp(joint - peak).sum(axis=1, keepdims=True))
            logs = joint - totals
        return logs, np.where(np.isfinite(peak), totals, -np.inf)[:, 0]

    def _ahead(self, before: Floats) -> Floats:
        """Return the logarithm of the sum over the states before."""
        with np.errstate(divide="ignore", under="ignore"):
            sums = np.exp(before) @ self.plain
            ahead = np.log(sums)
        # A sum above this lost nothing that counts. One below it is made anew from logarithms, if it has a term at all.
        small = sums < _SMALL_SUM
        if small.any():
            small &= (before > -np.inf).astype(np.float64) @ self.open > 0.0
            for state in np.flatnonzero(small.any(axis=0)):
                rows = small[:, state]
                ahead[rows, state] = logsumexp(before[rows] + self.transition[:, state], axis=1)
        return np.asarray(ahead)


def _drawn(rows: Floats, rng: np.random.RandomState) -> NDArray[np.int64]:
    """Draw one entry of each row of probabilities."""
    sums = np.cumsum(rows, axis=1)
    # Scaled by the last sum, which rounding may leave below 1; never an entry of probability 0.
    places = (sums <= rng.random_sample(len(rows))[:, None] * sums[:, -1:]).sum(axis=1)
    return np.asarray(np.minimum(places, rows.shape[1] - 1), dtype=np.int64)


def _drawn_states(
    tables: Tables, lengths: NDArray[np.int64], offsets: NDArray[np.int64], rng: np.random.RandomState
) -> NDArray[np.int32]:
    """Draw the states of all sequences, step by step."""
    states = np.empty(int(offsets[-1]), dtype=np.int32)
    order = np.argsort(-lengths, kind="stable")
    for t in range(int(lengths.max())):
        running = order[: int(np.searchsorted(-lengths[order], -t, side="left"))]
        at = offsets[running] + t
        rows = np.tile(tables.start, (len(at), 1)) if t == 0 else tables.transition[states[at - 1]]
        states[at] = _drawn(rows, rng)
    return states
