"""Chain beyond enumeration: hard numbers, long sequences, threads, sampling, reductions, errors."""

from __future__ import annotations

import itertools
import pickle
import resource
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax

from dualfield import _native
from dualfield.structures import Chain, Scores, Single
from tests.reference import enumeration
from tests.structures.problems import problems


def log_forward_backward(node, transition):
    """Log-domain forward-backward of one chain of order 1, straight from the textbook."""
    length = len(node)
    alpha, beta = np.empty_like(node), np.zeros_like(node)
    alpha[0] = node[0]
    for t in range(1, length):
        alpha[t] = node[t] + logsumexp(alpha[t - 1][:, None] + transition, axis=0)
    for t in range(length - 2, -1, -1):
        beta[t] = logsumexp(transition + node[t + 1] + beta[t + 1], axis=1)
    return logsumexp(alpha[-1]), softmax(alpha + beta, axis=1)  # row by row: large sums would cost digits


@pytest.fixture(params=_native.instruction_sets())
def instruction_set(request):
    before = _native.instruction_set()
    _native.use_instruction_set(request.param)
    yield request.param
    _native.use_instruction_set(before)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4, 5, 8, 13, 22, 31, 50])
def test_every_width_on_every_instruction_set(instruction_set, n_labels):
    """Row widths around multiples of the vector length, batches with remainders of the four that walk in step."""
    rng = np.random.default_rng(n_labels)
    lengths = rng.integers(1, 30, size=11)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    node, transition = rng.standard_normal((offsets[-1], n_labels)), rng.standard_normal((n_labels, n_labels))
    got = Chain(n_labels).marginals(Scores(node, offsets, transition), cliques="sum")
    each = Chain(n_labels).marginals(Scores(node, offsets, transition), cliques="each")
    for i in range(len(lengths)):
        total, marginals = log_forward_backward(node[offsets[i] : offsets[i + 1]], transition)
        assert got.log_partition[i] == pytest.approx(total, rel=1e-12)
        np.testing.assert_allclose(got.node[offsets[i] : offsets[i + 1]], marginals, atol=1e-12)
        edges = slice(offsets[i] - i, offsets[i + 1] - i - 1)
        np.testing.assert_allclose(got.clique[i], each.clique[edges].sum(axis=0), atol=1e-11)
        assert got.clique[i].sum() == pytest.approx(lengths[i] - 1, rel=1e-12)


@settings(max_examples=100, deadline=None)
@given(problems(scale=1e4, max_length=4), st.sampled_from([1.0, 1e-3]))
def test_scores_of_ten_thousand(problem, temperature):
    assume(problem.solvable)
    got = problem.chain.marginals(problem.scores, temperature=temperature, cost=problem.cost)
    want = [enumeration.log_partition(s, temperature) for s in problem.sequences]
    np.testing.assert_allclose(got.log_partition, want, rtol=1e-12, atol=1e-8)
    for i, sequence in enumerate(problem.sequences):
        if sequence.node:
            marginals = enumeration.node_marginals(sequence, temperature)
            np.testing.assert_allclose(got.node[problem.rows(i)], marginals, atol=1e-7)
    np.testing.assert_allclose(
        problem.chain.entropy(problem.scores, temperature=temperature, cost=problem.cost),
        [enumeration.entropy(s, temperature) for s in problem.sequences],
        atol=1e-7,
    )


def test_evidence_that_underflows_is_not_lost():
    """Two labels that never change: 400 nodes speak for the first, then 400 for the second, and one more decides.

    Halfway the second label is exp(-1200) times less likely; arithmetic on plain exponentials would drop it for good.
    """
    node = np.zeros((801, 2))
    node[:400, 0], node[400:800, 1], node[800, 1] = 3.0, 3.0, 1.0
    chain = Chain(2, allowed=np.eye(2, dtype=bool))
    got = chain.marginals(Scores(node))
    np.testing.assert_allclose(got.node[:, 1], 1 / (1 + np.exp(-1.0)), rtol=1e-12)
    assert got.log_partition[0] == pytest.approx(np.logaddexp(1200.0, 1201.0), rel=1e-14)
    assert chain.entropy(Scores(node))[0] == pytest.approx(Single(2).entropy([[0.0, 1.0]])[0], rel=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_a_hundred_thousand_nodes(scale):
    rng = np.random.default_rng(0)
    node, transition = scale * rng.standard_normal((100_000, 3)), scale * rng.standard_normal((3, 3))
    chain = Chain(3)
    got = chain.marginals(Scores(node, transition=transition))
    assert np.isfinite(got.log_partition[0])
    np.testing.assert_allclose(got.node.sum(axis=1), 1.0, atol=1e-9)
    total, marginals = log_forward_backward(node[:2000], transition)
    short = chain.marginals(Scores(node[:2000], transition=transition))
    assert short.log_partition[0] == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(short.node, marginals, atol=1e-7)
    best = chain.argmax(Scores(node, transition=transition))
    maximum = chain.log_partition(Scores(node, transition=transition), temperature=0)
    assert chain.score(Scores(node, transition=transition), best)[0] == pytest.approx(maximum[0], rel=1e-12)
    assert maximum[0] <= got.log_partition[0]
    if scale > 1:  # far apart scores leave one labelling
        np.testing.assert_array_equal(got.node.argmax(axis=1)[10:-10], best[10:-10])


def test_one_path_left():
    """A mask that forces the labels to count upwards leaves one labelling of four nodes, and none of five."""
    allowed = np.zeros((4, 4), dtype=bool)
    allowed[[0, 1, 2], [1, 2, 3]] = True
    chain = Chain(4, allowed=allowed)
    node = np.random.default_rng(0).standard_normal((4, 4))
    got = chain.marginals(Scores(node), cliques="each")
    np.testing.assert_allclose(got.node, np.eye(4), atol=1e-15)
    np.testing.assert_array_equal(chain.argmax(Scores(node)), [0, 1, 2, 3])
    assert got.log_partition[0] == pytest.approx(np.trace(node))
    assert chain.entropy(Scores(node))[0] == pytest.approx(0.0, abs=1e-14)
    with pytest.raises(ValueError, match="Example 1 has no allowed labelling"):
        chain.log_partition(Scores(np.zeros((8, 4)), offsets=[0, 3, 8]))


@settings(max_examples=40, deadline=None)
@given(problems(scale=100.0, max_length=12))
def test_answers_do_not_depend_on_threads(problem):
    assume(problem.solvable)
    chain, scores, cost = problem.chain, problem.scores, problem.cost
    one = chain.marginals(scores, cliques="sum", cost=cost, n_jobs=1)
    three = chain.marginals(scores, cliques="sum", cost=cost, n_jobs=3)
    for name in ("node", "clique", "log_partition"):
        np.testing.assert_array_equal(getattr(one, name), getattr(three, name))
    np.testing.assert_array_equal(
        chain.sample(scores, 3, random_state=1, cost=cost, n_jobs=1),
        chain.sample(scores, 3, random_state=1, cost=cost, n_jobs=3),
    )


@settings(max_examples=25, deadline=None)
@given(problems(max_length=3, max_labels=2), st.sampled_from([1.0, 0.3]))
def test_samples_follow_the_distribution(problem, temperature):
    assume(problem.solvable)
    n = 4000
    draws = problem.chain.sample(problem.scores, n, temperature=temperature, random_state=0, cost=problem.cost)
    for i, sequence in enumerate(problem.sequences):
        want = {y: p for p, y in enumeration.probabilities(sequence, temperature)}
        labellings, counts = np.unique(draws[:, problem.rows(i)], axis=0, return_counts=True)
        for row, count in zip(labellings.tolist(), counts, strict=True):
            p = want[tuple(row)]  # a forbidden labelling is a KeyError
            # Six standard deviations and a little: 25 problems with a few labellings each, never by chance.
            assert abs(count - n * p) <= 6 * np.sqrt(n * p * (1 - p)) + 3


def test_samples_of_far_apart_scores():
    """The same through the log domain: a forced change of label deep in an underflow."""
    chain = Chain(2, allowed=np.eye(2, dtype=bool))
    node = np.zeros((800, 2))
    node[:400, 0], node[400:, 1] = 3.0, 3.0
    draws = chain.sample(Scores(node), 2000, random_state=0)
    assert np.all(draws == draws[:, :1])
    assert abs(draws[:, 0].mean() - 0.5) < 0.07


def test_higher_order_equals_lower_order_with_the_same_scores():
    rng = np.random.default_rng(3)
    node, pairs = rng.standard_normal((40, 4)), rng.standard_normal((4, 4))
    scores = {1: Scores(node, [0, 15, 40], pairs)}
    for order in (2, 3):
        chain = Chain(4, order)
        scores[order] = Scores(node, [0, 15, 40], pairs[tuple(chain.cliques[:, -2:].T)])
    expected = Chain(4).marginals(scores[1])
    for order in (2, 3):
        got = Chain(4, order).marginals(scores[order])
        np.testing.assert_allclose(got.log_partition, expected.log_partition, rtol=1e-12)
        np.testing.assert_allclose(got.node, expected.node, atol=1e-12)
        np.testing.assert_array_equal(Chain(4, order).argmax(scores[order]), Chain(4).argmax(scores[1]))


def test_length_one_is_single():
    node = np.random.default_rng(0).standard_normal((6, 5))
    offsets = np.arange(7)
    chain, single = Chain(5), Single(5)
    np.testing.assert_allclose(chain.marginals(Scores(node, offsets)).node, single.marginals(node).node, rtol=1e-13)
    np.testing.assert_allclose(chain.entropy(Scores(node, offsets)), single.entropy(node), rtol=1e-12)
    np.testing.assert_array_equal(chain.k_best(Scores(node, offsets), 3).labels, single.k_best(node, 3).labels)


def test_only_allowed_tuples_are_expanded():
    """26 labels at order 3 have 456,976 windows; 500 of them seen make a chain of 500 and no more."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 26, 600)
    chain = Chain.from_labels(labels, n_labels=26, order=3)
    whole = chain.cliques[chain.cliques[:, 0] >= 0]
    assert len(whole) <= 597
    assert chain._topology.width < 4 * 2000
    scores = Scores(rng.standard_normal((600, 26)))
    assert np.isfinite(chain.score(scores, labels)[0])
    best = chain.argmax(scores)
    assert chain.score(scores, best)[0] >= chain.score(scores, labels)[0]
    windows = {tuple(row) for row in np.lib.stride_tricks.sliding_window_view(labels, 4).tolist()}
    assert {tuple(row) for row in np.lib.stride_tricks.sliding_window_view(best, 4).tolist()} <= windows


def test_clique_indices():
    chain = Chain.from_labels([0, 1, 0, 2], n_labels=3, order=2)
    index = chain.clique_indices([0, 1, 0, 2, 0, 2], [0, 4, 6])
    np.testing.assert_array_equal(chain.cliques[index], [[-1, 0, 1], [0, 1, 0], [1, 0, 2], [-1, 0, 2]])
    np.testing.assert_array_equal(chain.clique_indices([0, 1, 2, 0]), [index[0], -1, -1])


def test_from_labels_keeps_sequences_apart():
    chain = Chain.from_labels([0, 1, 2, 2], [0, 2, 2, 4], n_labels=3)
    np.testing.assert_array_equal(np.argwhere(chain.allowed), [[0, 1], [2, 2]])
    assert Chain.from_labels([], n_labels=3).allowed.sum() == 0


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 4), st.integers(1, 3), st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(0, 999))
def test_from_labels_allows_what_it_was_made_from(n_labels, order, lengths, seed):
    """Also sequences that are not longer than the order; and every window of it occurs, or is part of one that does."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    codes = rng.integers(0, n_labels, offsets[-1])
    chain = Chain.from_labels(codes, offsets, n_labels=n_labels, order=order)
    assert (chain.score(Scores(np.zeros((len(codes), n_labels)), offsets), codes) == 0.0).all()
    rows = [codes[a:b].tolist() for a, b in itertools.pairwise(offsets.tolist())]
    parts = {tuple(row[t : t + n]) for row in rows for n in range(2, order + 2) for t in range(len(row) - n + 1)}
    allowed = [tuple(code for code in row if code >= 0) for row in chain.cliques[chain.clique_allowed].tolist()]
    assert len(set(allowed)) == len(allowed)
    assert set(allowed) == {part for part in parts if order > 1 or len(part) == 2}
    again = Chain(n_labels, order, chain.allowed)
    assert again == chain
    if order > 1:
        assert chain.cliques.tolist() == sorted(chain.cliques.tolist())


def test_all_windows_of_a_high_order():
    """As many as can be counted: listed by numbers, not by sorting rows."""
    chain = Chain(6, 4)
    assert chain.n_cliques == 6**5 + 6**4 + 6**3 + 6**2
    wanted = [
        (-1,) * pad + row for pad in range(4) for row in itertools.product(range(6), repeat=5 - pad) if len(row) > 1
    ]
    assert [tuple(row) for row in chain.cliques.tolist()] == sorted(wanted)
    assert chain.log_partition(np.zeros((7, 6))) == pytest.approx(7 * np.log(6))


@settings(max_examples=100, deadline=None)
@given(problems(integers=True), st.sampled_from([1.0, 0.5]), st.sampled_from([1e6, 1e12, 2.0**48]))
def test_entropy_does_not_depend_on_constants(problem, temperature, offset):
    """What is added to all scores of a node changes no probability. Numbers are whole, so that no sum is rounded."""
    assume(problem.solvable)
    scores = problem.scores
    added = offset * np.random.default_rng(0).integers(-1, 2, (scores.n_nodes, 1))
    moved = Scores(scores.node + added, scores.offsets, scores.transition, start=scores.start, stop=scores.stop)
    wanted = [enumeration.entropy(sequence, temperature) for sequence in problem.sequences]
    found = problem.chain.entropy(moved, temperature=temperature, cost=problem.cost)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_labels", [3, 30])
@pytest.mark.parametrize("offset", [0.0, 1e12, 1e15, -1e15, 1e300])
def test_entropy_of_coins(n_labels, offset):
    """Each node has two labels that are equally good; all scores are moved by the same large number."""
    node = np.full((50, n_labels), offset)
    node[:, 2:] -= max(1e6, 2 * abs(offset))
    transition = np.full((n_labels, n_labels), offset)
    for more in ({}, {"transition": transition}, {"transition": np.tile(transition, (49, 1, 1))}):
        assert Chain(n_labels).entropy(Scores(node, **more)) == pytest.approx(50 * np.log(2), rel=1e-13)


def test_empty_batch_and_empty_sequences():
    chain = Chain(3)
    nothing = Scores(np.empty((0, 3)), [0])
    assert chain.argmax(nothing).shape == (0,)
    assert chain.log_partition(nothing).shape == (0,)
    empty = Scores(np.empty((0, 3)), [0, 0, 0], np.zeros((3, 3)))
    np.testing.assert_array_equal(chain.log_partition(empty), [0.0, 0.0])
    np.testing.assert_array_equal(chain.entropy(empty), [0.0, 0.0])
    assert chain.marginals(empty, cliques="sum").clique.shape == (2, 3, 3)
    np.testing.assert_array_equal(chain.k_best(empty, 2).scores, [[0.0, -np.inf]] * 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["node", "edge", "cost"])
def test_bad_numbers_name_the_example(bad, where):
    node, edge, cost = np.zeros((9, 2)), np.zeros((6, 2, 2)), np.zeros((9, 2))
    {"node": node, "edge": edge, "cost": cost}[where][4] = bad
    scores = Scores(node, [0, 3, 6, 9], edge)
    chain = Chain(2)
    example = 2 if where == "edge" else 1
    for query in (chain.argmax, chain.log_partition, chain.marginals, chain.entropy, chain.max_marginals):
        with pytest.raises(ValueError, match=f"scores of example {example} must be finite"):
            query(scores, cost=cost)


def test_scores_that_overflow_when_added_up():
    """Each of them is finite: they are not called forbidden."""
    chain, large = Chain(2), np.array([[1e308, -1e308], [1e308, 0.0], [0.0, 1e308]])
    for ask in (chain.argmax, chain.log_partition, chain.marginals, chain.entropy, chain.max_marginals, chain.sample):
        with pytest.raises(ValueError, match="also divided by the temperature and added up"):
            ask(large)
        ask(large / 4)
    with pytest.raises(ValueError, match="also divided by the temperature and added up"):
        chain.log_partition([[1e9, 0.0]], temperature=1e-300)


@pytest.mark.parametrize("name", ["transition", "start", "stop"])
def test_bad_shared_scores_are_named(name):
    shape = (2, 2) if name == "transition" else 2
    with pytest.raises(ValueError, match=f"{name} must be finite"):
        Chain(2).argmax(Scores(np.zeros((3, 2)), **{name: np.full(shape, np.nan)}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"node": [1.0, 2.0]}, "node must have 2 dimensions. Got shape \\(2,\\)"),
        ({"node": [["a", "b"]]}, "node must be an array of numbers"),
        ({"node": np.zeros((3, 2)), "offsets": [0, 2]}, "offsets must run from 0 to the number of rows of node, 3"),
        ({"node": np.zeros((3, 2)), "offsets": [0, 2, 1, 3]}, "offsets must not decrease"),
        ({"node": np.zeros((3, 2)), "offsets": [0.0, 3.0]}, "offsets must be a 1-d array of integers"),
        ({"node": np.zeros((3, 5))}, "node must have 2 columns"),
        ({"node": np.zeros((3, 2)), "transition": np.zeros((3, 3))}, "transition must have shape \\(2, 2\\)"),
        ({"node": np.zeros((3, 2)), "start": np.zeros(3)}, "start must have shape \\(2,\\)"),
        ({"node": np.zeros((3, 2)), "stop": np.zeros((2, 2))}, "stop must have 1 dimension"),
    ],
)
def test_bad_scores(arguments, message):
    with pytest.raises(ValueError, match=message):
        Chain(2).argmax(Scores(**arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_labels": 0}, "The 'n_labels' parameter of Chain must be an int in \\[1, inf\\). Got 0 instead."),
        ({"n_labels": True}, "'n_labels'"),
        ({"n_labels": 2, "order": 0}, "The 'order' parameter of Chain"),
        ({"n_labels": 2, "order": 1.5}, "The 'order' parameter of Chain"),
        ({"n_labels": 2, "allowed": np.ones((3, 3), bool)}, "'allowed' parameter of Chain must have shape \\(2, 2\\)"),
        ({"n_labels": 2, "allowed": [[0, 2]]}, "must hold labels in \\[0, 2\\)"),
        ({"n_labels": 2, "allowed": [[0.5, 1.0]]}, "boolean table or integer rows of 2 labels"),
        ({"n_labels": 2, "allowed_start": [1, 0]}, "'allowed_start' parameter of Chain must be a boolean array"),
        ({"n_labels": 1000, "order": 3}, "more than 50000000. List those that occur"),
    ],
)
def test_bad_chains(arguments, message):
    with pytest.raises(ValueError, match=message):
        Chain(**arguments)


def test_bad_questions():
    chain, scores = Chain(2), Scores(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="'temperature' parameter of log_partition must be a float in \\[0, inf\\)"):
        chain.log_partition(scores, temperature=-1)
    with pytest.raises(ValueError, match="'cliques' parameter of marginals"):
        chain.marginals(scores, cliques="all")
    with pytest.raises(ValueError, match="'k' parameter of k_best"):
        chain.k_best(scores, 0)
    with pytest.raises(ValueError, match="'n_samples' parameter of sample"):
        chain.sample(scores, -1)
    with pytest.raises(ValueError, match="cost must have the shape of the node scores"):
        chain.argmax(scores, cost=np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"labels must lie in \[0, 2\). Got labels\[1\] = 2 instead."):
        chain.score(scores, [0, 2, 0])
    with pytest.raises(ValueError, match="labels must be integer codes of shape"):
        chain.score(scores, [0, 1])


def test_chains_compare_pickle_and_print():
    chain = Chain.from_labels([0, 1, 0, 2], n_labels=3, order=2, allowed_start=np.array([True, True, False]))
    chain.argmax(Scores(np.zeros((3, 3))))
    copy = pickle.loads(pickle.dumps(chain))
    assert copy == chain
    assert hash(copy) == hash(chain)
    assert copy != Chain(3, 2)
    assert chain != "chain"
    assert repr(chain) == "Chain(n_labels=3, order=2, 5 of its windows allowed)"
    scores = Scores(np.random.default_rng(0).standard_normal((4, 3)))
    np.testing.assert_array_equal(copy.argmax(scores), chain.argmax(scores))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory of the process as Linux counts it")
def test_memory_of_marginals_is_linear_in_the_longest_examples():
    """Beyond the result: two rows of states for each node of the four longest examples. Shown on 200,000 nodes."""
    n_labels, n_examples, length = 50, 2000, 100
    chain = Chain(n_labels)
    scores = Scores(np.zeros((n_examples * length, n_labels)), np.arange(0, n_examples * length + 1, length))
    chain.marginals(Scores(np.zeros((length, n_labels))))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = chain.marginals(scores)
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert grown < result.node.nbytes + 16e6
