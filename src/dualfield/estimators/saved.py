"""Estimators that can be saved to a model file, whatever they are."""

from __future__ import annotations

import importlib.metadata
import numbers
import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dualfield.estimators.fitting import Refittable
from dualfield.persistence.file import ModelFile, write_model
from dualfield.persistence.parameters import ParameterReader, ParameterWriter, Parts
from dualfield.solvers import Status, Trace
from dualfield.solvers.trace import relative_gap

__all__ = ["Savable"]

_MOST_JOBS = 10_000


class Waiting(Protocol):
    """Fitted attributes that are still in a mapped file."""

    @property
    def names(self) -> tuple[str, ...]:
        """Which they are."""

    def whole(self) -> dict[str, Any]:
        """Read and check them all."""


class FromFile:
    """An attribute that a mapped model takes from its file when it is first asked for.

    What is set on the model itself comes before it.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Savable | None, owner: type) -> Any:
        if model is None:
            return self
        model._finish()  # another thread may have done it by now
        if self._name not in vars(model):
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}")
        return vars(model)[self._name]


def from_file() -> Any:
    """Declare an attribute that may wait in a mapped file, of any type."""
    return FromFile()


class Savable(Refittable, ABC):
    """An estimator with ``save``; :func:`dualfield.load` brings it back.

    A class has a name in model files, ``_saved_as``, is listed in ``loading.py``, and fills two hooks: ``_saved``
    gives its fitted parts as metadata and arrays, ``_restore`` sets them again and checks them. Constructor parameters
    and the training record are common to all.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.estimators.saved import Savable
    >>> isinstance(CRF(), Savable)
    True
    """

    _saved_as: ClassVar[str]
    _saved_with: ClassVar[Parts] = {}  # objects that its parameters may be
    _waiting: Waiting | None = None
    objective_: float
    dual_gap_: float
    n_iter_: int
    solver_: str
    status_: Status
    trace_: Trace

    @abstractmethod
    def _saved(self, writer: ParameterWriter) -> dict[str, Any]:
        """Return the fitted parts as metadata; arrays go to ``writer.arrays``."""

    @abstractmethod
    def _restore(self, file: ModelFile) -> None:
        """Check the fitted parts in a file and set them; parameters and training record are set already."""

    @abstractmethod
    def _check_restored(self) -> None:
        """Check the parameters that predictions depend on."""

    def _finish(self) -> None:
        """Set what a mapped file still holds, unless a later fit has set it."""
        waiting = self._waiting
        if waiting is None:
            return
        missing = [name for name in waiting.names if name not in vars(self)]
        if missing:
            found = waiting.whole()
            self.__dict__.update({name: found[name] for name in missing})
        self._waiting = None

    def __getstate__(self) -> dict[str, Any]:
        self._finish()
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_waiting"}  # type: ignore[attr-defined]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted model to one file, which :func:`dualfield.load` reads.

        The file is written aside and renamed when it is complete. It holds parameters, labels, vocabulary or template,
        weights and training record, and no code; see the guide on model files. A `random_state` that is a generator is
        saved as None.

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
            raise TypeError(f"{owner} is a class of your own, which a model file does not know: pickle it instead.")
        self._check_jobs()
        self._check_restored()
        self._finish()
        writer = ParameterWriter(owner, {}, self._saved_with)
        parameters = {name: writer.encoded(name, value) for name, value in self._saved_parameters().items()}
        fitted = self._saved(writer)
        metadata = {
            "dualfield_version": importlib.metadata.version("dualfield"),
            "estimator": self._saved_as,
            "parameters": parameters,
            "training": self._training(writer.arrays),
            **fitted,
        }
        write_model(path, metadata, writer.arrays)

    def _saved_parameters(self) -> dict[str, Any]:
        """Return the constructor parameters in a form that a file can hold."""
        # Those that predictions go by are the ones of the fit: the file must answer as the model does.
        return {name: self._of_fit(name) for name in self.get_params(deep=False)}  # type: ignore[attr-defined]

    def _check_jobs(self) -> None:
        # What reaches joblib and the threads of the native code.
        n_jobs: Any = getattr(self, "n_jobs", None)
        good = n_jobs is None or (isinstance(n_jobs, numbers.Integral) and 1 <= abs(int(n_jobs)) <= _MOST_JOBS)
        if not good:
            raise ValueError(
                f"The 'n_jobs' parameter of {type(self).__name__} must be None or an int from 1 to {_MOST_JOBS}, or -1 "
                f"and below. Got {n_jobs!r:.100} instead."
            )

    @classmethod
    def _load(cls, file: ModelFile) -> Any:
        """Return the model in a file."""
        kept = field(file, "parameters", dict)
        known = set(cls._get_param_names())  # type: ignore[attr-defined]
        for name in kept.keys() - known:
            raise file.fault(f"has a parameter {name!r:.100}, which {cls.__name__} does not have.")
        reader = ParameterReader(file, cls._saved_with)
        model = cls(**{name: reader.decoded(name, value) for name, value in kept.items()})
        try:
            model._check_jobs()
            model._check_restored()
        except (TypeError, ValueError) as error:
            raise file.fault(f"is altered: {error}") from None
        model._remember()
        model._restore_training(file)
        model._restore(file)
        file.check_all_read()
        return model

    def _training(self, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
        arrays["training.trace"] = self.trace_.rows()
        return {
            "objective": float(self.objective_),
            "gap": float(self.dual_gap_),
            "relative_gap": float(relative_gap(self.objective_, self.dual_gap_)),
            "n_iter": int(self.n_iter_),
            "solver": str(self.solver_),
            "status": self.status_.value,
        }

    def _restore_training(self, file: ModelFile) -> None:
        record = field(file, "training", dict)
        self.objective_, self.dual_gap_ = field(file, "objective", float, record), field(file, "gap", float, record)
        self.n_iter_, self.solver_ = field(file, "n_iter", int, record), field(file, "solver", str, record)
        status = field(file, "status", str, record)
        if status not in [known.value for known in Status]:
            raise file.fault(f"is altered: its status is {status!r:.100}.")
        self.status_ = Status(status)
        self.trace_ = Trace.from_rows(np.array(file.array("training.trace", np.float64, (None, 5))))


def field(file: ModelFile, name: str, kinds: type | tuple[type, ...], record: dict[str, Any] | None = None) -> Any:
    """Return an entry of the metadata, or of a record in them, which must be there and of a type; bool is no int."""
    value = (file.metadata if record is None else record).get(name, ...)
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        found = "nothing" if value is ... else f"{value!r:.100}"
        raise file.fault(f"is altered: its {name!r} must be of type {expected}. Got {found}.")
    return value
