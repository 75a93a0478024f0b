"""Records: what is written comes back, and every fault names the path of its entry."""

import numpy as np
import pytest
import scipy.sparse

from dualfield.data.records import FLOATS, Record, Source, matrix_record, packed

FIELDS = {
    "n": 3,
    "share": 0.5,
    "nan": float("nan"),
    "flag": True,
    "text": "a",
    "none": None,
    "items": [1, 2],
    "inner": {"n": 4, "numbers": np.array([[1.0, 2.0]])},
    "list": [{"n": 5}, {"n": 6}],
    "ints": np.arange(3),
    "wrong": np.array([1.0, np.inf]),
}


def test_entries_by_type():
    record = Record(FIELDS)
    assert (record.integer("n"), record.number("share"), record.flag("flag"), record.text("text")) == (
        3,
        0.5,
        True,
        "a",
    )
    assert np.isnan(record.number("nan"))
    assert record.items("items", int, 2) == [1, 2]
    assert [one.integer("n") for one in record.children("list")] == [5, 6]
    assert record.child("inner").array("numbers", FLOATS, (1, None), finite=True).tolist() == [[1.0, 2.0]]
    assert (record.has("none"), record.has("n")) == (False, True)
    assert record.shape("ints") == (3,)


FAULTS = {
    "missing": (lambda r: r.integer("x"), "its 'x' must be of type int. Got nothing"),
    "missing, optional": (lambda r: r.has("x"), "it has no entry 'x'"),
    "bool for int": (lambda r: r.integer("flag"), "its 'flag' must be of type int. Got True"),
    "int for float": (lambda r: r.number("n"), "its 'n' must be of type float. Got 3"),
    "low": (lambda r: r.integer("n", 4), "its 'n' must be in [4, inf]. Got 3"),
    "high": (lambda r: r.integer("n", 0, 2), "its 'n' must be in [0, 2]. Got 3"),
    "inner": (lambda r: r.child("inner").integer("n", 0, 2), "its 'inner.n' must be in [0, 2]. Got 4"),
    "in a list": (lambda r: r.children("list")[1].text("n"), "its 'list.1.n' must be of type str. Got 6"),
    "not finite": (lambda r: r.number("nan", finite=True), "its 'nan' must be finite"),
    "not above": (lambda r: r.number("share", above=0.5), "its 'share' must be in (0.5, inf). Got 0.5"),
    "choice": (lambda r: r.text("text", ("b", "c")), "its 'text' must be one of ['b', 'c']. Got 'a'"),
    "types in a list": (lambda r: r.items("items", str), "its 'items' must have entries of type str"),
    "size of a list": (lambda r: r.items("items", int, 3), "its 'items' must have 3 entries. Got 2"),
    "no array": (lambda r: r.array("n"), "it has no array 'n'"),
    "array for text": (lambda r: r.text("ints"), "its 'ints' must be of type str"),
    "type": (lambda r: r.array("ints", FLOATS), "array 'ints' must be of type float32 or float64. Got int64"),
    "shape": (lambda r: r.array("ints", None, (None, 3)), "array 'ints' must have shape (any, 3). Got (3,)"),
    "numbers": (lambda r: r.array("wrong", finite=True), "array 'wrong' must have finite numbers"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_name_the_entry(name):
    read, message = FAULTS[name]
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is looked at below
        read(Record(FIELDS))
    assert message in str(error.value)


def test_entries_that_nobody_reads():
    record = Record({"a": {"b": 1, "c": 2}})
    record.child("a").integer("b")
    with pytest.raises(ValueError, match=r"it has an entry 'a\.c', no part of such a model"):
        record.check_all_read()
    record.child("a").integer("c")
    record.check_all_read()


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array, scipy.sparse.csr_matrix])
def test_matrices(make):
    matrix = make(np.array([[0.0, 1.5], [2.5, 0.0]]))
    found = Record({"m": matrix_record(matrix)}).matrix("m", (None, 2), FLOATS, finite=True, ordered=True)
    assert type(found) is type(matrix)
    assert (found != matrix).sum() == 0
    with pytest.raises(ValueError, match="must have shape"):
        Record({"m": matrix_record(matrix)}).matrix("m", (None, 3))


def test_packed_text():
    words = ["a", "größe", "\ud800", "b" * 100_000]
    assert Record({"words": packed(words)}).unpacked("words") == words
    assert Record({"words": np.frombuffer(b"[", np.uint8)}).unpacked("words") is None


def test_what_is_mapped_is_checked_at_its_first_use():
    class Mapped(Source):
        is_mapped = True

    source = Mapped()
    values = Record({"wrong": FIELDS["wrong"]}, source).array("wrong", finite=True, check="later")
    assert len(values) == 2
    for _ in range(2):
        with pytest.raises(ValueError, match="array 'wrong' must have finite numbers"):
            source.finish()
