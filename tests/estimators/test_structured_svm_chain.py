"""Structural SVMs on sequences reach the minimum of the enumeration, whatever the input and the settings."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield import CRF, StructuredSVM
from dualfield.estimators import Checkpoint
from dualfield.solvers import CuttingPlane, Status
from dualfield.structures import Chain
from tests.estimators.tagging import matrices, objective_of, parameters_of, sentences, vocabulary
from tests.reference.structured_svm import chain_tables, minimum, value

X, Y = sentences(7, longest=4)
COST = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, 1.0], [1.0, 3.0, 0.0]])
HAMMING = 1.0 - np.eye(3)

# Settings of the estimator, and of the enumeration where they are called something else.
VARIANTS = {
    "plain": ({}, {}),
    "all": ({"features": "all"}, {}),
    "rare": ({"min_freq": 2}, {}),
    "ends": ({"start_stop": True}, {}),
    "cost": ({"cost": COST}, {}),
    "C": ({"C": 20.0, "start_stop": True}, {}),
    "small C": ({"C": 0.01}, {}),
    "order 2": ({"structure": Chain(order=2)}, {"order": 2}),
    "pairs": ({"pair_features": ["w="]}, {"pair_prefix": "w="}),
    "slack": ({"rescaling": "slack"}, {}),
    "slack, order 2": ({"rescaling": "slack", "structure": Chain(order=2), "C": 0.3}, {"order": 2}),
}


def tables_of(settings, renamed, X=X, y=Y, **more):
    known = {n: v for n, v in settings.items() if n not in ("structure", "pair_features", "cost", "rescaling")}
    objective = objective_of(X, y, **known, **renamed, **more)
    cost, rescaling = settings.get("cost", HAMMING), settings.get("rescaling", "margin")
    return objective, chain_tables(objective.model, objective.examples, cost, rescaling)


def check(model, objective, tables, tol, positive=None):
    best, _ = minimum(tables, positive)
    assert model.status_ == Status.CONVERGED
    assert model.objective_ == pytest.approx(value(tables, parameters_of(model, objective)), rel=1e-9)
    assert model.dual_gap_ <= tol * best * 1.0001
    assert -1e-8 * best <= model.objective_ - best <= model.dual_gap_ + 1e-8 * best


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("solver", ["auto", "cutting_plane", "labelling_set"])
def test_minimum(name, solver):
    settings, renamed = VARIANTS[name]
    tol = 1e-2 if solver == "labelling_set" else 1e-5  # closer takes seconds; its own tests do that on smaller problems
    model = StructuredSVM(solver=solver, tol=tol, random_state=0, **settings).fit(X, Y)
    check(model, *tables_of(settings, renamed), tol)
    simple = name not in ("order 2", "pairs", "slack", "slack, order 2")
    # Where swaps crawl, auto goes on with cuts.
    auto = ("flow_swap", "cutting_plane") if simple else ("cutting_plane",)
    assert model.solver_ in (auto if solver == "auto" else (solver,))


def test_all_solvers_agree():
    data = sentences(20)
    best = StructuredSVM(C=0.2, tol=1e-8, solver="cutting_plane").fit(*data).objective_
    for solver in ("flow_swap", "frank_wolfe", "cutting_plane", "labelling_set", "marginal", "sgd", "plane_sgd"):
        rough = solver in ("frank_wolfe", "sgd", "plane_sgd")
        model = StructuredSVM(C=0.2, tol=2e-2 if rough else 1e-4, solver=solver, random_state=0).fit(*data)
        assert best * (1 - 1e-7) <= model.objective_ <= best * (1 + (5e-2 if rough else 1.1e-4))
        assert model.objective_ - model.dual_gap_ <= best * (1 + 1e-7)


def test_constraints_are_kept():
    model = StructuredSVM(constraints="BIO", tol=1e-6, C=0.5).fit(X, Y)
    allowed = {(a, b) for a in range(3) for b in range(3) if not (a == 2 and b == 1)}
    objective = objective_of(X, Y, C=0.5, allowed=allowed)
    objective.model.allowed_start = {0, 2}
    tables = chain_tables(objective.model, objective.examples, HAMMING)
    check(model, objective, tables, 1e-6)
    for labels in model.predict(sentences(40, seed=3)[0]):
        assert all(a != "O" or b != "I-N" for a, b in zip(["O", *labels], labels, strict=False))


def test_input_forms_give_one_model():
    names = vocabulary(X)
    attributes = StructuredSVM(tol=1e-8, solver="cutting_plane").fit(X, Y)
    for form in (
        matrices(X, names),
        [[dict.fromkeys(item, 1.0) for item in xs] for xs in X],
        (xs for xs in X),
    ):
        other = StructuredSVM(tol=1e-8, solver="cutting_plane").fit(form, Y)
        assert other.objective_ == pytest.approx(attributes.objective_, rel=1e-7)
    flat = StructuredSVM(tol=1e-8, solver="cutting_plane")
    flat.fit(np.vstack(matrices(X, names)), Y, lengths=[len(xs) for xs in X])
    assert flat.objective_ == pytest.approx(attributes.objective_, rel=1e-7)


def test_sample_weights():
    weights = np.array([1.0, 0.0, 2.0, 1.0, 3.0, 0.5, 1.0])
    model = StructuredSVM(tol=1e-6).fit(X, Y, sample_weight=weights)
    check(model, *tables_of({}, {}, weights=weights), 1e-6)


@pytest.mark.parametrize("positive", [True, ["w="], [("last=", "O"), "first"]])
def test_positive_weights(positive):
    model = StructuredSVM(positive=positive, tol=1e-6, features="all").fit(X, Y)
    objective, tables = tables_of({"features": "all"}, {})
    flags = np.zeros(objective.model.size)
    node = objective.model.blocks(flags)[0]
    for at, name in enumerate(vocabulary(X)):
        if positive == ["w="]:
            node[at] = name.startswith("w=")
        elif positive is not True:
            node[at] = name.startswith("first")
            node[at, 2] = name.startswith(("last=", "first"))
    flags = np.ones(objective.model.size) if positive is True else flags
    check(model, objective, tables, 1e-6, flags > 0)
    assert (parameters_of(model, objective)[flags > 0] >= 0).all()


@pytest.mark.parametrize("structure", ["chain", Chain(order=2)])
def test_cold_crf_predicts_the_same(structure):
    """T -> 0 of the CRF with the same cost is the hinge: values, weights, and every label that is no near-tie."""
    train, test = sentences(40, seed=1), sentences(60, seed=2)[0]
    svm = StructuredSVM(structure, C=0.1, tol=1e-8, solver="cutting_plane").fit(*train)
    best = np.sort(svm.structure_.max_marginals(svm.decision_scores(test)), axis=1)
    clear = best[:, -1] - best[:, -2] > 0.05  # what every labelling with another label there loses
    apart, off = [], []
    for temperature in (0.1, 0.003):
        cold = CRF(structure, C=0.1, cost="hamming", temperature=temperature, tol=1e-6, solver="lbfgs", max_iter=20_000)
        cold.fit(*train)
        apart.append(cold.objective_ - svm.objective_)
        off.append(np.abs(cold.transitions_ - svm.transitions_).max())
    assert 0 <= apart[1] < 0.02 * apart[0]
    assert off[1] < 0.1 * off[0]
    hinge, frozen = (np.concatenate([np.array(labels) for labels in model.predict(test)]) for model in (svm, cold))
    assert clear.sum() > 150
    np.testing.assert_array_equal(hinge[clear], frozen[clear])


def test_warm_start_matches_names():
    model = StructuredSVM(tol=1e-3, solver=CuttingPlane("n"), warm_start=True).fit(*sentences(30))
    cold = model.n_iter_
    X2, y2 = sentences(30)
    model.fit([list(reversed(X2))[i] for i in range(30)], [list(reversed(y2))[i] for i in range(30)])
    assert model.n_iter_ < cold


def test_monitor():
    seen = []

    def monitor(moment, model):
        seen.append((moment.gap, model.score(X, Y)))
        return len(seen) == 3

    model = StructuredSVM(solver="cutting_plane", tol=1e-9).fit(X, Y, monitor=monitor)
    assert model.status_ == Status.STOPPED
    assert len(seen) == 3
    assert seen[-1][0] == model.dual_gap_


def test_checkpoint_needs_a_solver_that_keeps_its_state(tmp_path):
    with pytest.raises(ValueError, match="checkpoint needs a solver in native code: CuttingPlane"):
        StructuredSVM(solver="cutting_plane").fit(X, Y, checkpoint=Checkpoint(tmp_path / "state"))


def test_template_and_inspection():
    sentences_ = [[["the", "DT"], ["dog", "NN"]], [["a", "DT"], ["cat", "NN"], ["runs", "VB"]]]
    labels = [["B", "I"], ["B", "I", "O"]]
    model = StructuredSVM(template="U00:%x[0,0]\nU01:%x[0,1]\nB", C=10.0, tol=1e-6).fit(sentences_, labels)
    assert model.predict(sentences_) == labels
    assert ("U01:DT", "B") in model.state_features_
    assert "U01:DT" in str(model.top_features(3))


def test_refused():
    with pytest.raises(ValueError, match="cannot be used with partly labelled y"):
        StructuredSVM().fit(X, [[None, *ys[1:]] for ys in Y])
    with pytest.raises(ValueError, match=r"The 'constraints' parameter of StructuredSVM must be"):
        StructuredSVM(constraints="BILOU").fit(X, Y)
    with pytest.raises(ValueError, match=r"does not fit rescaling='slack'.* number of wrong labels only"):
        StructuredSVM(rescaling="slack", cost=COST).fit(X, Y)
    with pytest.raises(ValueError, match="The 'pair_features' parameter of StructuredSVM"):
        StructuredSVM(pair_features=3).fit(X, Y)
