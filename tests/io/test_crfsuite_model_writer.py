"""CRFsuite's model files as we write them: CRFsuite's own bytes, and what python-crfsuite finds in them."""

import random

import numpy as np
import pytest

from dualfield.io import (
    CrfsuiteModel,
    StateWeights,
    TransitionWeights,
    crfsuite_model_writer,
    read_crfsuite_model,
    write_crfsuite_model,
)

pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite, which reads the models, is not installed")


def make_model(seed=0, n_labels=5, n_attributes=700, longest=60):
    """Names of all lengths, so that every way through the hash function is taken, with letters of several bytes."""
    generator = random.Random(seed)
    names = {"".join(generator.choices("abcäé日:=\\ ", k=generator.randint(0, longest))) for _ in range(n_attributes)}
    attributes, labels = sorted(names), [f"label {number}" for number in range(n_labels)]
    state = [
        (a, label, generator.gauss(0, 1))
        for a in range(len(attributes))
        for label in range(n_labels)
        if generator.random() < 0.4
    ]
    pairs = [
        (s, t, generator.gauss(0, 1)) for s in range(n_labels) for t in range(n_labels) if generator.random() < 0.7
    ]
    return CrfsuiteModel(labels, attributes, StateWeights(*columns(state)), TransitionWeights(*columns(pairs)))


def columns(rows):
    sources, targets, weights = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(sources, np.int32), np.array(targets, np.int32), np.array(weights, np.float64)


def open_tagger(path):
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


def check_same(one, two):
    assert (one.labels, one.attributes) == (two.labels, two.attributes)
    for mine, theirs in zip((*one.state, *one.transitions), (*two.state, *two.transitions), strict=True):
        assert mine.dtype == theirs.dtype
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("algorithm", ["lbfgs", "ap"])
@pytest.mark.parametrize("seed", range(4))
def test_the_bytes_are_those_of_crfsuite(tmp_path, algorithm, seed):
    generator = random.Random(seed)
    trainer = pycrfsuite.Trainer(algorithm, {"max_iterations": 3}, verbose=False)
    for _ in range(30):
        length = generator.randint(1, 6)
        items = [["".join(generator.choices("abcd", k=generator.randint(1, 40)))] for _ in range(length)]
        trainer.append(items, generator.choices(["A", "BB", "été"], k=length))
    trainer.train(str(tmp_path / "theirs"))
    write_crfsuite_model(read_crfsuite_model(tmp_path / "theirs"), tmp_path / "ours")
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()


@pytest.mark.parametrize("seed", range(3))
def test_crfsuite_finds_every_name_and_weight(tmp_path, seed):
    model = make_model(seed)
    write_crfsuite_model(model, tmp_path / "model")
    check_same(read_crfsuite_model(tmp_path / "model"), model)
    tagger = open_tagger(tmp_path / "model")
    assert tagger.labels() == model.labels
    # An item with one attribute: the difference of its log-probabilities is that of the weights.
    weights = np.zeros((len(model.attributes), len(model.labels)))
    weights[model.state.attribute, model.state.label] = model.state.weight
    for number, name in enumerate(model.attributes):
        tagger.set([[name]])
        found = np.array([tagger.marginal(label, 0) for label in model.labels])
        expected = np.exp(weights[number])
        np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-12)
    for name in ("never seen", "日", "x" * 100):
        if name not in model.attributes:
            tagger.set([[name]])
            assert tagger.marginal(model.labels[0], 0) == pytest.approx(1 / len(model.labels))


@pytest.mark.parametrize("model", [make_model(1, 1, 1), make_model(1, 3, 0), make_model(2, 2, 3, longest=2000)])
def test_small_models(tmp_path, model):
    write_crfsuite_model(model, tmp_path / "model")
    check_same(read_crfsuite_model(tmp_path / "model"), model)
    assert open_tagger(tmp_path / "model").labels() == model.labels


NONE, ONE = StateWeights(*columns([])), StateWeights(*columns([(0, 0, 0.5)]))


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (CrfsuiteModel(["A", 1], [], NONE, NONE), TypeError, "models have labels of type str. Got 1 instead."),
        (CrfsuiteModel(["A", "A"], [], NONE, NONE), ValueError, "The labels of a model must differ. Got 'A' twice."),
        (
            CrfsuiteModel(["A"], ["a\0b"], NONE, NONE),
            ValueError,
            "cannot have the attribute 'a.*it has a zero character",
        ),
        (
            CrfsuiteModel(["A"], ["\ud800"], NONE, NONE),
            ValueError,
            "cannot have the attribute .*: surrogates not allowed",
        ),
        (CrfsuiteModel(["A"], [], ONE, NONE), ValueError, r"numbers in 'state' of a model must be in \[0, 0\). Got 0."),
        (
            CrfsuiteModel(["A"], ["a"], NONE, ONE._replace(label=np.array([-1]))),
            ValueError,
            r"numbers in 'transitions' of a model must be in \[0, 1\). Got -1.",
        ),
        (
            CrfsuiteModel(["A"], ["a"], ONE._replace(weight=np.array([np.nan])), NONE),
            ValueError,
            "weights in 'state' of a model must be finite. Got nan.",
        ),
        (
            CrfsuiteModel(["A"], ["a"], ONE._replace(weight=np.zeros(2)), NONE),
            ValueError,
            r"arrays in 'state' of a model must have one length. Got shapes \(1,\), \(1,\) and \(2,\)",
        ),
    ],
)
def test_refused(tmp_path, model, error, message):
    with pytest.raises(error, match=message):
        write_crfsuite_model(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_files_that_would_be_too_large_are_refused(tmp_path, monkeypatch):
    model = make_model()
    write_crfsuite_model(model, tmp_path / "model")
    monkeypatch.setattr(crfsuite_model_writer, "LIMIT", (tmp_path / "model").stat().st_size)
    with pytest.raises(ValueError, match=r"CRFsuite's models must have less than 4 GiB. This one would have"):
        write_crfsuite_model(model, tmp_path / "other")
    assert not (tmp_path / "other").exists()
