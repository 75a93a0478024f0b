"""Tasks of a first hour, each a script in tests/first_hour; docs/guide/first_hour_tasks.md counts their lines."""

from __future__ import annotations

import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dualfield import CRF
from dualfield.datasets import load_town_news
from dualfield.io import write_conll, write_json_graphs
from tests.warm_python import SCRIPT

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(path for path in (ROOT / "tests" / "first_hour").glob("[a-z]*.*") if path.name != "conftest.py")
PAGE = ROOT / "docs" / "guide" / "first_hour_tasks.md"
ROW = re.compile(r"^\| .*\| `(?P<script>\w+\.\w+)` \| (?P<now>\d+) \|", re.M)
CHECKS = "# Checks"


def task(script: Path) -> list[str]:
    """Return the lines that a user writes: no comments, no blank lines, and nothing from the checks on."""
    text = script.read_text(encoding="utf-8")
    if script.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
    lines = text.partition(CHECKS)[0].splitlines()
    if script.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
                first = node.body[0]
                lines[first.lineno - 1 : first.end_lineno] = [""] * ((first.end_lineno or 0) - first.lineno + 1)
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder as a user has it: labelled files in columns, a text, and a model trained on them."""
    folder = tmp_path_factory.mktemp("first_hour")
    news = load_town_news()
    parts = {
        "train": (news.X_train[:300], news.y_train[:300]),
        "dev": (news.X_train[300:], news.y_train[300:]),
        "test": (news.X_test, news.y_test),
    }
    for name, sentences in parts.items():
        rows = [list(zip(words, labels, strict=True)) for words, labels in zip(*sentences, strict=True)]
        write_conll(rows, folder / f"{name}.conll")
    (folder / "new.txt").write_text("Piers Marsh lives in Kendal.\nGreta left on 3 May.\n", encoding="utf-8")
    model = CRF(template="default", constraints="BIO", random_state=0).fit(*parts["train"])
    model.save(folder / "names.model")
    write_graphs(folder)
    return folder


def write_graphs(folder: Path) -> None:
    """Write graphs whose neighbours mostly have the same label, of which nodes say little by themselves."""
    chance = random.Random(0)
    for name, n_graphs in (("graphs", 60), ("graphs.dev", 40)):
        X, y = [], []
        for _ in range(n_graphs):
            edges = [(chance.randrange(at), at) for at in range(1, 8)]
            labels = ["red" if chance.random() < 0.5 else "blue"]
            for parent, _ in edges:
                labels.append(labels[parent] if chance.random() < 0.9 else chance.choice(["red", "blue"]))
            nodes = [[f"seen={label if chance.random() < 0.7 else 'grey'}"] for label in labels]
            nodes = [[f"seen={chance.choice(['red', 'blue'])}"] if chance.random() < 0.3 else node for node in nodes]
            X.append((nodes, edges))
            y.append(labels)
        write_json_graphs(X, y, folder / f"{name}.jsonl")


def environment(folder: Path, *commands: Path) -> dict[str, str]:
    """Return that of a user, in which warnings are errors; folders of commands go before others."""
    path = os.pathsep.join(map(str, [*commands, Path(sys.executable).parent, os.environ["PATH"]]))
    return {"PATH": path, "MPLBACKEND": "Agg", "MPLCONFIGDIR": str(folder), "PYTHONWARNINGS": "error"}


def run_cells(script: Path, folder: Path) -> list[Any]:
    """Run a notebook cell by cell, and return what its cells show: the value of an expression on the last line."""
    shown, names = [], {"__name__": "__main__"}
    before = Path.cwd()
    os.chdir(folder)
    try:
        for cell in json.loads(script.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] != "code":
                continue
            *steps, last = ast.parse("".join(cell["source"])).body
            exec(compile(ast.Module(steps, []), script.name, "exec"), names)
            if isinstance(last, ast.Expr):
                shown.append(eval(compile(ast.Expression(last.value), script.name, "eval"), names))
            else:
                exec(compile(ast.Module([last], []), script.name, "exec"), names)
    finally:
        os.chdir(before)
    return shown


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_task(script, files, tmp_path, monkeypatch, warm_python):
    folder = tmp_path / "folder"
    shutil.copytree(files, folder)
    if script.suffix == ".ipynb":
        shown = run_cells(script, folder)
        assert len(shown) == 3
        for value in shown:
            assert "object at 0x" not in repr(value)
            assert "</" in value._repr_html_()
        return
    monkeypatch.chdir(folder)
    starts_anew = script.stem == "install"
    for name, value in environment(tmp_path, *([] if starts_anew else [warm_python.command()])).items():
        monkeypatch.setenv(name, value)
    if script.suffix == ".py":
        process = warm_python.start(str(script), source=SCRIPT)
        said = process.stdout.read() + process.stderr.read()
        assert process.wait() == 0, said
        return
    result = subprocess.run(["bash", "-e", str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_script_checks_something():
    for script in SCRIPTS:
        if script.suffix != ".ipynb":
            assert script.read_text(encoding="utf-8").partition(CHECKS)[2].strip(), f"{script.name} checks nothing"


def test_page_counts_the_lines():
    counted = {row["script"]: int(row["now"]) for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}
    assert counted == {script.name: len(task(script)) for script in SCRIPTS}
