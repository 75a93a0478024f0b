"""The multiclass machine of Crammer and Singer, beside LIBLINEAR's."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from dualfield import StructuredSVM
from dualfield.solvers import CuttingPlane, Status
from tests.reference.structured_svm import PlaneTable, crammer_singer, minimum, value

X, Y = load_iris(return_X_y=True)
X = np.hstack([X, np.ones((len(X), 1))])
COST = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 1.0], [2.0, 0.5, 0.0]])


def liblinear(X, y, C):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # some versions announce the end of the option
        return LinearSVC(multi_class="crammer_singer", fit_intercept=False, C=C, tol=1e-9, max_iter=10**6).fit(X, y)


def tables_of(X, y, cost, C, rescaling="margin"):
    """The planes of all classes: slopes in the order of coef_."""
    n_classes, out = len(cost), []
    for x, true in zip(X, y, strict=True):
        slopes = np.zeros((n_classes, n_classes, X.shape[1]))
        for k in range(n_classes):
            slopes[k, k] += x
            slopes[k, true] -= x
        scale = cost[true] if rescaling == "slack" else np.ones(n_classes)
        out.append(PlaneTable(cost[true], scale[:, None] * slopes.reshape(n_classes, -1), C))
    return out


@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "marginal"])
@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
def test_liblinear(C, solver):
    peer = liblinear(X, Y, C)
    model = StructuredSVM("single", C=C, tol=1e-6, solver=solver, random_state=0).fit(X, Y)
    best = crammer_singer(X, Y, peer.coef_, C)
    assert model.status_ == Status.CONVERGED
    assert model.objective_ == pytest.approx(crammer_singer(X, Y, model.coef_, C), rel=1e-9)
    assert model.objective_ == pytest.approx(best, rel=2e-6)
    assert model.objective_ - model.dual_gap_ <= best
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=2e-3)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))


def test_liblinear_on_digits():
    data, y = load_digits(return_X_y=True)
    data, y = data[:600] / 16.0, y[:600]
    peer = liblinear(data, y, 0.05)
    model = StructuredSVM("single", C=0.05, tol=1e-4, random_state=0).fit(scipy.sparse.csr_array(data), y)
    assert model.solver_ == "flow_swap"
    assert model.objective_ == pytest.approx(crammer_singer(data, y, peer.coef_, 0.05), rel=1.1e-4)
    assert (model.predict(data) == peer.predict(data)).mean() > 0.99


@pytest.mark.parametrize("cost", [COST, lambda a, b: COST[a, b]], ids=["matrix", "callable"])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_costs(cost, rescaling):
    best, _ = minimum(tables_of(X[::5], Y[::5], COST, 0.1, rescaling))
    model = StructuredSVM("single", C=0.1, cost=cost, rescaling=rescaling, tol=1e-7, solver="cutting_plane")
    model.fit(X[::5], Y[::5])
    assert model.objective_ == pytest.approx(best, rel=2e-7)
    assert model.objective_ == pytest.approx(
        value(tables_of(X[::5], Y[::5], COST, 0.1, rescaling), model.coef_.ravel()), rel=1e-9
    )


@pytest.mark.parametrize("positive", [True, [0, (2, 1)], np.arange(15).reshape(3, 5) % 2 == 0])
def test_positive_weights(positive):
    flags = np.zeros((3, 5), dtype=bool)
    if positive is True:
        flags[:] = True
    elif isinstance(positive, list):
        flags[:, 0] = flags[1, 2] = True
    else:
        flags = positive
    best, _ = minimum(tables_of(X[::5], Y[::5], 1 - np.eye(3), 0.1), flags.ravel())
    model = StructuredSVM("single", C=0.1, positive=positive, tol=1e-7).fit(X[::5], Y[::5])
    assert model.solver_ == "cutting_plane"
    assert model.objective_ == pytest.approx(best, rel=2e-7)
    assert (model.coef_[flags] >= 0).all()


def test_weights_of_examples():
    counts = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = StructuredSVM("single", C=0.1, tol=1e-7, solver="cutting_plane").fit(X, Y, sample_weight=counts)
    repeated = clone(weighted).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)
    balanced = StructuredSVM("single", C=0.1, tol=1e-7, class_weight={0: 2.0}).fit(X, Y)
    again = StructuredSVM("single", C=0.1, tol=1e-7).fit(X, Y, sample_weight=np.where(Y == 0, 2.0, 1.0))
    assert balanced.objective_ == pytest.approx(again.objective_, rel=1e-6)


def test_manners():
    names = np.array(["setosa", "versicolor", "virginica"])
    model = StructuredSVM("single", tol=1e-2, random_state=0).fit(X, names[Y])
    assert is_classifier(model)
    assert not is_classifier(StructuredSVM())
    assert model.classes_.tolist() == names.tolist()
    assert model.coef_.shape == (3, 5)
    assert model.n_features_in_ == 5
    assert model.predict(X).shape == (150,)
    assert model.decision_function(X).shape == (150, 3)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_.T)
    assert model.score(X, names[Y]) == (model.predict(X) == names[Y]).mean() > 0.9
    assert not hasattr(StructuredSVM(), "decision_function")
    assert not hasattr(model, "predict_proba")
    with pytest.raises(ValueError, match="4 features"):
        model.predict(X[:, :4])
    search = GridSearchCV(StructuredSVM("single", tol=1e-2), {"C": [0.01, 1.0]}, cv=3).fit(X, names[Y])
    assert search.best_score_ > 0.9


def test_cross_validation_in_a_pipeline():
    """Fold by fold the accuracy of LIBLINEAR; scaling takes the constant column away, so it is not high."""
    own, peer = (
        cross_val_score(make_pipeline(StandardScaler(), model), X, Y, cv=3)
        for model in (
            StructuredSVM("single", C=0.1, tol=1e-6),
            LinearSVC(multi_class="crammer_singer", fit_intercept=False, C=0.1, tol=1e-9, max_iter=10**6),
        )
    )
    np.testing.assert_allclose(own, peer, atol=1e-12)


def test_warm_start():
    model = StructuredSVM("single", tol=1e-3, solver=CuttingPlane(), warm_start=True).fit(X, Y)
    first = model.n_iter_
    assert model.fit(X, Y).n_iter_ < first


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"C": -1.0}, r"The 'C' parameter of StructuredSVM must be a float in \(0, inf\)\. Got -1\.0 instead\."),
        (
            {"structure": "forest"},
            r"The 'structure' parameter of StructuredSVM must be .* one of \['chain', 'dependency', 'grammar', ",
        ),
        ({"rescaling": "both"}, r"The 'rescaling' parameter of StructuredSVM must be .* \['margin', 'slack'\]"),
        ({"cost": "zero"}, r"The 'cost' parameter of StructuredSVM must be 'hamming', an array or a callable"),
        ({"cost": None}, r"The 'cost' parameter of StructuredSVM must be"),
        (
            {"cost": -COST},
            r"The 'cost' parameter of StructuredSVM must be finite numbers of at least 0 of shape \(3, 3\)",
        ),
        ({"solver": "smo"}, r"The 'solver' parameter of StructuredSVM must be"),
        ({"solver": 3}, r"The 'solver' parameter of StructuredSVM must be one of .* Got 3 instead"),
        ({"positive": "a"}, r"The 'positive' parameter of StructuredSVM must be None, True"),
        ({"positive": [9]}, r"The 'positive' parameter of StructuredSVM names 9, which is not a column in \[0, 5\)"),
        ({"positive": [(1, 7)]}, r"names 7, which is no label of y"),
        ({"positive": np.ones(3, dtype=bool)}, r"must have shape \(3, 5\), as coef_"),
        ({"template": "U00:%x[0,0]"}, r"The 'template' parameter of StructuredSVM is for sequences, not for single"),
        ({"class_weight": "even"}, r"The 'class_weight' parameter of StructuredSVM must be"),
        (
            {"positive": True, "solver": "flow_swap"},
            r"It keeps weights from being negative \(positive\)\. Use solver='auto'",
        ),
        ({"tol": 0.0}, r"The 'tol' parameter of StructuredSVM must be"),
    ],
)
def test_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(**{"structure": "single", **settings}).fit(X, Y)


def test_refused_data():
    model = StructuredSVM("single")
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="at least two classes"):
        model.fit(X[:50], Y[:50])
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 5, np.nan, X), Y)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, Y, sample_weight=-np.ones(150))


def test_a_warning_where_it_did_not_converge():
    with pytest.warns(ConvergenceWarning, match=r"Relative duality gap .*, tolerance 1e-09, 3 passes") as caught:
        StructuredSVM("single", solver="cutting_plane", tol=1e-9, max_iter=3).fit(X, Y)
    assert caught[0].filename == __file__
