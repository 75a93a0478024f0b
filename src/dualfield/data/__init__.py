"""Input: examples of unequal size, attributes and labels, in all forms that users pass."""

from dualfield.data.attributes import Vocabulary
from dualfield.data.batch import Batch
from dualfield.data.dependency_sentence import DependencySentence
from dualfield.data.labels import Labels

__all__ = ["Batch", "DependencySentence", "Labels", "Vocabulary"]
