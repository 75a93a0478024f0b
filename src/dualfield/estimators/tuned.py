"""Estimators that choose their parameters by held-out data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dualfield.data.checks import check_flag
from dualfield.estimators.crf import CRF
from dualfield.estimators.prediction import StructuredPredictor
from dualfield.estimators.structured_svm import StructuredSVM
from dualfield.structures.registry import has_trees
from dualfield.tuning import Grid, Results, Splits, pick_scorer, search
from dualfield.tuning.folds import check_labels, distinct_labels
from dualfield.tuning.grid import with_setting
from dualfield.tuning.scoring import EVIDENCE

__all__ = ["CRFCV", "StructuredSVMCV"]


def _has_probabilities(model: Any) -> bool:
    return hasattr(getattr(model, "best_estimator_", CRF()), "predict_proba")


class _Search(StructuredPredictor, BaseEstimator):  # type: ignore[misc]
    """A search that answers as the estimator that it has found."""

    _of: Callable[[], Any]
    best_estimator_: Any
    results_: Results

    estimator: Any
    Cs: int | Iterable[float]
    order: int | Iterable[int] | None
    min_freq: int | Iterable[int] | None
    cv: Any
    scoring: str | Callable[[Any, Any, Any], float] | None
    refit: bool
    n_jobs: int | None

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        X_dev: Any = None,
        y_dev: Any = None,
        groups: Any = None,
        progress: Callable[[dict[str, Any], int, float], Any] | None = None,
    ) -> Self:
        """Search, and fit the best candidate to all of `X`.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit`` of the estimator.
        X_dev, y_dev : list of sequences, and of their labels, default=None
            Held-out data that every candidate is scored on; ``cv`` is then not used.
        groups : sequence, default=None
            For splitters by groups, such as documents.
        progress : callable, default=None
            Called with the parameters, the number of the fold and the score, as soon as one is known.

        Returns
        -------
        object
            The fitted search.

        Examples
        --------
        >>> from dualfield import CRFCV
        >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 5, [["x", "y"], ["y", "x"]] * 5
        >>> CRFCV(Cs=[0.1, 1.0]).fit(X, y, X_dev=X[:2], y_dev=y[:2]).n_splits_
        1
        """
        owner, estimator = type(self).__name__, self._base()
        check_flag(owner, "refit", self.refit)
        grid = Grid.read(owner, self.Cs, self.order, self.min_freq)
        inputs = X if hasattr(X, "shape") else list(X)
        labels = y if hasattr(y, "shape") else list(y)
        margins, trees = hasattr(estimator, "rescaling"), has_trees(estimator.structure)
        scoring = pick_scorer(owner, self.scoring, distinct_labels(labels), margins=margins, trees=trees)
        with_setting(clone(estimator), grid.candidates()[0])  # refuses what does not fit together
        if (X_dev is None) != (y_dev is None):
            raise ValueError("X_dev and y_dev must both be given, or both be None.")
        dev = None if X_dev is None else (X_dev if hasattr(X_dev, "shape") else list(X_dev), list(y_dev))
        if scoring[0] == EVIDENCE:
            if dev is not None:
                raise ValueError("scoring='evidence' is that of the training data: X_dev and y_dev must be None.")
            if self.cv is not None:
                raise ValueError(
                    f"The 'cv' parameter of {owner} must be None with scoring='evidence', which holds nothing out. "
                    f"Got {self.cv!r} instead."
                )
            splits = Splits.held_out(inputs, [])
        elif dev is None:
            splits = Splits.of(self.cv, inputs, labels, groups, classifier=is_classifier(estimator))
        else:
            splits = Splits.held_out(inputs, dev[1])
        if not has_trees(estimator.structure):
            check_labels(labels, splits, None if dev is None else dev[1], scoring[0])
        found = search(
            estimator,
            inputs,
            labels,
            grid=grid,
            splits=splits,
            scoring=scoring,
            sample_weight=sample_weight,
            dev=dev,
            n_jobs=self.n_jobs,
            progress=progress,
        )
        best = None
        if self.refit:
            best = with_setting(clone(estimator), found.candidates[found.best]).fit(inputs, labels, sample_weight)
        self._keep_results(found, scoring[1], len(splits.folds), best)
        return self

    def _base(self) -> Any:
        kind = type(self)._of
        if self.estimator is not None and not isinstance(self.estimator, kind):  # type: ignore[arg-type]
            name, found = getattr(kind, "__name__", ""), self.estimator
            raise ValueError(
                f"The 'estimator' parameter of {type(self).__name__} must be a {name} or None. Got {found!r} instead."
            )
        return kind() if self.estimator is None else self.estimator

    def _keep_results(self, found: Results, scorer: Any, n_splits: int, best: Any) -> None:
        self.results_, self.scorer_, self.n_splits_ = found, scorer, n_splits
        self.scoring_, self.cv_results_ = found.scoring, found.cv_results()
        self.best_index_, self.best_params_ = found.best, found.candidates[found.best]
        self.best_score_, self.C_ = float(found.means[found.best]), float(self.best_params_["C"])
        self.Cs_ = np.array(sorted({params["C"] for params in found.candidates}))
        self.__dict__.pop("best_estimator_", None)
        if best is not None:
            self.best_estimator_ = best

    def __sklearn_is_fitted__(self) -> bool:
        return "cv_results_" in vars(self)

    @property
    def model_(self) -> Any:
        """The model inside the best estimator."""
        check_is_fitted(self)
        if "best_estimator_" not in vars(self):
            raise AttributeError(f"{type(self).__name__}(refit=False) has scores, but no model. Set refit=True.")
        return self.best_estimator_.model_

    def _input(self, X: Any) -> Any:
        self.model_  # noqa: B018
        return self.best_estimator_._input(X)

    def calibrate(self, X: Any, y: Any, *, lengths: ArrayLike | None = None, cv: Any = None) -> Self:
        self.model_  # noqa: B018
        self.best_estimator_.calibrate(X, y, lengths=lengths, cv=cv)
        return self

    def score(self, X: Any, y: Any, *, lengths: ArrayLike | None = None) -> float:
        """Return the score that the search went by.

        Parameters
        ----------
        X, y
            Held-out examples and their labels.
        lengths : None
            Examples are passed one by one.

        Returns
        -------
        float
            Higher is better.

        Examples
        --------
        >>> from dualfield import CRFCV
        >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 5, [["x", "y"], ["y", "x"]] * 5
        >>> CRFCV(Cs=[1.0, 10.0], cv=2).fit(X, y).score(X, y)
        1.0
        """
        if lengths is not None:
            raise ValueError("lengths must be None: pass a list of sequences.")
        self.model_  # noqa: B018
        return float(self.scorer_(self.best_estimator_, X, y))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the best estimator, which :func:`dualfield.load` reads: the scores of the search are not in the file.

        Parameters
        ----------
        path : str or path-like
            The file; one that exists is replaced.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import dualfield
        >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 5, [["x", "y"], ["y", "x"]] * 5
        >>> tuned = dualfield.CRFCV(Cs=[1.0, 10.0], cv=2).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "tagger.model")
        ...     tuned.save(path)
        ...     type(dualfield.load(path)).__name__
        'CRF'
        """
        self.model_  # noqa: B018
        self.best_estimator_.save(path)


class CRFCV(_Search):
    """A :class:`dualfield.CRF` whose C is chosen by cross-validation or by held-out data.

    Examples are read once. Every fold has a path from small C to large, on which each fit starts where the ones before
    predict its solution, and ends at the tolerance of the estimator: the scores are those of separate fits to within
    that tolerance. The winner is fitted once more, to all data, as if its parameters had been given.

    Parameters
    ----------
    estimator : CRF, default=None
        Its other parameters, such as ``template`` and ``constraints``; None: ``CRF()``.
    Cs : int or list of float, default=7
        Values of C; an int: so many between 0.1 and 100, in equal steps of the logarithm.
    order : int or list of int, default=None
        Orders of the chain to try; None: that of the estimator.
    min_freq : int or list of int, default=None
        Values of ``min_freq`` to try; None: that of the estimator.
    cv : int, splitter or iterable, default=None
        Folds as in scikit-learn; None: five, without shuffling.
    scoring : str or callable, default=None
        "span_f1", "accuracy", "neg_log_loss", "token_f1", "sequence_accuracy", "neg_brier", "neg_calibration_error",
        "evidence" (that of the training data, without folds; see :meth:`CRF.evidence`), or ``scorer(estimator, X, y)``,
        higher is better. None: "span_f1" where labels mark spans, such as B-NP, else "accuracy".
    refit : bool, default=True
        Fit the winner to all data.
    n_jobs : int, default=None
        Folds at the same time, in threads; -1 is all cores. Results do not depend on it.

    Attributes
    ----------
    C_ : float
        The best C.
    best_params_ : dict
        The best candidate: C, and those of order and min_freq that were searched.
    best_score_ : float
        Its mean score.
    best_index_ : int
        Its place in ``cv_results_``. Of equal ones the first, which has the smallest C.
    best_estimator_ : CRF
        The winner, fitted to all data.
    cv_results_ : dict of arrays
        Keys of scikit-learn's GridSearchCV: ``param_C``, ``mean_test_score``, ``split0_test_score``, and so on.
    Cs_ : array
        The values of C that were tried, rising.
    scorer_, scoring_ : callable, str
        The score and its name.
    n_splits_ : int
        Number of folds; 1 with held-out data.
    results_ : Results
        What ``cv_results_`` is made of.

    See Also
    --------
    StructuredSVMCV : The same for the hinge loss.
    dualfield.plotting.TuningCurveDisplay : The scores over C.

    Examples
    --------
    >>> from dualfield import CRF, CRFCV
    >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 5, [["x", "y"], ["y", "x"]] * 5
    >>> tuned = CRFCV(CRF(start_stop=True), Cs=[0.1, 1.0, 10.0], cv=2, scoring="neg_log_loss").fit(X, y)
    >>> tuned.C_, tuned.predict([[["b"]]])
    (10.0, [['y']])
    """

    _of = CRF
    best_estimator_: CRF

    def __init__(
        self,
        estimator: CRF | None = None,
        *,
        Cs: int | Iterable[float] = 7,
        order: int | Iterable[int] | None = None,
        min_freq: int | Iterable[int] | None = None,
        cv: Any = None,
        scoring: str | Callable[[Any, Any, Any], float] | None = None,
        refit: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.Cs = Cs
        self.order = order
        self.min_freq = min_freq
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs


class StructuredSVMCV(_Search):
    """A :class:`dualfield.StructuredSVM` whose C is chosen by cross-validation or by held-out data.

    On a path from small C to large each fit starts at the dual point of the one before. It has margins, so scores of
    probabilities cannot be searched by.

    Parameters
    ----------
    estimator : StructuredSVM, default=None
        Its other parameters; None: ``StructuredSVM()``.
    Cs, order, min_freq, cv, scoring, refit, n_jobs
        As in :class:`CRFCV`.

    Attributes
    ----------
    C_, best_params_, best_score_, best_index_, best_estimator_, cv_results_
        As in :class:`CRFCV`.
    Cs_, scorer_, scoring_, n_splits_, results_
        As in :class:`CRFCV`.

    See Also
    --------
    CRFCV : The same for the log-loss.

    Examples
    --------
    >>> from dualfield import StructuredSVMCV
    >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 5, [["x", "y"], ["y", "x"]] * 5
    >>> tuned = StructuredSVMCV(Cs=[0.1, 1.0], cv=2).fit(X, y)
    >>> tuned.best_score_, tuned.C_
    (1.0, 0.1)
    """

    _of = StructuredSVM
    best_estimator_: StructuredSVM

    def __init__(
        self,
        estimator: StructuredSVM | None = None,
        *,
        Cs: int | Iterable[float] = 7,
        order: int | Iterable[int] | None = None,
        min_freq: int | Iterable[int] | None = None,
        cv: Any = None,
        scoring: str | Callable[[Any, Any, Any], float] | None = None,
        refit: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.Cs = Cs
        self.order = order
        self.min_freq = min_freq
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.n_jobs = n_jobs

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(
        self, X: Any, *, pairwise: bool = False, lengths: ArrayLike | None = None, known: Any = None
    ) -> Any:
        """Return probabilities, once ``best_estimator_`` has been calibrated.

        Parameters
        ----------
        X, pairwise, lengths, known
            As in :meth:`StructuredSVM.predict_proba`.

        Returns
        -------
        list of arrays
            Probabilities of labels.
        """
        return self.best_estimator_.predict_proba(X, pairwise=pairwise, lengths=lengths, known=known)
