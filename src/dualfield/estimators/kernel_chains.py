"""Models of label sequences whose node scores come from a kernel: how they are trained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.checks import check_number
from dualfield.estimators.crf_data import TrainingData
from dualfield.kernels import Kernel
from dualfield.kernels.gamma import check_kernel, chosen_gamma
from dualfield.kernels.kernel import KERNEL_NAMES
from dualfield.kernels.landmarks import check_landmarks, choose_landmarks
from dualfield.kernels.mercer import check_mercer, refusals
from dualfield.objectives import KernelMargin, KernelObjective
from dualfield.scores import Expansion
from dualfield.scores.kernel import rows_of
from dualfield.solvers import Auto, KernelAscent, KernelParts, Solution, StopRule, prototypes
from dualfield.solvers.callbacks import FitCallbacks
from dualfield.solvers.kernel.nystroem import solve_reduced
from dualfield.solvers.registry import pick_solver, suited

Floats = NDArray[np.float64]
_NAMES = tuple(name for name in KERNEL_NAMES if name != "precomputed")
_DEFAULT_PASSES = 1000.0


def check_kernel_chains(model: Any, temperature: float) -> Any:
    """Raise unless the parameters of a model with a kernel make sense together; return its solver."""
    owner = type(model).__name__
    check_kernel(owner, model, _NAMES)
    check_landmarks(owner, model.kernel_approx)
    check_number(owner, "cache_size", model.cache_size, 0.0)
    check_number(owner, "transition_scale", model.transition_scale, 0.0, open_low=True)
    for name, plain in (("l1_ratio", 0.0), ("pair_features", False), ("min_freq", 0), ("positive", None)):
        value = getattr(model, name, plain)
        if value is not plain and value != plain:
            raise ValueError(f"The {name!r} parameter of {owner} is for features, and a kernel has none to list.")
    if getattr(model, "rescaling", "margin") != "margin":
        raise ValueError(f"The 'rescaling' parameter of {owner} must be 'margin' with a kernel.")
    return pick_solver(owner, model.solver, prototypes.kernel_objective(temperature))


def fit_kernel_chains(
    model: Any, data: TrainingData, temperature: float, solver: Any, threads: int, callbacks: FitCallbacks, seed: int
) -> tuple[Solution[Floats], Expansion]:
    """Train the model; its parameters are the clique scores, and the expansion gives the node scores."""
    if data.allowed is not None:
        raise ValueError("A kernel needs the label of every node: y must not be labelled in part.")
    points = rows_of(data.nodes)
    weights = np.repeat(data.weights, data.nodes.lengths)
    gamma = chosen_gamma(model.kernel, model.gamma, points, weights)
    kernel = Kernel(model.kernel, gamma, float(model.coef0), float(model.degree))
    check_mercer(kernel, points, threads)
    problem = KernelObjective(
        data.structure,
        kernel,
        points,
        data.nodes.offsets,
        data.codes,
        data.weights,
        data.cost,
        temperature,
        data.score_map.clique_mask > 0,
        data.score_map.with_ends,
        float(model.transition_scale),
        int(model.cache_size),
        threads,
        data.nodes.connected,
    )
    rule = StopRule(float(model.tol), _DEFAULT_PASSES if model.max_iter is None else float(model.max_iter))
    with refusals(kernel):
        if model.kernel_approx is not None:
            landmarks = choose_landmarks(kernel, points, model.kernel_approx, seed, threads)
            return solve_reduced(problem, landmarks, rule, callbacks, seed)
        suited(solver, problem)
        if temperature == 0.0 and isinstance(solver, Auto | KernelAscent) and _has_nodes_only(problem):
            return _solve_nodes(problem, solver, rule, callbacks, seed)
        solution: Solution[KernelParts] = solver.solve(problem, rule, _start(model, problem), callbacks, seed)
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
        outputs,
        problem.labels[counted],
        weights[counted],
        n_labels,
        problem.cost,
        problem.cache_bytes,
        problem.n_threads,
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


def _start(model: Any, problem: KernelObjective) -> KernelParts | None:
    """Return coefficients and weights of the last fit if it was one to the same nodes."""
    old: Expansion | None = getattr(model, "expansion_", None)
    if not model.warm_start or old is None or old.points.shape != problem.points.shape:
        return None
    if old.n_labels != problem.structure.n_labels or len(model.parameters_) != problem.score_map.n_parameters:
        return None
    if not _equal(old.points, problem.points):
        return None
    weights = problem.score_map.unpack(model.parameters_)
    ends = [weights.start, weights.stop] if problem.with_ends else []
    return KernelParts(old.coefficients, np.concatenate([weights.cliques, *ends]))


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
