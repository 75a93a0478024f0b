"""L-BFGS on the coefficients of a kernel machine: the baseline of the papers, by SciPy."""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import minimize

from dualfield.data.arrays import Floats
from dualfield.objectives import KernelSoftmax
from dualfield.objectives.certificate import refuse_curvature
from dualfield.solvers.base import KernelPoint, Progress, Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.kernel.tasks import better_than_nothing, certified
from dualfield.solvers.trace import Trace


class _Reached(Exception):  # noqa: N818 - not an error
    """The gap is small enough, or the passes are used up."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


def solve_representer(
    objective: KernelSoftmax, rule: StopRule, start: KernelPoint | None, callbacks: Progress | None, memory: int
) -> Solution[KernelPoint]:
    """Minimise the primal over coefficients and bias (Keerthi et al. 2005, eq. 1.5).

    Parameters
    ----------
    objective, rule, start, callbacks
        As for :meth:`dualfield.solvers.LBFGS.solve`.
    memory : int
        Pairs of vectors kept.

    Returns
    -------
    Solution
        The point, its gap and the course.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.kernels import Kernel
    >>> from dualfield.solvers import StopRule
    >>> from dualfield.solvers.kernel.lbfgs import solve_representer
    >>> y = np.array([0, 1], dtype=np.int32)
    >>> problem = KernelSoftmax(Kernel(), np.eye(2), y, weights=np.ones(2), n_classes=2, with_bias=True, pinned=True)
    >>> solve_representer(problem, StopRule(1e-6), None, None, 10).solver
    'lbfgs'
    """
    run = _Run(objective, rule, callbacks)
    shape = (objective.size, objective.n_rows)
    first = np.concatenate(
        [np.zeros(shape[0] * shape[1]), np.zeros(shape[1])]
        if start is None
        else [start.coefficients.ravel() / run.unit, objective.solver_bias(start.coefficients, start.bias)]
    )
    status, n_iter = Status.STALLED, 0
    try:
        # SciPy's own tests are turned off as far as they can be: the gap decides.
        result = minimize(  # type: ignore[call-overload]
            run.value_and_gradient,
            first,
            jac=True,
            method="L-BFGS-B",
            callback=run.look,
            options={"maxcor": memory, "maxiter": 10**9, "maxfun": 10**9, "ftol": 0.0, "gtol": 0.0},
        )
        n_iter = int(result.nit)
        run.look(result.x)
    except _Reached as reached:
        status = reached.status
    except KeyboardInterrupt:
        if not run.rows:  # there is no point yet
            raise
        status = Status.INTERRUPTED
    value, gap, coefficients, bias = run.best
    course = Trace.from_rows(np.array(run.rows))
    found = Solution(
        parameters=KernelPoint(coefficients, bias),
        objective=value,
        gap=gap,
        status=status,
        n_iter=max(1, n_iter, run.n_looks),
        trace=course,
        solver="lbfgs",
    )
    return better_than_nothing(objective, certified(objective, found, rule)[0], rule)


class _Run:
    """One run: counts products, looks at the gap after every iteration, keeps the best point."""

    def __init__(self, objective: KernelSoftmax, rule: StopRule, callbacks: Progress | None) -> None:
        self.objective, self.rule, self.callbacks = objective, rule, Callbacks.of(callbacks)
        # SciPy's first step is of length 1: coefficients and values are counted in units of the mean weight.
        self.unit = float(objective.weights.mean())
        self.passes, self.began, self.n_looks = 0.0, time.perf_counter(), 0
        self.rows: list[tuple[float, float, float, float, float]] = []
        self.best: tuple[float, float, Floats, Floats] = (np.inf, np.inf, np.zeros((0, 0)), np.zeros(0))

    def split(self, x: Floats) -> tuple[Floats, Floats]:
        n, rows = self.objective.size, self.objective.n_rows
        return self.unit * x[: n * rows].reshape(n, rows), x[n * rows :]

    def value_and_gradient(self, x: Floats) -> tuple[float, Floats]:
        coefficients, bias = self.split(x)
        scores = self.objective.product(coefficients)
        loss, dual_point = self.objective.loss(scores + bias)
        rest = self.objective.product(coefficients - dual_point)
        self.passes += 2
        slope = -dual_point.sum(axis=0) if self.objective.with_bias else np.zeros(len(bias))
        value = 0.5 * float(np.vdot(coefficients, scores)) + loss
        return value / self.unit, np.concatenate([rest.ravel(), slope / self.unit])

    def look(self, x: Floats) -> None:
        coefficients, bias = self.split(np.array(x))
        scores = self.objective.product(coefficients)
        bias = self.objective.fit_bias(scores, bias)
        loss, dual_point = self.objective.loss(scores + bias)
        rest = coefficients - dual_point
        gap = 0.5 * float(np.vdot(rest, self.objective.product(rest)))
        refuse_curvature(self.objective, rest, gap)
        value, gap = 0.5 * float(np.vdot(coefficients, scores)) + loss, max(gap, 0.0)
        self.n_looks += 1
        row = (value, value - gap, gap, self.passes, time.perf_counter() - self.began)
        self.rows.append(row)
        self.callbacks(*row)
        if gap <= self.best[1]:
            self.best = (value, gap, coefficients, bias)
        if value > gap and gap <= self.rule.tol * (value - gap):
            raise _Reached(Status.CONVERGED)
        if self.passes >= self.rule.max_passes:
            raise _Reached(Status.ITERATION_LIMIT)
