"""Hidden Markov models by enumeration of all paths of states, and their margins by cvxpy: plain, slow, independent."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np


@dataclass
class Reference:
    """Tables of probabilities, and all questions answered by listing paths."""

    start: np.ndarray
    transition: np.ndarray
    emission: list[np.ndarray]

    @classmethod
    def of(cls, model):
        emission = model.emissionprob_ if isinstance(model.emissionprob_, list) else [model.emissionprob_]
        return cls(model.startprob_, model.transmat_, emission)

    def joint(self, states, symbols):
        """P(states, symbols); symbols are tuples of columns, None for one that is skipped."""
        p = self.start[states[0]]
        for a, b in itertools.pairwise(states):
            p *= self.transition[a, b]
        for state, row in zip(states, symbols, strict=True):
            for table, symbol in zip(self.emission, row, strict=True):
                p *= 1.0 if symbol is None else table[state, symbol]
        return p

    def paths(self, symbols, known=None):
        """All paths that agree with what is known, and their joint probabilities."""
        free = range(len(self.start))
        choices = [free if k is None else [k] for k in (known or [None] * len(symbols))]
        paths = list(itertools.product(*choices))
        return paths, np.array([self.joint(path, symbols) for path in paths])

    def marginals(self, symbols, known=None):
        paths, p = self.paths(symbols, known)
        out = np.zeros((len(symbols), len(self.start)))
        for path, weight in zip(paths, p / p.sum(), strict=True):
            out[np.arange(len(path)), list(path)] += weight
        return out


def features(states, symbols, n_states, n_symbols):
    """How often each entry of the tables is used: start, transition and emission, one after another."""
    start, transition = np.zeros(n_states), np.zeros((n_states, n_states))
    emission = np.zeros((n_states, n_symbols))
    start[states[0]] += 1
    for a, b in itertools.pairwise(states):
        transition[a, b] += 1
    for state, symbol in zip(states, symbols, strict=True):
        emission[state, symbol] += 1
    return np.concatenate([start, transition.ravel(), emission.ravel()])


def rows(n_states, n_symbols):
    """The row of each entry."""
    sizes = [n_states] * (1 + n_states) + [n_symbols] * n_states
    return np.repeat(np.arange(len(sizes)), sizes)


def planes(X, y, n_states, n_symbols, cost=None, hidden=None, unscored=None):
    """For each sequence the slopes and offsets of all paths that compete."""
    cost = 1.0 - np.eye(n_states) if cost is None else cost
    found = []
    for i, (symbols, states) in enumerate(zip(X, y, strict=True)):
        choices = [range(n_states) if hidden is None or hidden[i][t] else [states[t]] for t in range(len(states))]
        slopes, offsets = [], []
        for path in itertools.product(*choices):
            slopes.append(features(path, symbols, n_states, n_symbols) - features(states, symbols, n_states, n_symbols))
            paid = [cost[a, b] for a, b in zip(states, path, strict=True)]
            offsets.append(sum(p for t, p in enumerate(paid) if unscored is None or not unscored[i][t]))
        found.append((np.array(slopes), np.array(offsets)))
    return found


def least(c, n_states, n_symbols):
    """The least of -<c, theta>, at the reference itself: what makes a divergence of it."""
    number = rows(n_states, n_symbols)
    return -c @ np.log(c / np.bincount(number, c)[number])


def minimum(c, found, n_states, n_symbols, eta, weights=None):
    """The minimum of the convex problem, by an interior-point method with exponential cones."""
    import cvxpy as cp

    weights = np.ones(len(found)) if weights is None else weights
    theta, slack = cp.Variable(len(c)), cp.Variable(len(found))
    constraints = [slack >= 0]
    constraints += [A @ theta + b <= slack[k] for k, (A, b) in enumerate(found)]
    number = rows(n_states, n_symbols)
    constraints += [cp.log_sum_exp(theta[np.flatnonzero(number == i)]) <= 0 for i in range(number.max() + 1)]
    problem = cp.Problem(cp.Minimize(-c @ theta + eta * weights @ slack), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return problem.value - least(c, n_states, n_symbols), theta.value


def objective(theta, c, found, eta, n_states, n_symbols, weights=None):
    """The value of given tables: their divergence from the reference, and the margins."""
    weights = np.ones(len(found)) if weights is None else weights
    return -c @ theta - least(c, n_states, n_symbols) + eta * weights @ hinges(theta, found)


def hinges(theta, found):
    """The loss of each sequence."""
    return np.array([max(0.0, (A @ theta + b).max()) for A, b in found])


def theta_of(model):
    """The log-tables of a model of one stream in the order of :func:`features`."""
    return np.log(np.concatenate([model.startprob_, model.transmat_.ravel(), model.emissionprob_.ravel()]))


def reference(X, y, n_states, n_symbols, smoothing, weights=None):
    """Smoothed counts, and smoothed rows."""
    weights = np.ones(len(X)) if weights is None else weights
    counts = sum(w * features(s, o, n_states, n_symbols) for w, s, o in zip(weights, y, X, strict=True)) + smoothing
    number = rows(n_states, n_symbols)
    return counts, counts / np.bincount(number, counts)[number]


def drawn(seed, n_states=2, n_symbols=3, n_sequences=4, length=3):
    """Sequences of random symbols and states, every one of which occurs."""
    rng = np.random.default_rng(seed)
    while True:
        X = [rng.integers(0, n_symbols, length) for _ in range(n_sequences)]
        y = [rng.integers(0, n_states, length) for _ in range(n_sequences)]
        if len(np.unique(X)) == n_symbols and len(np.unique(y)) == n_states:
            return X, y


def simulated(n_sequences=40, seed=0, n_states=3, n_symbols=5, longest=9):
    """Sequences of an HMM, of unequal lengths."""
    rng = np.random.default_rng(seed)
    start = rng.dirichlet(np.ones(n_states))
    transition = rng.dirichlet(0.7 * np.ones(n_states), n_states)
    emission = rng.dirichlet(0.5 * np.ones(n_symbols), n_states)
    X, y = [], []
    for _ in range(n_sequences):
        states = [rng.choice(n_states, p=start)]
        while len(states) < rng.integers(1, longest + 1):
            states.append(rng.choice(n_states, p=transition[states[-1]]))
        y.append(np.array(states))
        X.append(np.array([rng.choice(n_symbols, p=emission[s]) for s in states]))
    return X, y
