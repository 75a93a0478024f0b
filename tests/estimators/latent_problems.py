"""Small problems with sub-states, with every (y, h) at hand."""

from __future__ import annotations

import numpy as np

from dualfield import LatentChain, StructuredSVM
from dualfield.models.latent.data import StateData
from tests.reference.latent import chain_features, completions, hamming, labellings


def tiny(seed, sizes=(2, 2), lengths=(3, 2, 3, 1), n_columns=2, C=1.0, ends=True):
    """A problem of the library, and for each example (all features, losses, features of completions)."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, n_columns)) for n in lengths]
    y = [rng.integers(len(sizes), size=n).tolist() for n in lengths]
    y[0][: len(sizes)] = list(range(len(sizes)))[: len(y[0])]  # every label occurs
    base = StructuredSVM(C=C, features="all", start_stop=ends)
    data = StateData.read(base, LatentChain(list(sizes)), X, y, None, None, hinge=True)
    listed = []
    for x, truth in zip(X, y, strict=True):
        paths = labellings(len(truth), list(range(len(sizes))), list(sizes))
        everything = np.array([chain_features(x, path, list(sizes), ends) for path in paths])
        losses = np.array([hamming(truth, path) for path in paths])
        own = np.array([chain_features(x, path, list(sizes), ends) for path in completions(truth, list(sizes))])
        listed.append((everything, losses, own))
    return data, listed


def packed(data, flat):
    """Weights of the library from weights in the order of the reference."""
    n, columns = data.space.n_states, data.data.nodes.n_columns
    node, pairs, ends = np.split(np.asarray(flat, dtype=np.float64), [n * columns, n * columns + n * n])
    both = np.split(ends, 2) if len(ends) else (None, None)
    return data.score_map.pack(node, pairs, *both)


def flattened(data, w):
    """The way back."""
    parts = data.score_map.unpack(w)
    ends = [parts.start, parts.stop] if data.score_map.with_ends else []
    return np.concatenate([parts.node, parts.cliques, *ends])


def random_weights(data, seed):
    size = flattened(data, np.zeros(data.score_map.n_parameters)).size
    return np.random.default_rng(seed).normal(size=size)
