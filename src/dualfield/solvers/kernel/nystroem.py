"""Structured models with a kernel in the span of landmarks (Nyström), certified against the full problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch
from dualfield.data.arrays import Floats
from dualfield.data.shapes import Shape
from dualfield.kernels import Kernel
from dualfield.kernels.landmarks import landmark_root
from dualfield.kernels.mercer import ROUNDING, check_curvature
from dualfield.losses import Loss
from dualfield.objectives import Examples, KernelObjective, Objective
from dualfield.scores import Expansion, FeatureTable, LinearScores
from dualfield.solvers import Auto, FlowSwap, Solution, StopRule
from dualfield.solvers.callbacks import FitCallbacks


def solve_reduced(
    problem: KernelObjective, landmarks: Any, rule: StopRule, callbacks: FitCallbacks, seed: int
) -> tuple[Solution[Floats], Expansion]:
    """Solve the problem in the span of the landmarks to the tolerance, then bound what was lost (Nyström).

    In that span the model is linear in features Φ = K(x, landmarks) K(landmarks, landmarks)^(-1/2), and its primal
    value is that of the full problem; its losses are computed from the coefficients of the landmarks, as predictions
    are. With its dual point μ, primal − dual_full(μ) bounds the distance from the minimum of the full problem, up to
    rounding, which is added; it costs one pass over the full kernel matrix, streamed.
    """
    if type(problem.shape) is not Shape:
        raise ValueError(
            f"kernel_approx is for sequences and single nodes, not for {type(problem.structure).__name__}. Use "
            "kernel_approx=None."
        )
    kernel, n_labels = problem.kernel, problem.structure.n_labels
    assert kernel is not None  # landmarks are nodes
    root = landmark_root(kernel, landmarks, problem.n_threads)
    # Features divided by the scale, with losses that count scale² times: the same problem, scale² times as large.
    scale = float(problem.scale)
    features = np.ascontiguousarray(kernel.scores(problem.points, landmarks, root / scale, problem.n_threads))
    batch = Batch(problem.offsets, features.shape[1], features)
    table = FeatureTable.all(features.shape[1], n_labels)
    score_map = LinearScores(problem.structure, table, None, problem.clique_mask, problem.with_ends)
    examples = Examples(nodes=batch, labels=problem.labels, weights=scale**2 * problem.weights)
    loss = Loss(float(problem.temperature), problem.cost)
    reduced = Objective(score_map, examples, loss, n_threads=problem.n_threads)
    # At T = 0 the dual point is the flow that swaps leave.
    solver = Auto() if problem.temperature > 0.0 else FlowSwap()
    solution: Solution[Floats] = solver.solve(reduced, rule, None, callbacks, seed)
    weights = score_map.unpack(solution.parameters)
    expansion = Expansion(kernel, landmarks, np.ascontiguousarray(root @ weights.node.reshape(-1, n_labels)) / scale)
    node = kernel.scores(problem.points, landmarks, expansion.coefficients, problem.n_threads)
    own = np.concatenate([weights.cliques, *([weights.start, weights.stop] if problem.with_ends else [])])
    objective = 0.5 * float(np.square(solution.parameters).sum()) / scale**2 + problem.loss(node, own)
    rest, dual, square = _full_dual(problem, score_map, batch, solution)
    size = _size(kernel, problem.points, rest)
    magnitude = float(size @ (size + _size(kernel, landmarks, expansion.coefficients)))
    reach = float(np.repeat(problem.weights, batch.lengths) @ np.abs(node).max(axis=1, initial=0.0)) + objective
    check_curvature(square, magnitude)
    check_curvature(objective - dual, magnitude + 1e-6 * reach)
    gap = max(objective - dual, 0.0) + ROUNDING * (magnitude + reach)
    parameters = problem.score_map.pack(np.ones(n_labels), weights.cliques, weights.start, weights.stop)
    trace = solution.trace.scaled(1.0 / scale**2).ended(objective, objective - gap, gap, passes=1.0)
    return replace(solution, parameters=parameters, objective=objective, gap=gap, trace=trace, dual=None), expansion


def _size(kernel: Kernel, points: Any, coefficients: Floats) -> Floats:
    """Return Σ_i |B_ik| √K_ii for each label k: no sum of kernel values with these coefficients has larger terms."""
    return np.asarray(np.sqrt(np.maximum(kernel.diagonal(points), 0.0)) @ np.abs(coefficients))


def _full_dual(
    problem: KernelObjective, score_map: LinearScores, batch: Batch, solution: Solution[Floats]
) -> tuple[Floats, float, float]:
    """Return coefficients, a value of the full dual, and ⟨B, K B⟩, at the dual point of a reduced problem's solution.

    The value is at that point, or nearer to the truth.
    """
    each = np.repeat(problem.weights, batch.lengths)[:, None]
    cost = None if problem.cost is None else problem.cost[problem.labels]
    if problem.temperature > 0.0:
        scores = score_map.scores(solution.parameters, batch, n_threads=problem.n_threads)
        found = problem.structure.marginals(
            scores, temperature=problem.temperature, cost=cost, cliques="sum", n_jobs=problem.n_threads
        )
        assert found.clique is not None
        node, cliques = found.node, found.clique.reshape(batch.n_examples, -1)
        best = problem.structure.log_partition(scores, temperature=problem.temperature, cost=cost)
        weights = score_map.unpack(solution.parameters)
        inner = (each * node * scores.node).sum() + problem.weights @ (cliques @ weights.cliques)
        if problem.with_ends:
            inner += sum((each * node)[at] @ end for at, end in _ends(problem, weights.start, weights.stop))
        value = float(problem.weights @ best - inner)  # Σ c (T H + ⟨D, μ⟩)
    else:
        node, cliques = _flow_marginals(problem, solution.dual or {})
        value = 0.0 if cost is None else float((each * node * cost).sum())
    truth = problem.structure.clique_indices(problem.labels, problem.offsets)
    first = np.concatenate([[0], np.cumsum(np.maximum(batch.lengths - 1, 0))])
    np.subtract.at(cliques, (np.repeat(np.arange(batch.n_examples), np.diff(first)), truth), 1.0)
    rest = -each * node
    rest[np.arange(len(rest)), problem.labels] += each[:, 0]
    assert problem.kernel is not None
    bend = float(np.vdot(rest, problem.kernel.scores(problem.points, problem.points, rest, problem.n_threads)))
    shared = float(((problem.weights @ cliques * problem.score_map.clique_mask) ** 2).sum())
    if problem.with_ends:
        occupied = batch.lengths > 0
        starts, stops = batch.offsets[:-1][occupied], batch.offsets[1:][occupied] - 1
        shared += float((rest[starts].sum(axis=0) ** 2).sum() + (rest[stops].sum(axis=0) ** 2).sum())
    square = bend + float(problem.scale) ** 2 * shared
    # On the line from the truth, where everything is zero, to this point the dual is at least t value − ½ t² square:
    # entropies are concave, costs linear.
    step = min(1.0, value / square) if square > 0.0 else 1.0
    return rest, step * value - 0.5 * step**2 * square, bend


def _ends(problem: KernelObjective, start: Floats, stop: Floats) -> list[tuple[int, Floats]]:
    """Return the rows of first and last nodes with the weights that they score."""
    occupied = np.flatnonzero(np.diff(problem.offsets) > 0)
    first = [(int(problem.offsets[i]), start) for i in occupied]
    return first + [(int(problem.offsets[i + 1]) - 1, stop) for i in occupied]


def _flow_marginals(problem: KernelObjective, flow: dict[str, NDArray[Any]]) -> tuple[Floats, Floats]:
    """Return node marginals, and clique marginals summed over the edges of each example, of a flow."""
    n_labels, n_nodes = problem.structure.n_labels, len(problem.labels)
    rows = np.repeat(np.arange(n_nodes), flow["edge_counts"].astype(np.int64))
    before, label = flow["edge_labels"].astype(np.int64).reshape(-1, 2).T
    masses = flow["edge_masses"]
    node = np.zeros((n_nodes, n_labels))
    np.add.at(node, (rows, label), masses)
    inside = np.ones(n_nodes, dtype=bool)
    inside[problem.offsets[:-1][np.diff(problem.offsets) > 0]] = False
    example = np.repeat(np.arange(len(problem.weights)), np.diff(problem.offsets))
    edges = inside[rows]
    cliques = np.zeros((len(problem.weights), problem.structure.n_cliques))
    np.add.at(cliques, (example[rows[edges]], before[edges] * n_labels + label[edges]), masses[edges])
    return node, cliques
