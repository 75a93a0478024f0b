"""The engine on real worker processes: sums in order, results that stay, lost workers, deadly partitions."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualfield.engines import DaskEngine, LostClusterError, Serial, engine_of
from tests.cluster.conftest import new_cluster

PATIENCE = 120.0  # seconds


def bracketed(*children: str) -> str:
    return f"({''.join(children)})"


def upper(part: str, end: str) -> str:
    return part.upper() + end


def note(part: int, folder: Path) -> int:
    with (folder / f"read-{part}").open("a") as file:
        file.write(f"{os.getpid()}\n")
    return part


def plus(part: int, shift: np.ndarray) -> float:
    return float(part + shift[0])


def die(part: int) -> int:
    if part == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return part


def fail(part: int) -> int:
    if part == 1:
        raise ValueError("corpus/b.gz, line 7: expected 3 columns. Got 2.")
    return part


@pytest.fixture
def engine(client: Any) -> DaskEngine:
    return DaskEngine(client)


def test_the_same_tree_as_in_this_process(engine: DaskEngine) -> None:
    parts = list("abcdefghijklmnopqrs")
    there, here = (each.tree_sum(each.map(upper, parts, "."), bracketed) for each in (engine, Serial()))
    assert there == here


@pytest.mark.parametrize("n", [2, 4, 5, 19])
def test_sums_where_the_partitions_are(engine: DaskEngine, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = "abcdefghijklmnopqrs"[:n]
    there = engine.map(upper, letters, "", keep=True)
    assert engine.gather(there) == list(letters.upper())
    here = Serial()
    expected = here.sum_of(upper, here.map(upper, letters, ""), ".", add=bracketed)
    assert engine.sum_of(upper, there, ".", add=bracketed) == expected
    for choose in (lambda group: True, lambda group: group % 2 == 1):  # whatever is one task
        monkeypatch.setattr(engine, "_at_once", lambda items, choose=choose: [choose(at) for at in range((n + 3) // 4)])
        assert engine.sum_of(upper, there, ".", add=bracketed) == expected
    engine.release(there)
    wait_until_clean(engine.client)


def test_neighbours_on_one_worker_are_one_task_if_its_threads_have_enough(
    engine: DaskEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, other = list(engine.client.nthreads())[:2]
    items = engine.map(upper, "abcdefghi", "", keep=True).items
    held = {item.key: (worker,) for item in items}
    monkeypatch.setattr(engine.client, "who_has", lambda _: held)
    assert engine._at_once(items) == [True, True, True]
    held[items[5].key] = (other, worker)
    assert engine._at_once(items) == [True, True, True]
    held[items[5].key] = (other,)
    assert engine._at_once(items) == [True, False, True]
    held[items[0].key] = ()  # lost
    assert engine._at_once(items) == [False, False, True]
    engine._threads = {worker: 2, other: 2}
    assert engine._at_once(items) == [False, False, False]


class Dead:
    """A future whose workers died."""

    def __init__(self, key: str) -> None:
        self.key = key

    def result(self) -> Any:
        from distributed import KilledWorker

        raise KilledWorker(self.key, None, 3)


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("die-part00001-ab", r"b\.gz,"),
        ("die-part00001to00002-ab", r"b\.gz or c\.gz,"),
        ("sum-1-4-ab", "the task sum-1"),
    ],
)
def test_what_killed_workers_is_named(key: str, where: str) -> None:
    with pytest.raises(LostClusterError, match=f"Workers died while they worked on {where}"):
        DaskEngine(None)._fetch(Dead(key), ("a.gz", "b.gz", "c.gz"))


def test_kept_results_stay_and_lost_ones_come_back(engine: DaskEngine, tmp_path: Path) -> None:
    parts = engine.map(note, range(6), tmp_path, keep=True)
    assert engine.gather(parts) == list(range(6))
    shift = np.array([0.5])
    assert engine.tree_sum(engine.map(plus, parts, shift)) == 18.0
    assert all(len(file.read_text().split()) == 1 for file in tmp_path.iterdir())
    held = {at: workers for at, workers in enumerate(client_holders(engine, parts)) if len(workers) == 1}
    lost, (address,) = next(iter(held.items()))  # which no other worker has a copy of
    victim = engine.client.run(os.getpid)[address]
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: victim not in engine.client.run(os.getpid, on_error="ignore").values())
    assert engine.tree_sum(engine.map(plus, parts, shift)) == 18.0
    again = (tmp_path / f"read-{lost}").read_text().split()
    assert len(again) == 2
    assert again[1] != str(victim)
    engine.release(parts)


def test_an_address_is_enough(client: Any) -> None:
    engine = engine_of(client.scheduler.address)
    assert engine.gather(engine.map(upper, ["a"], "!")) == ["A!"]
    engine.close()


def test_a_closed_client_is_said(client: Any) -> None:
    from distributed import Client

    other = Client(client.scheduler.address, set_as_default=False)
    other.close()
    with pytest.raises(ConnectionError, match=r"client must be connected to a cluster\. Got one that is closed\."):
        engine_of(other)


def test_a_cluster_without_workers_is_said() -> None:
    from distributed import Client

    with new_cluster(0) as cluster, Client(cluster, set_as_default=False) as client:
        with pytest.warns(UserWarning, match=r"has no workers yet.*'dask worker tcp://127\.0\.0\.1:\d+' starts one"):
            engine = engine_of(client)
        handles = engine.map(upper, ["a"], "!")
        cluster.scale(1)
        assert engine.gather(handles) == ["A!"]


def test_an_error_of_a_partition_comes_as_it_is_and_nothing_stays(engine: DaskEngine) -> None:
    with pytest.raises(ValueError, match=r"corpus/b\.gz, line 7: expected 3 columns"):
        engine.tree_sum(engine.map(fail, range(5)))
    wait_until_clean(engine.client)
    assert engine.gather(engine.map(upper, ["a"], "")) == ["A"]


def test_a_partition_that_kills_its_workers_is_named(engine: DaskEngine) -> None:
    names = [f"corpus/{name}.gz" for name in "abcd"]
    handles = engine.map(die, range(4), names=names)
    with pytest.raises(LostClusterError, match=r"Workers died while they worked on corpus/c\.gz, \d+ in all"):
        engine.tree_sum(handles)
    engine.release(handles)
    wait_until_clean(engine.client)


def client_holders(engine: DaskEngine, parts: Any) -> list[tuple[str, ...]]:
    """Return the workers that hold each partition."""
    holders = engine.client.who_has(list(parts.items))
    return [tuple(holders[future.key]) for future in parts.items]


def wait_until_clean(client: Any) -> None:
    """Wait until no worker holds or runs anything."""
    wait_until(lambda: not any(client.has_what().values()) and not any(client.processing().values()))


def wait_until(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
