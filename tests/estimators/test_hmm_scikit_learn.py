"""HMMs with scikit-learn's manners, and in model files."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

import dualfield
from dualfield import DiscriminativeHMM
from dualfield.solvers import Simplicial
from tests.estimators.saved_hmms import FOREIGN, MODELS, TEXTS, X, Y, fitted
from tests.estimators.saved_models import equal
from tests.estimators.test_saved import check_same_model


def test_parameters_are_stored_as_given():
    settings = {
        "eta": 0.2,
        "prior": {"start": [1.0, 2.0]},
        "rare": len,
        "solver": Simplicial(2),
        "smoothing": {"start": 1},
    }
    model = DiscriminativeHMM(**settings)
    for name, value in settings.items():
        assert model.get_params(deep=False)[name] is value
    again = clone(model)
    assert again.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert not hasattr(again, "classes_")
    assert model.set_params(eta=0.0, prior="prob").fit(X, Y) is model
    assert "eta=0.0" in repr(model)
    assert DiscriminativeHMM(eta=-5).eta == -5  # checked in fit


def test_grid_search():
    search = GridSearchCV(DiscriminativeHMM(tol=0.1), {"eta": [0.0, 0.05], "smoothing": [0.1, 1.0]}, cv=3)
    search.fit(TEXTS, [y.tolist() for y in Y])
    assert search.best_score_ > 0.4
    assert search.predict(TEXTS[:1])
    assert len(cross_val_score(DiscriminativeHMM(0.0), X, Y, cv=4)) == 4


def test_score_is_the_share_of_right_states():
    model = DiscriminativeHMM(0.0).fit(X, Y)
    right = [np.mean(np.concatenate(model.predict(X)) == np.concatenate(Y))]
    assert model.score(X, Y) == pytest.approx(right[0])


def answers(model, data):
    found = [model.predict(data), model.predict_proba(data), model.score_samples(data), model.filter(data)]
    found += [model.sample(3, 5, random_state=0), model.startprob_, model.transmat_, model.emissionprob_]
    found += [model.symbols_, model.rare_classes_, list(model.missing_mass_.values()), model.n_completions_]
    found += [model.parameters_, model.n_features_, list(model.vocabulary_)]
    if isinstance(data[0], list) and isinstance(data[0][0], str):
        found += [model.predict_proba(FOREIGN)]
    return found


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("name", MODELS)
def test_models_come_back_from_files(tmp_path, name, mmap):
    model, data = fitted(name)
    model.save(tmp_path / "hmm.model")
    again = dualfield.load(tmp_path / "hmm.model", mmap=mmap)
    check_same_model(model, again)
    assert equal(answers(model, data), answers(again, data))
    again.save(tmp_path / "again.model")
    assert (tmp_path / "again.model").read_bytes() == (tmp_path / "hmm.model").read_bytes()


@pytest.mark.parametrize("name", ["zeros", "shapes"])
def test_models_can_be_copied_and_pickled(name):
    model, data = fitted(name)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert equal(answers(model, data), answers(again, data))


def test_functions_are_not_saved(tmp_path):
    model = DiscriminativeHMM(0.0, min_count=2, rare=len).fit(TEXTS, Y)
    with pytest.raises(ValueError, match=r"The 'rare' parameter of DiscriminativeHMM cannot be saved: .* no code"):
        model.save(tmp_path / "hmm.model")
    assert not list(tmp_path.iterdir())


def test_what_is_saved_can_be_loaded(tmp_path):
    """Logarithms a little above 0, which rounding may leave in a row with one entry; what load refuses is not saved."""
    model = DiscriminativeHMM(0.0).fit([["a", "a"]], [["x", "x"]])
    model._model = model.model_.with_parameters(model.parameters_ + 2.0**-52)
    model.save(tmp_path / "hmm.model")
    assert equal(dualfield.load(tmp_path / "hmm.model").emissionprob_, model.emissionprob_)
    for change in (1e-6, np.nan, np.inf):
        model._model = model.model_.with_parameters(model.parameters_ + change)
        with pytest.raises(ValueError, match="cannot be saved: its tables must have probabilities"):
            model.save(tmp_path / "other.model")
    assert [path.name for path in tmp_path.iterdir()] == ["hmm.model"]


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    model, data = fitted("trained")
    model.save(tmp_path / "hmm.model")
    again = dualfield.load(tmp_path / "hmm.model").fit(data, Y)
    assert equal(again.parameters_, model.parameters_)
