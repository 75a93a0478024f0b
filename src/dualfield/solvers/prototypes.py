"""The smallest objective of each kind: what solvers are asked about where there are no data yet."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dualfield.data import Batch
from dualfield.kernels import Kernel
from dualfield.losses import Loss
from dualfield.objectives import CustomPlanes, Examples, KernelObjective, KernelSoftmax, Objective
from dualfield.regularisers import SquaredNorm, TableDivergence
from dualfield.scores import FeatureTable, LinearScores
from dualfield.solvers.kernel.joint import JointKernelProblem
from dualfield.structures import Chain, Graph, GraphShape

__all__ = [
    "custom_planes",
    "joint_kernel",
    "kernel_objective",
    "kernel_softmax",
    "objective",
    "relaxed_hinge",
    "tables",
]

_COST = 1.0 - np.eye(2)
_LABEL = np.zeros(1, dtype=np.int32)


@cache
def objective(temperature: float) -> Objective:
    """Return the loss of one node: what a CRF minimises at temperatures above 0, and a structural SVM at 0.

    Parameters
    ----------
    temperature : float
        T of the formula.

    Returns
    -------
    Objective
        With two labels.

    Examples
    --------
    >>> from dualfield.solvers import prototypes
    >>> prototypes.objective(0.0).n_examples
    1
    """
    return _one_node(Loss(temperature, _COST if temperature == 0.0 else None))


@cache
def relaxed_hinge() -> Objective:
    """Return the hinge of two nodes that an edge joins, on a relaxation.

    Returns
    -------
    Objective
        With two labels.

    Examples
    --------
    >>> from dualfield.solvers import prototypes, solver_names
    >>> "local_blocks" in solver_names(prototypes.relaxed_hinge())
    True
    """
    edge = np.array([[0, 1]], dtype=np.int32)
    nodes = Batch.build([np.ones((2, 1))]).connect(lambda offsets: GraphShape(offsets, edge, np.array([0, 1])))
    examples = Examples(nodes=nodes, labels=np.zeros(2, dtype=np.int32), weights=np.ones(1))
    graph = Graph(2, inference="trw")
    return Objective(LinearScores(graph, FeatureTable.all(1, 2)), examples, Loss(0.0, _COST))


@cache
def tables() -> Objective:
    """Return the hinge of one node whose parameters are tables of log-probabilities near a reference.

    Returns
    -------
    Objective
        With two labels.

    Examples
    --------
    >>> from dualfield.solvers import prototypes, solver_names
    >>> solver_names(prototypes.tables())
    ['simplicial']
    """
    n = objective(0.0).n_parameters
    return _one_node(Loss(0.0, _COST), TableDivergence(np.ones(n), np.zeros(n, dtype=np.int64)))


def _one_node(loss: Loss, regulariser: TableDivergence | None = None) -> Objective:
    examples = Examples(nodes=Batch.build([np.ones((1, 1))]), labels=_LABEL, weights=np.ones(1))
    return Objective(LinearScores(Chain(2), FeatureTable.all(1, 2)), examples, loss, regulariser)


class _Choice:
    def joint_feature(self, x: Any, y: int) -> Any:
        return x[y]

    def loss(self, y_true: int, y: int) -> float:
        return float(y != y_true)

    def argmax(self, w: Any, x: Any, y_true: int | None = None) -> int:
        return int((x @ w + (0.0 if y_true is None else np.arange(len(x)) != y_true)).argmax())


@cache
def custom_planes() -> CustomPlanes:
    """Return the hinge of one example of a custom problem.

    Returns
    -------
    CustomPlanes
        With two outputs.

    Examples
    --------
    >>> from dualfield.solvers import prototypes, solver_names
    >>> "marginal" in solver_names(prototypes.custom_planes())
    False
    """
    return CustomPlanes(_Choice(), [np.eye(2)], [0], np.ones(1), SquaredNorm(2))


@cache
def kernel_softmax() -> KernelSoftmax:
    """Return the objective of kernel logistic regression for two points.

    Returns
    -------
    KernelSoftmax
        With two classes.

    Examples
    --------
    >>> from dualfield.solvers import prototypes, solver_names
    >>> solver_names(prototypes.kernel_softmax())
    ['auto', 'lbfgs', 'newton', 'online', 'smo', 'working_set']
    """
    return KernelSoftmax(
        Kernel(),
        np.eye(2),
        np.array([0, 1], dtype=np.int32),
        weights=np.ones(2),
        n_classes=2,
        with_bias=True,
        pinned=True,
    )


@cache
def kernel_objective(temperature: float) -> KernelObjective:
    """Return the loss of a chain of two nodes that a kernel scores.

    Parameters
    ----------
    temperature : float
        T of the formula.

    Returns
    -------
    KernelObjective
        With two labels.

    Examples
    --------
    >>> from dualfield.solvers import prototypes, solver_names
    >>> solver_names(prototypes.kernel_objective(1.0))
    ['auto', 'kernel_ascent', 'labelling_smo']
    """
    labels, cost = np.array([0, 1], dtype=np.int32), _COST if temperature == 0.0 else None
    return KernelObjective(
        Chain(2),
        Kernel(),
        np.eye(2),
        offsets=np.array([0, 2]),
        labels=labels,
        weights=np.ones(1),
        cost=cost,
        temperature=temperature,
    )


@cache
def joint_kernel() -> JointKernelProblem:
    """Return the objective of two points under a kernel on pairs of point and label.

    Returns
    -------
    JointKernelProblem
        With two classes.

    Examples
    --------
    >>> from dualfield.solvers import prototypes, solver_names
    >>> solver_names(prototypes.joint_kernel())
    ['auto', 'joint_online']
    """
    return JointKernelProblem(_same, np.eye(2), np.array([0, 1]), codes=np.array([0, 1]), weights=np.ones(2))


def _same(one: tuple[Any, Any], two: tuple[Any, Any]) -> float:
    return float(one[1] == two[1]) * float(one[0] @ two[0])
