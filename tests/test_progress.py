"""Builds show that they are alive: one line of what is done, and all that was said where they fail."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "show_progress.py"
STEPS = """
print("Collecting numpy>=1.26")
print("  [1/3] Building CXX object CMakeFiles/core.dir/native/src/structures/chain.cpp.o")
print("  -- detail")
"""


def command(script: str, *more: str) -> list[str]:
    return [sys.executable, str(SCRIPT), "Compiling", sys.executable, "-c", script, *more]


def test_a_build_ends_with_its_time():
    done = subprocess.run(command(STEPS), capture_output=True, text=True, check=True)
    assert re.fullmatch(r"Compiling \.\.\.\n  done in \d+ s\n", done.stdout)


def test_a_failure_shows_all_that_was_said_and_its_exit_code():
    failing = STEPS + "import sys; print('error: no member', file=sys.stderr); sys.exit(3)"
    done = subprocess.run(command(failing), capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert {"error: no member", "  -- detail"} <= set(done.stdout.splitlines())


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_a_terminal_sees_each_step_in_one_line():
    ours, theirs = os.openpty()
    with subprocess.Popen(command(STEPS), stdout=theirs) as run:
        os.close(theirs)
        said = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # how Linux says that the other end is closed
                break
            if not piece:
                break
            said += piece
    os.close(ours)
    assert run.returncode == 0
    shown = [re.sub(r"\x1b\[2K", "", part).strip() for part in said.decode().split("\r")]
    assert "Collecting numpy>=1.26" in shown
    assert "[1/3] chain.cpp" in shown
    assert not any("detail" in part for part in shown)
