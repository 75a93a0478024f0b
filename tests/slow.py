"""Which tests are slow: those listed in slow.txt, by what was measured. `make check` runs the others.

`make slow-list` measures again and rewrites the list. It is kept in a file, so that the choice is the same for everyone
and every time, and does not depend on how busy a machine is.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).with_name("slow.txt")
SLOW = 0.75  # seconds, of a test function with all its parameters


def function_of(nodeid: str) -> str:
    """Return the name of a test without its parameters."""
    return nodeid.partition("[")[0]


def listed() -> set[str]:
    return set(LIST.read_text(encoding="utf-8").split())


class SlowList:
    """Marks slow tests; with --rewrite-slow, finds out which ones are."""

    def __init__(self, rewrite: bool) -> None:
        self.seconds: Counter[str] = Counter()
        self.rewrite = rewrite

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        slow = listed()
        for item in items:
            if function_of(item.nodeid) in slow:
                item.add_marker(pytest.mark.slow)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[function_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        is_worker = hasattr(session.config, "workerinput")
        if self.rewrite and not is_worker:
            found = sorted(name for name, seconds in self.seconds.items() if seconds >= SLOW)
            LIST.write_text("".join(f"{name}\n" for name in found), encoding="utf-8")


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--rewrite-slow", action="store_true", help="Measure all tests and rewrite tests/slow.txt.")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(SlowList(config.getoption("--rewrite-slow")))
