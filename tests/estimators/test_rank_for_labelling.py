"""Which examples to label next: what the values are, and that every estimator with probabilities answers."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from dualfield import (
    CRF,
    BaggedTagger,
    ConditionalGraphicalModel,
    DiscriminativeBayesNet,
    KernelLogisticRegression,
    LatentChain,
    LatentCRF,
    StructuredSVM,
)
from tests.estimators.tagging import sentences

TRAIN, POOL = sentences(40, seed=1), sentences(20, seed=5)[0]


@pytest.fixture(scope="module")
def model():
    return CRF(C=1.0).fit(*TRAIN)


def test_values_by_definition(model):
    rows = model.predict_proba(POOL)
    lengths = np.array([len(one) for one in rows])
    entropies = np.array([-(one * np.log(one)).sum() for one in rows])
    best = np.array([-np.log(model.k_best([xseq], 1)[0][0][1]) for xseq in POOL])
    for by, totals in (("entropy", entropies), ("least_confidence", best)):
        for per, values in (("token", totals / lengths), ("sentence", totals)):
            found = model.rank_for_labelling(POOL, by=by, per=per)
            np.testing.assert_allclose(found.values, values, rtol=1e-9, atol=1e-12)
            assert sorted(found.order.tolist()) == list(range(len(POOL)))
            assert all(a >= b for a, b in itertools.pairwise(found.values[found.order]))
    assert model.rank_for_labelling(POOL).order.tolist() == np.argsort(-entropies / lengths, kind="stable").tolist()


def test_other_estimators():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(60, 2))
    y = np.where(points[:, 0] > 0, "right", "left")
    klr = KernelLogisticRegression(kernel="linear", C=10.0).fit(points, y)
    order = klr.rank_for_labelling(points).order
    assert set(order[:3].tolist()) == set(np.argsort(np.abs(klr.decision_function(points)))[:3].tolist())
    single = CRF("single").fit(points, y)
    np.testing.assert_allclose(
        single.rank_for_labelling(points, by="least_confidence").values,
        -np.log(single.predict_proba(points).max(axis=1)),
    )
    net = DiscriminativeBayesNet(eta=0.0).fit(np.where(points > 0, "a", "b"), y)
    assert len(net.rank_for_labelling(np.where(points > 0, "a", "b")).order) == 60
    X, labels = [np.array([[0.0], [1.0]]), np.array([[1.0], [0.0]])], [["a", "b"], ["b", "a"]]
    graphical = ConditionalGraphicalModel(1, loss="log").fit(X, labels)
    entropies = [-(one * np.log(one)).sum() / 2 for one in graphical.predict_proba(X)]
    np.testing.assert_allclose(graphical.rank_for_labelling(X).values, entropies)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sub-states have nothing to find here
        latent = LatentCRF(CRF(), LatentChain(2), n_restarts=1, random_state=0).fit(*TRAIN)
    means = [-(one * np.log(one)).sum() / len(one) for one in latent.predict_proba(POOL)]
    np.testing.assert_allclose(latent.rank_for_labelling(POOL).values, means)


def test_tokens_of_trees_are_words():
    """A sentence of n words has n (n + 1) / 2 spans and n² arcs, but n words to look at."""
    X = [["the", "dog", "runs"], ["dogs", "run"], ["the", "cats", "see", "the", "dog"]]
    trees = ["(S (NP the dog) runs)", "(S dogs run)", "(S (NP the cats) (VP see (NP the dog)))"]
    for structure, y in (("spans", trees), ("dependency", [[2, 3, 0], [2, 0], [2, 3, 0, 5, 3]])):
        for model in (CRF(structure), BaggedTagger(CRF(structure), n_estimators=2)):
            model.fit(X, y)
            for by in ("entropy", "least_confidence"):
                per_token, total = (model.rank_for_labelling(X, by=by, per=per).values for per in ("token", "sentence"))
                np.testing.assert_allclose(per_token, total / [3, 2, 5])
                assert (total > 0.0).all()


def test_margins_need_a_calibration():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError, match="Call calibrate"):
        StructuredSVM().fit(*TRAIN).rank_for_labelling(POOL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "chance"}, "The 'by' parameter of CRF.rank_for_labelling must be"),
        ({"per": "page"}, "The 'per' parameter of CRF.rank_for_labelling must be"),
        ({"by": "bald"}, "by='bald' compares several models, which this CRF does not have. Fit a BaggedTagger"),
    ],
)
def test_refused(model, options, message):
    with pytest.raises(ValueError, match=message):
        model.rank_for_labelling(POOL, **options)


def test_nothing_to_rank(model):
    assert model.rank_for_labelling([]).order.tolist() == []
