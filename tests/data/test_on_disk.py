"""Vectors in temporary files: the same numbers, no names, and errors that say what to do."""

from __future__ import annotations

import mmap
import resource
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dualfield.data.on_disk import joined


def owner(array: Any) -> Any:
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


def test_the_same_numbers_in_a_file_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    vectors = [np.arange(5.0), np.array([-0.0, np.nan]), np.zeros(0)]
    here, there = joined(vectors), joined(vectors, on_disk=True)
    assert here.tobytes() == there.tobytes() == b"".join(vector.tobytes() for vector in vectors)
    assert isinstance(owner(there), mmap.mmap)
    assert not isinstance(owner(here), mmap.mmap)
    assert not list(tmp_path.iterdir())
    there[0] = 7.0
    assert (there[0], vectors[0][0]) == (7.0, 0.0)


def test_one_vector_in_memory_is_not_copied_and_none_are_empty() -> None:
    vector = np.ones(3)
    assert joined([vector]) is vector
    assert joined([]).size == joined([], on_disk=True).size == joined([np.zeros(0)], on_disk=True).size == 0


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(OSError, match=r"vectors of 24 bytes cannot be kept in .*missing: No such file"):
        joined([np.ones(3)], on_disk=True)


def test_a_file_that_cannot_grow_is_an_error_when_it_is_written() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    vector = np.ones(100_000)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match=r"vectors of 800,000 bytes cannot be kept in .*Let TMPDIR name"):
            joined([vector], on_disk=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
