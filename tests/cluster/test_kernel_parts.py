"""Kernel logistic regression on partitions of a cluster: the same bits as without one, and after a worker is lost."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualfield import CRF, KernelLogisticRegression, StructuredSVM
from dualfield.engines import LostClusterError


@dataclass(frozen=True)
class Drawn:
    """A partition that is drawn anew each time it is read; the first process to read it in a pass may be killed."""

    seed: int
    victims: Path | None = None

    def __call__(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        if self.victims is not None and self.seed == 2:
            reads = self.victims / "reads"
            with reads.open("a") as file:
                file.write(f"{os.getpid()}\n")
            if len(reads.read_text().splitlines()) == 4:  # in the second evaluation
                os.kill(os.getpid(), signal.SIGKILL)
        X = rng.normal(size=(150, 4))
        return X, (np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=150) > 0).astype(int)


def fitted(parts: Any, client: Any = None) -> KernelLogisticRegression:
    model = KernelLogisticRegression(kernel_approx=25, C=3.0, tol=1e-4, cache_size=1000)
    return model.fit(parts, client=client)


def assert_same(one: KernelLogisticRegression, other: KernelLogisticRegression) -> None:
    assert one.dual_coef_.tobytes() == other.dual_coef_.tobytes()
    assert one.intercept_.tobytes() == other.intercept_.tobytes()
    assert (one.objective_, one.dual_gap_, one.n_rounds_) == (other.objective_, other.dual_gap_, other.n_rounds_)


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of few rows: some passes are needed."""
    monkeypatch.setattr("dualfield.models.kernel.point_training._LEAST_ROWS", 100)
    monkeypatch.setattr("dualfield.models.kernel.point_training._ROWS_PER_POINT", 2)


@pytest.mark.usefixtures("few_rows")
def test_bits_do_not_depend_on_workers(client: Any) -> None:
    parts = [Drawn(seed) for seed in range(5)]
    here = fitted(parts)
    assert here.n_rounds_ > 4
    assert_same(fitted(parts, client), here)
    arrays = [part() for part in parts]
    assert_same(fitted(arrays, client), here)
    assert_same(fitted([client.submit(part, pure=False) for part in parts], client), here)
    address = client.scheduler.address
    assert_same(fitted(parts, address), here)


@pytest.mark.usefixtures("few_rows")
def test_a_lost_worker_changes_nothing(client: Any, tmp_path: Path) -> None:
    here = fitted([Drawn(seed) for seed in range(5)])
    there = fitted([Drawn(seed, tmp_path) for seed in range(5)], client)
    assert len((tmp_path / "reads").read_text().splitlines()) > 4
    assert_same(there, here)


def test_files_are_those_of_the_driver(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers run in another folder."""
    monkeypatch.chdir(tmp_path)
    for seed in range(3):
        X, y = Drawn(seed)()
        np.savez(f"part{seed}.npz", X=X, y=y)
    assert_same(fitted("part*.npz", client), fitted([Drawn(seed) for seed in range(3)]))


def test_a_future_that_is_lost_is_not_taken_for_the_scheduler(client: Any) -> None:
    parts = [client.submit(Drawn(seed), pure=False) for seed in range(3)]
    parts[1].cancel()
    with pytest.raises(LostClusterError, match=r"not on the Dask cluster any more: a future was cancelled"):
        fitted(parts)


def test_futures_are_all_or_none(client: Any) -> None:
    with pytest.raises(ValueError, match="all partitions must be futures"):
        fitted([client.submit(Drawn(0), pure=False), Drawn(1)])


def test_errors_come_back(client: Any, tmp_path: Path) -> None:
    bad = tmp_path / "bad.npz"
    bad.write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"bad\.npz cannot be read"):
        fitted([bad], client)


@pytest.mark.parametrize("model", [CRF(kernel="rbf", kernel_approx=8), StructuredSVM(kernel="rbf", kernel_approx=8)])
def test_structured_models(client: Any, model: Any) -> None:
    rng = np.random.default_rng(0)
    y = [rng.integers(0, 2, size=4) for _ in range(12)]
    X = [np.eye(2)[one] + 0.5 * rng.normal(size=(4, 2)) for one in y]
    parts = [(X[at::3], y[at::3]) for at in range(3)]
    here = model.fit(parts).expansion_.coefficients.tobytes()
    assert model.fit(parts, client=client).expansion_.coefficients.tobytes() == here
    futures = [client.submit(tuple, part, pure=False) for part in parts]
    assert model.fit(futures).expansion_.coefficients.tobytes() == here
