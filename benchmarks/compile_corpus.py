"""Text to a compiled corpus

`compile_corpus` on gzipped columns with the default template, in one process: CoNLL-2000 written many times, or drawn
words, of which more are distinct. Files are written to a temporary folder and removed.
"""

from __future__ import annotations

import gzip
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.interning import synthetic_sentences
from dualfield.io import compile_corpus

AIM = 400_000  # tokens a second and core
N_ROUNDS = 3
N_FILES = 4


def written(folder: Path, text: bytes, times: int) -> list[Path]:
    """Write a text several times over into each of a few compressed files."""
    paths = [folder / f"text{at}.gz" for at in range(N_FILES)]
    for path in paths:
        with gzip.open(path, "wb", compresslevel=6) as file:
            for _ in range(times):
                file.write(text)
    return paths


def texts(size: int) -> dict[str, bytes]:
    """Sentences in columns, each as a text that ends with a blank line."""
    sentences = synthetic_sentences(size)
    drawn = "\n\n".join("\n".join(" ".join(token) for token in sentence) for sentence in sentences)
    found = {"drawn words": drawn.encode() + b"\n\n"}
    folder = os.environ.get("DUALFIELD_DATA")
    if folder:
        read = gzip.decompress((Path(folder) / "conll2000_train.txt.gz").read_bytes())
        found["CoNLL-2000"] = b"\n\n".join(read.rstrip(b"\n").split(b"\n\n")[:size]) + b"\n\n"
    return found


def measure(text: bytes, times: int) -> dict[str, Any]:
    """Best of a few runs, in processor time and by the clock."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        paths = written(Path(name), text, times)
        for at in range(N_ROUNDS):
            cpu, clock = time.process_time(), time.perf_counter()
            corpus = compile_corpus(paths, Path(name, f"out{at}"), parts=16)
            rows.append((time.process_time() - cpu, time.perf_counter() - clock))
        size = sum(path.stat().st_size for path in corpus.path.iterdir())
        n_tokens, n_columns = corpus.n_nodes, corpus.n_columns
    cpu, clock = (min(column) for column in zip(*rows, strict=True))
    return {
        "n_tokens": n_tokens,
        "n_attributes": n_columns,
        "bytes_per_token": size / n_tokens,
        "tokens_per_core_second": n_tokens / cpu,
        "tokens_per_second": n_tokens / clock,
    }


def run(size: int = 8936) -> dict[str, Any]:
    """Measure; `size` is the number of sentences of a text, which is compiled eight times over."""
    data = {name: measure(text, 2) for name, text in texts(size).items()}
    return {"name": "compile_corpus", "aim": AIM, "data": data}


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    lines = [
        f"Aim: {result['aim']:,} tokens a second and core.",
        "",
        "| data | tokens | attributes | bytes a token | tokens/s a core | tokens/s by the clock |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in result["data"].items():
        lines.append(
            f"| {name} | {row['n_tokens']:,} | {row['n_attributes']:,} | {row['bytes_per_token']:.0f} "
            f"| {row['tokens_per_core_second']:,.0f} | {row['tokens_per_second']:,.0f} |"
        )
    return "\n".join(lines)
