"""The list of slow tests names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.slow import listed

ROOT = Path(__file__).parents[1]


def is_there(name: str) -> bool:
    path, _, function = name.rpartition("::")
    file = ROOT / path.partition("::")[0]
    if not file.exists():
        return False
    is_doctest = not path or not function.startswith("test")
    return is_doctest or re.search(rf"^\s*def {function}\b", file.read_text(encoding="utf-8"), re.MULTILINE) is not None


def test_all_that_are_listed_are_there():
    gone = sorted(name for name in listed() if not is_there(name))
    assert not gone, "moved or renamed: change tests/slow.txt, or `make slow-list`"
