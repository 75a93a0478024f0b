"""From labelled examples to one multiclass problem for each type of clique."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dualfield.data.arrays import Floats
from dualfield.data.checks import fixed_random_state
from dualfield.kernels import Kernel
from dualfield.kernels.gamma import clique_gamma
from dualfield.kernels.summed import SummedKernel
from dualfield.scores.cliques import ChainLayout, Cliques, GraphLayout, Layout, ShapeLayout, gather


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledExamples:
    """Training examples as arrays: input rows, codes of all nodes, and the weight of each example."""

    layout: Layout
    matrix: Any
    codes: NDArray[np.int32]
    weights: Floats
    n_states: int
    is_weighted: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class CliqueTask:
    """What is to be learnt of each type of clique: a loss with kernel and C, or a classifier of others."""

    loss: str  # "hinge", "log", "squared"
    features: str  # "joint", "tied", "tied_separately", "tied_printed"
    kernel: Kernel  # without its γ
    gamma: float | str
    C: float
    estimator: Any
    random_state: Any
    cache_bytes: int


@dataclass(frozen=True, eq=False, kw_only=True)
class CliqueProblem:
    """What a worker needs to train one type of clique: plain arrays and settings."""

    size: int
    key: Hashable
    tuples: NDArray[np.int32]  # (q, size)
    truth: NDArray[np.int32]  # (n,) rows of tuples
    weights: Floats  # (n,) of the cliques, times C where there is a C
    points: Any
    members: NDArray[np.int32]  # (n, n_slots) rows of points
    kernel: Kernel | None
    loss: str  # "hinge", "tied", "log", "squared", "estimator", "none"
    estimator: Any
    is_weighted: bool
    n_states: int
    cache_bytes: int
    seed: int

    @property
    def is_trivial(self) -> bool:
        """Whether there is nothing to decide, or scores come from the nodes."""
        return len(self.tuples) == 1 or self.loss == "none"


def needed_sizes(weights: dict[int, float], with_parts: bool, with_singles: bool) -> set[int]:
    """Return the sizes of windows of which all need a model."""
    sizes = {order + 1 for order in weights}
    if with_parts:
        sizes |= set(range(1, max(sizes)))
    return sizes | {1} if with_singles else sizes


def padded_codes(layout: ChainLayout, codes: NDArray[np.int32], n_labels: int) -> NDArray[np.int32]:
    """Return the codes of all nodes, n_labels for blank ones."""
    padded = np.full(layout.n_nodes, n_labels, dtype=np.int32)
    padded[layout.is_real] = codes
    return padded


def clique_problems(task: CliqueTask, data: LabelledExamples, sizes: set[int]) -> Iterator[CliqueProblem]:
    """Return the problem of each type of clique, for cliques of all sizes that are needed."""
    random = fixed_random_state(task.random_state)
    for cliques in _listed(data.layout, sizes):
        labels, weights = data.codes[cliques.nodes], data.weights[cliques.owner]
        for kind, key in enumerate(cliques.keys):
            chosen = np.flatnonzero((cliques.kinds == kind) & (weights > 0))
            if chosen.size:
                seed = int(random.randint(2**31 - 1))
                yield _problem(task, data, cliques, chosen, key, labels[chosen], weights[chosen], seed)


def _listed(layout: Layout, sizes: set[int]) -> Iterator[Cliques]:
    """Return the cliques to train on: of all sizes that are needed, and what is smaller than the largest clique."""
    if isinstance(layout, GraphLayout):
        for size in sorted(layout.by_size):
            yield layout.cliques(size)
        return
    for size in range(1, max(sizes, default=1) + 1):
        whole = size not in sizes
        cliques = layout.cliques(size) if isinstance(layout, ShapeLayout) else layout.cliques(size, whole=whole)
        if len(cliques):
            yield cliques


def _problem(
    task: CliqueTask,
    data: LabelledExamples,
    cliques: Cliques,
    chosen: NDArray[np.intp],
    key: Hashable,
    labels: NDArray[np.int32],
    weights: Floats,
    seed: int,
) -> CliqueProblem:
    tuples, truth = np.unique(labels, axis=0, return_inverse=True)
    size, rows = cliques.size, cliques.rows[chosen]
    loss, kernel, estimator = _learner(task, size, seed)
    points: Any = None
    members: NDArray[Any]
    if len(tuples) == 1 or loss == "none":
        members = np.zeros((len(rows), 1))
    elif loss == "tied":
        used, place = np.unique(rows, return_inverse=True)
        points, members = data.matrix[used], place.reshape(rows.shape)
    else:
        is_once = data.layout.is_shared_input and task.features != "tied_printed"
        own = None if cliques.own is None else cliques.own[chosen]
        points, members = gather(data.matrix, rows[:, :1] if is_once else rows, own), np.arange(len(rows))[:, None]
    if kernel is not None and points is not None:
        is_summed = task.features == "tied_printed" and size > 1
        kernel = replace(kernel, gamma=clique_gamma(task.gamma, data.matrix[np.unique(rows)] if is_summed else points))
        if is_summed:
            kernel = Kernel(SummedKernel(kernel, size))
    return CliqueProblem(
        size=size,
        key=key,
        tuples=np.ascontiguousarray(tuples, dtype=np.int32),
        truth=truth.astype(np.int32).ravel(),
        weights=np.ascontiguousarray((1.0 if loss == "estimator" else task.C) * weights),
        points=points,
        members=np.ascontiguousarray(members, dtype=np.int32),
        kernel=kernel if points is not None else None,
        loss=loss,
        estimator=estimator,
        is_weighted=data.is_weighted,
        n_states=data.n_states,
        cache_bytes=task.cache_bytes,
        seed=seed,
    )


def _learner(task: CliqueTask, size: int, seed: int) -> tuple[str, Kernel | None, Any]:
    """Return the name of the loss, the kernel without its γ, and the classifier of others."""
    if task.features == "tied_separately" and size > 1:
        return "none", None, None
    if task.estimator is None:
        return "tied" if task.features == "tied" else task.loss, task.kernel, None
    estimator = clone(task.estimator)
    if task.random_state is not None:
        names = [name for name in sorted(estimator.get_params()) if name.split("__")[-1] == "random_state"]
        random = np.random.RandomState(seed)
        estimator.set_params(**{name: int(random.randint(2**31 - 1)) for name in names})
    return "estimator", None, estimator
