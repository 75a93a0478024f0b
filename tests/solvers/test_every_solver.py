"""Every solver on every problem: it reaches the optimum that others find, or refuses in the words of ``missing``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import cvxpy
import numpy as np
import pytest
import scipy.sparse

from dualfield.data import Batch
from dualfield.kernels import Kernel
from dualfield.losses import Loss
from dualfield.objectives import CustomPlanes, Examples, KernelMargin, KernelObjective, KernelSoftmax, Objective
from dualfield.regularisers import SquaredNorm
from dualfield.scores import FeatureTable, LinearScores
from dualfield.solvers import LBFGS, Status, StopRule, solver_classes
from dualfield.solvers.kernel.joint import JointKernelProblem
from dualfield.structures import Chain
from tests.estimators.problems import GAMMA, clouds, label_kernel
from tests.objectives.problems import random_problem
from tests.objectives.test_planes import Choice, planes_of
from tests.reference.structured_svm import PlaneTable, chain_tables, minimum

TOL = 1e-3
LENGTHS = (3, 0, 1, 2, 3)


def log_loss(l1_ratio: float = 0.0, **settings: Any) -> tuple[Any, float]:
    """Losses of chains, and their minimum on the enumeration by SciPy."""
    problem = random_problem(1, lengths=LENGTHS, weight=0.3, **settings)
    return problem.loss(l1_ratio), problem.reference(l1_ratio).minimum()[0]


def hinge(rescaling: str = "margin", as_loss: bool = False, signs: bool = False, **settings: Any) -> tuple[Any, float]:
    """Hinge losses of chains as planes or as losses, and their minimum over all labellings by cvxpy."""
    temperature = 0.0 if as_loss else 1.0
    problem = random_problem(2, lengths=LENGTHS, cost=True, weight=0.1, temperature=temperature, **settings)
    cost = problem.model.cost if rescaling == "margin" else 1.0 - np.eye(3)
    flags = np.random.default_rng(0).random(problem.score_map.n_parameters) < 0.6 if signs else None
    tables = chain_tables(problem.model, problem.examples, cost, rescaling)
    best = minimum(tables, None if flags is None else problem.to_reference(flags.astype(float)) > 0)[0]
    return problem.loss() if as_loss else planes_of(problem, cost, rescaling, positive=flags), best


def custom() -> tuple[Any, float]:
    rng = np.random.default_rng(3)
    X, y, c = [rng.normal(size=(4, 3)) for _ in range(6)], rng.integers(0, 4, 6).tolist(), 0.05
    tables = [PlaneTable(np.abs(np.arange(4.0) - label), x - x[label], c) for x, label in zip(X, y, strict=True)]
    return CustomPlanes(Choice(), X, y, np.full(6, c), SquaredNorm(3)), minimum(tables)[0]


def machine(n_classes: int, bias: bool, coupled: bool = False) -> tuple[Any, float]:
    """Kernel machines, and the minimum of a plain Newton method on all their scores."""
    problem, table = clouds(n_classes), label_kernel(n_classes) if coupled else None
    pinned = n_classes == 2 and not coupled
    codes, weights = problem.y.astype(np.int32), np.ones(problem.n)
    objective = KernelSoftmax(
        Kernel("rbf", GAMMA),
        problem.X,
        codes,
        weights=weights,
        n_classes=n_classes,
        with_bias=bias,
        pinned=pinned,
        label_kernel=table,
    )
    return objective, problem.optimum(weights, bias, table).objective


def kernel_chain(temperature: float) -> tuple[Any, float]:
    """Chains with a linear kernel, and the minimum of the linear model that they are: by L-BFGS, or by cvxpy."""
    rng, offsets, cost = np.random.default_rng(4), np.array([0, 3, 4, 6, 9]), 1.0 - np.eye(3)
    X, y, weights = rng.normal(size=(9, 2)), rng.integers(0, 3, 9).astype(np.int32), np.full(4, 0.3)
    kernel = KernelObjective(
        Chain(3), Kernel("linear"), X, offsets=offsets, labels=y, weights=weights, cost=cost, temperature=temperature
    )
    score_map = LinearScores(Chain(3), FeatureTable.all(2, 3))
    if temperature > 0.0:
        examples = Examples(nodes=Batch(offsets, 2, X), labels=y, weights=weights)
        linear = Objective(score_map, examples, Loss(temperature, cost))
        return kernel, LBFGS().solve(linear, StopRule(1e-9)).objective
    node, pairs = cvxpy.Variable((2, 3)), cvxpy.Variable((3, 3))
    losses = []
    for first, last in itertools.pairwise(offsets):
        truth = y[first:last]
        scores = []
        for labels in np.ndindex(*[3] * (last - first)):
            difference = X[first:last].T @ (np.eye(3)[list(labels)] - np.eye(3)[truth])
            steps = np.zeros((3, 3))
            for one, sign in ((labels, 1.0), (truth, -1.0)):
                np.add.at(steps, (list(one[:-1]), list(one[1:])), sign)
            wrong = float(np.sum(np.array(labels) != truth))
            scores.append(wrong + cvxpy.sum(cvxpy.multiply(difference, node)) + cvxpy.sum(cvxpy.multiply(steps, pairs)))
        losses.append(cvxpy.max(cvxpy.hstack(scores)))
    penalty = 0.5 * (cvxpy.sum_squares(node) + cvxpy.sum_squares(pairs))
    return kernel, float(cvxpy.Problem(cvxpy.Minimize(penalty + 0.3 * sum(losses))).solve(solver=cvxpy.CLARABEL))


def kernel_pairs(temperature: float) -> tuple[Any, float]:
    """Chains with a kernel on pairs, and the minimum over weights of a root of its matrix, by cvxpy."""
    rng, offsets, cost = np.random.default_rng(6), np.array([0, 3, 4, 6]), 1.0 - np.eye(2)
    y, inputs, weights = rng.integers(0, 2, 6).astype(np.int32), rng.normal(size=(3, 2)), np.full(3, 0.3)
    objective = KernelObjective(
        Chain(2),
        None,
        None,
        offsets=offsets,
        labels=y,
        weights=weights,
        cost=cost,
        temperature=temperature,
        pair_kernel=Kernel("rbf", 0.5),
        pair_points=inputs,
    )
    root = np.linalg.cholesky(Kernel("rbf", 0.5).values(inputs, inputs))
    own, shared, losses = cvxpy.Variable((3, 4)), cvxpy.Variable(4), []
    for i, edges in enumerate([[0, 1], [], [2]]):
        truth = y[offsets[i] : offsets[i + 1]]
        scores = []
        for labels in np.ndindex(*[2] * len(truth)):
            total = float(np.sum(np.array(labels) != truth))
            for at, edge in enumerate(edges):
                both = root[edge] @ own + shared
                total += both[2 * labels[at] + labels[at + 1]] - both[2 * int(truth[at]) + int(truth[at + 1])]
            scores.append(total)
        together = cvxpy.hstack(scores)
        losses.append(
            cvxpy.max(together) if temperature == 0.0 else temperature * cvxpy.log_sum_exp(together / temperature)
        )
    penalty = 0.5 * (cvxpy.sum_squares(own) + cvxpy.sum_squares(shared))
    return objective, float(cvxpy.Problem(cvxpy.Minimize(penalty + 0.3 * sum(losses))).solve(solver=cvxpy.CLARABEL))


def kernel_margin() -> tuple[Any, float]:
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(12, 2)), rng.integers(0, 3, 12).astype(np.int32)
    one, outputs = (np.arange(n, dtype=np.int32)[:, None] for n in (12, 3))
    objective = KernelMargin(Kernel("linear"), X, one, outputs=outputs, truth=y, weights=np.full(12, 0.3), n_labels=3)
    weights = cvxpy.Variable((2, 3))
    costs = 1.0 - np.eye(3)[y]
    right = cvxpy.sum(cvxpy.multiply(X @ weights, np.eye(3)[y]), axis=1)
    losses = cvxpy.sum(cvxpy.max(X @ weights + costs, axis=1) - right)
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(weights) + 0.3 * losses))
    return objective, float(problem.solve(solver=cvxpy.CLARABEL))


def joint() -> tuple[Any, float]:
    problem = clouds(3, n=15)

    def kernel(one: tuple[Any, Any], two: tuple[Any, Any]) -> float:
        return float(one[1] == two[1]) * float(np.exp(-GAMMA * np.square(one[0] - two[0]).sum()))

    weights = np.ones(problem.n)
    objective = JointKernelProblem(kernel, problem.X, np.arange(3), codes=problem.y.astype(np.intp), weights=weights)
    return objective, problem.optimum(weights, bias=False).objective


PROBLEMS: dict[str, Callable[[], tuple[Any, float]]] = {
    "log-loss": log_loss,
    "log-loss with costs": lambda: log_loss(cost=True, temperature=0.5, ends=True),
    "log-loss of order 2": lambda: log_loss(order=2, constrained=True),
    "log-loss of pair features": lambda: log_loss(pair=True),
    "log-loss with absolute values": lambda: log_loss(0.3),
    "hinge": lambda: hinge(as_loss=True),
    "hinge of order 2": lambda: hinge(as_loss=True, order=2),
    "planes": hinge,
    "planes of pair features": lambda: hinge(pair=True, ends=True),
    "planes of rescaled slacks": lambda: hinge("slack"),
    "planes with signs": lambda: hinge(signs=True),
    "custom planes": custom,
    "two classes": lambda: machine(2, bias=True),
    "three classes": lambda: machine(3, bias=False),
    "coupled classes": lambda: machine(3, bias=True, coupled=True),
    "chain with a kernel": lambda: kernel_chain(1.0),
    "hinge of a chain with a kernel": lambda: kernel_chain(0.0),
    "chain with a kernel on neighbours": lambda: kernel_pairs(1.0),
    "hinge of a chain with a kernel on neighbours": lambda: kernel_pairs(0.0),
    "hinge of nodes with a kernel": kernel_margin,
    "kernel on pairs": joint,
}


@cache
def solved(problem: str) -> tuple[Any, float]:
    return PROBLEMS[problem]()


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", sorted(solver_classes()))
def test_the_optimum_or_a_reason(name, problem):
    solver = solver_classes()[name]()
    objective, best = solved(problem)
    rule = StopRule(TOL, 100 if solver.makes_epochs else 5000)
    reason = solver.missing(objective)
    if reason is not None:
        with pytest.raises(ValueError, match=re.escape(f"solver={name!r} cannot take this problem. {reason}")):
            solver.solve(objective, rule)
        return
    solution = solver.solve(objective, rule, random_state=0)
    rounding = 1e-7 * max(best, 1e-3)
    assert solution.objective - solution.gap - rounding <= best <= solution.objective + rounding
    assert len(solution.trace) >= 1
    assert np.isfinite(solution.trace.end.passes)
    assert solution.solver == name or name == "auto"
    assert solution.solver in solver_classes()
    if solver.makes_epochs:
        assert solution.status in (Status.CONVERGED, Status.FINISHED)
        assert name in ("arow", "passive_aggressive", "perceptron") or solution.relative_gap <= 0.2
    else:
        assert solution.status is Status.CONVERGED
        assert solution.relative_gap <= TOL


def test_every_solver_has_a_problem_and_every_problem_a_solver():
    taken = {
        (name, problem)
        for name, solver in solver_classes().items()
        for problem in PROBLEMS
        if solver().missing(solved(problem)[0]) is None
    }
    assert {name for name, _ in taken} == set(solver_classes())
    assert {problem for name, problem in taken if name == "auto"} == set(PROBLEMS)


@pytest.mark.parametrize("name", sorted(solver_classes()))
def test_anything_else_is_refused(name):
    for nothing in (None, 3, scipy.sparse.csr_array(np.eye(2)), object()):
        assert isinstance(solver_classes()[name]().missing(nothing), str)
