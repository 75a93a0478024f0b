"""Another name of :mod:`dualfield.data`, for imports of :class:`~dualfield.data.Labels`."""

from dualfield.data import Labels

__all__ = ["Labels"]
