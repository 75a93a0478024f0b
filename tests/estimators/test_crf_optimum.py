"""Every variant of the CRF reaches the minimum that enumeration of all labellings gives."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from dualfield import CRF
from dualfield.solvers import SGD, Status
from dualfield.structures import Chain
from tests.estimators.tagging import objective_of, parameters_of, sentences

X, Y = sentences(9, longest=4)
LABELS = ["B-N", "I-N", "O"]
COST = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [1.0, 3.0, 0.0]])

# Settings of the estimator, and of the enumeration where they are called something else.
VARIANTS = {
    "plain": ({}, {}),
    "all": ({"features": "all"}, {}),
    "rare": ({"min_freq": 2}, {}),
    "ends": ({"start_stop": True}, {}),
    "cost": ({"cost": COST}, {}),
    "hamming": ({"cost": "hamming", "features": "all"}, {"cost": 1 - np.eye(3)}),
    "cold": ({"temperature": 0.5, "cost": COST}, {}),
    "warm": ({"temperature": 2.0}, {}),
    "order 2": ({"structure": Chain(order=2)}, {"order": 2}),
    "order 2, all": ({"structure": Chain(order=2), "features": "all", "start_stop": True}, {"order": 2}),
    "C": ({"C": 20.0, "start_stop": True}, {}),
    "small C": ({"C": 0.01}, {}),
}
WITH_MORE = {
    "l1": ({"l1_ratio": 1.0}, {}),
    "elastic": ({"l1_ratio": 0.4, "C": 3.0}, {}),
    "pairs": ({"pair_features": True}, {"pair_prefix": ""}),
    "some pairs": ({"pair_features": ["w="]}, {"pair_prefix": "w="}),
    "pairs, all": ({"pair_features": ["last="], "features": "all"}, {"pair_prefix": "last="}),
    "pairs, l1": ({"pair_features": True, "l1_ratio": 0.5}, {"pair_prefix": ""}),
    "pairs, order 2": (
        {"pair_features": ["w="], "structure": Chain(order=2)},
        {"pair_prefix": "w=", "order": 2},
    ),
}


def reference(settings, renamed, X=X, y=Y, **more):
    """The objective by enumeration."""
    known = {name: value for name, value in settings.items() if name not in ("structure", "pair_features", "cost")}
    cost = {} if "cost" not in settings or isinstance(settings["cost"], str) else {"cost": settings["cost"]}
    return objective_of(X, y, **known, **cost, **renamed, **more)


def check(model, objective, tol):
    best, _ = objective.minimum()
    at_model = objective.value(parameters_of(model, objective))
    assert model.status_ == Status.CONVERGED
    assert model.objective_ == pytest.approx(at_model, rel=1e-9)
    assert model.dual_gap_ <= tol * best * 1.0001
    assert -1e-9 * best <= model.objective_ - best <= model.dual_gap_ + 1e-9 * best
    assert model.n_features_ == objective.model.exists.sum()


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("solver", ["block_dual", "lbfgs"])
def test_minimum(name, solver):
    settings, renamed = VARIANTS[name]
    model = CRF(solver=solver, tol=1e-7, **settings).fit(X, Y)
    assert model.solver_ == solver
    check(model, reference(settings, renamed), 1e-7)


@pytest.mark.parametrize("name", WITH_MORE)
def test_minimum_of_absolute_values_and_pairs(name):
    settings, renamed = WITH_MORE[name]
    model = CRF(tol=1e-6, **settings).fit(X, Y)
    assert model.solver_ == ("lbfgs" if "pair_features" in settings else "block_dual")
    check(model, reference(settings, renamed), 1e-6)


@pytest.mark.parametrize("solver", ["block_dual", "lbfgs", "sgd"])
def test_solvers_agree_on_a_larger_problem(solver):
    """60 sequences; L-BFGS to a tiny gap gives the minimum."""
    data = sentences(60)
    best = CRF(solver="lbfgs", tol=1e-10, C=2.0).fit(*data)
    model = CRF(solver=SGD() if solver == "sgd" else solver, tol=1e-6, C=2.0, max_iter=300 if solver == "sgd" else None)
    model.fit(*data)
    assert model.objective_ >= best.objective_ * (1 - 1e-9)
    assert model.objective_ - model.dual_gap_ <= best.objective_
    assert model.objective_ <= best.objective_ * (1 + (2e-3 if solver == "sgd" else 1e-6))


@pytest.mark.parametrize(
    ("solver", "l1_ratio", "largest"), [("auto", 0.0, 1e2), ("lbfgs", 0.0, 1e4), ("auto", 0.5, 1e2), ("auto", 1.0, 1e2)]
)
def test_weak_and_strong_penalties_converge(solver, l1_ratio, largest):
    data = sentences(25)
    for C in [C for C in (1e-4, 1e-2, 1.0, 1e2, 1e4) if largest >= C]:
        model = CRF(C=C, l1_ratio=l1_ratio, solver=solver, random_state=0).fit(*data)
        assert model.status_ == Status.CONVERGED
        assert -1e-14 * model.objective_ <= model.dual_gap_ <= 1e-4 * model.objective_


@pytest.mark.parametrize("temperature", [0.5, 3.0])
def test_temperature_is_a_change_of_scale(temperature):
    """T and C give T times the weights, and T^2 times the objective, of temperature 1 and C / T."""
    hot = CRF(temperature=temperature, C=2.0, tol=1e-11).fit(X, Y)
    plain = CRF(C=2.0 / temperature, tol=1e-11).fit(X, Y)
    np.testing.assert_allclose(hot.coef_.toarray(), temperature * plain.coef_.toarray(), atol=1e-4)
    np.testing.assert_allclose(hot.transitions_, temperature * plain.transitions_, atol=1e-4)
    assert hot.objective_ == pytest.approx(temperature**2 * plain.objective_, rel=1e-9)


# Weights


def test_sample_weights_count_like_repetitions():
    counts = np.array([1, 3, 2, 1, 1, 4, 1, 2, 1])
    weighted = CRF(tol=1e-10).fit(X, Y, sample_weight=counts)
    repeated = CRF(tol=1e-10).fit(
        [xs for xs, n in zip(X, counts, strict=True) for _ in range(n)],
        [ys for ys, n in zip(Y, counts, strict=True) for _ in range(n)],
    )
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    np.testing.assert_allclose(weighted.transitions_, repeated.transitions_, atol=1e-4)
    check(weighted, reference({}, {}, weights=counts), 1e-8)


@pytest.mark.parametrize("solver", ["block_dual", "lbfgs", "sgd", "perceptron"])
def test_sequences_of_weight_zero_do_not_count(solver):
    """They bring attributes and labels, but no loss."""
    weights = np.array([1, 0, 1, 1, 0, 1, 1, 1, 0.0])
    with_zeros = CRF(features="all", solver=solver, tol=1e-9, random_state=0).fit(X, Y, sample_weight=weights)
    objective = reference({"features": "all"}, {}, weights=weights)
    assert with_zeros.objective_ == pytest.approx(objective.value(parameters_of(with_zeros, objective)), rel=1e-9)
    if solver in ("block_dual", "lbfgs"):
        check(with_zeros, objective, 1e-8)


@pytest.mark.parametrize("class_weight", [{"B-N": 3.0, "O": 0.5}, {"I-N": 0.0}, "balanced"])
def test_class_weights(class_weight):
    """A sequence counts as the mean weight of its labels, times its own."""
    flat = [label for ys in Y for label in ys]
    if class_weight == "balanced":
        factors = {label: len(flat) / (3 * flat.count(label)) for label in LABELS}
    else:
        factors = {label: class_weight.get(label, 1.0) for label in LABELS}
    own = np.linspace(0.5, 1.5, len(X))
    weights = own * [np.mean([factors[label] for label in ys]) for ys in Y]
    model = CRF(class_weight=class_weight, tol=1e-8).fit(X, Y, sample_weight=own)
    check(model, reference({}, {}, weights=weights), 1e-8)


# Constraints


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("solver", ["block_dual", "lbfgs"])
def test_constraints_are_part_of_training(solver, order):
    """The partition function runs over the labellings that the rules allow, only."""
    allowed = np.ones((3, 3), dtype=bool)
    allowed[2, 1] = False  # I-N after O
    windows = {w for w in product(range(3), repeat=order + 1) if (2, 1) not in pairwise(w)}
    model = CRF(structure=Chain(order=order), constraints=allowed, solver=solver, tol=1e-7).fit(X, Y)
    check(model, objective_of(X, Y, order=order, allowed=windows), 1e-7)
    scheme = CRF(structure=Chain(order=order), constraints="BIO", solver=solver, tol=1e-7).fit(X, Y)
    objective = objective_of(X, Y, order=order, allowed=windows)
    objective.model.allowed_start = {0, 2}
    objective.__post_init__()
    check(scheme, objective, 1e-7)


# Partly labelled sequences

PARTIAL = [
    [
        None if (i + t) % 4 == 0 else {"B-N", "I-N"} if label != "O" and (i + t) % 4 == 1 else label
        for t, label in enumerate(ys)
    ]
    for i, ys in enumerate(Y)
]


@pytest.mark.parametrize("settings", [{}, {"features": "all", "temperature": 0.5}, {"start_stop": True, "C": 3.0}])
def test_partly_labelled(settings):
    """The marginal likelihood; not convex, so that a minimum nearby is what can be asked for."""
    model = CRF(tol=1e-6, **settings).fit(X, PARTIAL)
    objective = objective_of(X, PARTIAL, **settings)
    at = parameters_of(model, objective)
    assert model.objective_ == pytest.approx(objective.value(at), rel=1e-9)
    assert np.isnan(model.dual_gap_)
    nearby, _ = objective.minimum(at)
    assert model.objective_ <= nearby * (1 + 1e-6)


def test_nothing_known_is_no_information():
    extra = [["w=dog", "last=g"], ["w=cat", "last=t"]]
    with_unknown = CRF(tol=1e-7, solver="lbfgs").fit([*X, extra], [*Y, [None, None]])
    without = CRF(tol=1e-9, solver="lbfgs").fit(X, Y)
    assert with_unknown.objective_ == pytest.approx(without.objective_, rel=1e-6)
    np.testing.assert_allclose(with_unknown.transitions_, without.transitions_, atol=1e-3)


def test_a_set_of_one_label_is_that_label():
    sets = [[{label} for label in ys] for ys in Y]
    model = CRF(tol=1e-7, solver="lbfgs").fit(X, sets)
    plain = CRF(tol=1e-9, solver="lbfgs").fit(X, Y)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    assert model.n_features_ == plain.n_features_
    np.testing.assert_allclose(model.coef_.toarray(), plain.coef_.toarray(), atol=1e-3)


@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize("C", [1e-6, 0.01, 1.0, 10.0])
def test_partly_labelled_with_absolute_values_ends_at_a_stationary_point(C, l1_ratio):
    """Where coordinates stay at zero the slope is that of the nearest side, not the gradient of the losses."""
    model = CRF(C=C, l1_ratio=l1_ratio, tol=1e-6).fit(X, PARTIAL)
    assert model.status_ == Status.CONVERGED
    objective = objective_of(X, PARTIAL, C=C, l1_ratio=l1_ratio)
    at = parameters_of(model, objective)
    assert model.objective_ == pytest.approx(objective.value(at), rel=1e-9)
    gradient = objective.loss_and_gradient(at)[1] + (1 - l1_ratio) * at
    beyond = np.where(at != 0, np.abs(gradient + l1_ratio * np.sign(at)), np.maximum(np.abs(gradient) - l1_ratio, 0.0))
    assert np.linalg.norm(beyond) <= 1.01e-6 * model.objective_
    nearby, _ = objective.minimum(at)
    assert model.objective_ <= nearby * (1 + 1e-5)
