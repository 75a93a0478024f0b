"""Named data sets from a folder: what is read, and how each kind of absence is told."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse

from dualfield.datasets import load_benchmark_data
from dualfield.datasets.benchmark_data import DATA_VARIABLE, benchmark_file


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "plain.npz", X=rng.integers(0, 9, (6, 3)).astype(np.uint8), y=np.array(list("aabbcc")))
    np.savez(
        tmp_path / "divided.npz",
        X=rng.normal(size=(5, 2)).astype(np.float32),
        y=np.array([-1, 1, 1, -1, 1], dtype=np.int8),
        train_idx=np.array([0, 3, 4], dtype=np.int32),
        test_idx=np.array([1, 2], dtype=np.int32),
        feature_names=np.array(["u", "v"]),
    )
    sparse = csr_array(np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0], [1, 1, 1]], dtype=np.uint8))
    np.savez(
        tmp_path / "sparse.npz",
        data=sparse.data,
        indices=sparse.indices.astype(np.uint8),
        indptr=sparse.indptr,
        shape=np.array(sparse.shape),
        y=np.array([1, -1, 1, -1]),
        idx_small=np.array([0, 3], dtype=np.int32),
    )
    return tmp_path


def test_examples_become_floats_and_labels_keep_their_type(folder):
    data = load_benchmark_data("plain", folder)
    assert data.name == "plain"
    assert data.X.dtype == np.float64
    assert data.X.shape == (6, 3)
    assert data.y.tolist() == list("aabbcc")
    assert data.train is None
    assert data.test is None
    assert data.subsets == {}


def test_the_split_is_read(folder):
    data = load_benchmark_data("divided", folder)
    assert data.train.tolist() == [0, 3, 4]
    assert data.test.tolist() == [1, 2]
    assert data.train.dtype == np.int64
    assert data.subsets == {}


def test_sparse_parts_and_subsets(folder):
    data = load_benchmark_data("sparse", folder)
    assert issparse(data.X)
    assert data.X.toarray().tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [1, 1, 1]]
    assert data.X.dtype == np.float64
    assert {name: rows.tolist() for name, rows in data.subsets.items()} == {"small": [0, 3]}


def test_the_environment_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv(DATA_VARIABLE, str(folder))
    assert load_benchmark_data("plain").X.shape == (6, 3)
    assert benchmark_file("plain") == folder / "plain.npz"


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_folder_the_message_names_the_variable(value, monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(DATA_VARIABLE, value)
    with pytest.raises(FileNotFoundError, match="set the environment variable DUALFIELD_DATA"):
        load_benchmark_data("plain")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere', does not exist"):
        load_benchmark_data("plain", tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotFoundError, match=r"file', is not a folder"):
        load_benchmark_data("plain", tmp_path / "file")


def test_a_missing_data_set_is_named_with_those_that_are_there(folder, tmp_path_factory):
    with pytest.raises(FileNotFoundError, match=r"no data set 'bananas' .* It has divided, plain, sparse\."):
        load_benchmark_data("bananas", folder)
    with pytest.raises(FileNotFoundError, match=r"It has no \.npz file at all\."):
        load_benchmark_data("bananas", tmp_path_factory.mktemp("empty"))


@pytest.mark.parametrize("name", ["", "../plain", "plain.npz", "a b", None, 3])
def test_a_name_is_a_plain_name(folder, name):
    with pytest.raises(ValueError, match=r"The 'name' parameter of load_benchmark_data must be a str of letters"):
        load_benchmark_data(name, folder)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.eye(2)}, r"must hold the arrays y and X.* It holds X\."),
        ({"y": np.arange(2), "data": np.ones(1), "indices": np.zeros(1, int)}, r"It holds data, indices, y\."),
        ({"X": np.eye(2), "y": np.arange(3)}, r"shapes \(2, 2\) and \(3,\)"),
        ({"X": np.ones(2), "y": np.arange(2)}, r"shapes \(2,\) and \(2,\)"),
        ({"X": np.eye(2), "y": np.arange(2), "train_idx": np.array([2])}, "train_idx .* rows between 0 and 1"),
        ({"X": np.eye(2), "y": np.arange(2), "test_idx": np.array([-1])}, "test_idx .* rows between 0 and 1"),
        ({"X": np.eye(2), "y": np.arange(2), "idx_a": np.array([0.5])}, "idx_a .* rows between 0 and 1"),
    ],
)
def test_a_file_that_holds_no_data_set(tmp_path, arrays, message):
    np.savez(tmp_path / "odd.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load_benchmark_data("odd", tmp_path)


def test_what_is_no_npz_file(tmp_path):
    (tmp_path / "text.npz").write_text("no arrays here")
    (tmp_path / "empty.npz").write_text("")
    np.savez(tmp_path / "objects.npz", X=np.eye(1), y=np.array([{}], dtype=object))
    with (tmp_path / "single.npz").open("wb") as file:
        np.save(file, np.eye(2))
    for name in ("text", "empty", "objects", "single"):
        with pytest.raises(ValueError, match=r"is not an \.npz file of plain arrays"):
            load_benchmark_data(name, tmp_path)


@pytest.mark.skipif(not os.environ.get(DATA_VARIABLE), reason=f"{DATA_VARIABLE} names no folder of data sets")
def test_all_data_sets_of_the_folder_can_be_read():
    names = [path.stem for path in sorted(Path(os.environ[DATA_VARIABLE]).glob("*.npz"))]
    if not names:
        pytest.skip(f"the folder of {DATA_VARIABLE} is empty")
    for name in names:
        with np.load(benchmark_file(name)) as arrays:
            held = set(arrays.files)
        if "y" in held:
            data = load_benchmark_data(name)
            assert len(data.y) == data.X.shape[0]
