"""Primal value and duality gap of linear scores, from the losses and their gradient at a point."""

from __future__ import annotations

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.regularisers import Regulariser

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)


def primal_and_gap(
    regulariser: Regulariser, w: Floats, loss: float, gradient: Floats, magnitude: float = 0.0, slack: float = 0.0
) -> tuple[float, float]:
    """Return P(w) and a bound on its distance from the minimum, for a convex objective.

    Parameters
    ----------
    regulariser : Regulariser
        R of the formula.
    w : array of shape (n_parameters,)
        Parameters.
    loss, gradient, magnitude, slack
        As :meth:`Objective.evaluate` returns them.

    Returns
    -------
    objective : float
        P(w).
    gap : float
        A bound on P(w) - P*; never below what rounding can hide.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.objectives.primal_gap import primal_and_gap
    >>> from dualfield.regularisers import SquaredNorm
    >>> value, gap = primal_and_gap(SquaredNorm(1), np.zeros(1), 1.0, np.array([-0.5]))
    >>> value, round(gap, 12)
    (1.0, 0.125)
    """
    value, v = loss + regulariser.value(w), -gradient
    # Of the marginals that made the gradient, never what the bound above them would have.
    entropy = loss + float(w @ v) - slack
    share = regulariser.share(entropy, v)
    if share == 1.0:
        gap = regulariser.excess(w, v) + slack
    else:
        gap = value - (share * entropy - regulariser.conjugate(share * v))
    # Far from the minimum the gap is a difference of large numbers; so is the bound, value less gap.
    return value, gap + ROUNDING * (value + magnitude + float(np.abs(w) @ np.abs(v)))
