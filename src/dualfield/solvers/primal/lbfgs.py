"""L-BFGS on the parameters of an objective."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, overload

from dualfield.data.arrays import Floats
from dualfield.data.checks import check_number
from dualfield.engines.blas_threads import one_blas_thread
from dualfield.objectives import KernelSoftmax, Objective, PartitionedObjective
from dualfield.solvers.base import KernelPoint, Progress, Solution, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.kernel.lbfgs import solve_representer
from dualfield.solvers.needs import Need, elastic_net, gradient, squared_norm
from dualfield.solvers.primal.averaged_start import averaged_start
from dualfield.solvers.primal.descent import Descent
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver

__all__ = ["LBFGS"]

_MEMORY, _MEMORY_ON_PARTITIONS = 10, 40


@register
@dataclass(frozen=True)
class LBFGS(Solver):
    """Limited-memory BFGS on the primal; OWL-QN where absolute values are penalised.

    For linear scores: every objective, partly labelled examples and features of label pairs included; gradients use all
    threads. Memory: 2 ``memory`` + 7 vectors of parameters, most of them on disk where they are large. Where it takes
    long, the problem is convex and up to 1,000 weights are not zero, Newton's method with differences of gradients ends
    the fit. For kernel machines (Keerthi et al. 2005, eq. 1.5) it is badly conditioned for large C, and here to compare
    with; memory 8 n² bytes. The duality gap is exact in both cases.

    Parameters
    ----------
    memory : int, default=None
        Pairs of vectors kept; None: 10, and 40 on partitions, where that saves a third of the exchanges. On one machine
        it saves no time.
    begin : {"zero", "average"}, default="zero"
        Where to begin without a start. "average", on partitions: at the average of what each of them finds in five
        passes of its own; it saves about a tenth of the exchanges and takes the time of about ten.
    in_memory : float, default=16e9
        Bytes for pairs and, on partitions, the 21 points of the certificate. Where they would take more, all of them
        are in temporary files, in the folder that TMPDIR names, and about 15 vectors stay in memory. The result has the
        same bits, whatever the number; kernel machines do not ask.

    Examples
    --------
    >>> from dualfield.solvers import LBFGS
    >>> LBFGS(memory=20).memory
    20
    """

    name: ClassVar[str] = "lbfgs"
    needs: ClassVar[tuple[Need, ...]] = (gradient, elastic_net)

    memory: int | None = None
    begin: Literal["zero", "average"] = "zero"
    # Not shown: a fit may go on from the checkpoint of one with another number, since both take the same steps.
    in_memory: float = field(default=16e9, repr=False)

    def missing(self, objective: Any) -> str | None:
        """Say what an objective lacks for this solver."""
        reason = super().missing(objective)
        if reason is not None or self.begin == "zero":
            return reason
        if self.begin != "average":
            return f"The 'begin' parameter of LBFGS must be 'zero' or 'average'. Got {self.begin!r} instead."
        if not isinstance(objective, PartitionedObjective):
            return "It has no partitions to average over (begin='average')."
        return squared_norm(objective)

    @overload
    def solve(
        self,
        objective: Objective | PartitionedObjective,
        rule: StopRule,
        start: Floats | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Floats]: ...
    @overload
    def solve(
        self,
        objective: KernelSoftmax,
        rule: StopRule,
        start: KernelPoint | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[KernelPoint]: ...
    def solve(
        self,
        objective: Any,
        rule: StopRule,
        start: Any = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Any:
        """Solve an objective.

        Parameters
        ----------
        objective : Objective, PartitionedObjective or KernelSoftmax
            What to minimise.
        rule : StopRule
            When to stop.
        start : array or KernelPoint, default=None
            Where to begin.
        callbacks : Callbacks or callable, default=None
            Called after each pass with objective, dual, gap, passes and seconds.
        random_state : int, default=None
            Seed of the passes of ``begin="average"``.

        Returns
        -------
        Solution[Floats] or Solution
            The point, its gap and the course.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.objectives import KernelSoftmax
        >>> from dualfield.solvers import LBFGS, StopRule
        >>> y = np.array([0, 1, 0, 1], dtype=np.int32)
        >>> problem = KernelSoftmax(
        ...     Kernel(), np.eye(4), y, weights=np.ones(4), n_classes=2, with_bias=True, pinned=True
        ... )
        >>> LBFGS().solve(problem, StopRule(1e-6)).status.value
        'converged'
        """
        check_number("LBFGS", "in_memory", self.in_memory, 0.0)
        suited(self, objective)
        # Inner products and SciPy's small systems gain little on many BLAS threads, lose much on a busy machine, and
        # differ in the last bit.
        with one_blas_thread():
            if isinstance(objective, KernelSoftmax):
                return solve_representer(objective, rule, start, callbacks, self.memory or _MEMORY)
            is_partitioned = isinstance(objective, PartitionedObjective)
            if self.begin == "average" and start is None and Callbacks.of(callbacks).resume is None:
                start = averaged_start(objective, int(random_state or 0))
            memory = self.memory or (_MEMORY_ON_PARTITIONS if is_partitioned else _MEMORY)
            return Descent(objective, memory, start, callbacks, self.in_memory).solve(rule)
