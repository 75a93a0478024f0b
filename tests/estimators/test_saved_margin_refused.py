"""What the file of a structural SVM, or of a model with hidden parts, may not say."""

import numpy as np
import pytest

import dualfield
from dualfield.persistence import ModelFileError
from tests.estimators.mutations import Forger
from tests.estimators.saved_margin_models import forget, latent, machine, single
from tests.estimators.test_saved_refused import array, at, drop, put

NO_GAP = {"type": "part", "name": "StructuredSVM", "settings": {"C": -1.0}}
SLACK = {"type": "part", "name": "StructuredSVM", "settings": {"rescaling": "slack"}}
OTHER = {"type": "part", "name": "CRF", "settings": {}}
MODELS = {
    "machine": lambda: machine("calibrated"),
    "single": lambda: single("str"),
    "chain": lambda: latent("chain"),
    "bags": lambda: latent("bags"),
    "CRF": lambda: latent("CRF"),
}
FAULTS = {
    "cold": ("machine", put("calibration", "temperature", value=0.0), "its temperature must be a float in (0, inf)"),
    "no nodes": ("machine", drop("calibration", "n_nodes"), "its 'n_nodes' must be of type int. Got nothing"),
    "no calibration": ("machine", drop("calibration"), "its 'calibration' must be of type dict or NoneType"),
    "taken for single nodes": ("machine", put("parameters", "structure", value="single"), "for sequences, not for"),
    "array as a problem": (
        "machine",
        put("parameters", "structure", value={"type": "array", "name": "cliques.weights"}),
        "The 'structure' parameter of StructuredSVM cannot be saved",
    ),
    "solver of others": ("machine", put("parameters", "solver", value="smo"), "'solver' parameter of StructuredSVM"),
    "part where none is": ("machine", put("parameters", "cost", value=OTHER), "its 'cost' cannot be read"),
    "ends of single nodes": ("single", put("features", "ends", value=True), "has no array 'ends.weights'"),
    "attributes of single nodes": ("single", put("features", "attributes", value=True), "has no array 'vocabulary"),
    "pairs of single nodes": ("single", put("features", "pair_columns", value=2), "has no array 'pair."),
    "classes": ("single", put("labels", "names", value=["a", "b", 3]), "its labels must be all of one type"),
    "type of classes": ("single", put("labels", "kind", value="complex128"), "its labels must be all of one type"),
    "numbers": ("single", put("labels", "kind", value="float64"), "its classes must all be of type float"),
    "base": ("chain", put("parameters", "base", value=NO_GAP), "The 'C' parameter of StructuredSVM must be"),
    "base of others": ("chain", put("parameters", "base", value=OTHER), "its 'base' cannot be read"),
    "base with slacks": ("chain", put("parameters", "base", value=SLACK), "must have rescaling='margin'"),
    "sub-states": ("chain", put("states", "sizes", value=[1, 1, 2]), "its structure must be a chain of 4 labels"),
    "no sub-states": ("chain", put("states", "sizes", value=[1, 3, 0]), "must have sub-states for each of 3 labels"),
    "many sub-states": ("chain", put("states", "sizes", value=[1, 1, 2**62]), "its structure must be a chain of"),
    "template": ("chain", put("states", "template", value=7), "The template must be None, a Template or its text"),
    "heat": ("chain", put("states", "temperature", value=float("inf")), "its temperature must be a float in (0, inf)"),
    "hidden": ("chain", array("hidden", lambda values: values[:-1]), "must cut 128 hidden parts"),
    "lengths": ("chain", array("hidden.lengths", at(0, 2**62)), "'hidden.lengths' must cut"),
    "status": ("chain", put("training", "status", value="converged"), "its status is 'converged'"),
    "certificate": ("chain", array("training.trace", lambda values: values[:, :5]), "must have shape (any, 9)"),
    "changes": ("chain", array("training.trace", at((0, 5), np.nan)), "must have counts of hidden parts"),
    "weights": ("bags", array("bags.weights", at(0, np.nan)), "array 'bags.weights' must have finite numbers"),
    "columns": ("bags", put("bags", "n_columns", value=3), "array 'bags.weights' must have shape (4). Got (3,)"),
    "background": ("bags", put("bags", "background", value=2), "one of them or none in the background"),
    "one label": ("bags", put("labels", "names", value=["no"]), "bags need two labels"),
    "no bags": ("bags", drop("bags"), "its 'states' must be of type dict. Got nothing"),
    "gap": ("CRF", put("training", "gap", value=1.0), "its 'gap' must be of type NoneType"),
    "bags in a CRF": (
        "CRF",
        put("parameters", "latent", value={"type": "part", "name": "LatentPosition", "settings": {}}),
        "its 'latent' cannot be read",
    ),
}  # fmt: skip


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
