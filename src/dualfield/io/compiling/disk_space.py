"""Whether a corpus will fit on the disk: an estimate from a sample, before anything is written."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from dualfield.io.compiling.chunk_reading import read_chunk
from dualfield.io.compiling.plan import Plan
from dualfield.io.compiling.text_chunks import text_chunks

_SAMPLE = 1 << 18  # bytes of text
_PARQUET = 8.0  # bytes of arrays for each byte of a file in which everything is encoded already
# Pieces and partitions are there at the same time, and names come on top.
_COPIES = 2.3


def check_disk_space(plan: Plan, target: Path, used: int = 0) -> None:
    """Raise an OSError if the disk has less room than compiling is expected to take; `used` bytes are there already."""
    needed, free = estimated_bytes(plan), shutil.disk_usage(target.parent).free + used
    if needed > free:
        raise OSError(
            errno.ENOSPC,
            f"compiling takes about {_shown(needed)} on this disk, of which about {_shown(needed / 2)} are left in the "
            f"end; {_shown(free)} are free",
            os.fspath(target),
        )


def estimated_bytes(plan: Plan) -> float:
    """Return how much room compiling will take, about."""
    total = sum(file.nbytes for file in plan.files)
    if plan.form == "parquet":
        return _PARQUET * total
    for at, file in enumerate(plan.files):
        if file.nbytes == 0:
            continue
        chunk = next(text_chunks(at, file.path, plan.encoding, _SAMPLE), None)
        if chunk is None:
            continue
        nodes = read_chunk(plan, chunk, 1).partition.nodes
        assert nodes.indices is not None
        n_bytes = 12.0 * nodes.n_nodes + (4.0 if nodes.values is None else 12.0) * nodes.indices.size
        return _COPIES * total * n_bytes / max(chunk.done, 1)
    return 0.0


def _shown(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:,.1f} MB"
