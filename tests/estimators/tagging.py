"""Small tagging problems, and what a CRF minimises on them, read from the raw data in plain Python."""

from __future__ import annotations

from functools import cache

import numpy as np

from tests.reference.chain_crf import ChainCRF, Example, Objective

WORDS = ["a", "dog", "cat", "old", "runs", "and", "sleeps", "the"]


@cache
def _sentences(n: int, longest: int, seed: int):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = [WORDS[k] for k in rng.integers(0, len(WORDS), rng.integers(1, longest + 1))]
        labels = []
        for word in words:
            inside = bool(labels) and labels[-1] != "O"
            noun = word in ("dog", "cat", "old") or (word in ("a", "the") and rng.random() < 0.7)
            if rng.random() < 0.1:
                noun = not noun
            labels.append(("I-N" if inside and rng.random() < 0.7 else "B-N") if noun else "O")
        X.append([["w=" + w, "last=" + w[-1], *(["first"] if t == 0 else [])] for t, w in enumerate(words)])
        y.append(labels)
    return X, y


def sentences(n: int = 30, longest: int = 8, seed: int = 0):
    """Sequences of lists of attributes, and their labels B-N, I-N and O, which follow the rules of BIO."""
    X, y = _sentences(n, longest, seed)
    return [[list(item) for item in xs] for xs in X], [list(ys) for ys in y]


def vocabulary(X) -> list[str]:
    """Attributes in order of first appearance."""
    return list(dict.fromkeys(name for xs in X for item in xs for name in item))


def matrices(X, names: list[str]) -> list[np.ndarray]:
    """The same as one dense matrix for each sequence."""
    return [np.array([[item.count(name) for name in names] for item in xs], float).reshape(-1, len(names)) for xs in X]


def objective_of(
    X,
    y,
    *,
    C=1.0,
    l1_ratio=0.0,
    features="observed",
    min_freq=0,
    pair_prefix=None,
    start_stop=False,
    order=1,
    allowed=None,
    weights=None,
    cost=None,
    temperature=1.0,
) -> Objective:
    """The objective of a CRF with these settings. ``y`` may hold sets of labels, or None for all of them."""
    names = vocabulary(X)
    open_sets = [[v if isinstance(v, set) else set() if v is None else {v} for v in ys] for ys in y]
    labels = sorted(set().union(*(choices for ys in open_sets for choices in ys)))
    code = {label: k for k, label in enumerate(labels)}
    coded = [[{code[v] for v in (c or labels)} for c in ys] for ys in open_sets]
    truth = [[next(iter(c)) if len(c) == 1 else c for c in ys] for ys in coded]
    weights = np.ones(len(X)) if weights is None else weights
    pairs = [i for i, name in enumerate(names) if pair_prefix is not None and name.startswith(pair_prefix)]
    rows = matrices(X, names)
    model = ChainCRF(len(labels), len(names), order, len(pairs), allowed, cost=cost, temperature=temperature)
    examples = [
        Example(x, true, x[:, pairs] if pairs else None, C * float(weight))
        for x, true, weight in zip(rows, truth, weights, strict=True)
    ]
    model.exists = np.ones(model.size)
    node, window, start, stop, pair = model.blocks(model.exists)
    start[:] = stop[:] = float(start_stop)
    if features == "observed":
        node[:], window[:], pair[:] = _observed(model, examples, max(min_freq, 1))
    return Objective(model, examples, l1_ratio)


def _observed(model: ChainCRF, examples: list[Example], min_freq: int) -> list[np.ndarray]:
    """What occurs often enough where labels are known; transitions need to occur once."""
    counts = np.zeros(model.size)
    node, window, _, _, pair = model.blocks(counts)
    for example in examples:
        for t, label in enumerate(example.truth):
            if isinstance(label, set):
                continue
            node[:, label] += example.x[t] != 0
            labels = tuple(example.truth[max(0, t - model.order) : t + 1])
            if t == 0 or any(isinstance(label, set) for label in labels):
                continue
            window[model.places[labels]] += 1
            if example.z is not None:
                pair[:, model.places[labels]] += example.z[t] != 0
    return [node >= min_freq, window >= 1, pair >= min_freq]


def parameters_of(model, objective: Objective) -> np.ndarray:
    """The weights of a fitted CRF in the order of the enumeration."""
    out = np.zeros(objective.model.size)
    node, window, start, stop, pair = objective.model.blocks(out)
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    node[:] = coef.T
    listed = {tuple(k for k in row if k >= 0): at for at, row in enumerate(model.structure_.cliques.tolist())}
    at = [listed[w] for w in objective.model.windows]
    window[:] = model.transitions_.ravel()[at]
    start[:], stop[:] = model.start_, model.stop_
    if pair.size:
        table, weights = model.score_map_.pair, model.score_map_.unpack(model.parameters_).pair
        whole = np.zeros((table.n_columns, table.n_outputs))
        whole[table.columns, table.outputs] = weights
        pair[:] = whole[np.diff(table.indptr) > 0][:, at] if len(pair) < table.n_columns else whole[:, at]
    return out
