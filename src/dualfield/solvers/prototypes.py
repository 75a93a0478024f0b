"""The smallest objective of each kind: what solvers are asked about where there are no data yet."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dualfield.data import Batch
from dualfield.kernels import Kernel
from dualfield.objectives import ChainLoss, ChainPlanes, CustomPlanes, KernelChain, KernelSoftmax
from dualfield.scores import FeatureTable, LinearScores
from dualfield.solvers.kernel.joint import JointKernelProblem
from dualfield.structures import Chain

__all__ = ["chain_loss", "chain_planes", "custom_planes", "joint_kernel", "kernel_chain", "kernel_softmax"]

_COST = 1.0 - np.eye(2)
_LABEL = np.zeros(1, dtype=np.int32)


@cache
def _score_map() -> LinearScores:
    return LinearScores(Chain(2), FeatureTable.all(1, 2))


@cache
def chain_loss(temperature: float) -> ChainLoss:
    """Return the loss of one node: what a CRF minimises at temperatures above 0, and a structural SVM at 0.

    Parameters
    ----------
    temperature : float
        T of the formula.

    Returns
    -------
    ChainLoss
        With two labels.

    Examples
    --------
    >>> from dualfield.solvers import prototypes, solver_names
    >>> prototypes.chain_loss(0.0).temperature
    0.0
    """
    batch, cost = Batch.build([np.ones((1, 1))]), _COST if temperature == 0.0 else None
    data = _score_map().bind(batch, None, _LABEL, np.ones(1), cost, temperature=temperature)
    return ChainLoss(_score_map(), data)


@cache
def chain_planes() -> ChainPlanes:
    """Return the hinge of one node as planes.

    Returns
    -------
    ChainPlanes
        With two labels.

    Examples
    --------
    >>> from dualfield.solvers import prototypes, solver_names
    >>> prototypes.chain_planes().n_examples
    1
    """
    return ChainPlanes(_score_map(), Batch.build([np.ones((1, 1))]), _LABEL, np.ones(1), _COST)


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
    return CustomPlanes(_Choice(), [np.eye(2)], [0], np.ones(1), 2)


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
    return KernelSoftmax(Kernel(), np.eye(2), np.array([0, 1], dtype=np.int32), np.ones(2), 2, True, True)


@cache
def kernel_chain(temperature: float) -> KernelChain:
    """Return the loss of a chain of two nodes that a kernel scores.

    Parameters
    ----------
    temperature : float
        T of the formula.

    Returns
    -------
    KernelChain
        With two labels.

    Examples
    --------
    >>> from dualfield.solvers import prototypes, solver_names
    >>> solver_names(prototypes.kernel_chain(1.0))
    ['auto', 'kernel_ascent', 'labelling_smo']
    """
    labels, cost = np.array([0, 1], dtype=np.int32), _COST if temperature == 0.0 else None
    return KernelChain(Chain(2), Kernel(), np.eye(2), np.array([0, 2]), labels, np.ones(1), cost, temperature)


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
    return JointKernelProblem(_same, np.eye(2), np.array([0, 1]), np.array([0, 1]), np.ones(2))


def _same(one: tuple[Any, Any], two: tuple[Any, Any]) -> float:
    return float(one[1] == two[1]) * float(one[0] @ two[0])
