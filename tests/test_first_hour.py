"""The pages on the first hour and the demo are true: their commands are run in a folder, and say what is shown."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGE, DEMO = DOCS / "first_hour.md", DOCS / "guide" / "demo.md"

FILE = r"\{code-block\} python\n:caption: (?P<file>\S+)\n\n"
BLOCK = re.compile(rf"^```(?:{FILE}|console\n)(?P<text>.*?)^```$", re.M | re.S)
HERE = re.compile(r"<<'(\w+)'$")
# What may differ from day to day: seconds, in the last column of the table of passes and in sums such as "0.0 s", the
# version, and the size of a model file, which has the version in it.
PASSING = (
    re.compile(r"(?<=\d)(?: +\d+\.\d)$", re.M),
    re.compile(r"\b\d+\.\d s\b"),
    re.compile(r"\bdualfield \d\S+"),
    re.compile(r"\b[\d,]+ bytes\b"),
)


class Step(NamedTuple):
    """A file to be written, or a command and what it shows; `file` is None for a command."""

    file: str | None
    text: str
    shown: str = ""


def steps_of(page: str) -> list[Step]:
    """Return what a reader of the page does: make the files with a caption, run the lines that begin with a dollar."""
    steps: list[Step] = []
    for block in BLOCK.finditer(page):
        if block["file"]:
            steps.append(Step(block["file"], block["text"]))
            continue
        lines = block["text"].splitlines()
        while lines:
            line = lines.pop(0)
            if line.startswith("$ "):
                command, here = line[2:], HERE.search(line)
                while here and not command.endswith(f"\n{here[1]}"):
                    command += "\n" + lines.pop(0)
                steps.append(Step(None, command))
            else:
                steps[-1] = steps[-1]._replace(shown=f"{steps[-1].shown}{line}\n")
    return steps


def lasting(text: str) -> str:
    for pattern in PASSING:
        text = pattern.sub(" #", text)
    return text


def difference(step: Step, folder: Path, *commands: Path) -> str:
    """Run a command as a shell does, and return how its output differs from what the page shows, or nothing."""
    path = os.pathsep.join(map(str, [*commands, Path(sys.executable).parent, os.environ["PATH"]]))
    environment = os.environ | {"PATH": path, "COLUMNS": "100"}
    result = subprocess.run(
        ["bash", "-c", step.text],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    if result.returncode:
        return f"{step.text}\n{result.stdout}\nexit code {result.returncode}"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    shown, said = lasting(step.shown), lasting(result.stdout)
    if doctest.OutputChecker().check_output(shown, said, flags):
        return ""
    return f"{step.text}\n--- shown\n{step.shown}\n--- said\n{result.stdout}"


def walk(page: str, folder: Path, *commands: Path) -> list[str]:
    """Follow a page from top to bottom and return what was not as it says; folders of commands go before others."""
    wrong = []
    for step in steps_of(page):
        if step.file:
            (folder / step.file).write_text(step.text, encoding="utf-8")
        elif said := difference(step, folder, *commands):
            wrong.append(said)
    return wrong


@pytest.mark.parametrize("page", [PAGE, DEMO], ids=lambda page: page.stem)
def test_first_hour(page, tmp_path, warm_python):
    commands = [warm_python.command()] if page == PAGE else []  # of many commands one may start anew
    wrong = walk(page.read_text(encoding="utf-8"), tmp_path, *commands)
    assert not wrong, "\n\n".join(wrong)


def test_what_the_first_hour_shows_of_the_demo_is_on_its_page():
    shown = re.search(r"^```text\n(A new sentence.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    page = DEMO.read_text(encoding="utf-8")
    for part in shown[1].split("...\n"):
        assert part in page


def test_page_has_the_steps_of_a_first_hour():
    commands = " ".join(step.text for step in steps_of(PAGE.read_text(encoding="utf-8")))
    for name in ("train", "evaluate", "tag", "inspect", "doctor"):
        assert f"dualfield {name}" in commands
    assert "python names.py" in commands


# The check itself, on pages that it must refuse.


@pytest.mark.parametrize(
    "text",
    ["$ echo one\ntwo\n", "$ false\n", "$ echo 1.0 s\n1.0 m\n"],
    ids=["other output", "failure", "other unit"],
)
def test_false_page_is_found(text, tmp_path):
    assert walk(f"```console\n{text}```\n", tmp_path)


def test_true_page_is_accepted(tmp_path):
    page = (
        "```{code-block} python\n:caption: a.py\n\nprint(1)\n```\n```console\n"
        "$ cat > b <<'END'\none\n$ two\nEND\n$ cat b | tr '$' S\none\nS two\n$ python a.py\n1\n$ echo 0.7 s\n0.1 s\n"
        "$ echo '  16.4  25.2934  6.1e-05  77.78  1.3'\n  16.4  25.2934  6.1e-05  77.78  0.0\n```\n"
    )
    file, here, *others = steps_of(page)
    assert (file.file, file.text) == ("a.py", "print(1)\n")
    assert "$ two" in here.text
    assert len(others) == 4
    assert walk(page, tmp_path) == []
