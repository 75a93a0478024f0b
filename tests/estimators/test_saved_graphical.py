"""Conditional graphical models come back from their files as they were; what is unsound is refused."""

import dataclasses
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import dualfield
from dualfield import ConditionalGraphicalModel
from dualfield.kernels.summed import SummedKernel
from dualfield.persistence import ModelFileError, read_model_header
from dualfield.structures import Chain
from tests.estimators.mutations import Forger
from tests.estimators.saved_graphical_models import (
    GRAPHS,
    SEQUENCES,
    SHAPES,
    connected,
    forget,
    labeller,
    rows,
    shapes,
    tagger,
    unseen_by,
)
from tests.estimators.saved_models import equal
from tests.estimators.test_graphical_fixed import data
from tests.estimators.test_graphical_optimum import words
from tests.estimators.test_saved_refused import array, at, drop, put

MODES = pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])


@pytest.fixture(autouse=True, scope="module")
def _models_are_forgotten():
    yield
    forget()


def reloaded(folder, model, *, mmap=False):
    model.save(folder / "saved.model")
    return dualfield.load(folder / "saved.model", mmap=mmap)


def same_kernel(a, b):
    if a is None or b is None:
        return a is b
    if isinstance(a.function, SummedKernel):
        return a.function.size == b.function.size and same_kernel(a.function.kernel, b.function.kernel)
    return (a.function, a.gamma, a.coef0, a.degree) == (b.function, b.gamma, b.coef0, b.degree)


def check_same(model, again, X):
    assert type(again) is type(model)
    wanted, found = model.get_params(deep=False), again.get_params(deep=False)
    if isinstance(wanted["random_state"], np.random.RandomState):
        wanted["random_state"] = None
    for name, value in wanted.items():
        assert equal(value, found[name]), name
    assert equal(again.predict(X), model.predict(X))
    for order, table in model.clique_scores(X).items():
        for name, values in vars(again.clique_scores(X)[order]).items():
            assert equal(values, getattr(table, name)), (order, name)
    if model.loss == "log":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # types of cliques that training did not have
            assert equal(again.predict_proba(X), model.predict_proba(X))
    for name in ("objective_", "dual_gap_", "n_iter_", "status_", "classes_", "graph_", "n_features_in_"):
        assert equal(getattr(model, name), getattr(again, name)), name
    assert (again.labels_.kind, again.labels_.arrays) == (model.labels_.kind, model.labels_.arrays)
    assert list(model.clique_models_) == list(again.clique_models_)
    for key, one in model.clique_models_.items():
        for part in dataclasses.fields(one):
            value, other = getattr(one, part.name), getattr(again.clique_models_[key], part.name)
            assert same_kernel(value, other) if part.name == "kernel" else equal(value, other), (key, part.name)


@MODES
@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences(tmp_path, name, mmap):
    model, X = tagger(name), unseen_by(name)
    again = reloaded(tmp_path, model, mmap=mmap)
    check_same(model, again, X)
    assert equal(pickle.loads(pickle.dumps(again)).predict(X), model.predict(X))
    assert not hasattr(clone(again), "clique_models_")


@MODES
@pytest.mark.parametrize("name", GRAPHS)
def test_outputs_of_fixed_size(tmp_path, name, mmap):
    if name == "names":
        pytest.importorskip("pandas", reason="pandas, which gives features names, is not installed")
    model, X = labeller(name), rows(name)
    again = reloaded(tmp_path, model, mmap=mmap)
    check_same(model, again, X)
    assert again.n_nodes_ == model.n_nodes_
    assert equal(getattr(again, "feature_names_in_", None), getattr(model, "feature_names_in_", None))
    assert hasattr(again, "feature_names_in_") == (name == "names")
    again.save(tmp_path / "second.model")
    assert (tmp_path / "saved.model").read_bytes() == (tmp_path / "second.model").read_bytes()


@MODES
@pytest.mark.parametrize("name", SHAPES)
def test_trees_and_graphs(tmp_path, name, mmap):
    model, X = connected(name), shapes(name)
    again = reloaded(tmp_path, model, mmap=mmap)
    check_same(model, again, X)
    again.save(tmp_path / "second.model")
    assert (tmp_path / "saved.model").read_bytes() == (tmp_path / "second.model").read_bytes()


@MODES
def test_a_mapped_model_can_be_pickled_before_it_is_asked(tmp_path, mmap):
    again = reloaded(tmp_path, tagger("log"), mmap=mmap)
    copy = pickle.loads(pickle.dumps(again))
    (tmp_path / "saved.model").unlink()
    assert equal(copy.predict(unseen_by("log")), tagger("log").predict(unseen_by("log")))


def test_header_tells_what_the_model_is(tmp_path):
    labeller("tree").save(tmp_path / "m")
    header = read_model_header(tmp_path / "m")
    assert header["estimator"] == "ConditionalGraphicalModel"
    assert header["model"]["cliques"] == [list(clique) for clique in labeller("tree").graph_]
    assert header["training"]["objective"] == labeller("tree").objective_
    assert [record["size"] for record in header["model"]["models"]] == [1, 1, 1, 1, 2, 2, 2]


# What cannot be saved


def refused(tmp_path, model, message):
    with pytest.raises(ValueError, match=message):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def own_kernel(A, B):
    return A @ B.T


def ends(position, length):
    return position == 0


def test_code_is_refused_by_name(tmp_path):
    X, y = words()
    kernel = ConditionalGraphicalModel(loss="squared", kernel=own_kernel).fit(X, y)
    refused(tmp_path, kernel, r"^The 'kernel' parameter of ConditionalGraphicalModel cannot be saved: .*Got <function")
    refused(
        tmp_path, kernel.set_params(kernel="rbf"), "^The model cannot be saved: .* user-defined kernel, which is code"
    )
    tied = ConditionalGraphicalModel(loss="squared", tying=ends).fit(X, y)
    refused(
        tmp_path, tied, r"^The 'tying' parameter of ConditionalGraphicalModel cannot be saved: .*Got <function ends"
    )
    refused(
        tmp_path, tied.set_params(tying="shared"), "The 'tying' parameter of .* cannot be saved: .*Got <function ends"
    )
    base = ConditionalGraphicalModel(base_estimator=LogisticRegression()).fit(X, y)
    refused(
        tmp_path, base, r"^The 'base_estimator' parameter of ConditionalGraphicalModel cannot be saved: .*Got Logistic"
    )
    refused(tmp_path, base.set_params(base_estimator=None), "The 'base_estimator' parameter of .* cannot be saved")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("padding", (65, 0), "padding must be at most 64"),
        ("graph", Chain(1100, 1), "lists more windows of labels than a file takes; use 1"),
    ],
    ids=str,
)
def test_what_is_too_large_for_a_file(tmp_path, name, value, message):
    X, y = words()
    refused(tmp_path, ConditionalGraphicalModel(**{name: value}).fit(X, y), message)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("C", -1.0, "The 'C' parameter of ConditionalGraphicalModel must be"),
        ("combine", {3: 1.0}, "must not name an order above that of the graph"),
    ],
    ids=str,
)
def test_parameters_that_are_wrong_are_refused(tmp_path, name, value, message):
    X, y = words()
    refused(tmp_path, ConditionalGraphicalModel().fit(X, y).set_params(**{name: value}), message)


@pytest.mark.parametrize(
    ("name", "value"),
    [("graph", 2), ("padding", (1, 1)), ("features", "tied"), ("unseen", -1.0), ("loss", "log")],
    ids=str,
)
def test_parameters_that_were_changed_after_the_fit(tmp_path, name, value):
    """They are for the next fit: the file holds those that the model answers with."""
    X, y = words()
    model = ConditionalGraphicalModel().fit(X, y)
    expected = model.predict(X)
    model.set_params(**{name: value}).save(tmp_path / "m")
    assert equal(model.predict(X), expected)
    assert equal(dualfield.load(tmp_path / "m").predict(X), expected)


def test_graphs_that_were_changed_after_the_fit(tmp_path):
    X, y = data()
    model = ConditionalGraphicalModel([(0, 1), (2, 3)]).fit(X, y)
    expected = model.predict(X)
    model.set_params(graph=[(0, 2), (1, 3)]).save(tmp_path / "m")
    assert equal(dualfield.load(tmp_path / "m").predict(X), expected)


def test_scores_that_would_not_fit_are_refused(tmp_path):
    X, y = [np.zeros((2, 1))], [["a", "b"]]
    refused(
        tmp_path, ConditionalGraphicalModel(24).fit(X, y), "a clique of 25 nodes has more than 16777216 label tuples"
    )
    refused(tmp_path, ConditionalGraphicalModel(64).fit(X, [["a", "a"]]), "its order must be at most 63")


# What a file may not say


def without(place, *, value=None):
    """A change of a part of the record to a JSON value."""

    def change(metadata, arrays):
        for name in [name for name in arrays if f"{name}.".startswith(f"{place}.")]:
            del arrays[name]
        put(*(int(key) if key.isdigit() else key for key in place.split(".")), value=value)(metadata, arrays)

    return change


CHAIN = {"kind": "chain", "n_labels": 2000, "order": 1, "allowed": None, "allowed_start": None, "allowed_stop": None}
# name: the model, what is changed, and what is said about it
FAULTS = {
    "order": ("log", put("model", "order", value=1), "a clique must have 1 to 2 nodes. Got 3"),
    "no order": ("log", put("model", "order", value=None), "it must be a chain or have a graph"),
    "order left out": ("log", drop("model", "order"), "it has no entry 'model.order'"),
    "other graph": ("log", put("model", "cliques", value=[[0, 1]]), "it must be a chain or have a graph"),
    "no nodes": ("tree", put("model", "n_nodes", value=None), "its graph must have a number of nodes"),
    "no features": ("log", put("columns", "n_features", value=0), "'columns.n_features' must be in [1, inf]"),
    "columns of cliques": ("log", put("columns", "n_features", value=4), "it has 3 columns in its cliques"),
    "other features": ("log", put("model", "n_features", value=4), "'model.models.0.points' must have shape (62, 4)"),
    "many windows": ("log", put("parameters", "graph", value=CHAIN), "more than 1048576 windows of labels"),
    "padding": ("padding", put("model", "padding", value=[10**9, 0]), "at most 64"),
    "combined": ("combined", put("parameters", "combine", value={"kind": "dict", "items": [[7, 1.0]]}), "order above"),
    "no blanks": ("padding", put("model", "padding", value=[0, 0]), "codes in [0, 3)"),
    "tying": ("log", put("model", "tying", value="ends"), "'model.tying' must be one of"),
    "kind of scores": ("log", put("model", "kind", value="predict_proba"), "'model.kind' must be one of"),
    "base": ("log", put("parameters", "base_estimator", value="SVC"), "The 'base_estimator' parameter of"),
    "parameter": ("log", put("parameters", "backoff_cost", value=-1.0), "The 'backoff_cost' parameter of"),
    "labels": ("log", put("model", "labels", "names", value=["a", "b"]), "label tuples must have codes in [0, 2)"),
    "no models": ("log", without("model.models", value=[]), "must have a model for each type of clique"),
    "model": ("log", put("model", "models", 0, value=7), "no part of such a model"),
    "size": ("log", put("model", "models", 0, "size", value=4), "tuples' must have shape (any, 4)"),
    "no size": ("log", put("model", "models", 0, "size", value=0), "size' must be in [1, inf]"),
    "other size": (
        "log",
        put("model", "models", 0, "size", value=2),
        "'model.models.0.tuples' must have shape (any, 2)",
    ),
    "key": ("log", put("model", "models", 0, "key", value=0), "tying='shared' gives no clique of 1 nodes the key 0"),
    "key of a position": (
        "position",
        put("model", "models", 0, "key", value=-1),
        "gives no clique of 2 nodes the key -1",
    ),
    "key of nodes": ("tree", put("model", "models", 0, "key", value=[9]), "gives no clique of 1 nodes the key (9,)"),
    "key that is none": ("tree", put("model", "models", 0, "key", value=[[0]]), "is altered: "),
    "twice": ("tree", put("model", "models", 1, "key", value=[0]), "two models for one type of clique"),
    "kernel": (
        "log",
        put("model", "models", 0, "kernel", "function", value="precomputed"),
        "it has no kernel 'precomputed'",
    ),
    "gamma": ("log", put("model", "models", 0, "kernel", "gamma", value=0.0), "gamma' must be in (0, inf). Got 0.0"),
    "no kernel": ("log", put("model", "models", 0, "kernel", value=None), "a kernel needs points"),
    "no points": ("log", without("model.models.0.points"), "a kernel needs points"),
    "kind": ("log", put("model", "models", 0, "points", value={"kind": "pickled"}), "no part of such a model"),
    "sparse": (
        "log",
        without("model.models.0.points", value={"kind": "csr_array", "shape": [62, 3]}),
        "has no array 'model.models.0.points.data'",
    ),
    "summed": ("tied printed", put("model", "models", 1, "is_summed", value=1), "is_summed' must be of type bool"),
    "status": ("log", put("model", "models", 0, "status", value="perfect"), "status' must be one of"),
    "sum": ("log", put("training", "objective", value=1.0), "must be the sum of that of all types"),
    "tied": ("tied", put("model", "features", value="joint"), "'model.models.1.coefficients' must have shape"),
    "codes": ("log", array("model.models.1.tuples", at((0, 1), 3)), "label tuples must have codes in [0, 3)"),
    "negative codes": ("log", array("model.models.1.tuples", at((0, 1), -1)), "label tuples must have codes in [0, 3)"),
    "no tuples": ("tree", array("model.models.0.tuples", lambda values: values[:0]), "is altered: "),
    "order of tuples": (
        "log",
        array("model.models.1.tuples", lambda values: values[::-1].copy()),
        "distinct and in order",
    ),
    "same tuples": ("log", array("model.models.0.tuples", at(1, 0)), "distinct and in order"),
    "coefficients": (
        "log",
        array("model.models.0.coefficients", at(0, np.nan)),
        "'model.models.0.coefficients' must have finite",
    ),
    "shape": ("log", array("model.models.0.coefficients", lambda values: values[:, 1:]), "must have shape (62, 3)"),
    "points": (
        "log",
        array("model.models.0.points", at(0, np.inf)),
        "'model.models.0.points' must have finite numbers",
    ),
    "type": (
        "log",
        array("model.models.0.points", lambda values: values.astype(np.int64)),
        "must be of type float32 or float64",
    ),
    "extra": ("log", lambda metadata, arrays: arrays.update(x=np.zeros(1)), "has an entry 'x', no part of such"),
    "names": ("tree", put("columns", "names", value=True), "has no array 'columns.names'"),
    "cliques": ("tree", put("model", "cliques", value=[[0, 1]]), "its cliques must have all of its nodes"),
    "clique": ("tree", put("model", "cliques", value=[[0, 1], [2, 9]]), "must be a tuple of distinct nodes in [0, 4)"),
    "nodes": ("tree", put("model", "n_nodes", value=2**62), "its cliques must have all of its nodes"),
    "cliques of others": ("triples", put("model", "cliques", value=[[0, 1], [2, 3]]), "must have 1 to 2 nodes. Got 3"),
    "shared input": (
        "tree",
        put("model", "is_shared_input", value=False),
        "'model.models.4.points' must have shape (20, 6)",
    ),
    "columns": (
        "sparse",
        array("model.models.0.points.indices", lambda values: values[::-1].copy()),
        "columns in order",
    ),
    "column": ("sparse", array("model.models.0.points.indices", at(0, 3)), "must have columns in [0, 3)"),
    "graph and chain": ("graphs", put("model", "order", value=1), "it must be a chain or have a graph"),
    "structure": (
        "graphs",
        put("model", "structure", value={**CHAIN, "n_labels": 3}),
        "its structure must be a tree or graph of 3 labels",
    ),
    "labels of nodes": ("graphs", put("model", "structure", "n_labels", value=2), "a tree or graph of 3 labels"),
    "edge features": ("graphs", put("model", "n_edge_features", value=2), "points' must have shape"),
    "tied edges": (
        "graphs",
        put("model", "features", value="tied"),
        "features must be 'joint' where edges have features",
    ),
    "edges of chains": ("log", put("model", "n_edge_features", value=1), "only the edges of graphs have features"),
    "padded graph": ("graphs", put("model", "padding", value=[0, 1]), "padding must be (0, 0) for trees and graphs"),
    "positions": ("graphs", put("model", "tying", value="position"), "'model.tying' must be one of"),
    "type of an edge": ("graphs", put("model", "models", 2, "key", value=9), "gives no clique of 2 nodes the key 9"),
    "type of a node": ("graphs", put("model", "models", 0, "key", value=1), "gives no clique of 1 nodes the key 1"),
}


@MODES
@pytest.mark.parametrize("name", FAULTS)
def test_unsound_model(tmp_path, name, mmap):
    model, change, message = FAULTS[name]
    find = connected if model == "graphs" else labeller if model in ("tree", "triples", "sparse") else tagger
    find(model).save(tmp_path / "sound.model")
    forger, path = Forger(tmp_path / "sound.model"), tmp_path / "forged.model"
    change(forger.metadata, forger.arrays)
    path.write_bytes(forger.bytes_of(forger.metadata, forger.arrays))
    with pytest.raises(ModelFileError) as error:
        _ = dualfield.load(path, mmap=mmap).clique_models_
    assert str(error.value).startswith(f"{path} ")
    assert message in str(error.value)


@pytest.mark.parametrize("n_nodes", [23, 40])
def test_a_wide_clique_is_refused(tmp_path, n_nodes):
    labeller("tree").save(tmp_path / "sound.model")
    forger, path = Forger(tmp_path / "sound.model"), tmp_path / "forged.model"
    forger.metadata["model"] |= {"n_nodes": n_nodes, "cliques": [list(range(n_nodes))]}
    path.write_bytes(forger.bytes_of(forger.metadata, forger.arrays))
    with pytest.raises(ModelFileError, match="a clique must have at most 22 nodes"):
        dualfield.load(path)
