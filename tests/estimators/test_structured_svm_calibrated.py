"""Probabilities of margins: none at first, then at the temperature that held-out data choose."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss

from dualfield import CRF, StructuredSVM
from dualfield.models.temperature_scaling import HeldOut, choose_temperature
from dualfield.structures import Scores, Single
from tests.estimators.tagging import sentences

TRAIN, HELD_OUT, TEST = sentences(60, seed=1), sentences(60, seed=2), sentences(60, seed=3)


def node_log_loss(model, X, y):
    """Of marginals, by scikit-learn."""
    rows = np.concatenate(model.predict_proba(X))
    return log_loss([label for ys in y for label in ys], rows, labels=list(model.classes_))


def test_no_probabilities_before():
    model = StructuredSVM().fit(*TRAIN)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as caught:
        model.predict_proba(TEST[0])
    with pytest.raises(AttributeError):
        model.predict_marginals(TEST[0])
    assert "Margins are not probabilities. Call calibrate(X, y)" in str(caught.value.__cause__)
    for ask in (
        lambda: model.score_sequences(*TEST),
        lambda: model.k_best(TEST[0], 2),
        lambda: model.sample(TEST[0]),
        lambda: model.predict_spans(TEST[0]),
    ):
        with pytest.raises(NotFittedError, match=r"Call calibrate\(X, y\) with data that the model was not trained on"):
            ask()
    with pytest.raises(NotFittedError):
        StructuredSVM().calibrate(*HELD_OUT)


def test_temperature_has_the_least_log_loss():
    model = StructuredSVM(C=1.0).fit(*TRAIN).calibrate(*HELD_OUT)
    found = model.calibration_
    assert found.log_loss == pytest.approx(node_log_loss(model, *HELD_OUT), rel=1e-9)
    assert found.log_loss <= found.log_loss_at_one
    assert found.n_nodes == sum(map(len, HELD_OUT[1]))
    scores = model.decision_scores(HELD_OUT[0])
    codes = model.labels_.encode(HELD_OUT[1], scores.offsets)
    for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0):
        rows = model.structure_.marginals(scores, temperature=factor * found.temperature).node
        assert -np.log(rows[np.arange(len(codes)), codes]).mean() >= found.log_loss


def test_everything_answers_afterwards():
    model = StructuredSVM().fit(*TRAIN).calibrate(*HELD_OUT)
    X, _ = TEST
    for rows in model.predict_proba(X):
        np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    best = model.k_best(X, 3)
    predicted = model.predict(X)
    assert all(ranked[0][0] == labels for ranked, labels in zip(best, predicted, strict=True))
    first = np.log([ranked[0][1] for ranked in best])
    np.testing.assert_allclose(model.score_sequences(X, predicted), first, atol=1e-9)
    assert len(model.predict_spans(X)) == len(X)
    assert model.temperature == model.calibration_.temperature
    model.fit(*TRAIN)
    assert not hasattr(model, "predict_proba")  # a new fit needs a new temperature


def test_calibrated_is_nearly_as_good_as_log_loss():
    svm = StructuredSVM(C=0.5).fit(*TRAIN).calibrate(*HELD_OUT)
    crf = CRF(C=1.0).fit(*TRAIN)
    assert node_log_loss(svm, *TEST) <= 1.3 * node_log_loss(crf, *TEST)


def test_single_nodes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = np.array(["no", "yes"])[(X[:, 0] + rng.logistic(size=900) > 0).astype(int)]
    model = StructuredSVM("single", C=0.1).fit(X[:300], y[:300]).calibrate(X[300:600], y[300:600])
    proba = model.predict_proba(X[600:])
    assert proba.shape == (300, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert log_loss(y[600:], proba) < 0.66
    assert abs(proba[:, 1].mean() - (y[600:] == "yes").mean()) < 0.08


@pytest.mark.parametrize("temperature", [0.05, 1.0, 30.0])
def test_a_known_temperature_is_found(temperature):
    """Labels drawn at a temperature give it back."""
    rng = np.random.default_rng(1)
    node = rng.normal(size=(20_000, 3))
    p = np.exp((node - node.max(axis=1, keepdims=True)) / temperature)
    p /= p.sum(axis=1, keepdims=True)
    codes = (rng.random((len(node), 1)) > p.cumsum(axis=1)).sum(axis=1).clip(max=2).astype(np.int32)
    found = choose_temperature([HeldOut(Single(3), Scores(node, np.arange(len(node) + 1)), codes)])
    assert found.temperature == pytest.approx(temperature, rel=0.5 if temperature == 30.0 else 0.1)


def test_cross_validation_takes_the_place_of_held_out_data():
    """The temperature has the least log-loss over all folds together, each under the model of the others."""
    X, y = TRAIN
    model = StructuredSVM(tol=1e-8).fit(X, y)
    before = model.parameters_.copy()
    found = model.calibrate(X, y, cv=3).calibration_
    assert np.array_equal(model.parameters_, before)
    assert found.n_nodes == sum(map(len, y))
    folds = [range(20 * at, 20 * at + 20) for at in range(3)]
    rests = [[at for at in range(60) if at not in fold] for fold in folds]
    models = [StructuredSVM(tol=1e-8).fit([X[at] for at in rest], [y[at] for at in rest]) for rest in rests]

    def loss(temperature):
        parts = []
        for one, fold in zip(models, folds, strict=True):
            scores = one.decision_scores([X[at] for at in fold])
            codes = one.labels_.encode([y[at] for at in fold], scores.offsets)
            rows = one.structure_.marginals(scores, temperature=temperature).node
            parts.append(-np.log(rows[np.arange(len(codes)), codes]))
        return np.concatenate(parts).mean()

    assert found.log_loss == pytest.approx(loss(found.temperature), rel=1e-5)
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert loss(factor * found.temperature) >= loss(found.temperature)
    held_out = StructuredSVM().fit(X, y).calibrate(*HELD_OUT).calibration_
    assert 0.3 < found.temperature / held_out.temperature < 3.0


def test_cross_validation_leaves_out_labels_that_occur_once():
    X, y = TRAIN
    y = [["rare", *y[0][1:]], *y[1:]]
    found = StructuredSVM().fit(X, y).calibrate(X, y, cv=4).calibration_
    assert found.n_nodes == sum(map(len, y[1:]))
    with pytest.raises(ValueError, match="'cv' parameter of calibrate takes lists"):
        StructuredSVM().fit(X, y).calibrate(X, y, cv=4, lengths=[1])


def test_cross_validation_of_single_nodes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    assert StructuredSVM("single").fit(X, y).calibrate(X, y, cv=5).calibration_.n_nodes == 300


def test_custom_problems_have_no_marginals():
    class Choice:
        def joint_feature(self, x, y):
            return x[y]

        def loss(self, y_true, y):
            return float(y != y_true)

        def argmax(self, w, x, y_true=None):
            return int((x @ w + (0.0 if y_true is None else np.arange(len(x)) != y_true)).argmax())

    model = StructuredSVM(Choice()).fit([np.eye(2)], [0])
    with pytest.raises(ValueError, match="can be calibrated"):
        model.calibrate([np.eye(2)], [0])
    with pytest.raises(ValueError, match="at least one node"):
        StructuredSVM().fit(*TRAIN).calibrate([], [])


@pytest.mark.parametrize("kind", [float, object, bool])
def test_single_nodes_with_labels_of_any_kind(kind):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int)
    names = np.array(["a", "b"], dtype=object)[y] if kind is object else y.astype(kind)
    model = StructuredSVM("single").fit(X[:30], names[:30]).calibrate(X[30:], names[30:])
    assert model.predict(X).dtype == names.dtype
    assert model.predict_proba(X).shape == (60, 2)
    with pytest.raises(ValueError, match=r"y has labels not seen in training: \['c'\]"):
        model.calibrate(X[:2], np.array(["c", names[0]], dtype=object))
    with pytest.raises(ValueError, match=r"y must have shape \(2,\)"):
        model.calibrate(X[:2], names[:3])


def test_marginals_of_single_nodes_are_one_dict_for_each_row():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.array(["a", "b", "c"])[(X[:, 0] > 0) + (X[:, 1] > 0.5).astype(int)]
    model = StructuredSVM("single").fit(X[:30], y[:30])
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'"):
        model.predict_marginals(X)
    model.calibrate(X[30:], y[30:])
    found = model.predict_marginals(X[:4])
    assert [list(row) for row in found] == [["a", "b", "c"]] * 4
    np.testing.assert_array_equal([list(row.values()) for row in found], model.predict_proba(X[:4]))
    assert all(type(label) is str and type(chance) is float for row in found for label, chance in row.items())
    assert model.predict_marginals_single(X[2]) == found[2]
    assert model.predict_single(X[2]) == max(found[2], key=found[2].get)
