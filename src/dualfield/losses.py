"""The loss of one example: what the truth lacks of the smoothed best score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Loss"]


@dataclass(frozen=True, eq=False)
class Loss:
    r"""The bracket of the formula: temperature, cost, and what the cost rescales.

    .. math::
        M_T(\theta_i + \Delta_i) - \langle \theta_i, u_i \rangle, \qquad \text{or} \qquad
        \max_y \Delta_i(y) \, [ 1 + \langle \theta_i, u(y) - u_i \rangle ]

    with rescaled margins, and with rescaled slacks. Without cost it is the log-loss at T = 1; with cost at T = 0 it is
    the structured hinge.

    Parameters
    ----------
    temperature : float, default=1.0
        T of the formula, at least 0.
    cost : array of shape (n_labels, n_labels), default=None
        Cost of a label (column) where another one is true (row); Δ is their sum over the nodes. None: no cost.
    rescaling : {"margin", "slack"}, default="margin"
        What the cost rescales; slacks need T = 0 and a cost.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.losses import Loss
    >>> hinge = Loss(0.0, cost=1.0 - np.eye(2))
    >>> hinge.temperature, hinge.rescaling
    (0.0, 'margin')
    >>> Loss(1.0, rescaling="slack")
    Traceback (most recent call last):
        ...
    ValueError: rescaling='slack' needs temperature=0 and a cost.
    """

    temperature: float = 1.0
    cost: NDArray[np.float64] | None = None
    rescaling: Literal["margin", "slack"] = "margin"

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature < np.inf:
            raise ValueError(f"temperature must be a float in [0, inf). Got {self.temperature!r} instead.")
        if self.rescaling not in ("margin", "slack"):
            raise ValueError(f"rescaling must be 'margin' or 'slack'. Got {self.rescaling!r} instead.")
        if self.rescaling == "slack" and (self.temperature > 0.0 or self.cost is None):
            raise ValueError("rescaling='slack' needs temperature=0 and a cost.")
