"""Every example of the gallery runs, without a warning, and is in the gallery."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def run(example: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script as a reader would: in a process and a folder of its own, but with warnings as errors."""
    environment = os.environ | {"MPLBACKEND": "Agg", "MPLCONFIGDIR": str(folder), "PYTHONHASHSEED": "random"}
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, "-W", "error", str(example)]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, tmp_path):
    result = run(example, tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert result.stdout.strip(), "an example shows something"


def test_failing_example_is_found(tmp_path):
    example = tmp_path / "plot_wrong.py"
    example.write_text("import warnings\nwarnings.warn('old')\n")
    assert "UserWarning: old" in run(example, tmp_path).stderr


def test_every_example_is_in_the_gallery():
    order = runpy.run_path(str(ROOT / "docs" / "gallery_order.py"))["ORDER"]
    assert sorted(order) == [example.name for example in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_begins_with_a_title(example):
    first, title, line, *_ = example.read_text(encoding="utf-8").splitlines()
    assert first == '"""'
    assert line == "=" * len(title)
