"""Ascent on the dual of structured models with a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dualfield.objectives import KernelMargin, KernelObjective
from dualfield.solvers.base import KernelParts, Progress, Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.kernel.tasks import TRUSTED
from dualfield.solvers.needs import Need, kernel_structure
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver
from dualfield.solvers.trace import Trace

__all__ = ["KernelAscent"]

# Up to here double precision costs next to nothing.
_TINY = 1000


@register
@dataclass(frozen=True)
class KernelAscent(Solver):
    """Ascent on the dual of structured models with a kernel, a set of examples at a time.

    The scores of all nodes, or pairs of nodes, are kept up to date. A visit moves the dual point of one example:
    exponentiated gradients at temperatures above zero, swaps of mass between labellings or projections for hinge
    losses. Examples are visited in sets, several times, before what has changed is carried over to the scores of all
    others: that takes a row of the kernel matrix for each node, and is nearly all of the work. Rows come from a cache
    with a budget.

    Large problems are solved in single precision first. Objective and gap are computed in double precision in any
    case, from the coefficients that are returned, and the gap has the rounding of these sums added to it. What single
    precision cannot reach is solved in double precision.

    Parameters
    ----------
    set_size : int, default=256
        Nodes, or edges, in a set.
    n_sweeps : int, default=3
        Visits of each example of a set.

    Examples
    --------
    >>> from dualfield.solvers import KernelAscent
    >>> KernelAscent().set_size
    256
    """

    name: ClassVar[str] = "kernel_ascent"
    needs: ClassVar[tuple[Need, ...]] = (kernel_structure,)

    set_size: int = 256
    n_sweeps: int = 3

    def solve(
        self,
        objective: KernelObjective | KernelMargin,
        rule: StopRule,
        start: KernelParts | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[KernelParts]:
        """Solve an objective.

        Parameters
        ----------
        objective : KernelObjective or KernelMargin
            The problem.
        rule : StopRule
            When to stop.
        start : KernelParts, default=None
            Coefficients and weights of an earlier fit. None: the dual begins at the truth, as it does for hinge losses
            in any case.
        callbacks : Callbacks or callable, default=None
            Called now and then with objective, dual, gap, passes and seconds.
        random_state : int, default=None
            Seed of the order of examples.

        Returns
        -------
        Solution
            Coefficients of shape (n_points, n_labels), the scores of cliques and ends of chains, and the coefficients
            of edges where a kernel scores them.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelObjective
        >>> from dualfield.solvers import KernelAscent, StopRule
        >>> from dualfield.structures import Chain
        >>> X, y = np.array([[0.0], [1.0], [0.0]]), np.array([0, 1, 0], dtype=np.int32)
        >>> hinge = KernelObjective(
        ...     Chain(2), Kernel(), X, offsets=np.array([0, 2, 3]), labels=y,
        ...     weights=np.ones(2), cost=1.0 - np.eye(2), temperature=0.0
        ... )
        >>> KernelAscent().solve(hinge, StopRule(1e-6)).status.value
        'converged'
        """
        suited(self, objective)
        settings = {
            "tolerance": rule.tol,
            "most_passes": rule.max_passes,
            "set_size": self.set_size,
            "n_sweeps": self.n_sweeps,
            "seed": int(random_state or 0),
            "n_threads": objective.n_threads,
            "callbacks": Callbacks.of(callbacks),
        }
        # The values of a function of the user's come in double precision as it is.
        single = rule.tol >= TRUSTED and objective.n_points > _TINY and not objective.calls_python
        solution = _solution(objective._ascend(single, start, settings))
        if not single or solution.status is not Status.STALLED:
            return solution
        # Large C can need more digits than single precision has, and kernel values more than it can hold.
        begin = solution.parameters if np.isfinite(solution.gap) else start
        finer = objective._ascend(False, begin, settings)
        return min(_solution(finer).after(solution), solution, key=lambda one: one.gap)


def _solution(result: Any) -> Solution[KernelParts]:
    parameters, value, gap, outcome, n_iter, rows = result
    return Solution(
        parameters=KernelParts(*parameters),
        objective=value,
        gap=gap,
        status=Status(outcome),
        n_iter=max(1, n_iter),
        trace=Trace.from_rows(rows),
        solver=KernelAscent.name,
    )
