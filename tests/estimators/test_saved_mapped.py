"""Models in mapped files: opened at once whatever their size, looked up in place, equal to those that are read."""

import gc
import pickle
import time
import weakref

import numpy as np
import pytest

import dualfield
from dualfield import CRF
from dualfield.data import Batch, Labels, Vocabulary
from dualfield.data.mapped_vocabulary import MappedVocabulary
from dualfield.models.structured import StructuredModel
from dualfield.scores import FeatureTable, LinearScores
from dualfield.scores.stored import LinearWeights
from dualfield.solvers import Solution
from dualfield.structures import Chain
from tests.estimators.saved_models import classifier, equal, forget, points, sentences, tagger, unseen


@pytest.fixture(autouse=True, scope="module")
def _models_are_forgotten():
    yield
    forget()


def made(n_columns: int) -> CRF:
    """A model of so many attributes, as if trained."""
    model, labels, rng = CRF(), Labels.fit([["A", "B", "C"]]), np.random.default_rng(0)
    table = FeatureTable(np.arange(n_columns + 1), rng.integers(0, 3, n_columns).astype(np.int32), 3)
    score_map = LinearScores(Chain(3), table)
    vocabulary = Vocabulary.from_attributes(f"word[0]={number}" for number in range(n_columns))
    parameters = score_map.pack(rng.normal(size=n_columns), rng.normal(size=9))
    found = StructuredModel(
        labels=labels,
        structure=score_map.structure,
        vocabulary=vocabulary,
        pair_vocabulary=None,
        weights=LinearWeights(score_map, parameters),
    )
    model._keep(found, Solution.exact(parameters, "none"))
    return model


def best_seconds(action, repeats: int = 15) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def test_opening_does_not_take_longer_for_a_million_features(tmp_path):
    small, large = made(1_000), made(1_000_000)
    small.save(tmp_path / "small")
    large.save(tmp_path / "large")
    assert (tmp_path / "large").stat().st_size > 200 * (tmp_path / "small").stat().st_size
    X = [[["word[0]=7", "word[0]=999"], ["word[0]=123456", "new"]]]

    def opened(name):
        return lambda: dualfield.load(tmp_path / name, mmap=True)

    # The best of some, and again if the machine was busy: reading it all would take hundreds of times as long.
    assert any(best_seconds(opened("large")) < 3 * best_seconds(opened("small")) for _ in range(5))
    for name, model in (("small", small), ("large", large)):
        again = opened(name)()
        assert again.predict(X) == model.predict(X)
        assert equal(again.predict_proba(X), model.predict_proba(X))
        assert not again.model_.weights.is_read


def mapped(folder, model):
    model.save(folder / "saved.model")
    return dualfield.load(folder / "saved.model", mmap=True)


@pytest.mark.parametrize("name", ["attributes", "weighted", "BIO", "pairs", "CRF++", "Wapiti"])
def test_predictions_look_up_only_what_they_need(tmp_path, name):
    model, X = tagger(name), unseen(name)
    again = mapped(tmp_path, model)
    assert equal(again.predict(X), model.predict(X))
    assert equal(again.predict_proba(X, pairwise=True), model.predict_proba(X, pairwise=True))
    assert equal(again.predict_single(X[0]), model.predict_single(X[0]))
    assert again.predict_spans(X) == model.predict_spans(X)
    assert again.predict_marginals(X) == model.predict_marginals(X)
    labels = [["O"] * len(x) for x in X]
    assert equal(again.score_sequences(X, labels), model.score_sequences(X, labels))
    assert equal(again.sample(X, random_state=0), model.sample(X, random_state=0))
    assert again.predict([]) == model.predict([])
    assert not again.model_.weights.is_read
    assert again.vocabulary_._whole is None
    assert equal(again.parameters_, model.parameters_)
    assert equal(again.predict(X), model.predict(X))


def test_errors_in_input_are_the_usual_ones(tmp_path):
    again = mapped(tmp_path, tagger("attributes"))
    with pytest.raises(TypeError, match=r"X must have attributes, as 'vocabulary' is given\. Got numbers instead\."):
        again.predict([np.zeros((2, 2))])
    with pytest.raises(TypeError, match=r"X\[0\]\[1\] must be a dict, or a list"):
        again.predict([[["a"], 7]])
    with pytest.raises(ValueError, match="lengths must be None with a template"):
        mapped(tmp_path, tagger("CRF++")).predict([["a"]], lengths=[1])
    flat = [item for x in unseen("attributes") for item in x]
    lengths = [len(x) for x in unseen("attributes")]
    assert again.predict(flat, lengths=lengths) == tagger("attributes").predict(unseen("attributes"))


def test_a_batch_is_scored_too(tmp_path):
    model, X = tagger("attributes"), unseen("attributes")
    again = mapped(tmp_path, model)
    assert again.predict(Batch.build(X, vocabulary=again.vocabulary_)) == model.predict(X)
    assert again.predict(Batch.build(X, vocabulary=model.vocabulary_)) == model.predict(X)


def test_replacing_the_file_does_not_disturb_a_mapped_model(tmp_path):
    model, X = tagger("attributes"), unseen("attributes")
    again = mapped(tmp_path, model)
    tagger("int").save(tmp_path / "saved.model")
    assert again.predict(X) == model.predict(X)
    (tmp_path / "saved.model").unlink()
    assert again.predict(X) == model.predict(X)
    assert equal(again.parameters_, model.parameters_)


def test_a_model_that_nobody_needs_gives_its_memory_back(tmp_path):
    """At once: a cycle of references would keep the file mapped until the collector comes by."""
    model, X = tagger("attributes"), unseen("attributes")
    again = mapped(tmp_path, model)
    source = weakref.ref(again._source)
    again.predict(X)
    gc.disable()
    try:
        del again
        assert source() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ["single precision", "csr_matrix", "csr_array"])
def test_points_are_used_in_place(tmp_path, name):
    model, X = classifier(name), points(name)
    again = mapped(tmp_path, model)
    assert again._source._pending  # nothing is read yet
    assert equal(again.predict_proba(X), model.predict_proba(X))
    found = again.points_ if name == "single precision" else again.points_.data
    for array in (found, again.dual_coef_):
        assert not array.flags.writeable
        assert not array.flags.owndata


@pytest.fixture
def words(tmp_path):
    model = tagger("attributes")
    return model.vocabulary_, mapped(tmp_path, model).vocabulary_


def test_vocabulary_in_a_file_answers_like_one_in_memory(words):
    plain, found = words
    assert isinstance(found, MappedVocabulary)
    for _ in range(2):  # from the file, and when it is in memory
        assert len(found) == len(plain)
        for column, attribute in enumerate(plain):
            assert found.column(attribute) == column
            assert found.attribute(column) == attribute
            assert attribute in found
        for strange in ("new", "", "\ud800", "größe", "w=dog ", "a" * 1000):
            assert found.column(strange) is None
            assert strange not in found
        assert found.columns(["w=dog", "no"]).tolist() == plain.columns(["w=dog", "no"]).tolist()
        assert found.columns(plain).tolist() == list(range(len(plain)))
        with pytest.raises(TypeError, match="must be an iterable of str"):
            found.columns("w=dog")
        for column in (-1, len(plain)):
            with pytest.raises(IndexError, match="'column' must be an int"):
                found.attribute(column)
        assert found._whole is None or _ == 1
        assert list(found) == list(plain)
    assert found == plain
    assert hash(found) == hash(plain)
    assert repr(found).endswith(f"of {len(plain)} attributes>")


def test_copies_of_a_vocabulary_in_a_file_are_plain(words):
    plain, found = words
    copies = [found.copy(), pickle.loads(pickle.dumps(found)), found.copy()]
    for one in copies:
        assert type(one) is Vocabulary
        assert one == plain
    batch = Batch.build([[["new one"]]], vocabulary=copies[0], grow=True)
    assert batch.n_columns == len(plain) + 1
    assert len(found) == len(plain)
    assert found.column("new one") is None


def test_a_mapped_model_is_fitted_again(tmp_path):
    model = mapped(tmp_path, tagger("attributes"))
    X, y = sentences(10, seed=9)
    model.fit(X, [["Z"] * len(labels) for labels in y])
    assert model.predict(X[:1]) == [["Z"] * len(X[0])]
    assert pickle.loads(pickle.dumps(model)).predict(X[:1]) == [["Z"] * len(X[0])]
    model.save(tmp_path / "saved.model")
    assert dualfield.load(tmp_path / "saved.model").predict(X[:1]) == [["Z"] * len(X[0])]
