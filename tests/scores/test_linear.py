"""The score map against dense matrices: every form of rows, every width, listed and whole rows of weights."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse

from dualfield.data import Batch
from dualfield.scores import FeatureTable, LinearScores
from dualfield.structures import Chain
from tests.objectives.problems import random_batch, random_table

FORMS = ["dense", "mostly zeros", "weighted", "unit"]


def as_matrix(table: FeatureTable, weights: np.ndarray) -> np.ndarray:
    """The weights of a table as a dense matrix [columns][outputs]."""
    out = np.zeros((table.n_columns, table.n_outputs))
    out[table.columns, table.outputs] = weights
    return out


def random_map(rng, n_labels: int, n_columns: int, share: float, **options):
    score_map = LinearScores(Chain(n_labels), random_table(rng, n_columns, n_labels, share), **options)
    parts = {"node": rng.normal(size=score_map.node.outputs.size), "cliques": rng.normal(size=n_labels**2)}
    return score_map, parts


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("share", [0.03, 0.2, 0.6, 1.0])
def test_node_scores(form, share):
    """Few outputs of a column are listed, many are a whole row; up to 32 labels the sums stay in registers."""
    for n_labels in [*range(1, 10), 12, 13, 16, 17, 20, 24, 25, 28, 29, 31, 32, 33, 36, 40]:
        rng = np.random.default_rng(n_labels)
        score_map, parts = random_map(rng, n_labels, 11, share)
        matrix, batch = random_batch(rng, (3, 0, 5, 1), 11, form)
        scores = score_map.scores(score_map.pack(**parts), batch)
        np.testing.assert_allclose(scores.node, matrix @ as_matrix(score_map.node, parts["node"]), atol=1e-12)
        np.testing.assert_array_equal(scores.offsets, batch.offsets)
        np.testing.assert_array_equal(scores.transition, parts["cliques"])
        assert scores.start is None
        assert scores.stop is None


@pytest.mark.parametrize("values", [None, np.array([1.0, -2.0, 0.5, 3.0, 1.0, 1.0])])
def test_repeated_indices_add_up(values):
    indices = np.array([2, 0, 2, 2, 1, 0], dtype=np.int32)
    batch = Batch(np.array([0, 2]), 3, indptr=np.array([0, 4, 6]), indices=indices, values=values)
    score_map, parts = random_map(np.random.default_rng(0), 4, 3, 0.7)
    scores = score_map.scores(score_map.pack(**parts), batch)
    want = batch.to_csr().toarray() @ as_matrix(score_map.node, parts["node"])
    np.testing.assert_allclose(scores.node, want, atol=1e-14)


def test_single_precision_rows():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(6, 5)).astype(np.float32)
    score_map, parts = random_map(rng, 3, 5, 1.0)
    got = score_map.scores(score_map.pack(**parts), Batch.build(matrix, lengths=[4, 2])).node
    np.testing.assert_allclose(got, matrix.astype(float) @ as_matrix(score_map.node, parts["node"]), atol=1e-14)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_pair_tables(form, order):
    """An edge is scored by the second batch's row of the node that it leads to, on top of the shared weights."""
    for n_labels, share in itertools.product([1, 2, 3, 6], [0.1, 0.9]):
        rng = np.random.default_rng(n_labels)
        chain = Chain(n_labels, order)
        node, pair = random_table(rng, 4, n_labels, share), random_table(rng, 5, chain.n_cliques, share)
        score_map = LinearScores(chain, node, pair)
        lengths = (3, 0, 1, 2)
        matrix, batch = random_batch(rng, lengths, 4, form)
        pair_matrix, pair_batch = random_batch(rng, lengths, 5, form)
        weights, cliques, pairs = (rng.normal(size=n) for n in (node.outputs.size, chain.n_cliques, pair.outputs.size))
        scores = score_map.scores(score_map.pack(weights, cliques, pair=pairs), batch, pair_batch)
        edges = [1, 2, 5]  # not the first node of a sequence
        want = cliques + pair_matrix[edges] @ as_matrix(pair, pairs)
        np.testing.assert_allclose(scores.transition.reshape(3, -1), want, atol=1e-12)
        np.testing.assert_allclose(scores.node, matrix @ as_matrix(node, weights), atol=1e-12)


def test_threads_give_the_same_bits():
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 30, 400)
    score_map, parts = random_map(rng, 5, 8, 0.5)
    _, batch = random_batch(rng, lengths, 8, "weighted")
    w = score_map.pack(**parts)
    np.testing.assert_array_equal(
        score_map.scores(w, batch, n_threads=1).node, score_map.scores(w, batch, n_threads=3).node
    )


@pytest.mark.parametrize("n_labels", [1, 2, 4, 5, 33])
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_pack_and_unpack(n_labels, share):
    rng = np.random.default_rng(n_labels)
    chain = Chain(n_labels)
    mask = rng.random(chain.n_cliques) < 0.7
    node, pair = random_table(rng, 7, n_labels, share), random_table(rng, 3, chain.n_cliques, share)
    score_map = LinearScores(chain, node, pair, mask, with_ends=True)
    sizes = [node.outputs.size, chain.n_cliques, n_labels, n_labels, pair.outputs.size]
    parts = [rng.normal(size=size) for size in sizes]
    w = score_map.pack(*parts)
    assert w.shape == (score_map.n_parameters,)
    parts[1] = parts[1] * mask  # a clique without a weight scores 0
    got = score_map.unpack(w)
    for mine, theirs in zip((got.node, got.cliques, got.start, got.stop, got.pair), parts, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    # The vector holds nothing else: its other entries are zeros, for alignment.
    assert np.count_nonzero(w) == score_map.n_features == np.count_nonzero(np.concatenate(parts))
    np.testing.assert_array_equal(score_map.pack(got.node, got.cliques, got.start, got.stop, got.pair), w)
    got.node[:] = 0.0
    np.testing.assert_array_equal(score_map.unpack(w).node, parts[0])  # parts are copies


def test_parts_that_a_map_does_not_have_are_zeros():
    score_map = LinearScores(Chain(3), FeatureTable.all(2, 3))
    parts = score_map.unpack(score_map.pack(np.ones(6), np.ones(9)))
    np.testing.assert_array_equal(parts.start, np.zeros(3))
    np.testing.assert_array_equal(parts.stop, np.zeros(3))
    assert parts.pair.shape == (0,)
    assert score_map.n_features == 15


def test_cliques_that_are_not_allowed_have_no_weight():
    allowed = np.array([[True, False], [True, True]])
    score_map = LinearScores(Chain(2, allowed=allowed), FeatureTable.all(1, 2))
    assert score_map.n_features == 2 + 3
    np.testing.assert_array_equal(score_map.unpack(score_map.pack(np.ones(2), np.ones(4))).cliques, allowed.ravel())


def test_state_weights():
    rng = np.random.default_rng(0)
    score_map, parts = random_map(rng, 6, 9, 0.4)
    got = score_map.state_weights(score_map.pack(**parts))
    assert scipy.sparse.issparse(got)
    assert got.nnz == score_map.node.outputs.size
    np.testing.assert_array_equal(got.toarray(), as_matrix(score_map.node, parts["node"]).T)


# Which features there are


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("min_freq", [0, 1, 2, 5])
def test_observed_features(form, min_freq):
    rng = np.random.default_rng(3)
    matrix, batch = random_batch(rng, rng.integers(0, 6, 40), 9, form)
    outputs = rng.integers(-1, 4, len(matrix)).astype(np.int32)  # -1: not known, does not count
    table = FeatureTable.observed(batch, outputs, 5, min_freq)
    counts = np.array([(matrix[outputs == k] != 0).sum(axis=0) for k in range(5)]).T
    want = np.argwhere(counts >= max(min_freq, 1))
    np.testing.assert_array_equal(np.column_stack([table.columns, table.outputs]), want)
    assert table.n_columns == 9


def test_all_features():
    table = FeatureTable.all(3, 4)
    np.testing.assert_array_equal(np.column_stack([table.columns, table.outputs]), list(np.ndindex(3, 4)))


@pytest.mark.parametrize(
    ("indptr", "outputs"),
    [([0, 1], [2]), ([0, 2], [1, 0]), ([0, 2], [0, 0]), ([0, 1], [-1]), ([0, 1], []), ([1, 1], [0]), ([0, 2, 1], [0])],
)
def test_tables_that_are_not_sound(indptr, outputs):
    table = FeatureTable(np.array(indptr, dtype=np.int64), np.array(outputs, dtype=np.int32), 2)
    with pytest.raises(ValueError, match=r"indptr|outputs"):
        LinearScores(Chain(2), table).n_parameters  # noqa: B018


def test_data_that_does_not_fit_the_map():
    score_map = LinearScores(Chain(2), FeatureTable.all(3, 2))
    batch = Batch.build(np.ones((4, 3)), lengths=[4])
    with pytest.raises(ValueError, match="columns of the node map"):
        score_map.bind(Batch.build(np.ones((4, 2)), lengths=[4]))
    with pytest.raises(ValueError, match="w must have an entry for each parameter"):
        score_map.scores(np.zeros(3), batch)
    with pytest.raises(ValueError, match="codes in"):
        score_map.bind(batch, labels=np.array([0, 1, 2, 0], dtype=np.int32))
    with pytest.raises(ValueError, match="one entry for each node"):
        score_map.bind(batch, labels=np.array([0, 1], dtype=np.int32))
    with pytest.raises(ValueError, match="one entry for each example"):
        score_map.bind(batch, weights=np.ones(2))
    with pytest.raises(ValueError, match="temperature must not be negative"):
        score_map.bind(batch, temperature=-1.0)
    with pytest.raises(ValueError, match="cost must have shape"):
        score_map.bind(batch, cost=np.zeros((3, 3)))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_pickling(copied):
    rng = np.random.default_rng(0)
    chain = Chain(3)
    score_map = LinearScores(
        chain, random_table(rng, 4, 3, 0.5), random_table(rng, 2, 9, 0.5), rng.random(9) < 0.5, True
    )
    matrix, batch = random_batch(rng, (3, 2), 4, "dense")
    _, pair_batch = random_batch(rng, (3, 2), 2, "dense")
    w = rng.normal(size=score_map.n_parameters)  # builds the native twin, which is not pickled
    again = copied(score_map)
    one, two = (m.scores(w, batch, pair_batch) for m in (score_map, again))
    for name in ("node", "transition", "start", "stop"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert again.n_features == score_map.n_features
    assert len(matrix) == 5
