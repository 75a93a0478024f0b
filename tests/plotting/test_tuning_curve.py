"""Scores over C: from our searches and from scikit-learn's, and what cannot be drawn."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualfield.plotting import TuningCurveDisplay
from dualfield.report import tuning_page

TABLE = {
    "param_C": [0.1, 0.1, 1.0, 1.0, 10.0, 10.0],
    "param_order": [1, 2, 1, 2, 1, 2],
    "split0_test_score": [0.5, 0.4, 0.7, 0.6, 0.6, 0.9],
    "split1_test_score": [0.7, 0.6, 0.7, 0.6, 0.6, 0.9],
    "mean_test_score": [0.6, 0.5, 0.7, 0.6, 0.6, 0.9],
    "std_test_score": [0.1, 0.1, 0.0, 0.0, 0.0, 0.0],
    "mean_fit_time": [1.0] * 6,
}


def test_one_line_for_each_setting_and_the_winner_is_marked():
    display = TuningCurveDisplay.from_cv_results(TABLE, score_name="span_f1").plot()
    curve, C, score = display.best
    assert (curve.name, C, score) == ("order=2", 10.0, 0.9)
    first, second, star = display.ax_.get_lines()
    np.testing.assert_allclose(first.get_ydata(), [0.5, 0.6, 0.9])
    np.testing.assert_allclose(second.get_ydata(), [0.6, 0.7, 0.6])
    np.testing.assert_allclose(star.get_xydata(), [[10.0, 0.9]])
    assert (display.ax_.get_xscale(), display.ax_.get_ylabel()) == ("log", "span F1")
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        "order=2",
        "order=1",
        "best: C = 10, order=2, 0.9000",
    ]
    assert len(display.ax_.collections) == 2  # error bars
    plt.close(display.figure_)


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_searches_of_scikit_learn(in_pipeline):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = make_pipeline(StandardScaler(), LogisticRegression()) if in_pipeline else LogisticRegression()
    grid = {"logisticregression__C" if in_pipeline else "C": [0.1, 1.0, 10.0]}
    search = GridSearchCV(model, grid, cv=3, scoring="neg_log_loss").fit(X, X[:, 0] > 0)
    display = TuningCurveDisplay.from_estimator(search)
    assert display.score_name == "neg log loss"
    np.testing.assert_allclose(display.curves[0].mean, search.cv_results_["mean_test_score"])
    assert display.best[2] == search.best_score_


def test_the_best_settings_are_drawn_where_there_are_many():
    table = {"param_C": [1.0] * 9, "param_order": list(range(9)), "mean_test_score": [0.1 * k for k in range(9)]}
    names = [curve.name for curve in TuningCurveDisplay.from_cv_results(table).curves]
    assert names == [f"order={k}" for k in (8, 7, 6, 5, 4)]


def test_refused():
    with pytest.raises(ValueError, match="must have param_C and mean_test_score"):
        TuningCurveDisplay.from_cv_results({"param_gamma": [1.0], "mean_test_score": [0.5]})
    with pytest.raises(ValueError, match="must be fitted and have cv_results_"):
        TuningCurveDisplay.from_estimator(LogisticRegression())
    with pytest.raises(ValueError, match="There is no score to draw"):
        TuningCurveDisplay.from_cv_results({"param_C": [1.0], "mean_test_score": [np.nan]})


def test_page_has_one_curve_and_one_table_sorted_by_score():
    document = tuning_page(TABLE, title="T", score_name="span_f1", remarks=["<edge>"], facts=[("a", "b")], command="c")
    assert document.count("<svg") == 1
    assert "&lt;edge&gt;" in document
    rows = [row for row in document.split("<tr>") if "<td>" in row]
    assert "<td>10</td><td>2</td>" in rows[0]
    assert rows[0].rstrip().endswith("<td>best</td></tr>")
    assert "0.9000\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}0.0000" in rows[0]
    assert sum("<td>best</td>" in row for row in rows) == 1
