"""Conditional random fields: threads, growth and memory

The threads' share: five fits on CoNLL-2000, one after another and two at a time (five equal ones could gain 5/3 at
most), and one pass for the losses and their gradient, which CRFsuite needs for each evaluation. The corpora behind the
other figures are synthetic: sentences of 5 to 45 tokens with 10 attributes each, 9 labels where nothing else is said.
Time grows with the tokens alone where their attributes have few values, and with the weights as well, which leave the
caches, where they have many. A pass of the block dual is a visit to every sentence; its start and its certificates are
counted in. Memory is that above the arrays of the corpus, except for the corpus on disk, where it is everything.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import KFold

from benchmarks.crf_data import conll2000, train_crfsuite
from benchmarks.crf_memory import N_SLOTS, SLOT_COLUMNS, objective_on, synthetic, write_corpus
from benchmarks.crf_memory import measure as measure_memory
from benchmarks.kernel_logistic_data import markdown, medians
from dualfield import CRF
from dualfield.data import Batch
from dualfield.losses import Loss
from dualfield.objectives import Examples, Objective
from dualfield.solvers import BlockDual, StopRule

NEEDS_DATA = True
PARTS = ("path", "folds", "gradient", "tokens", "vocabulary", "memory", "labels", "disk")
PATH = (4.0, 2.0, 1.0, 0.5, 0.25)  # values of C, the slowest first
TOKENS = tuple(int(10**power) for power in np.arange(4.0, 7.1, 0.5))
PASSES = ("gradient", "block_dual")
DISK_TOKENS, DISK_BYTES = 10_000_000, 4e9
DISK_FITS = {"block_dual": 10, "lbfgs": 10, "sgd": 3}  # solvers and their most passes
MANY_LABELS, MANY_TOKENS = 500, 20_000


def measure_many(kind: str, size: int | None = None, n_rounds: int = 3) -> dict[str, Any]:
    """Five fits of CoNLL-2000 one after another, and on two threads: a path of C, or the folds of cross-validation."""
    corpus = conll2000(size)
    batch, model = Batch.build(corpus.X), CRF(C=0.5, n_jobs=1, random_state=0)
    if kind == "path":
        jobs = [(clone(model).set_params(C=C), batch, corpus.y) for C in PATH]
    else:
        folds = [train for train, _ in KFold(5).split(corpus.y)]
        jobs = [(clone(model), batch[train], [corpus.y[i] for i in train]) for train in folds]

    def fit(job: tuple[CRF, Batch, list[list[str]]]) -> CRF:
        return job[0].fit(*job[1:])

    def serial() -> list[CRF]:
        return [fit(job) for job in jobs]

    def threads() -> list[CRF]:
        return list(Parallel(n_jobs=2, prefer="threads")(delayed(fit)(job) for job in jobs))

    alone = [one.parameters_.copy() for one in serial()]
    assert all(np.array_equal(w, one.parameters_) for w, one in zip(alone, threads(), strict=True)), "threads matter"
    each = [float(job[0].trace_.seconds[-1]) for job in jobs]
    seconds = medians({"serial": serial, "threads": threads}, n_rounds)
    return {"kind": kind, "seconds": seconds, "solver_seconds": each, "ratio": seconds["serial"] / seconds["threads"]}


def measure_gradient(size: int | None = None, n_rounds: int = 21) -> dict[str, Any]:
    """One pass for the losses and their gradient at the optimum."""
    corpus = conll2000(size)
    model = CRF(C=0.5, tol=1e-3, random_state=0).fit(corpus.X, corpus.y)
    batch = Batch.build(corpus.X, vocabulary=model.vocabulary_)
    codes = model.labels_.encode(corpus.y, batch.offsets)
    examples, w = Examples(nodes=batch, labels=codes, weights=np.ones(batch.n_examples)), model.parameters_
    one, two = (Objective(model.score_map_, examples, Loss(), n_threads=n) for n in (1, 2))
    (loss, gradient), (loss_2, gradient_2) = one.loss_and_gradient(w), two.loss_and_gradient(w)
    assert (loss, gradient.tobytes()) == (loss_2, gradient_2.tobytes()), "the number of threads matters"
    with tempfile.TemporaryDirectory() as folder:
        theirs = train_crfsuite(corpus, Path(folder) / "model", most=25).seconds_per_pass()
    seconds = medians({"one": lambda: one.loss_and_gradient(w), "two": lambda: two.loss_and_gradient(w)}, n_rounds)
    ratios = {"crfsuite": theirs / seconds["one"], "threads": seconds["one"] / seconds["two"]}
    return {"n_tokens": corpus.n_tokens, "seconds": {**seconds, "crfsuite": theirs}, "ratios": ratios}


def seconds_per_pass(n_tokens: int, slot_columns: int, n_rounds: int) -> dict[str, Any]:
    """One gradient, and one pass of the block dual, at a synthetic corpus."""
    batch, labels = synthetic(n_tokens, slot_columns=slot_columns)
    objective, rng = objective_on(batch, labels), np.random.default_rng(0)
    score_map = objective.score_map
    w = score_map.pack(rng.normal(size=score_map.node.outputs.size), rng.normal(size=score_map.structure.n_cliques))
    gradients, climbs = [], []
    for _ in range(n_rounds):
        gradients.append(medians({"pass": lambda: objective.loss_and_gradient(w)}, 1)["pass"])
        trace = BlockDual(memory=np.inf).solve(objective, StopRule(1e-12, 3.0)).trace
        climbs.append(float(trace.seconds[-1] / trace.passes[-1]))
    seconds = {"gradient": float(np.median(gradients)), "block_dual": float(np.median(climbs))}
    return {"n_tokens": n_tokens, "n_features": score_map.n_features, "seconds": seconds}


def measure_tokens(slot_columns: int, largest: int | None = None) -> dict[str, Any]:
    """How the time of a pass grows with the number of tokens."""
    sizes = [n for n in TOKENS if largest is None or n <= largest]
    rows = [seconds_per_pass(n, slot_columns, 3 if n > 1_000_000 else 7) for n in sizes]
    logs = np.log(sizes)
    slopes = {key: float(np.polyfit(logs, np.log([row["seconds"][key] for row in rows]), 1)[0]) for key in PASSES}
    return {"rows": rows, "exponents": slopes, "n_attributes": N_SLOTS * slot_columns}


def measure_bytes(largest: int | None = None) -> list[dict[str, Any]]:
    """Memory for each token, above the arrays of the corpus: the slope between a corpus and one a tenth of it."""
    n, rows = largest or TOKENS[-1], []
    for solver in PASSES:
        less, more = (measure_memory("pass", n_tokens=size, solver=solver) for size in (n // 10, n))
        slope = (more["added_megabytes"] - less["added_megabytes"]) * 2**20 / (n - n // 10)
        rows.append({**more, "bytes_per_token": slope})
    return rows


def measure_disk(size: int | None = None) -> list[dict[str, Any]]:
    """Fits to a corpus that stays on disk."""
    with tempfile.TemporaryDirectory() as folder:
        write_corpus(Path(folder), size or DISK_TOKENS)
        return [
            measure_memory("from_disk", folder=folder, solver=solver, max_iter=most, bytes_allowed=DISK_BYTES)
            for solver, most in DISK_FITS.items()
        ]


def run(parts: Sequence[str] = PARTS, size: int | None = None) -> dict[str, Any]:
    """Measure all parts, or those named; `size` limits the tokens, for trying things out."""
    sentences = None if size is None else max(10, size // 25)
    labels = {"n_tokens": min(size or MANY_TOKENS, MANY_TOKENS), "n_labels": MANY_LABELS, "max_iter": 5}
    calls: dict[str, Callable[[], Any]] = {
        "path": partial(measure_many, "path", sentences),
        "folds": partial(measure_many, "folds", sentences),
        "gradient": partial(measure_gradient, sentences),
        "tokens": partial(measure_tokens, SLOT_COLUMNS // 10, size),
        "vocabulary": partial(measure_tokens, SLOT_COLUMNS, size),
        "memory": partial(measure_bytes, size),
        "labels": partial(measure_memory, "many_labels", **labels),
        "disk": partial(measure_disk, size),
    }
    return {"name": "crf_scaling", **{part: calls[part]() for part in parts}}


def thread_rows(result: dict[str, Any]) -> list[tuple[Any, ...]]:
    names = {"path": f"{len(PATH)} values of C", "folds": "5 folds of cross-validation"}
    rows = []
    for kind, what in names.items():
        if kind in result:
            seconds = result[kind]["seconds"]
            values = (f"{result[kind]['ratio']:.2f}", 1.7, f"{seconds['serial']:.3g}", f"{seconds['threads']:.3g}")
            rows.append((f"{what}, two threads beside one", *values))
    if "gradient" in result:
        seconds, ratios = result["gradient"]["seconds"], result["gradient"]["ratios"]
        one, two, theirs = (f"{seconds[key]:.3g}" for key in ("one", "two", "crfsuite"))
        rows.append(("a gradient, two threads beside one; equal bit by bit", f"{ratios['threads']:.2f}", 1.7, one, two))
        rows.append(("a gradient, one thread beside CRFsuite", f"{ratios['crfsuite']:.2f}", 4, theirs, one))
    return rows


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    threads = thread_rows(result)
    parts = [markdown("CoNLL-2000 | × | aim | before, s | after, s", threads)] if threads else []
    for part, aim in (("tokens", "aim ≤ 1.05"), ("vocabulary", "features grow")):
        if part in result:
            one = result[part]
            rows = [
                (f"{r['n_tokens']:,}", f"{r['n_features']:,}", *(f"{r['seconds'][key]:.3g}" for key in PASSES))
                for r in one["rows"]
            ]
            rows.append((f"**exponent** ({aim})", "", *(f"{one['exponents'][key]:.3f}" for key in PASSES)))
            heads = f"tokens, {one['n_attributes']:,} attributes | features"
            parts.append(markdown(heads + " | a gradient, s | a pass of the block dual, s", rows))
    if "memory" in result:
        rows = [
            (r["solver"], f"{r['n_tokens']:,}", f"{r['added_megabytes']:.0f}", f"{r['bytes_per_token']:.0f}")
            for r in result["memory"]
        ]
        parts.append(markdown("memory above the corpus | tokens | peak, MB | bytes for each token", rows))
    if "labels" in result:
        one = result["labels"]
        tables = 8e-9 * one["n_labels"] ** 2 * one["n_tokens"]
        parts.append(
            f"{one['n_labels']} labels, {one['n_tokens']:,} tokens, {one['n_features']:,} features: L-BFGS adds "
            f"{one['added_megabytes']:.0f} MB at its peak and takes {one['seconds_per_pass']:.2f} s for a pass; a "
            f"table of label pairs for each token would take {tables:.0f} GB."
        )
    if "disk" in result:
        heads = "corpus on disk, address space limited | tokens | passes | gap ÷ objective | peak resident, GB | fit, s"
        parts.append(markdown(heads, [disk_row(one) for one in result["disk"]]))
    return "\n\n".join(parts)


def disk_row(one: dict[str, Any]) -> tuple[Any, ...]:
    what = f"{one['solver']}, {one['bytes_allowed'] / 1e9:g} GB"
    if "failed" in one:
        return (what, "", "", "", one["failed"], "")
    sizes = (f"{one['n_tokens']:,}", f"{one['passes']:.1f}", f"{one['gap_over_objective']:.1e}")
    return (what, *sizes, f"{one['peak_resident_gigabytes']:.2f}", f"{one['seconds']:.0f}")
