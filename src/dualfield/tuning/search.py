"""Score every candidate on every fold: examples are read once, and each fold has a path over C for each setting."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing

from dualfield.data import Batch
from dualfield.data.user_warnings import warn_user
from dualfield.engines.shared_tasks import call_all, runs_here
from dualfield.features.reading import read_examples
from dualfield.models.training_data import TrueLabels, template_of
from dualfield.solvers import Status
from dualfield.structures import Structure
from dualfield.structures.registry import structure_of
from dualfield.tuning.evidence import evidence_path
from dualfield.tuning.grid import Grid, Splits, with_setting
from dualfield.tuning.path import fit_path
from dualfield.tuning.results import Results
from dualfield.tuning.scoring import EVIDENCE, SCORERS

__all__ = ["search"]

_ENDED = (Status.CONVERGED, Status.FINISHED)


@dataclass(frozen=True, eq=False, kw_only=True)
class Examples:
    """Examples as they were passed, and in the form in which they are read fastest.

    Parameters
    ----------
    given : sequence
        As passed.
    read : Batch or sequence
        Attributes and columns as one batch; what has none as it was passed.
    y : sequence
        Labels.
    weights : array or None
        Of examples.
    """

    given: Any
    read: Any
    y: Any
    weights: Any

    def take(self, at: NDArray[np.int64]) -> Examples:
        """Return some of them."""
        given = _some(self.given, at)
        read = self.read[at] if isinstance(self.read, Batch) else given
        weights = None if self.weights is None else np.asarray(self.weights)[at]
        return Examples(given=given, read=read, y=_some(self.y, at), weights=weights)


def _some(values: Any, at: NDArray[np.int64]) -> Any:
    return [values[i] for i in at.tolist()] if isinstance(values, list) else _safe_indexing(values, at)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Work:
    """What all tasks of a search read."""

    base: Any
    data: Examples
    held_out: Examples | None
    grid: Grid
    splits: Splits
    scoring: tuple[str, Callable[[Any, Any, Any], float]]
    progress: Callable[[dict[str, Any], int, float], Any] | None


def _run(work: _Work, setting: dict[str, int], fold: int) -> list[tuple[float, float, float, float]]:
    """Score one setting on one fold, for every C."""
    train, test = work.splits.folds[fold]
    one, data, Cs = with_setting(clone(work.base).set_params(n_jobs=1), setting), work.data, work.grid.Cs

    def tell(C: float, found: float) -> None:
        _tell(work.progress, C, setting, fold, found)

    if work.scoring[0] == EVIDENCE:
        return list(_evidences(one, data, Cs, tell))
    parts = data.take(train), (data.take(test) if work.held_out is None else work.held_out)
    return list(_scored(one, *parts, Cs, work.scoring, tell))


def search(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    grid: Grid,
    splits: Splits,
    scoring: tuple[str, Callable[[Any, Any, Any], float]],
    sample_weight: Any = None,
    dev: tuple[Any, Any] | None = None,
    n_jobs: int | None = None,
    progress: Callable[[dict[str, Any], int, float], Any] | None = None,
) -> Results:
    """Fit and score all candidates on all folds.

    Parameters
    ----------
    estimator : CRF or StructuredSVM
        Whose other parameters all candidates have; it is not changed.
    X, y : sequence
        Examples and their labels.
    grid : Grid
        The candidates.
    splits : Splits
        The folds.
    scoring : (str, callable)
        Name and ``scorer(estimator, X, y)``. Those of ``SCORERS`` get examples that have been read already.
    sample_weight : array, default=None
        Weights of examples in training.
    dev : (sequence, sequence), default=None
        Held-out examples, where the folds do not hold out any.
    n_jobs : int, default=None
        Paths at the same time, in threads unless a joblib context has other workers.
    progress : callable, default=None
        Called with parameters, number of the fold and score, as soon as one is known; after the search where the fits
        are done by other processes.

    Returns
    -------
    Results
        The same for any `n_jobs`, but for the times.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.tuning import Grid, Splits, pick_scorer, search
    >>> X, y = [[["a"], ["b"]], [["b"]]] * 4, [["x", "y"], ["y"]] * 4
    >>> grid, splits = Grid.read("CRFCV", [0.1, 1.0]), Splits.of(2, X, None)
    >>> search(CRF(), X, y, grid=grid, splits=splits, scoring=pick_scorer("CRFCV", None, {"x", "y"})).scores.shape
    (2, 2)
    """
    base = clone(estimator).set_params(warm_start=False, verbose=0)
    data, base = read_once(base, X, y, sample_weight)
    held_out = None if dev is None else _read_dev(base, data, *dev)
    settings, n_folds = grid.settings(), len(splits.folds)

    tasks = [(setting, fold) for setting in settings for fold in range(n_folds)]
    # In other processes nobody hears of progress: it is told when the scores are here.
    tell = progress if runs_here() else None
    work = _Work(base=base, data=data, held_out=held_out, grid=grid, splits=splits, scoring=scoring, progress=tell)
    found = call_all(_run, work, tasks, n_jobs)
    if tell is None:
        for (setting, fold), rows in zip(tasks, found, strict=True):
            for C, row in zip(grid.Cs, rows, strict=True):
                _tell(progress, float(C), setting, fold, row[0])
    # From (setting, fold, C) to (C and setting, fold).
    table = np.array(found).reshape(len(settings), n_folds, len(grid.Cs), 4).transpose(2, 0, 1, 3)
    scores, fit_times, score_times, ended = np.moveaxis(table.reshape(-1, n_folds, 4), 2, 0)
    _warn_of_unfinished(ended, float(base.tol))
    return Results(grid.candidates(), scores, fit_times, score_times, scoring[0])


def read_once(base: Any, X: Any, y: Any, sample_weight: Any = None) -> tuple[Examples, Any]:
    """Read examples, once for all fits; return them and an estimator that takes them so, `base` with its template.

    Columns are those of all examples. Where features are observed, a fit to some of them has weights for what occurs
    there; else the weights of other columns stay zero.
    """
    given = X if hasattr(X, "shape") or hasattr(X, "iloc") else X if isinstance(X, Batch) else list(X)
    labels = y if hasattr(y, "shape") else list(y)
    read: Any = given
    if not isinstance(given, Batch) and _is_batched(base):
        template = template_of(base.template, given)
        base = base.set_params(template=template)
        structure = structure_of(type(base).__name__, base.structure)
        growing = TrueLabels(labels).growing(structure, base.features) or True
        nodes, pairs = read_examples(structure, given, None, template, None, grow=growing)
        read = given if pairs is not None else nodes  # pairs of a template are read with each fold
    if len(labels) != _count(read):
        raise ValueError(f"X and y must have as many examples. Got {_count(read)} and {len(labels)}.")
    return Examples(given=given, read=read, y=labels, weights=sample_weight), base


def _count(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") and not isinstance(X, Batch) else len(X)


def _is_batched(base: Any) -> bool:
    """Whether examples are sequences and the like, read into columns with weights."""
    is_structure = isinstance(base.structure, (str, Structure))
    return is_structure and base.kernel is None and not structure_of(type(base).__name__, base.structure).is_flat


def _read_dev(base: Any, data: Examples, X: Any, y: Any) -> Examples:
    given = X if hasattr(X, "shape") or isinstance(X, Batch) else list(X)
    read: Any = given
    if isinstance(data.read, Batch) and not isinstance(given, Batch):
        structure, width = structure_of(type(base).__name__, base.structure), None
        if data.read.vocabulary is None:
            width = data.read.n_columns
        read, _ = read_examples(structure, given, None, base.template, data.read.vocabulary, n_columns=width)
    labels = y if hasattr(y, "shape") else list(y)
    if len(labels) != _count(read):
        raise ValueError(f"X_dev and y_dev must have as many examples. Got {_count(read)} and {len(labels)}.")
    return Examples(given=given, read=read, y=labels, weights=None)


def _scored(model: Any, train: Examples, test: Examples, Cs: Any, scoring: Any, tell: Any) -> Any:
    """Yield score, seconds of the fit and of the score, and whether the fit ended as it should, for each C."""
    scorer = scoring[1]
    X_test = test.read if SCORERS.get(scoring[0]) is scorer else test.given
    began = time.perf_counter()
    for fitted in _fits(model, train, Cs):
        trained = time.perf_counter()
        score = float(scorer(fitted, X_test, test.y))
        scored = time.perf_counter()
        tell(float(fitted.C), score)
        yield score, trained - began, scored - trained, float(fitted.status_ in _ENDED)
        began = scored


def _evidences(model: Any, data: Examples, Cs: Any, tell: Any) -> Any:
    """Yield the same as `_scored`: the evidence of all data, whose time is that of the fit."""
    began = time.perf_counter()
    read = model.set_params(C=1.0)._read(data.read, data.y, data.weights, None)
    for fitted, found in evidence_path(model, read, Cs):
        tell(float(fitted.C), found.log_evidence)
        yield found.log_evidence, time.perf_counter() - began, 0.0, float(fitted.status_ in _ENDED)
        began = time.perf_counter()


def _fits(model: Any, train: Examples, Cs: Any) -> Any:
    """Yield models for each C: a path for linear scores, else fits from the weights before."""
    is_structure = isinstance(model.structure, (str, Structure))
    if is_structure and model.kernel is None:
        yield from fit_path(model, model.set_params(C=1.0)._read(train.read, train.y, train.weights, None), Cs)
        return
    model.set_params(warm_start=True)
    for C in Cs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            yield model.set_params(C=C).fit(train.read, train.y, train.weights)


def _tell(progress: Any, C: float, setting: dict[str, int], fold: int, score: float) -> None:
    if progress is not None:
        progress({"C": C, **setting}, fold, score)


def _warn_of_unfinished(ended: NDArray[np.float64], tol: float) -> None:
    left = int(ended.size - ended.sum())
    if left:
        warn_user(
            f"{left} of {ended.size} fits did not reach the tolerance {tol:g}. Increase max_iter or tol, or leave out "
            "the largest values of C.",
            ConvergenceWarning,
        )
