"""The baseline of Memisevic (2006): conjugate gradients on the primal problem that the representer theorem gives."""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, minimize
from scipy.special import logsumexp
from sklearn.metrics.pairwise import rbf_kernel

from reproductions.problems import Problem

_CHANGE = 1e-8  # Section 5: stop when the primal objective changes by less


@dataclass(frozen=True, slots=True)
class Descent:
    """A run of conjugate gradients.

    Attributes
    ----------
    seconds : tuple of float
        When each iteration ended; the kernel matrix is counted.
    objective : tuple of float
        The primal value then, 1/2 |w|^2 + C times the sum of losses.
    products : tuple of int
        Products of the kernel matrix with a matrix (n, n_classes) so far.
    error : tuple of (int, float)
        Iterations at which the test error was measured, and the error; measuring is not counted in seconds.
    stopped : str
        ``"change"``, ``"cap"`` or ``"line search"``: what ended it.
    """

    seconds: tuple[float, ...]
    objective: tuple[float, ...]
    products: tuple[int, ...]
    error: tuple[tuple[int, float], ...]
    stopped: str


def conjugate_gradients(problem: Problem, *, gamma: float, C: float, max_iter: int) -> Descent:
    """Minimise ``1/2 tr(A'KA) + C sum_i [log sum_c exp F_ic - F_(i, y_i)]``, F = KA, over A (n, n_classes), from 0.

    Parameters
    ----------
    problem : Problem
        Training examples, and test examples to measure the error on.
    gamma : float
        Width of the kernel, exp(-gamma |x - x'|^2).
    C : float
        1 / lambda.
    max_iter : int
        Cap on the number of iterations.

    Returns
    -------
    Descent
        The whole way down.

    Examples
    --------
    >>> import numpy as np
    >>> from reproductions.conjugate_gradient import conjugate_gradients
    >>> from reproductions.problems import Problem
    >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([0, 1, 1])
    >>> run = conjugate_gradients(Problem(X, y, X, y), gamma=1.0, C=1.0, max_iter=50)
    >>> run.stopped, run.objective[-1] < 2.0
    ('change', True)
    """
    began = time.perf_counter()
    kernel = rbf_kernel(problem.X, gamma=gamma)
    classes, labels = np.unique(problem.y, return_inverse=True)
    shape = (len(labels), len(classes))
    truth = np.eye(len(classes))[labels]
    seconds: list[float] = []
    objective: list[float] = []
    products: list[int] = []
    kept: list[tuple[int, NDArray[np.float64]]] = []
    n_products, pause = 0, 0.0

    def value_and_gradient(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        nonlocal n_products
        n_products += 2
        coefficients = flat.reshape(shape)
        scores = kernel @ coefficients
        log_norm = logsumexp(scores, axis=1, keepdims=True)
        loss = float(log_norm.sum() - (truth * scores).sum())
        slope = scores + C * (kernel @ (np.exp(scores - log_norm) - truth))
        return 0.5 * float((coefficients * scores).sum()) + C * loss, slope.ravel()

    def note(intermediate_result: OptimizeResult) -> None:
        nonlocal pause
        now = time.perf_counter()
        seconds.append(now - began - pause)
        objective.append(float(intermediate_result.fun))
        products.append(n_products)
        if len(seconds) & (len(seconds) - 1) == 0:  # iterations 1, 2, 4, 8, ...
            kept.append((len(seconds), intermediate_result.x.copy()))
        pause += time.perf_counter() - now
        # The paper's objective has lambda before |w|^2 and 1 before the losses: ours divided by C.
        if len(objective) > 1 and (objective[-2] - objective[-1]) / C < _CHANGE:
            raise StopIteration

    end = minimize(
        value_and_gradient,
        np.zeros(truth.size),
        jac=True,
        method="CG",
        callback=note,
        options={"maxiter": max_iter, "gtol": 0.0},
    )
    if not seconds:  # not even the first line search found a step
        note(end)
    kept.append((len(seconds), end.x))
    test_kernel = rbf_kernel(problem.X_test, problem.X, gamma=gamma)
    error = {
        iteration: float(np.mean(classes[(test_kernel @ flat.reshape(shape)).argmax(axis=1)] != problem.y_test))
        for iteration, flat in kept
    }
    stopped = {1: "cap", 2: "line search"}.get(int(end.status), "change")
    return Descent(tuple(seconds), tuple(objective), tuple(products), tuple(error.items()), stopped)
