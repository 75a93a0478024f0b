"""Arrays that are too large for memory: in temporary files, which are mapped into it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["joined"]


def joined(arrays: Sequence[NDArray[Any]], on_disk: bool = False) -> NDArray[Any]:
    """Return vectors of one type end to end; on disk if that is wanted.

    The temporary file has no name and is in the folder for such files, that of TMPDIR. Its room is free again when the
    array is, however the process ends. What is written to the array later stays in memory.

    Parameters
    ----------
    arrays : sequence of arrays of one dimension
        What is joined. Where it is one vector and stays in memory, it is returned as it is.
    on_disk : bool, default=False
        Whether the result is to be in a file.

    Returns
    -------
    array of one dimension
        The same numbers.

    Raises
    ------
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.data.on_disk import joined
    >>> joined([np.ones(2), np.zeros(1)], on_disk=True)
    array([1., 1., 0.])
    """
    if not arrays:
        return np.zeros(0)
    size = sum(array.nbytes for array in arrays)
    if not on_disk or not size:
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
    try:
        with tempfile.TemporaryFile(prefix="dualfield-") as file:
            for array in arrays:
                file.write(np.ascontiguousarray(array).data)
            file.flush()
            return np.asarray(np.memmap(file, arrays[0].dtype, mode="c"))
    except OSError as error:
        raise OSError(
            error.errno,
            f"vectors of {size:,} bytes cannot be kept in {tempfile.gettempdir()}: {error.strerror}. Let TMPDIR name "
            "a folder with more room",
        ) from error
