"""Kernel logistic regression on points in partitions: how it is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_class_weight

from dualfield.data.arrays import Floats
from dualfield.data.checks import check_label_kernel
from dualfield.data.point_parts import PointPart
from dualfield.engines import Engine
from dualfield.kernels import Kernel
from dualfield.kernels.gamma import scaled_gamma
from dualfield.kernels.mercer import check_mercer, refusals
from dualfield.models.kernel.classifier import KernelClassifier
from dualfield.objectives.counted_points import CountedPoints
from dualfield.objectives.partitioned_softmax import PartitionedSoftmax, SoftmaxTask
from dualfield.objectives.point_facts import (
    PointFacts,
    PointSample,
    draw_sample,
    kept_parts,
    part_facts,
    placed_parts,
)
from dualfield.scores import Expansion
from dualfield.solvers import KernelPoint, Solution, StopRule
from dualfield.solvers.base import Progress
from dualfield.solvers.kernel.partitioned import solve_partitioned
from dualfield.structures.checks import n_threads

# Rows of the sample for each inducing point, and at least; fewer where their features would take more than a gigabyte.
_ROWS_PER_POINT, _LEAST_ROWS, _MOST_FEATURES = 8, 4000, 2**27


@dataclass(frozen=True, eq=False)
class FitOfParts:
    """What a fit to partitions has found.

    Parameters
    ----------
    model : KernelClassifier
        The model.
    solution : Solution
        With the gap of the inducing-point problem.
    n_features, n_rounds : int
        Columns, and how often all partitions were asked for something.
    """

    model: KernelClassifier
    solution: Solution[KernelPoint]
    n_features: int
    n_rounds: int


def fit_point_parts(
    settings: Any, parts: list[PointPart], engine: Engine, rule: StopRule, seed: int, callbacks: Progress
) -> FitOfParts:
    """Fit the inducing-point model of a KernelLogisticRegression's parameters to partitions.

    Two rounds read sizes, classes and a sample, the others are evaluations. Inducing points are rows of the sample.
    """
    placed = placed_parts(engine, parts)
    found = engine.map(part_facts, placed, names=[part.name for part in parts])
    facts = PointFacts.of(engine.gather(found))
    engine.release(found)
    _check_classes(settings, facts)
    facts = facts.weighted(_factors(settings, facts))
    placed = kept_parts(engine, placed, facts, float(settings.cache_size))
    threads = n_threads(settings.n_jobs)
    wanted = settings.kernel_approx
    m = int(wanted) if isinstance(wanted, int | np.integer) else int(np.shape(wanted)[0])
    sample = draw_sample(engine, placed, facts, sample_size(m), seed)
    kernel = kernel_of(settings, facts, sample)
    check_mercer(kernel, sample.X, threads)
    inducing = _inducing(settings.kernel_approx, facts, sample, seed)
    label_kernel = cast(Any, settings.label_kernel)
    if label_kernel is not None:
        label_kernel = check_label_kernel(type(settings).__name__, label_kernel, len(facts.classes)).copy()
    pinned = len(facts.classes) == 2 and label_kernel is None
    task = SoftmaxTask(
        kernel=kernel,
        inducing=inducing,
        facts=facts,
        with_bias=bool(settings.fit_intercept),
        pinned=pinned,
        n_threads=threads,
    )
    of_present = None if label_kernel is None else label_kernel[np.ix_(task.present, task.present)]
    with refusals(kernel):
        problem = PartitionedSoftmax(engine, placed, task, of_present)
        solution = solve_partitioned(problem, sample, rule, callbacks)
    codes = np.arange(len(facts.classes))
    counted = CountedPoints(codes=codes, weights=facts.mass, n_classes=len(codes), pinned=pinned)
    solution = counted.embedded(solution, len(solution.parameters.coefficients))
    model = KernelClassifier(
        expansion=Expansion(kernel, inducing, np.ascontiguousarray(solution.parameters.coefficients)),
        bias=solution.parameters.bias,
        classes=facts.classes,
        label_kernel=label_kernel,
        point_weights=np.zeros(0),  # too many to keep
    )
    return FitOfParts(model, solution, facts.n_features, problem.n_passes + 2)


def _check_classes(settings: Any, facts: PointFacts) -> None:
    if len(facts.classes) < 2:
        raise ValueError(
            f"{type(settings).__name__} needs points of at least 2 classes. Got {facts.classes} in all partitions."
        )


def _factors(settings: Any, facts: PointFacts) -> Floats:
    """Return C times the weight of each class."""
    weights = np.ones(len(facts.classes))
    if isinstance(settings.class_weight, str) and settings.class_weight == "balanced":
        counts = facts.counts.sum(axis=0)
        weights = counts.sum() / (len(counts) * counts)
    elif settings.class_weight is not None:
        weights = compute_class_weight(settings.class_weight, classes=facts.classes, y=facts.classes)
        if not (weights >= 0).all() or (weights > 0).sum() < 2:
            raise ValueError(
                f"The 'class_weight' parameter of {type(settings).__name__} must be weights of at least 0, two of them "
                f"above 0. Got {settings.class_weight!r} instead."
            )
    return np.asarray(float(settings.C) * weights, dtype=np.float64)


def sample_size(m: int) -> int:
    """Return of how many rows the sample for so many inducing points is."""
    return max(m, min(max(_ROWS_PER_POINT * m, _LEAST_ROWS), _MOST_FEATURES // m))


def kernel_of(settings: Any, facts: PointFacts, sample: PointSample) -> Kernel:
    """Return the kernel that the parameters of an estimator mean for these points."""
    gamma = settings.gamma
    if isinstance(gamma, str):
        scaled = gamma == "scale" and settings.kernel in ("poly", "rbf", "laplacian", "sigmoid")
        gamma = (
            scaled_gamma(facts.n_features, sample.variance, 1.0, sample.largest) if scaled else 1.0 / facts.n_features
        )
    params = dict(getattr(settings, "kernel_params", None) or {})
    return Kernel(settings.kernel, float(gamma), float(settings.coef0), float(settings.degree), params)


def _inducing(wanted: Any, facts: PointFacts, sample: PointSample, seed: int) -> Any:
    if isinstance(wanted, int | np.integer):
        return sample.X[_chosen(min(int(wanted), len(sample.codes)), facts, sample, seed)]
    given = check_array(wanted, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="kernel_approx")
    if given.shape[1] != facts.n_features:
        raise ValueError(
            f"The points of 'kernel_approx' must have {facts.n_features} features, as X has. Got {given.shape[1]}."
        )
    return sparse.csr_array(given) if facts.is_sparse else given


def _chosen(number: int, facts: PointFacts, sample: PointSample, seed: int) -> NDArray[np.intp]:
    """Draw rows of the sample so that each row of the data has about the same chance."""
    counts, drawn = facts.counts.sum(axis=0), np.bincount(sample.codes, minlength=len(facts.classes))
    stands_for = (counts / np.maximum(drawn, 1))[sample.codes]
    random = np.random.default_rng([seed, 1])
    # Exponential clocks: the first to ring are a draw without replacement in proportion to the rates.
    rings = random.exponential(size=len(stands_for)) / stands_for
    return np.sort(np.argsort(rings, kind="stable")[:number])
