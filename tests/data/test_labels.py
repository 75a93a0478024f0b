"""Labels: coded, decoded to the type that came in, or refused by place."""

import enum
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualfield.data.labels import Labels, distinct_integers, integer_places

KINDS = (st.text(st.characters(exclude_characters="\0"), max_size=4), st.integers(-(2**63), 2**63 - 1), st.booleans())


def nested(kinds=KINDS):
    return st.one_of([st.lists(st.lists(kind, max_size=6), max_size=6) for kind in kinds]).filter(any)


def flattened(y):
    return list(itertools.chain.from_iterable(y))


def offsets_of(y):
    return np.cumsum([0, *map(len, y)])


@given(nested())
def test_lists_come_back_as_they_went_in(y):
    labels = Labels.fit(y)
    offsets = offsets_of(y)
    codes = labels.encode(y, offsets)
    assert codes.dtype == np.int32
    assert labels.classes.tolist() == sorted(set(flattened(y)))
    decoded = labels.decode(codes, offsets)
    assert decoded == y
    assert [[type(label) for label in row] for row in decoded] == [[type(label) for label in row] for row in y]
    assert labels.decode(codes) == flattened(y)


@given(nested())
def test_arrays_come_back_as_arrays(y):
    kind = type(next(label for row in y for label in row))
    arrays = [np.array(row, dtype=kind) for row in y]
    labels = Labels.fit(arrays)
    decoded = labels.decode(labels.encode(arrays, offsets_of(y)), offsets_of(y))
    assert all(isinstance(row, np.ndarray) for row in decoded)
    assert [row.tolist() for row in decoded] == y
    assert labels.classes.tolist() == Labels.fit(y).classes.tolist()


@given(nested())
def test_flat_and_nested_input_have_the_same_codes(y):
    labels, offsets, flat = Labels.fit(y), offsets_of(y), flattened(y)
    assert labels.encode(flat, offsets).tolist() == labels.encode(y, offsets).tolist()
    assert Labels.fit(flat, offsets).classes.tolist() == labels.classes.tolist()


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        ([[np.str_("b"), "a"]], ["a", "b"]),
        ([[np.int8(3), 1, np.uint64(2)]], [1, 2, 3]),
        ([[np.True_, False]], [False, True]),
        (np.array([[1, 2], [2, 3]]), [1, 2, 3]),
        (np.array([2, 1]), [1, 2]),
        ([("a", "b"), ["a"]], ["a", "b"]),
        (np.array([["x"], ["x", "y"]], dtype=object), ["x", "y"]),
        ((row for row in [["a"], ["b"]]), ["a", "b"]),
        ([["only"]], ["only"]),
    ],
)
def test_accepted_forms(y, classes):
    labels = Labels.fit(y)
    assert labels.classes.tolist() == classes
    assert len(labels) == labels.n_classes == len(classes)
    assert type(labels.classes.tolist()[0]) is type(classes[0])


def test_a_data_frame_column_is_opened():
    class Series:
        def to_numpy(self):
            return np.array([1, 2, 1])

    assert Labels.fit(Series()).encode(Series(), [0, 1, 3]).tolist() == [0, 1, 0]


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["a"], ["b", 1]], r"^y\[1\]\[1\] must be of type str, as other labels are\. Got int instead\.$"),
        ([[1, True]], r"^y\[0\]\[1\] must be of type int, as other labels are\. Got bool instead\.$"),
        ([[True], [np.int64(1)]], r"^y\[1\]\[0\] must be of type bool, .* Got int64 instead\.$"),
        ([[None]], r"^y\[0\]\[0\] must be a str, an int or a bool\. Got NoneType instead\.$"),
        ([["a", None]], r"^y\[0\]\[1\] must be of type str, as other labels are\. Got NoneType instead\.$"),
        ([[1.0]], r"^y\[0\]\[0\] must be a str, an int or a bool\. Got float instead\.$"),
        ([np.array([1.0])], r"^y\[0\]\[0\] must be a str, an int or a bool\. Got float instead\.$"),
        ([[b"a"]], "Got bytes instead"),
        ([[["a"]]], "Got list instead"),
        ([[Colour.RED]], "Got Colour instead"),
        ([["a"], "b"], r"^y\[1\] must be a list or array of labels, as other examples are\. Got str instead\.$"),
        ("abc", r"^y must have a list of labels per example\. Got str instead\.$"),
        (None, r"Got NoneType instead"),
    ],
)
def test_wrong_types_are_refused_by_place(y, message):
    with pytest.raises(TypeError, match=message):
        Labels.fit(y)


def test_the_kind_must_be_that_of_training():
    with pytest.raises(TypeError, match=r"^z\[0\]\[0\] must be of type bool, as other labels are\. Got int instead"):
        Labels.fit([[True]]).encode([[1]], name="z")


def test_labels_of_no_example_are_refused():
    for y in ([], [[], []], np.zeros((0,), int)):
        with pytest.raises(ValueError, match=r"^y must have at least one label\. Got none\.$"):
            Labels.fit(y)


def test_integers_beyond_64_bits_are_refused():
    with pytest.raises(ValueError, match="must fit in 64 bits"):
        Labels.fit([[2**63]])


def test_strings_that_numpy_cannot_hold_are_refused():
    assert Labels.fit([["a\0b"]]).decode(np.array([0])) == ["a\0b"]
    with pytest.raises(ValueError, match=r"^y\[0\]\[1\] must not end in a zero character"):
        Labels.fit([["a", "a\0"]])


def test_unseen_label_is_named_with_place_and_known_ones():
    labels = Labels.fit([list(range(30))])
    message = r"^y\[2\]\[1\] is 77, a label not seen in training: the 30 known are 0, 1, .*, 9, \.\.\.\.$"
    with pytest.raises(ValueError, match=message):
        labels.encode([[1], [], [2, 77, 78]])
    with pytest.raises(ValueError, match=r"^y\[1\]\[1\] is 'c', .* the 2 known are 'a', 'b'\.$"):
        Labels.fit(["a", "b"]).encode(["a", "b", "c"], [0, 1, 3])
    with pytest.raises(ValueError, match=r"^y\[1\] is 'c'"):
        Labels.fit(["a", "b"]).encode(["a", "c"])


def test_sizes_must_match_those_of_the_examples():
    y = [["a"], ["b"], ["a"] * 5]
    with pytest.raises(ValueError, match=r"^y\[2\] has 5 labels; X\[2\] has 4 nodes\.$"):
        Labels.fit(y, [0, 1, 2, 6])
    with pytest.raises(ValueError, match=r"^y has 3 examples; X has 2\.$"):
        Labels.fit(y, [0, 1, 2])
    with pytest.raises(ValueError, match=r"or 4 labels in a row, one per node\. Got 3 in a row instead\.$"):
        Labels.fit(["a", "b", "a"], [0, 2, 4])
    with pytest.raises(ValueError, match=r"^y\[0\] has 1 labels; X\[0\] has 0 nodes\.$"):
        Labels.fit([["a"]]).encode([["a"]], [0, 0])


def test_decoding_checks_its_codes():
    labels = Labels.fit(["a", "b"])
    for codes in ([0, 2], [-1]):
        with pytest.raises(ValueError, match=r"'codes' must be in \[0, 2\)"):
            labels.decode(np.array(codes))
    with pytest.raises(ValueError, match=r"must have 3 entries, one per node\. Got 1 instead"):
        labels.decode(np.array([0]), [0, 3])
    assert labels.decode(np.zeros(0, int), [0, 0]) == [[]]


def test_repr():
    assert repr(Labels.fit([[1, 2]])) == "<Labels of 2 classes: 1, 2>"


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
@pytest.mark.parametrize("spread", [3, 100, 10**15])
def test_integers_by_table_and_by_bisection(dtype, spread):
    """Small types, whose differences overflow, and ranges too wide for a table."""
    limits = np.iinfo(dtype)
    low, high = max(limits.min, -spread), min(limits.max, spread)
    values = np.random.default_rng(0).integers(low, high, 500, dtype=np.int64).astype(dtype)
    values[:2] = low, high
    distinct, counts = distinct_integers(values)
    expected, times = np.unique(values, return_counts=True)
    np.testing.assert_array_equal(distinct, expected)
    np.testing.assert_array_equal(counts, times)
    asked = np.array([low, high, low - 1, high + 1, 10**18, -(10**18)])
    places = integer_places(distinct, asked)
    np.testing.assert_array_equal(places, [0, len(distinct) - 1, -1, -1, -1, -1])
    labels = Labels.fit(values)
    np.testing.assert_array_equal(labels.decode(labels.encode(values)), values)
