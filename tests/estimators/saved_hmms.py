"""Fitted HMMs of every kind that can be saved."""

from __future__ import annotations

import warnings

import numpy as np

from dualfield import DiscriminativeHMM
from dualfield.solvers import Simplicial
from tests.estimators.hmm_reference import simulated

X, Y = simulated()
WORDS = np.array(["the", "dog", "Rex", "42", "größer\0"])
TEXTS = [[str(WORDS[k]) for k in x] for x in X]
FOREIGN = [["the", "Fido", "jumps", "7", "dog"], ["größer\0", "ran"]]
MODELS = {
    "counted": (lambda: DiscriminativeHMM(0.0), X),
    "zeros": (lambda: DiscriminativeHMM(0.0, smoothing=0.0), X),
    "trained": (lambda: DiscriminativeHMM(0.1, tol=0.05, solver=Simplicial(n_blocks=5)), X),
    "words": (lambda: DiscriminativeHMM(0.1, tol=0.05), TEXTS),
    "shapes": (lambda: DiscriminativeHMM(0.0, min_count=30, rare="shape", unknown="mass"), TEXTS),
    "rare": (lambda: DiscriminativeHMM(0.0, min_count=30, prior="count"), X),
    "not converged": (lambda: DiscriminativeHMM(1.0, tol=1e-9, max_iter=2), X),
    "given": (lambda: DiscriminativeHMM(0.0, prior={"transition": np.ones((3, 3))}, loss=1.0 - np.eye(3)), X),
    "streams": (lambda: DiscriminativeHMM(0.0, smoothing={"emission": [0.1, 1.0]}),
                [list(zip(a, b.tolist(), strict=True)) for a, b in zip(TEXTS, X, strict=True)]),
    "partly labelled": (lambda: DiscriminativeHMM(0.05, tol=0.05), X),
}  # fmt: skip


def fitted(name):
    model, data = MODELS[name]
    y = [y.tolist() for y in Y] if name in ("words", "shapes") else Y
    if name == "partly labelled":
        y = [[None if t == 1 else int(k) for t, k in enumerate(states)] for states in Y]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model().fit(data, y), data
