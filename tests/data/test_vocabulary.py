"""Vocabulary: a two-way map, its buffers, and what it refuses."""

import copy
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualfield.data import Batch, Vocabulary

# Text that UTF-8 can express.
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


@given(st.lists(TEXT))
def test_is_a_two_way_map_in_order_of_first_appearance(strings):
    vocabulary = Vocabulary.from_attributes(strings)
    distinct = list(dict.fromkeys(strings))
    assert list(vocabulary) == distinct
    assert len(vocabulary) == len(distinct)
    assert [vocabulary.attribute(column) for column in range(len(distinct))] == distinct
    assert [vocabulary.column(text) for text in distinct] == list(range(len(distinct)))
    assert all(text in vocabulary for text in distinct)


@given(st.lists(TEXT), st.lists(TEXT))
def test_columns_of_many(known, asked):
    vocabulary = Vocabulary.from_attributes(known)
    places = {text: column for column, text in enumerate(dict.fromkeys(known))}
    columns = vocabulary.columns(asked)
    assert columns.dtype == np.int32
    assert columns.tolist() == [places.get(text, -1) for text in asked]
    assert [vocabulary.column(text) for text in asked] == [places.get(text) for text in asked]


@given(st.lists(TEXT))
def test_survives_pickle_copy_and_buffers(strings):
    vocabulary = Vocabulary.from_attributes(strings)
    assert vocabulary.arena().tobytes() == "".join(vocabulary).encode()
    for same in (
        pickle.loads(pickle.dumps(vocabulary)),
        copy.copy(vocabulary),
        copy.deepcopy(vocabulary),
        vocabulary.copy(),
        Vocabulary.from_buffers(vocabulary.arena(), vocabulary.offsets()),
    ):
        assert same == vocabulary
        assert hash(same) == hash(vocabulary)
        assert same.columns(vocabulary).tolist() == list(range(len(vocabulary)))


def test_equality():
    vocabulary = Vocabulary.from_attributes(["a", "b"])
    assert vocabulary != Vocabulary.from_attributes(["b", "a"])
    assert vocabulary != Vocabulary.from_attributes(["ab"])
    assert vocabulary != ["a", "b"]


def test_grows_past_many_doublings():
    strings = [f"w[{i % 5}]={i}" for i in range(100_000)]
    vocabulary = Vocabulary.from_attributes(strings)
    assert vocabulary.columns(strings).tolist() == list(range(len(strings)))
    assert list(vocabulary) == strings


def test_what_no_vocabulary_holds_is_unknown():
    vocabulary = Vocabulary.from_attributes(["a"])
    assert "\ud800" not in vocabulary
    assert vocabulary.column("\ud800") is None
    assert 1 not in vocabulary
    assert vocabulary.columns(["\ud800", "a"]).tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda v: v.columns(["a", 1]), TypeError, r"^attributes\[1\] must be a str\. Got int instead\.$"),
        (lambda v: v.columns("a"), TypeError, r"^'attributes' must be an iterable of str\. Got str instead\.$"),
        (lambda v: v.column(None), TypeError, r"must be a str\. Got NoneType instead"),
        (lambda v: v.attribute(2), IndexError, r"^'column' must be an int in \[0, 2\)\. Got 2 instead\.$"),
        (lambda v: v.attribute(-1), IndexError, r"Got -1 instead"),
        (lambda v: Vocabulary.from_attributes("ab"), TypeError, "Got str instead"),
        (lambda v: Vocabulary.from_attributes(["a", b"b"]), TypeError, r"attributes\[1\] must be a str\. Got bytes"),
        (lambda v: Vocabulary.from_attributes(["\ud800"]), ValueError, r"^attributes\[0\] has a lone surrogate\.$"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call(Vocabulary.from_attributes(["a", "b"]))


@pytest.mark.parametrize(
    ("arena", "offsets", "message"),
    [
        (b"abc", [], "offsets must start with 0"),
        (b"abc", [1, 3], "offsets must start with 0"),
        (b"abc", [0, 2, 1, 3], r"offsets\[2\] does"),
        (b"abc", [0, 2], "must end with the size of the arena, 3. Got 2 instead"),
        (b"abc", [0, 2**62], "must end with the size of the arena"),
        (b"abc", [0, 2**62, 3], r"offsets\[2\] does"),
        (b"aa", [0, 1, 2], "must be distinct; 1 repeats 0"),
        ("é".encode(), [0, 1, 2], "attribute 0 of the arena is not valid UTF-8"),
        (b"\xed\xa0\x80", [0, 3], "not valid UTF-8"),
    ],
)
def test_unsound_buffers_are_refused(arena, offsets, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary.from_buffers(np.frombuffer(arena, np.uint8), np.array(offsets, np.int64))


@pytest.mark.parametrize(
    ("arena", "offsets"),
    [(b"abc", np.array([0, 3])), (np.zeros(3), np.array([0, 3])), (np.zeros(3, np.uint8), np.array([0, 3], np.int32))],
)
def test_buffers_of_the_wrong_type_are_refused(arena, offsets):
    with pytest.raises(TypeError, match=r"must be a 1-d array of u?int"):
        Vocabulary.from_buffers(arena, offsets)


def test_buffers_need_not_be_contiguous_or_writable():
    arena = np.frombuffer(b"a.b.", np.uint8)[::2]
    assert list(Vocabulary.from_buffers(arena, np.arange(3))) == ["a", "b"]


def test_columns_of_sets_do_not_depend_on_the_salt_of_str_hashes():
    script = (
        "from dualfield.data.batch import Batch\n"
        "X = [[{'pear', 'fig', 'apple', 'éclair'}, frozenset('qwerty'), {'k': {'z', 'y', 'x'}}]]\n"
        "b = Batch.build(X)\n"
        "import sys; sys.stdout.write(repr((list(b.vocabulary), b.indices.tolist())))"
    )
    seen = {
        subprocess.run(
            [sys.executable, *(["-S"] if sys.flags.no_site else []), "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(seen) == 1
    vocabulary = Batch.build([[{"pear", "fig", "apple", "éclair"}]]).vocabulary
    assert list(vocabulary) == ["apple", "fig", "pear", "éclair"]
