"""Compiled corpora: sentences in memory-mapped partitions, read in blocks.

The folder of a corpus has a header, ``corpus.json``, and files of flat arrays (see ``array_file.py``):

=====================  ==============================================================================================
``vocabulary.bin``     attributes in column order: ``arena``, ``offsets``, and ``slots``, by which they are looked up
``counts.bin``         how often columns occur with labels: ``indptr``, ``outputs``, ``counts``
``pair_*.bin``         the same two for attributes of pairs of labels, where a template makes some
``transitions.bin``    ``pairs`` of labels that follow each other, and ``counts``
``blocks.bin``         ``part_starts`` [n_parts + 1], the first block of each part, and ``bounds`` [n_blocks, 2, 4]:
                       examples, nodes, entries and entries of pairs of the part before the block, and before its end
``part-00000.bin``     a partition
=====================  ==============================================================================================

The arrays of a partition, all little-endian, each from a multiple of 64 bytes on:

================  ==========  ==========================================================================================
``offsets``       int64       [n_examples + 1] where each sentence starts, in nodes of the part
``indptr``        int64       [n_nodes + 1] where each row starts in `indices`
``codes``         int32       [n_nodes] the labels
``indices``       int32       [n_entries] columns of the corpus
``values``        float64     [n_entries] weights; only where the input has weights
``pair_indptr``   int64       [n_nodes + 1] rows of attributes of pairs, where there are some
``pair_indices``  int32       [n_pair_entries] their columns
``numbers``       int64       [n_examples] which sentence of the input, counted through all files
================  ==========  ==========================================================================================

A block is a slice of each of them, so that it can be read by one ``pread`` for each array:
:meth:`CompiledCorpus.ranges` gives the bytes. `offsets`, `indptr` and `pair_indptr` of a block count
from the beginning of its part.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.data.attributes import Vocabulary
from dualfield.data.batch import Batch
from dualfield.data.compiled.array_file import ArrayFile
from dualfield.data.compiled.counts import FeatureCounts
from dualfield.data.compiled.folder import part_name
from dualfield.data.compiled.header import CorpusColumns, TemplateText, read_header
from dualfield.data.compiled.partition import RowsOfPart
from dualfield.data.labels import Labels
from dualfield.data.mapped_vocabulary import MappedVocabulary
from dualfield.data.records import Record

__all__ = ["BlockRanges", "ByteRange", "CompiledCorpus"]


class ByteRange(NamedTuple):
    """Bytes of a file.

    Attributes
    ----------
    start : int
        Where they begin.
    nbytes : int
        How many they are.

    Examples
    --------
    >>> from dualfield.data import ByteRange
    >>> ByteRange(64, 128).nbytes
    128
    """

    start: int
    nbytes: int


@dataclass(frozen=True, kw_only=True)
class BlockRanges:
    """Where the arrays of a block lie in the file of its part; iterated over, path and ranges come in this order.

    Parameters
    ----------
    path : Path
        The file of the part.
    offsets, indptr, codes, indices : ByteRange
        Arrays that every corpus has.
    values : ByteRange or None
        Weights of attributes; None: there are none.
    pair_indptr, pair_indices : ByteRange or None
        Attributes of pairs of labels; None: there are none.

    Examples
    --------
    >>> from pathlib import Path
    >>> from dualfield.data import BlockRanges, ByteRange
    >>> places = [ByteRange(64 * at, 64) for at in range(4)]
    >>> names = ("offsets", "indptr", "codes", "indices")
    >>> more = {"values": None, "pair_indptr": None, "pair_indices": None}
    >>> BlockRanges(path=Path("part-00000.bin"), **dict(zip(names, places)), **more).codes.start
    128
    """

    path: Path
    offsets: ByteRange
    indptr: ByteRange
    codes: ByteRange
    indices: ByteRange
    values: ByteRange | None
    pair_indptr: ByteRange | None
    pair_indices: ByteRange | None

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, field.name) for field in fields(self))


class CompiledCorpus:
    """A corpus that ``dualfield compile`` has made: sentences in partitions on disk, which are mapped, not read.

    Sentences are shuffled. They are cut into *blocks* of about 0.75 MB, or smaller ones in a small corpus; a *part* is
    a list of blocks. Nothing of the sentences is in memory but what is being looked at.

    Parameters
    ----------
    path : path-like
        The folder.

    Attributes
    ----------
    path : Path
        The folder, absolute: the working directory may change.
    labels : Labels
        All labels.
    vocabulary : Vocabulary
        Attributes of nodes, looked up in a mapped file.
    pair_vocabulary : Vocabulary or None
        Attributes of pairs of labels, where a template makes some.
    template : TemplateText or None
        The template that made the attributes: ``Template(*corpus.template)``.
    columns : CorpusColumns or None
        Columns of the input files: ``FileColumns(*corpus.columns)``.
    form : str
        The format of the input: "conll", "crfsuite", "parquet" or "python".
    seed : int
        That of the shuffle.
    sources : tuple of str
        The input files.
    n_examples, n_nodes, n_entries : int
        Sentences, tokens, and attributes of all tokens.
    n_columns : int
        Number of distinct attributes.
    n_pair_columns : int or None
        The same of attributes of pairs.
    n_parts, n_blocks : int
        How the sentences are cut.
    is_weighted : bool
        Whether attributes have weights.

    Raises
    ------
    CorpusFileError
        If the folder is not a compiled corpus, or a file in it is missing, cut off or of another corpus.

    See Also
    --------
    dualfield.io.compile_corpus : What makes one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dualfield.data import CompiledCorpus
    >>> from dualfield.io import compile_corpus
    >>> X = [[["a"], ["b"]], [["b"]], [["c"], ["a"], ["c"]]]
    >>> y = [["x", "y"], ["x"], ["y", "x", "x"]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     corpus = compile_corpus([(X, y)], Path(folder, "corpus"), parts=2)
    ...     print(corpus, corpus.labels.classes.tolist(), sorted(corpus.vocabulary))
    ...     print(sum(corpus.block(b).nodes.n_nodes for b in range(corpus.n_blocks)))
    <CompiledCorpus of 3 examples, 6 nodes, 3 columns, 2 parts, 3 blocks> ['x', 'y'] ['a', 'b', 'c']
    6
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).resolve()
        header = read_header(self.path)
        for name in ("n_examples", "n_nodes", "n_entries", "n_columns", "n_parts", "n_blocks", "seed"):
            setattr(self, name, header.integer(name, 0))
        self.n_examples: int
        self.n_nodes: int
        self.n_entries: int
        self.n_columns: int
        self.n_parts: int
        self.n_blocks: int
        self.seed: int
        has_pairs = header.json("n_pair_columns") is not None
        self.n_pair_columns = header.integer("n_pair_columns", 0) if has_pairs else None
        self.is_weighted = header.flag("is_weighted")
        self.form = header.text("form")
        self.sources = tuple(header.items("sources", str))
        self.template = None if header.json("template") is None else TemplateText(*header.items("template", str, 2))
        self.columns = _columns(header)
        self.labels = _labels(header)
        self._header = header
        self.vocabulary: Vocabulary = self._words("vocabulary.bin")
        self.pair_vocabulary: Vocabulary | None = self._words("pair_vocabulary.bin") if has_pairs else None
        blocks = ArrayFile(self.path / "blocks.bin")
        self._part_starts = np.asarray(blocks.array("part_starts"))
        self._bounds = np.asarray(blocks.array("bounds"))
        header.check(
            self._part_starts.shape == (self.n_parts + 1,) and self._bounds.shape == (self.n_blocks, 2, 4),
            "its blocks do not agree with its sizes.",
        )
        self._files: dict[int, ArrayFile] = {}

    def _words(self, name: str) -> Vocabulary:
        file = ArrayFile(self.path / name)
        arrays = {one: np.asarray(file.array(one)) for one in ("arena", "offsets", "slots")}
        return MappedVocabulary(Record(arrays, self._header.source, name))

    def _file(self, part: int) -> ArrayFile:
        if part not in self._files:
            self._files[part] = ArrayFile(self.path / part_name(part))
        return self._files[part]

    def part_of(self, block: int) -> int:
        """Return the part that a block belongs to.

        Parameters
        ----------
        block : int
            A block in [0, n_blocks).

        Returns
        -------
        int
            Its part.
        """
        self._check("block", block, self.n_blocks)
        return int(np.searchsorted(self._part_starts, block, side="right")) - 1

    def blocks_of(self, part: int) -> range:
        """Return the blocks of a part.

        Parameters
        ----------
        part : int
            A part in [0, n_parts).

        Returns
        -------
        range
            Its blocks; empty for an empty part.
        """
        self._check("part", part, self.n_parts)
        return range(int(self._part_starts[part]), int(self._part_starts[part + 1]))

    def block(self, block: int) -> RowsOfPart:
        """Return the sentences of a block.

        Parameters
        ----------
        block : int
            A block in [0, n_blocks).

        Returns
        -------
        RowsOfPart
            Columns, weights and labels lie in the mapped file; offsets are copied, so that they begin with 0.
        """
        part = self.part_of(block)
        return self._rows(self._file(part), self._bounds[block, 0], self._bounds[block, 1])

    def part(self, part: int) -> RowsOfPart:
        """Return the sentences of a part.

        Parameters
        ----------
        part : int
            A part in [0, n_parts).

        Returns
        -------
        RowsOfPart
            Arrays that lie in the mapped file.
        """
        self._check("part", part, self.n_parts)
        file = self._file(part)
        pairs = file.table["pair_indices"][1][0] if "pair_indices" in file else 0
        sizes = [file.table[name][1][0] for name in ("numbers", "codes", "indices")]
        return self._rows(file, np.zeros(4, np.int64), np.array([*sizes, pairs]))

    def numbers(self, part: int) -> NDArray[np.int64]:
        """Return which sentences of the input a part has, counted through all files from 0.

        Parameters
        ----------
        part : int
            A part in [0, n_parts).

        Returns
        -------
        int64 array
            A number for each sentence, in the order of the part.
        """
        self._check("part", part, self.n_parts)
        return np.asarray(self._file(part).array("numbers"))

    def ranges(self, block: int) -> BlockRanges:
        """Return where the arrays of a block lie on disk, for those who read it into buffers of their own.

        Parameters
        ----------
        block : int
            A block in [0, n_blocks).

        Returns
        -------
        BlockRanges
            The file and bytes in it. Offsets and indptr count from the beginning of the part.
        """
        file = self._file(self.part_of(block))
        (e0, n0, q0, p0), (e1, n1, q1, p1) = self._bounds[block].tolist()
        slices = {
            "offsets": (e0, e1 + 1),
            "indptr": (n0, n1 + 1),
            "codes": (n0, n1),
            "indices": (q0, q1),
            "values": (q0, q1),
            "pair_indptr": (n0, n1 + 1),
            "pair_indices": (p0, p1),
        }
        found: dict[str, Any] = {}
        for name, (start, stop) in slices.items():
            if name in file:
                size = file.table[name][0].itemsize
                found[name] = ByteRange(file.place(name) + start * size, (stop - start) * size)
        named: dict[str, Any] = {name: found.get(name) for name in slices}
        return BlockRanges(path=file.path, **named)

    def block_nbytes(self, block: int) -> int:
        """Return how many bytes the arrays of a block have.

        Parameters
        ----------
        block : int
            A block in [0, n_blocks).

        Returns
        -------
        int
            The sum over its arrays.
        """
        return sum(one.nbytes for one in self.ranges(block) if isinstance(one, ByteRange))

    def block_sizes(self) -> NDArray[np.int64]:
        """Return how many sentences, nodes, entries and entries of pairs each block has.

        Returns
        -------
        int64 array of shape (n_blocks, 4)
            The sizes.
        """
        return np.asarray(self._bounds[:, 1] - self._bounds[:, 0])

    def feature_counts(self) -> FeatureCounts:
        """Return how often each column occurs with each label.

        Returns
        -------
        FeatureCounts
            In the mapped file. ``FeatureTable(*counts.at_least(min_freq), counts.n_outputs)`` equals
            :meth:`FeatureTable.observed <dualfield.scores.FeatureTable.observed>` of all sentences.
        """
        return self._counts("counts.bin", self.labels.n_classes)

    def pair_counts(self) -> FeatureCounts | None:
        """Return how often each column of pairs occurs with each pair of labels, ``first * n_labels + second``.

        Returns
        -------
        FeatureCounts or None
            None if there are no attributes of pairs.
        """
        return None if self.pair_vocabulary is None else self._counts("pair_counts.bin", self.labels.n_classes**2)

    def transitions(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the pairs of labels that follow each other, and how often they do.

        Returns
        -------
        pairs, counts : int64 arrays
            Pairs are ``first * n_labels + second``, rising: the cliques of a chain of order 1.
        """
        file = ArrayFile(self.path / "transitions.bin")
        return np.asarray(file.array("pairs")), np.asarray(file.array("counts"))

    def verify(self) -> None:
        """Compare all bytes with their digests, which reads all files once.

        Raises
        ------
        CorpusFileError
            If a byte has changed; the message names the file.
        """
        for name in self._header.json("files"):
            ArrayFile(self.path / name).verify()

    def __iter__(self) -> Iterator[RowsOfPart]:
        return map(self.part, range(self.n_parts))

    def __len__(self) -> int:
        return self.n_parts

    def __repr__(self) -> str:
        sizes = f"{self.n_examples} examples, {self.n_nodes} nodes, {self.n_columns} columns"
        return f"<CompiledCorpus of {sizes}, {self.n_parts} parts, {self.n_blocks} blocks>"

    def __reduce__(self) -> tuple[type[CompiledCorpus], tuple[str]]:
        return type(self), (os.fspath(self.path),)

    def _check(self, what: str, value: int, stop: int) -> None:
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise TypeError(f"'{what}' must be an int in [0, {stop}). Got {value!r:.50} instead.")
        if not 0 <= value < stop:
            raise IndexError(f"'{what}' must be an int in [0, {stop}). Got {value!r} instead.")

    def _counts(self, name: str, n_outputs: int) -> FeatureCounts:
        file = ArrayFile(self.path / name)
        indptr, outputs, counts = (np.asarray(file.array(one)) for one in ("indptr", "outputs", "counts"))
        return FeatureCounts(indptr, outputs, counts, n_outputs)

    def _rows(self, file: ArrayFile, start: NDArray[np.int64], stop: NDArray[np.int64]) -> RowsOfPart:
        (e0, n0, q0, p0), (e1, n1, q1, p1) = start.tolist(), stop.tolist()
        offsets = _from_zero(file.array("offsets")[e0 : e1 + 1])
        nodes = Batch(
            offsets,
            self.n_columns,
            indptr=_from_zero(file.array("indptr")[n0 : n1 + 1]),
            indices=file.array("indices")[q0:q1],
            values=file.array("values")[q0:q1] if self.is_weighted else None,
            vocabulary=self.vocabulary,
        )
        pairs = None
        if self.n_pair_columns is not None:
            pairs = Batch(
                offsets,
                self.n_pair_columns,
                indptr=_from_zero(file.array("pair_indptr")[n0 : n1 + 1]),
                indices=file.array("pair_indices")[p0:p1],
                vocabulary=self.pair_vocabulary,
            )
        return RowsOfPart(nodes, pairs, file.array("codes")[n0:n1])


def _from_zero(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    return bounds if bounds[0] == 0 else bounds - bounds[0]


def _columns(header: Record) -> CorpusColumns | None:
    found = header.json("columns")
    if found is None:
        return None
    header.check(isinstance(found, list) and len(found) == 3 and isinstance(found[1], list), "its 'columns' are wrong.")
    return CorpusColumns(int(found[0]), tuple(map(int, found[1])), int(found[2]))


def _labels(header: Record) -> Labels:
    kind = header.text("label_kind", ("str", "int", "bool"))
    names = header.items("labels", {"str": str, "int": int, "bool": bool}[kind])
    header.check(bool(names) and names == sorted(set(names)), "its labels must be distinct and in order.")
    return Labels(np.array(names), kind)  # type: ignore[arg-type]
