"""What a model file may not say, though its digests agree; every refusal names the file and the fault."""

import copy

import numpy as np
import pytest

import dualfield
from dualfield.persistence import ModelFileError
from tests.estimators.mutations import Forger
from tests.estimators.saved_models import classifier, forget, points, tagger, unseen


@pytest.fixture(autouse=True, scope="module")
def _models_are_forgotten():
    yield
    forget()


@pytest.fixture(scope="module")
def forge(tmp_path_factory):
    """A function that saves a model, changes its metadata and arrays, and returns the path of the changed file."""
    folder = tmp_path_factory.mktemp("forged")

    def forged(model, change):
        model.save(folder / "sound.model")
        forger = Forger(folder / "sound.model")
        change(forger.metadata, forger.arrays)
        (folder / "forged.model").write_bytes(forger.bytes_of(forger.metadata, forger.arrays))
        return folder / "forged.model"

    return forged


def put(*place, value):
    """A change of an entry of the metadata."""

    def change(metadata, arrays):
        for key in place[:-1]:
            metadata = metadata[key]
        metadata[place[-1]] = value

    return change


def drop(*place):
    def change(metadata, arrays):
        for key in place[:-1]:
            metadata = metadata[key]
        del metadata[place[-1]]

    return change


def array(name, make):
    """A change of an array."""

    def change(metadata, arrays):
        arrays[name] = make(arrays[name].copy())

    return change


def at(index, value):
    def make(values):
        values[index] = value
        return values

    return make


CHAIN = {"type": "chain", "n_labels": 3, "order": 1, "allowed": None, "allowed_start": None, "allowed_stop": None}

TAGGER_FAULTS = {
    "estimator": (put("estimator", value="Perceptron"), "holds a 'Perceptron'; this version knows CRF, "),
    "no estimator": (drop("estimator"), "its 'estimator' must be of type str. Got nothing"),
    "no parameters": (drop("parameters"), "its 'parameters' must be of type dict. Got nothing"),
    "unknown parameter": (put("parameters", "speed", value=1), "has a parameter 'speed', which CRF does not have"),
    "bad parameter": (put("parameters", "C", value=-1.0), "The 'C' parameter of CRF must be a float in (0, inf)"),
    "bad temperature": (put("parameters", "temperature", value="warm"), "The 'temperature' parameter of CRF must be"),
    "bad n_jobs": (put("parameters", "n_jobs", value=10**9), "The 'n_jobs' parameter of CRF must be"),
    "bad template": (put("parameters", "template", value="U0:%x[0]"), "Line 1 of the template"),
    "template": (put("parameters", "template", value="U0:%x[0,0]\nB0:%x[0,0]"), "does not make the attributes"),
    "half": (array("node.weights", lambda values: values.astype(np.float16)), "must be of type float64. Got float16"),
    "code": (put("parameters", "cost", value={"type": "function"}), "its 'cost' cannot be read: unknown type"),
    "no such solver": (
        put("parameters", "solver", value={"type": "solver", "name": "os", "settings": {}}),
        "its 'solver' cannot be read",
    ),
    "no such setting": (
        put("parameters", "solver", value={"type": "solver", "name": "lbfgs", "settings": {"x": 1}}),
        "its 'solver' cannot be read",
    ),
    "solver of others": (
        put("parameters", "solver", value={"type": "solver", "name": "smo", "settings": {}}),
        "The 'solver' parameter of CRF must be",
    ),
    "high order": (put("structure", value={**CHAIN, "order": 10**9}), "must have an order in [1, 63]"),
    "many windows": (put("structure", value={**CHAIN, "order": 9}), "more windows of labels than the 9 weights"),
    "many labels": (put("parameters", "structure", value={**CHAIN, "n_labels": 7000}), "more windows of labels"),
    "few labels": (put("structure", value={**CHAIN, "n_labels": 2}), "its structure must be a chain of 3 labels"),
    "no chain": (put("structure", value={"type": "tuple", "items": []}), "its structure must be a chain of 3 labels"),
    "labels twice": (put("labels", "names", value=["B-N", "I-N", "I-N"]), "its labels must be distinct"),
    "labels not sorted": (put("labels", "names", value=["O", "I-N", "B-N"]), "its labels must be distinct, in order"),
    "no labels": (put("labels", "names", value=[]), "its labels must be distinct, in order, and at least one"),
    "mixed labels": (put("labels", "names", value=["B", "I", 3]), "its labels must be all of one type"),
    "zero at the end": (put("labels", "names", value=["B", "I", "O\0"]), "must not end in a zero character"),
    "status": (put("training", "status", value="perfect"), "its status is 'perfect'"),
    "objective": (put("training", "objective", value="low"), "its 'objective' must be of type float. Got 'low'"),
    "trace": (array("training.trace", lambda values: values[:, :4]), "array 'training.trace' must have shape (any, 5)"),
    "columns": (put("features", "n_columns", value=3), "must have shape (4)"),
    "features": (put("features", "n_features", value=3), "features, not 3"),
    "ends": (put("features", "ends", value=True), "has no array 'ends.weights'"),
    "pairs": (put("features", "pair_attributes", value="some"), "must be 'shared', 'own' or 'none'. Got 'some'"),
    "mask": (array("cliques.mask", lambda values: values[:-1]), "array 'cliques.mask' must have shape (9). Got (8,)"),
    "clique weights": (array("cliques.weights", at(0, np.nan)), "array 'cliques.weights' must have finite numbers"),
    "extra array": (lambda metadata, arrays: arrays.update(x=np.zeros(1)), "has an array 'x', no part of such a model"),
    "missing array": (lambda metadata, arrays: arrays.pop("node.weights"), "has no array 'node.weights'"),
    "type": (array("node.weights", lambda values: values.astype(np.float32)), "must be of type float64. Got float32"),
}  # fmt: skip


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("name", TAGGER_FAULTS)
def test_unsound_model_of_sequences(forge, name, mmap):
    change, message = TAGGER_FAULTS[name]
    path = forge(tagger("attributes"), change)
    with pytest.raises(ModelFileError) as error:
        _ = dualfield.load(path, mmap=mmap).parameters_
    assert str(error.value).startswith(f"{path} ")
    assert message in str(error.value)


def in_turn(values, even, odd):
    return np.where(np.arange(len(values)) % 2, odd, even)


# In arrays that grow with the number of features: found when all is read, or where a prediction looks.
LARGE_FAULTS = {
    "weights": (array("node.weights", lambda values: values * np.nan), "array 'node.weights' must have finite numbers"),
    "indptr falls": (array("node.indptr", lambda values: values[::-1].copy()), "indptr"),
    "indptr ends late": (array("node.indptr", lambda values: values + 2**40), "indptr"),
    "indptr overflows": (array("node.indptr", lambda values: in_turn(values, -(2**63), 2**63 - 1)), "indptr"),
    "wide column": (array("node.indptr", lambda values: in_turn(values, 0, values[-1])), "is altered: "),
    "outputs": (array("node.outputs", lambda values: values + 3), "its features are not sound"),
    "negative outputs": (array("node.outputs", lambda values: values - 3), "its features are not sound"),
    "offsets": (array("vocabulary.offsets", lambda values: values[::-1].copy()), "its vocabulary is not sound"),
    "offsets beyond": (array("vocabulary.offsets", lambda values: values + 2**40), "its vocabulary is not sound"),
}  # fmt: skip


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("name", LARGE_FAULTS)
def test_unsound_arrays(forge, name, mmap):
    change, message = LARGE_FAULTS[name]
    path = forge(tagger("attributes"), change)
    with pytest.raises(ModelFileError) as error:
        dualfield.load(path, mmap=mmap).predict(unseen("attributes"))
    assert str(error.value).startswith(f"{path} is altered: ")
    assert message in str(error.value)


SLOT_FAULTS = {
    "no free slot": (lambda slots: np.where(slots == 0, np.uint64(1), slots), "no slot is free"),
    "column beyond": (
        lambda slots: np.where(slots, slots | np.uint64(0xFFFFFFFF), slots),
        "a slot has a column that does not exist",
    ),
    "column before": (lambda slots: slots & np.uint64(0xFFFFFFFF00000000), "a slot has a column that does not exist"),
}


@pytest.mark.parametrize("name", SLOT_FAULTS)
def test_unsound_slots(forge, name):
    change, message = SLOT_FAULTS[name]
    path = forge(tagger("attributes"), array("vocabulary.slots", change))
    with pytest.raises(ModelFileError, match="the slots of its vocabulary do not agree with the attributes"):
        dualfield.load(path)
    model = dualfield.load(path, mmap=True)
    with pytest.raises(ModelFileError, match=message):
        model.predict(unseen("attributes"))
    with pytest.raises(ModelFileError, match=message):
        model.vocabulary_.columns([f"new {number}" for number in range(100)] + list(tagger("attributes").vocabulary_))


def test_attributes_are_utf8_and_distinct(forge):
    def change(metadata, arrays):
        arrays["vocabulary.arena"][0] = 0xFF

    path = forge(tagger("attributes"), change)
    with pytest.raises(ModelFileError, match="attribute 0 of the arena is not valid UTF-8"):
        dualfield.load(path)
    with pytest.raises(ModelFileError, match="not valid UTF-8"):
        dualfield.load(path, mmap=True).vocabulary_.attribute(0)

    def repeat(metadata, arrays):
        arrays["vocabulary.arena"][:] = ord("a")

    with pytest.raises(ModelFileError, match=r"attributes must be distinct|not sound"):
        dualfield.load(forge(tagger("attributes"), repeat))


CLASSIFIER_FAULTS = {
    "classes": (put("labels", "names", value=[1, 0, 2]), "its classes must be distinct, in order"),
    "one class": (put("labels", "names", value=[1]), "its classes must be distinct, in order, and at least two"),
    "type": (put("labels", "kind", value="complex128"), "its classes are of an unknown type, 'complex128'"),
    "wide type": (put("labels", "kind", value="U99999999"), "its classes are of an unknown type"),
    "small type": (
        lambda metadata, arrays: metadata["labels"].update(kind="int8", names=[0, 1, 300]),
        "its classes",
    ),
    "gamma": (put("points", "gamma", value=float("nan")), "its gamma must be a float in (0, inf)"),
    "kind": (put("points", "kind", value="round"), "its points are of an unknown kind, 'round'"),
    "precomputed": (put("points", "kind", value="precomputed"), "which its kernel does not take"),
    "features": (put("points", "n_features", value=3), "array 'points' must have shape (44, 3). Got (44, 2)"),
    "coefficients": (array("dual_coef", lambda values: values[:2]), "array 'dual_coef' must have shape (3, 44)"),
    "intercept": (array("intercept", at(0, np.nan)), "array 'intercept' must have numbers below infinity"),
    "infinite points": (array("points", at((3, 1), np.inf)), "array 'points' must have finite numbers"),
    "infinite coefficients": (array("dual_coef", at((0, 0), np.nan)), "array 'dual_coef' must have finite numbers"),
    "negative weights": (array("fit_weights", at(0, -1.0)), "must have weights of at least 0"),
    "whole numbers": (array("points", lambda values: values.astype(np.int64)), "must be float32 or float64. Got int64"),
    "label kernel": (
        put("parameters", "label_kernel", value=[[1.0, 0.0], [0.0, 1.0]]),
        "The 'label_kernel' parameter of KernelLogisticRegression must have shape (3, 3)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("name", CLASSIFIER_FAULTS)
def test_unsound_kernel_model(forge, name, mmap):
    change, message = CLASSIFIER_FAULTS[name]
    path = forge(classifier("multiclass"), change)
    with pytest.raises(ModelFileError) as error:
        dualfield.load(path, mmap=mmap).predict(points("multiclass"))
    assert str(error.value).startswith(f"{path} ")
    assert message in str(error.value)


SPARSE_FAULTS = {
    "columns": (array("points.indices", at(0, 7)), "must have columns in [0, 2)"),
    "negative columns": (array("points.indices", at(0, -1)), "must have columns in [0, 2)"),
    "rows": (array("points.indptr", at(3, 1000)), "the rows of matrix 'points' must follow each other"),
    "mixed ints": (array("points.indptr", lambda values: values.astype(np.int64)), "and ints that index them"),
}


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("name", SPARSE_FAULTS)
def test_unsound_sparse_points(forge, name, mmap):
    change, message = SPARSE_FAULTS[name]
    path = forge(classifier("csr_matrix"), change)
    with pytest.raises(ModelFileError) as error:
        dualfield.load(path, mmap=mmap).predict(points("csr_matrix"))
    assert message in str(error.value)


def test_names_of_features_are_a_list_of_text(forge):
    pytest.importorskip("pandas", reason="pandas, which gives features names, is not installed")
    for text in (b"[", b'["a"]', b'["a", 1]', b"\xff", b"{}", b"[" * 100_000):
        change = array("feature_names", lambda _, text=text: np.frombuffer(text, np.uint8))
        with pytest.raises(ModelFileError, match="it must have names of 2 features"):
            dualfield.load(forge(classifier("names"), change))


@pytest.mark.parametrize("template", ["U0:%x[0,0]", None], ids=["without pairs", "none"])
@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_template_that_makes_other_attributes(forge, template, mmap):
    path = forge(tagger("CRF++"), put("parameters", "template", value=template))
    with pytest.raises(ModelFileError, match="does not make the attributes that the model has weights for"):
        dualfield.load(path, mmap=mmap)


def test_a_template_set_after_the_fit_is_not_saved(tmp_path):
    model = copy.copy(tagger("CRF++")).set_params(template="U0:%x[0,0]")
    model.save(tmp_path / "m")
    assert dualfield.load(tmp_path / "m").template == tagger("CRF++").template


def test_what_load_would_refuse_is_not_saved(tmp_path):
    model = copy.copy(tagger("CRF++"))
    model._fit_params = {**model._fit_params, "template": "U0:%x[0,0]"}
    with pytest.raises(ValueError, match="'template' parameter of CRF does not make the attributes"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("error", [ValueError, TypeError, OverflowError, IndexError, UnicodeError])
def test_whatever_a_file_leads_to_is_the_fault_of_the_file(tmp_path, monkeypatch, error):
    path = tmp_path / "m"
    tagger("attributes").save(path)

    def broken(self, file):
        raise error("so not")

    monkeypatch.setattr(type(tagger("attributes")), "_restore", broken)
    with pytest.raises(ModelFileError, match="m is altered: so not"):
        dualfield.load(path)


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_sparse_points_in_half_precision(forge, mmap):
    path = forge(classifier("csr_matrix"), array("points.data", lambda values: values.astype(np.float16)))
    with pytest.raises(ModelFileError, match="must have numbers, and ints that index them"):
        dualfield.load(path, mmap=mmap).predict(points("csr_matrix"))
