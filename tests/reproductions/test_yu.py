"""The pieces of ``python -m reproductions yu-hmm``, each against independent means."""

import dataclasses
import gzip
import itertools
import os
import random
import statistics
from pathlib import Path

import click
import numpy as np
import pytest
from hmmlearn.hmm import CategoricalHMM
from sklearn.cluster import KMeans
from sklearn.naive_bayes import CategoricalNB

from dualfield.datasets import load_benchmark_data
from reproductions import yu_networks, yu_tagging
from reproductions.perezcruz_data import handwritten_words
from reproductions.records import Settings
from reproductions.yu_data import (
    LETTERS,
    MORE_SENTENCES,
    SENTENCES,
    Sequences,
    attributes,
    coarse_tag,
    study,
    tagged_sentences,
)
from reproductions.yu_models import COUNTED, FIELD, PERCEPTRON, TRAINED, measured, models, symbol_table
from reproductions.yu_taggers import TaggerRow, compute, share_with_error
from reproductions.yu_tagging import chosen
from tests.reproductions.test_perezcruz import write_handwriting

WORDS = {
    "DT": ["the", "a", "this"],
    "JJ": ["old", "green", "saw"],
    "NN": ["dog", "house", "Rex", "saw", "walk"],
    "NNS": ["dogs", "houses", "saws"],
    "VBZ": ["sees", "saws", "likes"],
    "VBD": ["saw", "walked", "liked"],
    ",": [","],
    ".": ["."],
}
FOLLOWING = {
    None: ["DT", "NN", "JJ"],
    "DT": ["JJ", "NN", "NNS"],
    "JJ": ["NN", "NNS"],
    "NN": ["VBZ", "VBD", ",", "."],
    "NNS": ["VBD", "."],
    "VBZ": ["DT", "NN", "."],
    "VBD": ["DT", "JJ", "."],
    ",": ["DT", "NN"],
}
COUNTS = {"tic_tac_toe": (9, 3, 2), "car": (6, 4, 4), "vote": (16, 3, 2), "nursery": (8, 4, 5)}


def write_tagged(place: Path, n_sentences: int = 90) -> None:
    """Write sentences in the layout of the real data; their words do not always tell their tags."""
    chance, lines = random.Random(5), []
    for number in range(n_sentences):
        tag = None
        while tag != ".":
            tag = chance.choice(FOLLOWING[tag])
            word = chance.choice(WORDS[tag]) if chance.random() < 0.9 else f"{chance.choice(WORDS[tag])}{number}"
            lines.append(f"{word} {tag}")
        lines.append("")
    with gzip.open(place / "treebank_pos.txt.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def write_discrete(place: Path, n: int = 160) -> None:
    """Write tables of codes, and of numbers that are cut into bins, in which pairs of columns repeat each other."""
    rng = np.random.default_rng(4)
    for name, (n_columns, n_values, n_classes) in COUNTS.items():
        y = rng.integers(n_classes, size=n)
        X = (y[:, None] + rng.integers(n_values, size=(n, n_columns)) * (rng.random((n, n_columns)) < 0.6)) % n_values
        X[:, 1] = X[:, 0]
        X[:2] = [[0] * n_columns, [n_values - 1] * n_columns]
        np.savez(place / f"{name}.npz", X=X.astype(np.uint8), y=np.array([f"c{one}" for one in y]))
    for name, n_columns, n_classes in (("breast_cancer_wdbc", 30, 2), ("digits8x8", 64, 10)):
        y = rng.integers(n_classes, size=n)
        X = rng.normal(8.0, 4.0, size=(n_classes, n_columns))[y] + rng.normal(size=(n, n_columns))
        X = np.clip(X, 0.0, 16.0) if name == "digits8x8" else X
        np.savez(place / f"{name}.npz", X=X.astype(np.float32), y=y.astype(np.uint8))


@pytest.fixture(scope="module")
def settings(tmp_path_factory) -> Settings:
    place = tmp_path_factory.mktemp("yu")
    write_tagged(place)
    write_handwriting(place)
    write_discrete(place)
    return Settings(place, quick=True)


# Sequences


def test_tags_and_words_are_those_of_the_file(settings):
    whole = tagged_sentences(settings)
    with gzip.open(settings.folder / "treebank_pos.txt.gz", "rt", encoding="utf-8") as file:
        rows = [line.split() for line in file]
    assert [word for words in whole.X for word in words] == [row[0] for row in rows if row]
    assert [tag for tags in whole.y for tag in tags] == [coarse_tag(row[1]) for row in rows if row]
    assert {tag for tags in whole.y for tag in tags} == {"DT", "JJ", "NN", "VB", "sign"}
    assert len(whole.y) == 90


def test_no_test_sentence_is_seen_before(settings):
    whole = tagged_sentences(settings)
    for name, (n_train, n_dev) in {SENTENCES: (40, 20), MORE_SENTENCES: (60, 20)}.items():
        found = study(settings, name)
        assert whole.X[:n_train] == found.train.X
        assert whole.X[70:] == found.test.X
        apart = n_train if name == SENTENCES else n_train - n_dev
        assert whole.X[:apart] == found.fitted.X
        assert whole.X[apart : apart + n_dev] == found.dev.X


def test_symbols_of_letters_are_the_nearest_centres(settings):
    words, found = handwritten_words(settings), study(settings, LETTERS)
    inside = words.take(words.folds == 0)
    centres = KMeans(12, n_init=4, random_state=0).fit(inside.X).cluster_centers_
    for part, fold in ((found.train, 0), (found.dev, 1), (found.test, 2)):
        some = words.take(words.folds == fold)
        nearest = np.square(some.X[:, None, :] - centres).sum(axis=2).argmin(axis=1)
        assert list(itertools.chain(*part.X)) == nearest.tolist()
        assert ["".join(labels) for labels in part.y] == some.names.tolist()


def test_attributes_are_the_columns_of_the_hmm(settings):
    found = study(settings, SENTENCES)
    table = symbol_table(found.train, found.rare)
    items = attributes(found.test.X, table)
    counts = {}
    for word in itertools.chain(*found.train.X):
        counts[word] = counts.get(word, 0) + 1
    names = table.names
    for words, nodes in zip(found.test.X, items, strict=True):
        assert nodes[0][0] == "first"
        for word, node in zip(words, [nodes[0][1:], *nodes[1:]], strict=True):
            shown = [names[int(one)] for one in node]
            assert "first" not in node
            if counts.get(word, 0) >= 2:
                assert shown == [word]
            else:
                assert shown in ([], [f"<{table.class_of(word)}>"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no data set 'treebank_pos' in the folder"),
        ("a b c\n", "must have two columns"),
        ("a DT\nb\n", "cannot be read: .* line 2"),
        ("a DT\n", "has 1 sentences; this reproduction needs 80"),
    ],
)
def test_other_sentences_are_refused(tmp_path, text, message):
    if text is not None:
        with gzip.open(tmp_path / "treebank_pos.txt.gz", "wt", encoding="utf-8") as file:
            file.write(text)
    with pytest.raises(click.UsageError, match=message):  # BadParameter is one
        study(Settings(tmp_path, quick=True), SENTENCES)


def test_without_a_folder_the_message_names_the_variable(monkeypatch):
    monkeypatch.delenv("DUALFIELD_DATA", raising=False)
    with pytest.raises(click.BadParameter, match="set the environment variable DUALFIELD_DATA"):
        study(Settings(quick=True, seed=77), SENTENCES)


@pytest.mark.skipif(not os.environ.get("DUALFIELD_DATA"), reason="DUALFIELD_DATA names no folder of data sets")
def test_real_sequences():
    whole = tagged_sentences(Settings())
    assert (len(whole.y), sum(map(len, whole.y)), len({tag for tags in whole.y for tag in tags})) == (3914, 94084, 23)
    few, many = study(Settings(), SENTENCES), study(Settings(), MORE_SENTENCES)
    assert [len(part.y) for part in (few.fitted, few.dev, few.train, few.test)] == [600, 300, 600, 800]
    assert [len(part.y) for part in (many.fitted, many.dev, many.train, many.test)] == [2500, 500, 3000, 914]


# Models


def test_standard_error_is_that_of_the_jackknife():
    """The ratio's standard error against the one that leaves out one sequence at a time, which it linearises."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 40, size=400)
    wrong = rng.binomial(lengths, rng.beta(1.0, 9.0, size=400))
    share, error = share_with_error(wrong, lengths)
    assert share == pytest.approx(wrong.sum() / lengths.sum())
    left = (wrong.sum() - wrong) / (lengths.sum() - lengths)
    assert error == pytest.approx(np.sqrt(399 / 400 * np.square(left - left.mean()).sum()), rel=0.02)
    assert np.isnan(share_with_error(wrong[:1], lengths[:1])[1])


def test_wrong_labels_are_counted_sequence_by_sequence():
    part = Sequences([["a", "b"], ["c"]], [["x", "y"], ["z"]])
    assert part.wrong([["x", "x"], ["y"]]).tolist() == [1, 1]
    assert part.lengths.tolist() == [2, 1]


def test_the_counted_hmm_is_that_of_hmmlearn(settings):
    """Tables counted here, decoded there: for each smoothing the errors on the development part agree."""
    found = study(settings, LETTERS)
    states = sorted({letter for letters in found.train.y for letter in letters})
    n_symbols = 1 + max(itertools.chain(*found.train.X))
    errors = {}
    for emission in (0.003, 0.01):
        start, steps = np.full(len(states), 0.1), np.full((len(states), len(states)), 0.1)
        emit = np.full((len(states), n_symbols), emission)
        for symbols, letters in zip(found.train.X, found.train.y, strict=True):
            codes = [states.index(letter) for letter in letters]
            start[codes[0]] += 1
            np.add.at(steps, (codes[:-1], codes[1:]), 1)
            np.add.at(emit, (codes, symbols), 1)
        peer = CategoricalHMM(len(states), n_features=n_symbols)
        peer.startprob_, peer.transmat_, peer.emissionprob_ = (
            table / table.sum(axis=-1, keepdims=True) for table in (start, steps, emit)
        )
        predicted = [[states[code] for code in peer.predict(np.array([symbols]).T)] for symbols in found.dev.X]
        errors[f"add 0.1, {emission:g}"] = found.dev.wrong(predicted)
    ours = measured(settings, LETTERS, COUNTED)
    np.testing.assert_array_equal(ours.dev, errors[ours.setting])
    assert ours.dev.sum() == min(wrong.sum() for wrong in errors.values())


def test_every_model_is_compared_with_the_same_sequences(settings):
    for data in (SENTENCES, LETTERS):
        rows = {name: compute(settings, data, name) for name in models(settings, data)}
        counted, field = (measured(settings, data, name) for name in (COUNTED, FIELD))
        n_labels = study(settings, data).test.lengths.sum()
        assert set(rows) > {COUNTED, FIELD, PERCEPTRON}
        for name, row in rows.items():
            own = measured(settings, data, name)
            assert row.minus_counted[0] == pytest.approx((own.test.sum() - counted.test.sum()) / n_labels)
            assert row.minus_field[0] == pytest.approx((own.test.sum() - field.test.sum()) / n_labels)
            assert (row.gap is None) == (name in (COUNTED, PERCEPTRON))
            asked = 0.1 if name.endswith("gap 0.1") else 1e-6 if "gap 1e-06" in name else 1e-2
            assert row.gap is None or 0.0 <= row.gap <= asked
        assert rows[COUNTED].minus_counted == rows[FIELD].minus_field == (0.0, 0.0)
        assert 0 < rows[PERCEPTRON].rounds <= 20  # it stops where no mistake is left


# Networks


def test_splits_are_apart_and_bins_are_those_of_training_rows(settings):
    for name in yu_networks.DATA:
        one, other = (yu_networks.random_split(settings, name, number) for number in (0, 1))
        assert (len(one.y), len(one.y_test)) == (60, 80)
        assert not np.array_equal(one.y, other.y)
        assert (np.concatenate([one.X, one.X_test]).max(axis=0) < one.sizes).all()
        inner = one.thirds()
        np.testing.assert_array_equal(np.concatenate([inner.X, inner.X_test]), one.X)
        assert (len(inner.y), len(inner.y_test)) == (40, 20)
    split = yu_networks.random_split(settings, "breast_cancer_wdbc", 0)
    assert all(np.bincount(column, minlength=5).min() >= 10 for column in split.X.T)
    digits = yu_networks.random_split(settings, "digits8x8", 0)
    pixels = load_benchmark_data("digits8x8", settings.folder).X
    order = np.random.default_rng((0, 0)).permutation(len(pixels))[:60]
    np.testing.assert_array_equal(digits.X, np.minimum(pixels[order] // 4.0, 3.0))


def test_counted_naive_bayes_is_that_of_scikit_learn(settings):
    """But for the smoothing of the classes' frequencies, which scikit-learn leaves out."""
    method = yu_networks.COUNTED.format("naive Bayes")
    for name in ("vote", "breast_cancer_wdbc"):
        row = yu_networks.compute(settings, name, method)
        expected = []
        for number in (0, 1):
            split = yu_networks.random_split(settings, name, number)
            _, counts = np.unique(split.y, return_counts=True)
            prior = (counts + 1.0) / (counts + 1.0).sum()
            peer = CategoricalNB(min_categories=split.sizes, class_prior=prior).fit(split.X, split.y)
            expected.append(float(np.mean(peer.predict(split.X_test) != split.y_test)))
        assert row.errors == tuple(expected)
        assert row.chosen == ()


def test_splits_side_by_side_give_the_same(settings):
    method = yu_networks.TRAINED.format("TAN")
    two = Settings(settings.folder, quick=True, threads=2)
    rows = [yu_networks.compute(one, "car", method) for one in (settings, two)]
    assert rows[0].errors == rows[1].errors
    assert rows[0].chosen == rows[1].chosen
    assert set(rows[0].chosen) <= set(yu_networks.ETAS)


def test_paired_differences_are_those_of_the_statistics_module():
    one, other = (0.1, 0.25, 0.2, 0.4), (0.2, 0.2, 0.3, 0.35)
    each = [a - b for a, b in zip(one, other, strict=True)]
    mean, error = yu_networks.paired(one, other)
    assert mean == pytest.approx(statistics.fmean(each))
    assert error == pytest.approx(statistics.stdev(each) / 2.0)


# Tables


def tagger_row(model, dev, test, minus_counted=(0.0, 0.0), minus_field=(0.0, 0.0)) -> TaggerRow:
    return TaggerRow(
        SENTENCES, model, "", 3, 2, 4, dev, 0.0, (test, 0.001), minus_counted, minus_field, 5, 1e-4, 0, 1.0
    )


def test_the_summary_says_what_was_chosen_and_whether_it_is_better():
    near, far = TRAINED.format("prob", 0.003), TRAINED.format("count", 1.0)
    rows = [
        tagger_row(COUNTED, 0.08, 0.07),
        tagger_row(FIELD, 0.05, 0.05),
        tagger_row(PERCEPTRON, 0.06, 0.06),
        tagger_row(near, 0.07, 0.065, (-0.005, 0.001), (0.015, 0.01)),
        tagger_row(far, 0.075, 0.04, (-0.03, 0.001)),
    ]
    assert chosen(rows).model == near
    found = yu_tagging.POS.present(rows)
    (sentence,) = found.summary
    assert f"{near} has the lowest error" in sentence
    assert "minus the counted HMM: -0.50 ± 0.10, better by more than two standard errors" in sentence
    assert "minus the CRF: +1.50 ± 1.00, no difference beyond two standard errors" in sentence
    cells = {row[0]: row for row in found.tables[0].rows}
    assert cells[COUNTED][1:4] == ("7.29", "8.00", "7.00 ± 0.10")
    assert cells[f"{near}, chosen"][1] == "6.93"
    assert cells[far][1] is None
    assert "leaves those on HMMs" in found.differences[0]
    assert len(found.tables) == 1


def test_other_gaps_are_shown_but_not_chosen():
    base = TRAINED.format("prob", 0.003)
    rows = [
        tagger_row(COUNTED, 0.08, 0.07),
        tagger_row(FIELD, 0.05, 0.05),
        tagger_row(PERCEPTRON, 0.06, 0.06),
        tagger_row(base, 0.07, 0.065),
        dataclasses.replace(tagger_row(f"{base}, gap 0.0001", 0.01, 0.01), gap=1e-5),
    ]
    assert chosen(rows).model == base
    found = yu_tagging.POS.present(rows)
    assert found.summary[1].endswith(f"{base}: 6.50 (1e-4), 1.00 (1e-5).")
    first, second = found.tables
    assert [row[0] for row in first.rows] == [COUNTED, FIELD, PERCEPTRON, f"{base}, chosen"]
    assert [row[0] for row in second.rows] == [base, f"{base}, gap 0.0001"]
    assert len(second.header) == len(second.rows[0])


def test_gains_are_sorted_by_their_standard_errors():
    shifts = dict(
        zip(yu_networks.DATA, ((-0.1, -0.1), (0.1, 0.1), (-0.1, 0.1), (0, 0), (-0.1, 0), (0, 0)), strict=True)
    )
    rows = []
    for task in yu_networks.tasks(Settings(quick=True)):
        data, _, method = task.label.partition(", ")
        trained = method.endswith(", trained")
        errors = tuple(0.3 + (shift if trained else 0.0) for shift in shifts[data])
        more = ((0.01, 0.1), 4, 0) if trained else ((), None, None)
        rows.append(yu_networks.NetworkRow(data, method, 60, 80, errors, *more, 1.0))
    found = yu_networks.present(rows)
    lower, higher, neither = found.summary[0].partition("Lower")[2].split(": ")[1:]
    assert "naive Bayes on tic_tac_toe (-10.00); TAN on tic_tac_toe" in lower
    assert "TAN on car (+10.00)" in higher
    for name in ("vote", "nursery", "breast_cancer_wdbc"):
        assert f"naive Bayes on {name}" in neither
    gains = {row[:2]: row[2:4] for row in found.tables[1].rows}
    assert gains["vote", "TAN"] == ("+0.00 ± 10.00", "1 / 1")
    assert gains["breast_cancer_wdbc", "TAN"] == ("-5.00 ± 5.00", "1 / 0")
