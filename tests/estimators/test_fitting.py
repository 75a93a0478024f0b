"""Every estimator: a fit that raises changes nothing, and parameters set after a fit wait for the next one."""

from __future__ import annotations

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import dualfield
from dualfield import (
    CRF,
    ConditionalGraphicalModel,
    DiscriminativeBayesNet,
    DiscriminativeHMM,
    KernelLogisticRegression,
    LatentCRF,
    LatentMulticlass,
    LatentStructuredSVM,
    StructuredSVM,
)
from dualfield.estimators import crfsuite
from dualfield.estimators.prediction import StructuredPredictor
from dualfield.models.custom import CustomModel

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(24, 2))
CLASSES = np.array(["a", "b", "c"])[np.digitize(POINTS[:, 0] + 0.3 * RNG.normal(size=24), [-0.5, 0.5])]
SEQUENCES = [POINTS[i : i + 4] for i in range(0, 24, 4)]
LABELS = [CLASSES[i : i + 4].tolist() for i in range(0, 24, 4)]
WORDS = [[["w=" + one, "x"] for one in each] for each in LABELS]
TOKENS = [[["w" + one, "x"] for one in each] for each in LABELS]
SYMBOLS = [["s" + one for one in each] for each in LABELS]
CELLS = np.where(POINTS > 0.0, "high", "low").astype(object)
PAIRS = np.column_stack([CLASSES == "a", POINTS[:, 1] > 0]).astype(int)


def own_kernel(A, B, power=1.0):
    return (A @ B.T + 1.0) ** power


def on_pairs(a, b):
    return float(a[1] == b[1]) * float(np.exp(-((a[0] - b[0]) ** 2).sum()))


class Own:
    """Multi-class classification as a custom problem."""

    def joint_feature(self, x, y):
        return np.concatenate([x * (y == one) for one in "abc"])

    def loss(self, true, found):
        return float(true != found)

    def argmax(self, w, x, true=None):
        return max("abc", key=lambda y: w @ self.joint_feature(x, y) + (0.0 if true is None else self.loss(true, y)))


KLR, CGM = KernelLogisticRegression, ConditionalGraphicalModel
QUESTIONS = ("predict", "predict_proba", "decision_function", "predict_marginals", "predict_latent")
# What makes each model, and its data.
MODELS = {
    "rbf": (KLR, POINTS, CLASSES),
    "poly": (partial(KLR, "poly", degree=2, coef0=1.0), POINTS, CLASSES),
    "precomputed": (partial(KLR, "precomputed"), POINTS @ POINTS.T, CLASSES),
    "own kernel": (partial(KLR, own_kernel, kernel_params={"power": 2.0}), POINTS, CLASSES),
    "label kernel": (partial(KLR, label_kernel=[[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]), POINTS, CLASSES),
    "pairs": (partial(KLR, label_kernel=on_pairs, fit_intercept=False), POINTS, CLASSES),
    "inducing": (partial(KLR, kernel_approx=5, random_state=0), POINTS, CLASSES),
    "crf": (partial(CRF, temperature=2.0), WORDS, LABELS),
    "crf template": (partial(CRF, template="U00:%x[0,0]\nU01:%x[-1,0]\nB"), TOKENS, LABELS),
    "crf kernel": (partial(CRF, kernel="poly", degree=2, coef0=1.0), SEQUENCES, LABELS),
    "crfsuite": (crfsuite.CRF, WORDS, LABELS),
    "svm": (partial(StructuredSVM, tol=1e-2), WORDS, LABELS),
    "svm template": (partial(StructuredSVM, template="U00:%x[0,0]"), TOKENS, LABELS),
    "svm single": (partial(StructuredSVM, "single"), POINTS, CLASSES),
    "svm kernel": (partial(StructuredSVM, kernel="rbf"), SEQUENCES, LABELS),
    "svm own": (partial(StructuredSVM, Own()), list(POINTS), CLASSES.tolist()),
    "graph chain": (partial(CGM, 1, loss="log", padding=(1, 1)), SEQUENCES, LABELS),
    "graph fixed": (partial(CGM, [(0, 1)], loss="squared", unseen=-1.0), POINTS, PAIRS),
    "graph base": (partial(CGM, 0, base_estimator=LogisticRegression()), SEQUENCES, LABELS),
    "hmm": (DiscriminativeHMM, SYMBOLS, LABELS),
    "network": (DiscriminativeBayesNet, CELLS, CLASSES),
    "network of cells": (partial(DiscriminativeBayesNet, [(0, [1])], hidden=[0]), CELLS, None),
    "latent svm": (partial(LatentStructuredSVM, StructuredSVM(C=10.0), LatentMulticlass(2)), POINTS, CLASSES),
    "latent crf": (partial(LatentCRF, CRF(C=10.0), LatentMulticlass(2)), POINTS, CLASSES),
}
SETTINGS_OF_THE_PREDICTION = {
    ConditionalGraphicalModel: {"n_jobs", "backoff_cost", "combine"},
    DiscriminativeHMM: {"n_jobs", "unknown"},
    DiscriminativeBayesNet: {"n_jobs", "unknown", "max_table"},
}


def fitted(name):
    make, X, y = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make()
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        model.fit(X, y)
        if name.startswith("svm") and name != "svm own":
            model.calibrate(X, y)
    return model


def answers(model, X, y):
    """All that the model says."""
    if isinstance(model.model_, CustomModel):
        return pickle.dumps((model.predict(X), model.score(X, y)))
    found = {question: getattr(model, question)(X) for question in QUESTIONS if hasattr(model, question)}
    if isinstance(model, StructuredPredictor):
        found["log probabilities"] = model.score_sequences(X, y)
        found["best"], found["scores"] = model.k_best(X, 2), model.decision_scores(X).node
    if y is not None:
        found["score"] = model.score(X, y)
    return pickle.dumps(found)


class Poison:
    """What no prediction may look at."""

    def __getattr__(self, name):
        raise AssertionError(f"a parameter was looked at: {name}")


@pytest.mark.parametrize("name", MODELS)
def test_parameters_set_after_a_fit_wait_for_the_next_one(name):
    model, (_, X, y) = fitted(name), MODELS[name]
    before = answers(model, X, y)
    live = SETTINGS_OF_THE_PREDICTION.get(type(model), {"n_jobs"})
    for parameter in set(model.get_params(deep=False)) - live:
        setattr(model, parameter, Poison())
    assert answers(model, X, y) == before


class BrokenError(Exception):
    """What a fit may die of."""


def breaking(model, step):
    """Let the next fit die at its step-th assignment of an attribute."""

    class Breaking(type(model)):
        def __setattr__(self, attribute, value):
            nonlocal step
            step -= 1
            if step == 0:
                raise BrokenError
            super().__setattr__(attribute, value)

    model.__class__ = Breaking
    return model


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_raises_leaves_the_model_as_it_was(name):
    """Wherever it raises, on other data."""
    model, (_, X, y) = fitted(name), MODELS[name]
    kind, before, said = type(model), dict(vars(model)), pickle.dumps(model.predict(X))
    contents = pickle.dumps(before)
    other, labels = (X[4:], y if y is None else y[4:]) if name != "precomputed" else (X[4:, 4:], y[4:])
    steps = 0
    while True:
        try:
            breaking(model, steps + 1).fit(other, labels)
            break
        except BrokenError:
            steps += 1
        model.__class__ = kind
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[attribute] is value for attribute, value in before.items())
        assert pickle.dumps(vars(model)) == contents  # no part was changed in place
        assert pickle.dumps(model.predict(X)) == said
    assert steps > 3


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_that_is_refused_leaves_the_model_as_it_was(name):
    model, (_, X, y) = fitted(name), MODELS[name]
    said = pickle.dumps(model.predict(X))
    for wrong in (None, [], "nonsense"):
        with pytest.raises((ValueError, TypeError)):
            model.fit(wrong, y)
        assert pickle.dumps(model.predict(X)) == said


def test_a_first_fit_that_raises_leaves_nothing():
    for make, *_ in MODELS.values():
        model = make()
        before = dict(vars(model))
        with pytest.raises((ValueError, TypeError)):
            model.fit(None, None)
        assert vars(model).keys() == before.keys()


@pytest.mark.parametrize("name", ["poly", "label kernel", "crf", "crf template", "svm template", "graph chain"])
def test_a_file_holds_the_parameters_of_the_fit(tmp_path, name):
    model, (_, X, y) = fitted(name), MODELS[name]
    before = answers(model, X, y)
    changes = {"degree": 5, "coef0": 3.0, "label_kernel": None, "temperature": 9.0, "template": None, "padding": (0, 0)}
    model.set_params(**{key: value for key, value in changes.items() if key in model.get_params()})
    model.save(tmp_path / "m.model")
    assert answers(dualfield.load(tmp_path / "m.model"), X, y) == before
    assert answers(pickle.loads(pickle.dumps(model)), X, y) == before


def test_parameters_that_the_caller_changes_in_place():
    table = np.eye(3) + 0.5
    arguments = {"power": 2.0}
    model = KLR(own_kernel, kernel_params=arguments, label_kernel=table).fit(POINTS, CLASSES)
    before = model.predict_proba(POINTS)
    table[:] = np.eye(3)
    arguments["power"] = 1.0
    np.testing.assert_array_equal(model.predict_proba(POINTS), before)


def test_the_warning_points_at_the_caller():
    with pytest.warns(UserWarning, match="limit") as caught:
        KLR(C=1e4, max_iter=1).fit(POINTS, CLASSES)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="limit") as caught:
        CRF(C=1e4, max_iter=1).fit(WORDS, LABELS)
    assert caught[0].filename == __file__
