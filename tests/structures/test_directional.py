"""Changes of marginals along a direction: covariances by enumeration, finite differences, scores of any size."""

import numpy as np
import pytest

from dualfield.structures import Chain, Graph, GraphShape, Scores
from tests.structures.test_every_structure import CASES, NAMES, Drawn


def _first_possible(name, seed, scale=1.0, per_edge=False):
    drawn = Drawn(name, seed, scale, per_edge)
    return drawn if all(drawn.every) else None


def _direction(drawn, rng):
    """Numbers for all parts that have scores, in the form of scores."""
    table, structure = drawn.table, drawn.table.structure
    node = rng.normal(size=drawn.node.shape)
    if not structure.has_edges:
        cliques = rng.normal(size=structure.n_cliques)
        form = Scores(node, None, cliques if structure.n_cliques else None, shape=table.shape)
        return form, node, cliques, None, np.zeros((0, table.n_labels))
    cliques, ends = rng.normal(size=drawn.cliques.shape), rng.normal(size=drawn.ends.shape)
    edges = None if drawn.edges is None else rng.normal(size=drawn.edges.shape)
    start, stop = [*ends, None, None][:2]
    if drawn.is_semi_markov:
        form = Scores(node, None, cliques, start=start, stop=stop, shape=table.shape, segment=edges)
    else:
        transition = cliques if edges is None else edges
        form = Scores(node, None, transition, start=start, stop=stop, shape=table.shape)
    return form, node, cliques, edges, ends


def _indicators(drawn, i, labels):
    """Which parts a labelling has: nodes, edges, cliques, ends."""
    table, structure, at = drawn.table, drawn.table.structure, drawn.at
    rows = slice(*table.shape.offsets[i : i + 2])
    begin, end = np.searchsorted(at, [rows.start, rows.stop])
    node = np.zeros((rows.stop - rows.start, table.n_labels))
    node[np.arange(len(labels)), list(labels)] = 1.0
    edges = np.zeros((end - begin, structure.edge_width))
    for row, part in table.edges(i, labels):
        edges[row, part] += 1.0
    shared = np.zeros(structure.n_cliques + structure.n_ends * table.n_labels)
    for part in table.shared(i, labels):
        shared[part] += 1.0
    return node, edges, shared


@pytest.mark.parametrize(("name", "scale", "per_edge"), CASES)
def test_covariances_of_all_labellings(name, scale, per_edge):
    n_seen = 0
    for seed in range(6):
        drawn = _first_possible(name, seed, scale, per_edge)
        if drawn is None:
            continue
        n_seen += 1
        structure, shape, temperature = drawn.table.structure, drawn.table.shape, 1.0 + seed % 2
        assert structure.has_directional(shape)
        form, node, cliques, edges, ends = _direction(drawn, np.random.default_rng(100 + seed))
        each = structure.directional(drawn.scores(), form, temperature=temperature, cliques="each", n_jobs=2)
        found = structure.directional(
            drawn.scores(), form, temperature=temperature, cliques="sum" if structure.n_cliques else None
        )
        np.testing.assert_allclose(each.node, found.node, atol=1e-12)
        # Scores of edges take the place of those that they share, but those of segments are added to them.
        counts = np.concatenate([np.zeros_like(cliques) if edges is not None and not drawn.is_semi_markov else cliques])
        shared = np.concatenate([counts, ends.ravel()])
        starts = np.searchsorted(drawn.at, shape.offsets)
        for i, every in enumerate(drawn.every):
            rows, own = slice(*shape.offsets[i : i + 2]), slice(*starts[i : i + 2])
            values = np.array([score for score, _ in every]) / temperature
            p = np.exp(values - values.max())
            p /= p.sum()
            parts = [_indicators(drawn, i, labels) for _, labels in every]
            along = np.array(
                [
                    (a * node[rows]).sum() + (0.0 if edges is None else (b * edges[own]).sum()) + c @ shared
                    for a, b, c in parts
                ]
            )
            weights = p * (along - p @ along) / temperature
            tolerance = 1e-9
            want = sum(weight * a for weight, (a, _, _) in zip(weights, parts, strict=True))
            np.testing.assert_allclose(found.node[rows], want, atol=tolerance)
            assert found.log_partition[i] == pytest.approx(p @ along, abs=1e-9)
            if structure.n_cliques:
                want = sum(weight * c for weight, (_, _, c) in zip(weights, parts, strict=True))
                np.testing.assert_allclose(found.clique[i].ravel(), want[: structure.n_cliques], atol=tolerance)
            if structure.has_edges:
                want = sum(weight * b for weight, (_, b, _) in zip(weights, parts, strict=True))
                np.testing.assert_allclose(each.clique[own].reshape(want.shape), want, atol=tolerance)
    assert n_seen > 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_all_covariances_at_once(name, scale):
    """B1: of every pair of parts, by enumeration."""
    for seed in (0, 1, 2):
        drawn = _first_possible(name, seed, scale)
        if drawn is None:
            continue
        structure = drawn.table.structure
        for i, (every, found) in enumerate(zip(drawn.every, structure.covariance(drawn.scores()), strict=True)):
            values = np.array([score for score, _ in every])
            p = np.exp(values - values.max())
            p /= p.sum()
            # Edges have no scores of their own here: labels of nodes, then what is shared.
            parts = [_indicators(drawn, i, labels) for _, labels in every]
            u = np.array([np.concatenate([a.ravel(), c])[: len(found)] for a, _, c in parts])
            centred = u - p @ u
            np.testing.assert_allclose(found, (centred.T * p) @ centred, atol=1e-12)


@pytest.mark.parametrize("n_labels", [2, 3, 5, 8])
def test_long_chains_have_the_covariances_of_all_directions(n_labels):
    """B2: as the products, one direction at a time, for scores of scale 1 and 40."""
    rng = np.random.default_rng(n_labels)
    chain = Chain(n_labels)
    for length, scale in ((1, 1.0), (2, 1.0), (30, 1.0), (30, 40.0)):
        shape = (length, n_labels)
        scores = Scores(scale * rng.normal(size=shape), None, scale * rng.normal(size=(n_labels, n_labels)))
        whole = chain.covariance(scores)[0]
        np.testing.assert_array_equal(whole, whole.T)
        v = rng.normal(size=len(whole))
        along = Scores(v[: length * n_labels].reshape(shape), None, v[length * n_labels :].reshape(n_labels, n_labels))
        found = chain.directional(scores, along, cliques="sum")
        want = np.concatenate([found.node.ravel(), found.clique.ravel()])
        np.testing.assert_allclose(whole @ v, want, rtol=1e-10, atol=1e-12 * max(1.0, np.abs(want).max()))


@pytest.mark.parametrize("name", NAMES)
def test_finite_differences_and_threads(name):
    drawn = next(one for seed in range(50) if (one := _first_possible(name, seed)) is not None)
    structure, shape = drawn.table.structure, drawn.table.shape
    assert structure.has_directional(shape)
    rng, step = np.random.default_rng(7), 1e-5
    along = rng.normal(size=drawn.node.shape)
    found = structure.directional(drawn.scores(), Scores(along, shape=shape))
    ahead, behind = (structure.marginals(drawn.scores(), cost=sign * step * along).node for sign in (1.0, -1.0))
    np.testing.assert_allclose(found.node, (ahead - behind) / (2 * step), atol=1e-8)
    for n_jobs in (2, 5):
        again = structure.directional(drawn.scores(), Scores(along, shape=shape), n_jobs=n_jobs)
        np.testing.assert_array_equal(again.node, found.node)


@pytest.mark.parametrize("order", [1, 2])
def test_scores_of_scale_40_on_long_chains(order):
    rng = np.random.default_rng(order)
    chain, length = Chain(4, order=order), 40
    scores = Scores(40 * rng.normal(size=(length, 4)), None, 40 * rng.normal(size=chain.n_cliques))
    node = chain.marginals(scores).node
    np.testing.assert_allclose(node.sum(axis=1), 1.0, atol=1e-9)
    change = chain.directional(scores, rng.normal(size=(length, 4)), cliques="sum")
    assert np.isfinite(change.node).all()
    np.testing.assert_allclose(change.node.sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(change.clique.sum(), 0.0, atol=1e-10)
    # Covariances are symmetric: the change of one node along another is that of the other along the one.
    rows = rng.normal(size=(2, length, 4))
    pair = [chain.directional(scores, row).node for row in rows]
    assert (pair[0] * rows[1]).sum() == pytest.approx((pair[1] * rows[0]).sum(), rel=1e-10, abs=1e-12)


def test_a_long_chain_against_finite_differences():
    rng = np.random.default_rng(3)
    chain = Chain(5)
    scores = Scores(rng.normal(size=(50, 5)), None, rng.normal(size=(5, 5)))
    along, step = rng.normal(size=(50, 5)), 1e-5
    ahead, behind = (chain.marginals(scores, cost=sign * step * along).node for sign in (1.0, -1.0))
    np.testing.assert_allclose(
        chain.directional(scores, along).node, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-9
    )


def test_relaxations_do_not_answer():
    graph = Graph(2, inference="trw")
    shape = GraphShape(np.array([0, 3]), np.array([[0, 1], [1, 2], [2, 0]], dtype=np.int32), np.array([0, 3]))
    assert not graph.has_directional(shape)
    with pytest.raises(ValueError, match="directional is not answered"):
        graph.directional(Scores(np.zeros((3, 2)), shape=shape), np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("change", "message"),
    [({"temperature": 0.0}, "'temperature' parameter of directional"), ({"cliques": "all"}, "'cliques' parameter")],
)
def test_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Chain(2).directional(np.zeros((2, 2)), np.zeros((2, 2)), **change)


def test_a_direction_of_other_examples_is_refused():
    with pytest.raises(ValueError, match="offsets of the scores"):
        Chain(2).directional(Scores(np.zeros((3, 2))), Scores(np.zeros((3, 2)), offsets=[0, 1, 3]))
