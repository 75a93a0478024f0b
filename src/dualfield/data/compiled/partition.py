"""Parts of a corpus that were read each for itself, and how they become one: names, labels and counts are merged.

Nothing here needs a file: partitions may lie in other processes, and only their summaries travel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dualfield.data.attributes import Vocabulary
from dualfield.data.batch import Batch
from dualfield.data.compiled.counts import FeatureCounts, count_pairs, pair_codes
from dualfield.data.labels import Labels

__all__ = ["MergedPartitions", "Partition", "PartitionSummary", "RowsOfPart", "merge_partitions"]


class RowReader(Protocol):
    """What turns sentences into rows: a template."""

    def read(self, X: Iterable[Any]) -> Any:
        """Return rows of nodes and of pairs."""


class RowsOfPart(NamedTuple):
    """Sentences in the columns and labels of the whole corpus.

    Attributes
    ----------
    nodes : Batch
        Attributes of the nodes.
    pairs : Batch or None
        Attributes of pairs of labels, where a template makes some.
    codes : int32 array of shape (n_nodes,)
        The labels.

    Examples
    --------
    >>> from dualfield.data import Partition, merge_partitions
    >>> part = Partition.build([[["a"], ["b"]]], [["x", "y"]])
    >>> rows = part.to_global(merge_partitions([part.summary]), 0)
    >>> rows.nodes, rows.pairs, rows.codes.tolist()
    (<Batch of 1 examples, 2 nodes, 2 columns, sparse>, None, [0, 1])
    """

    nodes: Batch
    pairs: Batch | None
    codes: NDArray[np.int32]


class ColumnMaps(NamedTuple):
    """What columns and labels of a partition are called in the whole corpus; `pairs` is None if there are none."""

    nodes: NDArray[np.int32]
    pairs: NDArray[np.int32] | None
    labels: NDArray[np.int32]


@dataclass(frozen=True, eq=False, kw_only=True)
class PartitionSummary:
    """What others must know of a partition: names, labels and counts, not the sentences.

    Parameters
    ----------
    n_examples, n_nodes : int
        Sizes.
    vocabulary : Vocabulary
        Attributes of nodes, numbered as they first occur.
    pair_vocabulary : Vocabulary or None
        Attributes of pairs of labels.
    labels : Labels or None
        Labels that occur; None if there are none.
    counts : FeatureCounts
        How often attributes occur with the labels.
    pair_counts : FeatureCounts or None
        How often attributes of pairs occur with pairs of the labels.
    transitions : pair of int64 arrays
        Pairs of labels that follow each other, ``first * n_labels + second``, and how often they do.

    Examples
    --------
    >>> from dualfield.data import Partition
    >>> summary = Partition.build([[["a"], ["b"]]], [["x", "y"]]).summary
    >>> summary.n_nodes, list(summary.vocabulary), summary.transitions[0].tolist()
    (2, ['a', 'b'], [1])
    """

    n_examples: int
    n_nodes: int
    vocabulary: Vocabulary
    pair_vocabulary: Vocabulary | None
    labels: Labels | None
    counts: FeatureCounts
    pair_counts: FeatureCounts | None
    transitions: tuple[NDArray[np.int64], NDArray[np.int64]]

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return 0 if self.labels is None else self.labels.n_classes


@dataclass(frozen=True, eq=False)
class Partition:
    """Sentences with a vocabulary and labels of their own.

    Parameters
    ----------
    nodes : Batch
        Attributes of the nodes, with the vocabulary of this partition.
    pairs : Batch or None
        Attributes of pairs of labels.
    labels : Labels or None
        Labels that occur here; None if there are none.
    codes : int32 array of shape (n_nodes,)
        Their codes.

    See Also
    --------
    merge_partitions : How partitions become one corpus.
    CompiledCorpus : The same on disk.

    Examples
    --------
    >>> from dualfield.data import Partition, merge_partitions
    >>> first = Partition.build([[["a"], ["b"]]], [["x", "y"]])
    >>> second = Partition.build([[["c"], ["a"]]], [["u", "x"]])
    >>> merged = merge_partitions([first.summary, second.summary])
    >>> list(merged.vocabulary), merged.labels.classes.tolist()
    (['a', 'b', 'c'], ['u', 'x', 'y'])
    >>> rows = second.to_global(merged, 1)
    >>> rows.nodes.indices, rows.codes
    (array([2, 0], dtype=int32), array([0, 1], dtype=int32))
    """

    nodes: Batch
    pairs: Batch | None
    labels: Labels | None
    codes: NDArray[np.int32]

    @classmethod
    def build(cls, X: Any, y: Any, template: RowReader | None = None) -> Partition:
        """Read sentences, a part of a corpus.

        Parameters
        ----------
        X : list of sentences
            Items as for :meth:`Batch.build <dualfield.data.Batch.build>`, which must have attributes; with a template
            its rows.
        y : list of lists of labels
            The labels.
        template : Template, default=None
            What makes attributes of rows.

        Returns
        -------
        Partition
            It may be empty.
        """
        X, pairs = list(X), None
        if template is None:
            nodes = Batch.build(X, name="X")
            if nodes.vocabulary is None:
                raise TypeError("X must have items given by attributes, lists of str or dicts. Got numbers instead.")
        else:
            nodes, pairs = template.read(X)
        y = list(y)
        labels = Labels.fit(y, nodes.offsets) if nodes.n_nodes else None
        codes = np.zeros(0, np.int32) if labels is None else labels.encode(y, nodes.offsets)
        return cls(nodes, pairs, labels, codes)

    @cached_property
    def summary(self) -> PartitionSummary:
        """What :func:`merge_partitions` needs."""
        nodes, n_labels = self.nodes, 0 if self.labels is None else self.labels.n_classes
        assert nodes.vocabulary is not None
        follow = pair_codes(self.codes, nodes.offsets, n_labels)
        of_pairs = None if self.pairs is None else FeatureCounts.of(self.pairs, follow, n_labels**2)
        return PartitionSummary(
            n_examples=nodes.n_examples,
            n_nodes=nodes.n_nodes,
            vocabulary=nodes.vocabulary,
            pair_vocabulary=None if self.pairs is None else self.pairs.vocabulary,
            labels=self.labels,
            counts=FeatureCounts.of(nodes, self.codes, n_labels),
            pair_counts=of_pairs,
            transitions=count_pairs(follow, n_labels),
        )

    def to_global(self, merged: MergedPartitions, number: int) -> RowsOfPart:
        """Return the sentences in the columns and labels of the whole corpus.

        Parameters
        ----------
        merged : MergedPartitions
            What all partitions were merged to.
        number : int
            Which of them this one is.

        Returns
        -------
        RowsOfPart
            Rows of the same sentences.
        """
        maps = merged.maps[number]
        pairs = None
        if self.pairs is not None and maps.pairs is not None and merged.pair_vocabulary is not None:
            pairs = renamed(self.pairs, maps.pairs, merged.pair_vocabulary)
        codes = maps.labels[self.codes] if self.codes.size else self.codes
        return RowsOfPart(renamed(self.nodes, maps.nodes, merged.vocabulary), pairs, codes)


@dataclass(frozen=True, eq=False, kw_only=True)
class MergedPartitions:
    """Partitions as one corpus.

    Parameters
    ----------
    n_examples, n_nodes : int
        Sizes of the corpus.
    vocabulary : Vocabulary
        Attributes of nodes, numbered as they first occur, partition by partition: equal to that of a batch of the
        whole corpus.
    pair_vocabulary : Vocabulary or None
        The same for pairs of labels.
    labels : Labels
        All labels.
    counts : FeatureCounts
        How often attributes occur with labels.
    pair_counts : FeatureCounts or None
        How often attributes of pairs occur with pairs of labels.
    transitions : pair of int64 arrays
        Pairs of labels that follow each other, ``first * n_labels + second``, and how often they do.
    maps : tuple of ColumnMaps
        For each partition, what its columns and labels are called in the corpus.

    Examples
    --------
    >>> from dualfield.data import Partition, merge_partitions
    >>> parts = [Partition.build([[[word]]], [[word]]) for word in "ba"]
    >>> merged = merge_partitions([part.summary for part in parts])
    >>> merged.n_nodes, merged.labels.classes.tolist(), merged.maps[0].labels.tolist()
    (2, ['a', 'b'], [1])
    """

    n_examples: int
    n_nodes: int
    vocabulary: Vocabulary
    pair_vocabulary: Vocabulary | None
    labels: Labels
    counts: FeatureCounts
    pair_counts: FeatureCounts | None
    transitions: tuple[NDArray[np.int64], NDArray[np.int64]]
    maps: tuple[ColumnMaps, ...]


def merge_partitions(summaries: Sequence[PartitionSummary]) -> MergedPartitions:
    """Merge partitions in their order.

    Parameters
    ----------
    summaries : sequence of PartitionSummary
        Those of all partitions, in order.

    Returns
    -------
    MergedPartitions
        The same as for one partition of all sentences.

    Raises
    ------
    ValueError
        If there is no label at all.
    TypeError
        If labels are of different kinds, or some partitions have attributes of pairs and others have not.

    Examples
    --------
    >>> from dualfield.data import Partition, merge_partitions
    >>> parts = [Partition.build([[[word]]], [[word]]) for word in "ba"]
    >>> merged = merge_partitions([part.summary for part in parts])
    >>> list(merged.vocabulary), merged.counts.outputs, merged.maps[1].nodes
    (['b', 'a'], array([1, 0], dtype=int32), array([1], dtype=int32))
    """
    labels = merge_labels([one.labels for one in summaries])
    of_labels = [label_map(one.labels, labels) for one in summaries]
    vocabulary, of_nodes = merge_vocabularies([one.vocabulary for one in summaries])
    with_pairs = {one.pair_vocabulary is not None for one in summaries if one.n_nodes}
    if len(with_pairs) > 1:
        raise TypeError("All partitions must be read by one template: some have attributes of pairs, others have not.")
    pair_vocabulary, of_pairs, pair_counts = None, None, None
    if True in with_pairs:
        pair_vocabulary, of_pairs = merge_vocabularies([one.pair_vocabulary or Vocabulary() for one in summaries])
        each = [
            _empty_counts()
            if one.pair_counts is None
            else renamed_pair_counts(one.pair_counts, names, labels.n_classes)
            for one, names in zip(summaries, of_labels, strict=True)
        ]
        pair_counts = FeatureCounts.sum(each, of_pairs, len(pair_vocabulary))
    counts = [
        replace(one.counts, outputs=names[one.counts.outputs], n_outputs=labels.n_classes)
        for one, names in zip(summaries, of_labels, strict=True)
    ]
    return MergedPartitions(
        n_examples=sum(one.n_examples for one in summaries),
        n_nodes=sum(one.n_nodes for one in summaries),
        vocabulary=vocabulary,
        pair_vocabulary=pair_vocabulary,
        labels=labels,
        counts=FeatureCounts.sum(counts, of_nodes, len(vocabulary)),
        pair_counts=pair_counts,
        transitions=sum_transitions(
            [one.transitions[0] for one in summaries],
            [one.transitions[1] for one in summaries],
            of_labels,
            labels.n_classes,
        ),
        maps=tuple(
            ColumnMaps(of_nodes[at], None if of_pairs is None else of_pairs[at], of_labels[at])
            for at in range(len(summaries))
        ),
    )


def merge_vocabularies(parts: Iterable[Vocabulary]) -> tuple[Vocabulary, list[NDArray[np.int32]]]:
    """Return the vocabulary of all, in order, and what the columns of each are called there."""
    merged = Vocabulary()
    return merged, [merged._native.insert_each(part._native) for part in parts]


def merge_labels(parts: Iterable[Labels | None]) -> Labels:
    """Return the union of labels."""
    found = [labels for labels in parts if labels is not None]
    if not found:
        raise ValueError("There must be at least one labelled token. Got none.")
    kinds = {labels.kind for labels in found}
    if len(kinds) > 1:
        raise TypeError(f"Labels must be of one kind in all partitions. Got {' and '.join(sorted(kinds))}.")
    names = sorted({name for labels in found for name in labels.classes.tolist()})
    return Labels(np.array(names), found[0].kind, found[0].arrays)


def label_map(labels: Labels | None, merged: Labels) -> NDArray[np.int32]:
    """Return what labels are called among those of all."""
    return np.zeros(0, np.int32) if labels is None else merged.encode(labels.classes.tolist())


def renamed(batch: Batch, names: NDArray[np.int32], vocabulary: Vocabulary) -> Batch:
    """Return the same rows with other columns."""
    assert batch.indices is not None
    indices = names[batch.indices] if batch.indices.size else batch.indices
    return replace(batch, indices=indices, n_columns=len(vocabulary), vocabulary=vocabulary, n_unknown=0)


def renamed_pair_counts(counts: FeatureCounts, names: NDArray[np.int32], n_labels: int) -> FeatureCounts:
    """Return counts of pairs of labels for pairs of labels of the whole corpus, which names say of each label."""
    first, second = np.divmod(counts.outputs, np.int32(max(names.size, 1)))
    outputs = names[first] * np.int32(n_labels) + names[second]
    return replace(counts, outputs=outputs, n_outputs=n_labels**2)


def _empty_counts() -> FeatureCounts:
    return FeatureCounts(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64), 0)


def sum_transitions(
    pairs: Sequence[NDArray[np.int64]],
    counts: Sequence[NDArray[np.int64]],
    of_labels: Sequence[NDArray[np.int32]],
    n_labels: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Add up how often pairs of labels follow each other; names say what the labels of each part are called."""
    joined = []
    for found, names in zip(pairs, of_labels, strict=True):
        first, second = np.divmod(found, max(names.size, 1))
        joined.append(names[first].astype(np.int64) * n_labels + names[second])
    all_pairs, places = np.unique(np.concatenate(joined), return_inverse=True)
    total = np.zeros(all_pairs.size, np.int64)
    np.add.at(total, places, np.concatenate(counts))
    return all_pairs, total
