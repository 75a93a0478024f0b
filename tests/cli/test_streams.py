"""Standard streams that are closed, full, or in a locale that does not know the letters."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")

PROGRAM = f'"{sys.executable}" -c "from dualfield.cli import main; main()"'


def run(command, **environment):
    """Run a line in a shell; return the exit code and both outputs."""
    done = subprocess.run(
        command.replace("dualfield", PROGRAM, 1),
        shell=True,
        capture_output=True,
        check=False,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("dualfield --help > /dev/full", "Error: <stdout>: No space left on device\n"),
        ("dualfield --help >&-", "Error: <stdout>: Bad file descriptor\n"),
        ("dualfield completion bash > /dev/full", "Error: <stdout>: No space left on device\n"),
        ("dualfield evaluate <&-", "Error: <stdin>: Bad file descriptor.\n"),
    ],
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_streams_that_cannot_be_used(command, said):
    assert run(command) == (1, b"", said)


def test_closed_standard_error_is_no_reason_to_fail():
    assert run("dualfield --version 2>&-")[0] == 0
    assert run("dualfield --no-such-option 2>&-")[0] == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_progress_that_cannot_be_shown_does_not_end_a_training(shell):
    shell.write("a.txt", "a X\nb Y\n\nb Y\n")
    assert run("dualfield train a.txt --model m 2> /dev/full")[0] == 0
    assert shell.path("m").exists()


def test_output_is_utf8_in_every_locale(shell):
    """Also where Python is told not to help itself."""
    shell.write("a.txt", "caf\u00e9 \u00c4\n\u732b O\n")
    shell("train", "a.txt", "--model", "m", "-q")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    code, out, said = run("dualfield convert m - --to json", **plain)
    assert code == 0, said
    assert out.decode() == shell("convert", "m", "-", "--to", "json").stdout
    assert "caf\u00e9" in out.decode()


def test_standard_output_may_be_named(shell):
    shell.write("a.txt", "a X\nb Y\n")
    shell("train", "a.txt", "--model", "m", "-q")
    tagged = shell("tag", "--model", "m", "a.txt").stdout.encode()
    assert run("dualfield tag --model m --output /dev/stdout a.txt")[:2] == (0, tagged)
    shell.write("log", "before\n")
    assert run("dualfield tag --model m --output /dev/stdout a.txt >> log")[0] == 0
    assert shell.path("log").read_bytes() == b"before\n" + tagged
