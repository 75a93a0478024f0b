"""Output spaces that users bring along: rankings and matchings."""

from __future__ import annotations

import dataclasses
from itertools import combinations, permutations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from dualfield import StructuredSVM
from dualfield.models.custom import CustomModel
from dualfield.solvers import PlaneFrankWolfe, Status
from tests.reference.structured_svm import PlaneTable, minimum, value


class Matching:
    """x [n][n][d] describes pairs of things on the left and on the right; y[i] is the partner of i."""

    def joint_feature(self, x, y):
        return x[np.arange(len(x)), y].sum(axis=0)

    def loss(self, y_true, y):
        return float(np.sum(np.asarray(y_true) != np.asarray(y)))

    def argmax(self, w, x, y_true=None):
        gain = x @ w
        if y_true is not None:
            gain = gain + 1.0
            gain[np.arange(len(x)), y_true] -= 1.0
        return linear_sum_assignment(-gain)[1]


class Ranking:
    """x [n][d] are things to be put in order, y the order; the loss counts pairs in the wrong order."""

    def joint_feature(self, x, y):
        return np.sum([x[a] - x[b] for a, b in combinations(y, 2)], axis=0)

    def loss(self, y_true, y):
        place = {thing: at for at, thing in enumerate(y_true)}
        return float(sum(place[a] > place[b] for a, b in combinations(y, 2)))

    def argmax(self, w, x, y_true=None):
        def total(y):
            return self.joint_feature(x, y) @ w + (0.0 if y_true is None else self.loss(y_true, y))

        return max(permutations(range(len(x))), key=total)


def matchings(n=8, size=3, d=4, seed=0):
    rng, problem = np.random.default_rng(seed), Matching()
    X = [rng.normal(size=(size, size, d)) for _ in range(n)]
    truth = np.arange(1.0, d + 1)
    return X, [problem.argmax(truth, x + 0.3 * rng.normal(size=x.shape)) for x in X]


def rankings(n=6, size=3, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(size, d)) for _ in range(n)]
    return X, [tuple(np.argsort(-(x[:, 0] + 0.5 * rng.normal(size=size))).tolist()) for x in X]


def tables_of(problem, X, y, C):
    tables = []
    for x, true in zip(X, y, strict=True):
        outputs = [np.array(p) for p in permutations(range(len(x)))]
        slopes = np.array([problem.joint_feature(x, p) - problem.joint_feature(x, true) for p in outputs])
        tables.append(PlaneTable(np.array([problem.loss(true, p) for p in outputs]), slopes, C))
    return tables


@pytest.mark.parametrize(
    ("problem", "data"), [(Matching(), matchings()), (Ranking(), rankings())], ids=["match", "rank"]
)
@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "labelling_set", "frank_wolfe", "plane_sgd"])
def test_minimum(problem, data, solver):
    X, y = data
    tables = tables_of(problem, X, y, 0.05)
    best, _ = minimum(tables)
    exact = solver not in ("frank_wolfe", "plane_sgd")
    model = StructuredSVM(problem, C=0.05, solver=solver, tol=1e-6 if exact else 1e-2, random_state=0)
    model.fit(X, y)
    assert model.objective_ == pytest.approx(value(tables, model.parameters_), rel=1e-10)
    assert best * (1 - 1e-8) <= model.objective_ <= best * (1 + (1.1e-6 if exact else 3e-2))
    assert model.objective_ - model.dual_gap_ <= best * (1 + 1e-8)
    np.testing.assert_array_equal(model.coef_, model.parameters_)


def test_it_learns():
    X, y = matchings(240, size=5)
    model = StructuredSVM(Matching(), C=1.0, tol=1e-2).fit(X[:40], y[:40])
    assert model.solver_ == "cutting_plane"
    found = model.predict(X[40:])
    losses = [Matching().loss(a, b) for a, b in zip(y[40:], found, strict=True)]
    assert model.score(X[40:], y[40:]) == -np.mean(losses)
    truth = [Matching().argmax(np.arange(1.0, 5.0), x) for x in X[40:]]  # labels are noisy: it errs, too
    assert np.mean(losses) < 1.2 * np.mean([Matching().loss(a, b) for a, b in zip(y[40:], truth, strict=True)])
    assert np.mean(losses) < 0.5 * np.mean([Matching().loss(a, np.arange(5)) for a in y[40:]])
    assert model.n_features_ == 4


def test_positive_weights_and_sample_weights():
    X, y = matchings()
    tables = tables_of(Matching(), X, y, 0.5)
    for table, weight in zip(tables, range(8), strict=True):
        table.weight *= weight
    flags = np.array([True, False, True, True])
    best, _ = minimum(tables, flags)
    model = StructuredSVM(Matching(), C=0.5, positive=flags, tol=1e-6).fit(X, y, sample_weight=np.arange(8))
    assert model.objective_ == pytest.approx(best, rel=2e-6)
    assert (model.coef_[flags] >= 0).all()


def test_monitor_warm_start_and_solver_objects():
    X, y = matchings()
    seen = []
    model = StructuredSVM(Matching(), tol=1e-9, solver=PlaneFrankWolfe(average=False), random_state=0)
    model.fit(X, y, monitor=lambda moment, now: seen.append(now.score(X, y)) or len(seen) == 2)
    assert (len(seen), model.status_) == (2, Status.STOPPED)
    warm = StructuredSVM(Matching(), tol=1e-3, warm_start=True).fit(X, y)
    first = warm.n_iter_
    assert warm.fit(X, y).n_iter_ < first


class Broken(Matching):
    def __init__(self, **faults):
        self.faults = faults

    def joint_feature(self, x, y):
        return self.faults.get("joint_feature", super().joint_feature(x, y))

    def loss(self, y_true, y):
        return self.faults.get("loss", super().loss(y_true, y))

    def argmax(self, w, x, y_true=None):
        return np.arange(len(x)) if self.faults.get("lazy", False) else super().argmax(w, x, y_true)


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        ({"joint_feature": np.full(4, np.nan)}, r"Broken\.joint_feature must return finite numbers"),
        ({"joint_feature": np.zeros((2, 2))}, r"Broken\.joint_feature must return a 1-d array or a sparse row"),
        ({"loss": 1.0}, r"Broken\.loss\(y, y\) must be 0\. Got 1\.0 for y\[0\]"),
        ({"lazy": True}, r"Broken\.argmax\(w, x, y_true\) must maximise score plus loss"),
    ],
)
def test_contract(faults, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(Broken(**faults)).fit(*matchings())


def test_contract_on_the_number_of_features():
    problem = Matching()
    problem.n_parameters = 7
    with pytest.raises(ValueError, match=r"Matching\.joint_feature must return 7 features\. Got 4\."):
        StructuredSVM(problem).fit(*matchings())


class Incomplete:
    def loss(self, y_true, y):
        return 0.0


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"structure": Incomplete()}, TypeError, "structure must have a method 'joint_feature'"),
        (
            {"cost": np.eye(2)},
            ValueError,
            "The 'cost' parameter of StructuredSVM cannot be combined with a custom problem",
        ),
        ({"class_weight": "balanced"}, ValueError, "The 'class_weight' parameter of StructuredSVM cannot be combined"),
        ({"rescaling": "slack"}, ValueError, "rescaling='slack' cannot be combined with a custom problem"),
        ({"start_stop": True}, ValueError, "The 'start_stop' parameter of StructuredSVM is for sequences"),
        ({"solver": "flow_swap"}, ValueError, "does not support slack rescaling or sign constraints, custom problems"),
        ({"solver": "marginal"}, ValueError, "only chains have them"),
        ({"positive": [1]}, ValueError, r"must be None, True or a boolean array of shape \(4,\)"),
    ],
)
def test_refused(settings, error, message):
    with pytest.raises(error, match=message):
        StructuredSVM(**{"structure": Matching(), **settings}).fit(*matchings())
    with pytest.raises(ValueError, match="X and y must have as many examples"):
        StructuredSVM(Matching()).fit(matchings()[0], [])


class Deaf(Matching):
    """Its argmax forgets the loss, for inputs that are marked."""

    def argmax(self, w, x, y_true=None):
        return super().argmax(w, x, None if x[0, 0, 0] > 0.0 else y_true)


def marked(first):
    """Matchings whose inputs are marked from a place on."""
    X, y = matchings(12)
    for i, x in enumerate(X):
        x[0, 0, 0] = abs(x[0, 0, 0]) * (1.0 if i >= first else -1.0)
    return X, y


def test_an_argmax_that_forgets_the_loss_is_refused_before_the_fit():
    with pytest.raises(
        ValueError, match=r"Deaf\.argmax\(w, x, y_true\) must maximise .* For X\[0\] .* at other weights"
    ):
        StructuredSVM(Deaf(), C=1.0).fit(*marked(0))


@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "labelling_set", "frank_wolfe", "simplicial"])
def test_an_argmax_that_forgets_the_loss_is_refused_by_its_earlier_answers(solver):
    """No look at the first examples tells: only what it said itself, at other weights."""
    X, y = marked(3)
    with pytest.raises(ValueError, match=r"Deaf\.argmax\(w, x, y_true\) returned an output for X\[\d+\] whose score"):
        StructuredSVM(Deaf(), C=1.0, solver=solver, random_state=0).fit(X, y)


class Greedy(Matching):
    """Its argmax changes the weights that it is given."""

    def argmax(self, w, x, y_true=None):
        w *= 2.0
        return super().argmax(w, x, y_true)


def test_weights_cannot_be_written_to():
    X, y = matchings()
    with pytest.raises(ValueError, match="read-only"):
        StructuredSVM(Greedy()).fit(X, y)
    model = StructuredSVM(Matching()).fit(X, y)
    before = model.parameters_.copy()
    model._model = dataclasses.replace(model.model_, problem=Greedy())
    with pytest.raises(ValueError, match="read-only"):
        model.predict(X)
    np.testing.assert_array_equal(model.parameters_, before)


def test_one_input_in_the_place_of_a_list_is_refused():
    X, y = matchings()
    model = StructuredSVM(Matching()).fit(X, y)
    with pytest.raises(ValueError, match=r"X\[0\] must be a ndarray of 3 dimensions, .* for one input x pass \[x\]"):
        model.predict(X[0])
    np.testing.assert_array_equal(model.predict([X[0]])[0], model.predict(X)[0])


class Uneven(Matching):
    """Its features grow with the input."""

    def joint_feature(self, x, y):
        return np.ones(len(x))


def test_features_of_different_lengths_are_named():
    X, y = matchings()
    X = [X[0], np.ones((5, 5, 2))]
    with pytest.raises(ValueError, match=r"must return 3 features, as for X\[0\]. Got 5 for X\[1\]"):
        StructuredSVM(Uneven()).fit(X, [y[0], [0, 1, 2, 3, 4]])


def test_outputs_of_a_custom_problem_have_no_bounds():
    model = CustomModel(None, np.zeros(1), None)
    with pytest.raises(ValueError, match="return_bound must be False: the argmax of a custom problem has no bound"):
        model.bounded_predict([])
