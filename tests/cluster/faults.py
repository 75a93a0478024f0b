"""Faults that tests arrange: workers that wait to be killed in the middle of an evaluation, and slow ones."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from dualfield.objectives.part_problem import PartProblem

PATIENCE = 120.0  # seconds


def trap(folder: Path) -> None:
    """Let the next evaluation in this process, once there is a file `go-*`, wait until it is killed; run on workers."""
    evaluate = PartProblem.evaluate

    def evaluate_or_wait(self: PartProblem, w: Any) -> Any:
        for sign in sorted(folder.glob("go-*")):
            try:
                with (folder / f"victim-{sign.name}").open("x") as file:
                    file.write(f"{os.getpid()}\n")
            except FileExistsError:
                continue
            time.sleep(PATIENCE)
            raise AssertionError("The process was not killed.")
        if (folder / f"slow-{os.getpid()}").exists():
            time.sleep(0.05)
        return evaluate(self, w)

    PartProblem.evaluate = evaluate_or_wait  # type: ignore[method-assign]


class Killer:
    """A monitor of a fit that lets a worker be killed in the round after some passes."""

    def __init__(self, folder: Path, after: tuple[int, ...]) -> None:
        self._folder, self._after = folder, after
        self.killed: list[int] = []
        self._thread = threading.Thread(target=self._kill)
        self._thread.start()

    def __call__(self, moment: Any, model: Any) -> bool:
        for passes in self._after:
            if moment.passes >= passes:
                (self._folder / f"go-{passes:03d}").touch()
        return False

    def _kill(self) -> None:
        end = time.monotonic() + PATIENCE
        while len(self.killed) < len(self._after) and time.monotonic() < end:
            for sign in sorted(self._folder.glob("victim-*")):
                text = sign.read_text()
                if text.endswith("\n") and int(text) not in self.killed:
                    os.kill(int(text), signal.SIGKILL)
                    self.killed.append(int(text))
            time.sleep(0.01)

    def end(self) -> list[int]:
        """Return the processes that were killed."""
        self._thread.join()
        return self.killed


def wait_for(condition: Any) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
