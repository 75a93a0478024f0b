"""What users pass as partitions, and how each of them is read where it is worked on."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch, CompiledCorpus, Labels, Partition
from dualfield.data.arrays import Codes
from dualfield.engines import Engine
from dualfield.features import Template
from dualfield.models.training_data import corpus_template


class LocalRows(NamedTuple):
    """A part of a compiled corpus in columns of its own.

    Attributes
    ----------
    nodes, pairs : Batch
        Rows; the second may be None.
    codes : int32 array
        Labels, by the codes of the corpus.
    columns, pair_columns : int array
        What the columns are called in the corpus; the second may be None.
    """

    nodes: Batch
    pairs: Batch | None
    codes: Codes
    columns: NDArray[Any]
    pair_columns: NDArray[Any] | None


@dataclass(frozen=True, eq=False, kw_only=True)
class PartSource:
    """Partitions that are still to be read.

    Parameters
    ----------
    items : sequence
        A value for each, such as a path, which is sent to where it is read.
    read : callable
        Makes a :class:`~dualfield.data.Partition` of an item, or for a corpus :class:`LocalRows`.
    names : list of str
        What errors call them.
    template : Template or None
        What made, or will make, the attributes.
    corpus : CompiledCorpus or None
        Where they are from, if they are compiled: columns and labels are known then.
    """

    items: Sequence[Any]
    read: Callable[..., Any]
    names: list[str]
    template: Template | None = None
    corpus: CompiledCorpus | None = None


def _is_lazy(value: Any) -> bool:
    """Whether something is a delayed value or a future of Dask."""
    return hasattr(value, "__dask_graph__") or type(value).__module__.startswith("distributed.")


def is_partitioned(X: Any, y: Any) -> bool:
    """Whether what ``fit`` is given are partitions, with their labels inside.

    Parameters
    ----------
    X, y : object
        The arguments of ``fit``.

    Returns
    -------
    bool
        True for a compiled corpus, a bag, and lists of paths, partitions, delayed values or futures, without `y`.

    Raises
    ------
    TypeError
        If a list begins with a partition, and something in it is none; if there are labels besides those inside of
        partitions; or if a list has pairs where partitions are meant.

    Examples
    --------
    >>> from dualfield.models.part_sources import is_partitioned
    >>> is_partitioned("corpus/*.gz", None), is_partitioned([[["a"]]], [["x"]])
    (True, False)
    """
    if y is not None:
        _refuse_other_labels(X, y)
        return False
    if isinstance(X, CompiledCorpus | PartSource) or hasattr(X, "to_delayed") or files_of(X):
        return True
    if not isinstance(X, list | tuple) or not X:
        return False
    if all(isinstance(one, tuple) and len(one) == 2 for one in X):
        raise TypeError(
            "y must be the labels of X, unless X are partitions. Got None, and tuples of length 2 in X: if they are "
            "pairs (X, y), pass one X and one y, or make each a dualfield.data.Partition.build(X, y)."
        )
    kinds = [_kind(one) for one in X]
    for at, kind in enumerate(kinds):
        if kinds[0] is not None and kind != kinds[0]:
            raise TypeError(f"X[{at}] must be {kinds[0]}, as X[0] is. Got {type(X[at]).__name__} instead.")
    return kinds[0] is not None


def _refuse_other_labels(X: Any, y: Any) -> None:
    """Raise if what has labels inside is given others; strings that no file has as its name may be text."""
    first = X[0] if isinstance(X, list | tuple) and X else X
    may_be_text = isinstance(first, str) and not glob.glob(first)  # noqa: PTH207
    if isinstance(first, CompiledCorpus) or (_kind(first) is not None and not may_be_text):
        raise TypeError(
            "y must be None where X are partitions, such as files: their labels are in them. Got "
            f"{type(y).__name__}, and {first!r:.50} in X."
        )


def _kind(value: Any) -> str | None:
    """Return what a partition is in the words of errors; None if it is none."""
    if isinstance(value, str | os.PathLike):
        return "the path of a file"
    return "a Partition, delayed value or future" if _is_lazy(value) or isinstance(value, Partition) else None


def files_of(X: Any) -> bool:
    """Whether partitions are files: a path, a glob, or a list of them.

    Parameters
    ----------
    X : object
        What is given.

    Returns
    -------
    bool
        Whether all of it are paths.

    Examples
    --------
    >>> from dualfield.models.part_sources import files_of
    >>> files_of(["a.gz", "b.gz"]), files_of([])
    (True, False)
    """
    listed = X if isinstance(X, list | tuple) else [X]
    return bool(listed) and all(isinstance(one, str | os.PathLike) for one in listed)


def client_of(X: Any) -> Any:
    """Return the client that futures belong to; None for other partitions.

    Parameters
    ----------
    X : object
        Partitions.

    Returns
    -------
    distributed.Client or None
        That of the first.

    Examples
    --------
    >>> from dualfield.models.part_sources import client_of
    >>> client_of(["a.gz", "b.gz"]) is None
    True
    """
    first = X[0] if isinstance(X, list | tuple) else X
    return first.client if type(first).__module__.startswith("distributed.") else None


def part_source(X: Any, template: Template | str | None, engine: Engine) -> PartSource:
    """Return partitions as they are read; files are for :mod:`dualfield.io.partition_files`.

    Parameters
    ----------
    X : PartSource, CompiledCorpus, bag, or list of Partition, delayed values or futures
        Bags have pairs (items, labels), values are pairs (X, y) or partitions.
    template : Template, str or None
        The parameter of the estimator.
    engine : Engine
        Where the first values are looked at, for the template "default".

    Returns
    -------
    PartSource
        With the template made for the data.

    Examples
    --------
    >>> from dualfield.data import Partition
    >>> from dualfield.engines import Serial
    >>> from dualfield.models.part_sources import part_source
    >>> part_source([Partition.build([[["a"]]], [["x"]])], None, Serial()).names
    ['partition 0']
    """
    if isinstance(X, PartSource):
        return X
    if isinstance(X, CompiledCorpus):
        names = [f"part {at} of {X.path}" for at in range(X.n_parts)]
        made = corpus_template(X, template)
        items = [(X, at) for at in range(X.n_parts)]
        return PartSource(items=items, read=_read_part, names=names, template=made, corpus=X)
    is_bag = hasattr(X, "to_delayed")
    items = list(X.to_delayed()) if is_bag else list(X)
    names = [f"partition {at}" for at in range(len(items))]
    made = _template_of(template, items, is_bag, engine)
    return PartSource(items=items, read=_ReadValue(made, is_bag), names=names, template=made)


def _template_of(template: Any, items: Sequence[Any], is_bag: bool, engine: Engine) -> Template | None:
    if template is None or isinstance(template, Template):
        return template
    if template == "chunking":
        return Template.chunking()
    if template != "default":
        return Template.parse(str(template))
    for item in items:
        (width,) = engine.gather(engine.map(_width, [item], is_bag))
        if width:
            return Template.default(width)
    return Template.default(1)


def _opened(value: Any, is_bag: bool) -> Any:
    """Return a value that may still have to be computed, as sentences and labels."""
    if _is_lazy(value):
        value = value.compute(scheduler="synchronous") if hasattr(value, "compute") else value.result()
    if isinstance(value, Partition):
        return value
    if is_bag:
        pairs = list(value)
        for at, pair in enumerate(pairs):
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise TypeError(
                    f"element {at} of the bag must be a pair (items, labels), a sentence. Got {type(pair).__name__} "
                    "instead. Text is read from paths or a glob, without a bag."
                )
        return [items for items, _ in pairs], [labels for _, labels in pairs]
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise TypeError(f"A partition must be a pair (X, y) or a Partition. Got {type(value).__name__} instead.")
    return tuple(value)


def _width(value: Any, is_bag: bool) -> int:
    """Return how many columns the first token has; 0 if there is none."""
    found = _opened(value, is_bag)
    if isinstance(found, Partition):
        raise ValueError("template must be None for partitions that have attributes already.")
    token = next((token for sentence in found[0] for token in sentence), None)
    return 0 if token is None else 1 if isinstance(token, str) else len(token)


class _ReadValue:
    """Makes a partition of a value."""

    __name__ = "read_value"

    def __init__(self, template: Template | None, is_bag: bool) -> None:
        self._template, self._is_bag = template, is_bag

    def __call__(self, value: Any) -> Partition:
        found = _opened(value, self._is_bag)
        if isinstance(found, Partition):
            return found
        X, y = found
        if not isinstance(X, Batch):
            return Partition.build(X, y, self._template)
        if X.vocabulary is None or self._template is not None:
            raise TypeError("A batch that is a partition must have a vocabulary, and no template is for it.")
        labels = Labels.fit(y, X.offsets) if X.n_nodes else None
        codes = np.zeros(0, np.int32) if labels is None else labels.encode(y, X.offsets)
        return Partition(X, None, labels, codes)


def _read_part(item: tuple[CompiledCorpus, int]) -> LocalRows:
    """Return a part of a compiled corpus in columns of its own."""
    corpus, number = item
    rows = corpus.part(number)
    nodes, columns = _with_own_columns(rows.nodes)
    pairs, pair_columns = (None, None) if rows.pairs is None else _with_own_columns(rows.pairs)
    return LocalRows(nodes, pairs, np.array(rows.codes), columns, pair_columns)


def _with_own_columns(batch: Batch) -> tuple[Batch, NDArray[Any]]:
    assert batch.indices is not None
    columns, places = np.unique(batch.indices, return_inverse=True)
    return (
        Batch(
            np.array(batch.offsets),
            len(columns),
            indptr=np.array(batch.indptr),
            indices=places.astype(np.int32),
            values=None if batch.values is None else np.array(batch.values),
        ),
        columns,
    )
