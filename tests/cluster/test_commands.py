"""The command line on a cluster: training to the same weights, tagging and evaluation by file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import dualfield
from dualfield.cli import main
from tests.cli.conftest import corpus


def run(*arguments: object, code: int = 0) -> Any:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_train_tag_and_evaluate(client: Any, tmp_path: Path) -> None:
    address = client.scheduler.address
    for at in range(3):
        (tmp_path / f"part{at}.txt.gz").write_bytes(gzip.compress(corpus(8, at).encode()))
    pattern, model = tmp_path / "part*.gz", tmp_path / "model"
    kept = tmp_path / "kept"
    kept.mkdir()
    train = ["train", pattern, "--model", model, "--tol", "1e-2", "--cluster", address, "--checkpoint", kept]
    said = run(*train, "--checkpoint-every", 0)
    assert "3 partitions" in said.stderr
    assert list(kept.iterdir()) == []
    here = dualfield.CRF(tol=1e-2, template="default").fit(str(pattern))
    assert dualfield.load(model).parameters_.tobytes() == here.parameters_.tobytes()
    run("tag", pattern, "--model", model, "--output-dir", tmp_path / "there", "--cluster", address)
    run("tag", pattern, "--model", model, "--output-dir", tmp_path / "here")
    names = [f"part{at}.txt" for at in range(3)]
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == names
    for name in names:
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    found = [
        json.loads(run("evaluate", pattern, "--model", model, "--json", *more).stdout)
        for more in ([], ["--cluster", address])
    ]
    assert found[0] == found[1]
    assert found[0]["sentences"] == 24


def test_a_compiled_corpus(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.txt").write_text(corpus(24, 0))
    run("compile", "data.txt", "out", "--parts", 4, "--quiet")
    there = ["--model", "model", "--tol", "1e-2", "--cluster", client.scheduler.address]
    assert "4 partitions" in run("train", "out", *there).stderr
    here = dualfield.CRF(tol=1e-2, solver="lbfgs").fit(dualfield.data.CompiledCorpus("out"))
    found = dualfield.load("model")
    assert found.parameters_.tobytes() == here.parameters_.tobytes()
    assert found.file_columns_.label == 2
    run("tag", "data.txt", "--model", "model")  # by the template of the corpus
    assert "--memory is for one machine" in run("train", "out", *there, "--memory", 1e9, code=2).stderr
    assert "--template was settled when" in run("train", "out", *there, "--template", "default", code=2).stderr


def test_paths_are_those_of_the_driver(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers run in another folder."""
    monkeypatch.chdir(tmp_path)
    for at in range(2):
        Path(f"part{at}.txt").write_text(corpus(8, at))
    there = ["--cluster", client.scheduler.address]
    run("train", "part*.txt", "--model", "model", "--tol", "1e-2", *there, "--quiet")
    run("tag", "part*.txt", "--model", "model", "--output-dir", "tagged", *there)
    assert len(list(Path("tagged").iterdir())) == 2
    assert json.loads(run("evaluate", "part*.txt", "--model", "model", "--json", *there).stdout)["sentences"] == 16
    assert dualfield.CRF(tol=1e-2, template="default").fit("part*.txt", client=client).n_partitions_ == 2


def test_a_model_that_has_changed_is_read_again(client: Any, tmp_path: Path) -> None:
    data, model = tmp_path / "part.txt", tmp_path / "model"
    data.write_text(corpus(8, 0))
    tag = ["tag", data, "--model", model, "--output-dir", tmp_path / "tagged", "--cluster", client.scheduler.address]
    found = []
    for label in ("early", "late"):
        (tmp_path / "train.txt").write_text(f"the DT {label}\ndog NN {label}\n")
        run("train", tmp_path / "train.txt", "--model", model, "--quiet")
        for _ in range(3):  # whichever worker it is
            run(*tag)
            found.append((tmp_path / "tagged" / "part.txt").read_text())
    assert all(("early" in text, "late" in text) == (at < 3, at >= 3) for at, text in enumerate(found))


def test_errors_are_one_line(client: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("dog NN B\n\n")
    (tmp_path / "b.txt").write_text("dog NN B\n\ncat NN\n")
    train = ["train", tmp_path / "*.txt", "--model", tmp_path / "model", "--cluster", client.scheduler.address]
    said = run(*train, code=1).stderr
    assert f"{tmp_path}/b.txt:3: " in said
    assert not (tmp_path / "model").exists()
