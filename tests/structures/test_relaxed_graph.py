"""Tree-reweighted bounds: above the exact answer, met from below by points of the local polytope, tight on trees."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import linprog
from scipy.special import entr

from dualfield import _native
from dualfield.structures import Graph, GraphShape, Scores
from tests.structures.test_graph import grid, shape_of


def irregular(rng, n_nodes, share):
    return np.array([(a, b) for a in range(n_nodes) for b in range(a) if rng.random() < share])


def attached(rng, n_nodes, n_new):
    """Every node is joined with earlier ones, the busy ones first: some become hubs."""
    edges, ends = [], [0]
    for t in range(1, n_nodes):
        others = set(rng.choice(ends, size=min(n_new, t)).tolist())
        edges += [(t, other) for other in others]
        ends += [t, *others]
    return np.array(edges)


GRAPHS = {
    "grid": (16, grid(4, 4)),
    "irregular": (10, irregular(np.random.default_rng(0), 10, 0.4)),
    "hubs": (12, attached(np.random.default_rng(1), 12, 2)),
    "full": (6, irregular(np.random.default_rng(0), 6, 1.0)),
    "two edges": (3, np.array([(0, 1), (1, 0), (1, 2)])),
}
TREES = {
    "chain": (6, np.array([(t, t + 1) for t in range(5)])),
    "star": (9, np.array([(0, t) for t in range(1, 9)])),
    "forest": (9, np.array([(5, 0), (5, 7), (7, 3), (3, 1), (2, 4), (4, 8)])),
    "no edges": (3, np.zeros((0, 2), dtype=int)),
}


class Drawn:
    """One graph with random scores, and the relaxation after so many sweeps."""

    def __init__(self, graph, seed, strength, n_labels=3):
        rng = np.random.default_rng(seed)
        self.n_nodes, self.edges = graph
        self.k, self.shape = n_labels, shape_of(*graph)
        self.node = rng.normal(size=(self.n_nodes, n_labels))
        self.pair = strength * rng.normal(size=(len(self.edges), n_labels, n_labels))
        self.scores = Scores(self.node, transition=self.pair, shape=self.shape)

    def native(self, most_sweeps=200, tolerance=0.0):
        shape = self.shape
        return _native.RelaxedGraphStructure(
            self.k, shape.offsets, shape.edges, shape.edge_offsets, None, 1, True, None, tolerance, most_sweeps
        )

    def oracle(self, most_sweeps=200, tolerance=0.0):
        own = [self.node, self.pair.reshape(len(self.pair), -1)]
        return _native.Oracle(self.native(most_sweeps, tolerance), own, None, 1.0, 1)

    def lower_bound(self, node, pair):
        """Score and entropy of beliefs, by the formula; they must be in the local polytope."""
        n_forests = self.native().n_forests
        degree = np.bincount(self.edges.ravel(), minlength=self.n_nodes)
        entropy = (1.0 - degree / n_forests) @ entr(node).sum(axis=1) + entr(pair).sum() / n_forests
        return (node * self.node).sum() + (pair * self.pair).sum() + entropy


@pytest.mark.parametrize("strength", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("name", GRAPHS)
def test_bounds_fall_to_the_beliefs_that_meet_them(name, strength):
    for seed in range(3):
        drawn = Drawn(GRAPHS[name], seed, strength)
        exact = Graph(3, inference="exact").log_partition(drawn.scores)[0]
        bounds = np.array([drawn.oracle(n).log_partition()[0] for n in (1, 2, 3, 5, 8, 20, 200)])
        assert (np.diff(bounds) <= 1e-12 * np.abs(bounds[0])).all()
        assert bounds[-1] >= exact - 1e-9
        for n_sweeps in (1, 3, 200):
            node, pair, _, (upper,) = drawn.oracle(n_sweeps).marginals(False, True)
            pair = pair.reshape(-1, 3, 3)
            assert min(node.min(), pair.min()) >= 0.0
            np.testing.assert_allclose(node.sum(axis=1), 1.0, atol=1e-12)
            np.testing.assert_allclose(pair.sum(axis=2), node[drawn.edges[:, 0]], atol=1e-12)
            np.testing.assert_allclose(pair.sum(axis=1), node[drawn.edges[:, 1]], atol=1e-12)
            lower = drawn.lower_bound(node, pair)
            assert lower <= bounds[-1] + 1e-9
        assert strength > 1.0 or upper - lower <= 1e-8


@pytest.mark.parametrize("strength", [1.0, 300.0])
@pytest.mark.parametrize("name", TREES)
def test_trees_are_exact(name, strength):
    drawn = Drawn(TREES[name], 0, strength)
    exact, relaxed = Graph(3), Graph(3, inference="trw")
    for temperature in (1.0, 0.5, 0.0):
        wanted, found = (g.marginals(drawn.scores, temperature=temperature, cliques="each") for g in (exact, relaxed))
        np.testing.assert_allclose(found.log_partition, wanted.log_partition, rtol=1e-12)
        np.testing.assert_allclose(found.node, wanted.node, atol=1e-10)
        np.testing.assert_allclose(found.clique, wanted.clique, atol=1e-10)
    best = relaxed.bounded_argmax(drawn.scores)
    assert best.bounds.exact.all()
    assert best.labels.tolist() == exact.argmax(drawn.scores).tolist()


def test_few_forests():
    """Grids fall into paths, and hubs into as many forests as their edges need."""
    assert Drawn((30, grid(5, 6)), 0, 1.0).native().n_forests == 2
    for n_nodes in (50, 200):
        assert Drawn((n_nodes, attached(np.random.default_rng(2), n_nodes, 2)), 0, 1.0).native().n_forests == 2
    scrambled = np.random.default_rng(0).permutation(30)[grid(5, 6)]
    assert Drawn((30, scrambled), 0, 1.0).native().n_forests == 2


def test_order_and_direction_do_not_matter():
    """The bound is that of the number of forests: other paths, or trees, lead to the same one."""
    drawn = Drawn((20, grid(4, 5)), 3, 1.0)
    move = np.random.default_rng(1).permutation(20)
    other = Drawn((20, move[drawn.edges][:, ::-1]), 0, 1.0)
    other.node[move], other.pair = drawn.node, drawn.pair.transpose(0, 2, 1).copy()
    assert other.native().n_forests == drawn.native().n_forests
    np.testing.assert_allclose(other.oracle(500).log_partition(), drawn.oracle(500).log_partition(), rtol=1e-10)
    nodes = [one.oracle(500).marginals(False, False)[0] for one in (drawn, other)]
    np.testing.assert_allclose(nodes[1][move], nodes[0], atol=1e-6)


def local_polytope(edges, n_nodes, k):
    """Rows A with A mu = b: nodes sum to one, edges to their nodes."""
    rows, columns, values, right = [], [], [], []

    def add(entries, b):
        for column, value in entries:
            rows.append(len(right))
            columns.append(column)
            values.append(value)
        right.append(b)

    for t in range(n_nodes):
        add([(t * k + a, 1.0) for a in range(k)], 1.0)
    for e, (s, t) in enumerate(edges.tolist()):
        at = n_nodes * k + e * k * k
        for a in range(k):
            add([(at + a * k + b, 1.0) for b in range(k)] + [(s * k + a, -1.0)], 0.0)
            add([(at + b * k + a, 1.0) for b in range(k)] + [(t * k + a, -1.0)], 0.0)
    return scipy.sparse.csr_array((values, (rows, columns))), np.array(right)


@pytest.mark.parametrize(("k", "seed"), [(2, 0), (3, 1), (4, 2)])
def test_potts_bound_is_that_of_the_linear_programme(k, seed):
    rng = np.random.default_rng(seed)
    edges = grid(10, 10)
    node = rng.normal(size=(100, k))
    pair = rng.uniform(0.2, 0.8, size=(len(edges), 1, 1)) * np.eye(k)
    matrix, right = local_polytope(edges, 100, k)
    programme = linprog(-np.concatenate([node.ravel(), pair.ravel()]), A_eq=matrix, b_eq=right, method="highs")
    scores = Scores(node, transition=pair, shape=shape_of(100, edges))
    found = Graph(k, inference="trw").bounded_argmax(scores)
    bounds = found.bounds
    assert bounds.bound[0] == pytest.approx(-programme.fun, abs=1e-6)
    assert bounds.score[0] <= bounds.bound[0]
    assert bounds.score[0] == Graph(k).score(scores, found.labels)[0]
    # The bound may be loose; where it is not, no labelling is better.
    assert not bounds.exact[0] or bounds.score[0] == pytest.approx(-programme.fun, rel=1e-9)


def test_labellings_against_exact_ones():
    met = 0
    for seed in range(12):
        drawn = Drawn((25, grid(5, 5)), seed, 1.0)
        best = Graph(3).log_partition(drawn.scores, temperature=0.0)
        bounds = Graph(3, inference="trw").bounded_argmax(drawn.scores).bounds
        assert bounds.score <= best + 1e-9 <= bounds.bound + 2e-9
        if bounds.exact[0]:
            met += 1
            assert bounds.score == pytest.approx(best, rel=1e-9)
    assert met >= 6


def test_forbidden_labels_have_no_share():
    drawn = Drawn((16, grid(4, 4)), 5, 1.0)
    drawn.node[3] = [-np.inf, 0.0, -np.inf]
    drawn.node[7, 1] = -np.inf
    relaxed = Graph(3, inference="trw")
    assert relaxed.log_partition(drawn.scores) >= Graph(3).log_partition(drawn.scores)
    answer = relaxed.marginals(drawn.scores, cliques="each")
    assert answer.node[3].tolist() == [0.0, 1.0, 0.0]
    assert answer.node[7, 1] == 0.0
    assert np.isfinite(answer.clique).all()
    assert relaxed.argmax(drawn.scores)[3] == 1
    drawn.node[5] = -np.inf
    assert not relaxed.is_possible(drawn.scores)[0]
    drawn.node[5] = np.nan
    with pytest.raises(ValueError, match="Got NaN or"):
        relaxed.log_partition(drawn.scores)


@pytest.mark.parametrize("size", [1e2, 1e4])
def test_scores_of_any_size(size):
    """Products of exponentials vanish, those of logarithms do not; and a bound stays one."""
    drawn = Drawn((16, grid(4, 4)), 1, size)
    exact, (node, pair, _, upper) = Graph(3).log_partition(drawn.scores), drawn.oracle().marginals(False, True)
    assert np.isfinite(upper).all()
    assert upper >= exact - 1e-12 * size
    assert drawn.lower_bound(node, pair.reshape(-1, 3, 3)) <= upper + 1e-12 * size


def test_auto_is_exact_where_the_budget_is_enough_for_all():
    small, large = grid(2, 2), grid(5, 5)
    both = GraphShape(np.array([0, 4, 29]), np.concatenate([small, large]).astype(np.int32), np.array([0, 4, 44]))
    given = {"exact": 10**6, "trw": 300}
    for name, budget in given.items():
        graph = Graph(2, budget=budget)
        assert graph.relaxation(both) == (None if name == "exact" else "trw")
        assert graph.relaxation(both.take(np.array([0]))) is None
        scores = Scores(np.random.default_rng(0).normal(size=(29, 2)), transition=np.eye(2), shape=both)
        wanted = Graph(2, inference=name, budget=10**6).log_partition(scores)
        np.testing.assert_array_equal(graph.log_partition(scores), wanted)


def test_answers_do_not_depend_on_threads():
    rng = np.random.default_rng(0)
    edges, n = grid(4, 5).astype(np.int32), 7
    shape = GraphShape(20 * np.arange(n + 1), np.tile(edges, (n, 1)), len(edges) * np.arange(n + 1))
    scores = Scores(rng.normal(size=(20 * n, 3)), transition=rng.normal(size=(3, 3)), shape=shape)
    relaxed = Graph(3, inference="trw")
    one, three = (relaxed.marginals(scores, cliques="sum", n_jobs=n_jobs) for n_jobs in (1, 3))
    for name in ("node", "clique", "log_partition"):
        np.testing.assert_array_equal(getattr(one, name), getattr(three, name))
    assert relaxed.argmax(scores, n_jobs=3).tolist() == relaxed.argmax(scores).tolist()


def test_what_bounds_do_not_answer_is_refused():
    drawn = Drawn((16, grid(4, 4)), 0, 1.0)
    relaxed = Graph(3, inference="trw")
    for question, more in (("max_marginals", ()), ("entropy", ()), ("sample", (2,)), ("k_best", (2,))):
        with pytest.raises(ValueError, match=f"{question} needs exact answers, and inference='trw' only bounds them"):
            getattr(relaxed, question)(drawn.scores, *more)
    with pytest.raises(ValueError, match="allowed must be None with inference='trw'"):
        Graph(2, allowed=np.eye(2, dtype=bool), inference="trw")
    with pytest.raises(ValueError, match=r"'inference' parameter of Graph must be one of \['auto', 'exact', "):
        Graph(2, inference="loopy")
    with pytest.raises(ValueError, match=r"Example 0 needs tables of more than 200 bytes"):
        Graph(3, budget=200, allowed=np.ones((3, 3), dtype=bool)).argmax(drawn.scores)


@pytest.mark.parametrize("inference", ["trw", "exact"])
def test_labels_and_bounds_of_one_pass_are_those_of_two(inference):
    rng = np.random.default_rng(3)
    shape = GraphShape(
        np.array([0, 12, 12, 24]), np.tile(grid(3, 4), (2, 1)).astype(np.int32), np.array([0, 17, 17, 34])
    )
    scores = Scores(rng.normal(size=(24, 3)), transition=2.0 * rng.normal(size=(34, 3, 3)), shape=shape)
    for sets in (None, np.array([[True, True, False], [False, True, True]])):
        kinds = None if sets is None else rng.integers(2, size=24).astype(np.int32)
        asked = scores if sets is None else replace(scores, shape=replace(shape, node_types=kinds))
        graph = Graph(3, inference=inference, label_sets=sets)
        found = graph.bounded_argmax(asked)
        np.testing.assert_array_equal(found.labels, graph.argmax(asked))
        np.testing.assert_allclose(found.bounds.bound, graph.log_partition(asked, temperature=0.0), rtol=1e-14)
        assert (found.bounds.score <= found.bounds.bound).all()


def test_scores_of_large_pictures_are_summed_without_loss():
    rng = np.random.default_rng(0)
    shape, labels = shape_of(10000, grid(100, 100)), rng.integers(3, size=10000)
    node, pair = 1e3 * rng.normal(size=(10000, 3)), 1e-3 * rng.normal(size=(3, 3))
    node[::2] += 1e6
    parts = [
        *node[np.arange(10000), labels].tolist(),
        *pair[labels[shape.edges[:, 0]], labels[shape.edges[:, 1]]].tolist(),
    ]
    found = Graph(3, inference="trw").score(Scores(node, transition=pair, shape=shape), labels)[0]
    assert found == pytest.approx(math.fsum(parts), rel=2.3e-16, abs=0.0)
    forbidden = node.copy()
    forbidden[7] = -np.inf
    assert Graph(3, inference="trw").score(Scores(forbidden, transition=pair, shape=shape), labels)[0] == -np.inf


@pytest.mark.parametrize("name", GRAPHS)
def test_sweeps_from_messages_are_not_above_what_they_begin_with(name):
    """Messages move scores from edges to nodes: no labelling's score changes, and the bound falls from their own."""
    n_nodes, edges = GRAPHS[name]
    for seed in range(5):
        drawn, rng = Drawn(GRAPHS[name], seed, 2.0), np.random.default_rng(seed)
        messages = rng.normal(size=(len(edges), 2, 3))
        node, pair = drawn.node.copy(), drawn.pair - messages[:, 0, :, None] - messages[:, 1, None, :]
        for end in (0, 1):
            np.add.at(node, edges[:, end], messages[:, end])
        moved = Scores(node, transition=pair, shape=drawn.shape)
        labels = rng.integers(3, size=n_nodes)
        graph = Graph(3, inference="trw")
        np.testing.assert_allclose(graph.score(moved, labels), graph.score(drawn.scores, labels))
        bound = graph.bounded_argmax(moved).bounds.bound[0]
        assert bound <= node.max(axis=1).sum() + pair.max(axis=(1, 2)).sum() + 1e-9
        assert bound >= Graph(3).log_partition(drawn.scores, temperature=0.0)[0] - 1e-9
