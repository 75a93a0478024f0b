"""``dualfield demo``: one screen about a trained model, whose every number is the library's, and its data as files."""

from __future__ import annotations

import io
import re
import shlex
import shutil

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from dualfield import CRF
from dualfield.cli import demo_names, main
from dualfield.cli.training.pass_table import PassTable
from dualfield.datasets import load_town_news
from dualfield.io import read_conll
from dualfield.metrics import neg_log_loss_scorer, sequence_accuracy_scorer, span_f1_scorer

ROW = re.compile(r"^(independent labels|chain \(CRF\)) +([\d.]+) +([\d.]+)% +([\d.]+)$", re.MULTILINE)


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["demo", *map(str, arguments)])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    result = invoke("--report", folder / "report.html")
    assert result.exit_code == 0, result.output
    return result, folder


@pytest.fixture(scope="module")
def news():
    return load_town_news()


@pytest.fixture(scope="module")
def model(news):
    model = CRF(C=10.0, template="default", constraints="BIO", random_state=0)
    return model.fit(news.X_train, news.y_train)


def test_it_is_one_screen(run):
    result, folder = run
    lines = result.output.replace(str(folder), "").splitlines()
    assert len(lines) <= 45
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert "\x1b" not in result.output


def test_the_gap_falls_to_the_tolerance_and_is_certified(run, model):
    result, _ = run
    rows = [line.split() for line in result.stderr.splitlines() if re.match(r"^ +\d", line)]
    gaps = [float(row[2]) for row in rows]
    assert 5 <= len(gaps) <= 12
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] <= model.tol
    said = " ".join(result.stdout.split())
    assert f"No weights can be better than this by more than {model.dual_gap_:.3g} (relative gap" in said


def test_the_sentence_has_the_exact_probabilities_of_its_spans(run, model):
    words = demo_names.SENTENCE.split()
    said = " ".join(run[0].stdout.split())
    spans = model.predict_spans([words])[0]
    assert [span.type for span in spans] == ["PER", "ORG", "PER", "LOC", "DATE"]
    for span in spans:
        assert f"[{' '.join(words[span.start : span.stop])} {span.type} {span.probability:.3f}]" in said


def test_the_best_labellings_are_listed_with_their_probabilities(run, model):
    lines = [" ".join(line.split()) for line in run[0].stdout.splitlines()]
    for labels, probability in model.k_best([demo_names.SENTENCE.split()], 3)[0]:
        assert f"{probability:.3f} {' '.join(labels)}" in lines


def test_the_comparison_is_measured_and_the_chain_is_ahead(run, model, news):
    rows = {name: tuple(map(float, numbers)) for name, *numbers in ROW.findall(run[0].stdout)}
    data = news.X_test, news.y_test
    expected = (
        round(100.0 * span_f1_scorer(model, *data), 2),
        round(100.0 * sequence_accuracy_scorer(model, *data), 1),
        round(-neg_log_loss_scorer(model, *data), 3),
    )
    assert rows["chain (CRF)"] == expected
    f1, right, loss = rows["independent labels"]
    assert f1 < expected[0] - 5.0
    assert right < expected[1] - 5.0
    assert loss > 1.1 * expected[2]


def test_independent_labels_ignore_their_neighbours(news):
    """The model that is compared with is logistic regression of each token: another label next door changes nothing."""
    alone = demo_names.independent_model().fit(news.X_train, news.y_train)
    assert alone.transition_features_ == {}
    words = demo_names.SENTENCE.split()
    (marginals,) = alone.predict_proba([words])
    (best,) = alone.predict([words])
    assert best == [alone.classes_[code] for code in marginals.argmax(axis=1)]


def test_the_report_is_whole(run):
    folder = run[1]
    assert [path.name for path in folder.iterdir()] == ["report.html"]
    document = (folder / "report.html").read_text(encoding="utf-8")
    assert document.startswith("<!DOCTYPE html>")
    assert document.endswith("</html>\n")
    assert "Names in local news" in document
    assert not re.search(r"https?:(?!//www.w3.org/2000/svg)|<script|<link|<iframe", document)


def test_it_ends_with_three_commands_that_work(run, tmp_path, monkeypatch):
    *_, save, train, tag = run[0].stdout.splitlines()
    monkeypatch.chdir(tmp_path)
    for line in (save, train):
        result = CliRunner().invoke(main, shlex.split(line)[1:])
        assert result.exit_code == 0, result.output
    text, _, command = tag.partition(" | ")
    result = CliRunner().invoke(main, shlex.split(command)[1:], input=shlex.split(text)[1] + "\n")
    assert result.exit_code == 0, result.output
    found = [line.split()[0] for line in result.stdout.splitlines() if "B-" in line]
    assert found == ["Mark", "Ashby", "May"]


def test_the_data_are_those_of_the_loader(tmp_path, news):
    result = invoke("--save-data", tmp_path)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["news-test.conll", "news-train.conll"]
    for name, X, y in (("train", news.X_train, news.y_train), ("test", news.X_test, news.y_test)):
        assert f"news-{name}.conll: {len(X)} sentences" in result.output
        rows = read_conll(tmp_path / f"news-{name}.conll")
        assert [[token for token, _ in sentence] for sentence in rows] == X
        assert [[label for _, label in sentence] for sentence in rows] == y


def test_data_for_a_missing_folder(tmp_path):
    result = invoke("--save-data", tmp_path / "missing")
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: {tmp_path / 'missing'}")


def test_a_terminal_gets_colours_in_the_width_it_has(model):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="truecolor", width=80, legacy_windows=False)
    demo_names._show_sentence(console, model, demo_names.SENTENCE.split())
    assert out.getvalue().count("\x1b[") > 20
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert "May Weston PER 0.880 of Weston Ferries ORG 0.866" in plain
    assert max(map(len, plain.splitlines())) <= 80


def test_without_colours_names_are_in_brackets(model):
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system="truecolor", width=80, no_color=True)
    demo_names._show_sentence(console, model, demo_names.SENTENCE.split())
    assert "[May Weston PER 0.880] of [Weston Ferries ORG 0.866]" in out.getvalue()


@pytest.mark.parametrize("is_on_path", [True, False])
def test_how_to_reach_the_command_is_said_where_needed(is_on_path, monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "activate").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo_names.sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setattr(shutil, "which", lambda name: "/bin/dualfield" if is_on_path else None)
    assert demo_names._activation() == ("" if is_on_path else " (after source bin/activate)")


def test_a_page_that_cannot_be_written_is_named_before_the_work(tmp_path, without_matplotlib):
    result = invoke("--report", tmp_path / "missing" / "report.html")
    assert result.exit_code == 1
    assert result.output.startswith("Error: cannot write the report to ")
    result = invoke("--report", tmp_path / "report.html")
    assert result.output.startswith("Error: --report: Figures and reports need matplotlib: pip install matplotlib")
    assert list(tmp_path.iterdir()) == []


def test_passes_are_shown_when_the_gap_has_fallen_by_a_factor(capsys):
    class Moment:
        objective = passes = seconds = 1.0

        def __init__(self, gap):
            self.relative_gap = gap

    class Model:
        vocabulary_, n_features_ = None, 7

    def shown(**settings):
        with PassTable(1e-3, **settings) as table:
            for gap in (1.0, 0.5, 0.09, 0.05, 0.004, 0.0009, 0.0008):
                table(Moment(gap), Model())
        return [line.split()[2] for line in capsys.readouterr().err.splitlines() if line.startswith("   1.0")]

    assert shown(factor=10.0) == ["1.0e+00", "9.0e-02", "4.0e-03", "9.0e-04"]
    assert len(shown()) == 7
