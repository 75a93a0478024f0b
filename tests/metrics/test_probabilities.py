"""Log-loss, Brier score and cross-validated predictions of sequences, beside scikit-learn's on flat data."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, cross_val_score

from dualfield import CRF
from dualfield.metrics import (
    cross_val_predict,
    neg_brier_scorer,
    neg_calibration_error_scorer,
    neg_log_loss_scorer,
    span_report,
    token_brier_score,
    token_log_loss,
)

RNG = np.random.default_rng(0)
CLASSES = ["a", "b", "c"]
LENGTHS = [3, 1, 4]
Y = [[CLASSES[code] for code in RNG.integers(3, size=n)] for n in LENGTHS]
P = [RNG.dirichlet(np.ones(3), size=n) for n in LENGTHS]
X = [[[f"w={RNG.integers(6)}"] for _ in range(RNG.integers(1, 6))] for _ in range(24)]
LABELS = [["odd" if int(item[0][-1]) % 2 else "even" for item in x] for x in X]


def test_log_loss_and_brier_score():
    flat, rows = [label for one in Y for label in one], np.concatenate(P)
    assert token_log_loss(Y, P, CLASSES) == pytest.approx(log_loss(flat, rows, labels=CLASSES), rel=1e-12)
    wanted = np.mean([((row - (np.array(CLASSES) == label)) ** 2).sum() for row, label in zip(rows, flat, strict=True)])
    assert token_brier_score(Y, P, CLASSES) == pytest.approx(wanted, rel=1e-12)
    assert token_log_loss(np.array(flat), rows, CLASSES) == token_log_loss(Y, P, CLASSES)
    assert np.isfinite(token_log_loss([["a"]], [np.array([[0.0, 1.0, 0.0]])], CLASSES))


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        ([["a"]], P, "y_true has 1 sequences; marginals has 3"),
        ([["z"]], [P[1]], r"y_true\[0\]\[0\] is 'z', which is not among the classes"),
        ([["a", "b"]], [P[1]], r"marginals\[0\] must have shape \(2, 3\)"),
        ([[]], [np.zeros((0, 3))], "must have at least one label"),
    ],
)
def test_what_does_not_fit_is_named(y, p, message):
    for score in (token_log_loss, token_brier_score):
        with pytest.raises(ValueError, match=message):
            score(y, p, CLASSES)


@pytest.mark.parametrize("scorer", [neg_log_loss_scorer, neg_brier_scorer, neg_calibration_error_scorer])
def test_scorers_in_scikit_learns_searches(scorer):
    values = cross_val_score(CRF(), X, LABELS, scoring=scorer, cv=KFold(3))
    assert (values <= 0.0).all()
    search = GridSearchCV(CRF(), {"C": [0.01, 10.0]}, scoring=scorer, cv=KFold(3)).fit(X, LABELS)
    assert search.best_params_ == {"C": 10.0} or scorer is neg_calibration_error_scorer


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_predictions_are_those_of_models_that_did_not_see_them(n_jobs):
    folds = KFold(4, shuffle=True, random_state=0)
    found = cross_val_predict(CRF(), X, LABELS, cv=folds, n_jobs=n_jobs)
    chances = cross_val_predict(CRF(), X, LABELS, cv=folds, method="predict_proba", n_jobs=n_jobs)
    for train, test in folds.split(X):
        model = CRF().fit([X[i] for i in train], [LABELS[i] for i in train])
        assert [found[i] for i in test] == model.predict([X[i] for i in test])
        for i, rows in zip(test, model.predict_proba([X[i] for i in test]), strict=True):
            np.testing.assert_array_equal(chances[i], rows)


def test_groups_stay_together_and_folds_must_cover_the_data():
    groups = np.repeat(np.arange(6), 4)
    assert len(cross_val_predict(CRF(), X, LABELS, cv=GroupKFold(3), groups=groups)) == len(X)
    with pytest.raises(ValueError, match="exactly one test fold"):
        cross_val_predict(CRF(), X, LABELS, cv=ShuffleSplit(2, random_state=0))
    with pytest.raises(ValueError, match=r"X and y must have as many sequences. Got 24 and 23"):
        cross_val_predict(CRF(), X, LABELS[1:])
    with pytest.raises(ValueError, match=r"must be a method of CRF. Got 'guess'"):
        cross_val_predict(CRF(), X, LABELS, method="guess")


def test_span_report():
    true = [["B-A", "I-A", "O", "B-B"], ["B-A", "O", "B-B", "B-B"]]
    found = [["B-A", "I-A", "B-B", "B-B"], ["O", "O", "B-A", "B-B"]]
    numbers = span_report(true, found, output_dict=True)
    assert numbers["A"] == {"precision": 0.5, "recall": 0.5, "f1-score": 0.5, "support": 2}
    assert numbers["B"] == pytest.approx({"precision": 2 / 3, "recall": 2 / 3, "f1-score": 2 / 3, "support": 3})
    assert numbers["micro avg"] == pytest.approx({"precision": 0.6, "recall": 0.6, "f1-score": 0.6, "support": 5})
    assert numbers["macro avg"]["f1-score"] == pytest.approx((0.5 + 2 / 3) / 2)
    assert numbers["weighted avg"]["f1-score"] == pytest.approx((2 * 0.5 + 3 * 2 / 3) / 5)
    text = span_report(true, found, digits=4).splitlines()
    assert text[0].split() == ["precision", "recall", "f1-score", "support"]
    assert text[2].split() == ["A", "0.5000", "0.5000", "0.5000", "2"]
    assert text[-1].split() == ["weighted", "avg", "0.6000", "0.6000", "0.6000", "5"]
    assert span_report([["O"]], [["O"]], output_dict=True)["micro avg"]["support"] == 0
