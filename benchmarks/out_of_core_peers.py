"""python-crfsuite and Wapiti on the text of the benchmark out of core: they hold all sentences in memory."""

from __future__ import annotations

import importlib.util
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.crf_data import train_crfsuite, train_wapiti
from benchmarks.kernel_logistic_data import markdown

MODULES = {"python-crfsuite": "pycrfsuite", "Wapiti": "wapiti"}
ROOM = 16e9  # bytes, for saying how many tokens a machine has room for


@dataclass(frozen=True)
class Read:
    """The attributes, or the labels, of sentences in files of columns, which are read anew each time and never held."""

    paths: Sequence[Path]
    part: int

    def __iter__(self) -> Iterator[Any]:
        for path in self.paths:
            rows: list[list[str]] = []
            with path.open(encoding="ascii") as file:
                for line in file:
                    if fields := line.split():
                        rows.append(fields)
                    elif rows:
                        yield _sentence(rows)[self.part]
                        rows = []


def _sentence(rows: list[list[str]]) -> tuple[list[list[str]], list[str]]:
    """Return what the template of the benchmark makes of a sentence."""
    words = ["_B-1", *(row[0] for row in rows), "_B+1"]
    tags = ["_B-1", *(row[1] for row in rows), "_B+1"]
    items = []
    for at in range(1, len(rows) + 1):
        pairs = [(words[near], tags[near]) for near in (at - 1, at, at + 1)]
        singles = [f"U{place}:{text}" for place, text in enumerate(itertools.chain(*pairs))]
        items.append([*singles, f"U6:{words[at]}/{tags[at]}", f"U7:{tags[at - 1]}/{tags[at]}"])
    return items, [row[2] for row in rows]


def measure(paths: Sequence[Path], C: float, min_freq: int, dual: float, tol: float) -> dict[str, Any]:
    """Train each peer that is installed in a process of its own; None for one that is not.

    `dual` is a lower bound on the minimum in our units, to which the objectives of CRFsuite are compared.
    """
    found: dict[str, Any] = {}
    for name, module in MODULES.items():
        if importlib.util.find_spec(module) is None:
            found[name] = None
            continue
        given = {"name": name, "paths": [str(path) for path in paths], "C": C, "min_freq": min_freq}
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.out_of_core_peers", json.dumps(given)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        one = json.loads(done.stdout)
        course = one.pop("course")
        if name == "python-crfsuite":
            values = np.array([C * value for _, value in course])
            assert values.min() >= dual * (1.0 - 1e-6), "CRFsuite is below our lower bound: another problem"
            reached = np.flatnonzero(values <= (1.0 + tol) * dual)
            one["seconds_to_gap"] = course[reached[0]][0] if reached.size else None
        found[name] = one
    return found


def train(name: str, paths: list[str], C: float, min_freq: int) -> dict[str, Any]:
    """Train in this process: its memory is that of the peer."""
    files = [Path(path) for path in paths]
    corpus: Any = SimpleNamespace(X=Read(files, 0), y=Read(files, 1))
    before = peak_bytes()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        # Ours is half the squared norm and C times the losses, theirs c2 times the squared norm and the losses.
        if name == "python-crfsuite":
            course = train_crfsuite(corpus, path, c2=0.5 / C, min_freq=min_freq)
        else:
            course = train_wapiti(corpus, path, c2=0.5 / C)
    return {
        "seconds_per_pass": course.seconds_per_pass(),
        "added_bytes": peak_bytes() - before,
        "course": [[seconds - course.prepared, value] for seconds, value in course.steps()],
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Peers beside training from disk, for the rows that have them."""
    measured = [row for row in rows if row.get("peers")]
    if not measured:
        return ""
    lines, ends = [], []
    for row in measured:
        ours = [f"{row['n_tokens']:,}", f"{row['seconds_to_gap']:.1f}", f"{row['from_disk']['added_bytes'] / 1e6:,.0f}"]
        for one in row["peers"].values():
            if one is None:
                ours += ["not installed", "", ""]
                continue
            seconds = one.get("seconds_to_gap")
            ours += [
                f"{1e6 * one['seconds_per_pass'] / row['n_tokens']:.2f}",
                "" if seconds is None else f"{seconds / row['seconds_to_gap']:.2f}",
                f"{one['added_bytes'] / 1e6:,.0f}",
            ]
        lines.append(tuple(ours))
    heads = "tokens | s to 1e-3 from disk | MB from disk"
    for name in MODULES:
        heads += f" | {name}, µs a token and evaluation | its s to 1e-3 ÷ ours | MB"
    first, last = measured[0], measured[-1]
    for name in MODULES if len(measured) > 1 else ():
        if last["peers"][name] is None:
            continue
        more = last["peers"][name]["added_bytes"] - first["peers"][name]["added_bytes"]
        each = more / (last["n_tokens"] - first["n_tokens"])
        ends.append(
            f"{name} takes {each:,.0f} bytes of memory for each further token: {ROOM / 1e9:.0f} GB have room for "
            f"{ROOM / each / 1e6:,.0f} million tokens of such sentences, and it fits no longer beyond."
        )
    return "\n\n".join([markdown(heads, lines), *ends])


def peak_bytes() -> int:
    """Return the most memory that this process has had."""
    # Not that of getrusage, which begins at what the process that started this one had.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(train(**json.loads(sys.argv[1]))))
