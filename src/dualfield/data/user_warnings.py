"""Warnings at the line of the user's program that they are about."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

__all__ = ["warn_user"]

_PACKAGE = str(Path(__file__).parents[1]) + os.sep


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package that has called it, however many calls below that is.

    Parameters
    ----------
    text : str
        What happened, and what to do about it.
    category : type, default=UserWarning
        Of the warning.

    Examples
    --------
    >>> import warnings
    >>> from dualfield.data.user_warnings import warn_user
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_user("The file is empty.")
    >>> caught[0].category.__name__
    'UserWarning'
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
