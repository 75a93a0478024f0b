"""Batch: attributes in all their forms, what is refused, and parts of a batch."""

import gc
import itertools
import sys
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualfield.data import Batch, Vocabulary

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)
WEIGHT = st.floats(-1e6, 1e6) | st.integers(-9, 9) | st.booleans()


def rows_of(batch):
    """Each node as a dict {column: weight}, straight from the definition of the arrays."""
    values = np.ones(batch.indices.size) if batch.values is None else batch.values
    rows = []
    for start, stop in itertools.pairwise(batch.indptr.tolist()):
        row = {}
        for column, value in zip(batch.indices[start:stop].tolist(), values[start:stop].tolist(), strict=True):
            row[column] = row.get(column, 0.0) + value
        rows.append(row)
    return rows


def attributes_of(batch):
    """The examples as lists of dicts {attribute: weight}."""
    rows = [{batch.vocabulary.attribute(column): w for column, w in row.items()} for row in rows_of(batch)]
    return [rows[start:stop] for start, stop in itertools.pairwise(batch.offsets.tolist())]


ITEM = st.dictionaries(TEXT, WEIGHT, max_size=4)


@given(st.lists(st.lists(ITEM, max_size=4), max_size=4))
def test_weights_come_back_as_they_went_in(X):
    batch = Batch.build(X)
    expected = [[{key: float(weight) for key, weight in item.items()} for item in sequence] for sequence in X]
    assert attributes_of(batch) == expected
    assert (batch.values is None) == all(w == 1.0 for sequence in expected for item in sequence for w in item.values())
    flat, lengths = list(itertools.chain.from_iterable(X)), [len(sequence) for sequence in X]
    assert attributes_of(Batch.build(flat, lengths=lengths)) == expected
    lazy = Batch.build(iter(sequence) for sequence in X)
    assert attributes_of(lazy) == expected
    assert lazy.vocabulary == batch.vocabulary


@given(st.lists(st.lists(st.lists(TEXT, max_size=5), max_size=4), max_size=4), st.randoms())
def test_lists_tuples_and_sets_of_strings(X, random):
    batch = Batch.build(X)
    assert batch.values is None
    assert list(batch.vocabulary) == list(dict.fromkeys(text for sequence in X for item in sequence for text in item))
    for sequence, rows in zip(X, attributes_of(batch), strict=True):
        for item, row in zip(sequence, rows, strict=True):
            assert row == {text: float(item.count(text)) for text in item}
    shuffled = [[random.sample(item, len(item)) for item in sequence] for sequence in X]
    assert attributes_of(Batch.build(shuffled)) == attributes_of(batch)
    tuples = tuple(tuple(tuple(item) for item in sequence) for sequence in X)
    np.testing.assert_array_equal(Batch.build(tuples).indices, batch.indices)
    sets = Batch.build([[set(item) for item in sequence] for sequence in X])
    once = Batch.build([[sorted(set(item), key=str.encode) for item in sequence] for sequence in X])
    assert sets.vocabulary == once.vocabulary
    np.testing.assert_array_equal(sets.indices, once.indices)


@given(st.lists(st.lists(st.lists(TEXT, max_size=5), max_size=4), max_size=4), st.lists(TEXT))
def test_a_given_vocabulary_leaves_out_what_it_does_not_hold(X, known):
    vocabulary = Vocabulary.from_attributes(known)
    batch = Batch.build(X, vocabulary=vocabulary)
    strings = [text for sequence in X for item in sequence for text in item]
    assert batch.vocabulary is vocabulary
    assert list(vocabulary) == list(dict.fromkeys(known))
    assert batch.n_unknown == sum(text not in set(known) for text in strings)
    assert batch.indices.tolist() == [vocabulary.column(text) for text in strings if text in set(known)]
    assert batch.lengths.tolist() == [len(sequence) for sequence in X]


def test_left_out_attributes_take_their_weights_along():
    batch = Batch.build([[{"a": 2, "b": 3}, {"b": 4}, {"c": 5, "a": 6}]], vocabulary=Vocabulary.from_attributes(["a"]))
    assert (batch.indptr.tolist(), batch.values.tolist(), batch.n_unknown) == ([0, 1, 1, 2], [2, 6], 3)


def test_every_kind_of_value():
    item = {
        "w": "dog",
        "bytes": b"dog",
        "len": 3.0,
        "cap": True,
        "no": False,
        "i": 7,
        "np": np.float32(0.5),
        "npi": np.int64(4),
        "npb": np.True_,
        "nps": np.str_("x"),
        "list": ["a", b"b", "a"],
        "tuple": ("c",),
        "set": {"e", "d"},
        "nested": {"s": "t", "n": {"w": 2, "l": ["u"]}},
        b"key": 5,
        "none": [],
    }
    (row,) = attributes_of(Batch.build([[item]]))[0]
    assert row == {
        "w:dog": 1, "bytes:dog": 1, "len": 3, "cap": 1, "no": 0, "i": 7, "np": 0.5, "npi": 4, "npb": 1, "nps:x": 1,
        "list:a": 2, "list:b": 1, "tuple:c": 1, "set:d": 1, "set:e": 1,
        "nested:s:t": 1, "nested:n:w": 2, "nested:n:l:u": 1, "key": 5,
    }  # fmt: skip


def test_items_of_different_forms_in_one_sequence():
    X = [[["a"], {"b": np.float32(2)}, {"c"}, ("d",), {"e": 1}, {"f": "g"}, [], {}, {"h": {"i"}}]]
    assert attributes_of(Batch.build(X))[0] == [
        {"a": 1}, {"b": 2}, {"c": 1}, {"d": 1}, {"e": 1}, {"f:g": 1}, {}, {}, {"h:i": 1},
    ]  # fmt: skip


def test_empty_input():
    for X in ([], [[]], [[], []], iter([])):
        batch = Batch.build(X)
        assert (batch.n_nodes, batch.n_columns, batch.is_sparse) == (0, 0, True)
    assert Batch.build([[[], []], [[]]]).lengths.tolist() == [2, 1]
    assert Batch.build([[]], vocabulary=Vocabulary.from_attributes(["a", "b"])).n_columns == 2


def test_arrays_of_strings():
    X = np.array([[["a", "b"], ["c", "d"]]])
    assert attributes_of(Batch.build(X))[0] == [{"a": 1, "b": 1}, {"c": 1, "d": 1}]
    assert Batch.build([X[0], X[0][:1]]).lengths.tolist() == [2, 1]
    objects = np.empty(2, dtype=object)
    objects[:] = [[["a"]], [["b"], ["c"]]]
    assert Batch.build(objects).lengths.tolist() == [1, 2]


def test_generators_are_read_one_sequence_at_a_time():
    alive = []

    class Sequence(list):
        pass

    def sequences():
        for i in range(50):
            sequence = Sequence([[f"w={i}"]])
            alive.append(weakref.ref(sequence))
            yield sequence
            del sequence
            gc.collect()
            assert sum(ref() is not None for ref in alive) <= 2

    assert Batch.build(sequences()).n_examples == 50


class Nasty:
    """A number that does something to the data while it is read."""

    def __init__(self, deed):
        self.deed = deed

    def __float__(self):
        self.deed()
        return 1.5


def test_data_that_changes_while_it_is_read():
    sequence = [["a" * 50 + str(i) for i in range(9)] for _ in range(9)]
    item = {f"before{i}" * 9: 1.0 for i in range(9)}
    item["nasty"] = Nasty(lambda: (item.clear(), sequence.clear(), gc.collect()))
    item.update({f"after{i}" * 9: "x" * 99 for i in range(9)})
    inner = {"one": {"n": Nasty(lambda: (inner.clear(), inner.update({str(i): i for i in range(99)})))}, "two": "t"}
    sequence += [item, ["b" * 70], inner, ["c" * 70]]
    row = attributes_of(Batch.build([sequence]))[0]
    assert len(row) == 13
    assert row[9] == {
        **{f"before{i}" * 9: 1 for i in range(9)},
        "nasty": 1.5,
        **{f"after{i}" * 9 + ":" + "x" * 99: 1 for i in range(9)},
    }
    assert row[10:] == [{"b" * 70: 1}, {"one:n": 1.5, "two:t": 1}, {"c" * 70: 1}]


def test_an_error_of_the_data_itself_passes_through():
    def fail():
        raise RuntimeError("from within")

    with pytest.raises(RuntimeError, match=r"^from within$"):
        Batch.build([[{"a": Nasty(fail)}]])

    def sequences():
        yield [["a"]]
        raise RuntimeError("from the generator")

    with pytest.raises(RuntimeError, match=r"^from the generator$"):
        Batch.build(sequences())


def test_reading_keeps_no_reference():
    text, weight = "a long attribute " * 3, float("1234.5")
    X = [
        [
            [text],
            (text,),
            {text},
            {text: weight},
            {"k": text},
            {"k": {text}},
            {text: {text: [text]}},
            {text: np.float32(1)},
        ]
    ]
    before = [sys.getrefcount(o) for o in (text, weight, X[0], *X[0])]
    for _ in range(3):
        Batch.build(X)
        with pytest.raises(TypeError):
            Batch.build([*X, [{text: weight, "k": None}]])
        with pytest.raises(ValueError, match="finite"):
            Batch.build([*X, [{text: {text: np.float32("nan")}}]])
    assert [sys.getrefcount(o) for o in (text, weight, X[0], *X[0])] == before


def deep(levels):
    item = {"leaf": 1}
    for _ in range(levels):
        item = {"k": item}
    return item


def itself():
    item = {}
    item["k"] = item
    return item


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (["a", "b"], TypeError, r"^X\[0\] must be a list of items, .* Got str instead: is a level of lists missing\? "),
        (
            [["a"], ["b"]],
            TypeError,
            r"^X\[0\]\[0\] must be a dict, or a list, tuple or set .* Got str instead: an item",
        ),
        ([{"a": 1}], TypeError, r"^X\[0\] must be a list of items, .* Got dict instead: .* passed as \[sequence\]\.$"),
        ([[["a"]], 5], TypeError, r"^X\[1\] must be a list of items, .* Got int instead\.$"),
        (
            [[["a"]]] * 3 + [[["a"]] * 7 + [7]],
            TypeError,
            r"^X\[3\]\[7\] must be a dict, or a list, tuple or set of attribute strings\. Got int instead\.$",
        ),
        ([[["a"]], [["b", 1]]], TypeError, r"^X\[1\]\[0\] has an attribute of type int; expected str\.$"),
        ([[{"s", 1}]], TypeError, r"^X\[0\]\[0\] has an attribute of type int; expected str\.$"),
        ([[["a"], ["b"]], np.ones((2, 2))], TypeError, r"^X\[1\]\[0\] must be a dict, .* Got numpy.ndarray instead\.$"),
        ([[{"a": 1}, {1: 2}]], TypeError, r"^X\[0\]\[1\] has a key of type int; expected str\.$"),
        ([[{"w": None}]], TypeError, r"^X\[0\]\[0\] has a value of type NoneType for attribute 'w'; expected a str,"),
        ([[{"w": {"v": 1j}}]], TypeError, r"^X\[0\]\[0\] has a value of type complex for attribute 'w:v'"),
        ([[{"w": [1, 2]}]], TypeError, r"^X\[0\]\[0\] has an attribute of type int; expected str\.$"),
        ([[{"w": [["x"]]}]], TypeError, r"^X\[0\]\[0\] has an attribute of type list; expected str\.$"),
        (
            [[["a"], {"len": float("nan")}]],
            ValueError,
            r"^X\[0\]\[1\] has weight nan for attribute 'len'; expected",
        ),
        ([[{"n": {"x": -np.inf}}]], ValueError, r"^X\[0\]\[0\] has weight -inf for attribute 'n:x'; expected a finite"),
        ([[{"n": np.float32("inf")}]], ValueError, r"^X\[0\]\[0\] has weight inf for attribute 'n'"),
        ([[{"é" * 50: np.nan}]], ValueError, r"^X\[0\]\[0\] has weight nan for attribute '(é){30}\.\.\.'; expected"),
        ([[{"big": 10**400}]], ValueError, r"^X\[0\]\[0\] has a weight of attribute 'big' too large for a float\.$"),
        ([[["a", "\ud800"]]], ValueError, r"^X\[0\]\[0\] has an attribute with a lone surrogate"),
        ([[{"k": b"\xff"}]], ValueError, r"^X\[0\]\[0\] has a value whose bytes are not valid UTF-8\.$"),
        ([[deep(65)]], ValueError, r"^X\[0\]\[0\] nests dicts more than 64 deep\.$"),
        ([[itself()]], ValueError, r"^X\[0\]\[0\] nests dicts more than 64 deep\.$"),
    ],
)
def test_wrong_attributes_are_refused_by_place(X, error, message):
    with pytest.raises(error, match=message):
        Batch.build(X)


def test_places_in_a_flat_list_of_items():
    with pytest.raises(TypeError, match=r"^X\[1\] must be a dict, .* Got int instead\.$"):
        Batch.build([["a"], 1], lengths=[2])
    with pytest.raises(ValueError, match=r"^'lengths' must sum to the number of rows of X, 2\. Got 3 instead\.$"):
        Batch.build([["a"], ["b"]], lengths=[3])
    with pytest.raises(TypeError, match=r"^X must be numbers in 4 columns\. Got attributes instead\.$"):
        Batch.build([[["a"]]], n_columns=4)


def test_the_deepest_allowed_nesting():
    assert attributes_of(Batch.build([[deep(64)]]))[0] == [{"k:" * 64 + "leaf": 1}]


# The batch itself


@given(st.lists(st.lists(ITEM, max_size=4), max_size=5), st.data())
def test_parts_of_a_batch(X, data):
    batch = Batch.build(X)
    whole = attributes_of(batch)
    assert len(batch) == len(X)
    for i in range(-len(X), len(X)):
        assert attributes_of(batch[i]) == [whole[i]]
    cut = data.draw(st.slices(len(X)))
    assert attributes_of(batch[cut]) == whole[cut]
    chosen = data.draw(st.lists(st.integers(0, max(len(X) - 1, 0)), max_size=6 if X else 0))
    assert attributes_of(batch[np.array(chosen, dtype=int)]) == [whole[i] for i in chosen]
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(X), max_size=len(X))), dtype=bool)
    assert attributes_of(batch[mask]) == list(itertools.compress(whole, mask))
    with pytest.raises(IndexError):
        batch[len(X)]


def test_split_checks_its_rows():
    with pytest.raises(ValueError, match=r"'rows' must have 2 rows, one per node\. Got 3 instead"):
        Batch.build([[["a"], ["b"]]]).split(np.zeros(3))


def test_a_batch_passes_through_build():
    batch = Batch.build([[["a"]]])
    assert Batch.build(batch) is batch
    assert Batch.build(batch, vocabulary=batch.vocabulary.copy(), n_columns=1) is batch
    with pytest.raises(ValueError, match="another vocabulary"):
        Batch.build(batch, vocabulary=Vocabulary())
    with pytest.raises(ValueError, match="X has 1 columns; expected 2"):
        Batch.build(batch, n_columns=2)
    with pytest.raises(ValueError, match="'lengths' must be None"):
        Batch.build(batch, lengths=[1])


OFFSETS = np.array([0, 2])
GOOD = {"indptr": np.array([0, 1, 2]), "indices": np.array([0, 1], np.int32)}


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ({}, ValueError, "either 'dense', or 'indptr' and 'indices'"),
        ({"dense": np.ones((2, 2)), **GOOD}, ValueError, "either 'dense'"),
        ({"indptr": GOOD["indptr"]}, ValueError, "either 'dense'"),
        ({"dense": np.ones((3, 2))}, ValueError, r"'dense' of Batch must have shape \(2, 2\). Got \(3, 2\) instead"),
        (
            {"dense": np.ones((2, 2), int)},
            TypeError,
            "'dense' of Batch must be an array of float64 or float32",
        ),
        ({"dense": np.ones((2, 2)).T[::-1]}, ValueError, "'dense' of Batch must be C-contiguous"),
        ({"dense": [[1.0]]}, TypeError, "Got list instead"),
        ({**GOOD, "indices": np.array([0, 2], np.int32)}, ValueError, r"'indices' of Batch must be in \[0, 2\)"),
        ({**GOOD, "indices": np.array([0, 1])}, TypeError, "'indices' of Batch must be an array of int32"),
        ({**GOOD, "indptr": np.array([0, 2, 1])}, ValueError, "'indptr' of Batch must start with 0 and not decrease"),
        ({**GOOD, "values": np.ones(3)}, ValueError, r"'values' of Batch must have shape \(2,\)"),
    ],
)
def test_unsound_batches_are_refused(parts, error, message):
    with pytest.raises(error, match=message):
        Batch(OFFSETS, 2, **parts)


def test_the_vocabulary_must_have_an_attribute_per_column():
    with pytest.raises(ValueError, match="'vocabulary' of Batch has 0 attributes for 2 columns"):
        Batch(OFFSETS, 2, **GOOD, vocabulary=Vocabulary())


@pytest.mark.parametrize("offsets", [np.array([1, 2]), np.array([0, 3, 2]), np.zeros(0, int), np.zeros((1, 1), int)])
def test_unsound_offsets_are_refused(offsets):
    with pytest.raises(ValueError, match="'offsets' of Batch must"):
        Batch(offsets, 2, dense=np.ones((2, 2)))
