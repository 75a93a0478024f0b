"""Clique problems on a cluster that loses one of its two workers in the middle of a fit."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from dualfield import ConditionalGraphicalModel

distributed = pytest.importorskip("distributed", reason="dask.distributed, the cluster of this test, is not installed")

PATIENCE = 60.0  # seconds


@dataclass(frozen=True)
class MarkedKernel:
    """A kernel that leaves a note of each problem; the first process to call it stops there until it is killed."""

    folder: Path

    def __call__(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        self.claim()
        problem = hashlib.sha256(X.tobytes()).hexdigest()[:16]
        (self.folder / f"{os.getpid()}.{problem}").touch()
        return rbf_kernel(X, Y, gamma=0.5)

    def claim(self) -> None:
        try:
            with (self.folder / "victim").open("x") as file:
                file.write(f"{os.getpid()}\n")
        except FileExistsError:
            return
        time.sleep(PATIENCE)
        raise AssertionError("The process was not killed.")

    def victim(self) -> int | None:
        place = self.folder / "victim"
        text = place.read_text() if place.exists() else ""
        return int(text) if text.endswith("\n") else None

    def callers(self) -> dict[int, int]:
        """How many problems each process has begun."""
        found = [int(note.name.split(".")[0]) for note in self.folder.glob("*.*")]
        return {process: found.count(process) for process in found}


def kill_in_the_middle(kernel: MarkedKernel, killed: list[int]) -> None:
    """Kill the process that waits in its first problem as soon as the other one has finished a problem."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        victim = kernel.victim()
        if victim is not None and max(kernel.callers().values(), default=0) >= 2:  # the second begins after the first
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)
            return
        time.sleep(0.01)


def words(n: int = 40, length: int = 12) -> tuple[list[np.ndarray], list[list[int]]]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, size=(n, length))
    return list(np.eye(3)[y] + 0.7 * rng.normal(size=(n, length, 3))), y.tolist()


def fitted(kernel: MarkedKernel) -> ConditionalGraphicalModel:
    X, y = words()
    model = ConditionalGraphicalModel(1, tying="position", kernel=kernel, C=1.0, random_state=0)
    return model.fit(X, y)


@pytest.fixture
def cluster() -> Any:
    """Two worker processes and a scheduler that only this machine can reach, without pages of theirs."""
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
        silence_logs=50,
    ) as found:
        yield found


def test_a_fit_goes_on_when_a_worker_is_killed(cluster: Any, tmp_path: Path) -> None:
    here, there = MarkedKernel(tmp_path / "here"), MarkedKernel(tmp_path / "there")
    here.folder.mkdir()
    there.folder.mkdir()
    (here.folder / "victim").touch()  # nobody waits
    expected = fitted(here)
    killed: list[int] = []
    killer = threading.Thread(target=kill_in_the_middle, args=(there, killed))
    with distributed.Client(cluster) as client:
        workers = client.run(os.getpid)
        assert len(set(workers.values()) - {os.getpid()}) == 2
        killer.start()
        with joblib.parallel_config("dask"):
            model = fitted(there)
        killer.join()
    assert killed
    assert killed[0] in workers.values()
    done = there.callers()
    assert os.getpid() not in done  # all problems were solved on the cluster,
    assert killed[0] not in done  # none by the process that was lost,
    assert sum(done.values()) >= len(model.clique_models_) == 23  # and all of them
    X, _ = words()
    assert model.predict(X) == expected.predict(X)
    assert model.objective_ == expected.objective_
    assert list(model.clique_models_) == list(expected.clique_models_)
    for key, one in expected.clique_models_.items():
        assert one.status == model.clique_models_[key].status
        assert one.coefficients is not None
        np.testing.assert_array_equal(one.points, model.clique_models_[key].points)
        np.testing.assert_array_equal(one.coefficients, model.clique_models_[key].coefficients)
