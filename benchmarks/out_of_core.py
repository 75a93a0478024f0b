"""Out of core: training from disk beside training in memory

Synthetic columns with drawn words, 9 labels and 8 attributes for each token, written to a temporary folder, compiled
and removed. Passes are those of the block dual: the one in memory holds all sentences and dual points, the one out of
core has a budget that the larger corpora do not fit into. Passes to a gap are medians over three orders of visits: a
gap is looked at now and then, so that single runs differ by a look. ÷ is the time of a pass out of core beside one in
memory, on one thread besides those that read and write. Memory is what the fit adds to a process that has loaded the
library. DUALFIELD_TOKENS=1e8 measures up to so many tokens; 1e7 without. python-crfsuite and Wapiti get the same
attributes, as long as all fits into memory; CRFsuite has the same problem, and its time runs from when it has the
sentences until its objective is within 1e-3 of our lower bound. Wapiti has a weight for every attribute and label.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import out_of_core_peers as peers
from benchmarks.kernel_logistic_data import markdown
from dualfield import CRF
from dualfield.data import Batch, CompiledCorpus
from dualfield.io import compile_corpus
from dualfield.losses import Loss
from dualfield.models.corpus_training import read_corpus
from dualfield.objectives import Examples, Objective
from dualfield.solvers import BlockDual, StopRule

AIMS = {"pass": 1.3, "passes": 1.15, "memory": 1.1, "exponent": 1.05}
SMALLEST, LARGEST = 1_000_000, 10_000_000
IN_MEMORY = 10_000_000  # tokens up to which all sentences are held
BUDGET = 400e6
N_LABELS, N_WORDS, N_TAGS, PIECE = 9, 50_000, 40, 200_000
MOST_PASSES = 5.0
TOL = 1e-3
N_ORDERS = 3
TEMPLATE = """U0:%x[-1,0]
U1:%x[-1,1]
U2:%x[0,0]
U3:%x[0,1]
U4:%x[1,0]
U5:%x[1,1]
U6:%x[0,0]/%x[0,1]
U7:%x[-1,1]/%x[0,1]
B
"""


def write_columns(path: Path, n_tokens: int, seed: int) -> None:
    """Write sentences whose labels depend on words, tags and each other."""
    random = np.random.default_rng(seed)
    homes = np.random.default_rng(0).integers(0, N_LABELS, (N_WORDS, N_TAGS))
    with path.open("w", encoding="ascii") as file:
        for start in range(0, n_tokens, PIECE):
            n = min(PIECE, n_tokens - start)
            words = np.minimum(random.zipf(1.3, n) - 1, N_WORDS - 1)
            tags = (words + random.integers(0, 3, n)) % N_TAGS
            noisy = random.random(n) < 0.15
            labels = np.where(noisy, random.integers(0, N_LABELS, n), homes[words, tags])
            ends = random.random(n) < 1 / 24
            rows = zip(words.tolist(), tags.tolist(), labels.tolist(), ends.tolist(), strict=True)
            file.write("".join(f"w{word} t{tag} L{label}\n" + "\n" * end for word, tag, label, end in rows))
        file.write("\n")


def corpus_of(folder: Path, n_tokens: int) -> CompiledCorpus:
    """Write and compile a corpus; the text is removed unless peers read it."""
    folder.mkdir()
    paths = [folder / f"text{at}.txt" for at in range(4)]
    for at, path in enumerate(paths):
        write_columns(path, n_tokens // len(paths), at)
    corpus = compile_corpus(paths, folder / "corpus", parts=max(16, n_tokens // 1_000_000), template=TEMPLATE)
    if n_tokens > SMALLEST:
        for path in paths:
            path.unlink()
    return corpus


def settings() -> CRF:
    return CRF(C=0.5, min_freq=2)


def held(corpus: CompiledCorpus) -> Objective:
    """Return the same problem with all sentences in memory."""
    data = read_corpus(settings(), corpus, hinge=False)
    parts = [corpus.part(part) for part in range(corpus.n_parts)]
    lengths = np.concatenate([part.nodes.lengths for part in parts])
    entries = np.concatenate([np.diff(part.nodes.indptr) for part in parts])
    nodes = Batch(
        np.concatenate([[0], np.cumsum(lengths)]),
        corpus.n_columns,
        indptr=np.concatenate([[0], np.cumsum(entries)]),
        indices=np.concatenate([part.nodes.indices for part in parts]),
    )
    codes = np.concatenate([part.codes for part in parts])
    examples = Examples(nodes=nodes, labels=codes, weights=np.full(nodes.n_examples, 0.5))
    return Objective(data.score_map, examples, Loss())


def fit(path: str, where: str, tol: float, most_passes: float, seed: int) -> dict[str, Any]:
    """Solve in this process: its memory is that of the fit."""
    corpus = CompiledCorpus(path)
    before = peers.peak_bytes()
    if where == "memory":
        trace = BlockDual(memory=np.inf).solve(held(corpus), StopRule(tol, most_passes), random_state=seed).trace
    else:
        model = settings().set_params(
            tol=tol, max_iter=max(int(most_passes), 1), solver="block_dual", random_state=seed
        )
        trace = model.fit(corpus, memory=float(where)).trace_
    close = np.flatnonzero((trace.dual > 0) & (trace.gap <= tol * trace.dual))
    return {
        "seconds_per_pass": float(trace.seconds[-1] / trace.passes[-1]),
        "passes_to_gap": float(trace.passes[close[0]]) if close.size else None,
        "seconds_to_gap": float(trace.seconds[close[0]]) if close.size else None,
        "dual": float(trace.dual.max()),
        "added_bytes": peers.peak_bytes() - before,
    }


def apart(corpus: CompiledCorpus, where: str, tol: float, most_passes: float, seed: int = 0) -> dict[str, Any]:
    """Solve in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.out_of_core"]
    arguments = [str(corpus.path), where, repr(tol), repr(most_passes), str(seed)]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def to_gap(corpus: CompiledCorpus, where: str) -> dict[str, float]:
    """Return medians over some orders of visits, and the best lower bound."""
    runs = [apart(corpus, where, TOL, 200.0, seed) for seed in range(N_ORDERS)]
    medians = {name: statistics.median(run[name] for run in runs) for name in ("passes_to_gap", "seconds_to_gap")}
    return {**medians, "dual": max(run["dual"] for run in runs)}


def measure(folder: Path, n_tokens: int) -> dict[str, Any]:
    corpus = corpus_of(folder / str(n_tokens), n_tokens)
    row: dict[str, Any] = {"n_tokens": corpus.n_nodes, "n_blocks": corpus.n_blocks, "budget": BUDGET}
    row["from_disk"] = apart(corpus, repr(BUDGET), 1e-12, MOST_PASSES)
    if n_tokens <= IN_MEMORY:
        row["in_memory"] = apart(corpus, "memory", 1e-12, MOST_PASSES)
    if n_tokens <= SMALLEST:
        found = {where: to_gap(corpus, where) for where in (repr(BUDGET), "memory")}
        row["passes"] = {where: one["passes_to_gap"] for where, one in found.items()}
        row["seconds_to_gap"] = found[repr(BUDGET)]["seconds_to_gap"]
        given, dual = settings(), max(one["dual"] for one in found.values())
        texts = sorted((folder / str(n_tokens)).glob("text*.txt"))
        row["peers"] = peers.measure(texts, given.C, given.min_freq, dual, TOL)
    return row


def run(largest: int | None = None) -> dict[str, Any]:
    """Measure all sizes; `largest` limits the tokens, for trying things out."""
    most = largest or int(float(os.environ.get("DUALFIELD_TOKENS", LARGEST)))
    sizes = [n for n in (SMALLEST // 10, SMALLEST, LARGEST, 10 * LARGEST) if n <= most]
    with tempfile.TemporaryDirectory() as folder:
        rows = [measure(Path(folder), n) for n in sizes]
    tokens = np.log([row["n_tokens"] for row in rows])
    seconds = np.log([row["from_disk"]["seconds_per_pass"] for row in rows])
    exponent = float(np.polyfit(tokens, seconds, 1)[0]) if len(rows) > 1 else None
    return {"name": "out_of_core", "aims": AIMS, "rows": rows, "exponent": exponent}


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    lines = []
    for row in result["rows"]:
        disk, memory, passes = row["from_disk"], row.get("in_memory"), row.get("passes")
        ratio = "" if memory is None else f"{disk['seconds_per_pass'] / memory['seconds_per_pass']:.2f}"
        counts = "" if passes is None else " and ".join(f"{n:.1f}" for n in passes.values())
        lines.append(
            (
                f"{row['n_tokens']:,}",
                f"{1e6 * disk['seconds_per_pass'] / row['n_tokens']:.2f}",
                ratio,
                counts,
                f"{disk['added_bytes'] / 1e6:,.0f}",
                "" if memory is None else f"{memory['added_bytes'] / 1e6:,.0f}",
            )
        )
    aims = result["aims"]
    heads = (
        f"tokens | µs a token and pass | ÷ in memory (aim ≤ {aims['pass']}) | passes to 1e-3, from disk and in memory "
        f"(aim ≤ {aims['passes']} times) | MB from disk (budget {BUDGET / 1e6:,.0f}) | MB in memory"
    )
    text = markdown(heads, lines)
    if result["exponent"] is not None:
        power = f"{result['exponent']:.3f} (aim ≤ {aims['exponent']})"
        text += f"\n\nThe time of a pass grows with the tokens to the power of {power}."
    beside = peers.table(result["rows"])
    return f"{text}\n\n{beside}" if beside else text


if __name__ == "__main__":
    print(json.dumps(fit(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))))
