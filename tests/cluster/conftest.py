"""A cluster of real processes on this machine, started once for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


def new_cluster(n_workers: int, **more: Any) -> Any:
    """Start workers, and a scheduler that only this machine can reach, without pages of theirs."""
    distributed = pytest.importorskip("distributed", reason="the tests of this folder need Dask's scheduler")
    return distributed.LocalCluster(
        n_workers=n_workers,
        processes=True,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False, **more.pop("scheduler_kwargs", {})},
        silence_logs=50,
        **more,
    )


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    with new_cluster(3) as found:
        yield found


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    """Return a client of three workers; those that a test before has killed are waited for."""
    from distributed import Client

    cluster.scale(3)
    with Client(cluster, set_as_default=False) as found:
        found.wait_for_workers(3, timeout=120)
        yield found
