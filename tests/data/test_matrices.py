"""Batch from numbers: all forms give the same rows, and what is wrong is refused by place."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dualfield.data import Batch, Vocabulary

LENGTHS = st.lists(st.integers(0, 4), max_size=5)


@st.composite
def matrices(draw, dtype=np.float64):
    lengths, width = draw(LENGTHS), draw(st.integers(1, 4))
    elements = st.floats(-10, 10, width=32)
    return [draw(hnp.arrays(dtype, (length, width), elements=elements)) for length in lengths]


@given(matrices(), st.sampled_from([np.float64, np.float32, np.int16, bool]))
def test_all_dense_forms_agree(examples, dtype):
    examples = [example.astype(dtype) for example in examples]
    width = examples[0].shape[1] if examples else 3
    lengths = [len(example) for example in examples]
    whole = np.concatenate(examples) if examples else np.zeros((0, width), dtype)
    kept = np.float32 if dtype is np.float32 else np.float64
    for batch in (
        Batch.build(examples, n_columns=width),
        Batch.build((example for example in examples), n_columns=width),
        Batch.build(whole, lengths=lengths),
        Batch.build(np.asfortranarray(whole), lengths=np.array(lengths, np.int32), n_columns=width),
    ):
        assert not batch.is_sparse
        assert batch.dense.dtype == (kept if lengths and sum(lengths) else batch.dense.dtype)
        assert batch.dense.flags.c_contiguous
        np.testing.assert_array_equal(batch.dense, whole.astype(np.float64))
        assert batch.lengths.tolist() == lengths
        assert (batch.n_examples, batch.n_nodes, batch.n_columns) == (len(lengths), sum(lengths), width)
        np.testing.assert_array_equal(batch.to_csr().toarray(), batch.dense)


@given(matrices(), st.sampled_from(["csr", "csc", "coo", "lil"]), st.sampled_from([np.int32, np.int64]))
def test_all_sparse_forms_agree(examples, form, index):
    width = examples[0].shape[1] if examples else 3
    lengths = [len(example) for example in examples]
    whole = np.concatenate(examples) if examples else np.zeros((0, width))
    csr = scipy.sparse.csr_array(whole)
    csr.indices, csr.indptr = csr.indices.astype(index), csr.indptr.astype(index)
    batches = [Batch.build(csr, lengths=lengths), Batch.build(csr.asformat(form), lengths=lengths, n_columns=width)]
    if examples:
        batches.append(Batch.build([scipy.sparse.coo_array(example).asformat(form) for example in examples]))
    for batch in batches:
        assert batch.is_sparse
        assert (batch.indptr.dtype, batch.indices.dtype, batch.values.dtype) == (np.int64, np.int32, np.float64)
        np.testing.assert_array_equal(batch.to_csr().toarray(), whole)
        assert batch.lengths.tolist() == lengths


def test_an_equal_length_array_is_cut_into_its_examples():
    X = np.arange(24.0).reshape(2, 3, 4)
    batch = Batch.build(X)
    assert batch.lengths.tolist() == [3, 3]
    np.testing.assert_array_equal(batch.dense.reshape(X.shape), X)
    assert Batch.build(np.zeros((2, 0, 4))).lengths.tolist() == [0, 0]
    assert Batch.build(np.zeros((0, 3, 4))).n_examples == 0


def test_nested_lists_of_numbers_and_empty_examples():
    batch = Batch.build([[], [[1, 2], [3, 4]], np.empty((0, 2)), [[True, 0.5]]])
    assert batch.lengths.tolist() == [0, 2, 0, 1]
    np.testing.assert_array_equal(batch.dense, [[1, 2], [3, 4], [1, 0.5]])
    assert Batch.build([[1, 2], [3, 4]], lengths=[2]).dense.tolist() == [[1, 2], [3, 4]]
    assert Batch.build([], n_columns=3).dense.shape == (0, 3)
    assert Batch.build([[], []], n_columns=3).lengths.tolist() == [0, 0]


def test_objects_that_wrap_arrays_are_opened():
    class Frame:
        def __init__(self, values):
            self.values = values

        def to_numpy(self):
            return self.values

    assert Batch.build(Frame(np.ones((3, 2))), lengths=[1, 2]).n_columns == 2
    assert Batch.build([Frame(np.ones((3, 2))), Frame(np.ones((1, 2)))]).lengths.tolist() == [3, 1]
    mixed = Frame(np.array([[1, True], [np.float64(2.5), 3]], dtype=object))
    assert Batch.build(mixed, lengths=[2]).dense.tolist() == [[1, 1], [2.5, 3]]


def test_a_contiguous_matrix_is_not_copied():
    X = np.ones((4, 2))
    assert np.shares_memory(Batch.build(X, lengths=[4]).dense, X)
    csr = scipy.sparse.csr_array(X)
    assert np.shares_memory(Batch.build(csr, lengths=[4]).indices, csr.indices)


def test_unsorted_and_repeated_indices_are_kept_with_their_meaning():
    csr = scipy.sparse.csr_array((np.array([1.0, 2, 4]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    batch = Batch.build(csr, lengths=[1])
    assert batch.indices.tolist() == [2, 0, 2]
    assert batch.to_csr().toarray().tolist() == [[2, 0, 5]]
    assert batch.indices.tolist() == [2, 0, 2]


def broken_csr(**parts):
    csr = scipy.sparse.csr_array(np.eye(3))
    for name, value in parts.items():
        setattr(csr, name, np.array(value, dtype=getattr(csr, name).dtype))
    return csr


NAN = np.where(np.arange(20).reshape(5, 4) == 14, np.nan, 0.0)


@pytest.mark.parametrize(
    ("X", "options", "error", "message"),
    [
        (np.ones((5, 2)), {}, ValueError, r"^X is one matrix of 5 rows: 'lengths' must say"),
        (np.ones((5, 2)), {"lengths": [2, 2]}, ValueError, r"^'lengths' must sum to .* of X, 5\. Got 4 instead\.$"),
        (np.ones((5, 2)), {"lengths": [6, -1]}, ValueError, r"^lengths\[1\] must be an int in \[0, inf\)\. Got -1"),
        (
            np.ones((5, 2)),
            {"lengths": [2.5, 2.5]},
            TypeError,
            r"^'lengths' must be a 1-d array of int\. Got 1-d",
        ),
        (np.ones((5, 2)), {"lengths": 5}, TypeError, r"Got 0-d"),
        (
            np.ones((5, 2)),
            {"lengths": [5], "n_columns": 3},
            ValueError,
            r"^X has 2 columns; expected 3, as in",
        ),
        (
            np.ones((1, 5, 2)),
            {"lengths": [5]},
            ValueError,
            r"^X must be 2-d, as 'lengths' is given\.",
        ),
        (np.ones(5), {}, ValueError, r"^X must be 2-d, or 3-d without 'lengths'\. Got shape \(5,\) instead\."),
        (
            np.ones((5, 2), complex),
            {"lengths": [5]},
            TypeError,
            r"^X must be a matrix of real numbers\. Got complex",
        ),
        ([np.ones((2, 3)), np.ones((2, 4))], {}, ValueError, r"^X\[1\] has 4 columns; expected 3, as in X\[0\]\.$"),
        ([[], np.ones((2, 3)), np.ones((2, 4))], {}, ValueError, r"^X\[2\] has 4 columns; expected 3, as in X\[1\]\.$"),
        ([np.ones((2, 3))], {"n_columns": 4}, ValueError, r"^X\[0\] has 3 columns; expected 4, as in training\.$"),
        (
            [np.ones((2, 3)), np.ones(3)],
            {},
            ValueError,
            r"^X\[1\] must be 2-d, .* Got shape \(3,\) instead\.$",
        ),
        ([1.0, 2.0], {}, ValueError, r"^X\[0\] must be 2-d, .* Got shape \(\) instead\.$"),
        ([[1.0, 2.0]], {}, ValueError, r"^X\[0\] must be 2-d, .* Got shape \(2,\) instead\.$"),
        ([[[1.0, 2.0], [1.0]]], {}, ValueError, r"^X\[0\] must be a matrix of numbers with rows of equal length\.$"),
        ([np.ones((2, 3)), [["a"]]], {}, TypeError, r"^X\[1\] must be a matrix of real numbers\. Got <U1 instead\.$"),
        ([np.ones((2, 1)), [[None]]], {}, TypeError, r"^X\[1\] must be .* Got items of type NoneType instead\.$"),
        ([np.ones((2, 3)), [{"a": 1}]], {}, TypeError, r"^X\[1\] must be .* Got items of type dict instead\.$"),
        (
            [scipy.sparse.eye_array(3), np.ones((1, 3))],
            {},
            TypeError,
            r"^X\[1\] must be sparse, as other matrices",
        ),
        (
            [np.ones((1, 3)), scipy.sparse.eye_array(3)],
            {},
            TypeError,
            r"^X\[0\] must be sparse, as other matrices",
        ),
        (NAN, {"lengths": [2, 3]}, ValueError, r"^X\[1\]\[1\] has nan in column 2; expected a finite number\.$"),
        (np.where(NAN != NAN, -np.inf, NAN)[None], {}, ValueError, r"^X\[0\]\[3\] has -inf in column 2"),
        ([NAN[:3], NAN[3:]], {"name": "Z"}, ValueError, r"^Z\[1\]\[0\] has nan in column 2"),
        (scipy.sparse.csr_array(NAN), {"lengths": [0, 2, 0, 3]}, ValueError, r"^X\[3\]\[1\] has nan in column 2"),
        (scipy.sparse.csr_array(NAN), {}, ValueError, r"^X is one matrix of 5 rows"),
        (broken_csr(indices=[0, 7, 2]), {"lengths": [3]}, ValueError, r"^X is not a valid CSR .* in \[0, 3\)\.$"),
        (broken_csr(indices=[0, -1, 2]), {"lengths": [3]}, ValueError, r"^X is not a valid CSR .* in \[0, 3\)\.$"),
        ([broken_csr(), broken_csr(indices=[0, 7, 2])], {}, ValueError, r"^X\[1\] is not a valid CSR matrix"),
        (broken_csr(indptr=[0, 2, 1, 3]), {"lengths": [3]}, ValueError, r"^X is not a valid CSR .* indptr must rise"),
        (broken_csr(indptr=[0, 1, 2, 9]), {"lengths": [3]}, ValueError, r"^X is not a valid CSR .* indptr must rise"),
        (broken_csr(indptr=[1, 1, 2, 3]), {"lengths": [3]}, ValueError, r"^X is not a valid CSR .* indptr must rise"),
        (
            scipy.sparse.csr_array((1, 2**31), dtype=float),
            {"lengths": [1]},
            ValueError,
            r"^X has 2147483648 columns; at most 2147483647 are possible\.$",
        ),
        (None, {}, TypeError, r"^X must be a list of examples, or a matrix\. Got NoneType instead\.$"),
        ("text", {}, TypeError, r"^X must be a list of examples, or a matrix\. Got str instead\.$"),
        ({"a": 1}, {}, TypeError, r"Got dict instead\.$"),
    ],
)
def test_wrong_numbers_are_refused_by_place(X, options, error, message):
    with pytest.raises(error, match=message):
        Batch.build(X, **options)


def test_numbers_where_attributes_are_expected():
    with pytest.raises(TypeError, match=r"^X must have attributes, as 'vocabulary' is given\. Got numbers instead\.$"):
        Batch.build(np.ones((1, 2, 3)), vocabulary=Vocabulary())


def test_overallocated_csr_is_read_to_its_end():
    csr = broken_csr(indptr=[0, 1, 2, 2])
    assert Batch.build(csr, lengths=[3]).to_csr().toarray().tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 0]]


@given(matrices())
def test_parts_of_a_dense_batch(examples):
    batch = Batch.build(examples, n_columns=examples[0].shape[1] if examples else 2)
    for part, example in zip(batch.split(batch.dense), examples, strict=True):
        np.testing.assert_array_equal(part, example)
    for i, one in enumerate(batch):
        np.testing.assert_array_equal(one.dense, examples[i])
    backwards = batch[::-1]
    assert [part.tolist() for part in backwards.split(backwards.dense)] == [e.tolist() for e in examples[::-1]]
