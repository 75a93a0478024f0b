"""Partitions one after another, in this process."""

from __future__ import annotations

import pickle
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dualfield.engines.engine import Engine, Handles, add_in_order, tree_of

__all__ = ["Serial"]


class Serial(Engine):
    """Runs partitions one after another, each when its result is asked for.

    One partition is in memory at a time, and results that are kept as long as they fit into `memory`; what is beyond
    that goes to a temporary folder, and is read again each time.

    Parameters
    ----------
    memory : float, default=1e9
        Bytes for results that are kept.
    folder : path-like, default=None
        Where the rest goes; None: the folder for temporary files.

    Examples
    --------
    >>> from dualfield.engines import Serial
    >>> engine = Serial()
    >>> sums = engine.map(lambda part, factor: factor * sum(part), [[1, 2], [3]], 10)
    >>> engine.gather(sums), engine.tree_sum(sums)
    ([30, 30], 60)
    """

    def __init__(self, memory: float = 1e9, folder: str | Path | None = None) -> None:
        self._left, self._folder = float(memory), folder
        self._spilled: Path | None = None
        self._n_spilled = 0

    def map(
        self,
        function: Callable[..., Any],
        parts: Sequence[Any] | Handles,
        *shared: Any,
        each: Sequence[Any] | None = None,
        keep: bool = False,
        names: Sequence[str] | None = None,
    ) -> Handles:
        """Say what is to be done for each partition."""
        items = parts.items if isinstance(parts, Handles) else tuple(_Given(part) for part in parts)
        own = owned(items, each)
        later = (_Later(function, item, (*mine, *shared)) for item, mine in zip(items, own, strict=True))
        return Handles(tuple(_Kept(one, self) for one in later) if keep else tuple(later), names_of(parts, names))

    def tree_sum(self, handles: Handles, add: Callable[..., Any] | None = None) -> Any:
        """Add up results in the order of the partitions."""
        return tree_of(self.in_order(handles), add_in_order if add is None else add)

    def in_order(self, handles: Handles) -> Iterator[Any]:
        """Compute results one after another."""
        for item, name in zip(handles.items, handles.names, strict=True):
            try:
                value = item.value()
            except MemoryError as error:
                raise MemoryError(f"{name} does not fit into memory: make smaller partitions.") from error
            yield value

    def release(self, handles: Handles) -> None:
        """Forget results that were kept."""
        for item in handles.items:
            if isinstance(item, _Kept):
                self._left += item.forget()

    def close(self) -> None:
        """Remove the temporary folder."""
        if self._spilled is not None:
            shutil.rmtree(self._spilled, ignore_errors=True)
            self._spilled = None

    def _claim(self, size: int) -> Path | None:
        """Take memory for a result of this size; where there is none left, a file."""
        if size <= self._left:
            self._left -= size
            return None
        if self._spilled is None:
            self._spilled = Path(tempfile.mkdtemp(prefix="dualfield-", dir=self._folder))
            weakref.finalize(self, shutil.rmtree, self._spilled, ignore_errors=True)
        self._n_spilled += 1
        return self._spilled / f"{self._n_spilled:06d}.pickle"


class _Given:
    """A partition as it was given."""

    def __init__(self, part: Any) -> None:
        self._part = part

    def value(self) -> Any:
        return self._part


class _Later:
    """A function of a partition, computed each time it is asked for."""

    def __init__(self, function: Callable[..., Any], part: Any, shared: tuple[Any, ...]) -> None:
        self._function, self._part, self._shared = function, part, shared

    def value(self) -> Any:
        return self._function(self._part.value(), *self._shared)


class _Kept:
    """A result that is computed once, and then in memory or in a file."""

    def __init__(self, source: _Later, engine: Serial) -> None:
        self._source, self._engine = source, engine
        self._size, self._is_known = 0, False
        self._held: Any = None
        self._file: Path | None = None

    def value(self) -> Any:
        if not self._is_known:
            return self._compute()
        if self._file is None:
            return self._held
        with self._file.open("rb") as stream:
            return pickle.load(stream)

    def forget(self) -> int:
        """Return the bytes of memory that are free now."""
        free = self._size if self._is_known and self._file is None else 0
        if self._file is not None:
            self._file.unlink(missing_ok=True)
        self._held, self._file, self._is_known = None, None, False
        return free

    def _compute(self) -> Any:
        value = self._source.value()
        buffers: list[pickle.PickleBuffer] = []
        head = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        self._size = len(head) + sum(one.raw().nbytes for one in buffers)
        file = self._engine._claim(self._size)
        if file is None:
            self._held = value
        else:
            try:
                with file.open("wb") as stream:
                    pickle.dump(value, stream, protocol=5)
            except OSError as error:
                file.unlink(missing_ok=True)
                raise OSError(
                    error.errno,
                    f"a partition of {self._size:,} bytes cannot be kept in {file.parent}: {error.strerror}",
                ) from error
        self._file, self._is_known = file, True
        return value


def names_of(parts: Sequence[Any] | Handles, names: Sequence[str] | None) -> tuple[str, ...]:
    """Return what errors call partitions."""
    if names is not None:
        if len(names) != len(parts):
            raise ValueError(f"names must have one entry for each of {len(parts)} partitions. Got {len(names)}.")
        return tuple(names)
    return parts.names if isinstance(parts, Handles) else tuple(f"partition {at}" for at in range(len(parts)))


def owned(items: Sequence[Any], each: Sequence[Any] | None) -> list[tuple[Any, ...]]:
    """Return the arguments that partitions have each for itself."""
    if each is None:
        return [()] * len(items)
    if len(each) != len(items):
        raise ValueError(f"each must have one entry for each of {len(items)} partitions. Got {len(each)}.")
    return [(one,) for one in each]
