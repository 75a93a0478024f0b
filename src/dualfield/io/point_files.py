"""Files of points with labels: a partition in NumPy's format or in that of SVMlight."""

from __future__ import annotations

import glob
import os
import zipfile
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dualfield.io.svmlight import read_svmlight


@dataclass(frozen=True)
class PointFile:
    """A file that is read when it is called.

    Parameters
    ----------
    path : str
        A file ``.npz`` with arrays ``X``, ``y`` and perhaps ``sample_weight``, where a sparse X is ``data``,
        ``indices``, ``indptr`` and ``shape``, as :func:`scipy.sparse.save_npz` names them; any other is SVMlight's
        text, gzipped or not. Kept from the root: workers may run in another folder.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from dualfield.io.point_files import PointFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "part-0.npz")
    ...     np.savez(path, X=np.eye(2), y=np.array(["no", "yes"]))
    ...     X, y, sample_weight = PointFile(str(path))()
    >>> X.shape, y.tolist(), sample_weight
    ((2, 2), ['no', 'yes'], None)
    """

    path: str

    def __post_init__(self) -> None:
        # Not resolved: links stay as they are.
        object.__setattr__(self, "path", os.path.abspath(self.path))  # noqa: PTH100

    @property
    def is_slow(self) -> bool:
        """Whether reading takes much longer than reading arrays."""
        return not self.path.endswith(".npz")

    def __call__(self) -> tuple[Any, Any, Any]:
        """Read the file.

        Returns
        -------
        X, y, sample_weight : array or sparse array, array, array or None
            Points, labels and weights.
        """
        if not self.path.endswith(".npz"):
            X, y = read_svmlight(self.path)
            return X, y, None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{self.path} cannot be read as arrays: {error}") from None
        if "X" in arrays:
            X = arrays["X"]
        elif {"data", "indices", "indptr", "shape"} <= arrays.keys():
            rows = (arrays["data"], arrays["indices"], arrays["indptr"])
            X = sparse.csr_array(rows, shape=tuple(arrays["shape"].tolist()))
        else:
            raise ValueError(f"{self.path} must have an array X, or those of a sparse one. Got {sorted(arrays)}.")
        if "y" not in arrays:
            raise ValueError(f"{self.path} must have an array y of labels. Got {sorted(arrays)}.")
        return X, arrays["y"], arrays.get("sample_weight")


def point_paths(given: Any) -> Any:
    """Return the files that a glob means, sorted; anything else, and a list, as it is.

    Parameters
    ----------
    given : object
        What was passed as X.

    Returns
    -------
    object
        A list of paths for a glob.

    Examples
    --------
    >>> from dualfield.io.point_files import point_paths
    >>> point_paths("nowhere/*.npz")
    Traceback (most recent call last):
        ...
    FileNotFoundError: No file matches 'nowhere/*.npz'.
    """
    if not isinstance(given, str | os.PathLike):
        return given
    found = sorted(glob.glob(os.fspath(given)))  # noqa: PTH207  (Path.glob does not take absolute patterns)
    if not found:
        raise FileNotFoundError(f"No file matches {os.fspath(given)!r}.")
    return found
