"""Run every benchmark, or those named on the command line; keep the figures as JSON and as one table to read."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
CASES = (
    "chain_inference",
    "graph_inference",
    "segment_inference",
    "dependency_inference",
    "grammar_inference",
    "interning",
    "compile_corpus",
    "kernel_logistic_peers",
    "kernel_logistic_alternatives",
    "kernel_logistic_scaling",
    "kernel_partitions",
    "crf_training",
    "crf_l1",
    "crf_tagging",
    "crf_scaling",
    "out_of_core",
    "cluster",
    "structured_svm",
    "confidence",
    "uncertainty",
    "tuning",
    "latent_chunking",
    "kernel_structured",
    "unseen_words",
    "discriminative_hmm",
    "snakes",
    "denoising",
    "multilabel",
    "start_up",
)
BESIDES = ("two_builds",)  # which needs another build, and is run by itself


def circumstances() -> dict[str, Any]:
    """Commit and machine: a figure without them means little."""
    git = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, cwd=FOLDER, check=False
    )
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return {
        "commit": git.stdout.strip() or "unknown",
        "processor": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def write_aside(path: Path, text: str) -> None:
    aside = path.with_suffix(".partial")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def write_table() -> None:
    """README.md of this folder, from the JSON of every case."""
    parts = [
        "# Benchmarks",
        "",
        "`make bench` measures every case side by side with its peers in one run, after checking that the answers "
        "agree, and writes `results/*.json` and this page. Ratios are what counts: absolute times differ from machine "
        "to machine. × is how many times faster dualfield is, ÷ how many times longer it takes.",
    ]
    for case in (*CASES, *BESIDES):
        path = FOLDER / "results" / f"{case}.json"
        if not path.exists():
            continue
        result = json.loads(path.read_text(encoding="utf-8"))
        module = importlib.import_module(f"benchmarks.{case}")
        where = result["circumstances"]
        parts += [
            "",
            f"## {inspect.getdoc(module)}",
            "",
            f"{where['processor']}, {where['cores']} cores, Python {where['python']}, commit {where['commit']}.",
            "",
            module.table(result),
        ]
    write_aside(FOLDER / "README.md", "\n".join(parts) + "\n")


def main(names: list[str]) -> None:
    unknown = sorted(set(names) - set(CASES))
    if unknown:
        raise SystemExit(f"no benchmark {', '.join(unknown)}; there are {', '.join(CASES)}")
    for name in names or CASES:
        module = importlib.import_module(f"benchmarks.{name}")
        if getattr(module, "NEEDS_DATA", False) and not os.environ.get("DUALFIELD_DATA"):
            print(f"{name} skipped: DUALFIELD_DATA is not set", flush=True)
            continue
        print(f"{name} ...", flush=True)
        before = circumstances()
        result = {**module.run(), "circumstances": before}
        write_aside(FOLDER / "results" / f"{name}.json", json.dumps(result, indent=1) + "\n")
        print(module.table(result), flush=True)
    write_table()


if __name__ == "__main__":
    main(sys.argv[1:])
