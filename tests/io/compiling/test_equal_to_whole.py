"""A compiled corpus is what the whole corpus would be in memory, in the shuffled order."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield.data import Batch, CompiledCorpus, Labels
from dualfield.features import Template
from dualfield.io import compile_corpus, write_conll, write_crfsuite_items
from dualfield.models.training_data import read_training_data
from dualfield.scores import FeatureTable

PAIRS = "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB0:%x[0,1]\nB"


def sentences(n, seed=0, n_labels=5):
    """Draw sentences of rows with a word, a tag and a label; the last label occurs in the last sentence only."""
    rng = np.random.default_rng(seed)
    drawn = []
    for _ in range(n):
        words = rng.geometric(0.05, rng.integers(1, 9))
        drawn.append([(f"w{w}é", f"t{w % 7}", f"L{int(rng.integers(n_labels))}") for w in words])
    if drawn:
        drawn[-1][-1] = ("last", "t", "A-late-label")
    return drawn


def split_files(folder, rows, n_files, name="part{}.txt.gz"):
    bounds = np.linspace(0, len(rows), n_files + 1).astype(int)
    paths = []
    for at in range(n_files):
        path = folder / name.format(at)
        chosen = rows[bounds[at] : bounds[at + 1]]
        if chosen:
            write_conll(chosen, path)
        else:
            path.write_bytes(b"")
        paths.append(path)
    return paths


def order_of(corpus):
    return np.concatenate([corpus.numbers(part) for part in range(corpus.n_parts)])


def check_against_whole(corpus, rows, template):
    """Compare all arrays with those of one batch."""
    order = order_of(corpus)
    assert sorted(order) == list(range(len(rows)))
    X = [[row[:-1] for row in rows[at]] for at in order]
    y = [[row[-1] for row in rows[at]] for at in order]
    made = template.read(X)
    labels = Labels.fit(y)
    codes = labels.encode(y)
    assert corpus.labels.classes.tolist() == labels.classes.tolist()
    assert list(corpus.vocabulary) == list(made.nodes.vocabulary)
    parts = list(corpus)
    check_rows([part.nodes for part in parts], made.nodes)
    if made.pairs is None:
        assert corpus.pair_vocabulary is None
    else:
        assert list(corpus.pair_vocabulary) == list(made.pairs.vocabulary)
        check_rows([part.pairs for part in parts], made.pairs)
    np.testing.assert_array_equal(np.concatenate([part.codes for part in parts]), codes)
    for min_freq in (0, 1, 2, 3):
        expected = FeatureTable.observed(made.nodes, codes, len(labels), min_freq)
        indptr, outputs = corpus.feature_counts().at_least(min_freq)
        np.testing.assert_array_equal(indptr, expected.indptr)
        np.testing.assert_array_equal(outputs, expected.outputs)
    return X, y


def check_rows(parts, whole: Batch):
    np.testing.assert_array_equal(np.concatenate([part.lengths for part in parts]), whole.lengths)
    np.testing.assert_array_equal(np.concatenate([np.diff(part.indptr) for part in parts]), np.diff(whole.indptr))
    np.testing.assert_array_equal(np.concatenate([part.indices for part in parts]), whole.indices)


@pytest.mark.parametrize("template", [Template.default(2), Template(PAIRS)], ids=["default", "pairs"])
def test_seven_parts_equal_the_whole(tmp_path, template):
    rows = sentences(200)
    corpus = compile_corpus(split_files(tmp_path, rows, 4), tmp_path / "out", parts=7, template=template)
    X, y = check_against_whole(corpus, rows, template)
    check_features(corpus, X, y, template)


def check_features(corpus, X, y, template):
    """The features of a CRF can be chosen by the counts alone."""
    from dualfield import CRF

    for min_freq in (0, 2):
        data = read_training_data(CRF(template=template, min_freq=min_freq), X, y, None, None, hinge=False)
        counts = corpus.feature_counts()
        np.testing.assert_array_equal(counts.at_least(min_freq)[0], data.score_map.node.indptr)
        np.testing.assert_array_equal(counts.at_least(min_freq)[1], data.score_map.node.outputs)
        if data.score_map.pair is not None:
            found = corpus.pair_counts().at_least(min_freq)
            np.testing.assert_array_equal(found[0], data.score_map.pair.indptr)
            np.testing.assert_array_equal(found[1], data.score_map.pair.outputs)
        np.testing.assert_array_equal(corpus.transitions()[0], np.flatnonzero(data.score_map.clique_mask))


@pytest.mark.parametrize(("n", "n_files", "parts"), [(1, 1, 1), (3, 5, 20), (60, 1, 1), (60, 3, 8)])
def test_empty_files_and_more_parts_than_sentences(tmp_path, n, n_files, parts):
    rows = sentences(n)
    corpus = compile_corpus(split_files(tmp_path, rows, n_files), tmp_path / "out", parts=parts)
    assert corpus.n_parts == parts
    check_against_whole(corpus, rows, Template.default(2))


def test_blocks_are_the_parts(tmp_path):
    rows = sentences(900)
    corpus = compile_corpus(split_files(tmp_path, rows, 2), tmp_path / "out", parts=3, template=Template(PAIRS))
    assert corpus.n_blocks > 300
    sizes = corpus.block_sizes()
    assert sizes[:, :3].sum(axis=0).tolist() == [corpus.n_examples, corpus.n_nodes, corpus.n_entries]
    for part in range(corpus.n_parts):
        whole, blocks = corpus.part(part), [corpus.block(b) for b in corpus.blocks_of(part)]
        check_rows([block.nodes for block in blocks], whole.nodes)
        check_rows([block.pairs for block in blocks], whole.pairs)
        np.testing.assert_array_equal(np.concatenate([block.codes for block in blocks]), whole.codes)
        assert {corpus.part_of(b) for b in corpus.blocks_of(part)} == {part}


def test_ranges_are_the_bytes_of_a_block(tmp_path):
    rows = sentences(50)
    corpus = compile_corpus(split_files(tmp_path, rows, 2), tmp_path / "out", parts=3, template=Template(PAIRS))
    for number in range(corpus.n_blocks):
        block, ranges = corpus.block(number), corpus.ranges(number)

        def read(one, dtype, path=ranges.path):
            with path.open("rb") as file:
                file.seek(one.start)
                return np.frombuffer(file.read(one.nbytes), dtype)

        offsets, indptr = read(ranges.offsets, np.int64), read(ranges.indptr, np.int64)
        np.testing.assert_array_equal(offsets - offsets[0], block.nodes.offsets)
        np.testing.assert_array_equal(indptr - indptr[0], block.nodes.indptr)
        np.testing.assert_array_equal(read(ranges.codes, np.int32), block.codes)
        np.testing.assert_array_equal(read(ranges.indices, np.int32), block.nodes.indices)
        np.testing.assert_array_equal(read(ranges.pair_indices, np.int32), block.pairs.indices)
        assert ranges.values is None
        assert corpus.block_nbytes(number) == sum(one.nbytes for one in list(ranges)[1:] if one is not None)


def test_items_with_weights(tmp_path):
    rng = np.random.default_rng(3)
    X = [
        [{f"a{int(k)}": float(rng.integers(1, 3)) for k in rng.integers(0, 30, 3)} for _ in range(4)] for _ in range(40)
    ]
    y = [[f"L{int(k)}" for k in rng.integers(0, 3, 4)] for _ in range(40)]
    write_crfsuite_items(X, y, tmp_path / "items.txt")
    corpus = compile_corpus(tmp_path / "items.txt", tmp_path / "out", parts=3, form="crfsuite")
    from_python = compile_corpus([(X, y)], tmp_path / "python", parts=2)
    for one in (corpus, from_python):
        assert one.is_weighted
        order = order_of(one)
        whole = Batch.build([X[at] for at in order])
        assert list(one.vocabulary) == list(whole.vocabulary)
        check_rows([part.nodes for part in one], whole)
        np.testing.assert_array_equal(np.concatenate([part.nodes.values for part in one]), whole.values)
        codes = Labels.fit(y).encode([y[at] for at in order])
        np.testing.assert_array_equal(np.concatenate([part.codes for part in one]), codes)


def test_seed_changes_the_order_and_nothing_else_does(tmp_path):
    rows = sentences(80)
    path = split_files(tmp_path, rows, 1, "all{}.txt.gz")[0]
    orders = [
        order_of(compile_corpus(path, tmp_path / f"out{seed}-{parts}", parts=parts, seed=seed)).tolist()
        for seed, parts in [(0, 4), (0, 9), (1, 4)]
    ]
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0])


def test_it_can_be_sent_to_other_processes(tmp_path):
    import pickle

    corpus = compile_corpus(split_files(tmp_path, sentences(10), 1), tmp_path / "out", parts=2)
    again = pickle.loads(pickle.dumps(corpus))
    assert isinstance(again, CompiledCorpus)
    assert repr(again) == repr(corpus)
