"""Bayesian networks that are trained to predict: near the counts, with margins for what is hidden."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_y

from dualfield.data.arrays import Floats
from dualfield.data.checks import check_choice, check_integer, check_number
from dualfield.data.columns import MISSING, ValueTable, encode, read_table
from dualfield.data.records import Record
from dualfield.estimators.base import Estimator, fitted, fitting
from dualfield.estimators.calibrating import chosen
from dualfield.estimators.checks import check_floor, table_rule, table_solver
from dualfield.models.generative.bayes_net import BayesNet
from dualfield.models.labelling_order import LabellingOrder, labelling_order
from dualfield.models.temperature_scaling import Calibration, HeldOut
from dualfield.objectives import NetworkPlanes
from dualfield.objectives.network_data import NetworkData, NetworkTask, read_data
from dualfield.objectives.network_reference import PRIORS, floored, normalised, reference_tables, refuse_zeros
from dualfield.regularisers import TableDivergence
from dualfield.solvers import Simplicial, Solution
from dualfield.solvers.convergence import warn_unless_converged
from dualfield.solvers.progress import ProgressLine
from dualfield.structures import Network
from dualfield.structures.checks import n_threads
from dualfield.structures.network.naming import check_structure, hidden_cells, listed_structure

__all__ = ["DiscriminativeBayesNet"]


def _for(kind: str) -> Callable[[Any], bool]:
    """Return the check of a method that models of one kind have: of a class, or of a table."""

    def check(model: Any) -> bool:
        if "_model" in vars(model) and model._model.is_table != (kind == "table"):
            other = "predict_marginals is for it" if kind == "class" else "predict_proba has its probabilities"
            told = "a table, without y" if kind == "class" else "a class, with y"
            raise AttributeError(f"This model was fitted to {told}: {other}.")
        return True

    return check


class DiscriminativeBayesNet(ClassifierMixin, Estimator):  # type: ignore[misc]
    r"""Bayesian network whose tables are trained to predict hidden variables (Yu, Bertsekas and Rousu).

    With θ the logarithms of the tables, n(s, o) the number of times that hidden values s and known values o of a row
    use each entry, and :math:`s_k` the true hidden values of row k, it minimises

    .. math::
        \sum_i |c_i| \, \mathrm{KL}(c_i / |c_i| \,\|\, e^{\theta_i}) + \eta \sum_k v_k \max_s \,
        [ \langle n(s, o_k) - n(s_k, o_k), \theta \rangle + \ell(s, s_k) ]
        \quad \text{subject to} \quad \mathbf{1}^\top e^{\theta_i} \le 1 ,

    where i runs over the rows of all tables. The first term keeps every row near its reference :math:`c_i`, the network
    of counts; the second asks that the truth beats all other values by what they cost. With η = 0 the counts alone are
    the answer: naive Bayes, TAN, or a user-defined network, smoothed. A row may sum to less than one; what is missing
    is the probability of a value that is not in the table. The fit ends with a certificate: a bound on the distance
    from the minimum.

    With ``fit(X, y)`` it is a classifier: the columns of X are known, the class is hidden. With ``fit(X)`` all
    variables are columns, some cells of which are hidden, and ``predict`` fills in tables.

    Parameters
    ----------
    structure : "naive_bayes", "tan", list of (child, parents) or networkx.DiGraph, default="naive_bayes"
        The network. "tan" adds to naive Bayes the tree of the columns that is likeliest given the class. In a list,
        children and parents are names or numbers of columns, and "class" is y; who is not listed has no parents.
    shared : list of lists, or dict of lists, default=None
        Groups of children that have one table together: their counts add up. Their parents must have the same numbers
        of values; without ``categories``, columns with one place in a shared table have common categories.
    hidden : list of columns, default=None
        Without y: which columns are to be predicted. With y it is the class. See also :meth:`fit`.
    eta : float, default=0.01
        η, the weight of the margins. 0.001 to 1 is worth a search where ``prior="prob"``; with ``prior="count"`` one
        unit of margin counts as much as one nat of likelihood, and 0.1 to 10 is.
    prior : {"prob", "count", "uniform"}, dict or list of arrays, default="prob"
        c: the smoothed frequencies, rows summing to 1; the smoothed counts; 1 / number of values; or tables of your
        own, by child or in the order of the variables, each with an axis for each parent and one for the child.
    smoothing : float, default=1.0
        Added to every count, as alpha of :class:`sklearn.naive_bayes.CategoricalNB`, and to those of the classes; above
        0 unless η = 0.
    floor : float, default=1e-11
        The least probability in a table, below 1 / number of values. Where it raises one, the others of the row shrink.
    loss : "hamming" or array of shape (n_classes, n_classes), default="hamming"
        ℓ: the number of wrong hidden variables; or by true class (row) and class (column), zeros on the diagonal.
    categories : "auto" or list of arrays, default="auto"
        The values of each column, as in :class:`sklearn.preprocessing.OneHotEncoder`.
    unknown : {"skip", "error"}, default="skip"
        Values that are not among the categories: tables that they touch are left out, or an error names them.
    max_table : int, default=10**7
        The largest table, in numbers, of a variable and of exact inference for one row.
    solver : "simplicial" or Simplicial, default="simplicial"
        See :class:`dualfield.solvers.Simplicial`; an object has settings of its own.
    tol : float, default=1e-2
        Stop when duality gap / dual value is at most this.
    max_iter : int, default=None
        Most passes over the data; None is 10,000.
    max_columns : int, default=60
        How many planes each block of examples keeps.
    n_blocks : int or "auto", default="auto"
        Blocks of examples.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn; results do not depend on it.
    warm_start : bool, default=False
        Begin at the tables of the last fit, if the network is the same.
    verbose : int, default=0
        1: a live line of progress; 2: every look at the gap.

    Attributes
    ----------
    structure_ : list of (child, list of parents)
        The network, by names.
    tables_ : dict
        For each child P(child | parents), an array with an axis for each parent and one for the child.
    missing_mass_ : dict
        For each child what each row of its table lacks to 1. Read it only where the fit converged to a small gap.
    categories_ : list of arrays
        The values of each column.
    classes_ : array of shape (n_classes,)
        The classes, if there was a y.
    network_ : dualfield.structures.Network
        The variables and the layout of the tables.
    parameters_ : array of shape (n_parameters,)
        θ.
    objective_, dual_gap_ : float
        The minimised value, and a proven bound on its distance from the minimum.
    n_iter_, solver_, status_, trace_
        Iterations and name of the solver, how it ended, and its course. With η = 0 nothing is solved: "counting".
    calibration_ : Calibration
        How :meth:`calibrate` chose the temperature, once it was called.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of shape (n_features,)
        Their names, if X had names.

    See Also
    --------
    dualfield.CRF : A conditional model: it cannot say how likely a row is, and trains no tables.

    Notes
    -----
    Margins gain most where the network is most wrong, and nothing on some data: compare with ``eta=0``.

    Examples
    --------
    >>> from dualfield import DiscriminativeBayesNet
    >>> X = [["sun", "warm"], ["sun", "cold"], ["rain", "cold"], ["rain", "warm"], ["sun", "warm"]]
    >>> y = ["out", "out", "in", "in", "out"]
    >>> model = DiscriminativeBayesNet("naive_bayes", eta=0.1).fit(X, y)
    >>> model.predict([["rain", "cold"], ["sun", None]])
    array(['in', 'out'], dtype='<U3')
    >>> model.structure_
    [(0, ['class']), (1, ['class']), ('class', [])]
    """

    _saved_as = "DiscriminativeBayesNet"
    _asked_with = ("hidden",)
    network_: Network = fitted("network")
    parameters_: Floats = fitted("parameters")
    categories_: list[NDArray[Any]] = fitted("categories")
    classes_: NDArray[Any] = fitted("classes", is_optional=True)
    calibration_: Calibration = fitted("calibration", is_optional=True)
    structure_: list[tuple[Hashable, list[Hashable]]] = fitted("structure")
    tables_: dict[Hashable, Floats] = fitted("tables")
    missing_mass_: dict[Hashable, Floats] = fitted("missing_mass")

    def __init__(
        self,
        structure: Any = "naive_bayes",
        *,
        shared: Mapping[Any, Sequence[Any]] | Sequence[Sequence[Any]] | None = None,
        hidden: Sequence[Any] | None = None,
        eta: float = 0.01,
        prior: Literal["prob", "count", "uniform"] | Mapping[Any, ArrayLike] | Sequence[ArrayLike] = "prob",
        smoothing: float = 1.0,
        floor: float = 1e-11,
        loss: Literal["hamming"] | ArrayLike = "hamming",
        categories: Literal["auto"] | Sequence[ArrayLike] = "auto",
        unknown: Literal["skip", "error"] = "skip",
        max_table: int = 10**7,
        solver: Literal["simplicial"] | Simplicial = "simplicial",
        tol: float = 1e-2,
        max_iter: int | None = None,
        max_columns: int = 60,
        n_blocks: int | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.structure = structure
        self.shared = shared
        self.hidden = hidden
        self.eta = eta
        self.prior = prior
        self.smoothing = smoothing
        self.floor = floor
        self.loss = loss
        self.categories = categories
        self.unknown = unknown
        self.max_table = max_table
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_columns = max_columns
        self.n_blocks = n_blocks
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags

    @fitting
    def fit(
        self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *, hidden: Any = None
    ) -> Self:
        """Train the tables.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
            A table of categorical values: strings, whole numbers, or any numbers as codes. For a row in which a known
            cell is missing, the tables that it touches are left out; that is exact for columns without children.
        y : array of shape (n,), default=None
            Classes. None: all variables are columns of X.
        sample_weight : array of shape (n,), default=None
            Weights v of at least 0; they count in the reference and in the margins.
        hidden : bool array of shape (n, n_features), default=None
            Without y: the cells of each row that are to be predicted from the others. None: the ``hidden`` parameter.

        Returns
        -------
        DiscriminativeBayesNet
            The fitted model.

        Examples
        --------
        >>> from dualfield import DiscriminativeBayesNet
        >>> X = [["wet", "rain"], ["wet", "rain"], ["dry", "sun"], ["dry", "rain"]]
        >>> cells = [[True, False], [False, True], [True, False], [False, True]]
        >>> model = DiscriminativeBayesNet([(0, [1])], eta=0.1).fit(X, hidden=cells)
        >>> model.predict([[None, "sun"]])
        array([['dry', 'sun']], dtype=object)
        """
        solver = self._check_parameters()
        table = read_table(self, X, reset=True)
        if y is None and hidden is None and self.hidden is None and self.eta > 0:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. Without a class it needs "
                f"hidden, the columns or cells that are to be predicted, or eta=0."
            )
        owner = type(self).__name__
        task = NetworkTask(
            owner=owner,
            structure=self.structure,
            shared=self.shared,
            hidden=self.hidden,
            loss=self.loss,
            categories=self.categories,
            unknown=self.unknown,
            max_table=int(self.max_table),
        )
        labels = None if y is None else _check_y(y, estimator=self)
        data = read_data(task, table, labels, sample_weight, hidden)
        reference = reference_tables(owner, self.prior, float(self.smoothing), data)
        if self.eta > 0:
            refuse_zeros(owner, reference, data.network)
        check_floor(self, reference, data.network.rows)
        if self.eta == 0:
            tables = floored(normalised(reference, data.network), data.network, float(self.floor))
            solution = Solution.exact(np.log(tables), "counting")
        else:
            solution = self._solve(data, reference, solver)
        self._model = BayesNet(
            network=data.network, parameters=solution.parameters, categories=data.categories, classes=data.classes
        )
        self._keep_solution(solution)
        warn_unless_converged(solution, float(self.tol))
        return self

    def _solve(self, data: NetworkData, reference: Floats, solver: Any) -> Solution[Floats]:
        """Return the tables that minimise divergence and margin losses together."""
        tables = TableDivergence(reference, data.network.rows, float(self.floor), n_threads(self.n_jobs))
        weights, most = float(self.eta) * data.weights, int(self.max_table)
        planes = NetworkPlanes(
            data.network, data.codes, data.hidden, weights=weights, regulariser=tables, costs=data.costs, max_table=most
        )
        start = self.parameters_ if self.warm_start and self._is_like(data) else None
        with ProgressLine(type(self).__name__, int(self.verbose)) as line:
            rule = table_rule(self)
            solution: Solution[Floats] = solver.solve(planes, rule, start, line)
            line.end(f"{solution.status.value}, relative gap {solution.relative_gap:.1e}.")
        return solution

    def _is_like(self, data: NetworkData) -> bool:
        """Whether an earlier fit had the same network with the same values."""
        if "_model" not in vars(self):
            return False
        old: BayesNet = self.model_
        if old.network != data.network or old.is_table != (data.classes is None):
            return False
        before = [*old.categories, *([] if old.classes is None else [old.classes])]
        now = [*data.categories, *([] if data.classes is None else [data.classes])]
        return all(np.array_equal(a, b) for a, b in zip(before, now, strict=True))

    def _check_parameters(self) -> Any:
        owner = type(self).__name__
        check_structure(owner, self.structure)
        check_number(owner, "smoothing", self.smoothing, 0.0)
        check_choice(owner, "unknown", self.unknown, ("skip", "error"))
        if isinstance(self.prior, str) or not isinstance(self.prior, (Mapping, list, tuple)):
            check_choice(owner, "prior", self.prior, PRIORS, "tables by child, a list of tables")
        if isinstance(self.loss, str) or self.loss is None:
            check_choice(owner, "loss", self.loss, ("hamming",), "an array")
        if isinstance(self.categories, str) or not isinstance(self.categories, (list, tuple)):
            check_choice(owner, "categories", self.categories, ("auto",), "a list of arrays")
        check_integer(owner, "max_table", self.max_table, 1)
        return table_solver(self)

    def _check_restored(self) -> None:
        self._check_parameters()

    def _saved_parameters(self) -> dict[str, Any]:
        parameters = super()._saved_parameters()
        return parameters | {"structure": listed_structure(parameters["structure"])}

    def _restore_model(self, record: Record) -> None:
        columns: list[Hashable] = list(getattr(self, "feature_names_in_", range(self.n_features_in_)))
        self._model = BayesNet.from_record(record, columns, int(self.max_table))
        if self._model.is_table and self.hidden is not None:
            self._model.names(type(self).__name__).listed("hidden", self.hidden)

    @available_if(_for("class"))  # type: ignore[untyped-decorator]
    def predict_joint_log_proba(self, X: Any) -> Floats:
        """Return the log-probability of each class together with the row: log P(x, class).

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
            Values; cells that are missing (None, NaN, or masked) are summed out.

        Returns
        -------
        array of shape (n, n_classes)
            Classes in the order of ``classes_``.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import DiscriminativeBayesNet
        >>> model = DiscriminativeBayesNet(eta=0.0).fit([["a"], ["a"], ["b"], ["b"]], [0, 0, 1, 1])
        >>> np.exp(model.predict_joint_log_proba([["a"]])).round(3)         # 1/2 * 3/4 and 1/2 * 1/4
        array([[0.375, 0.125]])
        """
        _, codes = self._read(X, None)
        model: BayesNet = self.model_
        return model.joint_log_proba(codes, int(self.max_table))

    @available_if(_for("class"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Floats:
        """Return logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
            Values, as in :meth:`predict_joint_log_proba`.

        Returns
        -------
        array of shape (n, n_classes)
            log P(class | x).

        Examples
        --------
        >>> from dualfield import DiscriminativeBayesNet
        >>> model = DiscriminativeBayesNet(eta=0.0).fit([["a"], ["a"], ["b"], ["b"]], [0, 0, 1, 1])
        >>> model.predict_log_proba([["a"]]).round(3)
        array([[-0.288, -1.386]])
        """
        _, codes = self._read(X, None)
        model: BayesNet = self.model_
        return model.class_log_proba(codes, int(self.max_table))

    @available_if(_for("class"))  # type: ignore[untyped-decorator]
    def calibrate(self, X: Any, y: Any, *, cv: Any = None) -> Self:
        """Choose the temperature of the probabilities of classes by data that the model was not trained on.

        Columns that depend on each other count as evidence several times in naive Bayes, which is then too sure. The
        logarithms of P(x, class) are divided by T, with T such that the log-loss is smallest on these rows;
        predictions, tables and :meth:`predict_joint_log_proba` do not change. ``calibration_`` tells T, the log-loss
        there, and that at T = 1.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
            Values, as in :meth:`predict_joint_log_proba`.
        y : array of shape (n,)
            Classes.
        cv : int, splitter or iterable, default=None
            Where there are no held-out data: folds as in scikit-learn, of the training data.

        Returns
        -------
        DiscriminativeBayesNet
            The model itself.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import DiscriminativeBayesNet
        >>> rng = np.random.default_rng(0)
        >>> y = rng.integers(2, size=200)
        >>> X = np.repeat(np.where(rng.random(200) < 0.8, y, 1 - y)[:, None], 6, axis=1)      # one column, six times
        >>> model = DiscriminativeBayesNet(eta=0.0).fit(X[:100], y[:100]).calibrate(X[100:], y[100:])
        >>> model.calibration_.temperature > 3.0                # it was much too sure
        True
        """

        def read(fold: Any, inputs: Any, labels: Any, _: Any) -> HeldOut:
            found: HeldOut = fold.model_.held_out(fold._read(inputs, None)[1], labels, int(self.max_table))
            return found

        model: BayesNet = self.model_
        self._model = model.calibrated(chosen(self, X, y, None, cv, read))
        return self

    @available_if(_for("class"))  # type: ignore[untyped-decorator]
    def rank_for_labelling(self, X: Any, by: str = "entropy", per: str = "token") -> LabellingOrder:
        """Say which rows to label next: those whose class the model knows least about, first.

        Parameters
        ----------
        X : as in :meth:`predict_proba`
            Rows without a class.
        by : {"entropy", "least_confidence"}, default="entropy"
            The entropy of the class, or minus the logarithm of the largest probability.
        per : {"token", "sentence"}, default="token"
            A row is both.

        Returns
        -------
        LabellingOrder
            ``order``, the places of the rows, and ``values``, how uncertain each is.
        """
        return labelling_order(type(self).__name__, by, per, self.predict_proba(X)[:, None, :])

    @available_if(_for("class"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
            Values, as in :meth:`predict_joint_log_proba`.

        Returns
        -------
        array of shape (n, n_classes)
            P(class | x); where tables lack mass, given that no variable has the value that is not in its table.

        Examples
        --------
        >>> from dualfield import DiscriminativeBayesNet
        >>> model = DiscriminativeBayesNet(eta=0.0).fit([["a"], ["a"], ["b"], ["b"]], [0, 0, 1, 1])
        >>> model.predict_proba([["a"], [None]]).round(3)
        array([[0.75, 0.25],
               [0.5 , 0.5 ]])
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any, *, hidden: Any = None) -> Any:
        """Return the most probable class of each row; or, without a class, the table with its hidden cells filled in.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
            Values. Missing cells (None, NaN, or masked) are summed out to predict a class. In a table they are hidden.
        hidden : list of columns or bool array of shape (n, n_features), default=None
            For tables: more cells that are hidden, whatever is in them. None: those of the ``hidden`` parameter.

        Returns
        -------
        array of shape (n,), or table like X
            Classes, or a copy of X in which the hidden cells of each row have the values that are jointly most
            probable.

        Examples
        --------
        >>> from dualfield import DiscriminativeBayesNet
        >>> X = [["wet", "rain"], ["wet", "rain"], ["dry", "sun"], ["dry", "sun"]]
        >>> DiscriminativeBayesNet([(0, [1])], hidden=[1]).fit(X).predict([["dry", None]])
        array([['dry', 'sun']], dtype=object)
        """
        model: BayesNet = self.model_
        if model.classes is not None:
            if hidden is not None:
                raise ValueError("hidden is for tables: this model was fitted with y, and predicts the class.")
            return model.classes[self.predict_proba(X).argmax(axis=1)]
        table, codes = self._read(X, hidden)
        return table.filled(model.completed(codes, int(self.max_table)), codes == MISSING, model.categories)

    @available_if(_for("table"))  # type: ignore[untyped-decorator]
    def predict_marginals(self, X: Any, *, hidden: Any = None) -> dict[Hashable, Floats]:
        """Return the probabilities of the values of hidden cells.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
            Values; missing cells are hidden.
        hidden : list of columns or bool array of shape (n, n_features), default=None
            More cells that are hidden, as in :meth:`predict`.

        Returns
        -------
        dict
            For each column with a hidden cell an array of shape (n, number of its values), in the order of
            ``categories_``. A cell that is not hidden has probability 1 for its value.

        Examples
        --------
        >>> from dualfield import DiscriminativeBayesNet
        >>> X = [["wet", "rain"], ["wet", "rain"], ["dry", "sun"], ["dry", "sun"]]
        >>> model = DiscriminativeBayesNet([(0, [1])], eta=0.0).fit(X)
        >>> model.predict_marginals([["dry", None], ["dry", "rain"]])[1].round(3)
        array([[0.25, 0.75],
               [1.  , 0.  ]])
        """
        _, codes = self._read(X, hidden)
        model: BayesNet = self.model_
        return model.marginals(codes, int(self.max_table))

    def score_samples(self, X: Any) -> Floats:
        """Return the log-probability of each row: log P(x), with the class and missing cells summed out.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
            Values.

        Returns
        -------
        array of shape (n,)
            Log-probabilities.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import DiscriminativeBayesNet
        >>> model = DiscriminativeBayesNet(eta=0.0).fit([["a"], ["a"], ["b"], ["b"]], [0, 0, 1, 1])
        >>> np.exp(model.score_samples([["a"]]))
        array([0.5])
        """
        model: BayesNet = self.model_
        if not model.is_table:
            return np.asarray(logsumexp(self.predict_joint_log_proba(X), axis=1))
        _, codes = self._read(X, np.zeros(0, dtype=np.int64))
        return model.log_proba(codes, int(self.max_table))

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, *, hidden: Any = None) -> float:
        """Return the share of right predictions: of classes, or of the hidden cells of a complete table.

        Parameters
        ----------
        X : array or DataFrame of shape (n, n_features)
            Values; in a table also of hidden cells.
        y : array of shape (n,), default=None
            Classes; None for tables.
        sample_weight : array of shape (n,), default=None
            Weights of rows.
        hidden : list of columns or bool array of shape (n, n_features), default=None
            For tables: the cells to be predicted. None: those of the ``hidden`` parameter.

        Returns
        -------
        float
            Accuracy.

        Examples
        --------
        >>> from dualfield import DiscriminativeBayesNet
        >>> X = [["wet", "rain"], ["wet", "rain"], ["dry", "sun"], ["dry", "sun"]]
        >>> DiscriminativeBayesNet([(0, [1])], hidden=[1]).fit(X).score(X)
        1.0
        """
        model: BayesNet = self.model_
        if not model.is_table:
            return float(super().score(X, y, sample_weight))
        table = read_table(self, X, reset=False)
        truth = encode(table, model.categories, "skip")
        cells = self._cells(hidden, truth.shape) & (truth != MISSING)
        found = model.completed(np.where(cells, np.int32(MISSING), truth), int(self.max_table))
        weights = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        total = float((weights[:, None] * cells).sum())
        if not total > 0.0:
            raise ValueError("score needs cells to be predicted: name them with hidden.")
        return float((weights[:, None] * (cells & (found == truth))).sum()) / total

    def sample(self, n_samples: int = 1, *, random_state: Any = None) -> Any:
        """Draw rows from the network, parents before children.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState or None, default=None
            Seed.

        Returns
        -------
        X, or (X, y)
            An array of shape (n_samples, n_features), and with a class its values. Rows of tables that lack mass are
            scaled to sum to 1.

        Examples
        --------
        >>> from dualfield import DiscriminativeBayesNet
        >>> model = DiscriminativeBayesNet(smoothing=1e-6).fit([[1, 5], [1, 5], [2, 6], [2, 6]], ["x", "x", "y", "y"])
        >>> model.sample(2, random_state=1)
        (array([[1, 5],
               [2, 6]]), array(['x', 'y'], dtype='<U1'))
        """
        model: BayesNet = self.model_
        check_integer(type(self).__name__, "n_samples", n_samples, 1)
        X, y = model.sample(int(n_samples), check_random_state(random_state))
        return X if y is None else (X, y)

    def conditional_proba(self, child: Hashable, given: Mapping[Any, Any] | None = None) -> Floats:
        """Return P(child | parents) for values of the parents, from the table of the child.

        Parameters
        ----------
        child : column or "class"
            A variable.
        given : dict, default=None
            The value of each parent.

        Returns
        -------
        array of shape (n_values,)
            Probabilities in the order of ``categories_`` or ``classes_``; their sum may be less than 1.

        Examples
        --------
        >>> from dualfield import DiscriminativeBayesNet
        >>> model = DiscriminativeBayesNet(eta=0.0).fit([["a"], ["a"], ["b"], ["b"]], [0, 0, 1, 1])
        >>> model.conditional_proba(0, {"class": 1})
        array([0.25, 0.75])
        """
        model: BayesNet = self.model_
        return model.conditional(child, given or {}, type(self).__name__)

    def _read(self, X: Any, hidden: Any) -> tuple[ValueTable, NDArray[np.int32]]:
        """Return a table and its codes; hidden cells are missing, and so is the class."""
        model: BayesNet = self.model_
        table = read_table(self, X, reset=False)
        if model.is_table:
            cells = self._cells(hidden, table.missing.shape)  # whatever is in them
            return table, encode(table.without(cells), model.categories, self.unknown)
        codes = encode(table, model.categories, self.unknown)
        return table, np.column_stack([codes, np.full(len(codes), MISSING, dtype=np.int32)])

    def _cells(self, hidden: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Return the cells that users call hidden, beside those that are missing."""
        names = self.model_.names(type(self).__name__)
        return hidden_cells(names, self._of_fit("hidden") if hidden is None else hidden, shape)
