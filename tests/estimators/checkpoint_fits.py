"""Small fits that keep checkpoints, one for each solver that can, and their minima."""

from __future__ import annotations

from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from dualfield import CRF, StructuredSVM
from dualfield.estimators import Checkpoint

SOLVERS = ("block_dual", "auto", "lbfgs", "sgd", "perceptron", "flow_swap")


@cache
def problem() -> tuple[Any, Any]:
    """Return a dozen short sequences."""
    random = np.random.default_rng(0)
    y = [[str(k) for k in random.integers(0, 3, random.integers(1, 5))] for _ in range(12)]
    return [[[f"w{int(k) + random.integers(0, 2)}"] for k in labels] for labels in y], y


def model(solver: str, **settings: Any) -> Any:
    """Return a model to be fitted by a solver."""
    kind: Any = StructuredSVM if solver == "flow_swap" else CRF
    settings = {"C": 3.0, "tol": 1e-6, "random_state": 0, "max_iter": 60, **settings}
    return kind(solver=solver, **settings)


def begun(solver: str, path: Path, passes: float = 3.0, **settings: Any) -> Any:
    """Write the checkpoint of a fit that was stopped after some passes."""
    kept = Checkpoint(path, every=0.0)
    return model(solver, **settings).fit(
        *problem(), checkpoint=kept, monitor=lambda moment, fitted: moment.passes >= passes
    )


@cache
def minimum(solver: str) -> float:
    """Return a lower bound on the objective of a solver, that of the exact solver of its loss."""
    exact = model("flow_swap" if solver == "flow_swap" else "lbfgs", tol=1e-9, max_iter=100_000)
    exact.fit(*problem())
    return float(exact.objective_ - exact.dual_gap_)


def objective_of(fitted: Any) -> float:
    """Return the objective of a fitted model, from the scores that it gives to all labellings of each sequence."""
    X, y = problem()
    labels = fitted.classes_.tolist()
    total = 0.5 * float(np.square(fitted.parameters_.astype(np.longdouble)).sum())
    node, pairs = fitted.coef_.toarray(), fitted.transitions_
    words = {name: column for column, name in enumerate(fitted.vocabulary_)}
    for xs, ys in zip(X, y, strict=True):
        scores = np.array([node[:, [words[name] for name in item if name in words]].sum(axis=1) for item in xs])
        truth = [labels.index(label) for label in ys]
        value = {
            path: sum(scores[t, k] for t, k in enumerate(path)) + sum(pairs[a, b] for a, b in pairwise(path))
            for path in product(range(len(labels)), repeat=len(xs))
        }
        if isinstance(fitted, StructuredSVM):
            worst = max(v + sum(a != b for a, b in zip(path, truth, strict=True)) for path, v in value.items())
        else:
            worst = float(np.logaddexp.reduce(np.array(list(value.values()))))
        total += 3.0 * (worst - value[tuple(truth)])
    return float(total)
