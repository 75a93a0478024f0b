"""Attributes of rows with two anchors against the same in plain Python."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualfield.data import Batch, Vocabulary
from dualfield.data.anchored_rows import AnchoredRows, arc_anchors, segment_anchors
from dualfield.data.anchored_texts import ARC, SEGMENT, AnchoredTexts, read_row_features

WORDS = ["a", "b", "New", "Ü", "a/b", "", "a long word of more than sixteen bytes"]
MACROS = {
    SEGMENT: ["%x[first]", "%x[last]", "%x[first-1,1]", "%x[last+2]", "%x[all]", "%x[all,1]", "%n", "%b[1]", "/", "x "],
    ARC: ["%x[head]", "%x[child,1]", "%x[head-1,1]", "%x[child+1]", "%x[child-3]", "%n", "%d", "%b[0]", "|", ""],
}


def attributes(texts, names, tokens, one, two):
    """Return the attributes of a row, by substitution in the texts."""
    found, n = [], len(tokens)

    def value(match):
        anchor, offset, column = match[1], int(match[2] or 0), int(match[3] or 0)
        if anchor == "all":
            return " ".join(token[column] for token in tokens[one : two + 1])
        at = (one, two)[names.index(anchor)]
        if at < 0:
            return "_ROOT"
        at += offset
        return "_B" if at < 0 else "_E" if at >= n else tokens[at][column]

    def size():
        if names == SEGMENT:
            return str(two - one + 1)
        distance = abs(one - two)
        far = str(distance) if distance < 5 else "5-9" if distance < 10 else "10+"
        return "_ROOT" if one < 0 else ("R" if one < two else "L") + far

    def direction():
        return "_ROOT" if one < 0 else "R" if one < two else "L"

    for place, text in enumerate(texts):
        parts = re.split(r"(%x\[[^]]*\]|%n|%d|%b\[\d+\])", text)
        sets = [part for part in parts if part.startswith("%b")]
        between = list(dict.fromkeys(
            token[int(sets[0][3:-1])] for token in tokens[min(one, two) + 1 : max(one, two)]
        )) if sets else [None]  # fmt: skip
        for inside in between:
            made = "".join(
                inside if part.startswith("%b") else size() if part == "%n" else direction() if part == "%d"
                else re.sub(r"%x\[(\w+)([+-]\d+)?(?:,(\d+))?\]", value, part) if part.startswith("%x") else part
                for part in parts
            )  # fmt: skip
            found.append(f"{'S' if names == SEGMENT else 'A'}{place}:{made}")
    return found


@st.composite
def problems(draw):
    names = draw(st.sampled_from([SEGMENT, ARC]))
    text = st.lists(st.sampled_from(MACROS[names]), min_size=1, max_size=4).map("".join)
    texts = draw(st.lists(text.filter(lambda one: one.count("%b") < 2), min_size=1, max_size=5))
    token = st.tuples(st.sampled_from(WORDS), st.sampled_from(["N", "V", "D"]))
    sentences = draw(st.lists(st.lists(token, max_size=13), max_size=4))
    lengths = [len(one) for one in sentences]
    anchors, offsets = segment_anchors(lengths, draw(st.sampled_from([None, 1, 3]))) if names == SEGMENT else (
        arc_anchors(lengths))  # fmt: skip
    wanted = [
        attributes(texts, names, sentence, *anchors[row].tolist())
        for i, sentence in enumerate(sentences)
        for row in range(offsets[i], offsets[i + 1])
    ]
    return AnchoredRows(sentences, anchors, texts, offsets=offsets, names=names), wanted, offsets


def named(batch):
    strings = list(batch.vocabulary)
    return [[strings[j] for j in batch.indices[a:b]] for a, b in zip(batch.indptr, batch.indptr[1:], strict=False)]


@settings(max_examples=300)
@given(problems(), st.integers(0, 2**32 - 1))
def test_attributes_are_those_of_plain_python(problem, seed):
    rows, wanted, offsets = problem
    batch = rows.build()
    assert named(batch) == wanted
    assert list(batch.vocabulary) == list(dict.fromkeys(name for row in wanted for name in row))
    assert np.array_equal(batch.offsets, offsets)
    assert batch.n_unknown == 0

    rng = np.random.default_rng(seed)
    some = Vocabulary.from_attributes(["other", *(name for name in batch.vocabulary if rng.random() < 0.5)])
    found = rows.build(vocabulary=some)
    assert named(found) == [[name for name in row if name in some] for row in wanted]
    assert found.n_unknown == len(batch.indices) - len(found.indices)

    mask = rng.random(len(wanted)) < 0.3
    masked = rows.build(grow=mask)
    chosen = list(dict.fromkeys(name for row, is_in in zip(wanted, mask, strict=True) if is_in for name in row))
    assert list(masked.vocabulary) == chosen
    assert named(masked) == [[name for name in row if name in set(chosen)] for row in wanted]


def corpus(seed=0, n=300):
    rng = np.random.default_rng(seed)
    return [
        [(f"w{rng.zipf(1.5) % 997}", f"t{rng.integers(12)}") for _ in range(length)]
        for length in rng.integers(0, 60, size=n)
    ]


def test_threads_and_blocks_give_the_same_bits():
    sentences = corpus()
    anchors, offsets = arc_anchors([len(one) for one in sentences])
    texts = ["%x[head]/%x[child]", "%x[head,1]/%b[1]/%x[child,1]", "%x[child-1]", "%n", "%x[head+1,1]/%n"]
    rows = AnchoredRows(sentences, anchors, texts, offsets=offsets, names=ARC)
    mask = np.random.default_rng(1).random(rows.n_rows) < 0.05
    one = rows.build(grow=mask)
    for n_jobs in (2, 5):
        two = rows.build(grow=mask, n_jobs=n_jobs)
        assert list(two.vocabulary) == list(one.vocabulary)
        assert np.array_equal(two.indices, one.indices)
        assert np.array_equal(two.indptr, one.indptr)
        assert two.n_unknown == one.n_unknown > 0
    indptr, indices, _ = rows._native.read(
        vocabulary=one.vocabulary._native, grow=False, mask=None, n_threads=1, block=100
    )
    assert np.array_equal(indices, one.indices)
    assert np.array_equal(indptr, one.indptr)
    everything = rows.build()
    grown = Vocabulary()
    indptr, indices, _ = rows._native.read(vocabulary=grown._native, grow=True, mask=None, n_threads=1, block=100)
    assert np.array_equal(indices, everything.indices)
    assert list(grown) == list(everything.vocabulary)


def test_rows_of_arcs_and_spans():
    """In the order that structures with candidates have."""
    anchors, offsets = segment_anchors([3, 0, 2])
    assert offsets.tolist() == [0, 6, 6, 9]
    for at, n in ((0, 3), (6, 2)):
        for i in range(n):
            for j in range(i + 1, n + 1):
                assert anchors[at + i * n - i * (i - 1) // 2 + j - i - 1].tolist() == [i, j - 1]
    anchors, offsets = arc_anchors([3, 0, 2])
    assert offsets.tolist() == [0, 9, 9, 13]
    for at, n in ((0, 3), (9, 2)):
        for child in range(n):
            for head in range(n + 1):
                if head != child + 1:
                    row = at + child * n + (head if head <= child else head - 1)
                    assert anchors[row].tolist() == [head - 1, child]


def test_functions_of_rows():
    sentences = [["a", "b"], ["c"]]
    anchors, offsets = segment_anchors([2, 1])
    rows = AnchoredRows(sentences, anchors, lambda x, start, stop: [f"l={stop - start}", x[start]], offsets=offsets)
    assert named(rows.build()) == [["l=1", "a"], ["l=2", "a"], ["l=1", "b"], ["l=1", "c"]]
    masked = rows.build(grow=np.array([True, False, False, False]))
    assert named(masked) == [["l=1", "a"], ["a"], ["l=1"], ["l=1"]]
    anchors, offsets = arc_anchors([2, 1])
    arcs = AnchoredRows(sentences, anchors, lambda x, head, child: [float(head), 1.0], offsets=offsets, names=ARC)
    assert arcs.build().dense[:, 0].tolist() == [-1.0, 1.0, -1.0, 0.0, -1.0]
    with pytest.raises(ValueError, match="2 columns; expected 3"):
        arcs.build(n_columns=3)
    assert isinstance(arcs.build(grow=np.ones(5, dtype=bool)), Batch)


def test_anchors_of_each_sentence_in_a_list():
    rows = AnchoredRows([["a", "b"], ["c"]], [[(0, 1)], []], ["%x[all]"])
    assert named(rows.build()) == [["S0:a b"]]
    assert rows.offsets.tolist() == [0, 1, 1]


def test_tokens_may_be_anything_where_no_column_is_read():
    rows = AnchoredRows([[{"x": 1}, 3.0]], [[(0, 1)]], ["%n"])
    assert named(rows.build()) == [["S0:2"]]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("%x[head]", SEGMENT), ("%x[first]", ARC), ("%x[all]", ARC), ("%x[all+1]", SEGMENT), ("100%", SEGMENT),
        ("%x[first+]", SEGMENT), ("%x[first,]", SEGMENT), ("%x[first", SEGMENT), ("%x[first+12345]", SEGMENT),
        ("%b", SEGMENT), ("%b[x]", ARC), ("%y[first]", SEGMENT), (7, SEGMENT), ("%%n", ARC), ("%d", SEGMENT),
        ("%x[first,١]", SEGMENT),
    ],
)  # fmt: skip
def test_macros_that_are_none(text, names):
    with pytest.raises(ValueError, match=rf"parts must be texts with macros %x\[{names[0]}\].* and %b\[column\]") as e:
        AnchoredTexts((text,), names, "parts")
    assert repr(text) in str(e.value)


def test_refused_input():
    with pytest.raises(ValueError, match=r"at most one %b each\. Got '%b"):
        AnchoredTexts(("%b[0]%b[1]",))
    with pytest.raises(ValueError, match="lone surrogate"):
        AnchoredTexts(("\ud800",))
    with pytest.raises(ValueError, match=r"spice must be a function of \(sequence, head, child\), or a list of texts"):
        read_row_features(3, ARC, "spice")
    with pytest.raises(ValueError, match=r"a list of texts. Got \[\] instead"):
        read_row_features([])
    with pytest.raises(ValueError, match=r"anchors\[1\]\[0\] must be two of the 1 tokens .* Got \(0, 1\)"):
        AnchoredRows([["a"], ["b"]], [[(0, 0)], [(0, 1)]], ["%n"])
    with pytest.raises(ValueError, match=r"the first not behind the last. Got \(1, 0\)"):
        AnchoredRows([["a", "b"]], [[(1, 0)]], ["%n"])
    with pytest.raises(ValueError, match=r"Got \(-1, 0\)"):
        AnchoredRows([["a", "b"]], [[(-1, 0)]], ["%n"])
    with pytest.raises(ValueError, match=r"or -1 for the root and one token. Got \(0, -1\)"):
        AnchoredRows([["a", "b"]], [[(0, -1)]], ["%n"], names=ARC)
    with pytest.raises(ValueError, match="anchors for 1 sentences of 2"):
        AnchoredRows([["a"], ["b"]], [[(0, 0)]], ["%n"])
    with pytest.raises(ValueError, match=r"X\[0\]\[1\] has 1 column; expected 2, as in X\[0\]\[0\]"):
        AnchoredRows([[("a", "b"), "c"]], [[(0, 0)]], ["%x[first]"])
    with pytest.raises(ValueError, match="has 1 column; features reads 3"):
        AnchoredRows([["a"]], [[(0, 0)]], ["%x[first,2]"])
    with pytest.raises(TypeError, match=r"X\[0\]\[0\] has int in column 0; expected str"):
        AnchoredRows([[(3,)]], [[(0, 0)]], ["%x[first]"])
    rows = AnchoredRows([["a"]], [[(0, 0)]], ["%n"])
    with pytest.raises(ValueError, match=r"grow must be a bool, or a bool array of shape \(1,\)"):
        rows.build(grow=np.ones(2, dtype=bool))
    with pytest.raises(ValueError, match="the training data had 3 columns of numbers"):
        rows.build(n_columns=3)
    with pytest.raises(ValueError, match="Got None"):
        AnchoredRows([["a"]], [[(0, 0)]], None)
