"""A monitor that ends fits in time, and keeps the best model."""

from __future__ import annotations

import numpy as np
import pytest

import dualfield
from dualfield import CRF, StructuredSVM
from dualfield.estimators import EarlyStopping
from dualfield.metrics import neg_log_loss_scorer
from tests.estimators.tagging import sentences


def test_the_best_model_is_kept_and_can_be_saved(tmp_path):
    X, y = sentences(60)
    stop = EarlyStopping(X[40:], y[40:], scorer=neg_log_loss_scorer, patience=3)
    last = CRF(C=1e4, tol=1e-12, solver="lbfgs", max_iter=200, random_state=0).fit(X[:40], y[:40], monitor=stop)
    scores = [score for _, score in stop.scores_]
    assert last.status_.value == "stopped"
    assert stop.best_score_ == max(scores) == neg_log_loss_scorer(stop.best_model_, X[40:], y[40:])
    assert len(scores) - (scores.index(max(scores)) + 1) == 3
    assert neg_log_loss_scorer(last, X[40:], y[40:]) < stop.best_score_
    stop.best_model_.save(tmp_path / "best")
    assert dualfield.load(tmp_path / "best").predict(X) == stop.best_model_.predict(X)


def test_it_does_not_change_the_course_of_a_fit():
    X, y = sentences(30)
    free = CRF(tol=1e-6, random_state=0).fit(X, y)
    watched = CRF(tol=1e-6, random_state=0).fit(X, y, monitor=EarlyStopping(X, y, patience=1000))
    np.testing.assert_array_equal(free.parameters_, watched.parameters_)


def test_looks_now_and_then_and_begins_anew_with_another_fit():
    X, y = sentences(30)
    stop = EarlyStopping(X, y, patience=1000, every=3)
    CRF(tol=1e-6, solver="lbfgs", random_state=0).fit(X, y, monitor=stop)
    first = list(stop.scores_)
    every = EarlyStopping(X, y, patience=1000)
    CRF(tol=1e-6, solver="lbfgs", random_state=0).fit(X, y, monitor=every)
    assert first == every.scores_[::3]
    StructuredSVM(random_state=0).fit(X, y, monitor=stop)
    assert stop.scores_[0][0] <= first[-1][0]
    assert isinstance(stop.best_model_, StructuredSVM)


@pytest.mark.parametrize("settings", [{"patience": 0}, {"every": 0}, {"patience": 1.5}])
def test_wrong_settings_are_named(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=f"'{name}' parameter of EarlyStopping must be (None or )?an int"):
        EarlyStopping([], [], **settings)
