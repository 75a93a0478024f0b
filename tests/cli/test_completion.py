"""``dualfield completion``: the script is sound, and completes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_script(shell, name):
    script = shell("completion", name).stdout
    assert "_DUALFIELD_COMPLETE" in script
    assert script.splitlines()[-1].startswith("# To install: ")
    if shutil.which(name):
        subprocess.run([name, "-n"], input=script, text=True, check=True, capture_output=True)


def test_unknown_shell(shell):
    assert "'tcsh' is not one of" in shell("completion", "tcsh", code=2).stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("dualfield t", {"train", "tune", "tag", "template"}),
        ("dualfield train --warm", {"--warm-start"}),
        ("dualfield train --constraints B", {"BIO", "BIOES"}),
        ("dualfield completion z", {"zsh"}),
    ],
    ids=["command", "option", "choice", "argument"],
)
def test_completions(words, expected):
    variables = {
        "_DUALFIELD_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    code = "from dualfield.cli import main; main(prog_name='dualfield')"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    assert {line.partition(",")[2] for line in done.stdout.splitlines()} == expected
