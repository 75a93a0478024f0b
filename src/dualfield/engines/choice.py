"""The engine that users mean."""

from __future__ import annotations

import re
from typing import Any

from dualfield.data.user_warnings import warn_user
from dualfield.engines.dask_engine import DaskEngine
from dualfield.engines.engine import Engine
from dualfield.engines.serial import Serial

__all__ = ["engine_of"]

_PATIENCE = 10.0  # seconds until a scheduler must have answered


def engine_of(client: Any, memory: float = 1e9, patience: float = _PATIENCE) -> Engine:
    """Return the engine for what users pass as ``client``.

    Parameters
    ----------
    client : None, distributed.Client or str
        None: partitions one after another in this process. A client, or the address of a scheduler, such as
        "tcp://host:8786".
    memory : float, default=1e9
        Bytes for partitions that are kept in this process; see :class:`Serial`.
    patience : float, default=10.0
        Seconds to wait for the scheduler at an address.

    Returns
    -------
    Engine
        To be closed at the end: a connection that was opened here is.

    Warns
    -----
    UserWarning
        If the cluster has no workers, for which the work will wait.

    Raises
    ------
    ImportError
        If Dask is needed and not installed.
    ConnectionError
        If nobody answers at the address, or a client is closed.
    ValueError
        If `client` is an address without a port.
    TypeError
        If `client` is something else.

    Examples
    --------
    >>> from dualfield.engines import engine_of
    >>> type(engine_of(None)).__name__
    'Serial'
    """
    if client is None:
        return Serial(memory)
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(
            "client needs Dask's distributed scheduler, which is not installed: pip install 'dask[distributed]'."
        ) from None
    if isinstance(client, Client):
        if client.status != "running":
            raise ConnectionError(f"client must be connected to a cluster. Got one that is {client.status}.")
        return _with_workers(client)
    if not isinstance(client, str):
        raise TypeError(
            "client must be None, a distributed.Client or the address of a scheduler, such as 'tcp://host:8786'. "
            f"Got {type(client).__name__} instead."
        )
    _check_address(client)
    try:
        connection: Any = Client
        return _with_workers(connection(client, timeout=patience, set_as_default=False), owns_client=True)
    except (OSError, TimeoutError, ValueError) as error:
        raise ConnectionError(
            f"client: no Dask scheduler answers at {client!r} ({patience:g} s). Start one with 'dask scheduler', and "
            "check host and port."
        ) from error


def _check_address(address: str) -> None:
    """Refuse an address without a port, which Dask leaves half open."""
    if re.fullmatch(r"((tcp|tls)://)?[^:/]*", address):
        raise ValueError(
            "client must be the address of a scheduler with its port, such as 'tcp://host:8786'. "
            f"Got {address!r} instead."
        )


def _with_workers(client: Any, owns_client: bool = False) -> DaskEngine:
    """Return an engine; say so if there is nobody to do the work yet, as Dask waits without a word."""
    if not client.scheduler_info()["workers"]:
        address = client.scheduler.address
        warn_user(
            f"client: the Dask cluster at {address} has no workers yet. The work waits for them; "
            f"'dask worker {address}' starts one."
        )
    return DaskEngine(client, owns_client=owns_client)
