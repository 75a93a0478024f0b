"""joblib.parallel_config("dask"): grids, draws, restarts and cliques have the same results, and data is sent once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from dualfield import (
    CRF,
    CRFCV,
    BaggedTagger,
    ConditionalGraphicalModel,
    LatentCRF,
    LatentMulticlass,
    LatentStructuredSVM,
    StructuredSVM,
    StructuredSVMCV,
)
from dualfield.engines.shared_tasks import call_all
from dualfield.structures.checks import n_threads


@pytest.fixture
def dask(client: Any) -> Iterator[Any]:
    """Let joblib use the cluster."""
    with client.as_current(), joblib.parallel_config("dask"):
        yield client


class Counted:
    """Data that leaves a note each time it is sent."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.numbers = folder, np.arange(100_000.0)

    def __getstate__(self) -> dict[str, Any]:
        with (self.folder / "sent").open("a") as file:
            file.write(f"{os.getpid()}\n")
        return self.__dict__

    @property
    def senders(self) -> list[int]:
        return [int(line) for line in (self.folder / "sent").read_text().splitlines()]


def total(data: Counted, at: int) -> tuple[float, int]:
    return float(data.numbers.sum()) + at, os.getpid()


def total_or_die(data: Counted, at: int) -> tuple[float, int]:
    """Kill the process once, in the middle, and with it its copy of the data."""
    if at == 3:
        try:
            (data.folder / "victim").touch(exist_ok=False)
        except FileExistsError:
            return total(data, at)
        os.kill(os.getpid(), signal.SIGKILL)
    return total(data, at)


def test_data_is_sent_once(dask: Any, tmp_path: Path) -> None:
    data = Counted(tmp_path)
    found = call_all(total, data, [(at,) for at in range(20)])
    assert [value for value, _ in found] == [data.numbers.sum() + at for at in range(20)]
    assert os.getpid() not in {process for _, process in found}
    # From here to the scheduler, which is in this process too, and from there to one worker; then among workers.
    assert data.senders.count(os.getpid()) <= 2
    assert len(data.senders) <= 5


def test_data_comes_back_when_a_worker_is_lost(dask: Any, tmp_path: Path) -> None:
    data = Counted(tmp_path)
    found = call_all(total_or_die, data, [(at,) for at in range(8)])
    assert (tmp_path / "victim").exists()
    assert [value for value, _ in found] == [data.numbers.sum() + at for at in range(8)]


def sentences(n: int = 30) -> tuple[list[np.ndarray], list[list[str]]]:
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 3, size=rng.integers(2, 6)) for _ in range(n)]
    X = [np.eye(3)[one] + 0.8 * rng.normal(size=(len(one), 3)) for one in y]
    return X, [[f"label {code}" for code in one] for one in y]


@pytest.mark.parametrize("search", [CRFCV, StructuredSVMCV])
def test_grids(dask: Any, search: Any) -> None:
    X, y = sentences()
    found = search(Cs=[0.1, 1.0], cv=2).fit(X, y)
    with joblib.parallel_config("threading"):
        expected = search(Cs=[0.1, 1.0], cv=2).fit(X, y)
    for name in ("mean_test_score", "split0_test_score", "split1_test_score"):
        np.testing.assert_array_equal(found.cv_results_[name], expected.cv_results_[name])
    assert found.best_params_ == expected.best_params_


def test_draws(dask: Any) -> None:
    X, y = sentences()
    found = BaggedTagger(CRF(), n_estimators=4, random_state=0).fit(X, y)
    with joblib.parallel_config("threading"):
        expected = BaggedTagger(CRF(), n_estimators=4, random_state=0).fit(X, y)
    for one, other in zip(found.predict_proba(X), expected.predict_proba(X), strict=True):
        np.testing.assert_array_equal(one, other)


LATENT = {"latent": LatentMulticlass(2), "n_restarts": 3, "random_state": 0}


@pytest.mark.parametrize("model", [LatentCRF(CRF(), **LATENT), LatentStructuredSVM(StructuredSVM(), **LATENT)])
def test_restarts(dask: Any, model: Any) -> None:
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]] * 5)
    y = ["up or down", "left or right"] * 10
    found = model.fit(X, y).restarts_
    with joblib.parallel_config("threading"):
        expected = model.fit(X, y).restarts_
    np.testing.assert_array_equal(found, expected)


def test_cliques(dask: Any) -> None:
    """A task has its own problem and nothing else, so that all of them together send the data of each type once."""
    X, y = sentences()
    found = ConditionalGraphicalModel(1, kernel="rbf").fit(X, y)
    with joblib.parallel_config("threading"):
        expected = ConditionalGraphicalModel(1, kernel="rbf").fit(X, y)
    assert found.objective_ == expected.objective_
    assert found.predict(X) == expected.predict(X)


def test_threads_are_those_of_this_machine(dask: Any) -> None:
    assert joblib.effective_n_jobs(None) == 3  # of the cluster
    assert n_threads(None) == 1
    assert n_threads(2) == 2
    assert n_threads(-1) == joblib.cpu_count()
