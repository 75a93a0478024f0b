"""Structured models whose scores of nodes, or of pairs of nodes, come from a kernel: how they are trained."""

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
from dualfield.scores.kernel import Expansions, inputs_of_pairs, rows_of
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
) -> tuple[Solution[Floats], Expansions]:
    """Train the model; its parameters are the clique scores, and the expansions give the scores of nodes and pairs."""
    if data.allowed is not None:
        raise ValueError("A kernel needs the label of every node: y must not be labelled in part.")
    threads, points, pair_points = n_threads(settings.n_jobs), None, None
    weights = np.repeat(data.weights, data.nodes.lengths)
    kernel, pair_kernel = None, None
    if settings.kernel_on != "pairs":
        points = rows_of(data.nodes)
        kernel = _kernel(settings, settings.gamma, points, weights, threads)
    if settings.kernel_on != "nodes":
        pair_points, ends = inputs_of_pairs(data.structure, data.nodes, data.pairs), data.edge_ends
        # Roots of trees have a row too, which is never looked at.
        of_pairs = np.where(ends[:, 0] == ends[:, 1], 0.0, weights[ends[:, 1]])
        of_pairs = of_pairs if of_pairs.any() else np.ones(len(ends))
        gamma = settings.gamma if settings.pair_gamma is None else settings.pair_gamma
        pair_kernel = _kernel(settings, gamma, pair_points, of_pairs, threads)
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
        pair_kernel=pair_kernel,
        pair_points=pair_points,
    )
    rule = StopRule(float(settings.tol), _DEFAULT_PASSES if settings.max_iter is None else float(settings.max_iter))
    some = kernel if kernel is not None else pair_kernel
    assert some is not None
    with refusals(some):
        if settings.kernel_approx is not None and kernel is not None:
            landmarks = choose_landmarks(kernel, points, settings.kernel_approx, seed, threads)
            reduced, expansion = solve_reduced(problem, landmarks, rule, callbacks, seed)
            return reduced, Expansions(expansion, None)
        suited(solver, problem)
        if temperature == 0.0 and isinstance(solver, Auto | KernelAscent) and _has_nodes_only(problem):
            return _solve_nodes(problem, solver, rule, callbacks, seed)
        solution: Solution[KernelParts] = solver.solve(problem, rule, _start(old, problem), callbacks, seed)
        found = solution.parameters
        nodes = None if kernel is None else _supported(kernel, points, found.coefficients)
        pairs = None
        if pair_kernel is not None and found.pairs is not None:
            pairs = _supported(pair_kernel, pair_points, found.pairs)
        return as_linear(problem, solution), Expansions(nodes, pairs)


def _kernel(settings: Any, gamma: float | str, points: Any, weights: Floats, threads: int) -> Kernel:
    """Return the kernel of the parameters, for given points and their weights, checked on them."""
    number = chosen_gamma(settings.kernel, gamma, points, weights)
    kernel = Kernel(settings.kernel, number, float(settings.coef0), float(settings.degree))
    check_mercer(kernel, points, threads)
    return kernel


def _solve_nodes(
    problem: KernelObjective, solver: Auto | KernelAscent, rule: StopRule, callbacks: FitCallbacks, seed: int
) -> tuple[Solution[Floats], Expansions]:
    """Solve a problem without transitions: every node on its own, by projections onto the simplex."""
    n_labels, weights = problem.structure.n_labels, np.repeat(problem.weights, np.diff(problem.offsets))
    counted = np.flatnonzero(weights > 0.0)
    kernel, points = problem.kernel, problem.points[counted]
    assert kernel is not None
    one, outputs = (np.arange(n, dtype=np.int32)[:, None] for n in (len(counted), n_labels))
    nodes = KernelMargin(
        kernel,
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
    return as_linear(problem, unscored), Expansions(_supported(kernel, points, coefficients), None)


def as_linear(problem: KernelObjective, solution: Solution[KernelParts]) -> Solution[Floats]:
    """Return the solution with the parameters of a map that takes the scores of nodes and edges as columns."""
    given = {name: getattr(solution, name) for name in ("objective", "gap", "status", "n_iter", "trace", "solver")}
    return Solution(parameters=problem.parameters(solution.parameters.shared), **given)


def _has_nodes_only(problem: KernelObjective) -> bool:
    has_pairs = problem.pair_kernel is not None or problem.score_map.clique_mask.any()
    return problem.structure.is_free and not problem.with_ends and not has_pairs


def _start(old: StructuredModel | None, problem: KernelObjective) -> KernelParts | None:
    """Return coefficients and weights of an earlier model if it was fitted to the same nodes and edges."""
    if old is None or not old.has_kernel or old.structure.n_labels != problem.structure.n_labels:
        return None
    if len(old.parameters) != problem.score_map.n_parameters:
        return None
    nodes, pairs = np.zeros((0, problem.structure.n_labels)), None
    ends = problem.structure.edge_ends(problem.shape)
    real = ends[:, 0] != ends[:, 1]  # roots of trees have rows without coefficients, which are not kept
    edges = None if problem.pair_points is None else problem.pair_points[real]
    if not _same_points(old.expansion, problem.points) or not _same_points(old.pair_expansion, edges):
        return None
    if old.expansion is not None:
        nodes = old.expansion.coefficients
    if old.pair_expansion is not None:
        pairs = np.zeros((len(real), problem.structure.edge_width))
        pairs[real] = old.pair_expansion.coefficients
    weights = problem.score_map.unpack(old.parameters)
    at_ends = [weights.start, weights.stop][: problem.structure.n_ends] if problem.with_ends else []
    return KernelParts(nodes, np.concatenate([weights.cliques, *at_ends]), pairs)


def _same_points(before: Expansion | None, points: Any) -> bool:
    if before is None or points is None:
        return before is None and points is None
    return bool(before.points.shape == points.shape and _equal(before.points, points))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) != isinstance(other, np.ndarray):
        return False
    return bool(np.array_equal(one, other)) if isinstance(one, np.ndarray) else abs(one - other).nnz == 0


def _supported(kernel: Kernel, points: Any, coefficients: Floats) -> Expansion:
    """Leave out the points without coefficients; one stays where none has any."""
    used = np.flatnonzero((coefficients != 0.0).any(axis=1))
    used = used if len(used) else np.arange(1)
    if len(used) == len(coefficients):
        return Expansion(kernel, points, coefficients)
    return Expansion(kernel, points[used], np.ascontiguousarray(coefficients[used]))
