"""scikit-learn's own checks, and the tools that people put around an estimator."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import dualfield.estimators
from dualfield import KernelLogisticRegression
from dualfield.solvers import LBFGS, SMO, NewtonCG, Online, WorkingSet
from tests.estimators.problems import GAMMA, SOLVERS, clouds


@parametrize_with_checks(
    [
        KernelLogisticRegression(),
        KernelLogisticRegression(kernel="linear"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_it_has_one_home_and_a_short_name():
    assert dualfield.estimators.KernelLogisticRegression is KernelLogisticRegression
    assert is_classifier(KernelLogisticRegression())


def test_defaults():
    assert KernelLogisticRegression().get_params() == {
        "kernel": "rbf",
        "gamma": "scale",
        "degree": 3,
        "coef0": 0.0,
        "kernel_params": None,
        "C": 1.0,
        "fit_intercept": True,
        "class_weight": None,
        "label_kernel": None,
        "kernel_approx": None,
        "solver": "auto",
        "tol": 1e-3,
        "max_iter": None,
        "cache_size": 4e9,
        "n_jobs": None,
        "warm_start": False,
        "random_state": None,
        "verbose": 0,
    }


@pytest.mark.parametrize("n_classes", [2, 3])
def test_pipeline_and_grid_search(n_classes):
    problem = clouds(n_classes, n=90)
    pipeline = make_pipeline(StandardScaler(), KernelLogisticRegression())
    grid = {"kernellogisticregression__C": [1e-3, 1.0], "kernellogisticregression__gamma": [0.1, 1.0]}
    search = GridSearchCV(pipeline, grid, scoring="neg_log_loss", cv=3).fit(problem.X, problem.y)
    assert search.best_params_["kernellogisticregression__C"] == 1.0
    assert search.best_score_ > -np.log(n_classes)
    assert search.predict_proba(problem.X).shape == (90, n_classes)


def test_cross_validation_of_a_precomputed_kernel():
    """scikit-learn cuts rows and columns of a Gram matrix, as the estimator's tags ask it to."""
    problem = clouds(3, n=90)
    given = cross_val_predict(
        KernelLogisticRegression("precomputed", tol=1e-8), problem.K, problem.y, cv=3, method="predict_proba"
    )
    own = cross_val_predict(
        KernelLogisticRegression(gamma=GAMMA, tol=1e-8), problem.X, problem.y, cv=3, method="predict_proba"
    )
    np.testing.assert_allclose(given, own, atol=1e-3)


def test_metadata_and_meta_estimators():
    problem = clouds(3, n=90)
    weight = np.linspace(0.5, 1.5, 90)
    calibrated = CalibratedClassifierCV(KernelLogisticRegression(), cv=3)
    assert calibrated.fit(problem.X, problem.y, sample_weight=weight).predict_proba(problem.X).shape == (90, 3)
    assert cross_val_score(KernelLogisticRegression(), problem.X, problem.y, cv=3).mean() > 0.4


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("parameters", [{}, {"kernel_approx": 10}, {"kernel": "poly"}], ids=str)
def test_a_saved_model_is_the_same_model(tmp_path, n_classes, parameters):
    problem = clouds(n_classes)
    model = KernelLogisticRegression(random_state=0, **parameters)
    model.fit(problem.X, np.array(["a", "b", "c"])[problem.y])
    joblib.dump(model, tmp_path / "model")
    loaded = joblib.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(problem.X), model.predict(problem.X))
    np.testing.assert_array_equal(loaded.predict_proba(problem.X), model.predict_proba(problem.X))
    assert loaded.dual_gap_ == model.dual_gap_
    assert loaded.status_ == model.status_
    np.testing.assert_array_equal(loaded.trace_.gap, model.trace_.gap)


def test_clone_keeps_parameters_and_forgets_the_fit():
    problem = clouds(3)
    T = np.eye(3)
    model = KernelLogisticRegression(C=3.0, label_kernel=T, solver=NewtonCG()).fit(problem.X, problem.y)
    copy = clone(model)
    assert copy.get_params()["C"] == 3.0
    assert not hasattr(copy, "dual_coef_")
    np.testing.assert_array_equal(copy.label_kernel, T)
    copy.fit(problem.X, problem.y)
    np.testing.assert_array_equal(copy.dual_coef_, model.dual_coef_)


def test_fit_does_not_change_what_it_was_given():
    problem = clouds(3)
    X, y, weight, T = problem.X.copy(), problem.y.copy(), np.ones(problem.n), np.eye(3)
    for array in (X, y, weight, T):
        array.flags.writeable = False
    model = KernelLogisticRegression(label_kernel=T)
    before = model.get_params()
    assert model.fit(X, y, sample_weight=weight) is model
    assert model.get_params() == before
    gram = problem.K.copy()
    gram.flags.writeable = False
    KernelLogisticRegression("precomputed").fit(gram, y).predict(gram)


@pytest.mark.parametrize("solver", [WorkingSet(), NewtonCG(), SMO(), Online(), LBFGS()], ids=lambda s: type(s).__name__)
def test_solvers_as_objects(solver):
    problem = clouds(3)
    model = KernelLogisticRegression(solver=solver, tol=1e-4, random_state=0).fit(problem.X, problem.y)
    names = {"WorkingSet": "working_set", "NewtonCG": "newton", "SMO": "smo", "Online": "online", "LBFGS": "lbfgs"}
    assert model.solver_ == names[type(solver).__name__]
    named = KernelLogisticRegression(solver=model.solver_, tol=1e-4, random_state=0).fit(problem.X, problem.y)
    np.testing.assert_array_equal(model.dual_coef_, named.dual_coef_)


@pytest.mark.parametrize("solver", SOLVERS)
def test_attributes(solver):
    problem = clouds(3)
    model = KernelLogisticRegression(solver=solver, random_state=0).fit(problem.X, problem.y)
    assert model.dual_coef_.shape == (3, 44)
    assert model.intercept_.shape == (3,)
    assert model.n_features_in_ == 2
    assert isinstance(model.objective_, float)
    assert isinstance(model.dual_gap_, float)
    assert isinstance(model.n_iter_, int)
    two = KernelLogisticRegression(solver=solver, random_state=0).fit(clouds(2).X, clouds(2).y)
    assert two.dual_coef_.shape == (1, 44)
    assert two.intercept_.shape == (1,)
