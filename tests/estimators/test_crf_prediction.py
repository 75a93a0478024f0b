"""What a fitted CRF can be asked, against enumeration of all labellings with its weights."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from dualfield import CRF
from dualfield.structures import Chain
from tests.estimators.tagging import matrices, objective_of, parameters_of, sentences, vocabulary
from tests.reference.chain_crf import Example, marginals

X, Y = sentences(40, longest=5)
TEST, TRUTH = sentences(15, longest=4, seed=9)
VARIANTS = {
    "plain": ({}, {}),
    "ends": ({"start_stop": True, "features": "all"}, {"start_stop": True, "features": "all"}),
    "warm": ({"temperature": 2.5}, {"temperature": 2.5}),
    "order 2": ({"structure": Chain(order=2)}, {"order": 2}),
    "pairs": ({"pair_features": True}, {"pair_prefix": ""}),
    "dense pairs": ({"pair_features": ["w="], "features": "all"}, {"pair_prefix": "w=", "features": "all"}),
}


@pytest.fixture(params=VARIANTS, scope="module")
def fitted(request):
    """A model, and for each test sequence all labellings with their probability, best first."""
    settings, renamed = VARIANTS[request.param]
    model = CRF(C=3.0, tol=1e-3, **settings).fit(X, Y)
    objective = objective_of(X, Y, **renamed)
    w, names = parameters_of(model, objective), vocabulary(X)
    pairs = [i for i, name in enumerate(names) if name.startswith(renamed.get("pair_prefix", "\0"))]
    examples = [Example(x, [], x[:, pairs] if pairs else None) for x in matrices(TEST, names)]
    ranked = []
    for example in examples:
        everything = objective.model.labellings(len(example.x))
        scores = np.array([objective.model.features(example, y) @ w for y in everything])
        p = np.exp((scores - scores.max()) / model.temperature)
        order = np.argsort(-p, kind="stable")
        ranked.append([([str(model.classes_[k]) for k in everything[i]], p[i] / p.sum()) for i in order])
    return model, ranked, [marginals(objective.model, w, example) for example in examples]


def test_predict(fitted):
    model, ranked, _ = fitted
    for got, everything in zip(model.predict(TEST), ranked, strict=True):
        p = {tuple(labels): p for labels, p in everything}
        assert p[tuple(got)] == pytest.approx(everything[0][1], rel=1e-12)
    assert model.predict_single(TEST[0]) == model.predict(TEST)[0]


def test_predict_proba(fitted):
    model, _, wanted = fitted
    got = model.predict_proba(TEST)
    for rows, (want, _) in zip(got, wanted, strict=True):
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_allclose(rows, want, atol=1e-10)


def test_pairwise(fitted):
    model, _, wanted = fitted
    if model.structure_.order > 1:
        with pytest.raises(ValueError, match=r"pairwise needs a chain of order 1\. This one has order 2"):
            model.predict_proba(TEST, pairwise=True)
        return
    nodes, pairs = model.predict_proba(TEST, pairwise=True)
    for rows, edges, (_, want) in zip(nodes, pairs, wanted, strict=True):
        assert edges.shape == (len(rows) - 1, 3, 3)
        np.testing.assert_allclose(edges, want, atol=1e-10)
        np.testing.assert_allclose(edges.sum(axis=2), rows[:-1], atol=1e-10)
        np.testing.assert_allclose(edges.sum(axis=1), rows[1:], atol=1e-10)


def test_marginals_as_dicts(fitted):
    model, _, _ = fitted
    arrays, dicts = model.predict_proba(TEST), model.predict_marginals(TEST)
    for rows, items in zip(arrays, dicts, strict=True):
        for row, item in zip(rows, items, strict=True):
            assert item == dict(zip(["B-N", "I-N", "O"], row.tolist(), strict=True))
    assert model.predict_marginals_single(TEST[1]) == dicts[1]


def test_score_sequences(fitted):
    model, ranked, _ = fitted
    some = [everything[len(everything) // 3] for everything in ranked]
    got = model.score_sequences(TEST, [labels for labels, _ in some])
    np.testing.assert_allclose(got, np.log([p for _, p in some]), atol=1e-9)
    assert np.all(model.score_sequences(TEST, model.predict(TEST)) >= got)


def test_k_best(fitted):
    model, ranked, _ = fitted
    got = model.k_best(TEST, 5)
    assert [labels for (labels, _), *_ in got] == model.predict(TEST)
    for mine, everything in zip(got, ranked, strict=True):
        assert len(mine) == min(5, len(everything))
        np.testing.assert_allclose([p for _, p in mine], [p for _, p in everything[: len(mine)]], atol=1e-10)
        known = {tuple(labels): p for labels, p in everything}
        assert len({tuple(labels) for labels, _ in mine}) == len(mine)
        for labels, p in mine:
            assert known[tuple(labels)] == pytest.approx(p, abs=1e-10)
    whole = model.k_best(TEST[:3], 10_000)
    for mine, everything in zip(whole, ranked, strict=False):
        assert len(mine) == len(everything)
        assert sum(p for _, p in mine) == pytest.approx(1.0)


def test_sample(fitted):
    model, ranked, _ = fitted
    n = 4000
    draws = model.sample(TEST[:3], n, random_state=0)
    for mine, everything in zip(draws, ranked, strict=False):
        counts = Counter(map(tuple, mine))
        for labels, p in everything:
            assert abs(counts[tuple(labels)] / n - p) < 5 * np.sqrt(p * (1 - p) / n) + 1e-3
    assert model.sample(TEST[:3], 7, random_state=3) == model.sample(TEST[:3], 7, random_state=3)


def test_decision_scores(fitted):
    model, ranked, _ = fitted
    scores = model.decision_scores(TEST)
    assert scores.node.shape == (sum(map(len, TEST)), 3)
    codes = model.labels_.encode([everything[0][0] for everything in ranked], scores.offsets)
    best = model.structure_.log_partition(scores, temperature=0)
    np.testing.assert_allclose(model.structure_.score(scores, codes), best, atol=1e-10)


def test_score_is_the_share_of_right_labels():
    model = CRF().fit(X, Y)
    predicted = model.predict(TEST)
    pairs = [(a, b) for ours, true in zip(predicted, TRUTH, strict=True) for a, b in zip(ours, true, strict=True)]
    assert model.score(TEST, TRUTH) == pytest.approx(np.mean([a == b for a, b in pairs]))
    assert model.score(TEST, predicted) == 1.0
    assert model.score(TEST, [["?"] * len(ys) for ys in TRUTH]) == 0.0
    with pytest.raises(ValueError, match=r"y\[1\] has 1 labels; X\[1\] has"):
        model.score(TEST, [TRUTH[0], ["O"], *TRUTH[2:]])
    with pytest.raises(ValueError, match=r"y must have a labelling for each of the 15 examples\. Got 2"):
        model.score(TEST, TRUTH[:2])


# Constraints


def violates(labels) -> bool:
    return any(b == "I-N" and a == "O" for a, b in zip(["O", *labels], labels, strict=False))


@pytest.mark.parametrize("order", [1, 2])
def test_predictions_keep_to_the_scheme(order):
    rng = np.random.default_rng(0)
    noise = [[[f"w={'abc'[k]}"] for k in rng.integers(0, 3, 7)] for _ in range(40)]
    free = CRF(structure=Chain(order=order), C=1e-3).fit(X, Y)
    model = CRF(structure=Chain(order=order), C=1e-3, constraints="BIO").fit(X, Y)
    assert not any(map(violates, model.predict(noise)))
    draws = [labels for one in model.sample(noise, 5, random_state=0) for labels in one]
    assert not any(map(violates, draws))
    assert any(map(violates, [labels for one in free.sample(noise, 5, random_state=0) for labels in one]))
    first = np.array([rows[0, 1] for rows in model.predict_proba(noise)])
    np.testing.assert_array_equal(first, 0.0)  # I-N never stands first
    bad = ["O", "I-N", *["O"] * 5]
    assert model.score_sequences(noise[:1], [bad])[0] == -np.inf


def test_matrix_of_constraints():
    never = ~np.eye(3, dtype=bool)  # no label twice in a row
    data = [[["a"], ["b"], ["a"]], [["c"], ["a"]]], [["x", "y", "x"], ["z", "x"]]
    model = CRF(constraints=never).fit(*data)
    for labels in model.predict([[["a"]] * 6, [["q"]] * 5]):
        assert all(a != b for a, b in itertools.pairwise(labels))


@pytest.mark.parametrize("solver", ["block_dual", "lbfgs", "sgd", "perceptron"])
@pytest.mark.parametrize(("labels", "why"), [(["O", "I-N"], "may not follow"), (["I-N", "O"], "may not stand first")])
def test_training_labels_that_break_the_rules_name_the_example(solver, labels, why):
    bad_X, bad_y = [*X[:4], [["w=a"], ["w=dog"]], *X[4:]], [*Y[:4], labels, *Y[4:]]
    with pytest.raises(ValueError, match=f"The labels of example 4 are not allowed: .*{why}"):
        CRF(constraints="BIO", solver=solver).fit(bad_X, bad_y)
