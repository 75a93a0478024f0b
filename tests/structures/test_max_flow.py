"""Best labellings by maximum flow: exact for two labels that attract, else as good as the local polytope."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from dualfield import CRF
from dualfield.structures import Graph, GraphShape, Scores, max_flow
from dualfield.structures.max_flow import Network, Quadratic, climb, roof_dual
from tests.structures.test_graph import grid, shape_of
from tests.structures.test_relaxed_graph import irregular, local_polytope

FLOW = "max_flow"


class Problem:
    """One graph with scores, and what is true of it."""

    def __init__(self, node, pair, edges):
        self.node, self.pair, self.edges = node, pair, np.asarray(edges, dtype=np.int32).reshape(-1, 2)
        self.scores = Scores(node, transition=pair, shape=shape_of(len(node), self.edges))

    @classmethod
    def drawn(cls, rng, n_nodes, n_labels=2, *, share=0.6, attractive=False, frustrated=False, whole=False):
        edges = irregular(rng, n_nodes, share).reshape(-1, 2)
        node, pair = rng.normal(size=(n_nodes, n_labels)), rng.normal(size=(len(edges), n_labels, n_labels))
        if frustrated:  # circles on which not all pairs can have what they like
            node, pair = 0.3 * node, rng.normal(size=(len(edges), 1, 1)) * np.eye(n_labels) + 0.1 * pair
        if whole:
            node, pair = np.round(node), np.round(pair)
        if attractive:
            excess = pair[:, 0, 0] + pair[:, 1, 1] - pair[:, 0, 1] - pair[:, 1, 0]
            pair[:, 0, 0] -= np.minimum(excess, 0.0)
        return cls(node, pair, edges)

    def value(self, labels):
        labels = np.asarray(labels)
        own = self.node[np.arange(len(labels)), labels].sum()
        return own + self.pair[np.arange(len(self.edges)), labels[self.edges[:, 0]], labels[self.edges[:, 1]]].sum()

    def every(self):
        n, k = self.node.shape
        return {labels: self.value(labels) for labels in itertools.product(range(k), repeat=n)}

    def linear_programme(self):
        n, k = self.node.shape
        matrix, right = local_polytope(self.edges, n, k)
        scores = np.concatenate([self.node.ravel(), self.pair.ravel()])
        return -linprog(-scores, A_eq=matrix, b_eq=right, method="highs").fun

    def found(self, inference=FLOW):
        return Graph(self.node.shape[1], inference=inference).bounded_argmax(self.scores)

    def point(self):
        return Graph(2, inference=FLOW)._bind(self.scores, None, 1.0, None).points[0]


@pytest.mark.parametrize("whole", [False, True])
def test_attractive_pairs_are_exact(whole):
    rng = np.random.default_rng(0)
    for _ in range(60):
        problem = Problem.drawn(rng, int(rng.integers(1, 8)), attractive=True, whole=whole)
        found, best = problem.found(), max(problem.every().values())
        assert found.bounds.exact.all()
        assert problem.value(found.labels) == pytest.approx(best, abs=1e-12)
        assert found.bounds.bound[0] == pytest.approx(best, abs=1e-11)
        # Ties are broken as elimination breaks them.
        assert found.labels.tolist() == problem.found("exact").labels.tolist()


@pytest.mark.parametrize("coupling", [0.2, 1.0, 3.0])
def test_attractive_grids_meet_the_bound_of_sweeps(coupling):
    rng = np.random.default_rng(1)
    edges = grid(15, 20)
    pair = coupling * rng.uniform(size=(len(edges), 1, 1)) * np.eye(2)
    problem = Problem(rng.normal(size=(300, 2)), pair, edges)
    found, swept = problem.found(), problem.found("trw")
    assert found.bounds.exact.all()
    assert found.bounds.bound[0] == pytest.approx(swept.bounds.bound[0], abs=1e-5)
    assert found.bounds.score[0] >= swept.bounds.score[0] - 1e-9


@pytest.mark.parametrize("whole", [False, True])
def test_other_pairs_reach_the_linear_programme(whole):
    """The point is half-integral, in the local polytope and as good as the best one; what it decides is right."""
    rng = np.random.default_rng(2)
    n_undecided = 0
    for _ in range(60):
        problem = Problem.drawn(rng, int(rng.integers(3, 8)), share=0.9, frustrated=True, whole=whole)
        point, found, every = problem.point(), problem.found(), problem.every()
        wanted, best = problem.linear_programme(), max(every.values())
        assert set(np.unique(point.node)) <= {0.0, 0.5, 1.0}
        assert point.pair.min() >= 0.0
        np.testing.assert_array_equal(point.pair.sum(axis=2), point.node[problem.edges[:, 0]])
        np.testing.assert_array_equal(point.pair.sum(axis=1), point.node[problem.edges[:, 1]])
        value = (point.node * problem.node).sum() + (point.pair * problem.pair).sum()
        assert value == pytest.approx(wanted, abs=1e-6)
        assert found.bounds.bound[0] == pytest.approx(wanted, abs=1e-6)
        assert best - 1e-9 <= found.bounds.bound[0]
        assert problem.value(found.labels) == pytest.approx(found.bounds.score[0], abs=1e-12)
        assert found.bounds.score[0] <= best + 1e-9
        optima = np.array([labels for labels, score in every.items() if score >= best - 1e-9])
        decided = ~point.undecided
        assert (optima[:, decided] == point.labels[decided]).all(axis=1).any()
        n_undecided += point.undecided.any()
    assert n_undecided > 10


def test_flipping_labels_may_make_pairs_attract():
    """A grid that repels is a checkerboard, and trees have no circles: both are decided, ties as well."""
    rng = np.random.default_rng(3)
    edges = grid(4, 5)
    signs = rng.choice([-1.0, 1.0], size=4)
    chain = np.array([(t, t + 1) for t in range(4)])
    for node in (rng.normal(size=(20, 2)), np.zeros((20, 2))):
        for problem in (
            Problem(node, -np.tile(np.eye(2), (len(edges), 1, 1)), edges),
            Problem(node[:5], signs[:, None, None] * np.eye(2), chain),
        ):
            found = problem.found()
            assert found.bounds.exact.all()
            assert found.bounds.score[0] == pytest.approx(problem.found("exact").bounds.score[0], abs=1e-12)


def test_parts_that_can_be_decided_are_beside_those_that_cannot():
    """A checkerboard with ties beside a triangle without a best point among labellings."""
    edges = np.concatenate([grid(2, 2), 4 + np.array([(0, 1), (1, 2), (2, 0)])])
    problem = Problem(np.zeros((7, 2)), -np.tile(np.eye(2), (len(edges), 1, 1)), edges)
    point, found = problem.point(), problem.found()
    assert point.undecided.tolist() == [False] * 4 + [True] * 3
    assert point.labels[:4].tolist() in ([0, 1, 1, 0], [1, 0, 0, 1])
    assert (found.bounds.score[0], found.bounds.bound[0]) == pytest.approx((-1.0, 0.0), abs=1e-12)
    assert not found.bounds.exact.any()


def test_labels_of_undecided_nodes_are_no_worse_than_those_of_sweeps():
    rng = np.random.default_rng(4)
    edges, better = grid(8, 9), 0
    for _ in range(10):
        pair = rng.normal(size=(len(edges), 1, 1)) * np.eye(2)
        problem = Problem(0.3 * rng.normal(size=(72, 2)), pair, edges)
        assert problem.point().undecided.any()
        found, swept = problem.found(), problem.found("trw")
        assert found.bounds.score[0] >= swept.bounds.score[0] - 1e-9
        assert found.bounds.bound[0] <= swept.bounds.bound[0] + 1e-6
        better += found.bounds.score[0] > swept.bounds.score[0] + 1e-9
    assert better


def test_climbing_ends_where_no_flip_gains():
    rng = np.random.default_rng(5)
    problem = Problem.drawn(rng, 30, share=0.2)
    quadratic = Quadratic.of(problem.node[:, 1] - problem.node[:, 0], problem.pair, problem.edges)
    start, free = rng.integers(0, 2, size=30).astype(np.int32), rng.random(30) < 0.8
    found = climb(quadratic, start, free)
    assert (found[~free] == start[~free]).all()
    assert problem.value(found) > problem.value(start)
    for t in np.flatnonzero(free):
        flipped = found.copy()
        flipped[t] = 1 - flipped[t]
        assert problem.value(flipped) <= problem.value(found) + 1e-12


@pytest.mark.parametrize("kind", ["random", "Potts"])
def test_expansions_are_never_below_their_start(kind):
    rng, better = np.random.default_rng(6), 0
    edges = grid(6, 7)
    for k in (3, 4, 5) * 3:
        pair = np.tile(1.0 * np.eye(k), (len(edges), 1, 1)) if kind == "Potts" else rng.normal(size=(len(edges), k, k))
        problem = Problem(rng.normal(size=(42, k)), pair, edges)
        found, swept = problem.found(), problem.found("trw")
        assert problem.value(found.labels) == pytest.approx(found.bounds.score[0], abs=1e-12)
        assert swept.bounds.score[0] - 1e-12 <= found.bounds.score[0] <= found.bounds.bound[0]
        assert found.bounds.bound[0] == pytest.approx(swept.bounds.bound[0], abs=1e-9)
        better += found.bounds.score[0] > swept.bounds.score[0] + 1e-9
    assert better or kind == "Potts"


def test_one_table_for_a_type_and_one_for_an_edge_are_the_same():
    rng = np.random.default_rng(7)
    edges, types = grid(3, 4), np.arange(17, dtype=np.int32) % 2
    shape = GraphShape(np.array([0, 12]), edges.astype(np.int32), np.array([0, 17]), types=types)
    for k in (2, 3):
        node, tables, cost = rng.normal(size=(12, k)), rng.normal(size=(2, k, k)), rng.random((12, k))
        graph = Graph(k, 2, inference=FLOW)
        shared = graph.bounded_argmax(Scores(node, transition=tables, shape=shape), cost=cost)
        own = graph.bounded_argmax(Scores(node + cost, transition=tables[types], shape=shape))
        assert shared.labels.tolist() == own.labels.tolist()
        np.testing.assert_allclose(shared.bounds.bound, own.bounds.bound, atol=1e-9)


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1e9, 1e300])
def test_scores_of_any_size(size):
    problem = Problem.drawn(np.random.default_rng(8), 9, attractive=True)
    large = Problem(size * problem.node, size * problem.pair, problem.edges)
    found = large.found()
    assert found.labels.tolist() == problem.found("exact").labels.tolist()
    assert 0.0 <= found.bounds.bound[0] - found.bounds.score[0] <= 1e-12 * size


def test_small_scores_beside_large_ones():
    """Integers of 32 bits hold one of them at a time; later rounds get to the other."""
    rng = np.random.default_rng(9)
    edges = np.concatenate([grid(3, 3), 9 + grid(3, 3), [(0, 9)]])
    for size in (1e3, 1e6, 1e9, 1e12):
        scale = np.repeat([size, 1.0], 9)
        pair = np.concatenate([np.repeat([size, 1.0], 12), [1.0]])[:, None, None] * rng.uniform(size=(25, 1, 1))
        problem = Problem(scale[:, None] * rng.normal(size=(18, 2)), pair * np.eye(2), edges)
        found, exact = problem.found(), problem.found("exact")
        assert found.labels.tolist() == exact.labels.tolist()
        assert found.bounds.bound[0] == pytest.approx(exact.bounds.score[0], rel=1e-12)


def test_rounding_down_keeps_the_bound(monkeypatch):
    """One round leaves what rounding took; what it reports is never less than that, and later rounds remove it."""
    rng = np.random.default_rng(10)
    edges = grid(6, 7)
    monkeypatch.setattr(max_flow, "_BITS", 12)
    for _ in range(10):
        gain, coupling = rng.normal(size=42), rng.uniform(size=len(edges))
        pair = coupling[:, None, None] * (np.eye(2) - 1.0)
        problem = Problem(np.stack([np.zeros(42), gain], axis=1), pair, edges)
        best = problem.found("exact").bounds.score[0]
        slacks = []
        for n_rounds in (1, 2, 30):
            monkeypatch.setattr(max_flow, "_MOST_ROUNDS", n_rounds)
            x, slack = Network(42, edges.astype(np.int64)).cut(gain, coupling)
            assert problem.value(x.astype(int)) <= best + 1e-12 <= problem.value(x.astype(int)) + slack + 2e-12
            slacks.append(slack)
        assert slacks[0] > slacks[1] > slacks[2]
        assert slacks[0] > 1e-4
        assert slacks[2] <= 1e-11


def test_forbidden_labels():
    rng = np.random.default_rng(11)
    for k in (2, 3):
        problem = Problem.drawn(rng, 7, k)
        problem.node[1, 0] = problem.node[4, k - 1] = -np.inf
        found, best = problem.found(), max(problem.every().values())
        assert np.isfinite(found.bounds.score).all()
        assert found.bounds.score[0] - 1e-9 <= best <= found.bounds.bound[0] + 1e-9
    graph = Graph(2, inference=FLOW)
    problem.node[3] = -np.inf
    two = GraphShape(np.array([0, 7, 8]), problem.edges, np.array([0, len(problem.edges), len(problem.edges)]))
    scores = Scores(np.concatenate([problem.node[:, :2], [[0.0, 1.0]]]), shape=two)
    assert graph.is_possible(scores).tolist() == [False, True]
    with pytest.raises(ValueError, match="Example 0 has no allowed labelling"):
        graph.argmax(scores)


def test_small_things():
    graph, none = Graph(2, inference=FLOW), np.zeros((0, 2), dtype=np.int32)
    alone = Scores([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]], shape=GraphShape(np.array([0, 0, 3]), none, np.zeros(3, int)))
    found = graph.bounded_argmax(alone)
    assert found.labels.tolist() == [1, 0, 0]
    assert found.bounds.bound.tolist() == [0.0, 3.0]
    assert found.bounds.exact.all()
    nothing = Scores(np.zeros((0, 2)), shape=GraphShape(np.array([0]), none, np.array([0])))
    assert graph.bounded_argmax(nothing).labels.tolist() == []
    pair = Scores([[0.0], [1.0]], transition=[[2.0]], shape=shape_of(2, np.array([[0, 1]])))
    only = Graph(1, inference=FLOW).bounded_argmax(pair)
    assert (only.labels.tolist(), only.bounds.score.tolist(), only.bounds.bound.tolist()) == ([0, 0], [3.0], [3.0])
    # Edges to and fro, whose tables add up.
    both = np.array([[0, 1], [1, 0]])
    problem = Problem(np.array([[0.0, 0.3], [0.2, 0.0]]), np.array([[[0, 1], [0, 0]], [[0, 0], [3, 0]]]) * 1.0, both)
    assert problem.found().labels.tolist() == [0, 1]
    assert problem.found().bounds.score[0] == pytest.approx(4.0)


def test_roof_dual_of_nothing():
    x, slack = roof_dual(Quadratic(np.zeros(0), np.zeros((0, 2), dtype=np.int64), np.zeros(0)))
    assert (x.tolist(), slack) == ([], 0.0)


def test_what_flows_do_not_answer_is_refused():
    problem = Problem.drawn(np.random.default_rng(0), 5)
    graph = Graph(2, inference=FLOW)
    for question, more in (("log_partition", ()), ("marginals", ()), ("entropy", ()), ("sample", (2,))):
        with pytest.raises(ValueError, match=f"{question} .*knows no sums over labellings. Use inference='exact'"):
            getattr(graph, question)(problem.scores, *more)
    for question, more in (("max_marginals", ()), ("k_best", (2,))):
        with pytest.raises(ValueError, match=f"{question} has no answer: .* Use inference='exact'"):
            getattr(graph, question)(problem.scores, *more)
    with pytest.raises(ValueError, match="allowed must be None with inference='max_flow'"):
        Graph(2, allowed=np.eye(2, dtype=bool), inference=FLOW)
    with pytest.raises(ValueError, match="Graph takes no start scores"):
        graph.argmax(Scores(problem.node, transition=problem.pair, start=[0.0, 1.0], shape=problem.scores.shape))
    for value, message in ((-np.inf, "pair scores of example 0 must be finite with"), (np.nan, "Got NaN or")):
        problem.pair[0, 0, 0] = value
        with pytest.raises(ValueError, match=message):
            graph.argmax(problem.scores)


def test_zero_temperature_is_answered():
    problem = Problem.drawn(np.random.default_rng(1), 5, attractive=True)
    graph, found = Graph(2, inference=FLOW), problem.found()
    assert graph.log_partition(problem.scores, temperature=0.0) == pytest.approx(found.bounds.bound)
    assert graph.score(problem.scores, found.labels) == pytest.approx(found.bounds.score)
    assert graph.sample(problem.scores, 2, temperature=0.0).tolist() == [found.labels.tolist()] * 2


def test_auto_cuts_wide_graphs_whose_pairs_attract():
    """Too wide, two labels, pairs that attract: best labellings are exact, sums are those of the relaxation."""
    rng = np.random.default_rng(5)
    shape = shape_of(16, grid(4, 4))
    for seed in range(5):
        node = np.random.default_rng(seed).normal(size=(16, 2))
        own = rng.normal(size=(24, 2, 2))
        own[:, [0, 1], [0, 1]] += 3.0
        attracts = own[:, 0, 0] + own[:, 1, 1] >= own[:, 0, 1] + own[:, 1, 0]
        own[~attracts] = 0.0
        for transition in (np.array([[0.8, 0.1], [0.0, 0.7]]), own):
            scores = Scores(node, transition=transition, shape=shape)
            auto, exact, swept = Graph(2, budget=100), Graph(2), Graph(2, inference="trw")
            found = auto.bounded_argmax(scores)
            assert found.bounds.exact.all()
            np.testing.assert_array_equal(found.labels, exact.argmax(scores))
            np.testing.assert_array_equal(auto.argmax(scores), found.labels)
            assert auto.log_partition(scores, temperature=0.0) == pytest.approx(
                exact.log_partition(scores, temperature=0.0)
            )
            np.testing.assert_array_equal(auto.log_partition(scores), swept.log_partition(scores))
            cost = rng.random((16, 2))
            np.testing.assert_array_equal(auto.argmax(scores, cost=cost), exact.argmax(scores, cost=cost))
    repelling = Scores(node, transition=-3.0 * own, shape=shape)
    np.testing.assert_array_equal(Graph(2, budget=100).argmax(repelling), Graph(2, inference="trw").argmax(repelling))
    with pytest.raises(ValueError, match="must be finite"):
        Graph(2, budget=100).argmax(Scores(node, transition=np.array([[np.nan, 0.0], [0.0, 1.0]]), shape=shape))


def test_auto_predicts_by_maximum_flow():
    """A CRF that was trained on a relaxation shows its best labellings to be best."""
    rng = np.random.default_rng(0)
    y = [np.repeat(np.repeat(rng.integers(2, size=(3, 3)), 4, axis=0), 4, axis=1) for _ in range(6)]
    X = [(image - 0.5 + rng.normal(size=image.shape))[:, :, None] for image in y]
    model = CRF(Graph(budget=10**4), C=0.1).fit(X[:4], y[:4])
    assert model.relaxation_ == "trw"
    found, bounds = model.predict(X, return_bound=True)
    assert bounds.exact.all()
    for one, other in zip(found, model.predict(X), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not model.structure_.tags_natively(model.decision_scores(X).shape)
