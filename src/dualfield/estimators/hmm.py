"""Hidden Markov models trained on labelled sequences, by counting or for their predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from dualfield.data import CompiledCorpus
from dualfield.data.arrays import Floats
from dualfield.data.checks import check_choice, check_integer
from dualfield.data.costs import cost_table
from dualfield.data.observations import Observations
from dualfield.data.records import Record
from dualfield.estimators.base import Estimator, fitted, fitting
from dualfield.estimators.checks import check_floor, table_rule, table_solver
from dualfield.estimators.prediction import StructuredPredictor
from dualfield.estimators.running import check_memory, run
from dualfield.models.corpus_training import storage_of
from dualfield.models.generative.hmm import HiddenMarkovModel, missing_mass, single
from dualfield.models.generative.hmm_corpus import CorpusMargins, HMMCorpus, read_hmm_corpus
from dualfield.models.generative.hmm_reference import check_positive, check_smoothing, reference_tables
from dualfield.models.generative.hmm_training import HMMData, read_training
from dualfield.models.generative.margin_training import MarginTraining
from dualfield.models.generative.state_filter import StateFilter
from dualfield.scores.tables import Tables, logarithms, normalised
from dualfield.solvers import Simplicial, Solution, Status
from dualfield.solvers.convergence import warn_unless_converged
from dualfield.structures.checks import n_threads

__all__ = ["DiscriminativeHMM"]


class DiscriminativeHMM(StructuredPredictor, Estimator):
    r"""Hidden Markov model of labelled sequences: counted, or trained for its predictions with a certified gap.

    States s are the labels, observations o are symbols, and the parameters are logarithms of tables of probabilities,

    .. math::
        \log P(s, o) = \theta_{s_1} + \sum_t \theta_{s_t, s_{t+1}} + \sum_t \theta_{s_t, o_t} .

    With ``eta=0`` the tables are counted: the maximum-likelihood HMM, smoothed. With ``eta > 0`` they minimise

    .. math::
        \sum_i |c_i| \, \mathrm{KL}(c_i / |c_i| \,\|\, e^{\theta_i}) + \eta \sum_k v_k \max_s \,
        [ \Delta(s_k, s) + \log P(s, o_k) - \log P(s_k, o_k) ]
        \quad \text{subject to} \quad \mathbf{1}^\top e^{\theta_i} \le 1, \; \theta \ge \log(\mathrm{floor})

    over the rows i of the tables and the sequences k with weights v_k: near the counts c, and such that the true states
    beat all others by what these cost (Yu, Bertsekas and Rousu). The problem is convex if all labels are known.

    Parameters
    ----------
    eta : float, default=0.01
        Weight of the margins; 0: count only. Useful values are near 0.01 with ``prior="prob"``, near 1 with "count".
    prior : {"prob", "count", "uniform"} or dict of arrays, default="prob"
        c of the formula: smoothed rows of probabilities; smoothed counts, which says that a row often seen is trusted
        more; rows that are uniform, and that with ``eta=0`` give uniform tables; or what is given for "start",
        "transition" and "emission" (a list for several streams), a row for each state. A table that a dict does not
        have is that of "prob".
    smoothing : float or dict, default=0.1
        Added to every count; a dict has floats for "start", "transition" and "emission" (or a list, one for each
        stream), 0.1 for those that it lacks. With 0 and ``eta=0`` probabilities of 0 are possible; rows without any
        count are uniform.
    floor : float, default=1e-11
        The least probability that margins may lead to.
    loss : {"hamming"} or array of shape (n_states, n_states), default="hamming"
        Δ of the formula adds up 1 for each wrong state, or the cost of a state (column) where another is true (row).
    min_count : int, default=1
        Symbols seen less often in training are rare: they share a column with others of their class.
    rare : None, "shape" or callable, default=None
        The class of a rare symbol: one for all; by the looks of a word (capitals, digits, hyphens, English endings);
        or what the callable returns for a symbol. Symbols not seen in training go to their class as well.
    unknown : {"skip", "mass", "error"}, default="skip"
        What becomes of a symbol not seen in training if its class was not seen either; so always with ``min_count=1``.
        It says nothing about the state; or it scores the logarithm of what the state's row lacks to one, at least
        `floor`; or it is refused.
    solver : "simplicial" or Simplicial, default="simplicial"
        The solver for ``eta > 0``. An object has its own `max_columns` and `n_blocks`.
    tol : float, default=1e-2
        On the relative duality gap, gap / dual value.
    max_iter : int, default=None
        Limit on rounds of the solver; None: 10000.
    max_columns, n_blocks
        As in :class:`dualfield.solvers.Simplicial`.
    n_jobs : int, default=None
        Threads. Results do not depend on it.
    warm_start : bool, default=False
        Whether a fit begins at the tables of the one before, if it has the same states and symbols.
    verbose : int, default=0
        1: a live line; 2: a line for every look.

    Attributes
    ----------
    classes_ : array of shape (n_states,)
        The states, sorted; the order of rows and columns.
    symbols_ : array, or list of arrays
        The symbols with columns of their own, sorted; a list for several streams.
    rare_classes_ : list of str, or list of lists
        The classes of rare symbols; their columns come after those of symbols.
    objective_, dual_gap_ : float
        The minimised value, and a bound on its distance from the minimum. Where labels are unknown, the bound is that
        of the last convex problem.
    n_completions_ : int
        How often unknown states were filled in, each time followed by a convex problem; 0 if all are known.
    n_iter_, solver_, status_, trace_
        Rounds and name of the solver, how it ended, and its course.

    See Also
    --------
    dualfield.CRF : Features of any kind, without a model of the observations.

    Notes
    -----
    Labels that are None are states that are not known. Counts are then those of EM with the known states fixed: at most
    100 steps, until one gains less than 1e-6 of the log-likelihood with its smoothing. With ``eta > 0`` training
    alternates between the best states that agree with what is known and the convex problem for these, in which mistakes
    at unknown states cost nothing: until they stay the same, at most 20 times. The objective never rises.

    Examples
    --------
    >>> from dualfield import DiscriminativeHMM
    >>> X = [["the", "dog", "barks"], ["the", "cat", "sleeps"], ["dogs", "bark"]]
    >>> y = [["D", "N", "V"], ["D", "N", "V"], ["N", "V"]]
    >>> model = DiscriminativeHMM(eta=0.0).fit(X, y)
    >>> model.predict([["the", "bird", "barks"]])
    [['D', 'N', 'V']]
    >>> model.transmat_.round(2)
    array([[0.04, 0.91, 0.04],
           [0.03, 0.03, 0.94],
           [0.33, 0.33, 0.33]])
    """

    _saved_as = "DiscriminativeHMM"
    _model_type = HiddenMarkovModel
    _counted: ClassVar[dict[str, type]] = {"n_completions_": int}
    n_completions_: int
    observations_: Observations = fitted("observations")
    symbols_: Any = fitted("symbols")
    rare_classes_: Any = fitted("rare_classes")

    def __init__(
        self,
        eta: float = 0.01,
        *,
        prior: str | Mapping[str, Any] = "prob",
        smoothing: float | Mapping[str, Any] = 0.1,
        floor: float = 1e-11,
        loss: str | ArrayLike = "hamming",
        min_count: int = 1,
        rare: Literal["shape"] | Callable[[Any], Any] | None = None,
        unknown: str = "skip",
        solver: str | Simplicial = "simplicial",
        tol: float = 1e-2,
        max_iter: int | None = None,
        max_columns: int = 60,
        n_blocks: int | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.eta = eta
        self.prior = prior
        self.smoothing = smoothing
        self.floor = floor
        self.loss = loss
        self.min_count = min_count
        self.rare = rare
        self.unknown = unknown
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_columns = max_columns
        self.n_blocks = n_blocks
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    @fitting
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        hidden: Any = None,
        lengths: ArrayLike | None = None,
        memory: float | None = None,
    ) -> Self:
        """Train on labelled sequences.

        Parameters
        ----------
        X : list of sequences, flat list or array with `lengths`, or CompiledCorpus
            A sequence is a list or array of symbols, all str or all int; or of tuples of symbols, or an array of shape
            (T, n_streams), for several streams, which are independent given the state. Or a
            :class:`dualfield.data.CompiledCorpus`, without the other arguments but `memory`: the first attribute of
            a token is its symbol in the first stream, and so on. Where a template made them, each of its lines is a
            stream; what stands before the first macro, as ``U0:``, is no part of the symbol.
        y : list of lists of labels
            str, int or bool. None, or a set of labels, at a node means that its state is not known, or only in part.
        sample_weight : array of shape (n_sequences,), default=None
            Weights v_k of at least 0, of counts and margins.
        hidden : list of arrays of bool, default=None
            The states that the model will have to predict. The others are known at prediction, too (see `known` in
            :meth:`predict`): no other state competes with them in a margin. None: all.
        lengths : array of int, default=None
            How many items of a flat `X` each sequence has.
        memory : float, default=None
            With a :class:`dualfield.data.CompiledCorpus`: bytes for tables, symbols, planes and their mixtures, and
            the block that is read; None is 4e9. A budget that is too small is refused. None with other input.

        Returns
        -------
        DiscriminativeHMM
            The fitted model.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import DiscriminativeHMM
        >>> X, y = np.array([0, 1, 1, 0, 2]), np.array([0, 1, 1, 0, 1])
        >>> model = DiscriminativeHMM(eta=0.1, tol=1e-6).fit(X, y, lengths=[3, 2])
        >>> model.predict(X, lengths=[3, 2])
        [array([0, 1, 1]), array([0, 1])]
        """
        solver = self._check_parameters()
        owner, least = type(self).__name__, int(self.min_count)
        data: HMMData | HMMCorpus
        if isinstance(X, CompiledCorpus):
            limit = storage_of(owner, memory, None).memory
            given = {"y": y, "sample_weight": sample_weight, "hidden": hidden, "lengths": lengths}
            data = read_hmm_corpus(owner, X, least, self.rare, limit, **given)
        else:
            check_memory(memory)
            data = read_training(owner, X, y, sample_weight, hidden, lengths, least, self.rare)
        cost = cost_table(owner, "loss", self.loss, data.labels.classes.tolist())
        smoothing = check_smoothing(owner, self.smoothing, data.layout)
        counts = self._counts(data, smoothing)
        reference = reference_tables(owner, self.prior, counts, smoothing)
        if float(self.eta) == 0.0:
            tables = data.layout.pack(logarithms(normalised(reference)))
            solution, self.n_completions_ = Solution.exact(tables, "counting"), 0
        else:
            check_positive(owner, reference)
            check_floor(self, data.layout.pack(reference), data.layout.rows())
            settings = float(self.eta), float(self.floor), n_threads(self.n_jobs)
            training: MarginTraining | CorpusMargins
            if isinstance(data, HMMCorpus):
                training = CorpusMargins(data, reference, cost, *settings, memory=limit)
            else:
                training = MarginTraining(data, reference, cost, *settings)
            rule, start = table_rule(self), self._warm_start(data)
            solution = run(self, lambda callbacks, seed: training.solve(solver, rule, start, callbacks))
            self.n_completions_ = training.n_completions
        model = HiddenMarkovModel.of(
            data.observations, data.labels, data.layout, solution.parameters, float(self.floor), self.unknown
        )
        self._keep(model, solution)
        warn_unless_converged(solution, float(self.tol))
        return self

    def _counts(self, data: HMMData | HMMCorpus, smoothing: Tables) -> Tables:
        if isinstance(data, HMMCorpus):
            return data.counts
        if data.allowed is None:
            return data.layout.counts(data.batch, data.states, data.weights)
        return data.layout.em_counts(
            data.batch, data.states, data.allowed, data.weights, smoothing, n_threads(self.n_jobs)
        )

    def _warm_start(self, data: HMMData | HMMCorpus) -> Floats | None:
        """Return the tables of the fit before, if they are of the same states and symbols."""
        old: HiddenMarkovModel | None = self._previous() if self.warm_start else None
        if old is None:
            return None
        before, now = ([table.names for table in one.tables] for one in (old.observations, data.observations))
        if not np.array_equal(old.classes, data.labels.classes) or before != now:
            return None
        lowest = float(np.log(self.floor))
        return data.layout.pack(old.tables.map(lambda table: np.maximum(table, lowest)))

    def _restore_model(self, record: Record) -> None:
        self._model = HiddenMarkovModel.from_record(record, self.rare, float(self.floor), self.unknown)

    def _ask(self) -> HiddenMarkovModel:
        model: HiddenMarkovModel = self.model_
        return model if model.unknown == self.unknown else replace(model, unknown=self.unknown)

    @property
    def startprob_(self) -> Floats:
        """Probabilities of the first state, shape (n_states,)."""
        return np.asarray(np.exp(self.model_.tables.start))

    @property
    def transmat_(self) -> Floats:
        """Probabilities of the next state, shape (n_states, n_states), a row for each state before it."""
        return np.asarray(np.exp(self.model_.tables.transition))

    @property
    def emissionprob_(self) -> Any:
        """Probabilities of symbols, shape (n_states, n_symbols), a row for each state; a list for several streams.

        Columns are ``symbols_``, then ``rare_classes_``.
        """
        return single([np.exp(table) for table in self.model_.tables.emission])

    @property
    def missing_mass_(self) -> dict[str, Any]:
        """What rows lack to one, for "start", "transition" and "emission" (a list for several streams).

        The probability of something unknown; 0 up to rounding in most rows. NaN unless the fit has converged: before
        that a row may lack what the solution does not.
        """
        lacks = [missing_mass(table) for table in self.model_.tables.every()]
        if self.status_ is not Status.CONVERGED:
            lacks = [np.full_like(lack, np.nan) for lack in lacks]
        return {"start": float(lacks[0]), "transition": lacks[1], "emission": single(lacks[2:])}

    # Chains are exact: there are no bounds to return.
    def predict(  # type: ignore[override]
        self, X: Any, *, known: Any = None, lengths: ArrayLike | None = None
    ) -> list[Any]:
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
        found: list[Any] = self._ask().predict(X, lengths, n_threads(self.n_jobs), known=known)
        return found

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
        return self._ask().predict_proba(X, lengths, n_threads(self.n_jobs), pairwise=pairwise, known=known)

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
            log P(observations, states that are known); with ``unknown="skip"``, of the symbols that are known. It is
            that of the tables: the temperature of :meth:`calibrate` takes no part.

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
        model, threads = self._ask(), n_threads(self.n_jobs)
        scores = model.scores(X, lengths, threads, known=y, name="y")
        return model.structure.log_partition(scores, n_jobs=threads)

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
        return self._ask().filter(X, lengths, n_threads(self.n_jobs))

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
        return StateFilter(self._ask())

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
        model, owner = self._ask(), f"{type(self).__name__}.sample"
        check_integer(owner, "n_sequences", n_sequences, 1)
        lengths = np.asarray(length)
        if lengths.dtype.kind not in "iu" or lengths.shape not in ((), (n_sequences,)) or not (lengths >= 1).all():
            raise ValueError(
                f"The 'length' parameter of {owner} must be an int in [1, inf), or {n_sequences} of them. "
                f"Got {length!r} instead."
            )
        every = np.broadcast_to(lengths, (int(n_sequences),)).astype(np.int64)
        return model.new_sequences(every, check_random_state(random_state))

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

    def _check_restored(self) -> None:
        self._check_parameters()

    def _check_parameters(self) -> Any:
        owner = type(self).__name__
        check_integer(owner, "min_count", self.min_count, 1)
        if self.rare is not None and not callable(self.rare):
            check_choice(owner, "rare", self.rare, ("shape",), "None, a callable")
        check_choice(owner, "unknown", self.unknown, ("skip", "mass", "error"))
        return table_solver(self)
