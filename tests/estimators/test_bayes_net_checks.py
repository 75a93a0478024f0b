"""scikit-learn's own checks of DiscriminativeBayesNet, and the tools that people put around a classifier."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer
from sklearn.utils.estimator_checks import parametrize_with_checks

import dualfield.estimators
from dualfield import DiscriminativeBayesNet
from dualfield.solvers import Simplicial
from tests.estimators.test_bayes_net_optimum import LOOPY, categorical, table


@parametrize_with_checks([DiscriminativeBayesNet(), DiscriminativeBayesNet("tan"), DiscriminativeBayesNet(eta=0.0)])
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_it_has_one_home_and_a_short_name() -> None:
    assert dualfield.estimators.DiscriminativeBayesNet is DiscriminativeBayesNet
    assert is_classifier(DiscriminativeBayesNet())


def test_defaults() -> None:
    assert DiscriminativeBayesNet().get_params() == {
        "structure": "naive_bayes",
        "shared": None,
        "hidden": None,
        "eta": 0.01,
        "prior": "prob",
        "smoothing": 1.0,
        "floor": 1e-11,
        "loss": "hamming",
        "categories": "auto",
        "unknown": "skip",
        "max_table": 10**7,
        "solver": "simplicial",
        "tol": 1e-2,
        "max_iter": None,
        "max_columns": 60,
        "n_blocks": "auto",
        "n_jobs": None,
        "warm_start": False,
        "verbose": 0,
    }


def bins() -> KBinsDiscretizer:
    return KBinsDiscretizer(n_bins=4, encode="ordinal", strategy="uniform")


@pytest.mark.parametrize("structure", ["naive_bayes", "tan"])
def test_numbers_in_bins(structure: Any) -> None:
    X, y = load_wine(return_X_y=True)
    pipeline = make_pipeline(bins(), DiscriminativeBayesNet(structure))
    search = GridSearchCV(pipeline, {"discriminativebayesnet__eta": [0.0, 0.01, 0.1]}, scoring="neg_log_loss", cv=3)
    search.fit(X, y)
    assert search.best_score_ > -np.log(3) / 2
    assert search.predict_proba(X).shape == (178, 3)
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.85


def test_tables_in_a_grid_search() -> None:
    X, _ = table(0, 60)
    search = GridSearchCV(DiscriminativeBayesNet(LOOPY, hidden=[1, 3]), {"eta": [0.0, 0.1]}, cv=3).fit(X)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    assert 0.0 < search.best_score_ <= 1.0


def test_meta_estimators() -> None:
    X, y = categorical(90)
    weight = np.linspace(0.5, 1.5, 90)
    calibrated = CalibratedClassifierCV(DiscriminativeBayesNet(), cv=3)
    assert calibrated.fit(X, y, sample_weight=weight).predict_proba(X).shape == (90, 3)


def test_clone_and_pickle() -> None:
    X, y = categorical(60)
    prior = {"class": np.ones(3), **{j: np.ones((3, size)) for j, size in enumerate((3, 4, 2, 5))}}
    model = DiscriminativeBayesNet(prior=prior, solver=Simplicial(n_blocks=3), eta=0.1).fit(X, y)
    copy = clone(model)
    assert not hasattr(copy, "parameters_")
    np.testing.assert_array_equal(copy.fit(X, y).parameters_, model.parameters_)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_fit_does_not_change_what_it_was_given() -> None:
    X, y = categorical(60)
    loss, mask = 1.0 - np.eye(3), np.zeros(X.shape, dtype=bool)
    for array in (X, y, loss, mask):
        array.flags.writeable = False
    model = DiscriminativeBayesNet(loss=loss)
    before = model.get_params()
    assert model.fit(X, y) is model
    assert model.get_params() == before
    DiscriminativeBayesNet([(0, [1])], eta=0.1).fit(X, hidden=mask).predict(X, hidden=mask)


def test_from_a_class_to_a_table_and_back() -> None:
    X, y = categorical(60)
    model = DiscriminativeBayesNet([(0, [1])], eta=0.0).fit(X)
    assert not hasattr(model, "classes_")
    model.set_params(structure="tan").fit(X, y)
    assert model.predict_proba(X).shape == (60, 3)
    model.set_params(structure=[(0, [1])]).fit(X)
    assert not hasattr(model, "classes_")
    assert not hasattr(model, "predict_proba")
