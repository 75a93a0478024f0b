"""Sentences that a grammar cannot parse, where examples are held out: they are left out or counted, and told."""

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from dualfield import CRF, BaggedTagger, BayesianCRF, DiscriminativePCFG, LatentChain, LatentCRF, StructuredSVM
from dualfield.data import ParseTree
from dualfield.estimators import ImpossibleWarning

PARSED = [
    "(S (NP (NNS dogs)) (VP (VBP see) (NP (NP (NNS cats)) (PP (IN with) (NP (NNS dogs))))))",
    "(S (NP (NNS dogs)) (VP (VBP see) (NP (NNS cats)) (PP (IN with) (NP (NNS dogs)))))",
    "(S (NP (NP (NNS cats)) (PP (IN with) (NP (NNS dogs)))) (VP (VBP see) (NP (NNS cats))))",
]
ALONE = "(S (NP (FW hic)) (VP (VBP see)))"  # whose rules no other sentence has
y = [*PARSED, ALONE, *PARSED]
X = [ParseTree.from_brackets(tree).tokens() for tree in y]
FOLDS = [([0, 1, 2, 4, 5], [3, 6]), ([2, 3, 4, 5, 6], [0, 1])]
FEW = "ignore:The 45 labels that calibrate was given:UserWarning"  # they do not tell how large T may be, or how small
REASON = "no rule of the grammar has 'FW', the terminal of word 0"


@pytest.mark.filterwarnings(FEW)
@pytest.mark.parametrize("model", [CRF("grammar"), StructuredSVM("grammar"), DiscriminativePCFG(eta=0.0)])
def test_temperatures_are_chosen_by_the_folds_without_them(model):
    with pytest.warns(ImpossibleWarning, match="1 of 2 examples has no allowed labelling. Example 3: " + REASON):
        model.fit(X, y).calibrate(X, y, cv=FOLDS)
    kept = [6, 0, 1]
    assert model.calibration_.n_nodes == sum(len(X[i]) * (len(X[i]) + 1) // 2 for i in kept)
    alone = [([0, 1, 2, 4, 5, 6], [3])]
    none = pytest.raises(ValueError, match="The folds of calibrate must have examples")
    with pytest.warns(ImpossibleWarning, match=REASON), none:
        model.calibrate(X, y, cv=alone)


MODELS = [
    BaggedTagger(CRF("grammar"), 3, random_state=0),
    BayesianCRF("grammar", C=1.0),
    LatentCRF(CRF("grammar"), LatentChain(1)),
]


@pytest.mark.filterwarnings(FEW)
@pytest.mark.parametrize("model", MODELS)
def test_other_models_leave_them_out_too(model):
    model.fit([*X[:3], *X[4:]], [*y[:3], *y[4:]])
    expected = model.calibrate(X[:3], y[:3]).calibration_
    with pytest.warns(ImpossibleWarning, match="Example 3: " + REASON):
        assert model.calibrate(X[:4], y[:4]).calibration_ == expected
    share = model.score(X[:3], y[:3])
    with pytest.warns(ImpossibleWarning, match="Example 3: " + REASON):
        assert 0.0 < model.score(X[:4], y[:4]) < share


@pytest.mark.filterwarnings(FEW)
@pytest.mark.parametrize("model", [CRF("grammar"), StructuredSVM("grammar"), DiscriminativePCFG(eta=0.0), *MODELS])
def test_warnings_point_at_the_line_that_asked(model):
    model.fit(X[:3], y[:3])
    calls = [lambda: model.score(X[:4], y[:4]), lambda: model.calibrate(X[:4], y[:4])]
    if not isinstance(model, LatentCRF):
        calls.append(lambda: model.predict(X[:4], impossible="none"))
    for call in calls:
        with pytest.warns(ImpossibleWarning, match=REASON) as caught:
            call()
        assert {one.filename for one in caught} == {__file__}


@pytest.mark.parametrize("by", ["entropy", "least_confidence"])
@pytest.mark.parametrize("model", [CRF("grammar"), *MODELS])
def test_they_are_the_last_to_label(model, by):
    model.fit(X[:3], y[:3])
    expected = model.rank_for_labelling(X[:3], by)
    with pytest.warns(ImpossibleWarning, match="2 of 5 examples have .* Example 0: " + REASON) as caught:
        found = model.rank_for_labelling([X[3], *X[:2], X[3], X[2]], by)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(found.values, [np.nan, *expected.values[:2], np.nan, expected.values[2]])
    assert found.order.tolist() == [*np.array([1, 2, 4])[expected.order].tolist(), 0, 3]
    with pytest.warns(ImpossibleWarning, match="1 of 1 examples has"):
        assert model.rank_for_labelling(X[3:4], by).order.tolist() == [0]


@pytest.mark.filterwarnings("ignore::dualfield.estimators.ImpossibleWarning")
def test_latent_models_are_cross_validated():
    assert np.isfinite(cross_val_score(LatentCRF(CRF("grammar"), LatentChain(1)), X, y, cv=FOLDS)).all()


def test_several_models_decide_by_their_mean_probabilities_whatever_else_is_asked():
    rng = np.random.default_rng(0)
    sentences = [[("w" + str(rng.integers(3)), "T" + str(rng.integers(2))) for _ in range(4)] for _ in range(40)]
    spans = [[(0, 4, "S"), (at := int(rng.integers(3)), at + 2, "AB"[rng.integers(2)])] for _ in sentences]
    for model in (BaggedTagger(CRF("spans", C=100.0), 5, random_state=0), BayesianCRF("spans", C=100.0)):
        model.fit(sentences[:20], spans[:20])
        expected = model.predict(sentences)
        assert model.predict(sentences, impossible="none") == expected


def test_no_predictions_where_they_are_refused():
    model = BayesianCRF("grammar", C=1.0, inference="laplace").fit(X, y)
    for ask in (model.predict, lambda X: model.predict(X, impossible="none"), lambda X: model.score(X, y)):
        with pytest.raises(ValueError, match="inference='laplace' has an evidence and covariances, but no predictions"):
            ask(X)
