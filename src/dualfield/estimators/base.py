"""What all estimators have in common: fits that are transactions, a frozen model inside, and one file format."""

from __future__ import annotations

import copy
import functools
import importlib.metadata
import numbers
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dualfield.data.records import Fields, Record, Source
from dualfield.data.value_records import names_record, read_names
from dualfield.io.file_columns import FileColumns
from dualfield.persistence.file import write_model
from dualfield.persistence.parameters import Parts, decoded, encoded
from dualfield.solvers import Status, Trace
from dualfield.solvers.trace import relative_gap
from dualfield.structures.label_graph import LabelGraph

__all__ = ["Estimator", "fitting"]

_MOST_JOBS = 10_000
Method = TypeVar("Method", bound=Callable[..., Any])


class Model(Protocol):
    """What a fit has found: a frozen value that answers every question, and that has a record."""

    def record(self) -> Fields:
        """Return what it consists of."""

    @classmethod
    def from_record(cls, record: Record) -> Self:
        """Make it of its record, which is checked."""


class Fitted:
    """A fitted attribute: that of the model inside."""

    def __init__(self, name: str, is_optional: bool, none_before_fit: bool) -> None:
        self._name, self._is_optional, self._none_before_fit = name, is_optional, none_before_fit

    def __set_name__(self, owner: type, name: str) -> None:
        self._public = name

    def __get__(self, estimator: Estimator | None, owner: type) -> Any:
        if estimator is None:
            return self
        if self._none_before_fit and not estimator.__sklearn_is_fitted__():
            return None
        found = getattr(estimator.model_, self._name)
        if found is None and self._is_optional:
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self._public!r}")
        return found

    def __set__(self, estimator: Estimator, value: Any) -> None:
        raise AttributeError(f"{self._public} is that of the fitted model, which does not change. Fit again instead.")


def fitted(name: str, *, is_optional: bool = False, none_before_fit: bool = False) -> Any:
    """Declare a fitted attribute, of any type, that the model inside calls so; an optional one is not there if None."""
    return Fitted(name, is_optional, none_before_fit)


def fitting(method: Method) -> Method:
    """Decorate a method that fits a model: where it raises, the model stays what it was.

    Parameters
    ----------
    method : callable
        ``fit`` or the like, of an :class:`Estimator`.

    Returns
    -------
    callable
        The same with a memory: attributes are put back on any exception, and the parameters that predictions go by are
        those of this call.

    Examples
    --------
    >>> from dualfield import CRF
    >>> model = CRF().fit([[["a"], ["b"]]], [["x", "y"]])
    >>> model.fit([[["a"], ["b"]]], [["x"]])
    Traceback (most recent call last):
        ...
    ValueError: y[0] has 1 labels; X[0] has 2 nodes.
    >>> model.predict([[["b"]]])
    [['y']]
    """

    @functools.wraps(method)
    def whole(self: Estimator, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            self._remember()
            return method(self, *args, **kwargs)
        except BaseException:
            for name in self.__dict__.keys() - before.keys():
                del self.__dict__[name]
            self.__dict__.update(before)
            raise

    return cast(Method, whole)


class Estimator(BaseEstimator):  # type: ignore[misc]
    """The face that scikit-learn's users know, with a frozen model inside that answers.

    A class has a name in model files, ``_saved_as``, is listed in ``loading.py``, and says of which type its model is.
    Predictions depend on the last fit only, and not on parameters that were set since.

    Attributes
    ----------
    objective_, dual_gap_ : float
        The minimised value, and a bound on its distance from the minimum.
    n_iter_, solver_, status_, trace_
        Iterations and name of the solver that ran, how it ended, and its course.
    file_columns_ : FileColumns or None
        The columns of the file that X and y are from, where ``dualfield train`` has read them; saved with the model.
    label_graph_ : LabelGraph or None
        How rows with several labels became graphs, where ``dualfield train`` has read them; saved with the model.

    Examples
    --------
    >>> from dualfield import CRF
    >>> model = CRF().fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]])
    >>> before = model.predict_proba([[["a"]]])[0]
    >>> after = model.set_params(temperature=10.0).predict_proba([[["a"]]])[0]   # for the next fit
    >>> bool((before == after).all())
    True
    """

    _saved_as: ClassVar[str]
    _saved_with: ClassVar[Parts] = {}  # objects that its parameters may be
    _asked_with: ClassVar[tuple[str, ...]] = ()  # the parameters that predictions go by
    _model_type: ClassVar[type[Model]]
    _counted: ClassVar[Mapping[str, type]] = {}  # numbers of the training, if there are any, and their types
    _fit_params: dict[str, Any]
    _model: Any
    _source: Source | None = None  # a mapped file, whose numbers are checked when they are first used
    objective_: float
    dual_gap_: float
    n_iter_: int
    solver_: str
    status_: Status
    trace_: Trace
    file_columns_: FileColumns | None = None
    label_graph_: LabelGraph | None = None

    @property
    def model_(self) -> Any:
        """What the fit has found: a frozen value."""
        check_is_fitted(self)
        self._finish()
        return self._model

    def __sklearn_is_fitted__(self) -> bool:
        return "objective_" in vars(self)

    def _previous(self) -> Any:
        """Return the model of the fit before; None if there was none."""
        return self.model_ if self.__sklearn_is_fitted__() else None

    def _keep_solution(self, solution: Any) -> None:
        """Set the attributes that say how the fit ended."""
        self.objective_, self.dual_gap_ = solution.objective, solution.gap
        self.n_iter_, self.solver_ = solution.n_iter, solution.solver
        self.status_, self.trace_ = solution.status, solution.trace

    def _remember(self) -> None:
        """Keep the parameters that predictions go by, and forget the file of the fit before."""
        self._fit_params = {name: _kept(getattr(self, name)) for name in self._asked_with}
        self.__dict__.pop("file_columns_", None)
        self.__dict__.pop("label_graph_", None)

    def _of_fit(self, name: str) -> Any:
        """Return a parameter as it was in the last fit, or as it is where there was none."""
        kept = vars(self).get("_fit_params", {})
        return kept[name] if name in kept else getattr(self, name)

    def _finish(self) -> None:
        """Check what a mapped file still holds."""
        source = self._source  # another thread may do the same
        if source is not None:
            source.finish()
            self._source = None

    def __getstate__(self) -> dict[str, Any]:
        self._finish()
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_source"}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model to one file, which :func:`dualfield.load` reads.

        The file is written aside and renamed when it is complete. It holds parameters, training record and all that
        the model consists of, and no code; see the guide on model files. A `random_state` that is a generator is saved
        as None.

        Parameters
        ----------
        path : str or path-like
            The file; one that exists is replaced.

        Raises
        ------
        ValueError
            If a parameter cannot be saved, such as a function; the message names it.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import dualfield
        >>> model = dualfield.CRF().fit([[["a"], ["b"]]], [["x", "y"]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "tagger.model")
        ...     model.save(path)
        ...     dualfield.load(path).predict([[["b"], ["a"]]]) == model.predict([[["b"], ["a"]]])
        True
        """
        check_is_fitted(self)
        owner = type(self).__name__
        if "_saved_as" not in vars(type(self)):
            raise TypeError(f"{owner} is a user-defined class, which a model file does not know: pickle it instead.")
        self._check_jobs()
        self._check_restored()
        self._finish()
        parameters = {
            name: encoded(owner, name, value, self._saved_with) for name, value in self._saved_parameters().items()
        }
        record: Fields = {
            "dualfield_version": importlib.metadata.version("dualfield"),
            "estimator": self._saved_as,
            "parameters": parameters,
            "training": self._training_record(),
            "columns": self._columns_record(),
            "model": self._model_record(),
        }
        if self.file_columns_ is not None:
            record["file_columns"] = self.file_columns_.record()
        if self.label_graph_ is not None:
            record["label_graph"] = self.label_graph_.record()
        write_model(path, record)

    def report(
        self,
        path: str | os.PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        tokens: Any = None,
        title: str | None = None,
        history: Any = (),
    ) -> None:
        """Write a page about the fitted model: scores and errors on held-out data, weights, and the training.

        The page is one HTML file, which needs nothing else; see the guide on plots and reports. It needs matplotlib.

        Parameters
        ----------
        path : str or path-like
            The file; one that exists is replaced.
        X, y : default=None
            Data that the model was not trained on, as in ``predict``, and their true labels. None: the page has
            weights and training only.
        tokens : list of lists of str, default=None
            What is written where sentences are shown; None: the word of each token, where its attributes tell it.
        title : str, default=None
            The heading; None: the name of the class.
        history : iterable of (passes, seconds, name of score, value), default=()
            Validation scores during the fit, collected by a monitor.

        Raises
        ------
        TypeError
            If the model does not predict labels, or `path` is no path.

        See Also
        --------
        dualfield.report.training_page : The same page as text, with more facts.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from dualfield import CRF
        >>> model = CRF().fit([[["the"], ["dog"]], [["a"], ["cat"]]], [["DT", "NN"], ["DT", "NN"]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "report.html")
        ...     model.report(path, [[["the"], ["cat"]]], [["DT", "NN"]])
        ...     "<h1>CRF</h1>" in path.read_text()
        True
        """
        from dualfield.report import DevData, training_page, write_page  # which draw
        from dualfield.report.page import check_target

        owner = type(self).__name__
        check_is_fitted(self)
        if not hasattr(self, "predict") or not hasattr(self, "classes_"):
            raise TypeError(f"A report is about predicted labels, which {owner} does not have.")
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"path must be a str or path-like, where the page is written. Got {type(path).__name__}.")
        if (X is None) != (y is None):
            given, missing = ("y", "X") if X is None else ("X", "y")
            raise ValueError(f"report needs both X and y, or neither. Got {given} without {missing}.")
        check_target(pathlib.Path(path).resolve())
        dev = None if X is None else DevData(X, y, tokens)
        write_page(path, training_page(self, title=owner if title is None else title, dev=dev, history=history))

    @classmethod
    def _load(cls, record: Record) -> Any:
        """Return the estimator in the record of a file."""
        record.text("dualfield_version")
        kept = record.child("parameters")
        for name in sorted(set(kept.names()) - set(cls._get_param_names())):
            raise record.fault(f"it has a parameter {name!r:.100}, which {cls.__name__} does not have.")
        model = cls(**{name: decoded(kept, name, cls._saved_with) for name in kept.names()})
        model._check_jobs()
        model._check_restored()
        model._remember()
        model._restore_training(record.child("training"))
        if record.has("columns"):
            model._restore_columns(record.child("columns"))
        if "file_columns" in record.names():
            model.file_columns_ = FileColumns.from_record(record.child("file_columns"))
        if "label_graph" in record.names():
            model.label_graph_ = LabelGraph.from_record(record.child("label_graph"))
        model._restore_model(record.child("model"))
        record.check_all_read()
        if record.source.is_mapped:
            model._source = record.source
        return model

    def _saved_parameters(self) -> dict[str, Any]:
        """Return the constructor parameters in a form that a file can hold."""
        # Those that predictions go by are the ones of the fit: the file must answer as the model does.
        return {name: self._of_fit(name) for name in self.get_params(deep=False)}

    def _check_restored(self) -> None:
        """Check the parameters that predictions and the next fit depend on."""
        raise NotImplementedError

    def _check_jobs(self) -> None:
        # What reaches joblib and the threads of the native code.
        n_jobs: Any = getattr(self, "n_jobs", None)
        good = n_jobs is None or (isinstance(n_jobs, numbers.Integral) and 1 <= abs(int(n_jobs)) <= _MOST_JOBS)
        if not good:
            raise ValueError(
                f"The 'n_jobs' parameter of {type(self).__name__} must be None or an int from 1 to {_MOST_JOBS}, or -1 "
                f"and below. Got {n_jobs!r:.100} instead."
            )

    def _model_record(self) -> Fields:
        """Return what was fitted."""
        return cast(Fields, self.model_.record())

    def _restore_model(self, record: Record) -> None:
        """Set what was fitted, checked; parameters, training record and columns are set already."""
        self._model = self._model_type.from_record(record)

    def _training_record(self) -> Fields:
        return {
            "objective": float(self.objective_),
            "gap": float(self.dual_gap_),
            "relative_gap": float(relative_gap(self.objective_, self.dual_gap_)),
            "n_iter": int(self.n_iter_),
            "solver": str(self.solver_),
            "status": self.status_.value,
            "trace": self.trace_.rows(),
            **{name.rstrip("_"): getattr(self, name, None) for name in self._counted},
        }

    def _restore_training(self, record: Record) -> None:
        self.objective_, self.dual_gap_ = record.number("objective"), record.number("gap")
        record.number("relative_gap")  # follows from these
        self.n_iter_, self.solver_ = record.integer("n_iter"), record.text("solver")
        self.status_ = Status(record.text("status", [known.value for known in Status]))
        self.trace_ = Trace.from_rows(np.array(record.array("trace", np.float64, (None, 5))))
        for attribute, kind in self._counted.items():
            name = attribute.rstrip("_")
            if record.has(name):
                setattr(self, attribute, record.integer(name, 0) if kind is int else record.number(name))

    def _columns_record(self) -> Fields | None:
        """Return number and names of the columns of X, where scikit-learn has looked at them."""
        if not hasattr(self, "n_features_in_"):
            return None
        return {
            "n_features": int(self.n_features_in_),
            "names": names_record(getattr(self, "feature_names_in_", None)),
        }

    def _restore_columns(self, record: Record) -> None:
        self.n_features_in_ = record.integer("n_features", 1)
        names = read_names(record, "names", self.n_features_in_)
        if names is not None:
            self.feature_names_in_ = names


def _kept(value: Any) -> Any:
    """Return a value that does not change with the caller's; what a dict holds may be large, and is shared."""
    if isinstance(value, list):
        return copy.deepcopy(value)
    return copy.copy(value) if isinstance(value, (dict, np.ndarray)) else value
