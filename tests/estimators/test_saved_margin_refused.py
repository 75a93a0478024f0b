"""What the file of a structural SVM, or of a model with latent variables, may not say."""

import numpy as np
import pytest

import dualfield
from dualfield.persistence import ModelFileError
from tests.estimators.mutations import Forger
from tests.estimators.saved_margin_models import forget, latent, machine, single
from tests.estimators.test_saved_refused import array, at, drop, put

NO_GAP = {"kind": "StructuredSVM", "settings": {"C": -1.0}}
SLACK = {"kind": "StructuredSVM", "settings": {"rescaling": "slack"}}
OTHER = {"kind": "CRF", "settings": {}}
MODELS = {
    "machine": lambda: machine("calibrated"),
    "single": lambda: single("str"),
    "chain": lambda: latent("chain"),
    "bags": lambda: latent("bags"),
    "CRF": lambda: latent("CRF"),
}
FAULTS = {
    "cold": ("machine", put("model", "calibration", "temperature", value=0.0), "temperature' must be in (0, inf)"),
    "no nodes": (
        "machine",
        drop("model", "calibration", "n_nodes"),
        "its 'model.calibration.n_nodes' must be of type int. Got nothing",
    ),
    "no calibration": ("machine", drop("model", "calibration"), "it has no entry 'model.calibration'"),
    "taken for single nodes": ("machine", put("parameters", "structure", value="single"), "for sequences, not for"),
    "array as a problem": (
        "machine",
        put("parameters", "structure", value={"kind": "array", "values": None}),
        "it has no array 'parameters.structure.values'",
    ),
    "solver of others": ("machine", put("parameters", "solver", value="smo"), "'solver' parameter of StructuredSVM"),
    "part where none is": ("machine", put("parameters", "cost", value=OTHER), "its 'cost' cannot be read"),
    "ends of single nodes": (
        "single",
        put("model", "weights", "ends", value=True),
        "its structure has no ends",
    ),
    "attributes of single nodes": ("single", put("model", "vocabulary", value={}), "has no array 'model.vocabulary"),
    "pairs of single nodes": (
        "single",
        put("model", "weights", "pair", value={"n_columns": 2}),
        "has no array 'model.weights.pair.",
    ),
    "classes": ("single", put("model", "labels", "names", value=["a", "b", 3]), "its classes must all be of type str"),
    "type of classes": (
        "single",
        put("model", "labels", "kind", value="complex128"),
        "its classes are of an unknown type",
    ),
    "numbers": ("single", put("model", "labels", "kind", value="float64"), "its classes must all be of type float"),
    "base": ("chain", put("parameters", "base", value=NO_GAP), "The 'C' parameter of StructuredSVM must be"),
    "base of others": ("chain", put("parameters", "base", value=OTHER), "its 'base' cannot be read"),
    "base with slacks": ("chain", put("parameters", "base", value=SLACK), "must have rescaling='margin'"),
    "sub-states": ("chain", put("model", "sizes", value=[1, 1, 2]), "its structure must have 4 labels"),
    "no sub-states": ("chain", put("model", "sizes", value=[1, 3, 0]), "must have sub-states for each of 3 labels"),
    "many sub-states": ("chain", put("model", "sizes", value=[1, 1, 2**62]), "its structure must have"),
    "template": (
        "chain",
        put("model", "states", "template", value=7),
        "its 'model.states.template' must be of type dict. Got 7",
    ),
    "temperature": (
        "chain",
        put("model", "states", "temperature", value=float("inf")),
        "temperature' must be in (0, inf)",
    ),
    "hidden": ("chain", array("model.hidden.values", lambda values: values[:-1]), "must cut 128 latent variables"),
    "lengths": ("chain", array("model.hidden.lengths", at(0, 2**62)), "'model.hidden.lengths' must cut"),
    "status": ("chain", put("training", "status", value="converged"), "its 'training.status' must be one of"),
    "certificate": ("chain", array("training.trace", lambda values: values[:, :5]), "must have shape (any, 9)"),
    "changes": ("chain", array("training.trace", at((0, 5), np.nan)), "must have counts of latent variables"),
    "weights": ("bags", array("model.weights", at(0, np.nan)), "array 'model.weights' must have finite numbers"),
    "columns": ("bags", put("model", "n_columns", value=3), "array 'model.weights' must have shape (4). Got (3,)"),
    "background": ("bags", put("model", "background", value=2), "its 'model.background' must be in [-1, 1]"),
    "one label": ("bags", put("model", "labels", "names", value=["no"]), "bags need two labels"),
    "no bags": ("bags", put("model", "kind", value="states"), "its 'model.sizes' must be of type list. Got nothing"),
    "gap": ("CRF", put("training", "gap", value=1.0), "its 'training.gap' must be None"),
    "bags in a CRF": (
        "CRF",
        put("parameters", "latent", value={"kind": "LatentPosition", "settings": {}}),
        "its 'latent' cannot be read",
    ),
}


@pytest.fixture(autouse=True, scope="module")
def _models_are_forgotten():
    yield
    forget()


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("name", FAULTS)
def test_unsound_model(tmp_path, name, mmap):
    model, change, message = FAULTS[name]
    MODELS[model]().save(tmp_path / "sound.model")
    forger, path = Forger(tmp_path / "sound.model"), tmp_path / "forged.model"
    change(forger.metadata, forger.arrays)
    path.write_bytes(forger.bytes_of(forger.metadata, forger.arrays))
    with pytest.raises(ModelFileError) as error:
        _ = dualfield.load(path, mmap=mmap).parameters_
    assert str(error.value).startswith(f"{path} ")
    assert message in str(error.value)
