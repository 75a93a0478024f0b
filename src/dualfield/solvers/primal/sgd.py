"""Stochastic gradients, one example after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dualfield import _native
from dualfield._native import StateError
from dualfield.data.arrays import Floats
from dualfield.objectives import Objective
from dualfield.solvers.base import Progress, Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.needs import Need, free_signs, native_losses, squared_norm
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver
from dualfield.solvers.trace import Trace, relative_gap

__all__ = ["SGD"]

_EPOCHS = 30


@register
@dataclass(frozen=True)
class SGD(Solver):
    """Stochastic gradients, averaged over the second half of the epochs.

    Takes every objective without a penalty on absolute values. Quick to a good model, slow to an exact one: it makes
    its epochs and stops, and the gap of where it ends is reported.

    Parameters
    ----------
    rate : float, default=None
        Length of the first step; it shrinks as 1 / t. None: chosen by trying some on a few hundred examples.
    average : bool, default=True
        Return the mean of the later points, not the last one.
    n_epochs : int, default=None
        Epochs; None: as the rule says.
    n_seen : int, default=0
        Examples that the start has seen already: steps are as short, and the penalty as weak, as if they were part of
        the data.

    Examples
    --------
    >>> from dualfield.solvers import SGD
    >>> SGD(average=False).average
    False
    """

    name: ClassVar[str] = "sgd"
    needs: ClassVar[tuple[Need, ...]] = (native_losses, squared_norm, free_signs)
    makes_epochs: ClassVar[bool] = True
    certifies: ClassVar[bool] = False

    rate: float | None = None
    average: bool = True
    n_epochs: int | None = None
    n_seen: int = 0

    def solve(
        self,
        objective: Objective,
        rule: StopRule,
        start: Floats | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Floats]:
        """Solve an objective as far as the epochs go.

        Parameters
        ----------
        objective, start, callbacks, random_state
            As for :meth:`BlockDual.solve`; begins at `start` itself, or at zero.
        rule : StopRule
            ``max_passes`` is the number of epochs, 30 if it is infinite.

        Returns
        -------
        Solution[Floats]
            The point, its gap and the course.

        Examples
        --------
        >>> from dualfield.solvers import SGD, StopRule, prototypes
        >>> SGD().solve(prototypes.objective(temperature=1.0), StopRule(1e-6)).n_iter
        30
        """
        if self.rate is not None and not self.rate > 0:
            raise ValueError(f"The 'rate' parameter of SGD must be None or a float in (0, inf). Got {self.rate!r}.")
        if self.n_epochs is not None and self.n_epochs < 1:
            raise ValueError(f"The 'n_epochs' parameter of SGD must be None or at least 1. Got {self.n_epochs!r}.")
        suited(self, objective)
        result = _native.solve_sgd(
            objective.native,
            start,
            epochs(rule) if self.n_epochs is None else self.n_epochs,
            self.rate or 0.0,
            self.average,
            random_state or 0,
            self.n_seen,
            Callbacks.of(callbacks),
        )
        return certified(objective, result, rule, self.name)


def epochs(rule: StopRule) -> int:
    return _EPOCHS if np.isinf(rule.max_passes) else int(rule.max_passes)


def certified(objective: Objective, result: Any, rule: StopRule, solver: str) -> Solution[Floats]:
    """Look at where a solver without a gap has ended."""
    parameters, _, _, outcome, n_iter, rows = result
    if not len(rows):
        raise StateError("trace must have rows of 5 numbers")
    value, gap = objective.certify(parameters)
    status = Status.CONVERGED if relative_gap(value, gap) <= rule.tol else Status.FINISHED
    if outcome in ("interrupted", "stopped"):
        status = Status(outcome)
    last = [value, value - gap, gap, rows[-1][3], rows[-1][4]]
    return Solution(
        parameters=parameters,
        objective=value,
        gap=gap,
        status=status,
        n_iter=n_iter,
        trace=Trace.from_rows(np.array([last])),
        solver=solver,
    )
