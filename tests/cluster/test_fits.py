"""Fits on real worker processes: the same bytes whoever ran what, and when workers, scheduler or driver die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone

from dualfield import CRF
from dualfield.engines import LostClusterError
from dualfield.estimators import Checkpoint
from dualfield.io import compile_corpus
from dualfield.io.partition_files import partition_files, read_file
from dualfield.solvers import LBFGS
from tests.cluster.conftest import new_cluster
from tests.cluster.corpus import write_corpus
from tests.cluster.faults import PATIENCE, Killer, trap, wait_for


def crf() -> CRF:
    return CRF(C=3.0, tol=1e-3)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def undisturbed(paths: list[Path]) -> CRF:
    """The fit without a cluster."""
    model = crf().fit(paths)
    assert model.status_.value == "converged"
    assert 22 <= model.trace_.passes[-1] <= 60
    return model


def is_clean(client: Any) -> bool:
    return not any(client.has_what().values()) and not any(client.processing().values())


def check_same(model: CRF, expected: CRF) -> None:
    assert model.parameters_.tobytes() == expected.parameters_.tobytes()
    assert model.dual_gap_ == expected.dual_gap_
    assert model.trace_.passes.tolist() == expected.trace_.passes.tolist()
    assert model.classes_.tolist() == ["L0", "L1", "L2", "rare"]


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_the_same_bytes_on_any_number_of_workers(
    n_workers: int, cluster: Any, paths: list[Path], undisturbed: CRF
) -> None:
    from distributed import Client

    cluster.scale(n_workers)
    with Client(cluster, set_as_default=False) as client:
        wait_for(lambda: len(client.scheduler_info()["workers"]) == n_workers)
        model = crf().fit(paths, client=client)
        check_same(model, undisturbed)
        assert (model.n_partitions_, model.n_rounds_) == (6, undisturbed.n_rounds_)
        wait_for(lambda: is_clean(client))


def test_two_of_three_workers_killed_in_the_middle_of_rounds(
    client: Any, paths: list[Path], undisturbed: CRF, tmp_path: Path
) -> None:
    workers = set(client.run(os.getpid).values())
    client.run(trap, tmp_path)
    killer = Killer(tmp_path, (8, 20))
    model = crf().fit(paths, client=client, monitor=killer)
    killed = killer.end()
    assert len(killed) == 2
    assert set(killed) <= workers
    check_same(model, undisturbed)
    assert model.n_rounds_ == undisturbed.n_rounds_


def test_vectors_on_the_disk_of_the_driver_and_a_worker_killed(
    client: Any, paths: list[Path], undisturbed: CRF, tmp_path: Path
) -> None:
    client.run(trap, tmp_path)
    killer = Killer(tmp_path, (10,))
    model = crf().set_params(solver=LBFGS(in_memory=0.0)).fit(paths, client=client, monitor=killer)
    assert len(killer.end()) == 1
    check_same(model, undisturbed)


def test_a_straggler_changes_nothing(client: Any, paths: list[Path], undisturbed: CRF, tmp_path: Path) -> None:
    client.run(trap, tmp_path)
    slow = next(iter(client.run(os.getpid).values()))
    (tmp_path / f"slow-{slow}").touch()
    check_same(crf().fit(paths, client=client), undisturbed)


def test_other_forms_of_partitions(client: Any, paths: list[Path], tmp_path: Path) -> None:
    dask = pytest.importorskip("dask")
    from dask import bag

    from dualfield.io import read_crfsuite_items

    short = CRF(C=3.0, tol=0.3, solver="lbfgs")  # a few exchanges tell
    expected = clone(short).fit(paths)
    read = dask.delayed(read_crfsuite_items)
    values = [read(str(path)) for path in paths]
    pairs = bag.from_delayed([dask.delayed(paired)(value) for value in values])
    futures = [client.compute(value) for value in values]  # whose cluster is taken
    for parts, address in ((values, client), (pairs, client.scheduler.address), (futures, None)):
        model = clone(short).fit(parts, client=address)
        assert model.parameters_.tobytes() == expected.parameters_.tobytes()
    corpus = compile_corpus([str(path) for path in paths], tmp_path / "compiled", parts=5, form="crfsuite")
    here, there = (clone(short).fit(corpus, client=one) for one in (None, client))
    assert here.parameters_.tobytes() == there.parameters_.tobytes()
    assert there.n_partitions_ == 5
    assert abs(there.objective_ - expected.objective_) <= there.dual_gap_ + expected.dual_gap_


def paired(value: Any) -> list[tuple[Any, Any]]:
    return list(zip(*value, strict=True))


def test_scattered_partitions_that_are_lost_are_told(paths: list[Path]) -> None:
    from distributed import Client

    with new_cluster(1) as small, Client(small, set_as_default=False) as client:
        parts = client.scatter([read_file(item) for item in partition_files(paths, template=None).items()])
        (victim,) = client.run(os.getpid).values()

        def kill(moment: Any, _: Any) -> bool:
            if moment.passes == 4:
                os.kill(victim, signal.SIGKILL)
            return False

        with pytest.raises(LostClusterError, match="scattered to a worker that is lost"):
            crf().fit(parts, client=client, monitor=kill)


def test_a_damaged_file_is_named_and_workers_are_left_clean(
    client: Any, paths: list[Path], undisturbed: CRF, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.txt"
    lines = paths[3].read_text().split("\n")
    lines[6] = "label\\x\tattribute:not-a-number"
    damaged.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"damaged\.txt, line 7: "):
        crf().fit([*paths[:3], damaged, *paths[4:]], client=client)
    wait_for(lambda: is_clean(client))
    check_same(crf().fit(paths, client=client), undisturbed)


def test_the_scheduler_is_lost_and_a_new_cluster_goes_on(
    client: Any, paths: list[Path], undisturbed: CRF, tmp_path: Path
) -> None:
    kept = Checkpoint(tmp_path / "fit.checkpoint", every=0.0)
    with new_cluster(1) as other:

        def stop(moment: Any, model: Any) -> bool:
            if moment.passes >= 10:
                other.close()
            return False

        with pytest.raises(LostClusterError, match="fit again with the same checkpoint"):
            crf().fit(paths, client=other.scheduler_address, checkpoint=kept, monitor=stop)
    assert Path(kept.path).exists()
    check_same(crf().fit(paths, client=client, checkpoint=kept), undisturbed)
    assert not Path(kept.path).exists()


DRIVER = """
import sys, time
from dualfield import CRF
from dualfield.estimators import Checkpoint

def wait(moment, model):
    if moment.passes >= 12:
        open(sys.argv[2] + ".waits", "w").close()
        time.sleep(600)

CRF(C=3.0, tol=1e-3).fit(sys.argv[3:], client=sys.argv[1], checkpoint=Checkpoint(sys.argv[2], every=0.0), monitor=wait)
"""


def test_the_driver_is_killed(client: Any, paths: list[Path], undisturbed: CRF, tmp_path: Path) -> None:
    kept = tmp_path / "fit.checkpoint"
    command = [sys.executable, "-c", DRIVER, client.scheduler.address, str(kept), *map(str, paths)]
    driver = subprocess.Popen(command)
    try:
        end = time.monotonic() + PATIENCE
        while not Path(f"{kept}.waits").exists():
            assert driver.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
    wait_for(lambda: is_clean(client))  # what it held on the workers is gone with it
    check_same(crf().fit(paths, client=client, checkpoint=kept), undisturbed)


def read_too_much() -> None:
    """Let reading the second file take ever more memory in this process; run on workers."""
    from dualfield.models import partitioned_data

    read = partitioned_data._read

    def swallow(item: Any, name: str, reader: Any) -> Any:
        held = []
        while name.endswith("part1.txt"):
            held.append(bytearray(os.urandom(1 << 20) * 32))
            time.sleep(0.01)
        return read(item, name, reader)

    partitioned_data._read = swallow


def test_a_worker_that_runs_out_of_memory(paths: list[Path]) -> None:
    dask = pytest.importorskip("dask")
    from distributed import Client

    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.worker.memory.monitor-interval": "20ms"}
    short = CRF(C=3.0, tol=0.3, solver="lbfgs")
    with (
        dask.config.set(settings),
        new_cluster(1, memory_limit="700MiB") as small,
        Client(small, set_as_default=False) as client,
    ):
        client.run(read_too_much)
        # Which of the files that the worker had in hand, Dask cannot know.
        with pytest.raises(LostClusterError, match=r"Workers died while they worked on \S*part\d\.txt, 1 in all"):
            clone(short).fit(paths, client=client)
        small.scale(2)
        client.wait_for_workers(1, timeout=PATIENCE)
        model = clone(short).fit(paths, client=client)  # on a new worker, which reads as ever
    assert model.parameters_.tobytes() == clone(short).fit(paths).parameters_.tobytes()
