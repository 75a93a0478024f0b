"""How the score grows with the number of training examples."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import check_random_state

from dualfield.data.tables import Columns
from dualfield.metrics import span_f1_score
from dualfield.plotting.canvas import one_axes
from dualfield.plotting.display import Display
from dualfield.plotting.labels import label_list
from dualfield.plotting.line_chart import Line, draw_lines, line_chart
from dualfield.plotting.markup import Html
from dualfield.plotting.sentence import mark_spans
from dualfield.plotting.tables import table

Scorer = Callable[[Any, Any, Any], float]

_SHARES = (0.1, 0.2, 0.35, 0.6, 1.0)


class LearningCurveDisplay(Display):
    """Scores on held-out data and on the training data by the number of training examples.

    Where the held-out score still rises at the right end, more data help; where it is far below the score of training,
    more regularisation (a smaller C) may.

    Parameters
    ----------
    sizes : array-like of int of shape (n_fits,)
        Training examples of each fit.
    scores, train_scores : array-like of shape (n_fits,)
        The score of each fit on held-out data, and on its own training data.
    score_name : str, default="score"
        What is measured.
    warm : bool, default=False
        Whether each fit began at the weights of the one before (warm starts), or all from scratch (cold).

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last :meth:`plot`.

    Examples
    --------
    >>> from dualfield.plotting import LearningCurveDisplay
    >>> LearningCurveDisplay([10, 100], [0.6, 0.8], [1.0, 0.9], score_name="span F1")
    LearningCurveDisplay(span F1 0.6000 to 0.8000 with 10 to 100 training examples, cold fits)
    """

    def __init__(
        self,
        sizes: ArrayLike,
        scores: ArrayLike,
        train_scores: ArrayLike,
        *,
        score_name: str = "score",
        warm: bool = False,
    ) -> None:
        self.sizes = np.asarray(sizes, dtype=np.int64)
        self.scores, self.train_scores = (np.asarray(one, dtype=np.float64) for one in (scores, train_scores))
        self.score_name, self.warm = score_name, warm
        shapes = [one.shape for one in (self.sizes, self.scores, self.train_scores)]
        if len(set(shapes)) > 1 or self.sizes.ndim != 1 or not len(self.sizes):
            raise ValueError(
                "sizes, scores and train_scores must be 1D, not empty and of the same length. Got shapes "
                f"{', '.join(map(str, shapes))}."
            )

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        X_dev: Any,
        y_dev: Any,
        *,
        sizes: Sequence[float] = _SHARES,
        scoring: Scorer | None = None,
        score_name: str | None = None,
        warm: bool = False,
        random_state: Any = 0,
    ) -> Self:
        """Fit copies of a model to growing parts of the training data, and score each.

        Parameters
        ----------
        model : estimator
            Its parameters are used; it is neither fitted nor changed.
        X, y : sequences and their labels, or array of shape (n, n_features) and labels
            Training data.
        X_dev, y_dev
            Held-out data.
        sizes : sequence of float or int, default=(0.1, 0.2, 0.35, 0.6, 1.0)
            Shares of the examples, in (0, 1], or numbers of them. Each part holds the ones before.
        scoring : callable(model, X, y), default=None
            A scorer; None: the F1 score of spans where the labels mark spans, or else ``model.score``.
        score_name : str, default=None
            What the scorer measures; None: "span F1", "accuracy", or the name of the scorer.
        warm : bool, default=False
            Begin each fit at the weights of the one before, which takes less time and leads to the same optimum; the
            model must have the parameter `warm_start`.
        random_state : int, RandomState or None, default=0
            Seed of the order in which examples are added.

        Returns
        -------
        LearningCurveDisplay
            The display.

        Examples
        --------
        >>> from dualfield import CRF
        >>> from dualfield.plotting import LearningCurveDisplay
        >>> X, y = [[["a"], ["b"]], [["b"]], [["c"], ["a"]]], [["x", "y"], ["y"], ["x", "x"]]
        >>> display = LearningCurveDisplay.from_estimator(CRF(C=10.0), X, y, X, y, sizes=[1, 3])
        >>> display.sizes.tolist(), float(display.scores[-1])
        ([1, 3], 1.0)
        """
        labels = label_list(y)
        counts = _counts(sizes, len(labels))
        if warm and "warm_start" not in model.get_params(deep=False):
            raise ValueError(f"warm=True needs an estimator with the parameter warm_start. Got {type(model).__name__}.")
        score, name = _scorer(labels, scoring)
        order = check_random_state(random_state).permutation(len(labels))
        fitted = clone(model).set_params(warm_start=True) if warm else model
        found = []
        for count in counts:
            part_X, part_y = _part(X, order[:count]), _part(y, order[:count])
            fitted = (fitted if warm else clone(model)).fit(part_X, part_y)
            found.append((score(fitted, X_dev, y_dev), score(fitted, part_X, part_y)))
        held_out, training = zip(*found, strict=True)
        return cls(counts, held_out, training, score_name=score_name or name, warm=warm)

    @property
    def fits(self) -> str:
        """How the fits began: "warm starts" or "cold fits"."""
        return "warm starts" if self.warm else "cold fits"

    def _summary(self) -> str:
        rise = f"{self.score_name} {self.scores[0]:.4f} to {self.scores[-1]:.4f}"
        return f"{rise} with {self.sizes[0]:,} to {self.sizes[-1]:,} training examples, {self.fits}"

    def _columns(self) -> Columns:
        return {
            "training examples": self.sizes.tolist(),
            "held-out": self.scores.tolist(),
            "training": self.train_scores.tolist(),
        }

    def _lines(self) -> list[Line]:
        x = tuple(self.sizes.tolist())
        return [
            Line("held-out data", x, tuple(self.scores.tolist())),
            Line("training data", x, tuple(self.train_scores.tolist())),
        ]

    def plot(self, ax: Any = None) -> Self:
        """Draw with matplotlib, the number of examples on a logarithmic axis.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; None: a new figure.

        Returns
        -------
        LearningCurveDisplay
            Itself.

        Examples
        --------
        >>> import matplotlib.pyplot as plt
        >>> from dualfield.plotting import LearningCurveDisplay
        >>> display = LearningCurveDisplay([10, 100], [0.6, 0.8], [1.0, 0.9], score_name="span F1").plot()
        >>> display.ax_.get_xlabel()
        'training examples (cold fits)'
        >>> plt.close(display.figure_)
        """
        self.ax_ = one_axes(ax, (4.4, 3.0))
        self.figure_ = self.ax_.figure
        ticks = self.sizes.tolist()
        draw_lines(self.ax_, self._lines(), x_axis=self._x_axis, y_axis=self.score_name, log_x=True, x_ticks=ticks)
        return self

    def html(self) -> Html:
        """Draw as SVG with a table, for a page of :mod:`dualfield.report`.

        Returns
        -------
        Html
            The picture and the table.

        Examples
        --------
        >>> from dualfield.plotting import LearningCurveDisplay
        >>> "<td>100</td><td>0.8000</td>" in LearningCurveDisplay([10, 100], [0.6, 0.8], [1.0, 0.9]).html()
        True
        """
        picture = line_chart(
            self._lines(),
            title=f"{self.score_name} by the number of training examples",
            x_axis=self._x_axis,
            y_axis=self.score_name,
            log_x=True,
            x_ticks=self.sizes.tolist(),
        )
        rows = [
            (f"{size:,}", f"{score:.4f}", f"{train:.4f}")
            for size, score, train in zip(self.sizes, self.scores, self.train_scores, strict=True)
        ]
        numbers = table(list(self._columns()), rows, caption=f"{self.score_name}, {self.fits}")
        return Html(f'<div class="charts">{picture}{numbers}</div>')

    @property
    def _x_axis(self) -> str:
        return f"training examples ({self.fits})"


def _counts(sizes: Sequence[float], n: int) -> list[int]:
    """Return rising numbers of examples: shares of n, or numbers as they are."""
    counts = []
    for at, size in enumerate(sizes):
        count = round(size * n) if isinstance(size, float) and size <= 1.0 else size
        if isinstance(count, bool) or count != int(count) or not 1 <= count <= n:
            raise ValueError(f"sizes[{at}] must be a share in (0, 1] or an int from 1 to {n}. Got {size!r} instead.")
        counts.append(int(count))
    if not counts:
        raise ValueError("sizes must have at least one entry. Got none.")
    return sorted(set(counts))


def _scorer(labels: list[Any], scoring: Scorer | None) -> tuple[Scorer, str]:
    if scoring is not None:
        return scoring, str(getattr(scoring, "__name__", "score"))
    first = labels[0] if labels else []
    if isinstance(first, list | tuple | np.ndarray) and mark_spans([one for some in labels for one in some]):
        return lambda fitted, X, y: span_f1_score(y, fitted.predict(X)), "span F1"
    return lambda fitted, X, y: float(fitted.score(X, y)), "accuracy"


def _part(data: Any, chosen: Any) -> Any:
    """Return some examples of a list or an array."""
    if isinstance(data, list | tuple):
        return [data[at] for at in chosen]
    return data.iloc[chosen] if hasattr(data, "iloc") else copy.copy(data[chosen])
