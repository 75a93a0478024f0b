"""Second derivatives: finite differences of gradients, one column at a time, any threads, weights of scale 40."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield.data import Batch
from dualfield.losses import Loss
from dualfield.objectives import Examples, Objective
from dualfield.scores import FeatureTable, LinearScores
from dualfield.structures import Chain
from tests.objectives.problems import random_problem

FORMS = [
    {},
    {"order": 2, "ends": True},
    {"pair": True, "ends": True, "temperature": 0.5},
    {"constrained": True, "cost": True, "form": "unit"},
    {"partial": True, "ends": True, "temperature": 2.0},
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_products_are_differences_of_gradients(form, seed):
    problem = random_problem(seed, 3, lengths=(3, 1, 4, 0, 2), n_columns=4, **form)
    objective, w, v = problem.loss(), problem.random_parameters(seed), problem.random_parameters(seed + 50)
    step = 1e-5
    ahead, behind = (objective.loss_and_gradient(w + sign * step * v)[1] for sign in (1.0, -1.0))
    found = objective.hessian_product(w, v)
    np.testing.assert_allclose(found, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-8)
    for n_threads in (2, 3):
        np.testing.assert_array_equal(problem.loss(n_threads=n_threads).hessian_product(w, v), found)


@pytest.mark.parametrize("form", FORMS)
def test_all_second_derivatives(form):
    problem = random_problem(5, 3, lengths=(3, 1, 4, 0, 2), n_columns=4, **form)
    objective, w = problem.loss(), problem.random_parameters(5)
    hessian = objective.hessian(w)
    np.testing.assert_array_equal(problem.loss(n_threads=2).hessian(w), hessian)
    np.testing.assert_array_equal(hessian, hessian.T)
    some = np.flatnonzero(objective.score_map.used)[::2]
    np.testing.assert_allclose(objective.hessian(w, some), hessian[np.ix_(some, some)], rtol=1e-12, atol=1e-14)
    if objective.convex:
        assert np.linalg.eigvalsh(hessian).min() > -1e-12
    for seed in range(4):
        v = problem.random_parameters(seed)
        np.testing.assert_allclose(hessian @ v, objective.hessian_product(w, v), rtol=1e-12, atol=1e-12)


def test_weights_of_scale_40():
    rng = np.random.default_rng(1)
    score_map = LinearScores(Chain(4), FeatureTable.all(3, 4), with_ends=True)
    batch = Batch.build(rng.normal(size=(47, 3)), lengths=[40, 7])
    examples = Examples(nodes=batch, labels=rng.integers(4, size=47, dtype=np.int32), weights=np.ones(2))
    objective = Objective(score_map, examples, Loss())
    w = np.where(score_map.used, 40.0 * rng.normal(size=score_map.n_parameters), 0.0)
    loss, gradient = objective.loss_and_gradient(w)
    assert np.isfinite(loss)
    assert np.isfinite(gradient).all()
    hessian = objective.hessian(w)
    for _ in range(4):
        v = np.where(score_map.used, rng.normal(size=w.size), 0.0)
        product = objective.hessian_product(w, v)
        assert np.isfinite(product).all()
        np.testing.assert_allclose(hessian @ v, product, rtol=1e-10, atol=1e-10 * np.abs(hessian).max())


def test_hinge_losses_have_none():
    problem = random_problem(0)
    problem.model.temperature = 0.0
    objective = problem.loss()
    assert not objective.has_hessian
    with pytest.raises(ValueError, match="the temperature is 0"):
        objective.hessian_product(problem.random_parameters(0), problem.random_parameters(1))


def test_places_rise_within_the_parameters():
    problem = random_problem(0)
    objective, w = problem.loss(), problem.random_parameters(0)
    assert objective.hessian(w, np.zeros(0, dtype=np.int64)).shape == (0, 0)
    for places in ([1, 1], [2, 1], [-1], [w.size]):
        with pytest.raises(ValueError, match="places must rise within the parameters"):
            objective.hessian(w, np.array(places))
