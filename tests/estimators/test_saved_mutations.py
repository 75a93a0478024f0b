"""No change of a model file leads to anything but a refusal, or a model that answers."""

import random
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dualfield
from dualfield.persistence import ModelFileError, read_model_header
from tests.estimators import saved_graphical_models as graphs
from tests.estimators import saved_hmms as hmms
from tests.estimators import saved_margin_models as margins
from tests.estimators import saved_network_models as networks
from tests.estimators.mutations import Forger, blind
from tests.estimators.saved_models import classifier, forget, points, tagger, unseen

MODELS = {
    "attributes": lambda: (tagger("BIO"), unseen("BIO")),
    "order 2": lambda: (tagger("order 2 BIO"), unseen("order 2 BIO")),
    "CRF++": lambda: (tagger("CRF++"), unseen("CRF++")),
    "dense": lambda: (tagger("pairs of columns"), unseen("pairs of columns")),
    "cost": lambda: (tagger("cost"), unseen("cost")),
    "points": lambda: (classifier("given points"), points("given points")),
    "csr_matrix": lambda: (classifier("csr_matrix"), points("csr_matrix")),
    "label kernel": lambda: (classifier("label kernel"), points("label kernel")),
    "margins": lambda: (margins.machine("calibrated"), margins.unseen_by("calibrated")),
    "single": lambda: (margins.single("str"), margins.rows("str")),
    "sub-states": lambda: (margins.latent("chain"), margins.LATENTS["chain"][2]()),
    "bags": lambda: (margins.latent("bags"), margins.bags(1)[0]),
    "hidden CRF": lambda: (margins.latent("CRF"), margins.LATENTS["CRF"][2]()),
    "cliques": lambda: (graphs.tagger("padding"), graphs.unseen_by("padding")),
    "triples": lambda: (graphs.tagger("combined"), graphs.unseen_by("combined")),
    "tied cliques": lambda: (graphs.tagger("tied"), graphs.unseen_by("tied")),
    "graph": lambda: (graphs.labeller("tree"), graphs.rows("tree")),
    "sparse graph": lambda: (graphs.labeller("sparse"), graphs.rows("sparse")),
    "connected cliques": lambda: (graphs.connected("graphs"), graphs.shapes("graphs")),
    "network": lambda: (networks.network("own"), networks.rows("own")),
    "HMM": lambda: (hmms.fitted("shapes")[0], hmms.FOREIGN),
    "HMM of streams": lambda: hmms.fitted("streams"),
}
# What a sound model may say about input that is not its own.
SOUND = "template|column|features|must be finite|no allowed labelling|impossible|symbols|streams"
PER_MODEL = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(autouse=True, scope="module")
def _models_are_forgotten():
    yield
    forget()
    margins.forget()
    graphs.forget()
    networks.forget()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, make in MODELS.items():
        make()[0].save(folder / name)
    return folder


def ask(model, X):
    """Ask a model what a user would; answers must be labels of the model and finite numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # weights near the largest float overflow, as they may
        warnings.filterwarnings("ignore", message=".*a type of clique that training did not have")
        labels = model.predict(X)
        probabilities = model.predict_proba(X) if hasattr(model, "predict_proba") else []
        if hasattr(model, "predict_latent"):
            model.predict_latent(X)
    known = set(np.asarray(model.classes_).tolist())
    for one in labels:
        assert known.issuperset(np.ravel(one).tolist())
    for rows in probabilities:
        assert rows.shape[-1] == len(known)
    return np.concatenate([np.zeros(0), *(np.ravel(rows) for rows in probabilities)])


def look_inside(model):
    """Ask a model of sequences about its attributes and weights."""
    if hasattr(model, "vocabulary_"):
        if model.vocabulary_ is not None:
            model.vocabulary_.columns(["w=dog", "first", "U0:dog", "no"])
            model.vocabulary_.attribute(0)
        model.top_features(3)


@PER_MODEL
def test_blind_changes_are_refused(files, tmp_path, name):
    whole, path = (files / name).read_bytes(), tmp_path / "changed.model"
    rng = random.Random(name)
    for _ in range(150):
        changed = blind(whole, rng)
        if changed == whole:
            continue
        path.write_bytes(changed)
        with pytest.raises(ModelFileError) as error:
            dualfield.load(path)
        assert str(error.value).startswith(f"{path} ")


@PER_MODEL
def test_blind_changes_of_mapped_files(files, tmp_path, name):
    """Arrays are not compared with their digests here: the model must stand whatever they hold."""
    whole, path = (files / name).read_bytes(), tmp_path / "changed.model"
    _, X = MODELS[name]()
    rng, start = random.Random(name), 8 + int.from_bytes(whole[:8], "little")
    answered = 0
    for turn in range(150):
        if turn % 3:  # in the arrays only, of the same length
            changed = bytearray(whole)
            for _ in range(rng.choice((1, 2, 50))):
                at = rng.randrange(start, len(changed))
                changed[at] = rng.choice((changed[at] ^ (1 << rng.randrange(8)), 0, 0xFF, 0x7F, 0x80))
        else:
            changed = blind(whole, rng)
        if bytes(changed) == whole:
            continue
        path.write_bytes(changed)
        try:
            model = dualfield.load(path, mmap=True)
            assert np.isfinite(ask(model, X)).all()
            answered += 1
            look_inside(model)
        except ModelFileError as error:
            assert str(error).startswith(f"{path} ")  # noqa: PT017
        except ValueError as error:
            assert "must be finite" in str(error)  # noqa: PT017
    # The others need all arrays for an answer, and compare them with their digests then.
    looked_up = ("attributes", "order 2", "CRF++", "cost", "margins", "sub-states", "hidden CRF")
    assert (answered > 0) == (name in looked_up)


@PER_MODEL
@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_changes_of_one_who_knows_the_format(files, tmp_path, name, mmap):
    """With digests that agree, a file may describe another model; then it must be a sound one."""
    forger, path = Forger(files / name), tmp_path / "forged.model"
    _, X = MODELS[name]()
    rng = random.Random(f"{name} {mmap}")
    outcomes = {"refused": 0, "refused at use": 0, "answered": 0}
    for _ in range(200):
        path.write_bytes(forger.forged(rng))
        try:
            read_model_header(path)
            model = dualfield.load(path, mmap=mmap)
        except ModelFileError as error:
            assert str(error).startswith(f"{path} ")  # noqa: PT017
            outcomes["refused"] += 1
            continue
        try:
            ask(model, X)
            outcomes["answered"] += 1
        except ModelFileError:
            assert mmap
            outcomes["refused at use"] += 1
        except ValueError as error:  # a sound model of other input
            assert re.search(SOUND, str(error)), error  # noqa: PT017
    assert outcomes["refused"] > 60
    assert outcomes["answered"] > 10


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 400), st.booleans())
def test_any_bytes(tmp_path_factory, data, at, mmap):
    """Nothing that begins like a model, or not even that, is a model."""
    path = tmp_path_factory.getbasetemp() / "any.model"
    tagger("attributes").save(path) if not path.exists() else None
    kept = path.with_name("kept.model")
    if not kept.exists():
        kept.write_bytes(path.read_bytes())
    whole = kept.read_bytes()
    changed = whole[:at] + data + whole[at + len(data) :]
    path.write_bytes(changed)
    if changed == whole:
        return
    with pytest.raises(ModelFileError):
        dualfield.load(path, mmap=mmap)


LOOP = """
import random, sys, warnings
from pathlib import Path
import dualfield
from dualfield.persistence import ModelFileError
from tests.estimators.mutations import Forger, blind
from tests.estimators.saved_models import unseen

warnings.simplefilter("ignore")
source, target, X = Path(sys.argv[1]), Path(sys.argv[2]), unseen("CRF++")
forger, whole, rng, asked = Forger(source), source.read_bytes(), random.Random(1), 0
for turn in range(200):
    target.write_bytes(forger.forged(rng) if turn % 2 else blind(whole, rng))
    try:
        model = dualfield.load(target, mmap=True)
        model.predict(X), model.predict_proba(X), model.predict_spans(X), model.top_features(), model.explain(X[0])
        asked += 1
    except ValueError:
        pass
assert asked > 5
"""


def test_a_process_of_its_own_survives(files, tmp_path):
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", LOOP, files / "CRF++", tmp_path / "m"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
