"""Training on partitions: two workers beside one, what travels, and how many exchanges a fit takes

Workers are processes with one thread on this machine, the corpus is synthetic: sentences of 5 to 45 tokens with 10
attributes each, 9 labels, in 8 partitions that stay on the workers. An evaluation is the losses and their gradient at
weights that are sent with it. Scheduling is what an evaluation on one worker takes beyond the same partitions one after
another in one process. Workers keep the memory that they have freed, as the guide advises. Exchanges are counted to a
relative gap of 1e-3 on CoNLL-2000 in 16 partitions, C = 0.5; they do not depend on the machine. The passes of an
averaged start, five in each partition, are not exchanges.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.crf_data import conll2000
from benchmarks.crf_memory import objective_on, synthetic
from benchmarks.kernel_logistic_data import markdown
from dualfield.data import Partition
from dualfield.engines import DaskEngine, Engine, Serial
from dualfield.estimators import CRF
from dualfield.objectives import Examples, Objective, PartitionedObjective
from dualfield.objectives.part_problem import PartProblem, PartScores
from dualfield.solvers import LBFGS

NEEDS_DATA = True
PARTS = ("workers", "exchanges")
TOKENS = (100_000, 1_000_000)
N_PARTITIONS, N_PARTITIONS_CONLL = 8, 16
EVALUATIONS = 15
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": 2**30, "MALLOC_MMAP_THRESHOLD_": 2**29, "OMP_NUM_THREADS": 1}
FITS = {
    "memory 10": LBFGS(memory=10),
    "memory 40": LBFGS(memory=40),
    "memory 40, averaged start": LBFGS(memory=40, begin="average"),
}


def partitions(whole: Objective) -> list[PartProblem]:
    """Cut a problem into partitions with columns of their own."""
    given, scores = whole.examples, PartScores(whole.score_map)
    cuts = np.linspace(0, given.nodes.n_examples, N_PARTITIONS + 1).astype(int)
    found = []
    for first, last in itertools.pairwise(cuts):
        nodes = given.nodes[first:last]
        columns, places = np.unique(nodes.indices, return_inverse=True)
        score_map, at = scores.of(columns)
        rows = slice(int(given.nodes.offsets[first]), int(given.nodes.offsets[last]))
        examples = Examples(
            nodes=replace(nodes, n_columns=len(columns), indices=places.astype(np.int32)),
            labels=given.labels[rows],
            weights=given.weights[first:last],
        )
        found.append(
            PartProblem(
                examples=examples,
                score_map=score_map,
                loss=whole.loss,
                places=at,
                size=whole.score_map.used_places.size,
            )
        )
    return found


def same(part: Any) -> Any:
    return part


def evaluation_seconds(engine: Engine, parts: list[PartProblem], whole: Objective) -> tuple[float, bytes]:
    """The median time of an evaluation, the first of them left out, and the gradient."""
    problem = PartitionedObjective(engine, engine.map(same, parts, keep=True), whole.score_map)
    w, seconds, gradient = np.where(whole.score_map.used, 0.01, 0.0), [], np.zeros(0)
    for _ in range(EVALUATIONS + 1):
        before = time.perf_counter()
        gradient = problem.evaluate(w)[1]
        seconds.append(time.perf_counter() - before)
    engine.release(problem.parts)
    return statistics.median(seconds[1:]), gradient.tobytes()


def measure_workers(n_tokens: int) -> dict[str, Any]:
    """An evaluation in this process, on one worker and on two."""
    import dask
    from distributed import Client, LocalCluster

    whole = objective_on(*synthetic(n_tokens))
    parts = partitions(whole)
    alone, gradient = evaluation_seconds(Serial(memory=np.inf), parts, whole)
    seconds = {"alone": alone}
    for n_workers in (1, 2):
        with (
            dask.config.set({"distributed.nanny.pre-spawn-environ": KEEP_MEMORY}),
            LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                scheduler_kwargs={"dashboard": False},
                silence_logs=50,
            ) as cluster,
            Client(cluster) as client,
        ):
            seconds[str(n_workers)], there = evaluation_seconds(DaskEngine(client), parts, whole)
            assert there == gradient, "the number of workers matters"
    sent = [part.evaluate(np.zeros(part.size))[3] for part in parts]
    return {
        "n_tokens": n_tokens,
        "n_weights": int(whole.score_map.used.sum()),
        "seconds": seconds,
        "two_beside_one": seconds["2"] / seconds["1"],
        "scheduling": seconds["1"] / alone - 1.0,
        "bytes_of_a_touched_weight": sum(one.nbytes for one in sent) / sum(part.places.size for part in parts),
        "megabytes_up": sum(one.nbytes for one in sent) / 1e6,
    }


def measure_exchanges(size: int | None = None) -> dict[str, Any]:
    """Evaluations to a relative gap of 1e-3, with several settings."""
    corpus = conll2000(size)
    cuts = np.linspace(0, len(corpus.y), N_PARTITIONS_CONLL + 1).astype(int)
    pairs = itertools.pairwise(cuts)
    parts = [Partition.build(corpus.X[first:last], corpus.y[first:last]) for first, last in pairs]
    found, kept = {}, PartitionedObjective.bundle_size
    for name, solver in FITS.items():
        model = CRF(C=0.5, tol=1e-3, solver=solver).fit(parts)
        found[name] = float(model.trace_.passes[-1])
    try:
        PartitionedObjective.bundle_size = 0
        model = CRF(C=0.5, tol=1e-3, solver=LBFGS(memory=40)).fit(parts)
        found["memory 40, single certificate"] = float(model.trace_.passes[-1])
    finally:
        PartitionedObjective.bundle_size = kept
    return {"n_sentences": len(corpus.y), "evaluations": found}


def run(parts: Sequence[str] = PARTS, size: int | None = None) -> dict[str, Any]:
    """Measure all parts, or those named; `size` limits the tokens, for trying things out."""
    result: dict[str, Any] = {"name": "cluster"}
    if "workers" in parts:
        result["workers"] = [measure_workers(n) for n in sorted({min(n, size or n) for n in TOKENS})]
    if "exchanges" in parts:
        result["exchanges"] = measure_exchanges(None if size is None else max(50, size // 25))
    return result


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    parts = []
    if "workers" in result:
        rows = [
            (
                *(f"{one['n_tokens']:,}", f"{one['n_weights']:,}"),
                *(f"{1e3 * one['seconds'][key]:.0f}" for key in ("alone", "1", "2")),
                *(f"{one['two_beside_one']:.2f}", f"{one['scheduling']:.0%}"),
                *(f"{one['bytes_of_a_touched_weight']:.1f}", f"{one['megabytes_up']:.1f}"),
            )
            for one in result["workers"]
        ]
        heads = "tokens | weights | one process, ms | one worker, ms | two workers, ms | two ÷ one (aim ≤ 0.6) | "
        heads += "scheduling (aim ≤ 10% from 10⁶ tokens) | bytes up of a touched weight (aim ≤ 12) | MB up"
        parts.append(markdown(heads, rows))
    if "exchanges" in result:
        found = result["exchanges"]["evaluations"]
        first = found["memory 10"]
        rows = [(name, f"{count:.0f}", f"{count / first:.2f}") for name, count in found.items()]
        heads = f"exchanges to 1e-3, {result['exchanges']['n_sentences']:,} sentences | | ÷ memory 10"
        parts.append(markdown(heads, rows))
    return "\n\n".join(parts)
