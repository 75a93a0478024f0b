"""Every example of the gallery runs, without a warning, and is in the gallery."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.warm_python import SCRIPT

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.fixture
def run(tmp_path, monkeypatch, warm_python):
    """Run a script as a reader would: in a process and a folder of its own, but with warnings as errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))

    def result(example: Path) -> tuple[int, str, str]:
        process = warm_python.start(str(example), source=SCRIPT)
        out, said = process.stdout.read(), process.stderr.read()
        return process.wait(), out, said

    return result


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, run):
    code, out, said = run(example)
    assert (code, said) == (0, "")
    assert out.strip(), "an example shows something"


def test_failing_example_is_found(tmp_path, run):
    example = tmp_path / "plot_wrong.py"
    example.write_text("import warnings\nwarnings.warn('old')\n")
    code, _, said = run(example)
    assert code == 1
    assert "UserWarning: old" in said


def test_every_example_is_in_the_gallery():
    order = runpy.run_path(str(ROOT / "docs" / "gallery_order.py"))["ORDER"]
    assert sorted(order) == [example.name for example in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_begins_with_a_title(example):
    first, title, line, *_ = example.read_text(encoding="utf-8").splitlines()
    assert first == '"""'
    assert line == "=" * len(title)
