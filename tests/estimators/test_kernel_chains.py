"""CRFs and structural SVMs with a kernel: reductions, certificates, input forms, prediction, files, refusals."""

import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

import dualfield
from dualfield import (
    CRF,
    ConditionalGraphicalModel,
    KernelLogisticRegression,
    LatentCRF,
    LatentStructuredSVM,
    StructuredSVM,
)
from dualfield.kernels import Kernel
from dualfield.report import training_page
from dualfield.solvers import KernelAscent, LabellingSMO, Status
from dualfield.structures import Chain

MODELS = [CRF, StructuredSVM]


def sequences(n=30, seed=0, noise=0.5):
    random = np.random.default_rng(seed)
    y = [random.choice(["a", "b", "c"], size=k).tolist() for k in random.integers(1, 6, n)]
    middle = {"a": [0.0, 0.0], "b": [1.0, 1.0], "c": [2.0, 0.0]}
    return [np.array([middle[k] for k in each]) + noise * random.normal(size=(len(each), 2)) for each in y], y


@pytest.mark.parametrize("model", MODELS)
def test_a_linear_kernel_is_the_linear_model(model):
    X, y = sequences()
    plain = model(C=2.0, tol=1e-7, features="all", start_stop=True).fit(X, y)
    kernel = model(C=2.0, tol=1e-7, features="all", start_stop=True, kernel="linear").fit(X, y)
    assert kernel.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    weights = kernel.expansion_.coefficients.T @ kernel.expansion_.points
    np.testing.assert_allclose(weights, plain.coef_, atol=2e-2)
    np.testing.assert_allclose(kernel.transitions_, plain.transitions_, atol=2e-2)
    np.testing.assert_allclose(kernel.start_, plain.start_, atol=2e-2)


@pytest.mark.parametrize("model", MODELS)
def test_attributes_and_sparse_rows_are_the_same_problem(model):
    X, y = sequences(12)
    rounded = [np.maximum(np.round(x), 0.0) for x in X]
    dense = model(kernel="rbf", gamma=0.5, tol=1e-6).fit(rounded, y)
    rows = scipy.sparse.csr_array(np.concatenate(rounded))
    sparse = model(kernel="rbf", gamma=0.5, tol=1e-6).fit(rows, y, lengths=[len(x) for x in X])
    dicts = [[{"one": r[0], "two": r[1]} for r in x.tolist()] for x in rounded]
    named = model(kernel="rbf", gamma=0.5, tol=1e-6).fit(dicts, y)
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=1e-5)
    assert named.objective_ == pytest.approx(dense.objective_, rel=1e-5)
    assert named.predict(dicts) == dense.predict(rounded)


def test_sequences_of_one_node_are_kernel_logistic_regression_without_a_bias():
    X, y = sequences(60, noise=1.0)
    rows, labels = np.concatenate(X), np.concatenate(y)
    crf = CRF(kernel="rbf", gamma=0.7, C=3.0, tol=1e-8).fit(rows[:, None, :], labels[:, None])
    peer = KernelLogisticRegression("rbf", gamma=0.7, C=3.0, fit_intercept=False, tol=1e-8).fit(rows, labels)
    assert crf.objective_ == pytest.approx(peer.objective_, rel=1e-6)
    np.testing.assert_allclose(np.concatenate(crf.predict_proba(rows[:, None, :])), peer.predict_proba(rows), atol=1e-3)


def test_single_nodes_are_as_good_as_libsvm():
    X, y = sequences(150, noise=0.8)
    rows, labels = np.concatenate(X), np.concatenate(y)
    train, test = slice(0, 250), slice(250, None)
    model = StructuredSVM("single", kernel="rbf", gamma=0.5, C=1.0).fit(rows[train], labels[train])
    peer = SVC(C=1.0, gamma=0.5).fit(rows[train], labels[train])
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.score(rows[test], labels[test]) > peer.score(rows[test], labels[test]) - 0.03
    assert len(model.expansion_.points) < 250


@pytest.mark.parametrize("model", MODELS)
def test_predictions_follow_from_the_expansion_and_the_transitions(model):
    X, y = sequences(20)
    fitted = model(kernel="poly", gamma=0.3, coef0=1.0, degree=2, start_stop=True).fit(X, y)
    new, _ = sequences(5, seed=9)
    scores = fitted.decision_scores(new)
    node = Kernel("poly", 0.3, 1.0, 2.0).values(np.concatenate(new), fitted.expansion_.points)
    np.testing.assert_allclose(scores.node, node @ fitted.expansion_.coefficients, atol=1e-9)
    codes = fitted.structure_.argmax(scores)
    assert [label for one in fitted.predict(new) for label in one] == fitted.classes_[codes].tolist()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["k-means++", "greedy", "leverage", "random"])
def test_landmarks_say_what_they_lost(model, method):
    X, y = sequences(25)
    exact = model(kernel="rbf", gamma=0.5, tol=1e-6, start_stop=True, transition_scale=0.5).fit(X, y)
    few = clone(exact).set_params(kernel_approx=(12, method), random_state=0).fit(X, y)
    lost = few.objective_ - exact.objective_
    assert 0.0 < lost <= few.dual_gap_
    assert few.dual_gap_ < 0.5 * few.objective_
    assert few.expansion_.points.shape == (12, 2)
    again = clone(few).set_params(kernel_approx=few.expansion_.points).fit(X, y)
    assert again.objective_ == pytest.approx(few.objective_, rel=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_all_points_as_landmarks_lose_nothing(model):
    X, y = sequences(15)
    every = model(kernel="rbf", gamma=0.5, tol=1e-7, kernel_approx=10_000).fit(X, y)
    assert every.dual_gap_ <= 1e-5 * every.objective_


def test_smo_and_ascent_agree():
    X, y = sequences(10)
    one = CRF(kernel="rbf", gamma=0.5, solver="labelling_smo", tol=1e-6).fit(X, y)
    two = CRF(kernel="rbf", gamma=0.5, tol=1e-6).fit(X, y)
    assert (one.solver_, two.solver_) == ("labelling_smo", "kernel_ascent")
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-5)
    assert CRF(kernel="rbf", solver=LabellingSMO(), tol=1e-2).fit(X, y).solver_ == "labelling_smo"


@pytest.mark.parametrize("model", MODELS)
def test_constraints_weights_and_threads(model):
    X, y = sequences(25)
    allowed = np.ones((3, 3), dtype=bool)
    allowed[0, 2] = False
    inside = [all((a, c) != ("a", "c") for a, c in itertools.pairwise(one)) for one in y]
    X, y = ([each for each, good in zip(part, inside, strict=True) if good] for part in (X, y))
    weights = np.linspace(0.0, 2.0, len(X))
    one, two = (
        model(kernel="rbf", gamma=0.5, constraints=allowed, n_jobs=jobs, random_state=0).fit(X, y, weights)
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.parameters_, two.parameters_)
    new, _ = sequences(30, seed=5)
    assert all((a, c) != ("a", "c") for one_ in one.predict(new) for a, c in itertools.pairwise(one_))


def test_second_order_and_costs_and_temperatures():
    X, y = sequences(15)
    model = CRF(Chain(order=2), kernel="rbf", gamma=0.5, cost="hamming", temperature=0.5, tol=1e-5).fit(X, y)
    assert model.dual_gap_ <= 1e-5 * model.objective_
    margin = StructuredSVM(Chain(order=2), kernel="rbf", gamma=0.5, tol=1e-3).fit(X, y)
    assert margin.dual_gap_ <= 1e-3 * margin.objective_


def test_a_warm_start_goes_on_from_the_last_fit():
    X, y = sequences(40)
    model = CRF(kernel="rbf", gamma=0.5, tol=1e-6, warm_start=True).fit(X, y)
    first = model.trace_.passes[-1]
    model.fit(X, y)
    assert model.trace_.passes[-1] < 0.5 * first


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("form", ["dense", "dicts", "landmarks"])
def test_saved_models_predict_the_same(model, form, tmp_path):
    X, y = sequences(12)
    if form == "dicts":
        X = [[{"one": r[0], f"two={round(r[1])}": 1.0} for r in x.tolist()] for x in X]
    fitted = model(kernel="rbf", gamma=0.5, kernel_approx=5 if form == "landmarks" else None).fit(X, y)
    fitted.save(tmp_path / "model")
    for mmap in (False, True):
        again = dualfield.load(tmp_path / "model", mmap=mmap)
        assert again.predict(X) == fitted.predict(X)
        assert again.n_features_ == fitted.n_features_
        np.testing.assert_array_equal(again.expansion_.coefficients, fitted.expansion_.coefficients)
    damaged = (tmp_path / "model").read_bytes().replace(b'\\"rbf\\"', b'\\"rbx\\"')
    (tmp_path / "damaged").write_bytes(damaged)
    with pytest.raises(ValueError, match="damaged"):
        dualfield.load(tmp_path / "damaged")


def test_single_nodes_with_a_kernel_are_saved(tmp_path):
    X, y = sequences(12)
    model = StructuredSVM("single", kernel="rbf").fit(np.concatenate(X), np.concatenate(y))
    model.save(tmp_path / "model")
    again = dualfield.load(tmp_path / "model")
    assert again.n_features_in_ == 2
    np.testing.assert_array_equal(again.predict(np.concatenate(X)), model.predict(np.concatenate(X)))


@pytest.mark.parametrize("what", ["coef_", "state_features_"])
def test_what_needs_weights_of_columns_says_so(what):
    X, y = sequences(5)
    with pytest.raises(AttributeError, match="see expansion_"):
        getattr(CRF(kernel="rbf").fit(X, y), what)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "cosine"}, "'kernel' parameter of CRF must be"),
        ({"kernel": "precomputed"}, "'kernel' parameter of CRF must be"),
        ({"kernel": "rbf", "gamma": -1.0}, "'gamma' parameter of CRF must be"),
        ({"kernel": "rbf", "gamma": "wide"}, "'gamma' parameter of CRF must be"),
        ({"kernel": "rbf", "l1_ratio": 0.5}, "'l1_ratio' parameter of CRF is for features"),
        ({"kernel": "rbf", "pair_features": True}, "'pair_features' parameter of CRF is for features"),
        ({"kernel": "rbf", "solver": "lbfgs"}, "'solver' parameter of CRF must be one of"),
        ({"kernel": "rbf", "kernel_approx": 0}, "'kernel_approx' parameter of CRF must be an int"),
        ({"kernel": "rbf", "kernel_approx": (5, "best")}, "'kernel_approx' parameter of CRF must be"),
        ({"kernel": "rbf", "kernel_approx": "many"}, "'kernel_approx' parameter of CRF must be"),
        ({"kernel": "rbf", "kernel_approx": [[1.0, 2.0, 3.0]]}, "must have 2 columns"),
        ({"kernel": "rbf", "transition_scale": 0.0}, "'transition_scale' parameter of CRF must be"),
        ({"transition_scale": 0.5}, "'transition_scale' parameter of CRF needs a kernel"),
        ({"kernel_approx": 5}, "'kernel_approx' parameter of CRF needs a kernel"),
        ({"kernel": "rbf", "cache_size": -1}, "'cache_size' parameter of CRF must be"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, y = sequences(5)
    with pytest.raises(ValueError, match=message):
        CRF(**parameters).fit(X, y)


def test_what_a_kernel_cannot_do_is_said():
    X, y = sequences(5)
    with pytest.raises(ValueError, match="labelled in part"):
        CRF(kernel="rbf").fit(X, [[None] * len(one) for one in y[:-1]] + [y[-1]])
    with pytest.raises(ValueError, match="monitor must be None"):
        CRF(kernel="rbf").fit(X, y, monitor=print)
    with pytest.raises(ValueError, match="partial_fit must have kernel=None"):
        CRF(kernel="rbf").partial_fit(X, y)
    with pytest.raises(ValueError, match="'rescaling' parameter"):
        StructuredSVM(kernel="rbf", rescaling="slack").fit(X, y)
    with pytest.raises(ValueError, match="'positive' parameter"):
        StructuredSVM(kernel="rbf", positive=True).fit(X, y)


def test_models_with_hidden_parts_refuse_a_kernel():
    X, y = sequences(5)
    with pytest.raises(ValueError, match="cost=None and kernel=None"):
        LatentCRF(CRF(kernel="rbf")).fit(X, y)
    with pytest.raises(ValueError, match="positive=None and kernel=None"):
        LatentStructuredSVM(StructuredSVM(kernel="rbf")).fit(X, y)


@pytest.mark.parametrize("model", MODELS)
def test_transitions_are_shown_without_columns(model):
    X, y = sequences(12)
    found = model(kernel="rbf").fit(X, y)
    top = found.top_features(3)
    assert not top.positive
    assert not top.negative
    assert top.likely or top.unlikely
    assert "Transitions" in str(training_page(found, title="Letters"))


def test_a_fit_that_ends_early_warns_with_its_gap():
    X, y = sequences(40)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CRF(kernel="rbf", tol=1e-12, max_iter=1).fit(X, y)
    assert any("Relative duality gap" in str(one.message) for one in caught)


def test_a_kernel_of_ones_own():
    X, y = sequences(15)

    def cosine(a, b):
        return (a @ b.T) / np.linalg.norm(a, axis=1)[:, None] / np.linalg.norm(b, axis=1)

    model = CRF(kernel=cosine, solver=KernelAscent(set_size=8), tol=1e-4).fit(X, y)
    assert model.dual_gap_ <= 1e-4 * model.objective_
    with pytest.raises(ValueError, match="kernel"):
        model.save("nowhere")


@pytest.mark.parametrize("seed", range(6))
def test_a_tight_tolerance_is_reached_in_any_order_of_examples(seed):
    X, y = sequences()
    model = StructuredSVM(C=2.0, tol=1e-7, features="all", start_stop=True, kernel="linear", random_state=seed)
    assert model.fit(X, y).status_ is Status.CONVERGED


@pytest.mark.parametrize(
    "model",
    [
        CRF(),
        StructuredSVM(),
        CRF(kernel="rbf"),
        StructuredSVM(kernel="rbf"),
        CRF(kernel="rbf", kernel_approx=5),
        ConditionalGraphicalModel(1),
    ],
    ids=repr,
)
def test_the_same_data_give_the_same_model(model):
    """Without a seed too, whatever state the generator of the process is in."""
    X, y = sequences(12)
    np.random.seed(1)  # noqa: NPY002
    one = clone(model).fit(X, y)
    np.random.seed(2)  # noqa: NPY002
    two = clone(model).fit(X, y)
    assert one.objective_ == two.objective_
    assert one.dual_gap_ == two.dual_gap_
    new, _ = sequences(5, seed=9)
    assert one.predict(new) == two.predict(new)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("r", [3, 10_000])
@pytest.mark.parametrize("C", [1e-3, 1e4])
def test_gaps_of_landmarks_are_true_and_never_negative(model, r, C):
    X, y = sequences(12)
    few = model(kernel="rbf", gamma=0.5, C=C, kernel_approx=r, tol=1e-6, max_iter=200)
    exact = model(kernel="rbf", gamma=0.5, C=C, tol=1e-6, max_iter=400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        few.fit(X, y)
        exact.fit(X, y)
    assert few.dual_gap_ > 0.0
    assert few.objective_ - few.dual_gap_ <= exact.objective_
    assert few.objective_ >= exact.objective_ - exact.dual_gap_
    nodes = few.decision_scores(X)
    cost = None if model is CRF else (1.0 - np.eye(3))[few.labels_.encode(y, nodes.offsets)]
    chain, truth = few.structure_, few.labels_.encode(y, nodes.offsets)
    loss = chain.log_partition(nodes, temperature=1.0 if model is CRF else 0.0, cost=cost) - chain.score(nodes, truth)
    spread = few.expansion_.coefficients
    square = np.vdot(spread, few.expansion_.kernel.values(few.expansion_.points, few.expansion_.points) @ spread)
    value = 0.5 * (square + np.square(few.transitions_).sum()) + C * loss.sum()
    assert few.objective_ == pytest.approx(value, rel=1e-6)
