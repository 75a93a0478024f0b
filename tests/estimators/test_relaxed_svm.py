"""Structural SVMs on graphs that are too wide: the optimum over the local polytope, and gaps that hold."""

import warnings

import numpy as np
import pytest

import dualfield
from dualfield import StructuredSVM
from dualfield.losses import Loss
from dualfield.models.training_data import read_training_data
from dualfield.objectives import Objective
from dualfield.regularisers import SquaredNorm
from dualfield.solvers import CuttingPlane, LocalBlocks, StopRule
from dualfield.structures import Chain, Graph, Scores
from tests.reference.relaxed_hinge import relaxed_minimum
from tests.structures.test_graph import grid
from tests.structures.test_relaxed_graph import attached, irregular

EDGES = {
    "grid": lambda rng: (12, grid(3, 4)),
    "irregular": lambda rng: (7, irregular(rng, 7, 0.6)),
    "hubs": lambda rng: (10, attached(rng, 10, 2)),
    "full": lambda rng: (5, irregular(rng, 5, 1.0)),
    "two edges": lambda rng: (3, np.array([(0, 1), (1, 0), (1, 2), (2, 0)])),
}
TRW = Graph(inference="trw")


class Drawn:
    """Graphs with labels that depend on their neighbours and on features, in the forms of estimator and reference."""

    def __init__(self, edges, n_labels, seed=0, n_examples=4, types=False, features=False):
        rng = np.random.default_rng(seed)
        self.k, self.n_types = n_labels, 2 if types else 1
        taste, bond = rng.normal(size=(2, n_labels)), 1.5 * rng.normal(size=(n_labels, n_labels))
        self.X, self.y, self.tables = [], [], []
        for _ in range(n_examples):
            n, pairs = EDGES[edges](rng)
            nodes, m = rng.normal(size=(n, 2)), len(pairs)
            labels = np.argmax(nodes @ taste + rng.gumbel(size=(n, n_labels)), axis=1)
            for s, t in pairs:
                labels[t] = np.argmax(nodes[t] @ taste + bond[labels[s]] + rng.gumbel(size=n_labels))
            kinds = rng.integers(2, size=m) if types else None
            extra = rng.normal(size=(m, 2)) if features else None
            self.X.append((nodes, pairs, *(one for one in (kinds, extra) if one is not None)))
            self.tables.append((nodes, pairs, kinds, extra))
            self.y.append(labels)
        # All labels and types occur.
        self.y[0][: self.k] = np.arange(min(self.k, len(self.y[0])))

    def minimum(self, weights=1.0, cost=None):
        return relaxed_minimum(self.tables, self.y, self.k, weights=weights, cost=cost, n_types=self.n_types)

    def objective(self, structure=TRW, C=1.0):
        data = read_training_data(StructuredSVM(structure, C, features="all"), self.X, self.y, None, None, hinge=True)
        return Objective(data.score_map, data.examples, Loss(0.0, data.cost), SquaredNorm(data.score_map.n_parameters))

    def fit(self, sample_weight=None, structure=TRW, **settings):
        return StructuredSVM(structure, features="all", **settings).fit(self.X, self.y, sample_weight)


CASES = {
    "binary grid": (("grid", 2), {}, {}),
    "grid": (("grid", 3), {}, {}),
    "irregular": (("irregular", 3), {}, {"C": 0.3}),
    "hubs": (("hubs", 3), {}, {}),
    "edge features": (("full", 3), {"features": True}, {}),
    "edge types": (("grid", 2), {"types": True}, {}),
    "types and features": (("two edges", 3), {"types": True, "features": True}, {"C": 3.0}),
    "costs": (("irregular", 3), {}, {"cost": np.array([[0.0, 1.0, 3.0], [2.0, 0.0, 0.5], [1.0, 1.0, 0.0]])}),
}


@pytest.mark.parametrize("solver", ["auto", "local_blocks"])
@pytest.mark.parametrize("name", CASES)
def test_reaches_the_relaxed_optimum(name, solver):
    where, what, settings = CASES[name]
    drawn = Drawn(*where, **what)
    best = drawn.minimum(settings.get("C", 1.0), settings.get("cost"))
    model = drawn.fit(solver=solver, tol=1e-5, **settings)
    assert model.relaxation_ == "trw"
    assert model.status_.value == "converged"
    assert model.objective_ == pytest.approx(best, rel=1e-5)
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-8) <= model.objective_ * (1.0 + 2e-8)


def test_example_weights():
    drawn, weights = Drawn("irregular", 2), np.array([0.5, 0.0, 2.0, 1.0])
    model = drawn.fit(weights, C=0.7, solver="local_blocks", tol=1e-5)
    assert model.objective_ == pytest.approx(drawn.minimum(0.7 * weights), rel=1e-5)


def test_gaps_hold_all_along():
    """On every look, from the first one on, the optimum is between the two sides, also where solvers end too early."""
    for seed in range(5):
        drawn = Drawn(list(EDGES)[seed], 2 + seed % 2, seed, n_examples=2, features=seed % 3 == 0)
        best, objective = drawn.minimum(), drawn.objective()
        for solver in (LocalBlocks(), CuttingPlane()):
            found = solver.solve(objective, StopRule(1e-7, 30), random_state=seed)
            assert (found.trace.objective >= best * (1.0 - 1e-7)).all()
            assert (found.trace.dual <= best * (1.0 + 1e-7)).all()
            assert found.objective - found.gap <= best * (1.0 + 1e-7)


def test_any_weights_have_a_gap_with_the_slack_of_the_points():
    drawn = Drawn("full", 3, features=True)
    best, relaxed, exact = drawn.minimum(), drawn.objective(), drawn.objective(Graph(inference="exact"))
    assert exact.relaxation is None
    found = LocalBlocks().solve(relaxed, StopRule(1e-4)).parameters
    rng = np.random.default_rng(0)
    slacks = []
    for scale in (0.0, 0.1, 1.0, 10.0):
        w = found + scale * rng.normal(size=found.size)
        value, gap = relaxed.certify(w)
        assert value - gap <= best * (1.0 + 1e-8) <= value * (1.0 + 2e-8)
        assert exact.value(w) <= value * (1.0 + 1e-12)
        planes = relaxed.planes(w)
        np.testing.assert_allclose(relaxed.evaluate(w)[0], relaxed.weights @ planes.losses(w), rtol=1e-12)
        np.testing.assert_allclose(relaxed.evaluate(w)[1], planes.slopes.T @ relaxed.weights, atol=1e-10)
        slacks.append(planes.slack.sum())
        # A plane of the relaxation bounds its losses from below at other weights, too.
        assert (planes.values(found) <= relaxed.planes(found).losses(found) + 1e-9).all()
    assert max(slacks) > 1e-3
    slack = relaxed.evaluate(found)[3]
    assert slack == pytest.approx(relaxed.weights @ relaxed.planes(found).slack)


def test_best_points_of_exact_structures_are_labellings():
    rng = np.random.default_rng(0)
    scores = Scores(rng.normal(size=(5, 3)), np.array([0, 2, 5]), rng.normal(size=(3, 3)))
    found, labels = Chain(3).best_point(scores), Chain(3).argmax(scores)
    assert found.node.argmax(axis=1).tolist() == labels.tolist()
    assert found.node.sum() == 5.0
    assert found.slack.tolist() == [0.0, 0.0]
    np.testing.assert_allclose(found.bound, Chain(3).bounded_argmax(scores).bounds.bound)


def test_trees_are_trained_exactly():
    rng = np.random.default_rng(0)
    edges = np.array([(0, t) for t in range(1, 6)] + [(3, 6), (6, 7)])
    X = [(rng.normal(size=(8, 3)), edges) for _ in range(6)]
    y = [rng.integers(3, size=8) for _ in X]
    exact = StructuredSVM(Graph(inference="exact"), tol=1e-7).fit(X, y)
    for solver in ("auto", "local_blocks"):
        relaxed = StructuredSVM(TRW, solver=solver, tol=1e-5).fit(X, y)
        assert relaxed.objective_ == pytest.approx(exact.objective_, rel=1e-5)


def test_wide_graphs_are_relaxed_by_themselves_and_bounded():
    drawn = Drawn("hubs", 3)
    model = drawn.fit(structure=Graph(budget=200), tol=1e-4)
    assert model.relaxation_ == "trw"
    exact = drawn.objective(Graph(inference="exact"))
    assert exact.value(model.parameters_) <= model.objective_
    labels, bounds = model.predict(drawn.X, return_bound=True)
    assert (bounds.score <= bounds.bound + 1e-9).all()
    assert len(labels) == len(drawn.X)


def test_threads_give_the_same_bits():
    drawn = Drawn("irregular", 3, features=True)
    one, two = (drawn.fit(solver="local_blocks", tol=1e-3, n_jobs=n) for n in (1, 2))
    assert one.parameters_.tobytes() == two.parameters_.tobytes()
    assert (one.objective_, one.dual_gap_, one.n_iter_) == (two.objective_, two.dual_gap_, two.n_iter_)


def test_saved_and_warm(tmp_path):
    drawn = Drawn("grid", 2)
    model = drawn.fit(solver="local_blocks", warm_start=True)
    model.save(tmp_path / "model.dualfield")
    again = dualfield.load(tmp_path / "model.dualfield")
    assert again.relaxation_ == "trw"
    assert [one.tolist() for one in again.predict(drawn.X)] == [one.tolist() for one in model.predict(drawn.X)]
    before = model.objective_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(max_iter=1).fit(drawn.X, drawn.y)
    assert model.objective_ <= before * (1.0 + 1e-12)


def test_goes_on_from_a_checkpoint(tmp_path):
    drawn, path = Drawn("hubs", 3, features=True), tmp_path / "state"
    settings = {"solver": "local_blocks", "features": "all", "tol": 1e-3}
    whole = StructuredSVM(TRW, **settings).fit(drawn.X, drawn.y)
    stops = dualfield.estimators.Checkpoint(path, every=0.0)
    first = StructuredSVM(TRW, **settings)
    first.fit(drawn.X, drawn.y, monitor=lambda moment, model: moment.passes > 20, checkpoint=stops)
    assert first.status_.value == "stopped"
    assert path.exists()
    second = StructuredSVM(TRW, **settings).fit(drawn.X, drawn.y, checkpoint=path)
    assert second.parameters_.tobytes() == whole.parameters_.tobytes()
    assert second.n_iter_ == whole.n_iter_


def test_too_few_passes_are_told():
    drawn = Drawn("full", 3, features=True)
    best = drawn.minimum(10.0)
    with pytest.warns(UserWarning, match="duality gap"):
        model = drawn.fit(C=10.0, solver="local_blocks", max_iter=3)
    assert model.objective_ - model.dual_gap_ <= best <= model.objective_
    zero = drawn.objective(C=10.0).value(np.zeros(model.parameters_.size))
    assert model.objective_ <= zero * (1.0 + 1e-12)


def test_signs_are_left_to_planes():
    drawn = Drawn("grid", 2)
    model = drawn.fit(positive=True, tol=1e-3)
    assert model.solver_ == "cutting_plane"
    assert (model.parameters_ >= 0.0).all()


def test_what_is_refused():
    drawn = Drawn("grid", 2)
    for ask, message in (
        (lambda: drawn.fit(structure=Graph(inference="exact"), solver="local_blocks"), "which has exact answers"),
        (lambda: drawn.fit(solver=LocalBlocks(memory=1.0)), "more than the 0.0 allowed"),
        (lambda: drawn.fit(rescaling="slack"), "StructuredSVM needs exact inference: rescaling='slack'"),
        (lambda: drawn.fit(kernel="rbf"), "StructuredSVM needs exact inference: with a kernel"),
    ):
        with pytest.raises(ValueError, match=message):
            ask()
