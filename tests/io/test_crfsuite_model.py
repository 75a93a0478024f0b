"""CRFsuite's model files: what python-crfsuite says of them, and what no damage may lead to."""

import itertools
import math
import random
import struct
import tracemalloc

import numpy as np
import pytest

from dualfield.io import read_crfsuite_model
from dualfield.io.crfsuite_model import parse_model

pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite, which writes the models, is not installed")

X = [
    [{"w": "the", "len": 3.0}, {"w": "dog", "len": 3.0}, {"w": "ran", "len": 3.0, "end": True}],
    [{"w": "größe", "日本": 2.5}, {"w": "ran", "a --> b": 1.0}],
    [{"w": "the"}, {"w": "große: x", "len": 5.0}],
]
Y = [["DT", "NN", "VB"], ["NN", "VB"], ["DT", "été"]]


def train(path, X, y, algorithm="lbfgs", **params):
    trainer = pycrfsuite.Trainer(algorithm, verbose=False)
    trainer.set_params({"max_iterations": 20, **params})
    for items, labels in zip(X, y, strict=True):
        trainer.append(items, labels)
    trainer.train(str(path))
    return path


def random_problem(seed, n_sequences=12, n_words=40):
    generator = random.Random(seed)
    words = [f"w{number}" for number in range(n_words)]
    X = [
        [
            {word: generator.uniform(-1, 1) for word in generator.sample(words, generator.randint(0, 4))}
            for _ in range(generator.randint(1, 6))
        ]
        for _ in range(n_sequences)
    ]
    return X, [[generator.choice("ABCDE") for _ in sequence] for sequence in X]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return train(tmp_path_factory.mktemp("model") / "small.crfsuite", X, Y)


@pytest.fixture(scope="module")
def small_bytes(small):
    return small.read_bytes()


def parse(data):
    return parse_model(memoryview(bytes(data)))


# Against python-crfsuite.


def check_against_info(path):
    model = read_crfsuite_model(path)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    info = tagger.info()
    assert {label: str(number) for number, label in enumerate(model.labels)} == info.labels
    assert {name: str(number) for number, name in enumerate(model.attributes)} == info.attributes
    assert tagger.labels() == model.labels
    # Its text has six digits behind the point; test_weights_are_exact goes further.
    state = {
        (model.attributes[attribute], model.labels[label]): float(f"{weight:f}")
        for attribute, label, weight in zip(*model.state, strict=True)
    }
    transitions = {
        (model.labels[source], model.labels[target]): float(f"{weight:f}")
        for source, target, weight in zip(*model.transitions, strict=True)
    }
    assert state == info.state_features
    assert transitions == info.transitions
    assert len(state) == model.state.weight.size
    assert len(transitions) == model.transitions.weight.size
    for array in (*model.state, *model.transitions):
        assert array.dtype in (np.int32, np.float64)
    return model


def test_small_model(small):
    model = check_against_info(small)
    assert model.labels == ["DT", "NN", "VB", "été"]
    assert "日本" in model.attributes


@pytest.mark.parametrize(
    ("algorithm", "params"),
    [
        ("lbfgs", {"c1": 0.5}),
        ("lbfgs", {"feature.possible_states": True, "feature.possible_transitions": True}),
        ("l2sgd", {}),
        ("ap", {}),
        ("pa", {}),
        ("arow", {}),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_every_algorithm(tmp_path, algorithm, params, seed):
    check_against_info(train(tmp_path / "m", *random_problem(seed), algorithm=algorithm, **params))


def test_one_label(tmp_path):
    model = check_against_info(train(tmp_path / "m", [[["a"], ["b"]]], [["O", "O"]], algorithm="ap"))
    assert model.labels == ["O"]


def test_no_weight_is_left(tmp_path):
    """A strong L1 penalty leaves labels without features."""
    model = check_against_info(train(tmp_path / "m", X, Y, c1=1e6))
    assert model.attributes == []
    assert model.state.weight.size == model.transitions.weight.size == 0
    assert len(model.labels) == 4


def log_probabilities(model, items):
    """Return the log-probability of every labelling of a sequence, by enumeration."""
    K = len(model.labels)
    attributes = {name: number for number, name in enumerate(model.attributes)}
    weights, pairs = np.zeros((len(attributes), K)), np.zeros((K, K))
    weights[model.state.attribute, model.state.label] = model.state.weight
    pairs[model.transitions.source, model.transitions.target] = model.transitions.weight
    scores = {}
    for labelling in itertools.product(range(K), repeat=len(items)):
        terms = [
            value * weights[attributes[name], label]
            for item, label in zip(items, labelling, strict=True)
            for name, value in item.items()
            if name in attributes
        ]
        scores[labelling] = math.fsum(terms + [pairs[pair] for pair in itertools.pairwise(labelling)])
    top = max(scores.values())
    log_z = top + math.log(math.fsum(math.exp(score - top) for score in scores.values()))
    return {labelling: score - log_z for labelling, score in scores.items()}


def test_weights_are_exact(tmp_path):
    """Probabilities by enumeration with our weights are CRFsuite's to its last digits."""
    X, y = random_problem(7, n_sequences=8)
    path = train(tmp_path / "m", X, y, c2=0.01)
    model = read_crfsuite_model(path)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    for items in [sequence for sequence in X if len(sequence) <= 4][:4]:
        tagger.set(items)
        for labelling, value in log_probabilities(model, items).items():
            ours, theirs = math.exp(value), tagger.probability([model.labels[label] for label in labelling])
            assert ours == pytest.approx(theirs, rel=1e-11)


# Damage.


def check_consistent(model):
    n_labels, n_attributes = len(model.labels), len(model.attributes)
    assert len(set(model.labels)) == n_labels
    assert len(set(model.attributes)) == n_attributes
    for sources, targets, weights, n_sources in ((*model.state, n_attributes), (*model.transitions, n_labels)):
        assert sources.shape == targets.shape == weights.shape
        if sources.size:
            assert 0 <= sources.min() <= sources.max() < n_sources
            assert 0 <= targets.min() <= targets.max() < n_labels
        assert np.isfinite(weights).all()


def survives(data):
    """Return whether the bytes are still a model, which must then be consistent."""
    try:
        model = parse(data)
    except ValueError as error:
        # Not one of NumPy's: the sentence that the name of the file is put in front of.
        assert str(error).startswith(("is ", "must ", "has a "))  # noqa: PT017
        return False
    check_consistent(model)
    return True


def test_every_truncation_is_refused(small_bytes):
    assert survives(small_bytes)
    assert [size for size in range(len(small_bytes)) if survives(small_bytes[:size])] == []


def test_every_truncation_with_a_fitting_header_is_refused_or_consistent(small_bytes):
    """The size in the header gives a truncation away; without that the rest must hold."""
    for size in range(48, len(small_bytes)):
        survives(small_bytes[:4] + struct.pack("<I", size) + small_bytes[8:size])


def test_bytes_behind_the_end_are_refused(small_bytes):
    assert not survives(small_bytes + b"\0")


@pytest.mark.parametrize("seed", range(4))
def test_flipped_bits(small_bytes, seed):
    generator = random.Random(seed)
    for _ in range(1500):
        data = bytearray(small_bytes)
        for _ in range(generator.choice((1, 1, 1, 2, 5, 20))):
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        survives(data)


@pytest.mark.parametrize("value", [0, 1, 2**16, 2**31 - 1, 2**31, 2**32 - 12, 2**32 - 1])
def test_hostile_numbers(small_bytes, value):
    """Each word of the file in turn becomes a number that is too small or too large."""
    word = struct.pack("<I", value)
    tracemalloc.start()
    try:
        for at in range(0, len(small_bytes) - 3, 4):
            survives(small_bytes[:at] + word + small_bytes[at + 4 :])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**20 + 50 * len(small_bytes)


def header_with(data, **fields):
    names = ("magic", "size", "type", "version", "features", "labels", "attributes")
    values = dict(zip(names, struct.unpack_from("<4sI4s4I", data), strict=True)) | fields
    return struct.pack("<4sI4s4I", *values.values()) + data[28:]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"magic": b"lCRG"}, "is not a model of CRFsuite: it does not begin with b'lCRF'."),
        (
            {"type": b"TREE"},
            "must be a linear-chain model, b'FOMC' of version 100. Got b'TREE' of version 100 instead.",
        ),
        ({"version": 101}, "must be a linear-chain model, b'FOMC' of version 100. Got b'FOMC' of version 101 instead."),
        ({"size": 7}, "is cut off or altered: its header says 7 bytes. It has "),
        ({"labels": 2**31}, "is altered: its dictionary cannot hold 2147483648 labels."),
        ({"attributes": 2**32 - 1}, "is altered: its dictionary cannot hold 4294967295 attributes."),
        ({"labels": 0}, "is altered: a feature names an attribute or label that does not exist."),
    ],
)
def test_errors_name_the_file(tmp_path, small_bytes, fields, message):
    path = tmp_path / "model.crfsuite"
    path.write_bytes(header_with(small_bytes, **fields))
    with pytest.raises(ValueError, match=r"model\.crfsuite ") as caught:
        read_crfsuite_model(path)
    assert str(caught.value).startswith(f"{path} {message}")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_no_numbers_are_refused(small_bytes, value):
    at = small_bytes.index(struct.pack("<d", parse(small_bytes).state.weight[0]))
    with pytest.raises(ValueError, match="must have finite weights"):
        parse(small_bytes[:at] + struct.pack("<d", value) + small_bytes[at + 8 :])


def test_names_that_are_not_utf8_are_refused(small_bytes):
    with pytest.raises(ValueError, match="has a label that is not UTF-8"):
        parse(small_bytes.replace("été".encode(), b"\xff\xfe\xfd\xff\xff"))


def test_what_is_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_crfsuite_model(tmp_path / "none")
    with pytest.raises(ValueError, match="is not a regular file"):
        read_crfsuite_model(tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match=r"empty is not a model of CRFsuite"):
        read_crfsuite_model(tmp_path / "empty")


def test_huge_files_are_not_read(tmp_path):
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(2**32)  # a hole: it takes no space
    with pytest.raises(ValueError, match="larger than 4 GiB"):
        read_crfsuite_model(path)
