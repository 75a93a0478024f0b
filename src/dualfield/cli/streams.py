"""Standard input and output as the commands expect them, also where a shell has closed them."""

from __future__ import annotations

import io
import os
import sys
from typing import Any

# Closed streams: reading from the first and writing to the second fails, as it should; complaints go nowhere.
_CLOSED = ((0, os.O_WRONLY), (1, os.O_RDONLY), (2, os.O_WRONLY))


def prepare_streams() -> None:
    """Give standard streams that are closed a number, so that no file gets it, and write UTF-8 in every locale.

    Streams that somebody has replaced are left alone.
    """
    if sys.platform == "win32":
        return
    for number, flags in _CLOSED:
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # takes the lowest free number
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_NamedFile(0, "r", "<stdin>")))
    if sys.stdout is sys.__stdout__:
        raw = _NamedFile(1, "w", "<stdout>")
        # Names of files may have bytes that are not UTF-8; they come out as they are.
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(raw), encoding="utf-8", errors="surrogateescape", line_buffering=raw.isatty()
        )
    if sys.stderr is None:
        sys.stderr = io.TextIOWrapper(io.BufferedWriter(_NamedFile(2, "w", "<stderr>")), line_buffering=True)


class _NamedFile(io.FileIO):
    """A standard stream whose errors say which one it is."""

    def __init__(self, number: int, mode: str, called: str) -> None:
        super().__init__(number, mode, closefd=False)
        self.called = called

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.called) from None

    def readinto(self, buffer: Any) -> int:
        try:
            return super().readinto(buffer)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.called) from None
