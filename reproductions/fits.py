"""Fit kernel logistic regression, take the time, and keep what a table needs to know of it."""

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from dualfield.estimators import KernelLogisticRegression
from dualfield.solvers import Status
from reproductions.problems import Problem
from reproductions.records import Cell, Settings, cell_text

GAP = 1e-6  # the relative duality gap that stands for the papers' tolerances of 1e-6
_SHORT = 0.5  # a fit that takes less, in seconds, is run three times


@dataclass(frozen=True, slots=True)
class Fit:
    """One fit.

    Attributes
    ----------
    asked, solver : str
        The solver asked for, and the one that ran last.
    seconds : float
        Wall-clock time of ``fit``, kernel matrix included; the median of three where it is short.
    objective : float
        The primal value, 1/2 |w|^2 + C times the sum of losses.
    gap : float
        Duality gap over dual value.
    kernel_passes : float
        Kernel work, in units of all rows of the kernel matrix used once.
    n_iter : int
        Iterations, as the solver counts them.
    reached : bool
        Whether the gap is within the tolerance.
    """

    asked: str
    solver: str
    seconds: float
    objective: float
    gap: float
    kernel_passes: float
    n_iter: int
    reached: bool

    def seconds_cell(self) -> Cell:
        """Return the time for a table, with the gap where the tolerance was not reached."""
        if self.reached:
            return self.seconds
        return f"{cell_text(self.seconds)}, gap {cell_text(self.gap)}"


def fit_timed(
    problem: Problem, settings: Settings, *, solver: str, C: float, tol: float = GAP, **parameters: Any
) -> tuple[Fit, Any]:
    """Fit a model to the training examples of a problem.

    Parameters
    ----------
    problem : Problem
        Its training examples are used.
    settings : Settings
        Gives the number of threads and the seed.
    solver, C, tol, **parameters
        Passed to ``KernelLogisticRegression``.

    Returns
    -------
    Fit, KernelLogisticRegression
        The record and the fitted model, both of the run of median length.
    """
    runs: list[tuple[float, Any]] = []
    while len(runs) < 3 and (not runs or runs[0][0] < _SHORT):
        model = KernelLogisticRegression(
            solver=solver, C=C, tol=tol, n_jobs=settings.threads, random_state=settings.seed, **parameters
        )
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the gap stands in the record
            model.fit(problem.X, problem.y)
        runs.append((time.perf_counter() - began, model))
        stop_if_interrupted(model)
    seconds, model = sorted(runs, key=lambda run: run[0])[len(runs) // 2]
    gap = relative_gap(model.objective_, model.dual_gap_)
    return Fit(
        asked=solver,
        solver=str(model.solver_),
        seconds=seconds,
        objective=float(model.objective_),
        gap=gap,
        kernel_passes=float(model.trace_.kernel_passes[-1]),
        n_iter=int(model.n_iter_),
        reached=gap <= tol * (1.0 + 1e-6),
    ), model


def stop_if_interrupted(model: Any) -> None:
    """Pass Ctrl-C on: a fit that was interrupted ends early but in order."""
    if model.status_ is Status.INTERRUPTED:
        raise KeyboardInterrupt


def relative_gap(objective: float, gap: float) -> float:
    """Return gap over dual value; infinite where the dual value is not above 0."""
    dual = objective - gap
    return float(gap / dual) if dual > 0.0 else float("inf")


def seconds_until(fit: Fit, model: Any, target: float) -> float | None:
    """Return after how many seconds of a fit the primal value was no higher than `target`; None if it never was.

    Read off the trace. What passed before the trace began, the kernel matrix for instance, is counted.
    """
    below = np.flatnonzero(np.asarray(model.trace_.objective) <= target)
    if not len(below):
        return None
    clock = np.asarray(model.trace_.seconds)
    return float(max(fit.seconds - (clock[-1] - clock[below[0]]), 0.0))


def error_on_test(model: Any, problem: Problem) -> float:
    """Return the share of test examples that a fitted classifier gets wrong."""
    return float(np.mean(model.predict(problem.X_test) != problem.y_test))


def losses_on_test(model: Any, problem: Problem) -> float:
    """Return the sum of -log p(true label) over the test examples."""
    if hasattr(model, "predict_log_proba"):
        log_chance = model.predict_log_proba(problem.X_test)
    else:
        log_chance = np.log(np.maximum(model.predict_proba(problem.X_test), np.finfo(np.float64).tiny))
    return sum_of_losses(log_chance, np.asarray(model.classes_), problem.y_test)


def sum_of_losses(log_chance: NDArray[np.float64], classes: NDArray[Any], y: NDArray[Any]) -> float:
    """Return the sum of -log p(y_i) given log-probabilities (n, n_classes) in the order of `classes`, sorted."""
    return float(-log_chance[np.arange(len(y)), np.searchsorted(classes, y)].sum())
