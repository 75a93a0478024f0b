"""Input: examples of unequal size, attributes and labels, read from the forms that users have them in."""

from dualfield.data.attributes import Vocabulary
from dualfield.data.batch import Batch
from dualfield.data.labels import Labels

__all__ = ["Batch", "Labels", "Vocabulary"]
