"""What a trained Bayesian network answers: classes and their probabilities, filled-in tables, samples."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dualfield.data.checks import check_integer
from dualfield.data.columns import MISSING, ValueTable, encode, read_table
from dualfield.estimators.bayes_net_structure import Names
from dualfield.estimators.fitting import Refittable
from dualfield.structures import Network
from dualfield.structures.network.groups import condition

__all__ = ["NetworkPredictor"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]
Flags = NDArray[np.bool_]


def _for(kind: str) -> Callable[[Any], bool]:
    """Return the check of a method that models of one kind have: of a class, or of a table."""

    def check(model: Any) -> bool:
        if getattr(model, "_is_table", kind == "table") != (kind == "table"):
            other = "predict_marginals is for it" if kind == "class" else "predict_proba has its probabilities"
            told = "a table, without y" if kind == "class" else "a class, with y"
            raise AttributeError(f"This model was fitted to {told}: {other}.")
        return True

    return check


class NetworkPredictor(Refittable, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The answers of :class:`dualfield.DiscriminativeBayesNet`.

    Examples
    --------
    >>> from dualfield import DiscriminativeBayesNet
    >>> from dualfield.estimators.bayes_net_prediction import NetworkPredictor
    >>> issubclass(DiscriminativeBayesNet, NetworkPredictor)
    True
    """

    hidden: Any
    unknown: str
    max_table: int
    network_: Network
    parameters_: Floats
    categories_: list[NDArray[Any]]
    classes_: NDArray[Any]
    _is_table: bool

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
        target, n_classes = self.network_.n_variables - 1, len(self.classes_)
        joint = np.empty((len(codes), n_classes))
        for rows, part in condition(self.network_, codes, codes == MISSING, max_table=int(self.max_table)):
            if list(part.hidden) == [target]:
                for at, [table] in part.tables(self.parameters_):
                    joint[rows[at]] = table
            else:
                place = list(part.hidden).index(target)
                for code in range(n_classes):
                    joint[rows, code] = part.log_partition(self.parameters_, (place, code))
            joint[rows] += part.rest(self.parameters_)[:, None]
        return joint

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
        return np.asarray(log_softmax(self.predict_joint_log_proba(X), axis=1))

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
        check_is_fitted(self)
        if not self._is_table:
            if hidden is not None:
                raise ValueError("hidden is for tables: this model was fitted with y, and predicts the class.")
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        table, codes = self._read(X, hidden)
        cells = codes == MISSING
        return table.filled(self._completed(codes), cells, self.categories_)

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
        found: dict[Hashable, Floats] = {}
        for v in np.flatnonzero((codes == MISSING).any(axis=0)).tolist():
            known = np.zeros((len(codes), self.network_.n_values[v]))
            seen = np.flatnonzero(codes[:, v] >= 0)
            known[seen, codes[seen, v]] = 1.0
            found[self.network_.names[v]] = known
        for rows, part in condition(self.network_, codes, codes == MISSING, max_table=int(self.max_table)):
            for v, answer in zip(part.hidden, part.marginals(self.parameters_), strict=True):
                found[self.network_.names[v]][rows] = answer
        return found

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
        check_is_fitted(self)
        if not self._is_table:
            return np.asarray(logsumexp(self.predict_joint_log_proba(X), axis=1))
        _, codes = self._read(X, np.zeros(0, dtype=np.int64))
        total = np.zeros(len(codes))
        places = self.network_.indices(codes)
        whole = ~(codes == MISSING).any(axis=1)
        total[whole] = np.append(self.parameters_, 0.0)[places[whole]].sum(axis=1)
        for rows, part in condition(self.network_, codes, codes == MISSING, max_table=int(self.max_table)):
            total[rows] = part.log_partition(self.parameters_) + part.rest(self.parameters_)
        return total

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
        check_is_fitted(self)
        if not self._is_table:
            return float(super().score(X, y, sample_weight))
        table = read_table(self, X, reset=False)
        truth = encode(table, self.categories_, "skip")
        cells = self._cells(hidden, truth.shape) & (truth != MISSING)
        found = self._completed(np.where(cells, np.int32(MISSING), truth))
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
        check_is_fitted(self)
        check_integer(type(self).__name__, "n_samples", n_samples, 1)
        codes = self.network_.sample(self.parameters_, int(n_samples), check_random_state(random_state))
        kinds = {values.dtype.kind for values in self.categories_}
        same = len(kinds) == 1 or kinds <= set("biuf")
        dtype = np.result_type(*(values.dtype for values in self.categories_)) if same else np.dtype(object)
        X = np.empty((int(n_samples), len(self.categories_)), dtype=dtype)
        for j, values in enumerate(self.categories_):
            X[:, j] = values[codes[:, j]]
        return X if self._is_table else (X, self.classes_[codes[:, -1]])

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
        check_is_fitted(self)
        names, values = self._names(), dict(given or {})
        v, place = names.find("child", child), {names.find("given", name): value for name, value in values.items()}
        parents = self.network_.parents[v]
        if set(place) != set(parents):
            wanted = [names.all[one] for one in parents]
            raise ValueError(f"given must have a value for each parent of {child!r}, {wanted}. Got {list(values)}.")
        at = []
        for one in parents:
            known = (self.classes_ if one == names.n_columns else self.categories_[one]).tolist()
            if place[one] not in known:
                raise ValueError(f"given[{names.all[one]!r}] must be one of {known!r:.200}. Got {place[one]!r:.100}.")
            at.append(known.index(place[one]))
        return np.asarray(np.exp(self.network_.table(self.parameters_, v)[tuple(at)]))

    def _names(self) -> Names:
        names = list(self.network_.names)
        return Names(type(self).__name__, names if self._is_table else names[:-1], has_class=not self._is_table)

    def _read(self, X: Any, hidden: Any) -> tuple[ValueTable, Codes]:
        """Return a table and its codes; hidden cells are missing, and so is the class."""
        check_is_fitted(self)
        table = read_table(self, X, reset=False)
        if self._is_table:
            cells = self._cells(hidden, table.missing.shape)  # whatever is in them
            return table, encode(table.without(cells), self.categories_, self.unknown)
        codes = encode(table, self.categories_, self.unknown)
        return table, np.column_stack([codes, np.full(len(codes), MISSING, dtype=np.int32)])

    def _cells(self, hidden: Any, shape: tuple[int, ...]) -> Flags:
        """Return the cells that users call hidden, beside those that are missing."""
        return hidden_cells(self._names(), self._of_fit("hidden") if hidden is None else hidden, shape)

    def _completed(self, codes: Codes) -> Codes:
        full = codes.copy()
        for rows, part in condition(self.network_, codes, codes == MISSING, max_table=int(self.max_table)):
            full[rows[:, None], list(part.hidden)] = part.argmax(self.parameters_)
        return full


def hidden_cells(names: Names, hidden: Any, shape: tuple[int, ...]) -> Flags:
    """Return a mask of cells: given as such, or by columns."""
    cells = np.zeros(shape, dtype=bool)
    if hidden is None:
        return cells
    mask = np.asarray(hidden)
    if mask.dtype == np.bool_:
        if mask.shape != shape:
            raise ValueError(f"hidden must be columns, or a boolean array of shape {shape}. Got shape {mask.shape}.")
        return mask
    cells[:, names.listed("hidden", hidden)] = True
    return cells
