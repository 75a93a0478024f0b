"""Structural SVMs and models with latent variables come back from their files as they were."""

import io
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone

import dualfield
from dualfield import LatentChain, LatentStructuredSVM, StructuredSVM
from dualfield.persistence import read_model_header
from tests.estimators.saved_margin_models import (
    CALIBRATED,
    LATENTS,
    MACHINES,
    SINGLES,
    bags,
    forget,
    latent,
    machine,
    rows,
    sentences,
    single,
    unseen_by,
)
from tests.estimators.saved_models import equal

MODES = pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])


@pytest.fixture(autouse=True, scope="module")
def _models_are_forgotten():
    yield
    forget()


def reloaded(folder, model, *, mmap=False):
    model.save(folder / "saved.model")
    return dualfield.load(folder / "saved.model", mmap=mmap)


def pickled(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def same_parameters(model, again):
    wanted, found = model.get_params(deep=False), again.get_params(deep=False)
    assert wanted.keys() == found.keys()
    for name, value in wanted.items():
        if hasattr(value, "get_params"):
            assert type(found[name]) is type(value)
            same_parameters(value, found[name])
        elif isinstance(value, np.random.RandomState):
            assert found[name] is None
        else:
            assert equal(value, found[name]), name


def check_same(model, again, names):
    assert type(again) is type(model)
    same_parameters(model, again)
    for name in ("objective_", "n_iter_", "status_", "classes_", "parameters_", *names):
        assert equal(getattr(model, name), getattr(again, name)), name
    for name, column in vars(model.trace_).items():
        assert equal(column, getattr(again.trace_, name)), name


@MODES
@pytest.mark.parametrize("name", MACHINES)
def test_sequences(tmp_path, name, mmap):
    model, X = machine(name), unseen_by(name)
    again = reloaded(tmp_path, model, mmap=mmap)
    assert hasattr(again, "predict_proba") == (name in CALIBRATED)
    assert equal(again.predict(X), model.predict(X))
    assert equal(again.decision_scores(X).node, model.decision_scores(X).node)
    if name in CALIBRATED:
        assert again.calibration_ == model.calibration_
        assert equal(again.predict_proba(X), model.predict_proba(X))
        assert equal(again.k_best(X[:3], 2), model.k_best(X[:3], 2))
    check_same(model, again, ("dual_gap_", "solver_", "n_features_", "coef_", "transitions_"))
    assert again.structure_ == model.structure_
    assert again.vocabulary_ == model.vocabulary_
    assert equal(pickled(again).predict(X), model.predict(X))


@MODES
@pytest.mark.parametrize("name", SINGLES)
def test_single_nodes(tmp_path, name, mmap):
    if name == "names":
        pytest.importorskip("pandas", reason="pandas, which gives features names, is not installed")
    model, X = single(name), rows(name)
    again = reloaded(tmp_path, model, mmap=mmap)
    assert equal(again.predict(X), model.predict(X))
    assert equal(again.decision_function(X), model.decision_function(X))
    assert equal(again.predict_proba(X), model.predict_proba(X))
    assert again.predict_marginals(X) == model.predict_marginals(X)
    check_same(model, again, ("dual_gap_", "solver_", "calibration_", "n_features_in_", "coef_"))
    assert hasattr(again, "feature_names_in_") == (name == "names")
    if name == "names":
        assert equal(again.feature_names_in_, model.feature_names_in_)
    assert equal(pickled(again).predict_proba(X), model.predict_proba(X))


@MODES
@pytest.mark.parametrize("name", LATENTS)
def test_hidden_parts(tmp_path, name, mmap):
    model, X = latent(name), LATENTS[name][2]()
    again = reloaded(tmp_path, model, mmap=mmap)
    y = model.predict(X)
    names = ("plain_objective_", "restarts_", *(("dual_gap_", "hidden_") if "CRF" not in name else ()))
    check_same(model, again, names)
    for one in (again, pickled(again)):
        assert equal(one.predict(X), y)
        assert equal(one.predict_latent(X), model.predict_latent(X))
        assert equal(one.predict_latent(X, y), model.predict_latent(X, y))
        assert one.score(X, y) == 1.0
    if "CRF" in name:
        assert equal(again.predict_proba(X), model.predict_proba(X))
    if "bags" in name:
        assert equal(again.decision_function(X), model.decision_function(X))
        assert equal(again.coef_, model.coef_)
        assert equal(again.intercept_, model.intercept_)
    else:
        assert equal(again.states_.coef_, model.states_.coef_)
        assert equal(again.states_.classes_, model.states_.classes_)
        assert again.states_.n_features_ == model.states_.n_features_
    assert not hasattr(clone(again), "parameters_")


@MODES
@pytest.mark.parametrize("name", ["attributes", "template"])
def test_warm_start_goes_on_from_a_loaded_machine(tmp_path, name, mmap):
    before = clone(machine(name)).fit(*_data(name))
    after = reloaded(tmp_path, before, mmap=mmap)
    settings = {"warm_start": True, "max_iter": 1, "tol": 1e-9, "solver": "cutting_plane"}
    fitted = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in (before, after, clone(before)):
            fitted.append(one.set_params(**settings).fit(*_data(name)).parameters_)
    assert equal(fitted[0], fitted[1])
    assert not equal(fitted[0], fitted[2])


def _data(name):
    X, y = sentences()
    return MACHINES[name][1](X), y


def test_a_loaded_model_with_hidden_parts_is_a_start(tmp_path):
    model, other = pickled(latent("bags")), bags(3)
    again = reloaded(tmp_path, model).set_params(init="weights").fit(*other)
    cold = clone(model).fit(*other)
    assert equal(again.parameters_, model.set_params(init="weights").fit(*other).parameters_)
    assert not equal(again.parameters_, cold.parameters_)


@pytest.mark.parametrize(
    "make",
    [lambda: machine("calibrated"), lambda: single("str"), lambda: latent("chain"), lambda: latent("bags")],
    ids=["sequences", "single", "chain", "bags"],
)
@MODES
def test_saved_again_the_file_is_the_same(tmp_path, make, mmap):
    reloaded(tmp_path, make(), mmap=mmap).save(tmp_path / "second.model")
    assert (tmp_path / "saved.model").read_bytes() == (tmp_path / "second.model").read_bytes()


def test_header(tmp_path):
    machine("calibrated").save(tmp_path / "m")
    header = read_model_header(tmp_path / "m")
    assert header["estimator"] == "StructuredSVM"
    assert header["model"]["calibration"]["temperature"] == machine("calibrated").temperature
    latent("chain").save(tmp_path / "m")
    header = read_model_header(tmp_path / "m")
    assert header["model"]["sizes"] == [1, 1, 3]
    assert header["parameters"]["base"]["settings"]["C"] == 0.3
    assert header["parameters"]["latent"]["kind"] == "LatentChain"
    assert header["training"]["plain_objective"] == latent("chain").plain_objective_


# What cannot be saved


class Choice:
    n_parameters = 2

    def joint_feature(self, x, y, h=0):
        return np.asarray(x)[y]

    def loss(self, y_true, y, h=0):
        return float(y != y_true)

    def argmax(self, w, x, y_true=None):
        return int((np.asarray(x) @ w + (0.0 if y_true is None else np.arange(len(x)) != y_true)).argmax())

    def infer(self, w, x):
        return self.argmax(w, x), 0

    def loss_augmented(self, w, x, y_true):
        return self.argmax(w, x, y_true), 0

    def complete(self, w, x, y):
        return 0

    def init_latent(self, x, y, rng):
        return 0


def price(true, label):
    return float(true != label)


def refused(tmp_path, model, message):
    with pytest.raises(ValueError, match=message):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_code_is_refused_by_name(tmp_path):
    X, y = [np.eye(2), np.eye(2)], [0, 0]
    custom = StructuredSVM(Choice()).fit(X, y)
    refused(tmp_path, custom, r"^The 'structure' parameter of StructuredSVM cannot be saved: .* Got <.*Choice")
    assert pickled(custom).predict(X) == custom.predict(X)
    priced = StructuredSVM(cost=price).fit(*sentences(5))
    refused(tmp_path, priced, r"^The 'cost' parameter of StructuredSVM cannot be saved: .* Got <function price")
    own = LatentStructuredSVM(latent=Choice(), n_restarts=1).fit(X, y)
    refused(tmp_path, own, r"^The 'latent' parameter of LatentStructuredSVM cannot be saved: .* Got <.*Choice")
    assert pickled(own).predict(X) == own.predict(X)
    refused(tmp_path, own.set_params(latent=LatentChain()), "fitted with a user-defined latent model")


@pytest.mark.filterwarnings("ignore:The latent variables do not improve")
def test_code_in_the_base_is_refused_by_name(tmp_path):
    model = clone(latent("chain")).set_params(base__cost=price).fit(*sentences())
    refused(tmp_path, model, r"^The 'base__cost' parameter of LatentStructuredSVM cannot be saved: .* Got <function")


def test_a_tagger_of_states_is_saved_with_its_labels():
    assert not hasattr(latent("chain").states_, "save")
    assert not hasattr(latent("chain").states_, "fit")
