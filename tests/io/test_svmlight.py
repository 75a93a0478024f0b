"""svmlight files: what is read is what scikit-learn reads, and faults have a line."""

from __future__ import annotations

import gzip
import io
import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from dualfield.io import read_svmlight, write_svmlight

VALUES = st.floats(-1e6, 1e6, allow_nan=False, allow_subnormal=False)


@given(st.lists(st.tuples(st.integers(-3, 3), st.lists(VALUES, min_size=4, max_size=4)), min_size=1, max_size=8))
def test_against_scikit_learn(rows):
    y, X = np.array([label for label, _ in rows]), np.array([values for _, values in rows])
    theirs = io.BytesIO()
    dump_svmlight_file(X, y, theirs, zero_based=False)
    found, labels = read_svmlight(theirs.getvalue().decode().splitlines(), n_features=4)
    np.testing.assert_allclose(found.toarray(), X, rtol=1e-15)  # they write 16 digits
    np.testing.assert_array_equal(labels, y)
    ours = io.StringIO()
    write_svmlight(X, y, ours)
    again, their_labels = load_svmlight_file(io.BytesIO(ours.getvalue().encode()), n_features=4, zero_based=False)
    np.testing.assert_array_equal(again.toarray(), X)
    np.testing.assert_array_equal(their_labels, y)


def test_files_and_sparse_matrices(tmp_path):
    X = scipy.sparse.random_array((20, 50), density=0.1, rng=np.random.default_rng(0), format="csc")
    for name in ("x.svm", "x.svm.gz"):
        write_svmlight(X, ["a", "b"] * 10, tmp_path / name)
        found, labels = read_svmlight(tmp_path / name, n_features=50)
        assert abs(found - X).max() == 0
        assert labels.tolist() == ["a", "b"] * 10
    assert gzip.decompress((tmp_path / "x.svm.gz").read_bytes()) == (tmp_path / "x.svm").read_bytes()


def test_comments_blank_lines_and_labels():
    X, y = read_svmlight(["# all", "", "+1.0 1:2 # one", "  ", "-2 3:1e-2"])
    assert X.toarray().tolist() == [[2.0, 0.0, 0.0], [0.0, 0.0, 0.01]]
    assert y.tolist() == [1, -2]
    assert read_svmlight(["0.5 1:2", "1 1:1"])[1].tolist() == ["0.5", "1"]
    X, y = read_svmlight(["1:2", "2:1"])
    assert (X.shape, y) == ((2, 2), None)
    X, y = read_svmlight([])
    assert (X.shape, y) == ((0, 0), None)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["1 1:2", "1 x"], "line 2: must have entries such as 3:0.5"),
        (["1 1:2 1:3"], "line 1: indices must rise from 1. Got 1 after 1."),
        (["1 0:2"], "line 1: indices must rise from 1. Got 0 after 0."),
        (["1 -1:2"], "line 1: indices must rise from 1. Got -1 after 0."),
        (["1 1:nan"], "line 1: must have entries"),
        (["1 1:inf"], "line 1: must have entries"),
        (["1 1_0:2"], "line 1: must have entries"),
        (["1 qid:3 1:2"], "line 1: must have entries"),
        (["1 99999999999:2"], "line 1: indices must rise"),
        (["1 1:2", "", "1:2"], "line 3: must begin with a label"),
        (["1:2", "1 1:2"], "line 2: must have no label"),
    ],
    ids=["entry", "twice", "zero", "negative", "nan", "inf", "underscore", "qid", "huge", "no label", "label"],
)
def test_faults(lines, said):
    with pytest.raises(ValueError, match=said):
        read_svmlight(lines)


def test_too_many_features():
    with pytest.raises(ValueError, match=r"line 2: has the index 4; there are 3 features\."):
        read_svmlight(["1 3:1", "1 4:1"], n_features=3)


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        ([[1.0]], ["a b"], "cannot be written"),
        ([[1.0]], [""], "cannot be written"),
        ([[1.0]], ["a:b"], "cannot be written"),
        ([[np.nan]], ["a"], "finite"),
        ([[1.0]], ["a", "b"], "a label for each of the 1 rows"),
        ([1.0, 2.0], [1, 2], "X must have two dimensions"),
        ([[1.0]], [[1]], "a label for each of the 1 rows of X. Got shape"),
        ([[1.0], [2.0]], ["+1", "1"], r"label '\+1' cannot be written: it would be read as 1"),
        ([[1.0], [2.0]], ["1.0", "2"], "label '1.0' cannot be written: it would be read as 1"),
        ([[1.0], [2.0]], [0.5, 1.0], "label 0.5 cannot be written: it would be read as '0.5'"),
        ([[1.0], [2.0]], [2**60, 1], "cannot be written: it would be read as '"),
        ([[1.0]], [True], "label True cannot be written"),
        ([[1.0]], ["\ufeffa"], r"The first line begins with U\+FEFF"),
    ],
    ids=itertools.count(),
)
def test_what_cannot_be_written(X, y, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        write_svmlight(X, y, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "names", [["1_0", "10"], ["007", "7"], ["1", "nan"], ["inf", "1"], ["\u0661", "1"], ["0x1", "1"], ["00", "0"]]
)
def test_labels_that_look_like_numbers_are_kept_apart(names, tmp_path):
    assert read_svmlight([f"{name} 1:2" for name in names])[1].tolist() == names
    write_svmlight([[1.0], [2.0]], names, tmp_path / "x")
    assert read_svmlight(tmp_path / "x")[1].tolist() == names


@pytest.mark.parametrize("labels", [[1, -1], [0, 7], ["1", "2"], [2.0, 3.0], ["b", "1"], [2**53 - 1, 1 - 2**53]])
def test_labels_that_are_numbers(labels, tmp_path):
    write_svmlight([[1.0], [2.0]], labels, tmp_path / "x")
    found = read_svmlight(tmp_path / "x")[1].tolist()
    assert found == (labels if isinstance(labels[0], str) and "b" in labels else [int(label) for label in labels])
    assert read_svmlight(["+1 1:2", "-1.0 1:2", "2e0 1:1", "0. 1:1"])[1].tolist() == [1, -1, 2, 0]
