"""Bayesian networks come back from their files as they were; what is unsound is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import dualfield
from dualfield import DiscriminativeBayesNet
from dualfield.persistence import ModelFileError, read_model_header
from tests.estimators.saved_models import equal, rewritten
from tests.estimators.saved_network_models import CLASSIFIERS, TABLES, filler, forget, holes, network, rows
from tests.estimators.test_bayes_net_optimum import categorical

MODES = pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
RECORD = ("objective_", "dual_gap_", "n_iter_", "solver_", "status_", "n_features_in_", "structure_", "categories_")


@pytest.fixture(autouse=True, scope="module")
def _models_are_forgotten() -> Any:
    yield
    forget()


def reloaded(folder: Path, model: DiscriminativeBayesNet, *, mmap: bool = False) -> Any:
    model.save(folder / "saved.model")
    return dualfield.load(folder / "saved.model", mmap=mmap)


def check_same(model: Any, again: Any) -> None:
    assert type(again) is type(model)
    for name, value in model.get_params(deep=False).items():
        found = again.get_params(deep=False)[name]
        assert value == found if isinstance(value, dict) else equal(value, found), name
    for name in RECORD:
        assert equal(getattr(model, name), getattr(again, name)), name
    assert equal(model.parameters_, again.parameters_)
    assert equal(model.trace_.rows(), again.trace_.rows())
    assert again.network_ == model.network_
    for name, values in model.tables_.items():
        assert equal(values, again.tables_[name])
        assert equal(model.missing_mass_[name], again.missing_mass_[name])
    assert equal(getattr(again, "feature_names_in_", None), getattr(model, "feature_names_in_", None))


@MODES
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(tmp_path: Path, name: str, mmap: bool) -> None:
    if name == "frame":
        pytest.importorskip("pandas", reason="pandas, which gives columns names, is not installed")
    model, X = network(name), rows(name)
    again = reloaded(tmp_path, model, mmap=mmap)
    check_same(model, again)
    assert equal(again.classes_, model.classes_)
    assert equal(again.predict(X), model.predict(X))
    assert equal(again.predict_joint_log_proba(X), model.predict_joint_log_proba(X))
    again.save(tmp_path / "second.model")
    assert (tmp_path / "saved.model").read_bytes() == (tmp_path / "second.model").read_bytes()
    assert not hasattr(clone(again), "parameters_")


@MODES
@pytest.mark.parametrize("name", TABLES)
def test_tables(tmp_path: Path, name: str, mmap: bool) -> None:
    model, X = filler(name), holes(name)
    again = reloaded(tmp_path, model, mmap=mmap)
    check_same(model, again)
    assert equal(again.predict(X), model.predict(X))
    wanted, found = model.predict_marginals(X), again.predict_marginals(X)
    assert wanted.keys() == found.keys()
    assert all(equal(values, found[column]) for column, values in wanted.items())
    assert not hasattr(again, "classes_")


def test_header_tells_what_the_model_is(tmp_path: Path) -> None:
    network("own").save(tmp_path / "m")
    header = read_model_header(tmp_path / "m")
    assert header["estimator"] == "DiscriminativeBayesNet"
    assert header["model"]["parents"] == [[4], [4, 0], [1], [], []]
    assert header["training"]["gap"] == network("own").dual_gap_


def test_graphs_are_saved_as_lists(tmp_path: Path) -> None:
    networkx = pytest.importorskip("networkx", reason="networkx, an input form, is not installed")
    X, y = categorical(30)
    graph = networkx.DiGraph([("class", 0), ("class", 1), (0, 1), (3, 2)])
    model = DiscriminativeBayesNet(graph, eta=0.0).fit(X, y)
    again = reloaded(tmp_path, model)
    assert again.structure == [("class", []), (0, ["class"]), (1, ["class", 0]), (3, []), (2, [3])]
    assert again.structure_ == model.structure_
    assert equal(again.predict_proba(X), model.predict_proba(X))
    assert equal(clone(again).fit(X, y).parameters_, model.parameters_)
    assert model.structure is graph


@pytest.mark.parametrize("floor", [1e-300, 1e-11, 1e-6, 1e-3, 0.2])
@pytest.mark.parametrize("structure", ["naive_bayes", "tan"])
def test_tables_that_the_floor_raised(tmp_path: Path, structure: str, floor: float) -> None:
    """Counts of zero are raised to the floor, and the rest of their row makes room: the minimum of the divergence."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4, (12, 3)), rng.integers(0, 2, 12)
    model = DiscriminativeBayesNet(structure, eta=0.0, smoothing=0.0, floor=floor).fit(X, y)
    again = reloaded(tmp_path, model)
    check_same(model, again)
    plain = DiscriminativeBayesNet(structure, eta=0.0, smoothing=0.0, floor=1e-321).fit(X, y)
    some = 0
    for name, table in model.tables_.items():
        np.testing.assert_allclose(table.sum(axis=-1), 1.0, rtol=1e-12)
        assert (table >= floor * (1 - 1e-12)).all()
        for row, counted in zip(
            table.reshape(-1, table.shape[-1]), plain.tables_[name].reshape(-1, table.shape[-1]), strict=True
        ):
            above = row > floor * (1 + 1e-9)
            np.testing.assert_allclose(row[above] / row[above].sum(), counted[above] / counted[above].sum(), rtol=1e-9)
            factor = (row[above] / counted[above]).min(initial=1.0)
            assert (counted[~above] * factor <= floor * (1 + 1e-9)).all()
            some += int((~above).sum())
    assert some > 0


def test_numbers_of_numpy_in_columns_of_objects(tmp_path: Path) -> None:
    rows = list(
        zip(np.array([1, 2, 1]), np.array([0.5, 1.5, 0.5]), np.array(["u", "v", "u"]), ["a", "b", "a"], strict=True)
    )
    model = DiscriminativeBayesNet(eta=0.0).fit(rows, [0, 1, 0])
    again = reloaded(tmp_path, model)
    check_same(model, again)
    assert equal(again.predict_proba(rows), model.predict_proba(rows))
    assert [[type(value) for value in values] for values in model.categories_[:2]] == [[int, int], [float, float]]
    listed = DiscriminativeBayesNet(eta=0.0, categories=[np.array([np.int64(2), np.int64(1), "x"], dtype=object)])
    listed.fit([[1], [2], ["x"]], [0, 1, 0])
    assert equal(reloaded(tmp_path, listed).categories_, listed.categories_)


def test_what_load_refuses_is_not_saved(tmp_path: Path) -> None:
    X, y = categorical(30)
    model = DiscriminativeBayesNet(eta=0.0).fit(X, y)
    for change in (np.log(2.0), np.nan, np.inf):
        model._model = replace(model.model_, parameters=model.parameters_ + change)
        with pytest.raises(ValueError, match="cannot be saved: its tables must have probabilities"):
            model.save(tmp_path / "m")
    text = np.array(
        [["a\0"], ["b"]] * 15, dtype=object
    )  # NumPy's strings would lose the zero, columns of objects do not
    again = reloaded(tmp_path, DiscriminativeBayesNet(eta=0.0).fit(text, y))
    assert again.categories_[0].tolist() == ["a\0", "b"]
    (tmp_path / "saved.model").unlink()
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    X, y = categorical(30)
    dates = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[ns]")[X[:, :1] % 2]
    model = DiscriminativeBayesNet(eta=0.0).fit(dates, y)
    with pytest.raises(ValueError, match="its values must be numbers or str"):
        model.save(tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def put(*path: Any, value: Any) -> Any:
    def change(metadata: Any, arrays: Any) -> None:
        for part in path[:-1]:
            metadata = metadata[part]
        metadata[path[-1]] = value

    return change


def array(name: str, change: Any) -> Any:
    def changed(metadata: Any, arrays: Any) -> None:
        arrays[name] = change(arrays[name])

    return changed


def values(change: Any) -> Any:
    def changed(metadata: Any, arrays: Any) -> None:
        content = json.loads(arrays["model.values"].tobytes())
        arrays["model.values"] = np.frombuffer(json.dumps(change(content)).encode(), np.uint8)

    return changed


FAULTS = {
    "cycle": (put("model", "parents", value=[[4], [2], [1], [], []]), "must have no cycle"),
    "no variable": (put("model", "parents", value=[[9], [], [], [], []]), "must have variables by number"),
    "negative": (put("model", "parents", value=[[-1], [], [], [], []]), "must have variables by number"),
    "few parents": (put("model", "parents", value=[[4]]), "must have an entry for each of 5 variables"),
    "tables": (put("model", "tables", value=[0, 0, 1, 2, 3]), "share a table must have the same"),
    "tables that are none": (put("model", "tables", value=["a"] * 5), "must have entries of type int"),
    "columns": (put("columns", "n_features", value=3), "it must have values of 3 columns"),
    "no columns": (put("columns", "n_features", value=0), "must be in [1, inf]"),
    "other size": (put("model", "parents", value=[[], [], [], [], []]), "array 'model.parameters' must have shape"),
    "positive": (array("model.parameters", lambda a: a + 1.0), "must have log-probabilities"),
    "not finite": (
        array("model.parameters", lambda a: np.where(a == a.min(), -np.inf, a)),
        "must have log-probabilities",
    ),
    "small": (array("model.parameters", lambda a: a - 1e7), "must have log-probabilities"),
    "values": (values(lambda v: v | {"class": {"kind": "int64", "names": [0, 0, 1]}}), "must be distinct"),
    "types": (values(lambda v: v | {"class": {"kind": "int64", "names": ["a", "b", "c"]}}), "must all be of type int"),
    "kind": (values(lambda v: v | {"class": {"kind": "V8", "names": [0, 1, 2]}}), "of an unknown type"),
    "range": (values(lambda v: v | {"class": {"kind": "int8", "names": [0, 1, 999]}}), "do not fit into int8"),
    "no json": (array("model.values", lambda a: a[:-3]), "cannot be read"),
    "no class": (values(lambda v: v | {"class": None}), "is altered"),
    "parameter": (put("parameters", "eta", value=-1.0), "The 'eta' parameter"),
    "huge": (put("parameters", "max_table", value=1), "more than max_table=1"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_named(tmp_path: Path, name: str) -> None:
    change, message = FAULTS[name]
    network("own").save(tmp_path / "whole.model")
    path = rewritten(tmp_path / "whole.model", tmp_path / "forged.model", change)
    with pytest.raises(ModelFileError) as error:
        dualfield.load(path)
    assert str(error.value).startswith(f"{path} ")
    assert message in str(error.value)


def test_hidden_columns_of_a_file_must_be_there(tmp_path: Path) -> None:
    filler("columns").save(tmp_path / "whole.model")
    path = rewritten(tmp_path / "whole.model", tmp_path / "forged.model", put("parameters", "hidden", value=[7]))
    with pytest.raises(ModelFileError, match="names 7, which is no column of X"):
        dualfield.load(path)
