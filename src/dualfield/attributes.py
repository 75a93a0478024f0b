"""Another name of :mod:`dualfield.data`, for imports of :class:`~dualfield.data.Vocabulary`."""

from dualfield.data import Vocabulary

__all__ = ["Vocabulary"]
