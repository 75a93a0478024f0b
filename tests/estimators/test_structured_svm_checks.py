"""scikit-learn's own checks of the structural SVM on single nodes, and tools that people put around it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from dualfield import StructuredSVM
from tests.estimators.problems import clouds


def exceptions(model):
    """Checks that must fail, with the reason."""
    found = {
        "check_class_weight_classifiers": "There is no intercept: weights of classes do not move a line through zero "
        "away from a noisy cloud around it. A column of ones is one, see below."
    }
    if model.solver == "auto":
        for kind in ("dense", "sparse"):
            found[f"check_sample_weight_equivalence_on_{kind}_data"] = (
                "The check compares to 1e-7 what flow_swap solves to a gap of 1e-3, in an order that depends on the "
                "number of examples."
            )
    return found


# Columns near 100 with random labels, which some checks use, are far from what flow_swap solves in 10,000 passes; that
# it says so is right, and not what these checks are about.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [StructuredSVM("single"), StructuredSVM("single", solver="cutting_plane")], expected_failed_checks=exceptions
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_column_of_ones_is_the_intercept_that_class_weights_need():
    X, y = make_blobs(centers=2, random_state=0, cluster_std=20)
    X_train, X_test, y_train, _ = train_test_split(X, y, test_size=0.5, random_state=0)
    weights, ones = {0: 1000, 1: 0.0001}, np.full((50, 1), 100.0)
    model = StructuredSVM("single", class_weight=weights, solver="cutting_plane")
    assert (model.fit(X_train, y_train).predict(X_test) == 0).mean() < 0.87
    peer = LinearSVC(fit_intercept=False, class_weight=weights, max_iter=10**6).fit(X_train, y_train)
    assert (peer.predict(X_test) == 0).mean() < 0.87
    model.fit(np.hstack([X_train, ones]), y_train)
    assert (model.predict(np.hstack([X_test, ones])) == 0).mean() > 0.87


def test_weights_of_examples_as_the_check_wants_them_where_the_solver_is_exact():
    """The exception above is a matter of the tolerance only."""
    problem, counts = clouds(3), np.random.default_rng(0).integers(0, 3, 44)
    model = StructuredSVM("single", tol=1e-9, random_state=0)
    weighted = model.fit(problem.X, problem.y, sample_weight=counts).decision_function(problem.X)
    repeated = model.fit(np.repeat(problem.X, counts, axis=0), np.repeat(problem.y, counts))
    np.testing.assert_allclose(weighted, repeated.decision_function(problem.X), atol=1e-4)


def test_two_classes_have_one_score():
    problem = clouds(2)
    model = StructuredSVM("single").fit(problem.X, problem.y)
    scores = model.decision_function(problem.X)
    np.testing.assert_allclose(scores, problem.X @ (model.coef_[1] - model.coef_[0]))
    np.testing.assert_array_equal(model.predict(problem.X), (scores > 0).astype(int))
    assert roc_auc_score(problem.y, scores) > 0.5
    assert cross_val_score(model, problem.X, problem.y, scoring="roc_auc", cv=3).shape == (3,)
