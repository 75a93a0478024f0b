"""Models come back from their files as they were: parameters, predictions, probabilities, and what follows."""

import pickle
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import dualfield
from dualfield import CRF, KernelLogisticRegression
from dualfield.estimators import crfsuite
from dualfield.estimators.loading import ESTIMATORS
from dualfield.persistence import read_model_header
from tests.estimators.saved_models import (
    CLASSIFIERS,
    TAGGERS,
    classifier,
    clouds,
    drop_in,
    equal,
    forget,
    points,
    sentences,
    tagger,
    unseen,
)

MODES = pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
FITTED = ("objective_", "dual_gap_", "n_iter_", "solver_", "status_")


@pytest.fixture(autouse=True, scope="module")
def _models_are_forgotten():
    yield
    forget()


def check_same_model(model, again):
    assert type(again) is type(model)
    wanted, found = model.get_params(deep=False), again.get_params(deep=False)
    if isinstance(wanted.get("random_state"), np.random.RandomState):
        wanted["random_state"] = None
    assert wanted.keys() == found.keys()
    for name, value in wanted.items():
        assert equal(value, found[name]), name
    for name in FITTED:
        assert equal(getattr(model, name), getattr(again, name)), name
    assert equal(model.trace_.rows(), again.trace_.rows())
    assert equal(model.classes_, again.classes_)


def check_same_tags(model, again, X):
    assert equal(model.predict(X), again.predict(X))
    assert equal(model.predict_proba(X), again.predict_proba(X))
    full = [x for x in X if len(x if isinstance(x, list) else x.toarray() if hasattr(x, "toarray") else x)]
    assert equal(model.k_best(full, 3), again.k_best(full, 3))


@MODES
@pytest.mark.parametrize("name", TAGGERS)
def test_crf(tmp_path, name, mmap):
    model, X = tagger(name), unseen(name)
    model.save(tmp_path / "crf.model")
    again = dualfield.load(tmp_path / "crf.model", mmap=mmap)
    check_same_model(model, again)
    check_same_tags(model, again, X)
    assert again.structure_ == model.structure_
    assert again.n_features_ == model.n_features_
    assert again.vocabulary_ == model.vocabulary_
    assert again.pair_vocabulary_ == model.pair_vocabulary_
    assert (again.pair_vocabulary_ is again.vocabulary_) == (model.pair_vocabulary_ is model.vocabulary_)
    assert str(again.explain(X[0])) == str(model.explain(X[0]))
    assert equal(again.parameters_, model.parameters_)
    assert equal(again.coef_, model.coef_)
    assert str(again.top_features()) == str(model.top_features())
    assert again.state_features_ == model.state_features_
    check_same_tags(model, again, X)


@MODES
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_kernel_logistic_regression(tmp_path, name, mmap):
    if name == "names":
        pytest.importorskip("pandas", reason="pandas, which gives features names, is not installed")
    model, X = classifier(name), points(name)
    model.save(tmp_path / "klr.model")
    again = dualfield.load(tmp_path / "klr.model", mmap=mmap)
    check_same_model(model, again)
    assert equal(model.decision_function(X), again.decision_function(X))
    assert equal(model.predict_proba(X), again.predict_proba(X))
    assert equal(model.predict(X), again.predict(X))
    assert equal(model.points_, again.points_)
    for attribute in ("dual_coef_", "intercept_", "n_features_in_"):
        assert equal(getattr(model, attribute), getattr(again, attribute)), attribute
    assert equal(model.model_.point_weights, again.model_.point_weights)
    assert model.model_.expansion.kernel.gamma == again.model_.expansion.kernel.gamma
    assert hasattr(model, "feature_names_in_") == hasattr(again, "feature_names_in_")
    if name == "names":
        assert equal(model.feature_names_in_, again.feature_names_in_)


@MODES
def test_model_with_the_arguments_of_sklearn_crfsuite(tmp_path, mmap):
    model, X = drop_in(), unseen("attributes")
    model.save(tmp_path / "crf.model")
    again = dualfield.load(tmp_path / "crf.model", mmap=mmap)
    check_same_model(model, again)
    check_same_tags(model, again, X)
    assert again.dev_score_ == model.dev_score_
    assert again.classes_ == ["B-N", "I-N", "O"]
    assert not hasattr(dualfield.load(saved(tmp_path, crfsuite.CRF().fit(*sentences(5)))), "dev_score_")


@MODES
@pytest.mark.parametrize(
    "restore", [CRF.from_crfsuite, lambda path: crfsuite.CRF(model_filename=str(path))], ids=["read", "named"]
)
def test_model_of_crfsuite(tmp_path, restore, mmap):
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite, which writes the models, is not installed")
    trainer = pycrfsuite.Trainer(verbose=False)
    for items, labels in zip(*sentences(), strict=True):
        trainer.append(items, labels)
    trainer.train(str(tmp_path / "m.crfsuite"))
    model = restore(tmp_path / "m.crfsuite")
    model.save(tmp_path / "crf.model")
    again = dualfield.load(tmp_path / "crf.model", mmap=mmap)
    check_same_tags(model, again, unseen("attributes"))
    check_same_model(model, again)
    assert np.isnan(again.objective_)
    assert np.isnan(read_model_header(tmp_path / "crf.model")["training"]["gap"])


def saved(folder, model):
    model.save(folder / "saved.model")
    return folder / "saved.model"


@MODES
def test_warm_start_goes_on_from_a_loaded_model(tmp_path, mmap):
    X, y = sentences(40, seed=3)
    settings = {"warm_start": True, "max_iter": 2, "tol": 1e-12, "solver": "lbfgs"}
    before = clone(tagger("pairs")).fit(*sentences())
    after = dualfield.load(saved(tmp_path, before), mmap=mmap)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cold = clone(before).set_params(**settings).fit(X, y)
        before.set_params(**settings).fit(X, y)
        after.set_params(**settings).fit(X, y)
    assert equal(before.parameters_, after.parameters_)
    assert not equal(cold.parameters_, after.parameters_)
    check_same_tags(before, after, unseen("pairs"))  # and what is asked now is the new model


@MODES
def test_warm_start_of_a_kernel_model(tmp_path, mmap):
    problem = clouds(3)
    model = KernelLogisticRegression(tol=1e-4, solver="newton").fit(problem.X, problem.y)
    again = dualfield.load(saved(tmp_path, model), mmap=mmap)
    for one in (model, again):
        one.set_params(warm_start=True, C=2.0).fit(problem.X, problem.y)
    assert equal(model.dual_coef_, again.dual_coef_)
    assert model.n_iter_ == again.n_iter_


@MODES
def test_partial_fit_goes_on_from_a_loaded_model(tmp_path, mmap):
    model = CRF(random_state=0).partial_fit(*sentences(20))
    again = dualfield.load(saved(tmp_path, model), mmap=mmap)
    assert again.n_seen_ == 20
    for one in (model, again):
        one.partial_fit(*sentences(20, seed=4))
    assert equal(model.parameters_, again.parameters_)
    assert not hasattr(dualfield.load(saved(tmp_path, tagger("attributes"))), "n_seen_")


@MODES
def test_saved_again_the_file_is_the_same(tmp_path, mmap):
    first = saved(tmp_path, tagger("CRF++"))
    dualfield.load(first, mmap=mmap).save(tmp_path / "second.model")
    assert first.read_bytes() == (tmp_path / "second.model").read_bytes()
    dualfield.load(first, mmap=mmap).save(first)  # in the place of the file that is mapped
    assert first.read_bytes() == (tmp_path / "second.model").read_bytes()


@MODES
@pytest.mark.parametrize("make", [lambda: tagger("CRF++"), lambda: classifier("csr_matrix")], ids=["crf", "klr"])
def test_loaded_models_can_be_pickled_and_cloned(tmp_path, make, mmap):
    model = make()
    X = unseen("CRF++") if isinstance(model, CRF) else points("csr_matrix")
    again = dualfield.load(saved(tmp_path, model), mmap=mmap)
    copies = [pickle.loads(pickle.dumps(dualfield.load(tmp_path / "saved.model", mmap=mmap)))]
    joblib.dump(again, tmp_path / "model.joblib")
    copies.append(joblib.load(tmp_path / "model.joblib"))
    (tmp_path / "saved.model").unlink()
    for one in copies:
        assert equal(one.predict_proba(X), model.predict_proba(X))
    assert not hasattr(clone(again), "classes_")


def test_header_tells_what_the_model_is(tmp_path):
    header = read_model_header(saved(tmp_path, tagger("cost")))
    assert header["format"] == "dualfield-model"
    assert header["format_version"] == 2
    assert header["estimator"] == "CRF"
    assert header["model"]["labels"]["names"] == ["B-N", "I-N", "O"]
    assert header["parameters"]["temperature"] == 0.5
    assert header["training"]["objective"] == tagger("cost").objective_
    assert header["training"]["status"] == "converged"


def test_registry_knows_classes_by_their_names():
    assert {name: found._saved_as for name, found in ESTIMATORS.items()} == {name: name for name in ESTIMATORS}


def test_a_model_that_is_not_fitted_is_not_saved(tmp_path):
    for model in (CRF(), KernelLogisticRegression(), crfsuite.CRF()):
        with pytest.raises(NotFittedError):
            model.save(tmp_path / "m.model")
    assert list(tmp_path.iterdir()) == []


def own_kernel(A, B):
    return A @ B.T


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"kernel": own_kernel}, "kernel"),
        ({"kernel": own_kernel, "kernel_params": {"f": own_kernel}}, "kernel"),
        ({"class_weight": {0: 1.0, 1: 1 + 2j}}, "class_weight"),
    ],
    ids=["function", "function with arguments", "complex number"],
)
def test_what_cannot_be_saved_is_named(tmp_path, settings, name):
    problem = clouds(2)
    good = {key: value for key, value in settings.items() if key == "kernel"}
    model = KernelLogisticRegression(**good).fit(problem.X, problem.y).set_params(**settings)
    with pytest.raises(
        ValueError, match=rf"^The '{name}' parameter of KernelLogisticRegression cannot be saved: .*Got "
    ):
        model.save(tmp_path / "m.model")
    assert list(tmp_path.iterdir()) == []


def test_a_parameter_that_load_would_refuse_is_refused_by_save(tmp_path):
    model = clone(tagger("attributes")).fit(*sentences(5)).set_params(temperature="warm")
    with pytest.raises(ValueError, match="'temperature' parameter of CRF"):
        model.save(tmp_path / "m.model")


def test_a_class_of_the_users_own_is_not_saved(tmp_path):
    class Mine(CRF):
        pass

    with pytest.raises(TypeError, match="Mine is a user-defined class"):
        Mine().fit(*sentences(5)).save(tmp_path / "m.model")


def test_a_model_with_weights_that_are_not_finite_is_not_saved(tmp_path):
    model = clone(tagger("attributes")).fit(*sentences(5))
    model._model = model.model_.with_parameters(np.full_like(model.parameters_, np.nan))
    with pytest.raises(ValueError, match="weights that are not finite"):
        model.save(tmp_path / "m.model")
