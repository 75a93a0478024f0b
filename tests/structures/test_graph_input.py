"""Graphs in every form that users have them in, and features of edges against an enumeration of all labellings."""

import itertools

import networkx as nx
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import dualfield
from dualfield import CRF, LatentCRF, StructuredSVM
from dualfield.objectives.latent_states import LatentChain
from dualfield.structures import FlatGraphs, Graph, grid_edges


def draw_graphs(n, seed, n_features=2):
    """Graphs with features at nodes and edges, some without an edge, and labels that depend on both."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        size = int(rng.integers(1, 5))
        pairs = [pair for pair in itertools.permutations(range(size), 2) if rng.random() < 0.4]
        edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        nodes = rng.normal(size=(size, n_features))
        X.append((nodes, edges, rng.normal(size=(len(edges), 3))))
        y.append([int(row[0] + 0.5 * rng.normal() > 0) for row in nodes] if i else [0, 1][:size] + [0] * (size - 2))
    return X, y


def flat(X):
    return FlatGraphs(
        nodes=np.concatenate([nodes for nodes, *_ in X]),
        lengths=[len(nodes) for nodes, *_ in X],
        edges=np.concatenate([edges for _, edges, *_ in X]),
        edge_lengths=[len(edges) for _, edges, *_ in X],
        edge_features=np.concatenate([features for *_, features in X]),
    )


def network(nodes, edges, features):
    """The same graph for NetworkX; nodes have names, and edges keep their order."""
    graph = nx.DiGraph()
    for at, row in enumerate(nodes):
        graph.add_node(f"node {at}", features=row)
    for (one, two), row in zip(edges.tolist(), features, strict=True):
        graph.add_edge(f"node {one}", f"node {two}", features=row)
    return graph


def enumerated_objective(w, X, y, C, n_labels=2):
    """|w|^2 / 2 + C times the log-loss, with all labellings written out."""
    d, z = X[0][0].shape[1], X[0][2].shape[1]
    node, rest = w[: d * n_labels].reshape(d, n_labels), w[d * n_labels :]
    shared = rest[: n_labels**2].reshape(n_labels, n_labels)
    edge = rest[n_labels**2 :].reshape(z, n_labels, n_labels)
    total = 0.5 * w @ w
    for (nodes, edges, features), labels in zip(X, y, strict=True):
        tables = shared + np.einsum("ez,zab->eab", features, edge)

        def score(labelling, nodes=nodes, edges=edges, tables=tables):
            places = np.arange(len(nodes))
            ends = np.asarray(labelling)[edges]
            return (nodes @ node)[places, labelling].sum() + tables[np.arange(len(edges)), ends[:, 0], ends[:, 1]].sum()

        every = [score(np.array(one)) for one in itertools.product(range(n_labels), repeat=len(nodes))]
        total += C * (np.logaddexp.reduce(every) - score(np.array(labels)))
    return total


def test_edge_features_reach_the_optimum_of_an_enumeration():
    X, y = draw_graphs(8, seed=1)
    size = 2 * 2 + 4 + 3 * 4
    best = scipy.optimize.minimize(enumerated_objective, np.zeros(size), args=(X, y, 0.7), method="BFGS", tol=1e-7)
    for solver in ("auto", "lbfgs", "block_dual"):
        model = CRF("graph", C=0.7, features="all", solver=solver, tol=1e-7).fit(X, y)
        assert model.objective_ == pytest.approx(best.fun, rel=1e-6)
        assert -1e-9 <= model.objective_ - best.fun <= model.dual_gap_ + 1e-6
    proba = model.predict_proba(X[:1])[0]
    assert proba.shape == (len(X[0][0]), 2)
    assert np.allclose(proba.sum(axis=1), 1.0)


@pytest.mark.parametrize("estimator", [CRF("graph"), StructuredSVM("graph")], ids=["CRF", "StructuredSVM"])
def test_forms_of_the_same_graphs_give_the_same_model(estimator, tmp_path):
    X, y = draw_graphs(20, seed=2)
    reference = estimator.fit(X, y).parameters_.copy()
    assert np.array_equal(estimator.fit(flat(X), y).parameters_, reference)
    networks = [network(*one) for one in X]
    order = [[(int(a[5:]), int(b[5:])) for a, b in graph.edges] for graph in networks]
    rows = [[one[1].tolist().index(list(pair)) for pair in pairs] for one, pairs in zip(X, order, strict=True)]
    sorted_X = [(nodes, edges[at], z[at]) for (nodes, edges, z), at in zip(X, rows, strict=True)]
    assert np.array_equal(estimator.fit(networks, y).parameters_, estimator.fit(sorted_X, y).parameters_)

    estimator.fit(X, y).save(tmp_path / "model")
    again = dualfield.load(tmp_path / "model")
    for one, two in zip(again.predict(flat(X)), estimator.predict(X), strict=True):
        assert list(one) == list(two)


def test_edge_features_can_be_attributes(tmp_path):
    X, y = draw_graphs(20, seed=3)
    named = [
        (nodes, edges, [{f"z{j}": float(value) for j, value in enumerate(row)} for row in features])
        for nodes, edges, features in X
    ]
    model = CRF("graph", features="all", tol=1e-8).fit(named, y)
    assert list(model.pair_vocabulary_) == ["z0", "z1", "z2"]
    assert model.objective_ == pytest.approx(CRF("graph", features="all", tol=1e-8).fit(X, y).objective_, rel=1e-7)
    model.save(tmp_path / "model")
    again = dualfield.load(tmp_path / "model", mmap=True)
    assert all(np.allclose(a, b) for a, b in zip(again.predict_proba(named), model.predict_proba(named), strict=True))
    warm = CRF("graph", features="all", tol=1e-8, warm_start=True).fit(named, y).fit(named, y)
    assert warm.objective_ == pytest.approx(model.objective_, rel=1e-7)


def test_latent_models_take_edge_features():
    X, y = draw_graphs(20, seed=4)
    model = LatentCRF(CRF("graph"), LatentChain(2), n_restarts=1, random_state=0).fit(X, y)
    assert [len(labels) for labels in model.predict(X)] == [len(nodes) for nodes, *_ in X]


def test_an_adjacency_matrix_names_its_edges():
    nodes, pairs = np.eye(3), np.array([[0, 1], [1, 2]])
    y = [[0, 1, 0]]
    expected = CRF("graph").fit([(nodes, pairs)], y)
    one_way = scipy.sparse.coo_array((np.ones(2), (pairs[:, 0], pairs[:, 1])), shape=(3, 3))
    both_ways = one_way + one_way.T
    for adjacency in (one_way, both_ways, scipy.sparse.csc_matrix(both_ways)):
        assert np.array_equal(CRF("graph").fit([(nodes, adjacency)], y).parameters_, expected.parameters_)
    backwards = CRF("graph").fit([(nodes, one_way.T)], y)
    assert np.allclose(backwards.transitions_, expected.transitions_.T)


def draw_images(n, seed):
    rng = np.random.default_rng(seed)
    truth = [np.repeat([np.arange(4) >= rng.integers(1, 4)], 3, axis=0).astype(int) for _ in range(n)]
    return [np.dstack([one + rng.normal(scale=0.6, size=one.shape), np.ones(one.shape)]) for one in truth], truth


@pytest.mark.parametrize("neighbours", [4, 8])
def test_images_are_grids(neighbours):
    X, y = draw_images(12, seed=0)
    edges, types = grid_edges(3, 4, neighbours)
    assert len(edges) == len({tuple(sorted(edge)) for edge in edges.tolist()}) == {4: 17, 8: 29}[neighbours]
    rows, columns = np.divmod(edges, 4)
    steps = np.column_stack([rows[:, 1] - rows[:, 0], columns[:, 1] - columns[:, 0]])
    assert [np.unique(steps[types == kind], axis=0).tolist() for kind in range(neighbours // 2)] == [
        [[0, 1]],
        [[1, 0]],
        [[1, 1]],
        [[1, -1]],
    ][: neighbours // 2]

    model = CRF(Graph(neighbours=neighbours)).fit(X, y)
    tuples = [(image.reshape(12, 2), edges, types) for image in X]
    same = CRF("graph").fit(tuples, [one.ravel() for one in y])
    assert np.array_equal(model.parameters_, same.parameters_)
    assert model.transitions_.shape == (neighbours // 2, 2, 2)
    assert np.array_equal(CRF(Graph(neighbours=neighbours)).fit(np.array(X), np.array(y)).parameters_, same.parameters_)

    for image, plain in zip(model.predict(X), same.predict(tuples), strict=True):
        assert image.shape == (3, 4)
        assert np.array_equal(image.ravel(), plain)
    assert model.predict_proba(X)[0].shape == (3, 4, 2)
    assert model.score(X, y) == same.score(tuples, [one.ravel() for one in y])
    assert model.k_best(X[:1], 2)[0][0][0].shape == (3, 4)
    assert model.sample(X[:1], 2, random_state=0)[0][1].shape == (3, 4)
    assert np.allclose(model.score_sequences(X, y), same.score_sequences(tuples, [one.ravel() for one in y]))


def test_string_labels_of_images_come_back_as_arrays():
    X, y = draw_images(6, seed=1)
    names = [np.array(["sky", "ground"])[one] for one in y]
    found = CRF("graph").fit(X, names).predict(X)
    assert found[0].shape == (3, 4)
    assert set(np.unique(found[0])) <= {"sky", "ground"}


def test_images_of_many_sizes_and_other_graphs_together():
    X, y = draw_images(4, seed=2)
    X, y = [*X, X[0][:2]], [*y, y[0][:2]]
    edges, types = grid_edges(3, 4)
    X, y = [*X, (X[0].reshape(12, 2), edges, types)], [*y, y[0].ravel()]
    found = CRF("graph").fit(X, y).predict(X)
    assert [np.shape(one) for one in found] == [(3, 4)] * 4 + [(2, 4), (12,)]


WRONG = {
    "a node that is not there": (
        [(np.eye(2), [(0, 5)])],
        r"X\[0\]\[1\] has the edge \(0, 5\); its graph has nodes 0 to 1",
    ),
    "rows of features": (
        [(np.eye(2), [(0, 1)], np.ones((3, 2)))],
        r"X\[0\]\[2\] has 3 rows of edge features; .* 1 edges",
    ),
    "number of types": ([(np.eye(2), [(0, 1)], [0, 1])], r"X\[0\]\[2\] has 2 types; X\[0\]\[1\] has 1 edges"),
    "a matrix": ([np.eye(3)], r"X\[0\] must be a graph: a tuple .* Got ndarray of shape \(3, 3\) instead"),
    "types of some": (
        [(np.eye(2), [(0, 1)], [0]), (np.eye(2), [(0, 1)])],
        r"X\[1\] has no edge types, as other graphs",
    ),
    "features of some": (
        [(np.eye(2), [(0, 1)]), (np.eye(2), [(0, 1)], [[1.0]])],
        r"X\[0\] has no edge features, as other graphs",
    ),
    "adjacency": ([(np.eye(2), scipy.sparse.eye_array(2, 3))], r"X\[0\]\[1\] must be pairs .* shape \(2, 3\)"),
    "one graph": (nx.path_graph(2), "X must be a list of graphs. Got Graph instead"),
    "no features": ([nx.path_graph(2)], r"X\[0\]: node 0 has no attribute 'features'"),
    "itself": ([(np.eye(2), [(1, 1)])], "joins a node with itself"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(case):
    X, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        CRF("graph").fit(X, [[0, 1]] * len(X))


def test_networks_with_features_at_some_edges():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {at: [1.0] for at in graph}, "features")
    graph.edges[0, 1]["type"] = 1
    with pytest.raises(ValueError, match=r"X\[0\]: edge \(1, 2\) has no attribute 'type', as other edges have"):
        CRF("graph").fit([graph], [[0, 1, 0]])


def test_edge_features_in_training_and_prediction_are_the_same():
    X, y = draw_graphs(10, seed=5)
    i = next(i for i, (_, edges, _) in enumerate(X) if len(edges))
    nodes, edges, _ = X[i]
    model = CRF("graph").fit(X, y)
    with pytest.raises(ValueError, match=r"X has no edge features; the training data had some"):
        model.predict([(nodes, edges)])
    with pytest.raises(ValueError, match=r"edge_features\[0\] has 2 columns; expected 3, as in training"):
        model.predict([(nodes, edges, np.ones((len(edges), 2)))])
    plain = CRF("graph").fit([one[:2] for one in X], y)
    with pytest.raises(ValueError, match=r"X has edge features; the training data had none"):
        plain.predict([X[i]])
    with pytest.raises(ValueError, match="'pair_features' parameter of CRF must be False where edges have features"):
        CRF("graph", pair_features=True).fit(X, y)
    with pytest.raises(ValueError, match="'kernel_on' parameter of CRF must be 'pairs' or 'both' where edges"):
        CRF("graph", kernel="rbf").fit(X, y)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"edge_lengths": [1]}, "edge_lengths of FlatGraphs has 1 entries; lengths has 2"),
        ({"edge_lengths": [1, 3]}, "edge_lengths of FlatGraphs must add up to 2"),
        ({"types": [0]}, "types of FlatGraphs has 1 entries for 2 edges"),
        ({"edges": [[0, 1], [0, 7]]}, r"edges of FlatGraphs, graph 1, has the edge \(0, 7\)"),
    ],
)
def test_flat_graphs_that_do_not_fit(changed, message):
    given = {"nodes": np.eye(4), "lengths": [2, 2], "edges": [[0, 1], [1, 0]], "edge_lengths": [1, 1]}
    with pytest.raises(ValueError, match=message):
        CRF("graph").fit(FlatGraphs(**{**given, **changed}), [[0, 1], [0, 1]])


def test_labels_of_an_image_must_have_its_shape():
    X, y = draw_images(3, seed=3)
    with pytest.raises(ValueError, match=r"y\[1\] must have shape \(3, 4\), as its image. Got \(4, 3\) instead"):
        CRF("graph").fit(X, [y[0], y[1].T, y[2]])


def test_landmarks_of_kernels_are_not_for_graphs():
    X, y = draw_images(3, seed=4)
    with pytest.raises(ValueError, match="kernel_approx is for sequences and single nodes, not for Graph"):
        CRF("graph", kernel="rbf", kernel_approx=5).fit(X, y)


@pytest.mark.parametrize("named", [False, True], ids=["numbers", "attributes"])
def test_graphs_without_edges_are_predicted_where_edges_have_features(named):
    X, y = draw_graphs(10, seed=6)
    if named:
        X = [(nodes, edges, [["p"] if row[0] > 0 else ["q"] for row in features]) for nodes, edges, features in X]
    model = CRF("graph").fit(X, y)
    nodes = np.array([[1.0, 0.0], [-1.0, 2.0]])
    scores = nodes @ model.coef_.T
    for alone in ((nodes, []), (nodes, [], [] if named else np.zeros((0, 3)))):
        assert list(model.predict([alone])[0]) == model.classes_[scores.argmax(axis=1)].tolist()
        expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        assert np.allclose(model.predict_proba([alone])[0], expected)
