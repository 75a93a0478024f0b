"""Atomic writes: a file is complete or not there."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["atomic_write"]


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Write a temporary file, and rename it when it is complete and on disk.

    Whoever reads `path` finds the old file or the new one, never a part: also when the process is killed, the disk is
    full, or the block raises. What writers that were killed have left beside `path` is removed. The new file has the
    mode of the old one and, where the system allows it, its owner.

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
        If the folder does not exist or cannot be written to, the disk is full, or `path` is a folder or a device. The
        error names `path`. What was there before is then unchanged.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dualfield.io import atomic_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "numbers.txt")
    ...     with atomic_write(path) as file:
    ...         _ = file.write(b"1 2 3")
    ...     path.read_text()
    '1 2 3'
    """
    target = Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)} is a folder")
    if target.exists() and not target.is_file():
        raise OSError(f"{os.fspath(path)} is not a regular file")  # renaming over a device would replace the device
    remove_stale(target)
    with _named(path, target), _begun(target) as file:
        temporary = Path(file.name)
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if sys.platform == "win32":
                file.close()  # there, open files cannot be renamed
            temporary.replace(target)  # before the lock on it is given up
        finally:
            temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def _begun(target: Path) -> BinaryIO:
    """Open a temporary file beside a target, which is locked as long as it is open."""
    old = target.stat() if target.exists() else None
    while True:
        # A different name for every writer: two of them must not write into one file.
        temporary = target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}.part")
        file = temporary.open("x+b") if old is None else open(temporary, "x+b", opener=_private)  # noqa: SIM115
        if _lock(file.fileno(), wait=True) and not temporary.exists():  # taken for stale before it was locked
            file.close()
            continue
        if old is not None:
            if hasattr(os, "chown"):
                with contextlib.suppress(OSError):  # only some may give files away
                    os.chown(temporary, old.st_uid, old.st_gid)
            temporary.chmod(stat.S_IMODE(old.st_mode))
        return file


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def remove_stale(path: str | os.PathLike[str]) -> None:
    """Remove temporary files beside a path that killed writers have left: those of this user without a lock."""
    target = Path(path).resolve()
    name = re.compile(rf"\.{re.escape(target.name[:40])}\.[0-9a-f]{{12}}\.part")
    with contextlib.suppress(OSError):
        for found in [entry.path for entry in os.scandir(target.parent) if name.fullmatch(entry.name)]:
            with contextlib.suppress(OSError):
                handle = os.open(found, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
                try:
                    is_ours = not hasattr(os, "getuid") or os.fstat(handle).st_uid == os.getuid()
                    if is_ours and _lock(handle, wait=False):
                        Path(found).unlink()
                finally:
                    os.close(handle)


def _lock(handle: int, *, wait: bool) -> bool:
    """Lock a file until it is closed or its process ends; False if another has it, or where there are no locks."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _named(path: str | os.PathLike[str], target: Path) -> Iterator[None]:
    """Let errors name the file that was asked for: not the one beside it, nor none, as a full disk does."""
    try:
        yield
    except OSError as error:
        beside = isinstance(error.filename, str) and Path(error.filename).parent == target.parent
        if error.errno is not None and (error.filename is None or (beside and error.filename.endswith(".part"))):
            error.filename, error.filename2 = os.fspath(path), None
        raise


def _sync_folder(folder: Path) -> None:
    """Ask for the new name to be on disk, too; where folders cannot be opened, the system does it by itself."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
