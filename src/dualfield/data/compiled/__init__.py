"""Compiled corpora: partitions on disk that are larger than memory, and how partitions are merged."""

from dualfield.data.compiled.array_file import CorpusFileError
from dualfield.data.compiled.corpus import BlockRanges, ByteRange, CompiledCorpus
from dualfield.data.compiled.counts import FeatureCounts
from dualfield.data.compiled.partition import (
    MergedPartitions,
    Partition,
    PartitionSummary,
    RowsOfPart,
    merge_partitions,
)

__all__ = [
    "BlockRanges",
    "ByteRange",
    "CompiledCorpus",
    "CorpusFileError",
    "FeatureCounts",
    "MergedPartitions",
    "Partition",
    "PartitionSummary",
    "RowsOfPart",
    "merge_partitions",
]
