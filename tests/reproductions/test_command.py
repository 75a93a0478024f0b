"""``python -m reproductions`` as a user meets it, on synthetic data in the layout of the real one."""

import itertools
import json
import os
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy.sparse import csr_array

from dualfield.datasets import load_benchmark_data
from reproductions import PAPERS
from reproductions.__main__ import reproduce
from reproductions.keerthi_data import binary_problem
from reproductions.keerthi_scaling import training_rows
from reproductions.memisevic_data import multiclass_problem
from reproductions.records import Settings
from tests.reproductions.test_bayesian import write_chunks
from tests.reproductions.test_dependency import write_trees
from tests.reproductions.test_parsing import write_trees as write_bracketed
from tests.reproductions.test_perezcruz import write_handwriting
from tests.reproductions.test_segments import write_names
from tests.reproductions.test_yu import write_discrete, write_tagged

# Part of each paper -> figures that it draws.
KEERTHI_FIGURES = {
    "table2": {"table2-banana", "table2-splice", "table2-waveform", "table2-image"},
    "table3": set(),
    "table4": set(),
    "adult": {"adult-linear", "adult-gaussian"},
}
MEMISEVIC_FIGURES = {
    "figure1": {f"figure1-{kind}-{ratio}" for kind in ("seconds", "passes", "error") for ratio in ("0.01", "0.1", "1")},
    "table2": {f"table2-{data}" for data in ("wine", "glass", "vehicle", "segment")},
    "letter": set(),
}
PEREZCRUZ_FIGURES = dict.fromkeys(("tables", "words", "disjoint", "setup", "losses", "pairs"), frozenset())
YU_FIGURES = dict.fromkeys(("pos", "ocr", "networks"), frozenset())
FIGURES = {
    "keerthi2005": KEERTHI_FIGURES,
    "memisevic2006": MEMISEVIC_FIGURES,
    "perezcruz2007": PEREZCRUZ_FIGURES,
    "yu-hmm": YU_FIGURES,
    "segments": dict.fromkeys(("names", "lengths"), frozenset()),
    "bayesian-crf": {
        "losses": {"reliability_text_1", "reliability_text_10"},
        "words": {"reliability_words_1", "reliability_words_10"},
        "labelling": {"labelling"},
        "intervals": frozenset(),
    },
    "parsing": dict.fromkeys(("up-to-15", "up-to-40"), frozenset()),
    "dependency": {"treebank": frozenset()},
}
COMPARES_SOLVERS = ("keerthi2005", "memisevic2006")


def blobs(rng: np.random.Generator, labels: np.ndarray, n_features: int, n: int = 160) -> tuple[np.ndarray, np.ndarray]:
    """Return overlapping clouds, one per label."""
    y = labels[np.arange(n) % len(labels)]
    centres = {label: rng.normal(scale=2.0, size=n_features) for label in labels}
    return np.array([centres[label] for label in y]) + rng.normal(size=(n, n_features)), y


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write every data set in the layout of the real one, but small."""
    place, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)

    def save(name, labels, n_features, kind, *, split=False, **more):
        X, y = blobs(rng, np.array(labels), n_features)
        order = rng.permutation(len(y)).astype(np.int32)
        halves = {"train_idx": order[:80], "test_idx": order[80:]} if split else {}
        X = (X - X.min()) * 10.0 if np.issubdtype(kind, np.integer) else X
        np.savez(place / f"{name}.npz", X=X.astype(kind), y=y, **halves, **more)

    save("banana", np.array([-1, 1], np.int8), 2, np.float32, split=True)
    save("splice_binary", np.array([-1, 1], np.int8), 6, np.uint8, split=True)
    save("waveform", np.array([0, 1, 2], np.uint8), 5, np.float32)
    names = ["brickface", "cement", "foliage", "grass", "path", "sky", "window"]
    save("segment", names, 6, np.float32, split=True, feature_names=np.array(list("abcdef")))
    save("usps", np.arange(10, dtype=np.uint8), 9, np.float32, split=True)
    save("wine", np.arange(3, dtype=np.uint8), 4, np.float32)
    save("glass", np.array([1, 2, 3, 5, 6, 7], np.uint8), 4, np.float32)
    save("vehicle", ["bus", "opel", "saab", "van"], 5, np.int16)
    save("letter", list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), 6, np.uint8, split=True)
    X = csr_array((rng.random((300, 12)) < 0.3).astype(np.uint8))
    y = np.where(np.asarray(X[:, [0]].todense()).ravel() + rng.random(300) > 0.8, 1, -1).astype(np.int8)
    rows = np.arange(0, 300, 2, dtype=np.int32)
    subsets = {f"idx_a{k}a": rows[: 15 * k + 30] for k in (1, 2, 3, 4, 8)}
    parts = {"data": X.data, "indices": X.indices.astype(np.uint8), "indptr": X.indptr, "shape": np.array(X.shape)}
    np.savez(place / "adult.npz", y=y, **parts, **subsets)
    write_handwriting(place, pixel_copies=8)  # as many pixels as the real ones have
    write_tagged(place)
    write_discrete(place)
    write_names(place)
    write_chunks(place)
    write_trees(place)
    write_bracketed(place)
    return place


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(reproduce, [*map(str, arguments)])


@pytest.fixture(scope="module", params=list(PAPERS))
def quick_run(request, folder, tmp_path_factory):
    output = tmp_path_factory.mktemp("out") / "report"
    result = invoke(request.param, "--quick", "--data", folder, "--output", output)
    assert result.exit_code == 0, result.output
    return request.param, result.output, output


# The command


def test_all_files_are_there(quick_run):
    paper, _, output = quick_run
    figures = {f"{name}.svg" for names in FIGURES[paper].values() for name in names}
    assert {path.name for path in output.iterdir()} == {"results.json", "tables.md", "report.html", *figures}


def test_the_terminal_hears_every_task_the_outcome_and_the_place(quick_run):
    paper, text, output = quick_run
    settings = Settings(quick=True)
    for part in PAPERS[paper].parts:
        for task in part.tasks(settings):
            assert f"{part.name}: {task.label} ...\n" in text
        assert f"\n{part.title}\n" in text
    assert text.endswith(f"Tables, figures and report: {output}\n")
    assert "\x1b" not in text


def test_results_hold_every_row_and_say_how_they_were_made(quick_run):
    paper, _, output = quick_run
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    assert results["paper"] == paper
    assert results["quick"] is True
    assert results["environment"]["threads"] == 1
    assert list(results["parts"]) == list(FIGURES[paper])
    for part in PAPERS[paper].parts:
        assert len(results["parts"][part.name]["rows"]) == len(part.tasks(Settings(quick=True)))
        assert results["parts"][part.name]["tables"]
        assert results["parts"][part.name]["differences"]


def test_every_fit_reached_the_gap(quick_run):
    """The small problems of a quick run are easy: SMO, online and default solver all prove a gap of 1e-6 there."""
    paper, _, output = quick_run
    if paper not in COMPARES_SOLVERS:
        pytest.skip("compares models, not solvers")
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))

    def fits(value):
        if isinstance(value, dict):
            if "kernel_passes" in value:
                yield value
            for one in value.values():
                yield from fits(one)
        elif isinstance(value, list):
            for one in value:
                yield from fits(one)

    found = [fit for fit in fits(results["parts"]) if fit["asked"] != "lbfgs"]
    assert len(found) >= (36 if paper == "keerthi2005" else 26)
    assert [fit for fit in found if not (fit["reached"] and 0.0 <= fit["gap"] <= 1.000001e-6)] == []


def test_solvers_agree_on_the_optimum(quick_run):
    paper, _, output = quick_run
    if paper not in COMPARES_SOLVERS:
        pytest.skip("compares models, not solvers")
    rows = json.loads((output / "results.json").read_text(encoding="utf-8"))["parts"]["table2"]["rows"]
    for row in rows:
        assert row["smo"]["objective"] == pytest.approx(row["default"]["objective"], rel=3e-6)
        if paper == "memisevic2006":
            assert row["gradients_objective"] >= row["smo"]["objective"] * (1.0 - 2e-6)
            assert row["smo_seconds"] is not None


def test_the_page_is_self_contained_and_shows_every_table_and_figure(quick_run):
    paper, _, output = quick_run
    document = (output / "report.html").read_text(encoding="utf-8")
    results = json.loads((output / "results.json").read_text(encoding="utf-8"))
    assert document.startswith("<!DOCTYPE html>")
    assert document.endswith("</html>\n")
    assert not re.search(r"https?:|@import|url\(|<script|<link|<iframe|<img|\bon\w+=", document)
    n_figures = sum(map(len, FIGURES[paper].values()))
    assert document.count("<svg") == document.count("<figcaption>") == n_figures
    assert document.count("<table") == sum(len(part["tables"]) for part in results["parts"].values())
    assert "This was a quick run" in document


def test_pictures_are_well_formed_and_linked(quick_run):
    _, _, output = quick_run
    markdown = (output / "tables.md").read_text(encoding="utf-8")
    linked = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", markdown)
    assert set(linked) == {path.name for path in output.glob("*.svg")}
    for path in output.glob("*.svg"):
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert len(root.findall("{http://www.w3.org/2000/svg}path")) > 4


def test_tables_are_whole_and_quote_the_paper(quick_run):
    paper, _, output = quick_run
    lines = (output / "tables.md").read_text(encoding="utf-8").splitlines()
    for before, after in itertools.pairwise(lines):
        if before.startswith("|") and after.startswith("|"):
            assert before.count("|") == after.count("|")
    text = "\n".join(lines)
    for quoted in {
        "keerthi2005": ("| 0 | 0.5 | 255 | 510 |", "| 1328.44 |", "| 0.0502 |", "| linear | SMO | 2.2 |", "Table 4"),
        "memisevic2006": ("| 1 | 4.02 | 0.58 |", "| segment | 3.95 % |", "a little over 2 days", "4.7 %", "Table 2"),
        "perezcruz2007": ("| Graph1 | 0.271 ± 0.0009 |", "0.128 ± 0.0019", "| 0.025 ± 0.0003 |", "Table 1.3"),
        "yu-hmm": ("| 7.29 |", "| 6.93 |", "| 33.8 |", "no experiments", "Trained minus counted"),
        "dependency": ("| the word before | ", "minus the perceptron", "punctuation mark", "no labelled score"),
        "parsing": (
            "| discriminative PCFG | words and tags |",
            "minus the perceptron with tags",
            "no figure is compared",
        ),
        "bayesian-crf": ("| bagging, 10 models | ", "C is chosen by evidence", "| entropy per token | ", "other data"),
        "segments": ("| chain, BIO | ", "minus the chain", "at most 16 tokens", "boundaries found"),
    }[paper]:
        assert quoted in text


def test_only_some_parts(folder, tmp_path):
    arguments = ("keerthi2005", "--quick", "--data", folder, "--output", tmp_path / "o")
    result = invoke(*arguments, "--only", "adult", "--only", "table3")
    assert result.exit_code == 0, result.output
    results = json.loads((tmp_path / "o" / "results.json").read_text(encoding="utf-8"))
    assert list(results["parts"]) == ["table3", "adult"]


def test_the_default_folder_and_the_environment(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUALFIELD_DATA", str(folder))
    result = invoke("memisevic2006", "--quick", "--only", "letter")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "reproduction-memisevic2006" / "report.html").is_file()


def test_the_seed_decides(folder, tmp_path):
    def rows(number, seed):
        place = tmp_path / str(number)
        result = invoke("keerthi2005", "--quick", "--only", "table3", "--output", place, "--seed", seed)
        assert result.exit_code == 0, result.output
        return json.loads((place / "results.json").read_text(encoding="utf-8"))["parts"]["table3"]["rows"]

    first, again, other = rows(0, 1), rows(1, 1), rows(2, 2)
    assert first[0] == again[0]
    assert [row["error"] for row in first] == [row["error"] for row in again]
    assert first[0] != other[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("platt1998",), "'platt1998' is not one of 'keerthi2005', 'memisevic2006'"),
        (("keerthi2005", "--only", "figure1"), "'figure1' is not a part of keerthi2005. It has table2, table3, table4"),
        (("keerthi2005", "--threads", 0), "0 is not in the range"),
        (("keerthi2005", "--seed", -1), "-1 is not in the range"),
        (("keerthi2005", "--data", "no-such-folder"), "'no-such-folder', does not exist"),
        ((), "Missing argument"),
    ],
)
def test_bad_arguments_are_usage_errors(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []


def test_without_data_the_message_names_the_variable(tmp_path, monkeypatch):
    monkeypatch.delenv("DUALFIELD_DATA", raising=False)
    result = invoke("memisevic2006", "--output", tmp_path / "o")
    assert result.exit_code == 2
    assert "set the environment variable DUALFIELD_DATA" in " ".join(result.output.split())
    assert not (tmp_path / "o").exists()


def test_a_missing_or_broken_data_set_is_named_before_the_work_begins(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    result = invoke("keerthi2005", "--data", data, "--only", "adult", "--output", tmp_path / "o")
    assert result.exit_code == 2
    assert "no data set 'adult'" in " ".join(result.output.split())
    (data / "adult.npz").write_text("broken")
    result = invoke("keerthi2005", "--data", data, "--only", "adult", "--output", tmp_path / "o")
    assert result.exit_code == 2
    assert "is not an .npz file" in " ".join(result.output.split())
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("paper", "part", "message"),
    [
        ("keerthi2005", "table4", "'segment' has 160 rows; this reproduction needs 2310"),
        ("keerthi2005", "adult", "'adult' has 45 rows for training; 1605 are needed"),
        ("memisevic2006", "letter", "'letter' has 160 rows; this reproduction needs 20000"),
    ],
)
def test_a_data_set_that_is_too_small_for_the_whole_paper(folder, tmp_path, monkeypatch, paper, part, message):
    # The first problem that is large enough in the small data would be computed in full.
    monkeypatch.setattr("reproductions.keerthi_accuracy._PAPER_4", {"image": {}})
    result = invoke(paper, "--data", folder, "--only", part, "--output", tmp_path / "o")
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_a_data_set_without_its_split(tmp_path):
    X, y = blobs(np.random.default_rng(0), np.array(["a", "b"]), 3)
    np.savez(tmp_path / "segment.npz", X=X, y=y)
    with pytest.raises(Exception, match="'segment' must hold train_idx and test_idx"):
        multiclass_problem(Settings(tmp_path, quick=True), "segment")


def test_a_bad_output_folder(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DUALFIELD_DATA", str(folder))
    common = ("memisevic2006", "--quick", "--only", "letter", "--output")
    for output, message in (
        (tmp_path / "file", "is not a folder"),
        (tmp_path / "no" / "such", "cannot be made: No such file or directory"),
    ):
        result = invoke(*common, output)
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())
    monkeypatch.setattr(os, "access", lambda *_: False)
    result = invoke(*common, tmp_path / "o")
    assert result.exit_code == 2
    assert "is not writable" in " ".join(result.output.split())


def test_a_full_disk_is_reported(folder, tmp_path, monkeypatch):
    def fail(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    result = invoke("memisevic2006", "--quick", "--data", folder, "--only", "letter", "--output", tmp_path / "o")
    assert result.exit_code == 1
    assert "No space left on device" in result.output


def test_help_names_papers_and_parts():
    text = " ".join(invoke("--help").output.split())
    for word in (
        "keerthi2005",
        "memisevic2006",
        "perezcruz2007",
        "yu-hmm",
        "networks",
        "disjoint",
        "table3",
        "figure1",
        "letter",
        "--quick",
        "DUALFIELD_DATA",
    ):
        assert word in text


# The data


def test_problems_are_scaled_and_divided(folder):
    settings = Settings(folder, quick=True)
    for name in ("banana", "splice", "waveform", "image"):
        problem = binary_problem(settings, name)
        assert set(problem.y) == set(problem.y_test) == {-1, 1}
        assert (len(problem.y), len(problem.y_test)) == (60, 80)
        np.testing.assert_allclose(problem.X.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(problem.X.std(axis=0), 1.0)
        both = np.concatenate([problem.X, problem.X_test])
        assert len(np.unique(both, axis=0)) >= 135  # codes of letters may agree by chance
    assert np.mean(binary_problem(settings, "waveform").y == 1) == pytest.approx(1 / 3, abs=0.02)
    assert np.mean(binary_problem(settings, "image").y == 1) == pytest.approx(3 / 7, abs=0.02)
    for name, n_classes in (("wine", 3), ("glass", 6), ("vehicle", 4), ("segment", 7), ("digits", 10), ("letter", 26)):
        assert len(np.unique(multiclass_problem(settings, name).y)) == n_classes


def test_adult_rows_are_nested(folder):
    data = load_benchmark_data("adult", folder)
    small, large = (training_rows(data, m, Settings(folder, quick=True)) for m in (40, 90))
    assert set(small) <= set(large) <= set(data.subsets["a8a"])
    assert len(set(large)) == 90


@pytest.mark.skipif(not os.environ.get("DUALFIELD_DATA"), reason="DUALFIELD_DATA names no folder of data sets")
def test_real_data_has_the_papers_sizes():
    whole = Settings()
    for name, sizes in {"banana": (400, 4900), "splice": (1000, 2175), "waveform": (400, 4600)}.items():
        problem = binary_problem(whole, name)
        assert (len(problem.y), len(problem.y_test)) == sizes
    assert binary_problem(whole, "image").X.shape == (1300, 19)
    for name, sizes in {
        "wine": (120, 58),
        "glass": (130, 84),
        "vehicle": (600, 246),
        "segment": (1500, 810),
        "digits": (5000, 2000),
        "letter": (15000, 5000),
    }.items():
        problem = multiclass_problem(whole, name)
        assert (len(problem.y), len(problem.y_test)) == sizes
    adult = load_benchmark_data("adult")
    rows = [set(training_rows(adult, m, whole)) for m in (1605, 2265, 3185, 4781, 6414, 11220, 16100, 22696)]
    assert list(map(len, rows)) == [1605, 2265, 3185, 4781, 6414, 11220, 16100, 22696]
    # Equal rows of the data may stand for each other, hence not 0.
    assert all(len(small - large) <= 1 for small, large in itertools.pairwise(rows))
