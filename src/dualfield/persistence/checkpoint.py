"""The state of a fit in a file, from which it can go on."""

from __future__ import annotations

import dataclasses
import hashlib
import numbers
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualfield._native import StateError
from dualfield.data.checks import check_flag, check_number
from dualfield.data.on_disk import joined
from dualfield.data.user_warnings import warn_user
from dualfield.features import Template
from dualfield.models.partitioned_data import PartitionedData
from dualfield.persistence.file import ModelFileError, open_model, write_model
from dualfield.persistence.header import CHECKPOINT
from dualfield.solvers import Status
from dualfield.structures import Chain

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from dualfield.models.training_data import TrainingData

__all__ = ["Checkpoint", "CheckpointWarning"]

State = dict[str, NDArray[Any]]
# What may differ between two parts of a fit: it changes neither the problem nor the way to its solution.
_FREE = ("n_jobs", "verbose", "warm_start")
_LARGE = 2**30  # bytes of an array that is not read into memory


class CheckpointWarning(RuntimeWarning):
    """A checkpoint could not be written; the fit goes on without it.

    Examples
    --------
    >>> import warnings
    >>> from dualfield.estimators import CheckpointWarning
    >>> warnings.simplefilter("error", CheckpointWarning)   # rather no fit than one without a checkpoint
    """


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Where a fit keeps its state, so that it can go on after a break to the result it would have had without one.

    The file is written aside and renamed, so that it is always whole, and removed when the fit has come to its end.
    With a compiled corpus there is another one beside it, ``.blocks``, with twice the state of all sentences. A fit
    that is stopped by a monitor or by the keyboard leaves it. Parameters and data must be the same when the fit goes
    on; the number of threads may differ. A file that belongs to another fit, or that was altered, is refused. A file
    that cannot be written is a :class:`CheckpointWarning`, and the fit goes on without it.

    Parameters
    ----------
    path : str or path-like
        The file.
    every : float, default=60.0
        Seconds between two writes; a write happens at the end of a pass.
    remove : bool, default=True
        Whether a fit that has come to its end removes the file. With False the file stays until :meth:`discard` is
        called, best after the model has been saved: should that fail, nothing is lost.

    Examples
    --------
    >>> import tempfile
    >>> from dualfield import CRF
    >>> from dualfield.estimators import Checkpoint
    >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = Checkpoint(folder + "/fit.checkpoint", every=0.0)
    ...     first = CRF(random_state=0).fit(X, y, checkpoint=kept, monitor=lambda moment, model: moment.passes > 2)
    ...     model = CRF(random_state=0).fit(X, y, checkpoint=kept)            # goes on
    >>> first.status_.value, model.status_.value
    ('stopped', 'converged')
    >>> bool((model.parameters_ == CRF(random_state=0).fit(X, y).parameters_).all())
    True
    """

    path: str | os.PathLike[str]
    every: float = 60.0
    remove: bool = True

    @property
    def blocks_path(self) -> str:
        """The file beside it with what a fit to a compiled corpus keeps for each block."""
        return os.fspath(self.path) + ".blocks"

    def discard(self) -> None:
        """Remove the file, and the one beside it, if they are there.

        Examples
        --------
        >>> Checkpoint("no-such-file").discard()
        """
        Path(self.path).unlink(missing_ok=True)
        Path(self.blocks_path).unlink(missing_ok=True)

    @classmethod
    def of(cls, checkpoint: Any) -> Checkpoint | None:
        """Make a checkpoint of what users pass.

        Parameters
        ----------
        checkpoint : Checkpoint, path or None
            The argument of ``fit``.

        Returns
        -------
        Checkpoint or None
            The same, with defaults.

        Examples
        --------
        >>> Checkpoint.of("fit.checkpoint").every
        60.0
        """
        if checkpoint is None or isinstance(checkpoint, Checkpoint):
            return checkpoint
        if not isinstance(checkpoint, (str, os.PathLike)):
            raise TypeError(f"checkpoint must be None, a path or a Checkpoint. Got {type(checkpoint).__name__}.")
        return cls(checkpoint)

    def open(self, problem: dict[str, str], seed: int = 0) -> CheckpointFile:
        """Find the state to go on from, if there is one.

        Parameters
        ----------
        problem : dict
            What must be the same, from :func:`fingerprint`.
        seed : int, default=0
            Of the fit, if it begins now.

        Returns
        -------
        CheckpointFile
            Keeps states from now on.

        Raises
        ------
        ValueError
            If the file is not a checkpoint, or one of another problem.

        Examples
        --------
        >>> Checkpoint("no-such-file").open({}).resume is None
        True
        """
        check_number("Checkpoint", "every", self.every, 0.0)
        check_flag("Checkpoint", "remove", self.remove)
        return CheckpointFile(self, problem, seed)


class CheckpointFile:
    """A checkpoint in use.

    Parameters
    ----------
    checkpoint : Checkpoint
        Where it is, and how often it is written.
    problem : dict
        What must be the same.
    seed : int
        Of the fit; ``seed`` is that of the fit that goes on, where one does.
    """

    def __init__(self, checkpoint: Checkpoint, problem: dict[str, str], seed: int) -> None:
        self._path, self._every, self._remove = Path(checkpoint.path), float(checkpoint.every), checkpoint.remove
        self._blocks = Path(checkpoint.blocks_path)
        self._problem, self.seed = problem, seed
        self.resume = self._read() if self._path.exists() else None
        if self.resume is None:
            self._blocks.unlink(missing_ok=True)
        self._is_failing = False
        self._last = time.monotonic()

    def is_due(self) -> bool:
        """Say whether it is time to write.

        Returns
        -------
        bool
            Whether the last write, or the beginning, is long enough ago.
        """
        return time.monotonic() - self._last >= self._every

    def keep(self, state: State) -> None:
        """Write a state; warn where that fails, once until it works again.

        Parameters
        ----------
        state : dict
            Arrays by name.
        """
        arrays = {name: np.ascontiguousarray(array) for name, array in state.items()}
        try:
            write_model(self._path, {"problem": self._problem, "seed": self.seed, **arrays}, CHECKPOINT)
            self._is_failing = False
        except OSError as error:
            if not self._is_failing:
                self._is_failing = True
                warn_user(
                    f"{self._path}: the checkpoint cannot be written: {error.strerror or error}. The fit goes on, and "
                    "tries again.",
                    CheckpointWarning,
                )
        self._last = time.monotonic()

    def close(self, status: Status) -> None:
        """Remove the file if the fit is complete, unless it is to stay.

        Parameters
        ----------
        status : Status
            How it ended.
        """
        if self._remove and status not in (Status.STOPPED, Status.INTERRUPTED):
            self._path.unlink(missing_ok=True)
            self._blocks.unlink(missing_ok=True)

    def refused(self, error: StateError) -> ValueError:
        """Return the error that names the file whose state a solver has refused.

        Parameters
        ----------
        error : StateError
            What the solver said.

        Returns
        -------
        ValueError
            To be raised.
        """
        return ValueError(f"{self._path} cannot be used: {error}. Remove the file to begin anew.")

    def _read(self) -> State:
        try:
            file = open_model(self._path, mmap=True, kind=CHECKPOINT)
            file.verify()
        except ModelFileError as error:
            raise ValueError(f"{error} Remove the file to begin anew, if it was a checkpoint.") from None
        then, seed = file.metadata.get("problem"), file.metadata.get("seed")
        if not isinstance(then, dict) or type(seed) is not int or not 0 <= seed < 2**63:
            raise ValueError(f"{self._path} is altered: it does not say which fit it belongs to.")
        for name in sorted(self._problem.keys() | then.keys()):
            if then.get(name) != self._problem.get(name):
                raise ValueError(
                    f"{self._path} belongs to another fit: {name} was {then.get(name)}, now {self._problem.get(name)}. "
                    "Remove the file to begin anew."
                )
        self.seed = seed
        return {name: _taken(array.values) for name, array in file.arrays.items()}


def fingerprint(
    model: BaseEstimator, data: TrainingData | PartitionedData, start: NDArray[np.float64] | None
) -> dict[str, str]:
    """Describe a fit: two that have the same description go the same way.

    Parameters
    ----------
    model : estimator
        With its parameters.
    data : TrainingData or PartitionedData
        What it is fitted to.
    start : array or None
        Where it begins.

    Returns
    -------
    dict
        The parameters, and digests of the data.
    """
    parameters = {name: _describe(value) for name, value in model.get_params(deep=False).items() if name not in _FREE}
    described = {f"parameter {name}": text for name, text in parameters.items()}
    table = data.score_map
    if isinstance(data, PartitionedData):
        return {
            **described,
            "the partitions": _digest(np.array(data.digests())),
            "the labels y": _digest(np.array(data.labels.classes.tolist(), dtype=str), data.loss.cost),
            "the set of features": _digest(table.node.indptr, table.node.outputs, table.clique_mask),
            "the start": _digest(start),
        }
    rows = [data.nodes] if data.pairs is None or data.pairs is data.nodes else [data.nodes, data.pairs]
    return {
        **described,
        "the input X": getattr(data, "digest", "") + _digest(*(part for one in rows for part in _parts(one))),
        "the labels y": _digest(data.codes, data.allowed, np.array(data.labels.classes.tolist(), dtype=str)),
        "the weights of sequences": _digest(data.weights, data.cost, *_weights_of_labels(data)),
        "the set of features": _digest(table.node.indptr, table.node.outputs, table.clique_mask),
        "the start": _digest(start),
    }


def _weights_of_labels(data: TrainingData) -> list[NDArray[Any] | None]:
    """Return the factors of labels, where sentences are weighed by them when they are read."""
    weights = getattr(data, "corpus_weights", None)
    return [] if weights is None else [weights.of_labels]


def _taken(values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that outlives the file: the next state takes its place."""
    if values.nbytes < _LARGE:
        return values.copy()
    return joined([values.reshape(-1)], on_disk=True).reshape(values.shape)


def _describe(value: Any) -> str:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return "a generator"  # what it drew for the fit is kept with the state
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return repr(int(value))
    if isinstance(value, Template):
        return _digest(np.array([value.text, value.syntax]))
    if isinstance(value, Chain):
        return _digest(value.cliques, value.clique_allowed, value.allowed_start, value.allowed_stop)
    return _digest(np.asarray(value)) if isinstance(value, (np.ndarray, list, tuple)) else repr(value)


def _parts(batch: Any) -> list[NDArray[Any] | None]:
    dense = batch.dense
    return [batch.offsets, dense] if dense is not None else [batch.offsets, batch.indptr, batch.indices, batch.values]


def _digest(*arrays: NDArray[Any] | None) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for array in arrays:
        digest.update(b"none" if array is None else f"{array.dtype}{array.shape}".encode())
        if array is not None:
            digest.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
    return digest.hexdigest()
