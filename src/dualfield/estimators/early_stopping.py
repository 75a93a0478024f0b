"""Stop a fit when the score on held-out data no longer rises."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from dualfield.data.checks import check_integer
from dualfield.solvers import Moment

__all__ = ["EarlyStopping"]


class EarlyStopping:
    """A monitor for ``fit`` that scores the model on held-out data after each pass, and ends the fit in time.

    It keeps the model of the best pass, which the fit itself does not: that ends with the last one.

    Parameters
    ----------
    X, y : list of sequences, and of their labels
        Held-out data, in the form that the model takes.
    scorer : callable, default=None
        ``scorer(model, X, y)``, higher is better, such as :func:`dualfield.metrics.span_f1_scorer`. None: the ``score``
        of the model.
    patience : int or None, default=5
        End the fit after this many looks without a better score; None: never.
    every : int, default=1
        Look after every so many passes.

    Attributes
    ----------
    scores_ : list of (float, float)
        Passes and score of each look.
    best_model_ : estimator
        The model of the best look, ready to predict and to be saved.
    best_score_, best_passes_ : float
        Its score, and the passes that it took.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.estimators import EarlyStopping
    >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 10, [["x", "y"], ["y", "x"]] * 10
    >>> stop = EarlyStopping(X, y, patience=2)
    >>> last = CRF(tol=1e-12, solver="lbfgs").fit(X, y, monitor=stop)
    >>> last.status_.value, stop.best_score_, len(stop.scores_)
    ('stopped', 1.0, 4)
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        scorer: Callable[[Any, Any, Any], float] | None = None,
        patience: int | None = 5,
        every: int = 1,
    ) -> None:
        check_integer("EarlyStopping", "patience", patience, 1, or_none=True)
        check_integer("EarlyStopping", "every", every, 1)
        self.X, self.y, self.scorer, self.every = X, y, scorer, int(every)
        self.patience = None if patience is None else int(patience)
        self._begin()

    def _begin(self) -> None:
        self.scores_: list[tuple[float, float]] = []
        self.best_model_: Any = None
        self.best_score_, self.best_passes_ = float("-inf"), 0.0
        self._n_calls = self._best_look = 0

    def __call__(self, moment: Moment, model: Any) -> bool:
        """Look at the model of a pass; true where the fit is to end.

        Parameters
        ----------
        moment : Moment
            Passes so far, among others.
        model : estimator
            The model of that moment.

        Returns
        -------
        bool
            Whether the last looks were no better than one before.
        """
        if self.scores_ and moment.passes < self.scores_[-1][0]:
            self._begin()  # another fit
        self._n_calls += 1
        if (self._n_calls - 1) % self.every:
            return False
        found = float(model.score(self.X, self.y) if self.scorer is None else self.scorer(model, self.X, self.y))
        self.scores_.append((float(moment.passes), found))
        if found > self.best_score_:
            self.best_score_, self.best_passes_ = found, float(moment.passes)
            self.best_model_ = copy.copy(model)
            self._best_look = len(self.scores_)
        return self.patience is not None and len(self.scores_) - self._best_look >= self.patience
