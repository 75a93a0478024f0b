"""Manners of ConditionalGraphicalModel: parameters, errors, warnings, threads."""

from __future__ import annotations

import pickle
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

from dualfield import ConditionalGraphicalModel
from dualfield.solvers import Status
from dualfield.structures import Chain, Dependency
from tests.estimators.test_graphical_optimum import words


def test_parameters_are_kept_and_cloned() -> None:
    model = ConditionalGraphicalModel(2, loss="log", tying="position", combine={0: 1.0, 2: 0.5}, padding=(1, 2))
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again.set_params(C=3.0).C == 3.0
    assert ConditionalGraphicalModel().get_params()["unseen"] == "backoff"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("graph", -1, r"must be an int in \[0, inf\), a Chain, a list of tuples of nodes, 'tree' .*Got -1"),
        ("graph", True, "The 'graph' parameter"),
        ("graph", "ring", "The 'graph' parameter"),
        ("graph", "semi_markov", "cliques are fixed .* Those of 'semi_markov' depend on the labelling"),
        ("graph", Dependency(), r"cliques are fixed .* Those of Dependency\(\) depend on the labelling"),
        ("graph", Chain(3, 1, [[True] * 3] * 3), "takes the order of a chain only"),
        ("loss", "zero", "The 'loss' parameter of ConditionalGraphicalModel must be"),
        ("kernel", "precomputed", "The 'kernel' parameter"),
        ("gamma", "cliques", "The 'gamma' parameter"),
        ("gamma", 0.0, "The 'gamma' parameter"),
        ("C", -1.0, r"The 'C' parameter of ConditionalGraphicalModel must be a float in \(0, inf\). Got -1.0 instead"),
        ("tying", "length", "The 'tying' parameter"),
        ("padding", 1, "The 'padding' parameter"),
        ("padding", (1, -1), "The 'padding' parameter"),
        ("unseen", "zero", "The 'unseen' parameter"),
        ("unseen", np.inf, "The 'unseen' parameter"),
        ("unseen", None, "The 'unseen' parameter"),
        ("backoff_cost", -1.0, "The 'backoff_cost' parameter"),
        ("features", "both", "The 'features' parameter"),
        ("combine", "mean", "The 'combine' parameter"),
        ("combine", {0: -1.0}, "The 'combine' parameter"),
        ("combine", {}, "The 'combine' parameter"),
        ("combine", {0.5: 1.0}, "The 'combine' parameter"),
        ("response_method", "predict", "The 'response_method' parameter"),
        ("tol", 0.0, "The 'tol' parameter"),
        ("max_iter", 0, "The 'max_iter' parameter"),
        ("cache_size", -1, "The 'cache_size' parameter"),
        ("verbose", -1, "The 'verbose' parameter"),
    ],
)
def test_wrong_parameters_are_named(name: str, value: Any, message: str) -> None:
    X, y = words()
    with pytest.raises(ValueError, match=message):
        ConditionalGraphicalModel(**{"loss": "squared", name: value}).fit(X, y)


def test_parts_that_do_not_fit() -> None:
    X, y = words()
    with pytest.raises(ValueError, match=r"features='tied' is trained with loss='hinge'. Got loss='log'"):
        ConditionalGraphicalModel(loss="log", features="tied").fit(X, y)
    with pytest.raises(TypeError, match=r"The 'tying' parameter .* must return something hashable"):
        ConditionalGraphicalModel(loss="squared", tying=lambda position, length: [position]).fit(X, y)
    with pytest.raises(ValueError, match="must not name an order above that of the graph, 1"):
        ConditionalGraphicalModel(1, loss="squared", combine={2: 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="more than cache_size"):
        ConditionalGraphicalModel(loss="squared", cache_size=100).fit(X, y)


def test_wrong_input() -> None:
    X, y = words()
    model = ConditionalGraphicalModel(loss="squared")
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(TypeError, match="X must be numbers"):
        model.fit([[["a"], ["b"]]], [["x", "y"]])
    with pytest.raises(ValueError, match=r"X must have at least one sequence\. Got none\."):
        model.fit([], [])
    with pytest.raises(ValueError, match=r"y\[0\] has 1 labels; X\[0\] has"):
        model.fit(X, [["a"], *y[1:]])
    with pytest.raises(ValueError, match="at least one node"):
        model.fit([np.zeros((0, 3))], [[]])
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, np.ones(3))
    with pytest.raises(ValueError, match=r"sample_weight must have an entry|Sample weights must contain"):
        model.fit(X, y, np.zeros(len(X)))
    model.fit(X, y)
    with pytest.raises(ValueError, match="expected 3, as in training"):
        model.predict([np.zeros((2, 4))])
    with pytest.raises(ValueError, match=r"y\[0\] has 1 labels"):
        model.score(X, [["a"], *y[1:]])
    with pytest.raises(AttributeError, match="predict_proba"):
        model.predict_proba(X)


def test_all_forms_of_input_give_the_same_model() -> None:
    X, y = words()
    expected = ConditionalGraphicalModel(1, loss="squared", padding=(1, 1)).fit(X, y)
    lengths = [len(row) for row in X]
    forms: list[tuple[Any, dict[str, Any]]] = [
        (np.concatenate(X), {"lengths": lengths}),
        ([row.tolist() for row in X], {}),
        ([sparse.csr_matrix(row) for row in X], {}),
    ]
    for form, more in forms:
        model = ConditionalGraphicalModel(Chain(order=1), loss="squared", padding=(1, 1)).fit(form, y, **more)
        assert model.objective_ == pytest.approx(expected.objective_)
        assert model.predict(form, **more) == expected.predict(X)
    arrays = ConditionalGraphicalModel(1, loss="squared").fit(X, [np.array(row) for row in y]).predict(X)
    assert all(isinstance(row, np.ndarray) for row in arrays)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_results_do_not_depend_on_the_number_of_jobs(loss: Any) -> None:
    X, y = words(n=20)
    for tying in ("shared", "position"):
        one, two = (
            ConditionalGraphicalModel(1, loss=loss, tying=tying, n_jobs=jobs, random_state=0).fit(X, y)
            for jobs in (1, 2)
        )
        assert one.predict(X) == two.predict(X)
        assert one.objective_ == two.objective_
        for key, model in one.clique_models_.items():
            np.testing.assert_array_equal(model.coefficients, two.clique_models_[key].coefficients)


def test_problems_can_run_in_other_processes() -> None:
    X, y = words(n=10)
    here = ConditionalGraphicalModel(1, loss="log", tying="position").fit(X, y)
    with joblib.parallel_config("loky", n_jobs=2):
        there = ConditionalGraphicalModel(1, loss="log", tying="position").fit(X, y)
    assert there.objective_ == here.objective_
    again = pickle.loads(pickle.dumps(there))
    assert again.predict(X) == here.predict(X)


def test_a_type_that_did_not_converge_is_named() -> None:
    X, y = words(n=20)
    with pytest.warns(ConvergenceWarning, match=r"of 3 clique types did not converge. The first is 'shared' with"):
        model = ConditionalGraphicalModel(2, loss="log", C=1e6, tol=1e-12, max_iter=1).fit(X, y)
    assert model.status_ is Status.ITERATION_LIMIT
    assert model.dual_gap_ > 0


def test_progress_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = words()
    ConditionalGraphicalModel(1, loss="squared", verbose=1).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ConditionalGraphicalModel: 1 nodes, 'shared': ")
    assert "converged, relative gap" in lines[1]


def test_it_is_an_estimator_for_grid_search() -> None:
    X, y = words(n=12)
    search = GridSearchCV(
        ConditionalGraphicalModel(1, loss="squared"), {"C": [0.1, 10.0], "unseen": ["-inf", 0.0]}, cv=3
    )
    assert search.fit(X, y).best_score_ > 0.4


def test_several_labels_for_each_row_are_no_sequence():
    with pytest.raises(ValueError, match=r"graph=0 is for sequences, but y has shape \(6, 2\).* graph='tree'"):
        ConditionalGraphicalModel(0).fit(np.ones((6, 3)), np.zeros((6, 2), dtype=int))
