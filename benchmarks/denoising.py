"""Binary pictures with noise: couplings trained by maximum flow

Generated pictures of 100 × 100 pixels, discs, holes and strokes, with Gaussian noise as strong as the contrast (σ = 1).
Four to train on, two to choose C or the coupling on, four to test on; four draws of all of it. A structural SVM is
trained on exact best labellings by maximum flow, a CRF on tree-reweighted bounds, both to a relative gap of 1e-2, with
C = 0.01 or 1. "Best constant" has the log-odds of single pixels, by logistic regression with balanced classes, and one
coupling between neighbours, out of thirteen. Best labellings are found by maximum flow, all of them exact; iterated
conditional modes (ICM) and Gibbs sampling (100 sweeps, of which 20 are discarded) start from single pixels. Seconds are
of CPU, of one fit at the chosen C.

Below: seconds of CPU for the best labelling of one picture, with the weights of the SVM of the first draw, by maximum
flow and by tree-reweighted sweeps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.kernel_logistic_data import markdown
from dualfield import CRF, StructuredSVM
from dualfield.structures import Graph, Scores, grid_edges

SIZE, N_DRAWS, N_TRAIN, N_HELD_BACK, N_TEST = 100, 4, 4, 2, 4
TOLERANCE, COSTS = 1e-2, (0.01, 1.0)
COUPLINGS = np.linspace(0.3, 1.5, 13)
SIZES = {20: 5, 50: 5, 100: 3, 200: 1}
N_SWEEPS, N_DISCARDED = 100, 20
FLOW = Graph(2, 2, inference="max_flow")
Pictures = list[Any]


def picture(rng: np.random.Generator, size: int) -> Any:
    """Discs, every third one a hole, and strokes."""
    rows, columns = np.indices((size, size))
    truth = np.zeros((size, size), dtype=int)
    for k in range(12):
        (row, column), radius = rng.uniform(0, size, 2), rng.uniform(0.04, 0.16) * size
        truth[(rows - row) ** 2 + (columns - column) ** 2 <= radius**2] = int(k % 3 != 2)
    for _ in range(6):
        (row, column), angle = rng.uniform(0, size, 2), rng.uniform(0, np.pi)
        length, width = rng.uniform(0.2, 0.5) * size, rng.uniform(0.01, 0.025) * size
        along = (rows - row) * np.sin(angle) + (columns - column) * np.cos(angle)
        across = (rows - row) * np.cos(angle) - (columns - column) * np.sin(angle)
        truth[(np.abs(along) <= length) & (np.abs(across) <= width)] = 1
    return truth


def draw(rng: np.random.Generator, n: int, size: int = SIZE) -> tuple[Pictures, Pictures]:
    """Noisy pictures with a constant as second channel, and the true ones."""
    truth = [picture(rng, size) for _ in range(n)]
    noisy = [one + rng.normal(size=one.shape) for one in truth]
    return [np.dstack([one, np.ones_like(one)]) for one in noisy], truth


def flat(pictures: Pictures) -> Any:
    return np.concatenate([one.reshape(-1, *one.shape[2:]) for one in pictures])


def error(labels: Any, y: Pictures) -> float:
    return float(np.mean(np.asarray(labels) != flat(y)))


def best_of(candidates: list[Any], held_back_error: Callable[[Any], float]) -> Any:
    return candidates[int(np.argmin([held_back_error(one) for one in candidates]))]


def conditional_gain(node: Any, tables: Any, labels: Any) -> Any:
    """What label 1 scores above label 0 at every pixel, given its neighbours; labels of shape (height, width)."""
    gain = node[..., 1] - node[..., 0]
    right, down = tables
    gain[:, :-1] += (right[1] - right[0])[labels[:, 1:]]
    gain[:, 1:] += (right[:, 1] - right[:, 0])[labels[:, :-1]]
    gain[:-1] += (down[1] - down[0])[labels[1:]]
    gain[1:] += (down[:, 1] - down[:, 0])[labels[:-1]]
    return gain


def baselines(scores: Scores, rng: np.random.Generator) -> tuple[Any, Any]:
    """Labels by iterated conditional modes, and the more frequent label in Gibbs samples, of all pictures."""
    tables = np.asarray(scores.transition).reshape(2, 2, 2)
    parity = np.indices((SIZE, SIZE)).sum(axis=0) % 2
    modes, frequent = [], []
    for node in scores.node.reshape(-1, SIZE, SIZE, 2):
        labels = node.argmax(axis=2)
        while True:
            before = labels.copy()
            for colour in (0, 1):
                labels = np.where(parity == colour, conditional_gain(node, tables, labels) > 0, labels).astype(int)
            if np.array_equal(before, labels):
                break
        modes.append(labels.ravel())
        labels, ones = node.argmax(axis=2), np.zeros((SIZE, SIZE))
        for sweep in range(N_SWEEPS):
            for colour in (0, 1):
                chance = 1.0 / (1.0 + np.exp(-conditional_gain(node, tables, labels)))
                labels = np.where(parity == colour, rng.random((SIZE, SIZE)) < chance, labels).astype(int)
            ones += labels if sweep >= N_DISCARDED else 0
        frequent.append((ones > (N_SWEEPS - N_DISCARDED) / 2).ravel())
    return np.concatenate(modes), np.concatenate(frequent)


def constant_coupling(alone: Any, coupling: float, X: Pictures) -> Any:
    """The best labelling with the scores of single pixels and one coupling."""
    edges, types = grid_edges(SIZE, SIZE)
    graphs = [(one.reshape(-1, 2), edges, types) for one in X]
    shape = FLOW.open(graphs).connect(SIZE * SIZE * np.arange(len(X) + 1))
    tables = np.tile(coupling * np.eye(2), (2, 1, 1))
    return FLOW.argmax(Scores(alone.decision_scores(flat(X)).node, transition=tables, shape=shape))


def fit(model: Any, X: Pictures, y: Pictures) -> tuple[Any, float]:
    begun = time.process_time()
    model.fit(X, y)
    return model, time.process_time() - begun


def measure(seed: int) -> tuple[dict[str, Any], Any]:
    """Errors and seconds of one draw, and the structural SVM."""
    rng = np.random.default_rng(seed)
    train, (X, y), (X_test, y_test) = (draw(rng, n) for n in (N_TRAIN, N_HELD_BACK, N_TEST))
    alone = CRF("single", C=1.0).fit(flat(train[0]), flat(train[1]))
    # How frequent the labels are must not count once for every pixel.
    ratios = CRF("single", C=1.0, class_weight="balanced").fit(flat(train[0]), flat(train[1]))
    coupling = best_of(list(COUPLINGS), lambda one: error(constant_coupling(ratios, one, X), y))
    svm, svm_seconds = best_of(
        [fit(StructuredSVM(Graph(inference="max_flow"), C=C, tol=TOLERANCE), *train) for C in COSTS],
        lambda one: error(flat(one[0].predict(X)), y),
    )
    crf, crf_seconds = best_of(
        [fit(CRF(Graph(inference="trw"), C=C, tol=TOLERANCE), *train) for C in COSTS],
        lambda one: error(FLOW.argmax(one[0].decision_scores(X)), y),
    )
    scores = crf.decision_scores(X_test)
    modes, frequent = baselines(scores, rng)
    found, bounds = svm.predict(X_test, return_bound=True)
    best = FLOW.bounded_argmax(scores)
    assert bounds.exact.all()
    assert best.bounds.exact.all()
    errors = {
        "single pixels": error(alone.predict(flat(X_test)), y_test),
        "best constant": error(constant_coupling(ratios, coupling, X_test), y_test),
        "svm": error(flat(found), y_test),
        "crf": error(best.labels, y_test),
        "crf, beliefs": error(flat([one.argmax(axis=2) for one in crf.beliefs(X_test)]), y_test),
        "crf, icm": error(modes, y_test),
        "crf, gibbs": error(frequent, y_test),
    }
    return {
        "errors": errors,
        "coupling": float(coupling),
        "svm": {"C": svm.C, "seconds": svm_seconds, "relaxation": svm.relaxation_, "passes": svm.n_iter_},
        "crf": {"C": crf.C, "seconds": crf_seconds, "relaxation": crf.relaxation_, "passes": crf.n_iter_},
    }, svm


def times(svm: Any, size: int, n: int) -> dict[str, Any]:
    """Seconds for one picture, and the largest difference of the bounds."""
    scores = svm.decision_scores(draw(np.random.default_rng(size), n, size)[0])
    found, seconds = {}, {}
    for name in ("max_flow", "trw"):
        begun = time.process_time()
        found[name] = Graph(2, 2, inference=name).bounded_argmax(scores).bounds
        seconds[name] = (time.process_time() - begun) / n
    apart = float(np.abs(found["max_flow"].bound - found["trw"].bound).max())
    exact = {name: float(one.exact.mean()) for name, one in found.items()}
    return {"size": size, "seconds": seconds, "exact": exact, "bounds_apart": apart}


def run() -> dict[str, Any]:
    draws = [measure(seed) for seed in range(N_DRAWS)]
    return {
        "draws": [one for one, _ in draws],
        "times": [times(draws[0][1], size, n) for size, n in SIZES.items()],
    }


NAMES = {
    "single pixels": "single pixels, logistic regression",
    "best constant": "best constant coupling, best labelling",
    "svm": "structural SVM, best labelling",
    "crf": "CRF, best labelling",
    "crf, beliefs": "CRF, larger belief of each pixel",
    "crf, icm": "CRF, ICM",
    "crf, gibbs": "CRF, Gibbs sampling",
}


def table(result: dict[str, Any]) -> str:
    draws = result["draws"]
    rows = []
    for key, name in NAMES.items():
        found = 100.0 * np.array([one["errors"][key] for one in draws])
        deviation = found.std(ddof=1) / np.sqrt(len(found))
        fits = [one[key]["seconds"] for one in draws] if key in ("svm", "crf") else []
        rows.append([name, f"{found.mean():.2f} ± {deviation:.2f} %", f"{np.mean(fits):.1f}" if fits else ""])
    first = markdown("model, prediction | wrong pixels | s of training", rows)
    rows = [
        [
            f"{one['size']} × {one['size']}",
            *(f"{one['seconds'][name]:.4f}" for name in ("max_flow", "trw")),
            f"{one['seconds']['trw'] / one['seconds']['max_flow']:.1f}",
            f"{one['bounds_apart']:.0e}",
        ]
        for one in result["times"]
    ]
    return first + "\n\n" + markdown("picture | maximum flow, s | sweeps, s | × sweeps | bounds differ by", rows)
