"""The folder in which a corpus is made: finished pieces are kept, so that killed work can be resumed.

It lies beside the target, on the same disk, so that the finished corpus appears by one rename.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dualfield.data.compiled.header import HEADER

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_target(target: Path, overwrite: bool) -> None:
    """Refuse a target that is there, unless it is an empty folder, or a corpus that is to be replaced."""
    if not target.exists():
        if not target.parent.is_dir():
            raise FileNotFoundError(f"{target}: there is no folder {target.parent}.")
        return
    if not target.is_dir():
        raise FileExistsError(f"{target} is a file; expected a folder, or nothing.")
    if not any(target.iterdir()):
        return
    if not (target / HEADER).is_file():
        raise FileExistsError(f"{target} is not empty, and not a compiled corpus. Name another folder.")
    if not overwrite:
        raise FileExistsError(f"{target} is a compiled corpus already. It can be overwritten, if that is asked for.")


class WorkingFolder:
    """A working folder that is locked, with what work of the same plan has left in it.

    Parameters
    ----------
    target : Path
        Where the corpus goes.
    plan : str
        What must be the same for work to be resumed; empty: it never is.
    """

    def __init__(self, target: Path, plan: str) -> None:
        self.target = target.resolve()
        self.path = self.target.with_name(f".{self.target.name}.compiling")
        self._plan = plan
        self.is_resumed = False

    @contextlib.contextmanager
    def opened(self) -> Iterator[WorkingFolder]:
        """Lock it; what does not belong to the plan is removed, what was written for it is kept also after an error."""
        self.path.mkdir(exist_ok=True)
        with (self.path / "lock").open("wb") as lock:
            if not _locked(lock):
                raise BlockingIOError(f"{self.target} is being compiled by another process.")
            written = self.path / "plan.json"
            with _full_disk(self):
                self.is_resumed = bool(self._plan) and written.is_file() and written.read_text("utf-8") == self._plan
                if not self.is_resumed:
                    self._clear()
                    written.write_text(self._plan, "utf-8")
                (self.path / "pieces").mkdir(exist_ok=True)
                try:
                    yield self
                finally:
                    if not self._plan:
                        shutil.rmtree(self.path, ignore_errors=True)

    def _clear(self) -> None:
        for entry in self.path.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry.name != "lock":
                entry.unlink()

    @property
    def pieces(self) -> Path:
        """Where pieces go."""
        return self.path / "pieces"

    def piece(self, file: int, number: int) -> Path:
        """Return the path of a piece; pieces in the order of their names are in the order of the input."""
        return self.pieces / f"{file:07d}-{number:07d}.bin"

    @property
    def all_read(self) -> Path:
        """A file that is there when all pieces are."""
        return self.path / "all_read"

    def publish(self, folder: Path) -> None:
        """Let a finished corpus appear at the target, and remove everything else."""
        old = self.path / "old"
        if self.target.exists():
            self.target.rename(old)
        folder.rename(self.target)
        with contextlib.suppress(OSError):
            handle = os.open(self.target.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        shutil.rmtree(self.path)


@contextlib.contextmanager
def _full_disk(work: WorkingFolder) -> Iterator[None]:
    """Say in one sentence that the disk is full, and what is kept."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        kept = "What is finished is kept: the same call goes on from there" if work._plan else "Nothing is kept"
        reason = f"the disk is full, or a file is larger than allowed. {kept}. Free some space, or name another folder."
        raise OSError(error.errno, reason, os.fspath(work.target)) from error


def _locked(file: BinaryIO) -> bool:
    """Lock a file until it is closed or its process ends; False if another process has it."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
