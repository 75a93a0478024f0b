"""From labelled examples to one problem for each type of clique, and the models that come back."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dualfield.data.checks import fixed_random_state
from dualfield.estimators.graphical_parameters import DEFAULT_C, clique_gamma
from dualfield.estimators.graphical_problems import CliqueModel, CliqueProblem, solve_clique
from dualfield.estimators.graphical_scores import SummedKernel
from dualfield.kernels import Kernel
from dualfield.scores.cliques import ChainLayout, Cliques, GraphLayout, Layout, gather
from dualfield.solvers import Status, StopRule
from dualfield.structures.checks import n_threads

Floats = NDArray[np.float64]
_DEFAULT_PASSES = 10_000.0


@dataclass(frozen=True, eq=False)
class LabelledExamples:
    """Training examples as arrays: input rows, codes of all nodes, and the weight of each example."""

    layout: Layout
    matrix: Any
    codes: NDArray[np.int32]
    weights: Floats
    n_states: int
    is_weighted: bool


def needed_sizes(weights: dict[int, float], with_parts: bool, with_singles: bool) -> set[int]:
    """Return the sizes of windows of which all need a model."""
    sizes = {order + 1 for order in weights}
    if with_parts:
        sizes |= set(range(1, max(sizes)))
    return sizes | {1} if with_singles else sizes


def listed_cliques(layout: Layout, sizes: set[int], largest: int) -> Iterator[Cliques]:
    """Return the cliques to train on: of all sizes that are needed, and sequences shorter than the largest clique."""
    if isinstance(layout, GraphLayout):
        for size in sorted(layout.by_size):
            yield layout.cliques(size)
        return
    for size in range(1, largest + 1):
        cliques = layout.cliques(size, whole=size not in sizes)
        if len(cliques):
            yield cliques


def train_cliques(
    model: Any, data: LabelledExamples, sizes: set[int], largest: int
) -> dict[tuple[int, Hashable], CliqueModel]:
    """Solve the problems of all clique types, side by side through joblib."""
    problems = list(_problems(model, data, sizes, largest))
    real = sum(len(problem.tuples) > 1 and problem.loss != "none" for problem in problems)
    if real == 1:  # threads inside the only problem, which may also show its progress
        threads = n_threads(model.n_jobs)
        models = [solve_clique(replace(one, n_threads=threads, verbose=int(model.verbose))) for one in problems]
    else:
        # Solvers release the interpreter, so threads will do, unless a joblib context wants something else.
        # A problem is one record, not a list of arrays: dask would send arrays ahead, and lose them with a worker.
        prefer = "threads" if model.base_estimator is None else None
        tasks = (joblib.delayed(solve_clique)(problem) for problem in problems)
        models = joblib.Parallel(n_jobs=model.n_jobs, prefer=prefer)(tasks)
    return {(one.size, one.key): one for one in models}


def summary(models: Sequence[Any]) -> tuple[float, float, int, Status | None]:
    """Return objective and gap, summed over all types, the most iterations, and the first status that is not good.

    The status is None where classifiers of others were trained.
    """
    late = [model.status for model in models if model.status is not Status.CONVERGED]
    return (
        float(sum(model.objective for model in models)),
        float(sum(model.dual_gap for model in models)),
        max(model.n_iter for model in models),
        late[0] if late else Status.CONVERGED,
    )


def _problems(model: Any, data: LabelledExamples, sizes: set[int], largest: int) -> Iterator[CliqueProblem]:
    random = fixed_random_state(model.random_state)
    for cliques in listed_cliques(data.layout, sizes, largest):
        labels, weights = data.codes[cliques.nodes], data.weights[cliques.owner]
        for kind, key in enumerate(cliques.keys):
            chosen = np.flatnonzero((cliques.kinds == kind) & (weights > 0))
            if chosen.size:
                seed = int(random.randint(2**31 - 1))
                yield _problem(model, data, cliques, chosen, key, labels[chosen], weights[chosen], seed)


def _problem(
    model: Any,
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
    loss, kernel, estimator = _learner(model, size, seed)
    points: Any = None
    members: NDArray[Any]
    if len(tuples) == 1 or loss == "none":
        members = np.zeros((len(rows), 1))
    elif loss == "tied":
        used, place = np.unique(rows, return_inverse=True)
        points, members = data.matrix[used], place.reshape(rows.shape)
    else:
        is_once = data.layout.is_shared_input and model.features != "tied_printed"
        points, members = gather(data.matrix, rows[:, :1] if is_once else rows), np.arange(len(rows))[:, None]
    if kernel is not None and points is not None:
        is_summed = model.features == "tied_printed" and size > 1
        kernel = replace(kernel, gamma=clique_gamma(model.gamma, data.matrix[np.unique(rows)] if is_summed else points))
        if is_summed:
            kernel = Kernel(SummedKernel(kernel, size))
    C = 1.0 if loss == "estimator" else float(DEFAULT_C[model.loss] if model.C is None else model.C)
    passes = _DEFAULT_PASSES if model.max_iter is None else float(model.max_iter)
    return CliqueProblem(
        size,
        key,
        np.ascontiguousarray(tuples, dtype=np.int32),
        truth.astype(np.int32).ravel(),
        np.ascontiguousarray(C * weights),
        points,
        np.ascontiguousarray(members, dtype=np.int32),
        kernel if points is not None else None,
        loss,
        estimator,
        data.is_weighted,
        data.n_states,
        StopRule(float(model.tol), passes),
        int(model.cache_size),
        1,
        seed,
        0,
    )


def _learner(model: Any, size: int, seed: int) -> tuple[str, Kernel | None, Any]:
    """Return the name of the loss, the kernel without its γ, and the classifier of others."""
    if model.features == "tied_separately" and size > 1:
        return "none", None, None
    if model.base_estimator is None:
        kernel = Kernel(model.kernel, 1.0, float(model.coef0), float(model.degree))
        return "tied" if model.features == "tied" else model.loss, kernel, None
    estimator = clone(model.base_estimator)
    if model.random_state is not None:
        names = [name for name in sorted(estimator.get_params()) if name.split("__")[-1] == "random_state"]
        random = np.random.RandomState(seed)
        estimator.set_params(**{name: int(random.randint(2**31 - 1)) for name in names})
    return "estimator", None, estimator


def padded_codes(layout: ChainLayout, codes: NDArray[np.int32], n_labels: int) -> NDArray[np.int32]:
    """Return the codes of all nodes, n_labels for blank ones."""
    padded = np.full(layout.n_nodes, n_labels, dtype=np.int32)
    padded[layout.is_real] = codes
    return padded
