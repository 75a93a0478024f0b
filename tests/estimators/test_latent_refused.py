"""What latent models refuse or warn of, and the contract of user-defined models."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from dualfield import CRF, LatentChain, LatentCRF, LatentMulticlass, LatentPosition, LatentStructuredSVM, StructuredSVM
from dualfield.models.latent.data import StateData
from dualfield.objectives.latent_custom import check_latent_model
from dualfield.structures import Chain
from tests.reference.latent import bags, hidden_rhythm

BAGS = ([np.array([[1.0]]), np.array([[-1.0], [0.0]])], ["yes", "no"])


class Peak:
    """Is there a number above a threshold? Hidden: which one. Both labels and all places are enumerated."""

    n_parameters = 2

    def joint_feature(self, x, y, h):
        return y * np.array([x[h], 1.0])

    def loss(self, y_true, y, h):
        return float(y != y_true)

    def _pairs(self, x):
        return [(y, h) for y in (0, 1) for h in range(len(x))]

    def infer(self, w, x):
        return max(self._pairs(x), key=lambda pair: w @ self.joint_feature(x, *pair))

    def loss_augmented(self, w, x, y_true):
        return max(self._pairs(x), key=lambda p: w @ self.joint_feature(x, *p) + self.loss(y_true, *p))

    def complete(self, w, x, y):
        return max(range(len(x)), key=lambda h: w @ self.joint_feature(x, y, h))

    def init_latent(self, x, y, rng):
        return int(rng.randint(len(x)))


def peaks(n=30, seed=0):
    X, y, _ = bags(n, seed, 2)
    return [bag[:, 0].tolist() for bag in X], [int(label == "yes") for label in y]


def test_a_model_of_ones_own_is_the_built_in_one():
    X, y = peaks()
    base = StructuredSVM(C=1.0, tol=1e-6)
    own = LatentStructuredSVM(base, Peak(), init=[0] * 30, n_restarts=1).fit(X, y)
    arrays = [np.array(x)[:, None] for x in X]
    built_in = LatentStructuredSVM(base, LatentPosition(), init=np.zeros(30, int)).fit(arrays, y)
    assert own.trace_.certified()
    assert own.objective_ == pytest.approx(built_in.objective_, rel=1e-5)
    np.testing.assert_allclose(own.parameters_, built_in.parameters_, atol=1e-2)
    assert own.predict(X) == built_in.predict(arrays)
    assert own.score(X, y) == pytest.approx(built_in.score(arrays, y) - 1.0)  # minus the mean loss
    assert own.hidden_ == own.predict_latent(X, y)
    assert own.classes_ is None
    again = LatentStructuredSVM(base, Peak(), n_restarts=2, random_state=0).fit(X, y)
    assert again.restarts_.shape == (2,)


def broken(**methods):
    return type("Broken", (Peak,), methods)()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (broken(complete=None), "must have a method 'complete'"),
        (broken(loss=lambda self, t, y, h: 1.0), r"Broken.loss\(y, y, h\) must be 0"),
        (broken(loss=lambda self, t, y, h: 0.0 if y == t else np.inf), "finite number"),
        (broken(loss_augmented=lambda self, w, x, t: (t, 0)), "at least that of"),
        (broken(infer=lambda self, w, x: (0, 0)), r"infer\(w, x\) must return the largest score"),
        (broken(complete=lambda self, w, x, y: 0), "best latent variables"),
        (broken(joint_feature=lambda self, x, y, h: np.array([np.nan, 0.0])), "finite numbers"),
        (broken(joint_feature=lambda self, x, y, h: np.zeros(3)), "must return 2 features"),
    ],
)
def test_contract_of_models(model, message):
    X, y = [[-1.0, 5.0], [2.0, 1.0, 3.0], [-1.0, -2.0, 0.5]], [1, 1, 0]
    with pytest.raises((TypeError, ValueError), match=message):
        check_latent_model(model, X, y)
    with pytest.raises((TypeError, ValueError), match=message):
        LatentStructuredSVM(latent=model).fit(X, y)


class WrongLater(Peak):
    """Right for the first three examples, which are checked before the fit, and wrong for longer lists."""

    def __init__(self, method):
        self.method = method

    def _is_wrong(self, method, x):
        return self.method == method and len(x) > 3

    def loss_augmented(self, w, x, y_true):
        if self._is_wrong("first place", x):
            return y_true, 0
        if self._is_wrong("truth", x):
            return y_true, self.complete(w, x, y_true)
        return super().loss_augmented(w, x, y_true)

    def infer(self, w, x):
        return (1, 0) if self._is_wrong("infer", x) else super().infer(w, x)

    def complete(self, w, x, y):
        return 0 if self._is_wrong("complete", x) else super().complete(w, x, y)


@pytest.mark.parametrize(
    ("method", "named"),
    [
        ("first place", r"loss_augmented\(w, x, y_true\)"),
        ("truth", r"loss_augmented\(w, x, y_true\)"),
        ("complete", r"complete\(w, x, y\)"),
        ("infer", r"infer\(w, x\)"),
    ],
)
def test_oracles_that_are_wrong_beyond_the_checked_examples(method, named):
    """R below zero, a gap of zero, and a certificate that was false."""
    rng = np.random.default_rng(3)
    X = [rng.normal(size=3).tolist() for _ in range(3)] + [rng.normal(size=6).tolist() for _ in range(20)]
    y = [int(max(x) > 1.4) for x in X]
    assert check_latent_model(WrongLater(method), X, y) == 2
    model = LatentStructuredSVM(StructuredSVM(C=10.0), WrongLater(method), n_restarts=3, random_state=0)
    with pytest.raises(ValueError, match=rf"WrongLater\.{named} returned an answer for X\[\d+\] whose score"):
        model.fit(X, y)
    right = LatentStructuredSVM(StructuredSVM(C=10.0), WrongLater(None), n_restarts=3, random_state=0).fit(X, y)
    assert right.objective_ >= 0.0


def test_models_without_a_size_or_a_draw():
    class NoSize(Peak):
        n_parameters = None

    assert check_latent_model(NoSize(), [[1.0]], [1]) == 2
    no_draw = broken(init_latent=None)
    with pytest.raises(ValueError, match="init='random' needs a method 'init_latent'"):
        LatentStructuredSVM(latent=no_draw).fit([[1.0]], [1])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_restarts": 0}, "The 'n_restarts' parameter of LatentStructuredSVM must be an int in"),
        ({"init": "zeros"}, "The 'init' parameter of LatentStructuredSVM must be an array or one of"),
        ({"init": "weights"}, "needs an earlier fit"),
        ({"init": "em"}, "init='em' needs LatentChain"),
        ({"init": np.zeros(3)}, "must be 2 finite weights"),
        ({"init": [5, 0]}, r"X\[0\] has 1 instances; got 5"),
        ({"init": [0]}, "an int for each of the 2 bags"),
        ({"anneal": 1}, "The 'anneal' parameter of LatentStructuredSVM must be a bool"),
        ({"tol": 0.0}, "The 'tol' parameter of LatentStructuredSVM"),
        ({"base": CRF()}, "must be a StructuredSVM or None"),
        ({"base": StructuredSVM(C=-1.0)}, "The 'C' parameter of StructuredSVM"),
        ({"base": StructuredSVM(rescaling="slack")}, "rescaling='margin'"),
        ({"base": StructuredSVM(solver="flow_swap")}, "'auto' or 'cutting_plane'"),
        ({"latent": LatentPosition(background="maybe")}, "The 'background' parameter of LatentPosition"),
        ({"latent": "bags"}, "must have a method 'joint_feature'"),
    ],
)
def test_parameters(parameters, message):
    model = LatentStructuredSVM(latent=LatentPosition("no")).set_params(**parameters)
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(*BAGS)


@pytest.mark.parametrize(
    ("latent", "message"),
    [
        (LatentChain(0), r"The 'n_substates' parameter of LatentChain must have ints in \[1, inf\). Got 0 instead."),
        (LatentChain([2]), "a list with an int for each of the 2 labels"),
        (LatentChain({"z": 2}), r"has labels that y does not have: \['z'\]"),
        (LatentMulticlass("2"), "The 'n_components' parameter of LatentMulticlass"),
    ],
)
def test_numbers_of_states(latent, message):
    single = isinstance(latent, LatentMulticlass)
    X, y = (np.eye(2), ["a", "b"]) if single else ([np.eye(2)], [["a", "b"]])
    for model in (LatentStructuredSVM(latent=latent), LatentCRF(latent=latent)):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)


def test_data():
    model = LatentStructuredSVM(latent=LatentPosition())
    with pytest.raises(NotFittedError):
        model.predict(BAGS[0])
    with pytest.raises(ValueError, match=r"a label for each of the 2 bags. Got 1"):
        model.fit(BAGS[0], ["yes"])
    with pytest.raises(ValueError, match=r"at least one instance; X\[1\] has none"):
        model.fit([np.ones((1, 2)), np.ones((0, 2))], ["yes", "no"])
    with pytest.raises(ValueError, match="at least two labels"):
        model.fit(BAGS[0], ["yes", "yes"])
    with pytest.raises(ValueError, match="order 1"):
        LatentStructuredSVM(StructuredSVM(Chain(order=2))).fit([np.eye(3)], [["a", "b", "a"]])
    with pytest.raises(ValueError, match=r"must have sub-states of the true labels. Node 1 has 2"):
        LatentStructuredSVM(init=[[0, 2]]).fit([np.eye(2)], [["a", "b"]])
    with pytest.raises(ValueError, match="lengths must be None"):
        LatentStructuredSVM(latent=LatentMulticlass()).fit(np.eye(2), ["a", "b"], lengths=[1, 1])


def test_zero_weights_are_warned_of():
    X, y = hidden_rhythm(80, 0)
    base = StructuredSVM(C=0.1, features="all", start_stop=True, solver="cutting_plane")
    size = StateData.read(base, LatentChain(), X, y, None, None, hinge=True).score_map.n_parameters
    with pytest.warns(
        UserWarning, match="weights of zero: all latent variables tie|do not improve the objective"
    ) as caught:
        LatentStructuredSVM(base, init=np.zeros(size), random_state=0).fit(X, y)
    assert str(caught[0].message).startswith("init has weights of zero")


def test_limits_are_warned_of():
    X, y = hidden_rhythm(40, 0)
    base = StructuredSVM(C=0.3, features="all", start_stop=True)
    with pytest.warns(ConvergenceWarning, match="The limit on steps was reached. Increase max_iter"):
        LatentStructuredSVM(base, max_iter=2, random_state=4, n_restarts=3).fit(X, y)
    short = StructuredSVM(C=0.3, features="all", start_stop=True, max_iter=3)
    with pytest.warns(ConvergenceWarning, match="relative duality gap of .*, tolerance 0.001") as caught:
        model = LatentStructuredSVM(short, random_state=4, n_restarts=3).fit(X, y)
    assert model.trace_.certified()
    assert not model.trace_.reached[-1]
    assert any("max_iter of the base" in str(one.message) for one in caught)


def test_latent_crf_parameters():
    for parameters, message in (
        ({"base": StructuredSVM()}, "must be a CRF or None"),
        ({"base": CRF(l1_ratio=0.5)}, "l1_ratio=0"),
        ({"latent": LatentPosition()}, "must be a LatentChain or LatentMulticlass"),
        ({"solver": "sgd"}, "The 'solver' parameter of LatentCRF"),
        ({"init": "weights"}, "The 'init' parameter of LatentCRF"),
    ):
        with pytest.raises(ValueError, match=message):
            LatentCRF().set_params(**parameters).fit([np.eye(2)], [["a", "b"]])
