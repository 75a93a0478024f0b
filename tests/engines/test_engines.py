"""Engines in this process: the tree of sums, what is kept where, and what is refused. The cluster: tests/cluster."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualfield.engines import Serial, add_in_order, engine_of
from dualfield.engines.engine import tree_of


def bracketed(*children: str) -> str:
    return f"({''.join(children)})"


def by_layers(values: list[str]) -> str:
    while len(values) > 1:
        values = [bracketed(*values[at : at + 4]) for at in range(0, len(values), 4)]
    return values[0]


@pytest.mark.parametrize("n", [*range(1, 23), 63, 64, 65, 256, 257])
def test_the_tree_is_that_of_layers(n: int) -> None:
    values = [chr(0x4E00 + at) for at in range(n)]
    assert tree_of(iter(values), bracketed) == by_layers(values)


def test_a_tree_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no partitions"):
        tree_of(iter([]), bracketed)


def test_tuples_and_arrays_are_added_from_left_to_right() -> None:
    found = add_in_order((1e16, np.array([1.0])), (1.0, np.array([2.0])), (-1e16, np.array([3.0])))
    assert found[0] == 0.0  # 1e16 + 1 is 1e16
    np.testing.assert_array_equal(found[1], [6.0])


class Notes:
    """Counts how often partitions were read."""

    def __init__(self) -> None:
        self.read: list[int] = []

    def __call__(self, part: int) -> np.ndarray:
        self.read.append(part)
        return np.full(1000, float(part))


def test_partitions_are_read_one_at_a_time_and_kept_within_memory(tmp_path: Path) -> None:
    notes = Notes()
    engine = Serial(memory=20_000, folder=tmp_path)
    parts = engine.map(notes, range(5), keep=True)
    assert notes.read == []
    first = next(engine.in_order(parts))
    assert notes.read == [0]
    assert first[0] == 0.0
    for _ in range(3):
        assert engine.tree_sum(engine.map(np.sum, parts)) == 10_000.0
    assert notes.read == [0, 1, 2, 3, 4]
    assert len(list(tmp_path.rglob("*.pickle"))) == 3  # two of 8,000 bytes are in memory
    engine.release(parts)
    assert list(tmp_path.rglob("*.pickle")) == []
    assert engine.tree_sum(engine.map(np.sum, parts)) == 10_000.0
    engine.close()
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_kept_is_computed_again() -> None:
    notes = Notes()
    engine = Serial()
    parts = engine.map(notes, range(2))
    assert engine.gather(engine.map(len, parts)) == [1000, 1000]
    assert engine.gather(engine.map(len, parts)) == [1000, 1000]
    assert notes.read == [0, 1, 0, 1]


def too_large(part: Any) -> Any:
    raise MemoryError


def test_a_partition_that_does_not_fit_is_named() -> None:
    engine = Serial()
    with pytest.raises(MemoryError, match=r"a\.gz does not fit into memory"):
        engine.gather(engine.map(too_large, [1], names=["a.gz"]))


def test_names_must_be_as_many_as_partitions() -> None:
    with pytest.raises(ValueError, match=r"one entry for each of 2 partitions\. Got 1"):
        Serial().map(len, ["a", "b"], names=["a"])


def test_a_disk_that_is_full_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    engine = Serial(memory=0, folder=tmp_path)
    parts = engine.map(str.upper, ["abc"], keep=True)
    monkeypatch.setattr("pickle.dump", full)
    with pytest.raises(OSError, match=r"cannot be kept in .*: No space left on device"):
        engine.gather(parts)
    assert list(tmp_path.rglob("*.pickle")) == []


def test_engine_of_what_users_pass() -> None:
    pytest.importorskip("distributed")
    assert isinstance(engine_of(None), Serial)
    with pytest.raises(TypeError, match=r"client must be None, a distributed\.Client or the address.*Got int"):
        engine_of(3)
    for address in ("", "127.0.0.1", "tcp://127.0.0.1"):
        with pytest.raises(ValueError, match=f"the address of a scheduler with its port.*Got '{address}'"):
            engine_of(address)


def test_nobody_at_the_address() -> None:
    pytest.importorskip("distributed")
    port = random.Random(0).randint(61000, 65000)
    with pytest.raises(ConnectionError, match=rf"no Dask scheduler answers at 'tcp://127.0.0.1:{port}'"):
        engine_of(f"tcp://127.0.0.1:{port}", patience=0.5)
    with pytest.raises(ConnectionError, match="no Dask scheduler answers at 'nonsense://host'"):
        engine_of("nonsense://host", patience=0.5)
