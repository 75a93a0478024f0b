"""Labels that may not stand first or last, as scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualfield.structures import Chain


def end_limits(chain: Chain) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
    """Return 0, or -inf for a label that may not stand first, and the same for the last one; None: no limits."""
    start, stop = (
        None if flags is None else np.where(flags, 0.0, -np.inf) for flags in (chain.allowed_start, chain.allowed_stop)
    )
    return start, stop
