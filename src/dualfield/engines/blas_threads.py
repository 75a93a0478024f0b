"""One thread for products of matrices: how a product is split decides its last bits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]

_lock = threading.Lock()
_inside: list[Any] = []  # the limit, once for each thread inside


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, in all threads of the process, until the last one has left.

    The libraries are looked up once in a process, which takes longer than many a product.

    Yields
    ------
    None
        To a context in which products have the same bits everywhere.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.engines.blas_threads import one_blas_thread
    >>> with one_blas_thread():
    ...     np.eye(2) @ np.ones(2)
    array([1., 1.])
    """
    with _lock:
        _inside.append(_inside[0] if _inside else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            limit = _inside.pop()
            if not _inside:
                limit.restore_original_limits()


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  (its library must be there when libraries are looked up)

    return ThreadpoolController()
