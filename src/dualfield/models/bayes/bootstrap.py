"""Fits to draws of the training examples with replacement."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.engines.shared_tasks import call_all
from dualfield.models.training_data import TrainingData
from dualfield.solvers import Solution

__all__ = ["fit_bootstrap"]


def fit_bootstrap(
    estimator: Any, data: TrainingData, n_fits: int, seed: int, n_jobs: int | None = None
) -> list[Solution[Floats]]:
    """Fit an estimator to draws of as many examples as there are; how often each is drawn is its weight.

    Parameters
    ----------
    estimator : CRF
        Whose parameters all fits have; it is not changed.
    data : TrainingData
        Read for this estimator.
    n_fits : int
        How many draws.
    seed : int
        Draws depend on it and on their number only.
    n_jobs : int, default=None
        Fits at the same time, in threads unless a joblib context has other workers.

    Returns
    -------
    list of Solution
        One for each draw.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.models.bayes.bootstrap import fit_bootstrap
    >>> model = CRF()
    >>> data = model._read([[["a"], ["b"]], [["b"]]], [["x", "y"], ["y"]], None, None)
    >>> len(fit_bootstrap(model, data, 3, 0))
    3
    """
    from sklearn.base import clone

    base = clone(estimator).set_params(n_jobs=1, verbose=0, warm_start=False)
    return call_all(_fit_draw, (base, data, seed), [(at,) for at in range(n_fits)], n_jobs)


def _fit_draw(shared: tuple[Any, TrainingData, int], at: int) -> Solution[Floats]:
    """Fit to one of the draws."""
    base, data, seed = shared
    rng, n = np.random.default_rng([seed, at]), data.nodes.n_examples
    counts = np.bincount(rng.integers(n, size=n), minlength=n)
    chosen = np.flatnonzero(counts)
    model = copy(base)
    model.random_state = deepcopy(base.random_state)  # of a generator each fit draws the same numbers
    found: Solution[Floats] = model._fit_data(taken(data, chosen, counts), None)
    return found


def taken(data: TrainingData, chosen: Any, counts: Any) -> TrainingData:
    """Return some examples of training data, which weigh as often as they are counted; features stay what they are."""
    nodes = data.nodes[chosen]
    rows = np.flatnonzero(np.isin(np.repeat(np.arange(data.nodes.n_examples), data.nodes.lengths), chosen))
    return replace(
        data,
        nodes=nodes,
        pairs=None if data.pairs is None else data.pairs[chosen],
        codes=data.codes[rows],
        allowed=None if data.allowed is None else data.allowed[rows],
        weights=data.weights[chosen] * counts[chosen],
    )
