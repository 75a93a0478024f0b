"""Problems with latent variables in plain Python: every (y, h) is enumerated."""

from __future__ import annotations

import itertools
from typing import Any

import cvxpy
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def labellings(length: int, labels: list[int], sizes: list[int]) -> list[tuple[tuple[int, int], ...]]:
    """All sequences of (label, sub-state) whose labels are among those given for all nodes."""
    states = [(y, h) for y in labels for h in range(sizes[y])]
    return list(itertools.product(states, repeat=length))


def completions(truth: list[int], sizes: list[int]) -> list[tuple[tuple[int, int], ...]]:
    """All sequences of (label, sub-state) with the true labels."""
    return list(itertools.product(*[[(y, h) for h in range(sizes[y])] for y in truth]))


def chain_features(x: Floats, path: tuple[tuple[int, int], ...], sizes: list[int], ends: bool) -> Floats:
    """Φ of a sequence: columns by state, then transitions by pair of states, then first and last state."""
    first, n = np.cumsum([0, *sizes[:-1]]), sum(sizes)
    states = [int(first[y]) + h for y, h in path]
    node, pairs, both = np.zeros((x.shape[1], n)), np.zeros((n, n)), np.zeros((2, n))
    for at, z in enumerate(states):
        node[:, z] += x[at]
        if at:
            pairs[states[at - 1], z] += 1.0
    both[0, states[0]] += 1.0
    both[1, states[-1]] += 1.0
    return np.concatenate([node.ravel(), pairs.ravel(), both.ravel() if ends else np.zeros(0)])


def hamming(truth: list[int], path: tuple[tuple[int, int], ...]) -> float:
    return float(sum(y != t for t, (y, _) in zip(truth, path, strict=True)))


def latent_objective(w: Floats, C: float, examples: list[tuple[Floats, Floats, Floats]]) -> float:
    """R(w), of (features of all (y, h), their losses, features of the completions of the truth)."""
    parts = [(everything @ w + losses).max() - (own @ w).max() for everything, losses, own in examples]
    return 0.5 * float(w @ w) + C * float(sum(parts))


def best_bound(C: float, examples: list[tuple[Floats, Floats, Floats]]) -> tuple[float, Floats]:
    """The minimum of U by cvxpy: each example brings one row of features of its completed truth."""
    w = cvxpy.Variable(examples[0][0].shape[1])
    slack = cvxpy.Variable(len(examples))
    limits = [slack[i] >= (f - own) @ w + losses for i, (f, losses, own) in enumerate(examples)]
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + C * cvxpy.sum(slack)), limits)
    value: Any = problem.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(value), np.asarray(w.value)


def hidden_rhythm(n: int, seed: int) -> tuple[list[Floats], list[list[int]]]:
    """Two labels that emit the same symbols; in one the hidden sub-states alternate, in the other they stay.

    No symbol speaks for a label, so a model without sub-states learns next to nothing.
    """
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(10, 20))
        label, sub = int(rng.integers(2)), int(rng.integers(2))
        labels, symbols = [], []
        for _ in range(length):
            labels.append(label)
            symbols.append(sub if rng.random() < 0.85 else 1 - sub)
            if rng.random() < 0.12:
                label, sub = 1 - label, int(rng.integers(2))
            elif rng.random() < (0.9 if label == 0 else 0.1):
                sub = 1 - sub
        X.append(np.eye(2)[symbols])
        y.append(labels)
    return X, y


def bags(n: int, seed: int, n_columns: int = 4) -> tuple[list[Floats], list[str], list[int]]:
    """Bags of noise; in those called "yes" one instance, whose place is returned, lies far out."""
    rng = np.random.default_rng(seed)
    X, y, places = [], [], []
    for _ in range(n):
        bag = rng.normal(size=(int(rng.integers(2, 7)), n_columns))
        place = -1
        if rng.random() < 0.5:
            place = int(rng.integers(len(bag)))
            bag[place, :2] += 4.0
        X.append(bag)
        y.append("yes" if place >= 0 else "no")
        places.append(place)
    return X, y, places
