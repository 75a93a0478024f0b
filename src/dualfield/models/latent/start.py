"""Where training with hidden sub-states begins."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.models.latent.data import StateData
from dualfield.objectives.latent_chain import StateProblem, States
from dualfield.structures import Scores

_STEPS = 15
_SMOOTHING = 0.1  # added to all counts


def hard_em(problem: StateProblem, random_state: Any) -> States:
    """Return the states of a hidden Markov model over sub-states, trained by hard EM with the labels held fixed.

    Features of a node are drawn from its state: as counts if none is negative, else with normal distributions of common
    variances. The model is only a start: it sees no cost and no other labels.
    """
    states, chain = problem.start(random_state), problem.score_map.structure
    if chain.no_pairs is not None:
        raise ValueError(f"init='em' {chain.no_pairs} Use init='random'.")
    offsets, n = problem.nodes.offsets, chain.n_labels
    rows = problem.nodes.to_csr()
    first = offsets[:-1][problem.nodes.lengths > 0]
    late = np.setdiff1d(np.arange(len(states)), first)
    for _ in range(_STEPS):
        node = _emissions(rows, states, n)
        pairs = np.bincount(states[late - 1].astype(np.int64) * n + states[late], minlength=n * n) + _SMOOTHING
        transition = np.log(pairs.reshape(n, n))
        transition -= np.log(np.exp(transition).sum(axis=1, keepdims=True))
        begin = np.bincount(states[first], minlength=n) + _SMOOTHING
        scores = Scores(
            np.where(problem.allowed, node, -np.inf), offsets, transition, start=np.log(begin / begin.sum())
        )
        found = chain.argmax(scores, n_jobs=problem.n_threads)
        if np.array_equal(found, states):
            break
        states = found
    return states


def given_states(owner: str, data: StateData, hidden: Any) -> States:
    """Return the states of sub-states that the user gave, or raise an error that says which one cannot be."""
    codes = data.data.codes
    each = np.asarray(hidden if data.single else np.concatenate([np.asarray(one).ravel() for one in hidden]))
    if each.shape != codes.shape or not np.issubdtype(each.dtype, np.integer):
        raise ValueError(
            f"The 'init' parameter of {owner} must have an int for each of the {len(codes)} nodes. "
            f"Got shape {each.shape} and dtype {each.dtype} instead."
        )
    if data.data.allowed is not None:
        return _given_labels(owner, data, each)
    most = data.space.sizes[codes]
    outside = np.flatnonzero((each < 0) | (each >= most))
    if outside.size:
        at = int(outside[0])
        raise ValueError(
            f"The 'init' parameter of {owner} must have sub-states of the true labels. Node {at} has {each[at]}; its "
            f"label has sub-states 0 to {most[at] - 1}."
        )
    return data.space.states(codes, each)


def _given_labels(owner: str, data: StateData, each: NDArray[Any]) -> States:
    """Return states that the user gave, of labels that are known only in part."""
    allowed, n = data.problem(1.0, 1).allowed, data.space.n_states
    wrong = (each < 0) | (each >= n) | ~allowed[np.arange(len(each)), np.clip(each, 0, n - 1)]
    if wrong.any():
        at = int(np.argmax(wrong))
        raise ValueError(
            f"The 'init' parameter of {owner} must have states that agree with y, where that is known only in part. "
            f"Node {at} has {each[at]}, which is not among {np.flatnonzero(allowed[at]).tolist()}."
        )
    states = each.astype(np.int32)
    structure, shape = data.score_map.structure, data.data.nodes.shape
    scores = structure.score(Scores(np.zeros((len(each), n)), shape=shape), states)
    if not np.isfinite(scores).all():
        at = int(np.argmin(np.isfinite(scores)))
        raise ValueError(f"The 'init' parameter of {owner} must have labellings that are allowed. Example {at} is not.")
    return states


def _emissions(rows: scipy.sparse.csr_array, states: States, n: int) -> Floats:
    """Return the log-probability of each row in each state, up to a constant for each row."""
    chosen = scipy.sparse.csr_array((np.ones(len(states)), (states, np.arange(len(states)))), shape=(n, len(states)))
    sums = (chosen @ rows).toarray()
    if not rows.nnz or rows.data.min() >= 0.0:
        counts = sums + _SMOOTHING
        return np.asarray(rows @ np.log(counts / counts.sum(axis=1, keepdims=True)).T)
    sizes = np.bincount(states, minlength=n)[:, None]
    means = sums / np.maximum(sizes, 1)
    squares = np.asarray(rows.multiply(rows).sum(axis=0)).ravel()
    variances = np.maximum(
        (squares - (sizes * means**2).sum(axis=0)) / len(states), 1e-12 + 1e-3 * squares / len(states)
    )
    fit = rows @ (means / variances).T - 0.5 * (means**2 / variances).sum(axis=1)
    return np.asarray(fit + np.log(np.bincount(states, minlength=n) + _SMOOTHING))
