"""Starting the command line

Processor time of whole processes, imports included, one after the other in turn so that a busy machine slows all alike.
`dualfield tag` labels ten sentences in columns with a small model and is held against the import of what it cannot do
without, `--version` against the import of the library that reads its options. Best and median of all repeats.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.kernel_logistic_data import markdown

REPEATS = 15
PEERS = {"numpy": "import numpy, scipy.sparse", "click": "import click"}
SENTENCES = [[("the", "DT"), ("cat", "NN"), (verb, "VB"), ("it", "PR")] for verb in ("sees", "hears", "finds", "eats")]


def lines(n: int, labelled: bool) -> str:
    """Sentences in columns, over and over."""
    chosen = [SENTENCES[at % len(SENTENCES)] for at in range(n)]
    return "\n".join("".join(f"{word} {label}\n" if labelled else f"{word}\n" for word, label in one) for one in chosen)


def cpu_seconds(command: list[str]) -> float:
    """Processor time of a command and all that it starts."""
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def program(*arguments: object) -> list[str]:
    return [sys.executable, "-c", "from dualfield.cli import main; main()", *map(str, arguments)]


def run() -> dict[str, Any]:
    """Train a small model once, then start everything in turn."""
    with tempfile.TemporaryDirectory() as folder:
        train, words, model = (Path(folder, name) for name in ("train.txt", "words.txt", "tags.model"))
        train.write_text(lines(40, labelled=True))
        words.write_text(lines(10, labelled=False))
        subprocess.run(program("train", train, "--model", model), check=True, capture_output=True)
        commands = {
            **{name: [sys.executable, "-c", script] for name, script in PEERS.items()},
            "import dualfield": [sys.executable, "-c", "import dualfield"],
            "dualfield tag": program("tag", "--model", model, words),
            "dualfield tag --mmap": program("tag", "--mmap", "--model", model, words),
            "dualfield --version": program("--version"),
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(REPEATS):
            for name, command in commands.items():
                seconds[name].append(cpu_seconds(command))
    return {"name": "start_up", "seconds": seconds}


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    seconds, rows = result["seconds"], []
    for name, peer in (
        *(("dualfield tag", "numpy"), ("dualfield tag --mmap", "numpy")),
        *(("dualfield --version", "click"), ("import dualfield", "click")),
    ):
        own, other = seconds[name], seconds[peer]
        median = statistics.median(own) / statistics.median(other)
        rows.append(
            [
                name,
                f"{1e3 * min(own):.0f}",
                PEERS[peer],
                f"{1e3 * min(other):.0f}",
                f"{min(own) / min(other):.2f}",
                f"{median:.2f}",
            ]
        )
    return markdown("command | ms | beside | ms | ÷ best | ÷ median", rows)
