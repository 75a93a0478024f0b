"""Searches for C: against scikit-learn's, whatever the number of threads, and what they refuse."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, PredefinedSplit

import dualfield
from dualfield import CRF, CRFCV, StructuredSVM, StructuredSVMCV
from dualfield.metrics import neg_log_loss_scorer, span_f1_scorer
from dualfield.structures import Chain
from dualfield.tuning.scoring import SCORERS

from ..tuning.test_path import sentences

CS = [0.1, 1.0, 10.0]
TIMES = ("mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time")


@pytest.fixture(scope="module")
def data():
    return sentences(50)


@pytest.mark.parametrize(
    ("kind", "scoring"),
    [(CRF, "span_f1"), (CRF, "neg_log_loss"), (CRF, "accuracy"), (StructuredSVM, "span_f1"), (CRF, "neg_brier")],
)
def test_scores_are_those_of_grid_search(data, kind, scoring):
    X, y = data
    estimator = kind(tol=1e-8 if kind is CRF else 1e-6)
    search = {CRF: CRFCV, StructuredSVM: StructuredSVMCV}[kind]
    found = search(estimator, Cs=CS, min_freq=[0, 2], cv=3, scoring=scoring).fit(X, y)
    grid = {"C": CS, "min_freq": [0, 2]}
    expected = GridSearchCV(estimator, grid, cv=KFold(3), scoring=SCORERS[scoring]).fit(X, y)
    assert set(found.cv_results_) == set(expected.cv_results_)
    assert found.cv_results_["params"] == expected.cv_results_["params"]
    for name, column in expected.cv_results_.items():
        if name.endswith("_test_score") and not name.startswith("rank"):
            # Margins that are equal at the optimum of the hinge are not within its tolerance: single spans differ.
            np.testing.assert_allclose(found.cv_results_[name], column, atol=0.04 if kind is StructuredSVM else 2e-5)
        elif name.startswith("param_"):
            assert found.cv_results_[name].tolist() == column.tolist()
    if kind is CRF:
        assert found.best_params_ == expected.best_params_
        assert found.best_index_ == expected.best_index_
        assert found.cv_results_["rank_test_score"].tolist() == expected.cv_results_["rank_test_score"].tolist()
    assert all((found.cv_results_[name] >= 0).all() for name in TIMES)


@pytest.mark.parametrize("search", [CRFCV(Cs=4, order=[1, 2], cv=3), StructuredSVMCV(Cs=3, cv=3)])
def test_results_do_not_depend_on_threads(data, search):
    one, four = (clone(search).set_params(n_jobs=n_jobs).fit(*data) for n_jobs in (1, 4))
    for name, column in one.cv_results_.items():
        if name not in TIMES and name != "params":
            assert np.array_equal(column, four.cv_results_[name]), name
    assert np.array_equal(one.parameters_, four.parameters_)


def test_the_winner_is_as_if_its_parameters_had_been_given(data):
    X, y = data
    found = CRFCV(CRF(start_stop=True), Cs=CS, order=[1, 2], cv=2).fit(X, y)
    structure = "chain" if found.best_params_["order"] == 1 else Chain(order=2)
    alone = CRF(structure, C=found.C_, start_stop=True).fit(X, y)
    assert np.array_equal(found.parameters_, alone.parameters_)
    assert found.predict(X) == alone.predict(X)
    assert all(np.array_equal(a, b) for a, b in zip(found.predict_proba(X), alone.predict_proba(X), strict=True))
    assert found.classes_.tolist() == alone.classes_.tolist()
    assert found.k_best(X[:1], 2) == alone.k_best(X[:1], 2)
    assert found.score(X, y) == span_f1_scorer(alone, X, y)


def test_held_out_data(data):
    X, y = data
    found = CRFCV(Cs=CS, scoring="accuracy").fit(X[:40], y[:40], X_dev=X[40:], y_dev=y[40:])
    scores = [CRF(C=C).fit(X[:40], y[:40]).score(X[40:], y[40:]) for C in CS]
    np.testing.assert_allclose(found.cv_results_["split0_test_score"], scores, atol=1e-12)
    assert found.n_splits_ == 1
    assert CS[int(np.argmax(scores))] == found.C_
    assert np.array_equal(found.parameters_, CRF(C=found.C_).fit(X[:40], y[:40]).parameters_)  # of X alone


def test_the_file_has_the_winner(data, tmp_path):
    found = CRFCV(Cs=CS, cv=2).fit(*data)
    found.save(tmp_path / "m")
    loaded = dualfield.load(tmp_path / "m")
    assert isinstance(loaded, CRF)
    assert loaded.C == found.C_
    assert loaded.predict(data[0]) == found.predict(data[0])


def dicts(X):
    return [[dict.fromkeys(token, 1.0) for token in one] for one in X]


def matrices(X):
    return [np.array([[float(token[0] == f"w{k}") for k in range(3)] for token in one]) for one in X]


@pytest.mark.parametrize("form", [dicts, matrices, lambda X: [[tuple(token) for token in one] for one in X]])
def test_forms_of_input(data, form):
    X, y = form(data[0]), data[1]
    found = CRFCV(Cs=CS, cv=2).fit(X, y)
    expected = GridSearchCV(CRF(), {"C": CS}, cv=KFold(2), scoring=span_f1_scorer).fit(X, y)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], atol=0.01)
    assert found.predict(X) == found.best_estimator_.predict(X)


def test_generators_are_read_once(data):
    X, y = data
    found = CRFCV(Cs=CS, cv=2).fit((one for one in X), (one for one in y))
    expected = CRFCV(Cs=CS, cv=2).fit(X, y)
    assert np.array_equal(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])


def test_a_template_makes_the_attributes(data):
    rows = [[[token[0], token[1]] for token in one] for one in data[0]]
    for template in ("default", "U00:%x[0,0]\nB01:%x[0,0]"):  # the second has features of label pairs
        found = CRFCV(CRF(template=template), Cs=[1.0, 10.0], cv=2).fit(rows, data[1])
        scorer = {"scoring": span_f1_scorer}
        expected = GridSearchCV(CRF(template=template), {"C": [1.0, 10.0]}, cv=KFold(2), **scorer).fit(rows, data[1])
        np.testing.assert_allclose(
            found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], atol=0.01
        )
        assert found.predict(rows) == found.best_estimator_.predict(rows)


def test_single_nodes_are_stratified_and_weighted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=90) > 0, "up", "down")
    weights = rng.random(90)
    estimator = StructuredSVM("single", tol=1e-6)
    found = StructuredSVMCV(estimator, Cs=CS, cv=3).fit(X, y, weights)
    expected = GridSearchCV(estimator, {"C": CS}, cv=3).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], atol=0.02)
    assert found.predict(X).shape == (90,)
    crf = CRFCV(CRF("single"), Cs=CS, cv=3).fit(X, y)
    assert crf.predict_proba(X).shape == (90, 2)


def test_kernels_go_on_from_the_fit_before(data):
    X, y = matrices(data[0][:20]), data[1][:20]
    found = CRFCV(CRF(kernel="rbf", tol=1e-6), Cs=[1.0, 10.0], cv=2, scoring="neg_log_loss").fit(X, y)
    expected = GridSearchCV(CRF(kernel="rbf", tol=1e-6), {"C": [1.0, 10.0]}, cv=KFold(2), scoring=neg_log_loss_scorer)
    expected.fit(X, y)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], atol=1e-3)


def test_groups_and_splits(data):
    X, y = data
    groups = np.arange(len(X)) % 4
    found = CRFCV(Cs=[1.0], cv=GroupKFold(4)).fit(X, y, groups=groups)
    assert found.n_splits_ == 4
    splits = [(np.arange(30), np.arange(30, 50)), (np.arange(20, 50), np.arange(20))]
    listed = CRFCV(Cs=[1.0], cv=splits).fit(X, y)
    alone = CRF(C=1.0).fit(X[:30], y[:30])
    assert listed.cv_results_["split0_test_score"][0] == pytest.approx(span_f1_scorer(alone, X[30:], y[30:]))
    predefined = CRFCV(Cs=[1.0], cv=PredefinedSplit([-1] * 30 + [0] * 20)).fit(X, y)
    assert predefined.cv_results_["mean_test_score"][0] == listed.cv_results_["split0_test_score"][0]


def test_a_callable_gets_the_examples_as_they_are(data):
    X, y = data
    seen = []

    def scorer(model, inputs, labels):
        seen.append(inputs)
        return model.score(inputs, labels)

    found = CRFCV(Cs=[1.0], cv=2, scoring=scorer, refit=False).fit(X, y)
    assert found.scoring_ == "scorer"
    assert sorted(map(str, seen)) == sorted(map(str, (X[:25], X[25:])))


def test_the_score_suits_the_labels(data):
    X, y = data
    assert CRFCV(Cs=[1.0], cv=2).fit(X, y).scoring_ == "span_f1"
    tags = [[label[0] + "x" for label in one] for one in y]
    assert CRFCV(Cs=[1.0], cv=2).fit(X, tags).scoring_ == "accuracy"
    numbers = [[len(label) for label in one] for one in y]
    assert CRFCV(Cs=[1.0], cv=2).fit(X, numbers).scoring_ == "accuracy"


def test_a_label_without_a_training_example(data):
    X, y = [list(one) for one in data[0]], [list(one) for one in data[1]]
    y[0] = ["B-rare"] * len(y[0])
    with pytest.warns(UserWarning, match="Fold 0 has no training example with the label 'B-rare'"):
        found = CRFCV(Cs=[1.0], cv=2).fit(X, y)
    alone = CRF(C=1.0).fit(X[25:], y[25:])
    assert found.cv_results_["split0_test_score"][0] == pytest.approx(span_f1_scorer(alone, X[:25], y[:25]))
    with pytest.raises(ValueError, match=r"'B-rare'.* so neg_log_loss cannot be computed. Use fewer or shuffled folds"):
        CRFCV(Cs=[1.0], cv=2, scoring="neg_log_loss").fit(X, y)
    with pytest.warns(UserWarning, match="training data have no example with the label 'B-rare'.* in y_dev"):
        CRFCV(Cs=[1.0]).fit(X[1:], y[1:], X_dev=X[:1], y_dev=y[:1])


def test_of_equal_scores_the_smallest_value_wins():
    X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 6, [["x", "y"], ["y", "x"]] * 6
    found = CRFCV(Cs=[10.0, 1.0, 5.0], cv=2).fit(X, y)
    assert found.cv_results_["rank_test_score"].tolist() == [1, 1, 1]
    assert (found.C_, found.Cs_.tolist()) == (1.0, [1.0, 5.0, 10.0])


def test_without_a_refit_there_are_scores_only(data):
    found = CRFCV(Cs=[1.0, 10.0], cv=2, refit=False).fit(*data)
    assert found.best_score_ == found.cv_results_["mean_test_score"].max()
    with pytest.raises(AttributeError, match=r"CRFCV\(refit=False\) has scores, but no model"):
        found.predict(data[0])
    assert not hasattr(found, "best_estimator_")
    with pytest.raises(NotFittedError):
        CRFCV().predict(data[0])


def test_margins_have_no_probabilities(data):
    X, y = data
    found = StructuredSVMCV(Cs=[1.0], cv=2).fit(X, y)
    assert not hasattr(found, "predict_proba")
    found.best_estimator_.calibrate(X, y)
    assert len(found.predict_proba(X)) == len(X)


def test_fits_that_do_not_converge_are_counted(data):
    with pytest.warns(ConvergenceWarning, match=r"4 of 4 fits did not reach the tolerance 1e-09"):
        CRFCV(CRF(tol=1e-9, max_iter=1), Cs=[1.0, 10.0], cv=2, refit=False).fit(*data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CRFCV(Cs=[1.0], cv=2).fit(*data)


def test_progress_hears_every_score(data):
    heard = []
    found = CRFCV(Cs=CS, order=[1, 2], cv=2, refit=False).fit(*data, progress=lambda *one: heard.append(one))
    assert len(heard) == 12
    for params, fold, score in heard:
        at = found.cv_results_["params"].index(params)
        assert found.cv_results_[f"split{fold}_test_score"][at] == score


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scoring": "f2"}, r"'scoring' parameter of CRFCV must be a callable, None or one of \['accuracy'.*Got 'f2'"),
        ({"Cs": []}, r"'Cs' parameter of CRFCV must be an int or a list of floats above 0. Got \[\]"),
        ({"Cs": [1.0, -1.0]}, "'Cs' parameter of CRFCV must be"),
        ({"Cs": 0}, "'Cs' parameter of CRFCV must be"),
        ({"Cs": "auto"}, "'Cs' parameter of CRFCV must be an int or a list of floats above 0. Got 'auto'"),
        ({"order": [0]}, "'order' parameter of CRFCV must be"),
        ({"min_freq": [-1]}, "'min_freq' parameter of CRFCV must be"),
        ({"estimator": StructuredSVM()}, "'estimator' parameter of CRFCV must be a CRF or None"),
        ({"estimator": CRF("single"), "order": [1, 2]}, "'order' parameter needs structure='chain'. Got 'single'"),
        ({"refit": "yes"}, "'refit' parameter of CRFCV must be a bool"),
        ({"cv": [(np.arange(50), np.arange(0))]}, "empty part in fold 0"),
    ],
)
def test_refused(data, settings, message):
    with pytest.raises(ValueError, match=message):
        CRFCV(**settings).fit(*data)


def test_refused_data(data):
    X, y = data
    with pytest.raises(ValueError, match=r"X and y must have as many examples. Got 50 and 49"):
        CRFCV(Cs=[1.0], cv=[(np.arange(30), np.arange(30, 49))]).fit(X, y[:-1])
    with pytest.raises(ValueError, match="X_dev and y_dev must both be given"):
        CRFCV().fit(X, y, X_dev=X)
    with pytest.raises(ValueError, match=r"X_dev and y_dev must have as many examples. Got 50 and 2"):
        CRFCV(Cs=[1.0]).fit(X, y, X_dev=X, y_dev=y[:2])
    with pytest.raises(ValueError, match="scoring='neg_log_loss' needs probabilities; StructuredSVMCV has margins"):
        StructuredSVMCV(scoring="neg_log_loss").fit(X, y)


def test_parameters_are_those_of_scikit_learn():
    search = CRFCV(CRF(start_stop=True), Cs=3)
    again = clone(search)
    assert again.get_params()["estimator__start_stop"] is True
    assert again.set_params(estimator__min_freq=2).estimator.min_freq == 2
    assert search.estimator.min_freq == 0


@pytest.mark.parametrize(("structure", "y"), [("spans", ["(S (A a) (B b))"] * 4), ("dependency", [[2, 0]] * 4)])
def test_scores_of_labels_are_refused_for_trees(structure, y):
    X = [[("a", "A"), ("b", "B")]] * 4
    for scoring in sorted({*SCORERS} - {"accuracy"}):
        with pytest.raises(ValueError, match=f"scoring='{scoring}' compares labels of nodes, and y has trees"):
            CRFCV(CRF(structure), Cs=[1.0], cv=2, scoring=scoring).fit(X, y)
    assert CRFCV(CRF(structure), Cs=[1.0], cv=2).fit(X, y).best_score_ == 1.0
