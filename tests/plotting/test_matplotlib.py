"""Displays as figures of matplotlib, drawn without a screen."""

import io

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from dualfield.metrics import calibration_bins
from dualfield.plotting import (
    CalibrationChangeDisplay,
    ConfusionDisplay,
    ConvergenceDisplay,
    LearningCurveDisplay,
    MarginalsDisplay,
    ReliabilityDisplay,
    TopFeaturesDisplay,
    TransitionDisplay,
)
from dualfield.plotting.style import LIGHT

NAMES = ("transitions", "top_features", "convergence", "reliability", "confusion", "marginals", "learning", "change")


def made(name: str):
    """Make a display with labels that matplotlib could take for formulas."""
    labels = ["$x_1$", "PRP$", "b"]
    return {
        "transitions": lambda: TransitionDisplay(np.diag([1.0, -2.0, 0.0]), labels, ~np.eye(3, k=1, dtype=bool)),
        "top_features": lambda: TopFeaturesDisplay(
            {label: [("w=$a$", 1.0), ("w=b", -0.5)] for label in [*labels, "c"]}
        ),
        "convergence": lambda: ConvergenceDisplay(
            [3.0, 2.0], [1.0, 1.9], [2.0, 0.1], [1, 2], [0.1, 0.2], [(1, 0.1, "F1", 0.5), (2, 0.2, "F1", 0.7)]
        ),
        "reliability": lambda: ReliabilityDisplay(calibration_bins([0.9, 0.6, 0.55], [1, 0, 1])),
        "confusion": lambda: ConfusionDisplay([[5, 1, 0], [0, 7, 2], [0, 0, 0]], labels),
        "learning": lambda: LearningCurveDisplay([10, 100], [0.5, 0.7], [1.0, 0.9], score_name="$F_1$"),
        "change": lambda: CalibrationChangeDisplay(
            calibration_bins([0.99, 0.9], [1, 0]), calibration_bins([0.8, 0.6], [1, 0]), 2.0, (0.9, 0.5)
        ),
        "marginals": lambda: MarginalsDisplay(
            ["a $ sign $"] * 30, ["$x_1$"] * 30, np.linspace(0, 1, 30), truth=["$x_1$"] * 29 + ["b"]
        ),
    }[name]()


@pytest.fixture(autouse=True)
def no_screen():
    matplotlib.use("agg")
    before = plt.get_fignums()
    yield
    assert plt.get_fignums() == before, "a test must close its figures"


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_drawn_and_can_be_saved(name):
    display = made(name)
    assert display.plot() is display
    out = io.BytesIO()
    display.figure_.savefig(out, format="png")
    assert out.getvalue().startswith(b"\x89PNG")
    assert display.ax_.figure is display.figure_
    plt.close(display.figure_)


@pytest.mark.parametrize("name", NAMES)
def test_figures_are_drawn_where_they_are_asked_to(name):
    figure, axes = plt.subplots(1, 2)
    display = made(name).plot(ax=axes[1])
    assert display.figure_ is figure
    figure.savefig(io.BytesIO(), format="png")
    assert len(plt.get_fignums()) == 1
    plt.close(figure)


def test_transitions_show_weights_and_strike_out_what_is_forbidden():
    display = made("transitions").plot()
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["$x_1$", "PRP$", "b"]
    assert display.im_.get_clim() == (-2.0, 2.0)
    assert display.im_.get_array().mask.tolist() == np.eye(3, k=1, dtype=bool).tolist()
    assert [None if text is None else text.get_text() for text in np.diag(display.text_)] == ["1.0", "-2.0", None]
    (strokes,) = display.ax_.get_lines()
    assert np.isfinite(strokes.get_xdata()).sum() == 2 * 2
    plt.close(display.figure_)
    assert made("transitions").plot(numbers=False).text_ is None
    plt.close("all")


def test_many_labels_are_cut_with_a_note():
    n = 60
    transitions = TransitionDisplay(np.eye(n), range(n)).plot()
    assert transitions.ax_.get_title() == "45 of 60 labels, those with the largest weights"
    assert transitions.im_.get_array().shape == (45, 45)
    assert transitions.text_ is None
    confusion = ConfusionDisplay(np.ones((n, n), dtype=int), range(n)).plot()
    assert confusion.ax_.get_title() == "25 of 60 labels, those confused most often"
    top = TopFeaturesDisplay({at: [("a", float(at))] for at in range(n)}).plot(max_labels=4)
    assert [axes.get_title() for axes in top.axes_] == ["56", "57", "58", "59"]
    plt.close("all")


def test_top_features_are_bars():
    display = made("top_features").plot(n_columns=2)
    assert len(display.axes_) == 4
    for axes in display.axes_:
        assert [bar.get_width() for bar in axes.patches] == [1.0, -0.5]
        assert [text.get_text() for text in axes.get_yticklabels()] == ["w=$a$", "w=b"]
    plt.close(display.figure_)


def test_convergence_has_a_logarithmic_gap():
    display = made("convergence").plot(against="passes")
    objective, gap, score = display.axes_
    assert [list(line.get_ydata()) for line in objective.get_lines()] == [[3.0, 2.0], [1.0, 1.9]]
    assert gap.get_yscale() == "log"
    assert gap.get_lines()[0].get_ydata() == pytest.approx((2.0, 0.1 / 1.9))
    assert list(gap.get_lines()[0].get_xdata()) == [1.0, 2.0]
    assert list(score.get_lines()[0].get_ydata()) == [0.5, 0.7]
    plt.close(display.figure_)


def test_reliability_of_two_models_shares_its_axes():
    first = made("reliability").plot()
    second = ReliabilityDisplay(calibration_bins([0.7], [1]), name="other").plot(first.ax_, counts=False)
    names = [text.get_text() for text in second.ax_.get_legend().get_texts()]
    assert names == ["exactly as sure as right", "model (calibration error 0.083)", "other (calibration error 0.300)"]
    assert sorted(text.get_text() for text in first.ax_.texts) == ["1", "2"]
    third = ReliabilityDisplay(calibration_bins([0.6], [1]), name="third").plot(first.ax_)
    assert list(first.ax_.texts) == []  # no numbers where several models share the axes
    assert third.line_.get_marker() != second.line_.get_marker()
    assert first.line_.get_marker() != second.line_.get_marker()
    assert first.line_.get_color() != second.line_.get_color()
    plt.close(first.figure_)


def test_reliability_has_error_bars_and_a_legend_within_the_figure():
    figure, ax = plt.subplots()
    bins = calibration_bins([0.9, 0.8, 0.85, 0.6], [1, 0, 1, 1])
    display = ReliabilityDisplay(bins).plot(ax)
    (bars,) = (one for one in ax.collections if hasattr(one, "get_segments"))
    for (low, high), x, y, count in zip(bars.get_segments(), bins.confidence, bins.accuracy, bins.count, strict=True):
        spread = 2 * np.sqrt(x * (1 - x) / count)
        assert (low[0], low[1], high[1]) == pytest.approx((x, max(y - spread, 0), min(y + spread, 1)))
    figure.canvas.draw()
    legend, whole = (one.get_window_extent() for one in (display.ax_.get_legend(), figure))
    plane = ax.get_window_extent()
    assert legend.y1 < plane.y0  # it covers nothing
    assert whole.x0 <= legend.x0 <= legend.x1 <= whole.x1
    assert whole.y0 <= legend.y0
    plt.close(figure)


def test_confusion_shows_counts():
    display = made("confusion").plot()
    assert [[None if cell is None else cell.get_text() for cell in row] for row in display.text_] == [
        ["5", "1", None],
        [None, "7", "2"],
        [None, None, None],
    ]
    np.testing.assert_allclose(display.im_.get_array(), display.shares)
    plt.close(display.figure_)


def test_marginals_mark_errors_and_break_lines():
    display = made("marginals").plot()
    edges = [box.get_edgecolor() for box in display.ax_.patches]
    assert edges[-1] == matplotlib.colors.to_rgba(LIGHT["wrong"])
    assert len(set(edges[:-1])) == 1
    right = max(box.get_x() + box.get_width() for box in display.ax_.patches)
    assert right <= display.ax_.get_xlim()[1]
    boxes = [(box.get_y(), box.get_x()) for box in display.ax_.patches]
    assert boxes == sorted(boxes)
    assert len({y for y, _ in boxes}) > 1
    assert display.ax_.texts[-1].get_text() == "true: b"
    plt.close(display.figure_)


@pytest.mark.parametrize("name", NAMES)
def test_without_matplotlib_the_error_says_what_to_do(name, without_matplotlib):
    display = made(name)
    remedy = r"Figures and reports need matplotlib: pip install matplotlib"
    with pytest.raises(ImportError, match=remedy):
        display.plot()
    if name in ("top_features", "marginals"):  # tables and text
        assert display.html()
    else:
        with pytest.raises(ImportError, match=remedy):
            display.html()
