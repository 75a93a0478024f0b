"""Named benchmark data sets, read from a folder of ``.npz`` files that the user provides."""

import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

DATA_VARIABLE = "DUALFIELD_DATA"
_NAME = re.compile(r"[A-Za-z0-9_]+")
_SPARSE = ("data", "indices", "indptr", "shape")
_SUBSET = "idx_"  # how the names of index arrays of further subsets begin


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BenchmarkData:
    """One data set; made by :func:`load_benchmark_data`.

    Attributes
    ----------
    name : str
        The name of its file, without ``.npz``.
    X : ndarray or csr_array of shape (n, n_features), float64
        The examples.
    y : ndarray of shape (n,)
        Their labels, in the type of the file.
    train, test : ndarray of int64, or None
        The rows of the official split, where there is one.
    subsets : dict from str to ndarray of int64
        Rows of further subsets by name.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.datasets import BenchmarkData
    >>> BenchmarkData(name="coins", X=np.eye(2), y=np.array([0, 1])).train is None
    True
    """

    name: str
    X: NDArray[np.float64] | csr_array
    y: NDArray[Any]
    train: NDArray[np.int64] | None = None
    test: NDArray[np.int64] | None = None
    subsets: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)


def load_benchmark_data(name: str, folder: str | os.PathLike[str] | None = None) -> BenchmarkData:
    """Read a data set by its name.

    A file holds the arrays ``X`` (n, n_features) and ``y`` (n,), or, in place of ``X``, the parts ``data``,
    ``indices``, ``indptr`` and ``shape`` of a CSR matrix. It may hold ``train_idx`` and ``test_idx``, the rows of a
    split, and index arrays named ``idx_...``, the rows of further subsets. Other arrays are ignored. Nothing is
    downloaded, and pickled objects are refused.

    Parameters
    ----------
    name : str
        The name of the file, without ``.npz``.
    folder : str or path-like, default=None
        Where the files are; None takes the folder that the environment variable ``DUALFIELD_DATA`` names.

    Returns
    -------
    BenchmarkData
        Examples as float64, labels, and the rows of the split.

    Raises
    ------
    FileNotFoundError
        If there is no such folder or no such file in it; the message lists the data sets that are there.
    ValueError
        If `name` is no plain name or the file does not hold a data set.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from dualfield.datasets import load_benchmark_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(pathlib.Path(folder, "coins.npz"), X=np.eye(2), y=[0, 1], train_idx=[0], test_idx=[1])
    ...     coins = load_benchmark_data("coins", folder)
    >>> coins.X.shape, coins.test.tolist()
    ((2, 2), [1])
    """
    path = benchmark_file(name, folder)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            found = {key: arrays[key] for key in arrays.files}
    except (ValueError, EOFError, TypeError, zipfile.BadZipFile) as error:  # TypeError: a single array, .npy
        raise ValueError(f"The file '{path}' is not an .npz file of plain arrays.") from error
    return _data_of(name, path, found)


def benchmark_file(name: str, folder: str | os.PathLike[str] | None = None) -> Path:
    """Find the file of a data set without reading it.

    Parameters
    ----------
    name, folder
        As for :func:`load_benchmark_data`.

    Returns
    -------
    Path
        The file, which exists.

    Examples
    --------
    >>> from dualfield.datasets.benchmark_data import benchmark_file
    >>> benchmark_file("coins", "no-such-folder")
    Traceback (most recent call last):
        ...
    FileNotFoundError: The folder of data sets, 'no-such-folder', does not exist.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"The 'name' parameter of load_benchmark_data must be a str of letters, digits and underscores. Got "
            f"{name!r} instead."
        )
    place = _folder(folder)
    path = place / f"{name}.npz"
    if not path.is_file():
        others = sorted(one.stem for one in place.glob("*.npz"))
        there = f"It has {', '.join(others)}." if others else "It has no .npz file at all."
        raise FileNotFoundError(f"There is no data set '{name}' in the folder '{place}'. {there}")
    return path


def _folder(folder: str | os.PathLike[str] | None) -> Path:
    chosen = os.environ.get(DATA_VARIABLE, "") if folder is None else folder
    if folder is None and not chosen:
        raise FileNotFoundError(
            f"No folder of data sets is known: name one, or set the environment variable {DATA_VARIABLE} to it."
        )
    place = Path(chosen)
    if not place.is_dir():
        why = "is not a folder" if place.exists() else "does not exist"
        raise FileNotFoundError(f"The folder of data sets, '{place}', {why}.")
    return place


def _data_of(name: str, path: Path, found: dict[str, NDArray[Any]]) -> BenchmarkData:
    """Check what a file holds and put it into a record."""
    if "y" not in found or ("X" not in found and not set(_SPARSE) <= set(found)):
        raise ValueError(
            f"The file '{path}' must hold the arrays y and X, or y and {', '.join(_SPARSE)}. It holds "
            f"{', '.join(sorted(found)) or 'nothing'}."
        )
    X: NDArray[np.float64] | csr_array
    if "X" in found:
        X = np.asarray(found["X"], dtype=np.float64)
    else:
        values = np.asarray(found["data"], dtype=np.float64)
        places = (found["indices"].astype(np.int64), found["indptr"].astype(np.int64))
        n_rows, n_columns = (int(size) for size in found["shape"])
        X = csr_array((values, *places), shape=(n_rows, n_columns))
    y = found["y"]
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(
            f"The file '{path}' must hold X of shape (n, n_features) and y of shape (n,). It holds shapes {X.shape} "
            f"and {y.shape}."
        )
    rows = {
        key: _rows(path, key, found[key], len(y)) for key in found if key.endswith("_idx") or key.startswith(_SUBSET)
    }
    subsets = {key.removeprefix(_SUBSET): rows[key] for key in rows if key.startswith(_SUBSET)}
    return BenchmarkData(name=name, X=X, y=y, train=rows.get("train_idx"), test=rows.get("test_idx"), subsets=subsets)


def _rows(path: Path, key: str, rows: NDArray[Any], n: int) -> NDArray[np.int64]:
    whole = rows.astype(np.int64) if rows.ndim == 1 and np.issubdtype(rows.dtype, np.integer) else None
    if whole is None or (len(whole) and not (whole.min() >= 0 and whole.max() < n)):
        raise ValueError(f"The array {key} of the file '{path}' must hold rows between 0 and {n - 1}.")
    return whole
