"""Dependency trees: what they are asked beyond the suites over all structures."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualfield import _native
from dualfield.data.parse_trees.heads import lift_heads, read_heads
from dualfield.structures import ArcShape, Dependency, Scores, head_probabilities
from tests.reference.parts import projective_trees

ARCS = ["", "arc"]


def rows_of(heads):
    """Labels of the arcs of a tree."""
    n = len(heads)
    return [int(heads[child] == head) for child in range(n) for head in range(n + 1) if head != child + 1]


def shape_of(*n_words):
    return ArcShape(np.concatenate([[0], np.cumsum(np.square(n_words))]).astype(np.int64))


def test_numbers_of_trees():
    """143 trees of five words have one child of the root; 273 have any number (Eisner and Satta count the same)."""
    counts = [len(list(projective_trees(n))) for n in range(1, 6)]
    assert counts == [1, 2, 7, 30, 143]
    for n, count in enumerate(counts, start=1):
        scores = np.zeros((n * n, 2))
        assert Dependency(ARCS).log_partition(scores)[0] == pytest.approx(math.log(count), abs=1e-12)
        several = len(list(projective_trees(n, single=False)))
        found = Dependency(ARCS, "any").log_partition(scores)[0]
        assert found == pytest.approx(math.log(several), abs=1e-12)
        assert n == 1 or found > math.log(count)


@pytest.fixture(params=_native.instruction_sets())
def instructions(request):
    before = _native.instruction_set()
    _native.use_instruction_set(request.param)
    yield request.param
    _native.use_instruction_set(before)


@pytest.mark.parametrize("root", ["single", "any"])
@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_all_trees_of_five_words(instructions, root, scale):
    rng = np.random.default_rng(0)
    structure, trees = Dependency(ARCS, root), list(projective_trees(5, root == "single"))
    for _ in range(5):
        scores = rng.normal(0, scale, (25, 2))
        scores[rng.random(scores.shape) < 0.1] = -np.inf
        labels = np.array([rows_of(heads) for heads in trees])
        totals = scores[np.arange(25), labels].sum(axis=1)
        if not np.isfinite(totals).any():
            assert not structure.is_possible(scores)[0]
            continue
        p = np.exp(totals - totals.max())
        answer = structure.marginals(scores)
        assert answer.log_partition[0] == pytest.approx(totals.max() + np.log(p.sum()), abs=1e-9 * scale)
        np.testing.assert_allclose(answer.node[:, 1], p @ labels / p.sum(), atol=1e-9)
        assert structure.log_partition(scores, temperature=0.0)[0] == pytest.approx(totals.max(), abs=1e-9 * scale)
        np.testing.assert_array_equal(structure.argmax(scores), labels[totals.argmax()])
        found = structure.k_best(scores, len(trees) + 1)
        ranked = np.sort(totals[np.isfinite(totals)])[::-1]
        np.testing.assert_allclose(found.scores[0, : len(ranked)], ranked, atol=1e-9 * scale)
        assert (found.scores[0, len(ranked) :] == -np.inf).all()


def test_sums_of_logarithms_take_over_where_products_underflow():
    """The best heads are a circle: the sum of trees is some thousand nats below the bound of products."""
    n = 12
    scores = np.zeros((n * n, 2))
    for child in range(n):
        scores[child * n : (child + 1) * n, 1] = -400.0
        near = child + 2 if child % 2 == 0 else child  # words 1 and 2 are heads of each other, as are 3 and 4, ...
        scores[child * n + (near if near <= child else near - 1), 1] = 400.0
    structure = Dependency(ARCS)
    best = structure.log_partition(scores, temperature=0.0)[0]
    answer = structure.marginals(scores)
    k = structure.k_best(scores, 2000).scores[0]
    assert answer.log_partition[0] >= best
    count = np.exp(answer.log_partition[0] - best)  # trees with the best score: the others are 800 below
    assert (k == best).sum() == min(2000, round(count))
    assert count == pytest.approx(round(count), rel=1e-9)
    np.testing.assert_allclose(head_probabilities(answer.node).sum(axis=1), 1.0)


def test_products_and_logarithms_give_the_same_answers():
    """Two words that would like to be heads of each other: by logarithms, and as a mixture of two sums of products."""
    rng = np.random.default_rng(0)
    n = 60
    scores = np.zeros((n * n, 2))
    scores[:, 1] = rng.normal(0, 2.0, n * n)
    first, second = 10 * n + 20, 20 * n + 11  # the arcs from word 21 to 11, and from 11 to 21
    structure = Dependency(ARCS)
    eager = scores.copy()
    eager[[first, second], 1] += 2000.0  # no tree has both
    parts = []
    for arc in (first, second):
        one = scores.copy()
        one[arc, 0] = -np.inf
        parts.append(structure.marginals(one))
    totals = np.array([part.log_partition[0] for part in parts])
    share = np.exp(totals - np.logaddexp(*totals))
    found = structure.marginals(eager)
    assert found.log_partition[0] == pytest.approx(2000.0 + np.logaddexp(*totals), rel=1e-12)
    np.testing.assert_allclose(found.node, share[0] * parts[0].node + share[1] * parts[1].node, atol=1e-10)
    heads = head_probabilities(found.node)
    assert heads[10, 21] + heads[20, 11] == pytest.approx(1.0)


def test_marginals_are_the_gradient():
    rng = np.random.default_rng(0)
    n = 40
    scores, step = np.zeros((n * n, 2)), np.zeros((n * n, 2))
    scores[:, 1], step[:, 1] = rng.normal(0, 2.0, n * n), 1e-5 * rng.normal(size=n * n)
    ahead, behind = (Dependency(ARCS).log_partition(scores + sign * step)[0] for sign in (1, -1))
    expected = 2.0 * Dependency(ARCS).marginals(scores).node[:, 1] @ step[:, 1]
    assert ahead - behind == pytest.approx(expected, rel=1e-6)


def test_required_and_forbidden_arcs():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(16, 3))
    structure = Dependency(["", "x", "y"])
    needed = scores.copy()
    needed[7, 0] = -np.inf  # the arc from 4 to 2
    needed[8, 1:] = -np.inf  # not from the root to 3
    found = structure.k_best(needed, 50).labels
    found = found[(found >= 0).all(axis=1)]
    assert (found[:, 7] > 0).all()
    assert (found[:, 8] == 0).all()
    node = structure.marginals(needed).node
    assert np.isfinite(node).all()
    assert node[7, 0] == 0.0
    assert node[8, 0] == pytest.approx(1.0)
    needed[4, 0] = -np.inf  # two heads for word 2
    assert not structure.is_possible(needed)[0]
    with pytest.raises(ValueError, match="has no allowed labelling"):
        structure.argmax(needed)


def test_bad_numbers_are_refused():
    for bad in (np.nan, np.inf):
        scores = np.zeros((4, 2))
        scores[1, 1] = bad
        with pytest.raises(ValueError, match=r"NaN|inf|finite"):
            Dependency(ARCS).argmax(scores)


@pytest.mark.parametrize(
    ("heads", "reason"),
    [
        ([2, 3, 2], "word 1 has no head|above itself"),
        ([0, 0], "word 1 and word 2 are both below the root, which has one child"),
        ([2, 1], "is above itself: heads make a cycle"),
        ([3, 4, 0, 3], "the arcs 3 to 1 and 4 to 2 cross"),
    ],
)
def test_why_heads_are_no_tree(heads, reason):
    with pytest.raises(ValueError, match=reason):
        shape_of(len(heads)).read_labels([heads])


def test_labellings_that_are_no_trees_score_nothing():
    structure, scores = Dependency(ARCS), np.ones((9, 2))
    every = {tuple(rows_of(heads)) for heads in projective_trees(3)}
    for labels in itertools.product(range(2), repeat=9):
        assert (structure.score(scores, labels)[0] > -np.inf) == (labels in every)


def test_ties_go_to_the_first_child_of_the_root():
    scores = Scores(np.zeros((9, 2)), shape=shape_of(3))
    shape, best = shape_of(3), Dependency(ARCS).argmax(scores)
    labels = shape.read_labels([[0, 1, 1]]).labels
    assert shape.decode(labels, best)[0][0] == 0
    np.testing.assert_array_equal(Dependency(ARCS).k_best(scores, 1).labels[0], best)


def test_heads_in_every_form():
    shape = shape_of(3, 0, 1)
    read = shape.read_labels([[2, 0, 2], [], [0]])
    assert read.labels.classes.tolist() == ARCS
    assert shape.decode(read.labels, read.codes) == [[2, 0, 2], [], [0]]
    arrays = shape.read_labels([np.array([2, 0, 2]), np.zeros(0, dtype=int), np.array([0])])
    assert [one.tolist() for one in shape.decode(arrays.labels, arrays.codes)] == [[2, 0, 2], [], [0]]
    y = [[(2, "subj"), (0, "root"), (2, "obj")], [], [(0, "root")]]
    read = shape.read_labels(y)
    assert read.labels.classes.tolist() == ["", "obj", "root", "subj"]
    assert shape.decode(read.labels, read.codes) == y
    assert read.allowed is None


def test_heads_that_are_not_known():
    shape = shape_of(3)
    read = shape.read_labels([[(2, "a"), None, (2, None)]], shape.read_labels([[(2, "a"), (0, "b"), (2, "a")]]).labels)
    allowed = read.allowed.reshape(3, 3, 3)
    assert allowed[0].tolist() == [[True, False, False], [False, True, False], [True, False, False]]
    assert allowed[1].all()
    assert allowed[2].tolist() == [[True, False, False], [True, False, False], [False, True, True]]
    some = shape.read_labels([[{0, 3}, 0, 2]]).allowed.reshape(3, 3, 2)
    assert some[0].tolist() == [[True, True], [True, False], [True, True]]
    label = shape.read_labels([[(None, "a"), (0, "b"), (2, "a")]]).allowed.reshape(3, 3, 3)
    assert label[0].tolist() == [[True, True, False]] * 3
    assert shape.read_labels([None], shape.read_labels([[2, 0, 2]]).labels).allowed.all()


def test_crossing_trees_are_counted_skipped_or_lifted():
    good, bad = [2, 0, 2, 3], [3, 4, 0, 3]
    shape = shape_of(4, 4, 4)
    with pytest.raises(ValueError, match=r"2 of 3 trees are not projective, the first is y\[1\]: the arcs 3 to 1 and"):
        shape.read_labels([good, bad, bad])
    skipping = ArcShape(shape.offsets, non_projective="skip").read_training([good, bad, good])
    assert skipping.left_out.tolist() == [False, True, False]
    lifting = ArcShape(shape.offsets, non_projective="lift")
    read = lifting.read_training([good, bad, good])
    assert read.left_out is None
    assert lifting.decode(read.labels, read.codes)[1] == [3, 3, 0, 3]
    with pytest.raises(ValueError, match="1 of 3 trees is not projective"):
        lifting.read_labels([good, bad, good])  # of which the score is asked, say


@settings(max_examples=300)
@given(st.integers(1, 8).flatmap(lambda n: st.lists(st.integers(0, n), min_size=n, max_size=n)))
def test_lifted_trees_are_projective(heads):
    n = len(heads)
    up = [0, *(0 if head == word else head for word, head in enumerate(heads, 1))]
    for word in range(1, n + 1):  # break circles
        seen, at = set(), word
        while at and at not in seen:
            seen.add(at)
            at = up[at]
        if at:
            up[at] = 0
    lifted = lift_heads(up[1:])
    assert tuple(lifted) in set(projective_trees(n, single=False)) if n < 6 else True
    shape = ArcShape(np.array([0, n * n]), is_single=False)
    assert shape.decode(shape.read_labels([lifted]).labels, shape.read_labels([lifted]).codes) == [lifted]
    if up[1:].count(0) == 1:
        assert lifted.count(0) == 1


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0, 1]], r"y\[0\] must have 3 heads, one for each word. Got 2"),
        ([[0, 1, 4]], r"y\[0\]\[2\] must be a head in \[0, 3\]. Got 4"),
        ([[0, 2, 1]], r"y\[0\]\[1\] must be another word or 0. Got 2"),
        ([[0, -1, None]], r"y\[0\]\[1\] must be a head in \[0, 3\]. Got -1"),
        ([[0, -1, 1]], r"y\[0\]\[1\] must be a head in \[0, 3\]. Got -1"),
        ([np.array([-1, 0, 1])], r"y\[0\]\[0\] must be a head in \[0, 3\]. Got -1"),
        ([[0, "a", 1]], r"y\[0\]\[1\] must be a head, an int or None, or a pair \(head, label\). Got 'a'"),
        ([[0, (1, ""), 1]], r"y\[0\]\[1\] has an empty label"),
        ([[0, set(), 1]], r"y\[0\]\[1\] must be a set of heads in \[0, 3\]"),
        ([np.zeros(3)], r"y\[0\] must be an array of integers"),
        ([], "y must have the heads of 1 sentences. Got 0"),
    ],
)
def test_heads_that_are_none(y, message):
    with pytest.raises(ValueError, match=message):
        read_heads(y, [3])


def test_refused_settings():
    with pytest.raises(
        ValueError, match=r"'root' parameter of Dependency must be one of \['single', 'any'\]. Got 'two'"
    ):
        Dependency(root="two")
    with pytest.raises(ValueError, match="'non_projective' parameter of Dependency must be one of"):
        Dependency(non_projective="drop")
    with pytest.raises(ValueError, match="distinct labels, the empty one first"):
        Dependency(["arc", ""])
    with pytest.raises(
        ValueError, match=r"'arc_features' parameter of Dependency must be texts with macros %x\[head\]"
    ):
        Dependency(arc_features=["%x[first]"])
    with pytest.raises(ValueError, match="Example 0 must have n \\* n rows, one for each arc"):
        Dependency(ARCS).argmax(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="must have shape"):
        head_probabilities(np.zeros((3, 2)))


@pytest.mark.parametrize("n_labels", [2, 5])
def test_many_sentences_at_once(n_labels):
    rng = np.random.default_rng(1)
    sizes = [7, 1, 0, 12, 3, 25]
    shape, structure = shape_of(*sizes), Dependency(["", *"abcd"[: n_labels - 1]])
    node = rng.normal(size=(shape.n_nodes, n_labels))
    together = structure.marginals(Scores(node, shape=shape), n_jobs=3)
    for i in range(len(sizes)):
        rows = slice(*shape.offsets[i : i + 2])
        alone = structure.marginals(Scores(node[rows], shape=shape.take(np.array([i]))))
        np.testing.assert_array_equal(alone.node, together.node[rows])
        assert alone.log_partition[0] == together.log_partition[i]
