"""The benchmarks can be imported, and their page is what their results say."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

pytest.importorskip("pycrfsuite", reason="the benchmarks compare with python-crfsuite")

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("[a-z]*.py")))
def test_every_module_can_be_imported(name):
    importlib.import_module(f"benchmarks.{name}")


def test_the_page_is_what_the_results_say(tmp_path, monkeypatch):
    main = importlib.import_module("benchmarks.__main__")
    (tmp_path / "results").symlink_to(FOLDER / "results")
    monkeypatch.setattr(main, "FOLDER", tmp_path)
    main.write_table()
    assert (tmp_path / "README.md").read_text("utf-8") == (FOLDER / "README.md").read_text("utf-8")
