"""Long chains of draws from posteriors, the references of the tests: ``python -m tests.reference.hmc`` makes the file.

A small problem, drawn from a CRF (three labels, three columns, five sequences of length 5), and, where DUALFIELD_DATA
names the folder of data sets, twenty sentences of CoNLL-2000 with seven labels.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np

from dualfield import CRF
from dualfield.solvers.bayes.hamiltonian import draw_hamiltonian
from dualfield.solvers.bayes.posterior import Posterior

FILE = Path(__file__).with_name("hmc.npz")
SMALL_CS, TEXT_CS = (3.0, 30.0), (1.0, 10.0, 100.0)
N_SMALL, N_TEXT, N_TEST = 12_000, 2000, 150


def marginals(posterior, points, batch):
    """Mean probabilities of labels over draws of the weights."""
    score_map, total = posterior.objective.score_map, 0.0
    for point in points:
        scores = score_map.scores(posterior.whole(point).copy(), batch)
        total = total + score_map.structure.marginals(scores).node / len(points)
    return total


def text(C):
    """The posterior of twenty sentences, its mode, the fitted CRF and the data."""
    from reproductions.bayesian_data import draw
    from reproductions.records import Settings

    data = draw(Settings(), 20, 0, N_TEST)
    model = CRF(C=C, tol=1e-8).fit(data.X, data.y)
    posterior = Posterior(model._objective(model._read(data.X, data.y, None, None)), C)
    return posterior, model.parameters_[posterior.places], model, data


def main():
    """Draw, and write the file."""
    from tests.solvers.test_bayes import new_sequences, problem

    found, say = {}, partial(print, flush=True)
    for C in SMALL_CS:
        posterior, mode = problem(C)
        drawn = draw_hamiltonian(posterior, mode, N_SMALL, seed=1)
        say(f"small, C = {C:g}: R-hat {drawn.r_hat:.3f}, acceptance {drawn.acceptance:.2f}")
        found[f"small_{C:g}_mean"], found[f"small_{C:g}_std"] = drawn.draws.mean(axis=0), drawn.draws.std(axis=0)
        found[f"small_{C:g}_marginals"] = marginals(posterior, drawn.draws[::4], new_sequences())
        found[f"small_{C:g}_r_hat"] = np.array(drawn.r_hat)
    for C in TEXT_CS if os.environ.get("DUALFIELD_DATA") else ():
        posterior, mode, model, data = text(C)
        drawn = draw_hamiltonian(posterior, mode, N_TEXT, seed=1)
        say(f"text, C = {C:g}: R-hat {drawn.r_hat:.3f}, acceptance {drawn.acceptance:.2f}")
        rows = 0.0
        for point in drawn.draws[::4]:
            whole = posterior.whole(point).copy()
            model._model = model.model_.with_parameters(whole)
            rows = rows + np.concatenate(model.predict_proba(data.X_test)) / len(drawn.draws[::4])
        found[f"text_{C:g}_marginals"] = np.asarray(rows, dtype=np.float32)
        found[f"text_{C:g}_r_hat"] = np.array(drawn.r_hat)
    np.savez_compressed(FILE, **found)


if __name__ == "__main__":
    main()
