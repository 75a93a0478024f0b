"""What a model file may not say, though its digests agree; every refusal names the file and the fault."""

import copy
import dataclasses

import numpy as np
import pytest

import dualfield
from dualfield.features import Template
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


def added(*place, values):
    """A change of an entry of the metadata to an array."""

    def change(metadata, arrays):
        drop(*place)(metadata, arrays)
        arrays[".".join(place)] = values

    return change


CHAIN = {"kind": "chain", "n_labels": 3, "order": 1, "allowed": None, "allowed_start": None, "allowed_stop": None}

TAGGER_FAULTS = {
    "estimator": (put("estimator", value="Perceptron"), "holds a 'Perceptron'; this version knows CRF, "),
    "no estimator": (drop("estimator"), "its 'estimator' must be of type str. Got nothing"),
    "no parameters": (drop("parameters"), "its 'parameters' must be of type dict. Got nothing"),
    "unknown parameter": (put("parameters", "speed", value=1), "has a parameter 'speed', which CRF does not have"),
    "bad parameter": (put("parameters", "C", value=-1.0), "The 'C' parameter of CRF must be a float in (0, inf)"),
    "bad temperature": (put("parameters", "temperature", value="warm"), "The 'temperature' parameter of CRF must be"),
    "bad n_jobs": (put("parameters", "n_jobs", value=10**9), "The 'n_jobs' parameter of CRF must be"),
    "bad template": (put("parameters", "template", value="U0:%x[0]"), "Line 1 of the template"),
    "template": (
        put("model", "template", value=Template("U0:%x[0,0]\nB0:%x[0,0]").record()),
        "does not make the attributes",
    ),
    "half": (
        array("model.weights.node.weights", lambda values: values.astype(np.float16)),
        "must be of type float64. Got float16",
    ),
    "code": (put("parameters", "cost", value={"kind": "function"}), "its 'cost' cannot be read: unknown kind"),
    "no such solver": (
        put("parameters", "solver", value={"kind": "os", "settings": {}}),
        "its 'solver' cannot be read",
    ),
    "no such setting": (
        put("parameters", "solver", value={"kind": "lbfgs", "settings": {"x": 1}}),
        "its 'solver' cannot be read",
    ),
    "solver of others": (
        put("parameters", "solver", value={"kind": "smo", "settings": {}}),
        "The 'solver' parameter of CRF must be",
    ),
    "high order": (
        put("model", "structure", value={**CHAIN, "order": 10**9}),
        "'model.structure.order' must be in [1, 63]",
    ),
    "many windows": (put("model", "structure", value={**CHAIN, "order": 13}), "more than 1048576 windows of labels"),
    "many labels": (put("parameters", "structure", value={**CHAIN, "n_labels": 7000}), "more than 1048576 windows of"),
    "few labels": (
        put("model", "structure", value={**CHAIN, "n_labels": 2}),
        "its structure must have 3 labels",
    ),
    "no chain": (put("model", "structure", value={"kind": "tuple", "items": []}), "must be one of ['chain', "),
    "labels twice": (put("model", "labels", "names", value=["B-N", "I-N", "I-N"]), "its classes must be distinct"),
    "labels not sorted": (
        put("model", "labels", "names", value=["O", "I-N", "B-N"]),
        "its classes must be distinct, in order",
    ),
    "no labels": (put("model", "labels", "names", value=[]), "its classes must be distinct, and at least one"),
    "mixed labels": (put("model", "labels", "names", value=["B", "I", 3]), "its classes must all be of type str"),
    "zero at the end": (put("model", "labels", "names", value=["B", "I", "O\0"]), "must not end in a zero character"),
    "status": (put("training", "status", value="perfect"), "its 'training.status' must be one of"),
    "objective": (
        put("training", "objective", value="low"),
        "its 'training.objective' must be of type float. Got 'low'",
    ),
    "trace": (array("training.trace", lambda values: values[:, :4]), "array 'training.trace' must have shape (any, 5)"),
    "columns": (put("model", "weights", "node", "n_columns", value=3), "must have shape (4)"),
    "features": (put("model", "weights", "n_features", value=3), "features, not 3"),
    "ends": (put("model", "weights", "ends", value=True), "has no array 'model.weights.ends'"),
    "pairs": (put("model", "pair_attributes", value="some"), "must be one of ['none', 'shared', 'own']. Got 'some'"),
    "mask": (
        array("model.weights.clique_mask", lambda values: values[:-1]),
        "clique_mask' must have shape (9). Got (8,)",
    ),
    "clique weights": (
        array("model.weights.cliques", at(0, np.nan)),
        "array 'model.weights.cliques' must have finite numbers",
    ),
    "extra array": (lambda metadata, arrays: arrays.update(x=np.zeros(1)), "has an entry 'x', no part of such a model"),
    "missing array": (
        lambda metadata, arrays: arrays.pop("model.weights.node.weights"),
        "has no array 'model.weights.node",
    ),
    "type": (
        array("model.weights.node.weights", lambda values: values.astype(np.float32)),
        "must be of type float64. Got float32",
    ),
}


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
    "weights": (
        array("model.weights.node.weights", lambda values: values * np.nan),
        "node.weights' must have finite numbers",
    ),
    "indptr falls": (array("model.weights.node.indptr", lambda values: values[::-1].copy()), "indptr"),
    "indptr ends late": (array("model.weights.node.indptr", lambda values: values + 2**40), "indptr"),
    "indptr overflows": (
        array("model.weights.node.indptr", lambda values: in_turn(values, -(2**63), 2**63 - 1)),
        "indptr",
    ),
    "wide column": (array("model.weights.node.indptr", lambda values: in_turn(values, 0, values[-1])), "is altered: "),
    "outputs": (array("model.weights.node.outputs", lambda values: values + 3), "its features are not sound"),
    "negative outputs": (array("model.weights.node.outputs", lambda values: values - 3), "its features are not sound"),
    "offsets": (
        array("model.vocabulary.offsets", lambda values: values[::-1].copy()),
        "its model.vocabulary is not sound",
    ),
    "offsets beyond": (
        array("model.vocabulary.offsets", lambda values: values + 2**40),
        "its model.vocabulary is not sound",
    ),
}


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
    path = forge(tagger("attributes"), array("model.vocabulary.slots", change))
    with pytest.raises(ModelFileError, match=r"the slots of its model\.vocabulary do not agree with the attributes"):
        dualfield.load(path)
    model = dualfield.load(path, mmap=True)
    with pytest.raises(ModelFileError, match=message):
        model.predict(unseen("attributes"))
    with pytest.raises(ModelFileError, match=message):
        model.vocabulary_.columns([f"new {number}" for number in range(100)] + list(tagger("attributes").vocabulary_))


def test_attributes_are_utf8_and_distinct(forge):
    def change(metadata, arrays):
        arrays["model.vocabulary.arena"][0] = 0xFF

    path = forge(tagger("attributes"), change)
    with pytest.raises(ModelFileError, match="attribute 0 of the arena is not valid UTF-8"):
        dualfield.load(path)
    with pytest.raises(ModelFileError, match="not valid UTF-8"):
        dualfield.load(path, mmap=True).vocabulary_.attribute(0)

    def repeat(metadata, arrays):
        arrays["model.vocabulary.arena"][:] = ord("a")

    with pytest.raises(ModelFileError, match=r"attributes must be distinct|not sound"):
        dualfield.load(forge(tagger("attributes"), repeat))


CLASSIFIER_FAULTS = {
    "classes": (put("model", "labels", "names", value=[1, 0, 2]), "its classes must be distinct, in order"),
    "one class": (put("model", "labels", "names", value=[1]), "its classes must be distinct, in order, and at least 2"),
    "type": (put("model", "labels", "kind", value="complex128"), "its classes are of an unknown type, 'complex128'"),
    "wide type": (put("model", "labels", "kind", value="U99999999"), "its classes are of an unknown type"),
    "small type": (
        lambda metadata, arrays: metadata["model"]["labels"].update(kind="int8", names=[0, 1, 300]),
        "its classes",
    ),
    "gamma": (put("model", "expansion", "kernel", "gamma", value=float("nan")), "kernel.gamma' must be in (0, inf)"),
    "kind": (put("model", "expansion", "points", value={"kind": "round"}), "'model.expansion.points', no part of such"),
    "precomputed": (
        put("model", "expansion", "kernel", "function", value="precomputed"),
        "which its points do not fit",
    ),
    "features": (put("columns", "n_features", value=3), "it has 2 columns, not 3"),
    "coefficients": (array("model.expansion.coefficients", lambda values: values[:, :2]), "must have shape (any, 3)"),
    "intercept": (array("model.bias", at(0, np.nan)), "array 'model.bias' must have numbers below infinity"),
    "infinite points": (array("model.expansion.points", at((3, 1), np.inf)), "points' must have finite numbers"),
    "infinite coefficients": (
        array("model.expansion.coefficients", at((0, 0), np.nan)),
        "coefficients' must have finite",
    ),
    "negative weights": (array("model.point_weights", at(0, -1.0)), "must have weights of at least 0"),
    "whole numbers": (
        array("model.expansion.points", lambda values: values.astype(np.int64)),
        "float32 or float64. Got int64",
    ),
    "label kernel": (
        added("model", "label_kernel", values=np.eye(2)),
        "The 'label_kernel' parameter of KernelClassifier must have shape (3, 3)",
    ),
}


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
    "columns": (array("model.expansion.points.indices", at(0, 7)), "must have columns in [0, 2)"),
    "negative columns": (array("model.expansion.points.indices", at(0, -1)), "must have columns in [0, 2)"),
    "rows": (
        array("model.expansion.points.indptr", at(3, 1000)),
        "the rows of matrix 'model.expansion.points' must follow each other",
    ),
    "mixed ints": (
        array("model.expansion.points.indptr", lambda values: values.astype(np.int64)),
        "and ints that index them",
    ),
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
        change = array("columns.names", lambda _, text=text: np.frombuffer(text, np.uint8))
        with pytest.raises(ModelFileError, match="it must have names of 2 features"):
            dualfield.load(forge(classifier("names"), change))


@pytest.mark.parametrize("template", ["U0:%x[0,0]", None], ids=["without pairs", "none"])
@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_template_that_makes_other_attributes(forge, template, mmap):
    given = None if template is None else Template(template).record()
    path = forge(tagger("CRF++"), put("model", "template", value=given))
    with pytest.raises(ModelFileError, match="does not make the attributes that the model has weights for"):
        dualfield.load(path, mmap=mmap)


def test_a_template_set_after_the_fit_is_not_saved(tmp_path):
    model = copy.copy(tagger("CRF++")).set_params(template="U0:%x[0,0]")
    model.save(tmp_path / "m")
    assert dualfield.load(tmp_path / "m").template == tagger("CRF++").template


def test_what_load_would_refuse_cannot_be_made():
    with pytest.raises(ValueError, match="template does not make the attributes"):
        dataclasses.replace(tagger("CRF++").model_, template=Template("U0:%x[0,0]"))


@pytest.mark.parametrize("error", [ValueError, TypeError, OverflowError, IndexError, UnicodeError])
def test_whatever_a_file_leads_to_is_the_fault_of_the_file(tmp_path, monkeypatch, error):
    path = tmp_path / "m"
    tagger("attributes").save(path)

    def broken(self, record):
        raise error("so not")

    monkeypatch.setattr(type(tagger("attributes")), "_restore_model", broken)
    with pytest.raises(ModelFileError, match="m is altered: so not"):
        dualfield.load(path)


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_sparse_points_in_half_precision(forge, mmap):
    path = forge(
        classifier("csr_matrix"), array("model.expansion.points.data", lambda values: values.astype(np.float16))
    )
    with pytest.raises(ModelFileError, match=r"must be of type float32 or float64\. Got float16"):
        dualfield.load(path, mmap=mmap).predict(points("csr_matrix"))
