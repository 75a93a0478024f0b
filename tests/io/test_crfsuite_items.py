"""CRFsuite's items: what is written is read back, and means the same to python-crfsuite."""

import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualfield.data import Batch
from dualfield.io import read_crfsuite_items, write_crfsuite_items

NAME = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\t\r\n\0\ufeff"), min_size=1, max_size=4)
LABEL = NAME.filter(lambda name: not name.startswith("@") and name.strip(" "))
WEIGHT = st.floats(allow_nan=False, allow_infinity=False)
LIST_ITEM = st.lists(NAME | st.sampled_from(["a:b", "\\", "\\:", ":", "a\\"]), max_size=3)
DICT_ITEM = st.dictionaries(NAME, WEIGHT, max_size=3)


def sequences(item):
    """X and y with the same lengths, and at least one attribute."""
    pairs = st.lists(st.lists(st.tuples(item, LABEL), min_size=1, max_size=3), min_size=1, max_size=3)
    return pairs.filter(lambda found: any(item for sequence in found for item, _ in sequence)).map(
        lambda found: (
            [[item for item, _ in sequence] for sequence in found],
            [[label for _, label in sequence] for sequence in found],
        )
    )


def written(X, y):
    target = io.StringIO()
    write_crfsuite_items(X, y, target)
    return target.getvalue()


def read(text):
    return read_crfsuite_items(io.BytesIO(text.encode()))


@given(sequences(LIST_ITEM))
def test_attributes_come_back(data):
    assert read(written(*data)) == data


@given(sequences(DICT_ITEM))
def test_weights_come_back(data):
    X, y = data
    ours, labels = read(written(X, y))
    assert labels == y
    if all(weight == 1.0 for sequence in X for item in sequence for weight in item.values()):
        X = [[list(item) for item in sequence] for sequence in X]
    assert ours == X


@given(sequences(LIST_ITEM | DICT_ITEM))
def test_python_crfsuite_sees_the_same_items(data):
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    X, y = data
    for before, after in zip(X, read(written(X, y))[0], strict=True):
        # A repeated attribute adds up in CRFsuite, but its own list of items shows only the last.
        once = [dict.fromkeys(item, 1.0) if isinstance(item, list) else item for item in before]
        repeated = any(len(item) != len(set(item)) for item in before)
        if not repeated:
            assert pycrfsuite.ItemSequence(after).items() == pycrfsuite.ItemSequence(once).items()


def test_all_forms_of_items_are_written_as_they_are_fitted():
    X = [[{"w": "dog", "cap": True, "no": False, "len": 3, "next": {"w": "ran"}, "s": ["g", "og"]}], [{"a"}, ("b",)]]
    y = [["x"], ["y", "z"]]
    text = written(X, y)
    assert text.splitlines()[0] == "x\tw\\:dog\tcap\tno:0.0\tlen:3.0\tnext\\:w\\:ran\ts\\:g\ts\\:og"
    again = Batch.build(read(text)[0])
    first = Batch.build(X)
    assert list(again.vocabulary) == list(first.vocabulary)
    assert (again.to_csr() != first.to_csr()).nnz == 0


def test_sequences_without_attributes():
    assert read("B\nI\n\nB\n") == ([[[], []], [[]]], [["B", "I"], ["B"]])
    assert written([[[], []], [[]]], [["B", "I"], ["B"]]) == "B\nI\n\nB\n\n"


@pytest.mark.parametrize(
    ("line", "item"),
    [
        ("B\ta\t\tb\t", ["a", "b"]),
        ("\tB\ta", ["a"]),
        ("B\ta\\:b\\\\", ["a:b\\"]),
        ("B\ta\\b\\", ["a\\b\\"]),
        ("B\ta\\\\:2", {"a\\": 2.0}),
        ("B\ta:2\ta:-.5\tb", {"a": 1.5, "b": 1.0}),
        ("B\ta:\tb", {"a": 1.0, "b": 1.0}),
        ("B\ta:1e-3", {"a": 0.001}),
        ("B\t:2", {"": 2.0}),
        ("B\ta b\t #", ["a b", " #"]),
        ("B\ta\ta", ["a", "a"]),
        ("B\ta\r", ["a"]),
    ],
    ids=itertools.count(),
)
def test_fields(line, item):
    assert read(line) == ([[item]], [["B"]])


def test_one_weight_makes_dicts_everywhere():
    X, _ = read("B\ta\n\nB\tb:2\n")
    assert X == [[{"a": 1.0}], [{"b": 2.0}]]


def test_sources(tmp_path):
    path = tmp_path / "items.txt.gz"
    X, y = [[["a", "b:c"]], [["d"]]], [["B"], ["I"]]
    write_crfsuite_items(X, y, path)
    assert path.read_bytes()[:2] == b"\x1f\x8b"
    assert read_crfsuite_items(path) == (X, y)
    assert read_crfsuite_items(["B\ta\tb\\:c", "", "", "I\td"]) == (X, y)
    assert read_crfsuite_items([]) == ([], [])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("B\tw:dog", r"lines, line 2: the weight of 'w' must be a finite number. Got 'dog' instead. A colon"),
        ("B\tw:1:2", r"lines, line 2: the weight of 'w' must be a finite number. Got '1:2'"),
        ("B\tw:nan", r"lines, line 2: the weight of 'w' must be a finite number"),
        ("B\tw:1_0", r"lines, line 2: the weight of 'w' must be a finite number"),
        ("B\tw:1e999", r"lines, line 2: the weight of 'w' must be a finite number"),
        ("B:1\tw", r"lines, line 2: the label 'B' must not have a weight. Got 1.0"),
        ("@weight:2", r"lines, line 2: '@weight' is a declaration, not a label"),
        ("\t\t", r"lines, line 2: has white space only"),
        ("  ", r"lines, line 2: has white space only"),
    ],
)
def test_lines_that_crfsuite_misreads_are_refused(line, message):
    with pytest.raises(ValueError, match=message):
        read_crfsuite_items(["B\ta", line])


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "items.txt"
    path.write_bytes(b"B\ta\n\nB\t\xff\n")
    with pytest.raises(ValueError, match=r"items\.txt, line 3: cannot be read as utf-8"):
        read_crfsuite_items(path)
    path.write_bytes(b"B\ta:b\n")
    with pytest.raises(ValueError, match=r"items\.txt, line 1: the weight of 'a'"):
        read_crfsuite_items(path)


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ([[["a"]]], [["B", "I"]], ValueError, r"y\[0\] has 2 labels; X\[0\] has 1 nodes"),
        ([[["a"]], []], [["B"], []], ValueError, r"X\[1\] must have at least one item"),
        ([[["a\tb"]]], [["B"]], ValueError, r"cannot have the attribute 'a\\tb': it must not contain tabs"),
        ([[[""]]], [["B"]], ValueError, r"cannot have the attribute '': it must not be empty"),
        ([[["a"]]], [["B\n"]], ValueError, r"cannot have the label 'B\\n'"),
        ([[["a"]]], [["@B"]], ValueError, r"The label '@B' cannot be written"),
        ([[["a"]]], [[" "]], ValueError, r"The label ' ' cannot be written"),
        ([[["a"]]], [[1]], TypeError, r"y must have labels of type str. Got int instead."),
        ([[[1.0]]], [["B"]], TypeError, r"X must have items given by attributes"),
    ],
    ids=itertools.count(),
)
def test_what_could_not_be_read_back_is_refused(tmp_path, X, y, error, message):
    path = tmp_path / "items.txt"
    with pytest.raises(error, match=message):
        write_crfsuite_items(X, y, path)
    assert list(tmp_path.iterdir()) == []
