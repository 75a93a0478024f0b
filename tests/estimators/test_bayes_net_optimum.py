"""The minimum that DiscriminativeBayesNet finds is that of cvxpy on all hidden values; its limits, and its parts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import CategoricalNB

from dualfield import DiscriminativeBayesNet
from dualfield.objectives import NetworkPlanes
from dualfield.regularisers import SquaredNorm
from dualfield.solvers import Simplicial, Status

# Rain, sprinkler and so on would do: five variables whose moral graph has a loop.
LOOPY = [(1, [0]), (2, [0, 1]), (3, [1]), (4, [2, 3])]
LOOPY_SIZES = [2, 3, 2, 3, 2]


def table(seed: int, n: int = 8) -> Any:
    """Rows of five variables, all values of each among them, and hidden cells of their own."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(size, size=n) for size in LOOPY_SIZES], axis=1)
    X[:3] = np.minimum(np.arange(3)[:, None], np.array(LOOPY_SIZES) - 1)
    hidden = np.zeros(X.shape, dtype=bool)
    for row in hidden:
        row[rng.choice(5, size=rng.integers(1, 4), replace=False)] = True
    return X, hidden


def rows_of(parents: list[tuple[Any, list[Any]]], sizes: dict[Any, int]) -> tuple[dict[Any, int], list[slice]]:
    """Lay out tables one after another, children in their order: where each begins, and their rows."""
    starts, rows, at = {}, [], 0
    for child, of in parents:
        starts[child] = at
        for _ in itertools.product(*(range(sizes[one]) for one in of)):
            rows.append(slice(at, at + sizes[child]))
            at += sizes[child]
    return starts, rows


def uses(parents: Any, sizes: Any, starts: Any, values: dict[Any, int], length: int) -> Any:
    counts = np.zeros(length)
    for child, of in parents:
        place = 0
        for one in of:
            place = place * sizes[one] + values[one]
        counts[starts[child] + place * sizes[child] + values[child]] += 1.0
    return counts


def minimum(
    parents: Any, sizes: Any, rows: list[dict[Any, int]], hidden: list[list[Any]], c: Any, eta: float, cost: Any
) -> tuple[float, Any]:
    """The minimum of the objective, and where it is: cones for the tables, a plane for each hidden assignment."""
    import cvxpy

    starts, slices = rows_of(parents, sizes)
    theta = cvxpy.Variable(len(c))
    losses, constraints = [], [cvxpy.log_sum_exp(theta[row]) <= 0 for row in slices]
    for values, members in zip(rows, hidden, strict=True):
        truth, planes = uses(parents, sizes, starts, values, len(c)), []
        for other in itertools.product(*(range(sizes[one]) for one in members)):
            changed = {**values, **dict(zip(members, other, strict=True))}
            offset = sum(cost(one, values[one], changed[one]) for one in members)
            planes.append((uses(parents, sizes, starts, changed, len(c)) - truth, offset))
        slopes, offsets = np.array([a for a, _ in planes]), np.array([b for _, b in planes], dtype=float)
        losses.append(cvxpy.max(slopes @ theta + offsets))
    problem = cvxpy.Problem(cvxpy.Minimize(-c @ theta + eta * cvxpy.sum(cvxpy.hstack(losses))), constraints)
    tight = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    return float(problem.solve(solver=cvxpy.CLARABEL, **tight)) - least(c, slices), theta.value


def least(c: Any, slices: list[slice]) -> float:
    """The least of -<c, theta>, at the reference itself: what makes a divergence of it."""
    return -sum(float(c[row] @ np.log(c[row] / c[row].sum())) for row in slices)


def reference(parents: Any, sizes: Any, rows: Any, prior: str, smoothing: float) -> Any:
    starts, slices = rows_of(parents, sizes)
    counts = np.full(slices[-1].stop, smoothing)
    for values in rows:
        counts += uses(parents, sizes, starts, values, len(counts))
    if prior == "prob":
        for row in slices:
            counts[row] /= counts[row].sum()
    return counts


def wrong(variable: Any, truth: int, value: int) -> float:
    return float(truth != value)


@pytest.mark.parametrize("eta", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("prior", ["prob", "count"])
@pytest.mark.parametrize("seed", [0, 1])
def test_networks_with_hidden_cells(seed: int, prior: Any, eta: float) -> None:
    pytest.importorskip("cvxpy", reason="cvxpy, an independent solver, is not installed")
    X, hidden = table(seed)
    model = DiscriminativeBayesNet(LOOPY, eta=eta, prior=prior, smoothing=0.5, tol=1e-8).fit(X, hidden=hidden)
    parents = [(child, of) for child, of in model.structure_]
    sizes = dict(enumerate(LOOPY_SIZES))
    rows = [dict(enumerate(row)) for row in X.tolist()]
    c = reference(parents, sizes, rows, prior, 0.5)
    best, theta = minimum(parents, sizes, rows, [np.flatnonzero(h).tolist() for h in hidden], c, eta, wrong)
    assert abs(model.objective_ - best) <= 1e-6 * max(1.0, abs(best))
    assert model.objective_ - model.dual_gap_ <= best + 1e-7 * max(1.0, abs(best))
    assert model.status_ is Status.CONVERGED
    at_tables = np.concatenate([model.tables_[child].ravel() for child, _ in parents])
    assert -c @ np.log(at_tables) == pytest.approx(-c @ theta, rel=1e-2, abs=1e-2)


@pytest.mark.parametrize("eta", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("prior", ["prob", "count"])
@pytest.mark.parametrize("loss", ["hamming", "costs"])
def test_naive_bayes(loss: Any, prior: Any, eta: float) -> None:
    pytest.importorskip("cvxpy", reason="cvxpy, an independent solver, is not installed")
    rng = np.random.default_rng(3)
    y = np.arange(12) % 3
    X = np.stack([(y + rng.integers(2, size=12)) % 3, rng.integers(2, size=12)], axis=1)
    costs = np.array([[0.0, 1.0, 5.0], [0.5, 0.0, 1.0], [2.0, 3.0, 0.0]])
    given = "hamming" if loss == "hamming" else costs
    model = DiscriminativeBayesNet(eta=eta, prior=prior, loss=given, tol=1e-8).fit(X, y)
    parents, sizes = [(0, ["class"]), (1, ["class"]), ("class", [])], {0: 3, 1: 2, "class": 3}
    rows = [{0: a, 1: b, "class": label} for (a, b), label in zip(X.tolist(), y.tolist(), strict=True)]
    c = reference(parents, sizes, rows, prior, 1.0)

    def cost(variable: Any, truth: int, value: int) -> float:
        return float(truth != value) if loss == "hamming" else float(costs[truth, value])

    best, _ = minimum(parents, sizes, rows, [["class"]] * 12, c, eta, cost)
    assert abs(model.objective_ - best) <= 1e-6 * max(1.0, abs(best))
    assert model.dual_gap_ <= 1e-8 * model.objective_


def test_shared_tables_weights_and_a_reference_of_ones_own() -> None:
    """Two columns share a table; rows count with their weights, and the reference is given."""
    pytest.importorskip("cvxpy", reason="cvxpy, an independent solver, is not installed")
    rng = np.random.default_rng(5)
    y = np.arange(10) % 2
    X = (y[:, None] + rng.integers(2, size=(10, 2))) % 3
    weight = rng.integers(1, 4, size=10)
    prior = {0: [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]], "class": [0.4, 0.6]}
    model = DiscriminativeBayesNet(eta=0.7, shared=[[0, 1]], prior=prior, tol=1e-8)
    model.fit(X, y, sample_weight=weight)
    parents, sizes = [(0, ["class"]), ("class", [])], {0: 3, "class": 2}
    # As one column twice: the counts of a row are those of both columns.
    import cvxpy

    starts, slices = rows_of(parents, sizes)
    c = np.array([0.5, 0.3, 0.2, 0.1, 0.6, 0.3, 0.4, 0.6])
    theta = cvxpy.Variable(8)
    total = -c @ theta
    for row, label, times in zip(X, y, weight, strict=True):
        counts = []
        for k in range(2):
            n = sum(uses(parents, sizes, starts, {0: value, "class": k}, 8) for value in row)
            n[starts["class"] + k] = 1.0
            counts.append(n)
        planes = [(n - counts[label]) @ theta + float(k != label) for k, n in enumerate(counts)]
        total += 0.7 * times * cvxpy.max(cvxpy.hstack(planes))
    problem = cvxpy.Problem(cvxpy.Minimize(total), [cvxpy.log_sum_exp(theta[row]) <= 0 for row in slices])
    best = float(problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11))
    assert model.objective_ == pytest.approx(best - least(c, slices), rel=1e-6)
    assert model.network_.n_parameters == 8
    np.testing.assert_array_equal(model.tables_[0], model.tables_[1])


# Without margins


def categorical(n: int = 200, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = np.stack([(y * (rng.random(n) < 0.6) + rng.integers(size, size=n)) % size for size in (3, 4, 2, 5)], axis=1)
    return X, y


@pytest.mark.parametrize("smoothing", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("prior", ["prob", "count"])
def test_without_margins_it_is_categorical_naive_bayes(smoothing: float, prior: Any) -> None:
    X, y = categorical()
    model = DiscriminativeBayesNet(eta=0.0, smoothing=smoothing, prior=prior).fit(X, y)
    counts = np.bincount(y) + smoothing
    peer = CategoricalNB(alpha=smoothing, class_prior=counts / counts.sum()).fit(X, y)
    fresh = categorical(50, 1)[0]
    np.testing.assert_allclose(model.predict_joint_log_proba(fresh), peer.predict_joint_log_proba(fresh), rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(fresh), peer.predict_proba(fresh), rtol=1e-11)
    np.testing.assert_array_equal(model.predict(fresh), peer.predict(fresh))
    assert model.solver_ == "counting"
    assert model.dual_gap_ == 0.0


def test_a_very_small_eta_changes_nearly_nothing() -> None:
    X, y = categorical()
    plain = DiscriminativeBayesNet("tan", eta=0.0).fit(X, y)
    near = DiscriminativeBayesNet("tan", eta=1e-9, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(near.predict_proba(X), plain.predict_proba(X), atol=1e-5)
    assert near.objective_ >= plain.objective_


def test_margins_lower_the_training_loss() -> None:
    X, y = categorical()

    def hinge(model: DiscriminativeBayesNet) -> float:
        scores = model.predict_joint_log_proba(X)
        return float((scores + (np.arange(3) != y[:, None])).max(axis=1).sum() - scores[np.arange(len(y)), y].sum())

    fits = [DiscriminativeBayesNet(eta=eta, tol=1e-4).fit(X, y) for eta in (0.0, 0.01, 0.1)]
    losses = [hinge(model) for model in fits]
    assert losses[0] > losses[1] > losses[2]
    for model, eta, loss in zip(fits[1:], (0.01, 0.1), losses[1:], strict=True):
        c = np.concatenate([fits[0].tables_[name].ravel() for name in (0, 1, 2, 3, "class")])
        theta = np.concatenate([np.log(model.tables_[name]).ravel() for name in (0, 1, 2, 3, "class")])
        assert model.objective_ == pytest.approx(c @ (np.log(c) - theta) + eta * loss, rel=1e-9)


def test_the_bound_holds_at_every_look_and_solvers_agree() -> None:
    X, y = categorical(80)
    fine = DiscriminativeBayesNet(eta=0.3, tol=1e-9).fit(X, y)
    for solver in (Simplicial(n_blocks=1), Simplicial(n_blocks=80, max_columns=20)):
        other = DiscriminativeBayesNet(eta=0.3, tol=1e-6, solver=solver).fit(X, y)
        assert other.objective_ == pytest.approx(fine.objective_, rel=2e-6)
        assert (other.trace_.dual <= fine.objective_ * (1.0 + 1e-8)).all()
        assert (other.trace_.objective >= fine.objective_ * (1.0 - 2e-9)).all()


def test_missing_mass() -> None:
    """A hidden Markov model of three steps with large margins: to scale its rows to one would undo the training."""
    rng = np.random.default_rng(1)
    states, symbols = rng.integers(2, size=(4, 3)), rng.integers(3, size=(4, 3))
    states[0], symbols[0] = [0, 1, 0], [0, 1, 2]
    network = [(1, [0]), (2, [1]), (3, [0]), (4, [1]), (5, [2])]
    model = DiscriminativeBayesNet(
        network, shared={"moves": [1, 2], "symbols": [3, 4, 5]}, hidden=[0, 1, 2], eta=5.0, smoothing=0.5, tol=1e-7
    )
    X = np.hstack([states, symbols])
    model.fit(X)
    assert max(float(mass.max()) for mass in model.missing_mass_.values()) > 0.5
    for name, mass in model.missing_mass_.items():
        np.testing.assert_allclose(mass, np.maximum(1.0 - model.tables_[name].sum(axis=-1), 0.0))
        assert (model.tables_[name].sum(axis=-1) <= 1.0 + 1e-9).all()
    plain = DiscriminativeBayesNet(network, shared=[[1, 2], [3, 4, 5]], eta=0.0, smoothing=0.5).fit(X)
    hidden = np.zeros(X.shape, dtype=bool)
    hidden[:, :3] = True
    norm = SquaredNorm(model.network_.n_parameters)
    planes = NetworkPlanes(model.network_, X.astype(np.int32), hidden, weights=np.full(4, 5.0), regulariser=norm)

    def objective(theta: Any) -> float:
        return float(
            np.exp(plain.parameters_) @ (plain.parameters_ - theta)
            + planes.weights @ planes.planes(theta).values(theta)
        )

    sums = np.bincount(model.network_.rows, np.exp(model.parameters_))[model.network_.rows]
    assert objective(model.parameters_) == pytest.approx(model.objective_, rel=1e-9)
    assert objective(model.parameters_ - np.log(sums)) > model.objective_ + 1.0
