"""Hidden Markov models trained on labelled sequences, by counting or for their predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data import Labels
from dualfield.data.checks import check_choice, check_integer
from dualfield.data.observations import Observations
from dualfield.data.records import Fields, Record
from dualfield.data.symbols import SymbolTable
from dualfield.estimators.base import fitting
from dualfield.estimators.hmm_generative import GenerativeTagger
from dualfield.estimators.hmm_prior import check_positive, check_smoothing, loss_table, reference_tables
from dualfield.estimators.hmm_training import HMMData, MarginTraining, counted, read_training
from dualfield.estimators.table_training import check_floor, table_rule, table_solver
from dualfield.estimators.trained import TrainedTagger
from dualfield.scores.tables import TableLayout, Tables
from dualfield.solvers import Simplicial
from dualfield.solvers.convergence import warn_unless_converged
from dualfield.structures.checks import n_threads

__all__ = ["DiscriminativeHMM"]

Floats = NDArray[np.float64]


class DiscriminativeHMM(GenerativeTagger, TrainedTagger):
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
    temperature = 1.0
    template = None
    kernel = None
    random_state = 0  # nothing is drawn
    n_completions_: int

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
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        hidden: Any = None,
        lengths: ArrayLike | None = None,
    ) -> Self:
        """Train on labelled sequences.

        Parameters
        ----------
        X : list of sequences, or flat list or array with `lengths`
            A sequence is a list or array of symbols, all str or all int; or of tuples of symbols, or an array of shape
            (T, n_streams), for several streams, which are independent given the state.
        y : list of lists of labels
            str, int or bool. None, or a set of labels, at a node means that its state is not known, or only in part.
        sample_weight : array of shape (n_sequences,), default=None
            Weights v_k of at least 0, of counts and margins.
        hidden : list of arrays of bool, default=None
            The states that the model will have to predict. The others are known at prediction, too (see `known` in
            :meth:`predict`): no other state competes with them in a margin. None: all.
        lengths : array of int, default=None
            How many items of a flat `X` each sequence has.

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
        owner = type(self).__name__
        data = read_training(owner, X, y, sample_weight, hidden, lengths, int(self.min_count), self.rare)
        cost = loss_table(owner, self.loss, len(data.labels))
        smoothing = check_smoothing(owner, self.smoothing, data.layout)
        counts = self._counts(data, smoothing)
        reference = reference_tables(owner, self.prior, counts, smoothing)
        if float(self.eta) == 0.0:
            solution, self.n_completions_ = counted(reference, data.layout), 0
        else:
            check_positive(owner, reference)
            check_floor(self, data.layout.pack(reference), data.layout.rows())
            training = MarginTraining(data, reference, cost, float(self.eta), float(self.floor), n_threads(self.n_jobs))
            rule, start = table_rule(self), self._warm_start(data)
            solution = self._run(
                lambda course, seed: training.solve(solver, rule, start, course), None, None, None, None
            )
            self.n_completions_ = training.n_completions
        self._keep_solution(solution)
        self._keep_tables(data.observations, data.labels, data.layout, solution.parameters)
        warn_unless_converged(solution, float(self.tol))
        return self

    def _counts(self, data: HMMData, smoothing: Tables) -> Tables:
        if data.allowed is None:
            return data.layout.counts(data.batch, data.states, data.weights)
        return data.layout.em_counts(
            data.batch, data.states, data.allowed, data.weights, smoothing, n_threads(self.n_jobs)
        )

    def _warm_start(self, data: HMMData) -> Floats | None:
        """Return the tables of the fit before, if they are of the same states and symbols."""
        if not self.warm_start or not hasattr(self, "labels_"):
            return None
        old, new = ([table.names for table in one.tables] for one in (self.observations_, data.observations))
        if not np.array_equal(self.classes_, data.labels.classes) or old != new:
            return None
        lowest = float(np.log(self.floor))
        return data.layout.pack(self._tables().map(lambda table: np.maximum(table, lowest)))

    def _model_record(self) -> Fields:
        return {
            "labels": self.labels_.record(),
            "streams": [table.record() for table in self.observations_.tables],
            "tables": self._tables().record(),
            "n_completions": int(self.n_completions_),
        }

    def _restore_model(self, record: Record) -> None:
        labels, streams = Labels.from_record(record.child("labels")), record.children("streams")
        record.check(bool(streams), "it must have records of streams of symbols, at least one.")
        observations = Observations([SymbolTable.from_record(one, self.rare) for one in streams])
        layout = TableLayout(len(labels), observations.sizes)
        tables = Tables.from_record(record.child("tables"), len(labels), observations.sizes)
        self.n_completions_ = record.integer("n_completions")
        self._keep_tables(observations, labels, layout, layout.pack(tables))

    def _check_restored(self) -> None:
        self._check_parameters()

    def _check_parameters(self) -> Any:
        owner = type(self).__name__
        check_integer(owner, "min_count", self.min_count, 1)
        if self.rare is not None and not callable(self.rare):
            check_choice(owner, "rare", self.rare, ("shape",), "None, a callable")
        check_choice(owner, "unknown", self.unknown, ("skip", "mass", "error"))
        return table_solver(self)
