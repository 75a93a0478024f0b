"""Another name of :mod:`dualfield.data`, for imports of :class:`~dualfield.data.Batch`."""

from dualfield.data import Batch

__all__ = ["Batch"]
