"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["written_aside"]


@contextlib.contextmanager
def written_aside(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a file beside its place, and rename it when it is complete and on disk.

    Whoever reads `path` finds the old file or the new one, never a part: also when the process is killed, the disk is
    full, or the block raises.

    Parameters
    ----------
    path : str or path-like
        Where the file goes; an older file there is replaced. A symbolic link is followed.

    Yields
    ------
    binary file
        What to write to, open for reading too.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written to, or if `path` is a folder or a device. What was there
        before is then unchanged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dualfield.io import written_aside
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "numbers.txt")
    ...     with written_aside(path) as file:
    ...         _ = file.write(b"1 2 3")
    ...     path.read_text()
    '1 2 3'
    """
    target = Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)} is a folder")
    if target.exists() and not target.is_file():
        raise OSError(f"{os.fspath(path)} is not a regular file")  # renaming over a device would replace the device
    # A name of its own for every writer: two of them must not write into one file.
    aside = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.part")
    try:
        with aside.open("x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(target)
    finally:
        aside.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Ask for the new name to be on disk, too; where folders cannot be opened, the system does it by itself."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
