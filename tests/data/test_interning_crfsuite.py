"""Attributes as python-crfsuite reads them: its own reading of the same items is the reference."""

import itertools
import os
from collections import Counter, OrderedDict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.interning import chunking_items, read_conll
from dualfield.data import Batch, Vocabulary

pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite, the reference of these tests, is not installed")

DATA = os.environ.get("DUALFIELD_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="DUALFIELD_DATA does not name the folder with conll2000_train.txt.gz")

# CRFsuite's strings end at a zero byte; ours do not, which test_batch.py covers.
TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=5)
NUMBER = st.floats(-1e9, 1e9) | st.integers(-(2**60), 2**60) | st.booleans()
SCALAR = TEXT | TEXT.map(str.encode) | NUMBER | NUMBER.map(np.float64)
STRINGS = st.lists(TEXT, max_size=3) | st.sets(TEXT, max_size=3)
VALUE = st.recursive(SCALAR | STRINGS, lambda inner: st.dictionaries(TEXT, inner, max_size=3), max_leaves=6)
DICT = st.dictionaries(TEXT | TEXT.map(str.encode), VALUE, max_size=5)
ITEM = STRINGS | STRINGS.map(tuple) | STRINGS.map(frozenset) | DICT


def read(sequence):
    """Each item as the list of its (attribute, weight) pairs, in the order of the row."""
    batch = Batch.build([sequence])
    strings = list(batch.vocabulary)
    values = np.ones(batch.indices.size) if batch.values is None else batch.values
    pairs = list(zip((strings[column] for column in batch.indices), values.tolist(), strict=True))
    return [pairs[start:stop] for start, stop in itertools.pairwise(batch.indptr.tolist())]


def last_of_each(sequence):
    """What ItemSequence.items() shows of them: of a repeated attribute only the last."""
    return [dict(pairs) for pairs in read(sequence)]


@given(st.lists(ITEM, max_size=4))
def test_reads_what_crfsuite_reads(sequence):
    expected = pycrfsuite.ItemSequence(sequence).items()
    ours = last_of_each(sequence)
    assert [sorted(item) for item in ours] == [sorted(item) for item in expected]
    for mine, theirs, item in zip(ours, expected, sequence, strict=True):
        if not repeats(item):
            assert mine == theirs


def repeats(item):
    """Whether an attribute arises twice, as 'a:b' in {"a:b": 2, "a": "b"}: order then decides what is shown."""
    attributes = [attribute for attribute, _ in read([item])[0]]
    return len(attributes) != len(set(attributes))


@pytest.mark.parametrize(
    "item",
    [
        {"w": "dog", "len": 3.0, "cap": True, "no": False},
        {"n": {"a": 1, "b": "x", "c": {"d": "e", "f": 2.5}}},
        {"n": ["a", "b"], "m": {"c", "d"}},
        {"": "x", "y": "", "z": {"": ""}},
        {"a:b": "c", "a": "b"},
        {"n": {}, "m": [], "k": set()},
        {"w": np.float32(3.5), "i": np.int64(3), "b": np.True_, "s": np.str_("abc"), "zero": np.array(2.0)},
        {"d": Decimal("1.5"), "f": Fraction(1, 2)},
        OrderedDict(a=1, b="x"),
        Counter("abca"),
        ["é", "日本", "🙂", b"bytes"],
        [],
        {},
    ],
    ids=itertools.count(),  # not repr: the order inside a set differs from process to process
)
def test_forms_of_items(item):
    assert last_of_each([item]) == pycrfsuite.ItemSequence([item]).items()


@pytest.mark.parametrize("item", [{"w": None}, {"w": [1]}, {"w": [["x"]]}, {1: 2}, [1], 5, {"w": 1j}], ids=repr)
def test_what_crfsuite_refuses_is_refused(item):
    with pytest.raises(SystemError):
        pycrfsuite.ItemSequence([item])
    with pytest.raises(TypeError, match=r"^X\[0\]\[1\] "):
        Batch.build([[["a"], item]])


@pytest.fixture(scope="module")
def corpus():
    """A slice of CoNLL-2000 with the features of the chunking task."""
    sentences = read_conll(Path(DATA) / "conll2000_train.txt.gz")[:400]
    return [chunking_items(sentence) for sentence in sentences]


@needs_data
def test_real_sequences_are_read_as_crfsuite_reads_them(corpus):
    batch = Batch.build(corpus)
    strings = list(batch.vocabulary)
    rows = [[strings[column] for column in row] for row in np.split(batch.indices, batch.indptr[1:-1])]
    assert batch.split(np.array(rows, dtype=object))[7].tolist() == corpus[7]
    expected = [item for sequence in corpus for item in pycrfsuite.ItemSequence(sequence).items()]
    assert [dict.fromkeys(row, 1.0) for row in rows] == expected
    assert batch.vocabulary == Vocabulary.from_attributes(itertools.chain.from_iterable(rows))


@needs_data
def test_real_sequences_as_dicts_have_the_same_columns(corpus):
    dicts = [[dict(text.split("=", 1) for text in item if "=" in text) for item in sequence] for sequence in corpus]
    lists = [[[f"{key}:{value}" for key, value in item.items()] for item in sequence] for sequence in dicts]
    ours, reference = Batch.build(dicts), Batch.build(lists)
    assert ours.vocabulary == reference.vocabulary
    np.testing.assert_array_equal(ours.indices, reference.indices)
    np.testing.assert_array_equal(ours.indptr, reference.indptr)
