"""Honest probabilities: what evidence, temperature, bagging and posteriors cost beside one fit

Ratios in one run, each of the least of some rounds: to one fit of a `CRF`, or to one pass for a gradient. Evidence,
temperature and bagging are measured on draws of CoNLL-2000 with seven labels and at most 2,000 weights; the diagonal
posterior on all of CoNLL-2000 with the attributes of CRFsuite's tutorial. Products with second derivatives and
covariances of all labels and transitions are of chains of 25 tokens with seven labels. Bagging uses all cores and the
clock; everything else one thread and processor seconds. Memory is that of the posterior above that of the fit.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.crf_data import conll2000
from benchmarks.kernel_logistic_data import markdown
from benchmarks.memory import peak_megabytes
from dualfield import CRF, BaggedTagger, BayesianCRF
from dualfield.data import Batch
from dualfield.losses import Loss
from dualfield.objectives import Examples, Objective
from dualfield.scores import FeatureTable, LinearScores
from dualfield.structures import Chain
from reproductions.bayesian_data import draw
from reproductions.records import Settings

NEEDS_DATA = True
CS = [1.0, 3.0, 10.0, 30.0, 100.0]
LENGTH, N_LABELS = 25, 7


def least(call: Callable[[], Any], rounds: int, clock: Callable[[], float] = time.process_time) -> float:
    """The least seconds of a call."""
    times = []
    for _ in range(rounds):
        began = clock()
        call()
        times.append(clock() - began)
    return min(times)


def row(name: str, seconds: float, of: float, limit: float, beside: str = "fit") -> dict[str, Any]:
    return {"name": name, "seconds": seconds, "of": of, "ratio": seconds / of, "limit": limit, "beside": beside}


def of_fits(n: int, rounds: int) -> list[dict[str, Any]]:
    """Evidence, temperature and bagging on few sentences."""
    data = draw(Settings(), n, 0, 1)
    X, y = data.X, data.y
    model = CRF(C=10.0).fit(X, y)
    fit = least(lambda: CRF(C=10.0).fit(X, y), rounds)
    on_clock = least(lambda: CRF(C=10.0).fit(X, y), rounds, time.perf_counter)
    weights = int(model.score_map_.used.sum())
    what = f"{n} sentences, {weights} weights"
    return [
        row(f"evidence of 5 values of C, {what}", least(lambda: CRF().evidence(X, y, Cs=CS), rounds), fit, 8.0),
        row(f"temperature by 5 folds, {what}", least(lambda: model.calibrate(X, y, cv=5), rounds), fit, 6.0),
        row(
            f"10 bootstrap fits, all cores, {what}",
            least(lambda: BaggedTagger(CRF(C=10.0), n_jobs=-1).fit(X, y), rounds, time.perf_counter),
            on_clock,
            6.0,
        ),
    ]


def of_passes(n: int, rounds: int) -> list[dict[str, Any]]:
    """A product with the second derivatives, and all covariances, of chains with weights that are drawn."""
    rng = np.random.default_rng(0)
    score_map = LinearScores(Chain(N_LABELS), FeatureTable.all(5, N_LABELS))
    batch = Batch.build(rng.normal(size=(n * LENGTH, 5)), lengths=[LENGTH] * n)
    labels = rng.integers(N_LABELS, size=n * LENGTH, dtype=np.int32)
    objective = Objective(score_map, Examples(nodes=batch, labels=labels, weights=np.ones(n)), Loss())
    w, v = (np.where(score_map.used, rng.normal(size=score_map.n_parameters), 0.0) for _ in range(2))
    scores = score_map.scores(w, batch)
    gradient = least(lambda: objective.loss_and_gradient(w), rounds)
    product = least(lambda: objective.hessian_product(w, v), rounds)
    covariance = least(lambda: Chain(N_LABELS).covariance(scores), rounds)
    return [
        row("product with second derivatives", product, gradient, 2.2, "gradient"),
        row("covariances of all parts", covariance, gradient, float(N_LABELS), "gradient"),
    ]


def of_posterior(size: int | None) -> dict[str, Any]:
    """Diagonal VB on all sentences: seconds, and memory above that of the fit."""
    corpus = conll2000(size)
    fit: dict[str, float] = {}

    def timed(name: str, model: Any) -> None:
        began = time.process_time()
        fit[f"{name}_megabytes"] = peak_megabytes(lambda: model.fit(corpus.X, corpus.y))
        fit[name] = time.process_time() - began

    CRF(C=1.0).fit(corpus.X[:20], corpus.y[:20])
    timed("mode", CRF(C=1.0))
    model = BayesianCRF(C=1.0, random_state=0)
    timed("posterior", model)
    found = row("diagonal posterior, CoNLL-2000", fit["posterior"], fit["mode"], 20.0)
    weights = int(model.score_map_.used.sum())
    more = fit["posterior_megabytes"] - fit["mode_megabytes"]
    return {**found, "weights": weights, "megabytes": more, "converged": bool(model.converged_)}


def run(size: int | None = None, rounds: int = 3) -> dict[str, Any]:
    few = of_fits(20, rounds) + of_fits(50, rounds)
    return {"rows": [*few, *of_passes(200, 3 * rounds), of_posterior(size)]}


def table(result: dict[str, Any]) -> str:
    rows = [
        [one["name"], f"{one['seconds']:.3g}", f"{one['of']:.3g}", one["beside"], f"{one['ratio']:.1f}", one["limit"]]
        for one in result["rows"]
    ]
    last = result["rows"][-1]
    note = (
        f"The posterior has {last['weights']:,} weights, takes {last['megabytes']:.0f} MB more than the fit (aim 400) "
        f"and {'converged' if last['converged'] else 'did not converge'}."
    )
    return markdown("what | s | beside, s | which is one | ratio | aim", rows) + "\n\n" + note


if __name__ == "__main__":  # the number of sentences for the posterior, to try it out
    print(table(run(int(sys.argv[1]) if len(sys.argv) > 1 else None)))
