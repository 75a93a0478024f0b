"""Rare and unknown symbols of HMMs: classes, what is skipped, and what missing mass says."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield import DiscriminativeHMM
from dualfield.data.symbols import SymbolTable
from dualfield.data.word_shapes import word_shape
from tests.estimators.hmm_reference import Reference, drawn

WORDS = [["the", "dog", "barks"], ["the", "cat", "sleeps"], ["the", "Rex", "ran"], ["the", "dog", "slept"]]
TAGS = [["D", "N", "V"]] * 4


def test_rare_symbols_share_a_column():
    model = DiscriminativeHMM(0.0, smoothing=0.0, min_count=2).fit(WORDS, TAGS)
    assert model.symbols_.tolist() == ["dog", "the"]
    assert model.rare_classes_ == ["rare"]
    np.testing.assert_allclose(model.emissionprob_, [[0, 1, 0], [0.5, 0, 0.5], [0, 0, 1]])
    assert model.predict([["the", "bird", "flies"]]) == [["D", "N", "V"]]  # unseen words are rare ones
    assert model.model_.read([["bird", "dog"]], None)[0].indices.tolist() == [2, 0]


def test_classes_by_shape():
    model = DiscriminativeHMM(0.0, min_count=2, rare="shape").fit(WORDS, TAGS)
    assert model.rare_classes_ == ["-s", "Capital", "small"]
    columns = model.model_.read([["Fido", "jumps", "ran", "of", "1984", "the"]], None)[0]
    assert np.diff(columns.indptr).tolist() == [1, 1, 1, 1, 0, 1]  # no number was seen: skipped
    assert columns.indices.tolist() == [3, 2, 4, 4, 1]


@pytest.mark.parametrize(
    ("word", "shape"),
    [
        ("1984", "number"), ("10:30", "number"), ("F-16", "digits"), ("'90s", "digits"), ("%", "signs"),
        ("well-known", "hyphen"), ("IBM", "CAPITALS"), ("U.S.", "CAPITALS"), ("A", "Capital"), ("Vinken", "Capital"),
        ("Sales", "Capital-s"), ("nation", "-tion"), ("running", "-ing"), ("walked", "-ed"), ("quickly", "-ly"),
        ("dogs", "-s"), ("taller", "-er"), ("tallest", "-est"), ("famous", "-ous"), ("as", "small"), ("sing", "small"),
        ("...", "signs"), ("été", "small"), ("Élan", "Capital"), ("", "signs"),
    ],
)  # fmt: skip
def test_word_shapes(word, shape):
    assert word_shape(word) == shape


def test_classes_by_a_function():
    model = DiscriminativeHMM(0.0, min_count=3, rare=len).fit(WORDS, TAGS)
    assert model.symbols_.tolist() == ["the"]
    assert model.rare_classes_ == ["3", "5", "6"]
    batch = model.model_.read([["cow", "horse", "of"]], None)[0]
    assert batch.indices.tolist() == [1, 2]
    assert batch.indptr.tolist() == [0, 1, 2, 2]


def test_rare_integers():
    X, y = [np.array([5, 5, 9, 1000]), np.array([5, 7])], [np.array([0, 1, 1, 0]), np.array([0, 1])]
    for rare in (None, "shape"):
        model = DiscriminativeHMM(0.0, min_count=2, rare=rare).fit(X, y)
        assert model.symbols_.tolist() == [5]
        assert model.model_.read([np.array([4, 5, 10**12])], None)[0].indices.tolist() == [1, 0, 1]
    model = DiscriminativeHMM(0.0, min_count=2, rare=lambda number: number % 2).fit(X, y)
    assert model.rare_classes_ == ["0", "1"]
    assert model.model_.read([np.array([4, 5, 11])], None)[0].indices.tolist() == [1, 0, 2]
    nothing = DiscriminativeHMM(0.0, min_count=9).fit(X, y)
    assert nothing.symbols_.tolist() == []
    assert nothing.emissionprob_.tolist() == [[1.0], [1.0]]
    assert nothing.model_.read([np.array([5])])[0].indices.tolist() == [0]


def test_skipped_symbols_say_nothing():
    model = DiscriminativeHMM(0.0).fit(WORDS, TAGS)
    tables = Reference.of(model)
    columns = {word: at for at, word in enumerate(model.symbols_.tolist())}
    x = ["the", "unheard", "barks"]
    symbols = [(columns.get(word),) for word in x]
    np.testing.assert_allclose(model.predict_proba([x])[0], tables.marginals(symbols), atol=1e-12)
    assert model.score_samples([x])[0] == pytest.approx(np.log(tables.paths(symbols)[1].sum()))
    alone = model.predict_proba([["unheard"]])[0]
    np.testing.assert_allclose(alone[0], model.startprob_, atol=1e-12)


def test_unknown_symbols_are_worth_the_missing_mass():
    X, y = drawn(3, 3, 5, 8, 4)
    model = DiscriminativeHMM(5.0, unknown="mass", floor=1e-9).fit(X, y)
    mass = model.missing_mass_["emission"]
    assert mass.max() > 0.01
    tables = Reference.of(model)
    tables.emission[0] = np.column_stack([tables.emission[0], np.maximum(mass, 1e-9)])
    x = np.array([2, 99, 1])
    np.testing.assert_allclose(model.predict_proba([x])[0], tables.marginals([(2,), (5,), (1,)]), atol=1e-9)
    np.testing.assert_allclose(model.start_filter().step(99), tables.marginals([(5,)])[0], atol=1e-12)
    model.set_params(unknown="skip")  # no need to fit again
    np.testing.assert_allclose(model.predict_proba([x])[0], tables.marginals([(2,), (None,), (1,)]), atol=1e-9)


def test_without_missing_mass_an_unknown_symbol_is_worth_the_floor():
    model = DiscriminativeHMM(0.0, unknown="mass", floor=1e-6).fit(WORDS, TAGS)
    skip = DiscriminativeHMM(0.0).fit(WORDS, TAGS)
    assert model.score_samples([["new"]])[0] == pytest.approx(skip.score_samples([["new"]])[0] + np.log(1e-6))
    np.testing.assert_allclose(model.predict_proba([["the", "new"]])[0], skip.predict_proba([["the", "new"]])[0])


def test_unknown_symbols_can_be_refused():
    model = DiscriminativeHMM(0.0, unknown="error").fit(WORDS, TAGS)
    with pytest.raises(ValueError, match=r"X\[1\]\[2\] is 'purrs', a symbol not seen in training"):
        model.predict([["the", "dog"], ["the", "cat", "purrs"]])
    ints = DiscriminativeHMM(0.0, unknown="error").fit([np.array([1, 2])], [[0, 1]])
    with pytest.raises(ValueError, match=r"X\[0\]\[0\] is 3, a symbol not seen"):
        ints.predict([np.array([3])])
    assert model.set_params(unknown="skip").predict([["purrs"]])


def test_streams_have_their_own_symbols():
    X = [[("the", 1), ("dog", 2)], [("the", 1), ("cat", 3)]]
    model = DiscriminativeHMM(0.0, min_count=2).fit(X, [["D", "N"]] * 2)
    assert [symbols.tolist() for symbols in model.symbols_] == [["the"], [1]]
    assert model.rare_classes_ == [["rare"], ["rare"]]
    assert [table.shape for table in model.emissionprob_] == [(2, 2), (2, 2)]
    assert list(model.vocabulary_) == ["0:the", "0:<rare>", "0:<unknown>", "1:1", "1:<rare>", "1:<unknown>"]
    one = DiscriminativeHMM(0.0).fit(X, [["D", "N"]] * 2)
    half = one.model_.read([[("the", 9), ("cow", 3), ("cow", 9)]], None)[0]
    assert np.diff(half.indptr).tolist() == [1, 1, 0]
    assert one.predict([[("the", 1), ("cow", 2)]]) == [["D", "N"]]


def test_symbols_are_looked_up_the_same_way_however_many_there_are():
    rng = np.random.default_rng(0)
    values = rng.integers(-(10**9), 10**9, 5000)
    far, near = SymbolTable.fit(values, 1, None), SymbolTable.fit(values % 1000, 1, None)
    for table, data in ((far, values), (near, values % 1000)):
        np.testing.assert_array_equal(table.symbols, np.unique(data))
        some = np.concatenate([data[:50], [10**12, -(10**12), 10**9 + 1]])
        wanted = [int(np.flatnonzero(table.symbols == one)[0]) for one in data[:50]]
        assert table.encode(some).tolist() == [*wanted, *[table.unknown] * 3]
