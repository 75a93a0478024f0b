"""Structured models whose node scores come from a kernel: how they are trained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.kernels import Kernel
from dualfield.kernels.gamma import chosen_gamma
from dualfield.kernels.landmarks import choose_landmarks
from dualfield.kernels.mercer import check_mercer, refusals
from dualfield.models.structured import StructuredModel
from dualfield.models.training_data import TrainingData
from dualfield.objectives import KernelMargin, KernelObjective
from dualfield.scores import Expansion
from dualfield.scores.kernel import rows_of
from dualfield.solvers import Auto, KernelAscent, KernelParts, Solution, StopRule
from dualfield.solvers.callbacks import FitCallbacks
from dualfield.solvers.kernel.nystroem import solve_reduced
from dualfield.solvers.registry import suited
from dualfield.structures.checks import n_threads

_DEFAULT_PASSES = 1000.0


def fit_with_kernel(
    settings: Any,
    data: TrainingData,
    temperature: float,
    solver: Any,
    old: StructuredModel | None,
    callbacks: FitCallbacks,
    seed: int,
) -> tuple[Solution[Floats], Expansion]:
    """Train the model; its parameters are the clique scores, and the expansion gives the node scores."""
    if data.allowed is not None:
        raise ValueError("A kernel needs the label of every node: y must not be labelled in part.")
    threads, points = n_threads(settings.n_jobs), rows_of(data.nodes)
    weights = np.repeat(data.weights, data.nodes.lengths)
    gamma = chosen_gamma(settings.kernel, settings.gamma, points, weights)
    kernel = Kernel(settings.kernel, gamma, float(settings.coef0), float(settings.degree))
    check_mercer(kernel, points, threads)
    problem = KernelObjective(
        data.structure,
        kernel,
        points,
        offsets=data.nodes.offsets,
        labels=data.codes,
        weights=data.weights,
        cost=data.cost,
        temperature=temperature,
        clique_mask=data.score_map.clique_mask > 0,
        with_ends=data.score_map.with_ends,
        scale=float(settings.transition_scale),
        cache_bytes=int(settings.cache_size),
        n_threads=threads,
        connected=data.nodes.connected,
    )
    rule = StopRule(float(settings.tol), _DEFAULT_PASSES if settings.max_iter is None else float(settings.max_iter))
    with refusals(kernel):
        if settings.kernel_approx is not None:
            landmarks = choose_landmarks(kernel, points, settings.kernel_approx, seed, threads)
            return solve_reduced(problem, landmarks, rule, callbacks, seed)
        suited(solver, problem)
        if temperature == 0.0 and isinstance(solver, Auto | KernelAscent) and _has_nodes_only(problem):
            return _solve_nodes(problem, solver, rule, callbacks, seed)
        solution: Solution[KernelParts] = solver.solve(problem, rule, _start(old, problem), callbacks, seed)
        return as_linear(problem, solution), _supported(kernel, points, solution.parameters.coefficients)


def _solve_nodes(
    problem: KernelObjective, solver: Auto | KernelAscent, rule: StopRule, callbacks: FitCallbacks, seed: int
) -> tuple[Solution[Floats], Expansion]:
    """Solve a problem without transitions: every node on its own, by projections onto the simplex."""
    n_labels, weights = problem.structure.n_labels, np.repeat(problem.weights, np.diff(problem.offsets))
    counted = np.flatnonzero(weights > 0.0)
    points = problem.points[counted]
    one, outputs = (np.arange(n, dtype=np.int32)[:, None] for n in (len(counted), n_labels))
    nodes = KernelMargin(
        problem.kernel,
        points,
        one,
        outputs=outputs,
        truth=problem.labels[counted],
        weights=weights[counted],
        n_labels=n_labels,
        cost=problem.cost,
        cache_bytes=problem.cache_bytes,
        n_threads=problem.n_threads,
    )
    solution = solver.solve(nodes, rule, None, callbacks, seed)
    coefficients = solution.parameters.coefficients
    unscored = replace(solution, parameters=KernelParts(coefficients, np.zeros(problem.structure.n_cliques)))
    return as_linear(problem, unscored), _supported(problem.kernel, points, coefficients)


def as_linear(problem: KernelObjective, solution: Solution[KernelParts]) -> Solution[Floats]:
    """Return the solution with the parameters of a chain that takes node scores as columns."""
    cliques, start, stop = problem.unpack(solution.parameters.shared)
    ones = np.ones(problem.structure.n_labels)
    given = {name: getattr(solution, name) for name in ("objective", "gap", "status", "n_iter", "trace", "solver")}
    return Solution(parameters=problem.score_map.pack(ones, cliques, start, stop), **given)


def _has_nodes_only(problem: KernelObjective) -> bool:
    return problem.structure.is_free and not problem.with_ends and not problem.score_map.clique_mask.any()


def _start(old: StructuredModel | None, problem: KernelObjective) -> KernelParts | None:
    """Return coefficients and weights of an earlier model if it was fitted to the same nodes."""
    before = None if old is None else old.expansion
    if old is None or before is None or before.points.shape != problem.points.shape:
        return None
    if before.n_labels != problem.structure.n_labels or len(old.parameters) != problem.score_map.n_parameters:
        return None
    if not _equal(before.points, problem.points):
        return None
    weights = problem.score_map.unpack(old.parameters)
    ends = [weights.start, weights.stop] if problem.with_ends else []
    return KernelParts(before.coefficients, np.concatenate([weights.cliques, *ends]))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) != isinstance(other, np.ndarray):
        return False
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else abs(one - other).nnz == 0


def _supported(kernel: Kernel, points: Any, coefficients: Floats) -> Expansion:
    """Leave out the points without coefficients."""
    used = np.flatnonzero((coefficients != 0.0).any(axis=1))
    if len(used) == len(coefficients):
        return Expansion(kernel, points, coefficients)
    return Expansion(kernel, points[used], np.ascontiguousarray(coefficients[used]))
