"""Peak memory of a call, as the operating system counts it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")


def _kilobytes(field: str) -> int:
    fields = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return int(fields[field].split()[0])


def peak_megabytes(call: Callable[[], Any]) -> float:
    """High-water mark of the resident set during the call, above what was resident before; Linux only, else NaN."""
    if not STATUS.exists():
        return float("nan")
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)  # memory that was freed but not given back would hide what the call needs
    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
    before = _kilobytes("VmRSS")
    result = call()
    peak = _kilobytes("VmHWM")
    del result
    return (peak - before) / 1024
