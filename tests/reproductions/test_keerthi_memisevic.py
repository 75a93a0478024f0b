"""The pieces of reproductions, each against independent means."""

import dataclasses
import json

import numpy as np
import pytest
from scipy.optimize import OptimizeResult, minimize
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.datasets import make_blobs
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel

from reproductions.conjugate_gradient import conjugate_gradients
from reproductions.fits import Fit, error_on_test, fit_timed, losses_on_test, relative_gap, seconds_until
from reproductions.keerthi_accuracy import log_odds, two_gaussians
from reproductions.keerthi_scaling import ScalingRow, exponent
from reproductions.keerthi_times import TABLE2 as KEERTHI_TABLE2
from reproductions.keerthi_times import TimesRow
from reproductions.memisevic_curves import CurveRow, best_dual
from reproductions.memisevic_curves import present as present_curves
from reproductions.memisevic_data import inverse_lambda
from reproductions.memisevic_times import TABLE2 as MEMISEVIC_TABLE2
from reproductions.problems import Problem, stratified_order
from reproductions.records import Findings, Paper, Part, Settings, Table, Task
from reproductions.runner import run_parts
from reproductions.tuning import kernel_logistic_score, platt_log_loss, search, support_vector_score
from reproductions.writer import write_folder


@pytest.fixture(scope="module")
def problem() -> Problem:
    X, number = make_blobs(120, centers=3, n_features=3, cluster_std=3.0, random_state=3)
    y = np.array(["a", "b", "c"])[number]
    return Problem(X[:60] / 4.0, y[:60], X[60:] / 4.0, y[60:])


# Runner and writer


@dataclasses.dataclass(frozen=True)
class Number:
    value: float


def small_part(name: str, *runs) -> Part[Number]:
    def present(rows):
        table = Table(f"{name}.", ("a|b", "n"), tuple(("x|y", row.value) for row in rows), ("A note.",))
        return Findings(("<b>Bold</b>.",), (table,), differences=("Not the same.",))

    return Part(name, f"Part {name}", (), lambda _: [Task(str(k), run) for k, run in enumerate(runs)], present)


def test_a_run_that_is_cut_short_leaves_the_finished_parts(tmp_path):
    def stop():
        raise KeyboardInterrupt

    parts = (small_part("first", lambda: Number(1.5), lambda: Number(float("nan"))), small_part("second", stop))
    paper, settings, steps = Paper("p", "A <paper>", "Someone, 1900.", "Slow.", parts), Settings(), []
    with pytest.raises(KeyboardInterrupt):
        run_parts(parts, settings, steps.append, lambda some: write_folder(tmp_path, paper, settings, some))
    assert steps == ["first: 0", "first: 1", "second: 0"]
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert results["parts"]["first"]["rows"] == [{"value": 1.5}, {"value": None}]
    assert list(results["parts"]) == ["first"]
    markdown = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert r"| a\|b | n |" in markdown
    assert "| x\\|y | 1.5 |\n| x\\|y | – |" in markdown
    document = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "A &lt;paper&gt;" in document
    assert "&lt;b&gt;Bold&lt;/b&gt;." in document
    assert "quick run" not in document


def test_order_keeps_the_shares_of_classes():
    y = np.repeat([0, 1, 2], [700, 200, 100])
    order = stratified_order(y, np.random.default_rng(0))
    assert sorted(order) == list(range(1000))
    for n in (10, 57, 300, 999):
        shares = np.bincount(y[order[:n]], minlength=3)
        np.testing.assert_allclose(shares, n * np.array([0.7, 0.2, 0.1]), atol=1.0)


def test_conjugate_gradients_find_the_optimum(problem):
    """Against another algorithm on another form of the problem: L-BFGS on the features of a Cholesky factor."""
    gamma, C = 0.3, 2.0
    factor = np.linalg.cholesky(rbf_kernel(problem.X, gamma=gamma) + 1e-12 * np.eye(60))
    truth = np.eye(3)[np.unique(problem.y, return_inverse=True)[1]]

    def primal(flat):
        weights = flat.reshape(60, 3)
        scores = factor @ weights
        norm = logsumexp(scores, axis=1, keepdims=True)
        slope = weights + C * factor.T @ (np.exp(scores - norm) - truth)
        return 0.5 * np.square(weights).sum() + C * (norm.sum() - (truth * scores).sum()), slope.ravel()

    reference = minimize(primal, np.zeros(180), jac=True, method="L-BFGS-B", options={"maxiter": 500, "gtol": 1e-9})
    run = conjugate_gradients(problem, gamma=gamma, C=C, max_iter=500)
    assert run.stopped == "change"
    assert run.objective[-1] == pytest.approx(reference.fun, rel=1e-6)
    assert list(run.objective) == sorted(run.objective, reverse=True)
    assert list(run.seconds) == sorted(run.seconds)
    assert (np.diff(run.products) >= 2).all()
    weights = reference.x.reshape(60, 3)
    scores = rbf_kernel(problem.X_test, problem.X, gamma=gamma) @ np.linalg.solve(factor.T, weights)
    expected = np.mean(np.array(["a", "b", "c"])[scores.argmax(axis=1)] != problem.y_test)
    assert run.error[-1] == (len(run.seconds), pytest.approx(expected, abs=0.02))
    assert [iteration for iteration, _ in run.error[:3]] == [1, 2, 4]


def test_conjugate_gradients_are_capped(problem):
    run = conjugate_gradients(problem, gamma=0.3, C=100.0, max_iter=3)
    assert run.stopped == "cap"
    assert len(run.seconds) == len(run.objective) == 3


def test_conjugate_gradients_that_find_no_step_end_where_they_began(problem, monkeypatch):
    def stuck(fun, x0, **_):
        return OptimizeResult(x=x0, fun=fun(x0)[0], status=2)

    monkeypatch.setattr("reproductions.conjugate_gradient.minimize", stuck)
    run = conjugate_gradients(problem, gamma=0.3, C=2.0, max_iter=3)
    assert run.stopped == "line search"
    assert run.objective == (pytest.approx(2.0 * 60 * np.log(3)),)
    assert len(run.seconds) == len(run.error) == 1


def test_a_fit_and_conjugate_gradients_agree(problem):
    C = inverse_lambda(0.01, problem)
    fit, model = fit_timed(problem, Settings(), solver="auto", C=C, gamma=0.3, fit_intercept=False)
    run = conjugate_gradients(problem, gamma=0.3, C=C, max_iter=1000)
    assert fit.reached
    assert fit.gap <= 1e-6
    assert fit.objective == pytest.approx(run.objective[-1], rel=1e-5)
    assert fit.objective / (1.0 + fit.gap) <= run.objective[-1] * (1.0 + 1e-9)  # the dual value is a lower bound
    chances = model.predict_proba(problem.X_test)
    assert losses_on_test(model, problem) == pytest.approx(
        60 * log_loss(problem.y_test, chances, labels=model.classes_)
    )
    assert error_on_test(model, problem) == pytest.approx(1.0 - model.score(problem.X_test, problem.y_test))


def a_fit(asked="smo", seconds=1.0, objective=10.0, reached=True, passes=3.0) -> Fit:
    return Fit(asked, asked, seconds, objective, 1e-7 if reached else 1e-3, passes, 5, reached)


class Trace:
    objective = np.array([20.0, 12.0, 10.0, 9.9])
    seconds = np.array([0.0, 1.0, 2.0, 4.0])


class Model:
    trace_ = Trace()


@pytest.mark.parametrize(("target", "expected"), [(25.0, 1.0), (12.0, 2.0), (9.95, 5.0), (9.0, None)])
def test_seconds_are_read_off_the_trace(target, expected):
    """The trace ends with the fit, which took 5 seconds: the first second passed before the trace began."""
    assert seconds_until(a_fit(seconds=5.0), Model(), target) == expected


def test_relative_gap_needs_a_positive_dual_value():
    assert relative_gap(11.0, 1.0) == pytest.approx(0.1)
    assert relative_gap(1.0, 1.0) == np.inf


def test_the_exponent_of_a_power_law_is_found():
    sizes = (100, 300, 1000, 5000)
    fits = [a_fit(seconds=2e-6 * m**2.3, passes=7.0 * m**0.1, reached=m != 300) for m in sizes]
    found = exponent([ScalingRow("linear", m, fit) for m, fit in zip(sizes, fits, strict=True)])
    assert found.seconds == pytest.approx(2.3)
    assert found.work == pytest.approx(2.1)
    assert found.n_fits == 3
    assert exponent([ScalingRow("linear", 100, a_fit())]) is None


def test_log_odds_are_those_of_the_densities():
    X, y = two_gaussians(4000, np.random.default_rng(0))
    first, second = multivariate_normal([-2, 0], np.diag([1, 2])), multivariate_normal([2, 0], np.diag([2, 1]))
    np.testing.assert_allclose(log_odds(X), second.logpdf(X) - first.logpdf(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(X[y == 1].mean(axis=0), [2, 0], atol=0.12)
    np.testing.assert_allclose(X[y == -1].var(axis=0), [1, 2], rtol=0.1)
    assert np.mean((log_odds(X) > 0) != (y == 1)) == pytest.approx(0.046, abs=0.012)


def test_search_keeps_the_best_pair_of_both_grids():
    seen = []

    def score(C, sigma):
        seen.append((C, sigma))
        return abs(np.log(C / 30.0)) + abs(np.log(sigma / 3.0))

    best = search(score, coarse=10, fine=20)
    assert len(seen) == 500
    assert best.log_loss == min(score(*pair) for pair in seen[:500])
    assert min(C for C, _ in seen[:100]) == pytest.approx(0.01)
    assert max(C for C, _ in seen[:100]) == pytest.approx(1e4)
    assert best.gamma == pytest.approx(1.0 / (2.0 * best.sigma**2))


def test_scores_of_tuning_prefer_sense_to_nonsense():
    X, y = two_gaussians(120, np.random.default_rng(0))
    some = Problem(X, y, X[:0], y[:0])
    for make in (kernel_logistic_score, support_vector_score):
        score = make(some, Settings())
        assert score(10.0, 3.0) < 0.3
        assert score(10.0, 3.0) < score(10.0, 0.05)
        assert score(10.0, 3.0) == score(10.0, 3.0)


# Presenting: pure functions of records


def test_what_was_not_reached_is_said():
    lbfgs = a_fit("lbfgs", 70.0, 10.5, reached=False)
    rows = [
        TimesRow("banana", 2, 400, a_fit(seconds=0.5), a_fit("lbfgs", 2.0), 1.0, a_fit("auto", 0.25)),
        TimesRow("banana", 4, 400, a_fit(seconds=0.5), lbfgs, None, a_fit("auto", 0.3, reached=False)),
    ]
    found = KEERTHI_TABLE2.present(rows)
    first, second = found.tables[0].rows
    assert first[:8] == (2, 4.0, 3100.0, 775.0, 0.5, 1.0, 2.0, 0.25)
    assert second[:8] == (4, 840.0, None, None, 0.5, "not reached in 70", None, "0.3, gap 0.001")
    assert "in 1 of 2 runs" in found.summary[0]
    assert [line.name for line in found.figures[0].lines][:2] == ["SMO, paper", "SMO"]
    assert np.isnan(found.figures[0].lines[3].y[1])
    assert KEERTHI_TABLE2.present(rows).tables == found.tables


def test_paper_figures_have_one_entry_per_setting():
    for part, n in ((KEERTHI_TABLE2, 36), (MEMISEVIC_TABLE2, 28)):
        assert len(part.tasks(Settings())) == n


def test_distances_are_measured_from_the_best_dual_value():
    smo = CurveRow(0.1, "SMO", "smo", (1.0, 2.0), (1.0, 3.0), (11.0, 10.01), (2.0, 0.01), ((1.0, 0.2), (2.0, 0.1)))
    gradients = CurveRow(0.1, "conjugate gradients", "cap", (4.0,), (8.0,), (10.5,), (), ((4.0, 0.15),))
    assert best_dual([smo, gradients]) == pytest.approx(10.0)
    found = present_curves([smo, gradients])
    first, second = found.tables[0].rows
    assert first[5] == pytest.approx(0.001)
    assert second[5] == pytest.approx(0.05)
    assert (first[6], second[6]) == (2.0, None)
    assert "2 s (SMO), not at all (conjugate gradients)" in found.summary[0]
    assert {figure.name for figure in found.figures} == {
        f"figure1-{kind}-0.1" for kind in ("seconds", "passes", "error")
    }


def test_platts_sigmoid_is_calibrated_on_average():
    rng = np.random.default_rng(0)
    values = rng.normal(size=2000)
    positive = rng.random(2000) < 1.0 / (1.0 + np.exp(-3.0 * values - 1.0))
    chance = 1.0 / (1.0 + np.exp(-3.0 * values - 1.0))
    truth = -np.mean(np.log(np.where(positive, chance, 1.0 - chance)))
    assert platt_log_loss(values, positive) == pytest.approx(truth, rel=0.01)
    assert platt_log_loss(values, positive) == pytest.approx(platt_log_loss(100.0 * values, positive), rel=1e-3)
