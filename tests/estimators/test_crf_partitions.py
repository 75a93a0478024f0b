"""CRFs from partitions in this process: every form of them, against fits to the whole, and what is refused."""

from __future__ import annotations

import gzip
import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from dualfield import CRF, StructuredSVM, load
from dualfield.data import Batch, CompiledCorpus, Partition
from dualfield.estimators import Checkpoint
from dualfield.features import Template
from dualfield.io import compile_corpus
from dualfield.persistence import checkpoint
from dualfield.solvers import LBFGS

CUTS = [0, 0, 9, 25, 26, 40]  # an empty partition, and one of a single sentence
TEMPLATE = "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\nB"
PAIRS = TEMPLATE + "0:%x[0,1]"


def rows(n: int = 40) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Sentences of words with tags; the label 'rare' is in the last one only."""
    rng = np.random.default_rng(0)
    X, y = [], []
    for _ in range(n):
        tags = rng.integers(0, 3, size=int(rng.integers(1, 9)))
        X.append([[f"w{int(tag) * 5 + int(rng.integers(0, 8))}", f"t{tag}"] for tag in tags])
        y.append([f"L{(int(tag) + int(rng.integers(0, 5) == 0)) % 3}" for tag in tags])
    y[-1][-1] = "rare"
    return X, y


def items(X: Any) -> Any:
    return [[[f"a={word}", f"b={tag}"] for word, tag in sentence] for sentence in X]


def cut(X: Any, y: Any) -> list[tuple[Any, Any]]:
    return [(X[a:b], y[a:b]) for a, b in itertools.pairwise(CUTS)]


def write_columns(folder: Path, compress: bool = True) -> list[Path]:
    paths = []
    for at, (X, y) in enumerate(cut(*rows())):
        pairs = [zip(sentence, labels, strict=True) for sentence, labels in zip(X, y, strict=True)]
        text = "".join("".join(f"{w}\t{t}\t{label}\n" for (w, t), label in pair) + "\n" for pair in pairs)
        path = folder / f"part{at}.txt{'.gz' if compress else ''}"
        path.write_bytes(gzip.compress(text.encode()) if compress else text.encode())
        paths.append(path)
    return paths


def write_items(folder: Path) -> list[Path]:
    paths = []
    for at, (X, y) in enumerate(cut(*rows())):
        text = ""
        for sentence, labels in zip(items(X), y, strict=True):
            text += (
                "".join("\t".join([label, *item]) + "\n" for item, label in zip(sentence, labels, strict=True)) + "\n"
            )
        paths.append(folder / f"part{at}.crfsuite")
        paths[-1].write_text(text)
    return paths


def test_it_is_the_model_of_the_whole() -> None:
    X, y = rows()
    parts = [Partition.build(*one) for one in cut(items(X), y)]
    model = CRF(C=5.0, tol=1e-7, start_stop=True).fit(parts)
    whole = CRF(C=5.0, tol=1e-7, start_stop=True).fit(items(X), y)
    assert list(model.vocabulary_) == list(whole.vocabulary_)
    assert model.classes_.tolist() == whole.classes_.tolist()
    for name in ("indptr", "outputs"):
        np.testing.assert_array_equal(getattr(model.score_map_.node, name), getattr(whole.score_map_.node, name))
    np.testing.assert_array_equal(model.score_map_.clique_mask, whole.score_map_.clique_mask)
    assert abs(model.objective_ - whole.objective_) <= model.dual_gap_ + whole.dual_gap_
    assert model.predict(items(X)) == whole.predict(items(X))
    assert (model.n_partitions_, model.solver_) == (5, "lbfgs")
    assert model.n_rounds_ >= model.trace_.passes[-1]
    assert model.bytes_moved_ > 0


def test_every_form_gives_the_same_bits(tmp_path: Path) -> None:
    dask = pytest.importorskip("dask")
    bag = pytest.importorskip("dask.bag")
    X, y = rows()
    parts = cut(items(X), y)
    expected = CRF(C=5.0).fit([Partition.build(*one) for one in parts]).parameters_
    delayed = [dask.delayed(one) for one in parts]
    batches = [dask.delayed((Batch.build(one), labels)) for one, labels in parts if one]
    pairs = [[dask.delayed(list)(zip(one, labels, strict=True)) for one, labels in parts]]
    forms = [delayed, batches, bag.from_delayed(pairs[0]), write_items(tmp_path), f"{tmp_path}/*.crfsuite"]
    for form in forms:
        model = CRF(C=5.0).fit(form)
        assert model.parameters_.tobytes() == expected.tobytes()


@pytest.mark.parametrize("template", [TEMPLATE, PAIRS, "default", TEMPLATE.removesuffix("B")])
def test_columns_with_a_template(tmp_path: Path, template: str) -> None:
    X, y = rows()
    model = CRF(C=5.0, tol=1e-6, template=template).fit(write_columns(tmp_path))
    whole = CRF(C=5.0, tol=1e-6, template=template).fit(X, y)
    assert list(model.vocabulary_) == list(whole.vocabulary_)
    assert model.n_features_ == whole.n_features_
    assert abs(model.objective_ - whole.objective_) <= model.dual_gap_ + whole.dual_gap_
    assert model.predict(X) == whole.predict(X)
    assert model.file_columns_.label == 2
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.predict(X) == model.predict(X)
    assert (again.n_partitions_, again.n_rounds_, again.bytes_moved_) == (5, model.n_rounds_, model.bytes_moved_)


def test_a_compiled_corpus(tmp_path: Path) -> None:
    X, y = rows()
    compile_corpus(write_columns(tmp_path), tmp_path / "corpus", parts=7, template=PAIRS)
    model = CRF(C=5.0, tol=1e-6, solver="lbfgs").fit(CompiledCorpus(tmp_path / "corpus"))
    whole = CRF(C=5.0, tol=1e-6, template=PAIRS).fit(X, y)
    assert model.n_partitions_ == 7
    assert model.n_features_ == whole.n_features_
    assert abs(model.objective_ - whole.objective_) <= model.dual_gap_ + whole.dual_gap_
    assert model.predict(X) == whole.predict(X)


@pytest.mark.parametrize("solver", ["lbfgs", "block_dual"])
def test_a_compiled_corpus_takes_its_own_template_alone(tmp_path: Path, solver: str) -> None:
    files = write_columns(tmp_path)
    corpus = compile_corpus(files, tmp_path / "corpus", parts=2)
    plain = CRF(tol=1e-2, solver=solver, random_state=0).fit(corpus).parameters_.tobytes()
    for template in ("default", Template(*corpus.template)):
        same = CRF(tol=1e-2, solver=solver, random_state=0, template=template).fit(corpus)
        assert same.parameters_.tobytes() == plain
    other = compile_corpus(files, tmp_path / "other", parts=2, template=PAIRS)
    for template, found in ((PAIRS, corpus), ("default", other)):
        with pytest.raises(
            ValueError, match=r"'template' parameter must be None, or .* compiled with another template"
        ):
            CRF(solver=solver, template=template).fit(found)


@pytest.mark.parametrize(
    "settings",
    [
        {"min_freq": 3},
        {"features": "all"},
        {"class_weight": "balanced"},
        {"class_weight": {"L0": 2.0}},
        {"cost": "hamming"},
        {"temperature": 0.5},
        {"l1_ratio": 0.4},
        {"solver": LBFGS(memory=10, begin="average")},
    ],
    ids=repr,
)
def test_settings_count_over_all_partitions(settings: dict[str, Any]) -> None:
    X, y = rows()
    model = CRF(C=5.0, tol=1e-5).set_params(**settings).fit([Partition.build(*one) for one in cut(items(X), y)])
    settings = {name: value for name, value in settings.items() if name != "solver"}
    whole = CRF(C=5.0, tol=1e-5).set_params(**settings).fit(items(X), y)
    assert model.n_features_ == whole.n_features_
    assert abs(model.objective_ - whole.objective_) <= model.dual_gap_ + whole.dual_gap_


def test_more_partitions_than_sentences_and_one_for_all() -> None:
    X, y = rows(3)
    many = CRF(C=5.0).fit([Partition.build(items(X)[at : at + 1], y[at : at + 1]) for at in range(6)])
    one = CRF(C=5.0).fit([Partition.build(items(X), y)])
    assert (many.n_partitions_, one.n_partitions_) == (6, 1)
    assert abs(many.objective_ - one.objective_) <= many.dual_gap_ + one.dual_gap_


def test_a_fit_goes_on_from_a_checkpoint_to_the_same_bits(tmp_path: Path) -> None:
    X, y = rows()
    parts = [Partition.build(*one) for one in cut(items(X), y)]
    undisturbed = CRF(C=50.0, tol=1e-6).fit(parts)
    kept = Checkpoint(tmp_path / "fit.checkpoint", every=0.0)
    CRF(C=50.0, tol=1e-6).fit(parts, checkpoint=kept, monitor=lambda moment, model: moment.passes > 12)
    again = CRF(C=50.0, tol=1e-6).fit(parts, checkpoint=kept)
    assert again.parameters_.tobytes() == undisturbed.parameters_.tobytes()
    assert len(again.trace_) == len(undisturbed.trace_)
    CRF(C=50.0, tol=1e-6).fit(parts, checkpoint=kept, monitor=lambda moment, model: moment.passes > 12)
    with pytest.raises(ValueError, match="belongs to another fit: the partitions was"):
        CRF(C=50.0, tol=1e-6).fit(parts[::-1], checkpoint=kept)


def test_a_fit_with_vectors_on_disk_goes_on_to_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = rows()
    parts = [Partition.build(*one) for one in cut(items(X), y)]
    undisturbed = CRF(C=50.0, tol=1e-4).fit(parts)
    kept = Checkpoint(tmp_path / "fit.checkpoint", every=0.0)
    monkeypatch.setattr(checkpoint, "_LARGE", 1000)
    small = CRF(C=50.0, tol=1e-4, solver=LBFGS(in_memory=0.0))
    clone(small).fit(parts, checkpoint=kept, monitor=lambda moment, model: moment.passes > 12)
    # The bytes in memory are no part of the problem.
    for solver in (LBFGS(in_memory=1.0), LBFGS(in_memory=1e9)):
        shutil.copy(kept.path, tmp_path / "copy")
        again = clone(small).set_params(solver=solver).fit(parts, checkpoint=tmp_path / "copy")
        assert again.parameters_.tobytes() == undisturbed.parameters_.tobytes()
        assert again.dual_gap_ == undisturbed.dual_gap_


def test_labels_that_constraints_forbid_are_named_with_their_partition() -> None:
    good = Partition.build([[["a"], ["b"]]], [["B-x", "I-x"]])
    bad = Partition.build([[["a"]], [["a"], ["b"]]], [["O"], ["O", "I-x"]])
    with pytest.raises(ValueError, match=r"partition 1: The labels of example 1 are not allowed: y\[1\]\[1\] is 'I-x'"):
        CRF(constraints="BIO").fit([good, bad])


def test_a_damaged_file_is_named_with_its_line(tmp_path: Path) -> None:
    paths = write_columns(tmp_path, compress=False)
    lines = paths[2].read_text().split("\n")
    full = next(at for at in range(5, 60) if lines[at])
    lines[full] = "only-one-column"
    paths[2].write_text("\n".join(lines))
    with pytest.raises(ValueError, match=rf"part2\.txt, line {full + 1}: "):
        CRF(template=TEMPLATE).fit(paths)


def test_files_that_cannot_be_meant(tmp_path: Path) -> None:
    paths = write_columns(tmp_path)
    compile_corpus(paths, tmp_path / "corpus", parts=2)
    with pytest.raises(ValueError, match=r"corpus: is a compiled corpus, which is opened by CompiledCorpus\("):
        CRF().fit(tmp_path / "corpus")
    with pytest.raises(ValueError, match=r"is a folder; expected files, such as '.*/\*'"):
        CRF().fit([tmp_path])
    spaces = tmp_path / "spaces.txt"
    spaces.write_text("he PRP L0\nran VBD L1\n")
    with pytest.raises(ValueError, match=r"spaces\.txt.*have no attributes.*CRF\(template='default'\)"):
        CRF().fit(spaces)


def test_values_that_are_no_partitions_are_named() -> None:
    dask, bag = pytest.importorskip("dask"), pytest.importorskip("dask.bag")
    good = dask.delayed(([[["a"]]], [["x"]]))
    with pytest.raises(TypeError, match=r"^partition 1: A partition must be a pair \(X, y\) or a Partition\. Got int"):
        CRF().fit([good, dask.delayed(3)])
    with pytest.raises(ValueError, match=r"^partition 1: .*1 labels"):
        CRF().fit([good, dask.delayed(([[["a"], ["b"]]], [["x"]]))])
    with pytest.raises(TypeError, match=r"partition 0: element 0 of the bag must be a pair \(items, labels\).*Got str"):
        CRF().fit(bag.from_sequence(["he PRP L0\n"]))


def test_labels_beside_those_of_partitions_are_refused(tmp_path: Path) -> None:
    X, y = rows()
    paths = write_columns(tmp_path)
    corpus = compile_corpus(paths, tmp_path / "corpus", parts=2)
    message = r"y must be None where X are partitions, such as files: their labels are in them\. Got list, and "
    for parts in (paths, [str(path) for path in paths], str(tmp_path / "*"), [Partition.build(items(X), y)]):
        with pytest.raises(TypeError, match=message):
            CRF(template=TEMPLATE).fit(parts, y)
    with pytest.raises(TypeError, match=message):
        CRF(solver="lbfgs").fit(corpus, y)
    with pytest.raises(TypeError, match="Got str instead: is a level of lists missing"):
        CRF().fit(["a sentence", "and another"], y)


@pytest.mark.parametrize("kind", [CRF, StructuredSVM])
def test_pairs_are_no_partitions(kind: type[Any]) -> None:
    X, y = rows()
    with pytest.raises(TypeError, match=r"if they are pairs \(X, y\), pass one X and one y, or make .*Partition"):
        kind().fit([(items(X), y), (items(X), y)])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"solver": "block_dual"}, "train out of core on one machine"),
        ({"solver": "sgd"}, "Its examples are in partitions"),
        ({"structure": "single"}, "must be a chain of order 1 for partitions"),
        ({"pair_features": True}, "'pair_features' parameter of CRF must be False for partitions"),
        ({"C": "evidence"}, "'C' parameter of CRF must be a number for partitions"),
        ({"kernel": "rbf"}, "'kernel' parameter of CRF must be None for partitions"),
    ],
)
def test_what_partitions_cannot_have(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CRF(**settings).fit([Partition.build([[["a"]]], [["x"]])])


def test_arguments_that_do_not_go_together() -> None:
    X, y = rows()
    parts = [Partition.build(items(X), y)]
    with pytest.raises(ValueError, match=r"'sample_weight' argument of CRF\.fit must be None for partitions"):
        CRF().fit(parts, sample_weight=np.ones(40))
    with pytest.raises(ValueError, match=r"'client' argument of CRF\.fit is for partitions"):
        CRF().fit(items(X), y, client="tcp://127.0.0.1:1")
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        CRF().fit("no-such-folder/*.gz")
    with pytest.raises(TypeError, match=r"X\[1\] must be the path of a file, as X\[0\] is\. Got int instead"):
        CRF().fit(["a.gz", 3])
    with pytest.raises(TypeError, match=r"X\[1\] must be a Partition, delayed value or future, as X\[0\] is\. Got str"):
        CRF().fit([*parts, "a.gz"])
    with pytest.raises(ValueError, match="StructuredSVM takes other partitions only with kernel and kernel_approx"):
        StructuredSVM().fit(parts)
    with pytest.raises(ValueError, match="at least one labelled token"):
        CRF().fit([Partition.build([], [])])
    model = CRF().fit(parts)
    assert not hasattr(model.fit(items(X), y), "n_partitions_")
