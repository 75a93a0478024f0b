"""Bayesian networks that are trained to predict: near the counts, with margins for what is hidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags

from dualfield.data.checks import check_choice, check_integer, check_number
from dualfield.data.columns import read_table
from dualfield.estimators.bayes_net_data import NetworkData, read_data
from dualfield.estimators.bayes_net_structure import check_structure
from dualfield.estimators.bayes_net_training import PRIORS, counted, reference_tables, refuse_zeros, trained
from dualfield.estimators.fitting import fitting
from dualfield.estimators.saved_bayes_net import SavableNetwork
from dualfield.estimators.table_training import check_floor, table_solver
from dualfield.solvers import Simplicial, Solution
from dualfield.solvers.convergence import warn_unless_converged
from dualfield.structures.checks import n_threads

__all__ = ["DiscriminativeBayesNet"]

Floats = NDArray[np.float64]


class DiscriminativeBayesNet(SavableNetwork):
    r"""Bayesian network whose tables are trained to predict hidden variables (Yu, Bertsekas and Rousu).

    With θ the logarithms of the tables, n(s, o) the number of times that hidden values s and known values o of a row
    use each entry, and :math:`s_k` the true hidden values of row k, it minimises

    .. math::
        \sum_i |c_i| \, \mathrm{KL}(c_i / |c_i| \,\|\, e^{\theta_i}) + \eta \sum_k v_k \max_s \,
        [ \langle n(s, o_k) - n(s_k, o_k), \theta \rangle + \ell(s, s_k) ]
        \quad \text{subject to} \quad \mathbf{1}^\top e^{\theta_i} \le 1 ,

    where i runs over the rows of all tables. The first term keeps every row near its reference :math:`c_i`, the network
    of counts; the second asks that the truth beats all other values by what they cost. With η = 0 the counts alone are
    the answer: naive Bayes, TAN, or a network of your own, smoothed. A row may sum to less than one; what is missing is
    the probability of a value that is not in the table. The fit ends with a certificate: a bound on the distance from
    the minimum.

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
        data = read_data(self, table, y, sample_weight, hidden)
        reference = reference_tables(type(self).__name__, self.prior, float(self.smoothing), data)
        if self.eta > 0:
            refuse_zeros(type(self).__name__, reference, data.network)
        check_floor(self, reference, data.network.rows)
        if self.eta == 0:
            solution = counted(reference, data.network, float(self.floor))
        else:
            start = self.parameters_ if self.warm_start and self._is_like(data) else None
            solution = trained(self, data, reference, solver, start, n_threads(self.n_jobs))
        self._keep(data, solution)
        warn_unless_converged(solution, float(self.tol))
        return self

    def _is_like(self, data: NetworkData) -> bool:
        """Whether an earlier fit had the same network with the same values."""
        if (
            not hasattr(self, "parameters_")
            or self.network_ != data.network
            or self._is_table != (data.classes is None)
        ):
            return False
        before = [*self.categories_, *([] if self._is_table else [self.classes_])]
        now = [*data.categories, *([] if data.classes is None else [data.classes])]
        return all(np.array_equal(a, b) for a, b in zip(before, now, strict=True))

    def _keep(self, data: NetworkData, solution: Solution[Floats]) -> None:
        self._set_network(data.network, solution.parameters, data.categories, data.classes)
        self.objective_ = solution.objective
        self.dual_gap_ = solution.gap
        self.n_iter_ = solution.n_iter
        self.solver_ = solution.solver
        self.status_ = solution.status
        self.trace_ = solution.trace

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
