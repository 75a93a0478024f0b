"""Input: examples of unequal size, attributes, labels and trees, in all forms that users pass."""

from dualfield.data.attributes import Vocabulary
from dualfield.data.batch import Batch
from dualfield.data.compiled import (
    BlockRanges,
    ByteRange,
    CompiledCorpus,
    CorpusFileError,
    FeatureCounts,
    MergedPartitions,
    Partition,
    PartitionSummary,
    RowsOfPart,
    merge_partitions,
)
from dualfield.data.labels import Labels
from dualfield.data.parse_trees.dependency_sentence import DependencySentence
from dualfield.data.parse_trees.partial_trees import PartialTree
from dualfield.data.parse_trees.tree_cleaning import clean_tree, join_unaries, split_unaries
from dualfield.data.parse_trees.trees import Constituent, ParseTree

__all__ = [
    "Batch",
    "BlockRanges",
    "ByteRange",
    "CompiledCorpus",
    "Constituent",
    "CorpusFileError",
    "DependencySentence",
    "FeatureCounts",
    "Labels",
    "MergedPartitions",
    "ParseTree",
    "PartialTree",
    "Partition",
    "PartitionSummary",
    "RowsOfPart",
    "Vocabulary",
    "clean_tree",
    "join_unaries",
    "merge_partitions",
    "split_unaries",
]
