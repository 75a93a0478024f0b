"""Softmax over one node in the span of inducing points, with its points in partitions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.engines import Engine, Handles
from dualfield.engines.blas_threads import one_blas_thread
from dualfield.kernels import Kernel
from dualfield.kernels.landmarks import landmark_root
from dualfield.kernels.mercer import NotPositiveError
from dualfield.objectives.kernel_softmax import KernelSoftmax
from dualfield.objectives.point_facts import PointFacts

# Kernel values of so many bytes are computed at a time: they stay in the cache for the two products.
_BLOCK_BYTES = 2**21
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False, kw_only=True)
class SoftmaxTask:
    """What every partition needs to know, whatever the point.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    inducing : array or sparse array of shape (m, n_features)
        Inducing points.
    facts : PointFacts
        How rows are read, and their weights.
    with_bias, pinned : bool
        As in :class:`KernelSoftmax`.
    n_threads : int
        For kernel values; sums do not depend on it.
    """

    kernel: Kernel
    inducing: Any
    facts: PointFacts
    with_bias: bool
    pinned: bool
    n_threads: int

    @cached_property
    def present(self) -> NDArray[np.intp]:
        """Classes with a weight above zero."""
        return np.flatnonzero(self.facts.mass > 0.0)

    def softmax(self, codes: NDArray[np.int32], weights: Floats) -> KernelSoftmax:
        """Return the loss of some rows, whose codes are among all classes."""
        return KernelSoftmax(
            self.kernel,
            None,
            np.searchsorted(self.present, codes).astype(np.int32),
            weights=weights,
            n_classes=len(self.present),
            with_bias=self.with_bias,
            pinned=self.pinned,
        )


def softmax_pass(
    part: Any, task: SoftmaxTask, coefficients: Floats, bias: Floats, with_truth: bool
) -> tuple[float, Floats, Floats, float]:
    """Return what a partition adds to loss and gradient, from kernel values that are computed block by block.

    Parameters
    ----------
    part : PointPart or Rows
        The partition.
    task : SoftmaxTask
        The problem.
    coefficients, bias : arrays of shape (m, n_rows) and (n_rows,)
        Scores are K(X, inducing) coefficients + bias.
    with_truth : bool
        Whether the sums over true classes are wanted, too.

    Returns
    -------
    loss : float
        The weighted loss.
    pull : array of shape (m, n_rows), or (m, n_rows + n_classes)
        K(inducing, X) e with e = c (D − P), and K(inducing, X) c D.
    balance : array of shape (n_rows,)
        The sums of e.
    size : float
        Σ |e| √max(k(x, x), 1): how large the terms of these sums are.
    """
    rows, codes = task.facts.read(part)
    n_rows, n_classes = len(bias), len(task.present)
    loss, size, balance = 0.0, 0.0, np.zeros(n_rows)
    pull = np.zeros((coefficients.shape[0], n_rows + (n_classes if with_truth else 0)))
    step = max(1, _BLOCK_BYTES // (8 * len(coefficients)))
    with one_blas_thread():  # other splits of a product have other last bits
        for first in range(0, len(codes), step):
            block = slice(first, first + step)
            points, problem = rows.X[block], task.softmax(codes[block], rows.weights[block])
            values = task.kernel.values(points, task.inducing, task.n_threads)
            value, residual = problem.loss(values @ coefficients + bias)
            loss += value
            balance += residual.sum(axis=0)
            lengths = np.sqrt(np.maximum(task.kernel.diagonal(points), 1.0))
            size += float(lengths @ np.abs(residual).sum(axis=1))
            if with_truth:
                truth = problem.weights[:, None] * (problem.labels[:, None] == np.arange(n_classes))
                residual = np.column_stack([residual, truth])
            pull += values.T @ residual
    return loss, pull, balance, size


@dataclass(frozen=True, eq=False)
class SoftmaxValue:
    """Value, gradient and a dual value at a point.

    Parameters
    ----------
    objective : float
        Primal value.
    gradient : array
        With respect to weights and bias.
    gap : float
        Bound on the distance from the minimum of this problem: objective minus a value of its dual.
    """

    objective: float
    gradient: Floats
    gap: float

    @property
    def dual(self) -> float:
        """A lower bound on the minimum."""
        return self.objective - self.gap


class PartitionedSoftmax:
    """The inducing-point problem of kernel logistic regression, as sums over partitions.

    With Φ = K(X, Z) R, R = K(Z, Z)^(-1/2), and a label kernel T = Q Q', scores are F = Φ V Q' + b and::

        primal(V, b) = ½ ‖V‖² + Σ_i c_i [ log Σ_y exp F_iy − F_i,y_i ]
        dual(p)      = −½ ‖Φ' E Q‖² + Σ_i c_i H(p_i),   E_i = c_i (D_i − p_i),   Σ_i E_i = 0 if there is a bias

    An evaluation is one pass over the rows. It also certifies: see :meth:`evaluate`. Φ is never there; rows pass by in
    blocks of kernel values.

    Parameters
    ----------
    engine : Engine
        Where partitions are worked on.
    parts : sequence of PointPart, or Handles
        The partitions.
    task : SoftmaxTask
        The problem.
    label_kernel : array of shape (n_classes, n_classes), default=None
        T, for the classes that have a weight.
    """

    def __init__(
        self, engine: Engine, parts: Any | Handles, task: SoftmaxTask, label_kernel: Floats | None = None
    ) -> None:
        self.engine, self.parts, self.task = engine, parts, task
        self.root = landmark_root(task.kernel, task.inducing, task.n_threads)
        self.n_rows = len(task.present) - int(task.pinned)
        self.mixing = np.eye(self.n_rows) if label_kernel is None else _root_of(label_kernel)
        self.n_passes = 0
        self._truth: Floats | None = None

    @property
    def n_weights(self) -> int:
        """Number of weights V."""
        return int(self.root.shape[1] * self.mixing.shape[1])

    def parted(self, point: Floats) -> tuple[Floats, Floats]:
        """Return V and b of a vector."""
        V = point[: self.n_weights].reshape(self.root.shape[1], self.mixing.shape[1])
        return V, point[self.n_weights :]

    def coefficients(self, point: Floats) -> Floats:
        """Return the coefficients A of the inducing points: scores are K(X, Z) A T + b."""
        V, _ = self.parted(point)
        return np.asarray(self.root @ (V @ np.linalg.pinv(self.mixing)))

    def evaluate(self, point: Floats) -> SoftmaxValue:
        """Return value, gradient and gap at a point, from one pass over the partitions.

        The dual point is p = softmax(F). Where there is a bias, the classes of p must have the weights of the true
        classes: what a class a has too much goes to a class b that has too little, the same share t of all p_ia. Two
        classes that become one lose at most (S_a + S_b) h(S_a / (S_a + S_b)) of the entropy, S the weights of classes
        and h that of two outcomes, and entropies are concave: t times that bounds the loss.
        """
        V, bias = self.parted(point)
        spread = np.ascontiguousarray(self.root @ (V @ self.mixing.T))
        first = self._truth is None
        handles = self.engine.map(softmax_pass, self.parts, self.task, spread, bias, first)
        loss, pull, balance, size = self.engine.tree_sum(handles)
        self.n_passes += 1
        if not np.isfinite(loss) or not np.isfinite(pull).all():
            raise NotPositiveError("Kernel values overflowed or are not numbers.")
        if first:
            self._truth, pull = pull[:, self.n_rows :], pull[:, : self.n_rows]
        U = self.root.T @ pull @ self.mixing
        objective = 0.5 * float(np.square(V).sum()) + loss
        gradient = np.concatenate([(V - U).ravel(), -balance if self.task.with_bias else np.zeros(len(bias))])
        moved, lost = self._balanced(pull, balance) if self.task.with_bias else (pull, 0.0)
        feasible = self.root.T @ moved @ self.mixing
        gap = (
            0.5 * float(np.square(V - feasible).sum()) + float(np.vdot(feasible - U, V)) - float(balance @ bias) + lost
        )
        return SoftmaxValue(objective, gradient, max(gap, 0.0) + self._rounding(V, bias, spread, size, loss))

    def _balanced(self, pull: Floats, balance: Floats) -> tuple[Floats, float]:
        """Return the sums of a dual point whose classes have the right weights, and a bound on the lost entropy."""
        assert self._truth is not None
        mass = self.task.facts.mass[self.task.present]
        pinned = self.task.pinned
        excess = -np.array([-balance[0], balance[0]]) if pinned else -balance
        every = np.column_stack([-pull[:, 0], pull[:, 0]]) if pinned else pull.copy()
        predicted, weight = self._truth - every, mass + excess  # of p: K c p, and the weights of its classes
        shares, lost = 0.0, 0.0
        left = excess.copy()
        while True:
            a, b = int(left.argmax()), int(left.argmin())
            amount = min(left[a], -left[b])
            if amount <= 0.0:
                break
            share = amount / weight[a]
            both = weight[a] + weight[b]
            odds = np.array([weight[a], weight[b]]) / both
            lost += share * both * float(-(odds * np.log(np.maximum(odds, 1e-300))).sum())
            every[:, a] += share * predicted[:, a]
            every[:, b] -= share * predicted[:, a]
            shares += share
            left[a] -= amount
            left[b] += amount
        # Shares of more than everything are no distribution; what is left is rounding, which the gap has.
        return (every[:, int(pinned) :], lost) if shares <= 1.0 else (pull, np.inf)

    def _rounding(self, V: Floats, bias: Floats, spread: Floats, size: float, loss: float) -> float:
        """Return what rounding may have done to the gap: sums of a block, then of blocks, of terms of a known size."""
        lengths = np.sqrt(np.maximum(self.task.kernel.diagonal(self.task.inducing), 0.0))
        terms = _BLOCK_BYTES // (8 * len(spread)) + 64 + len(spread)
        reach = float((lengths @ np.abs(spread)).max()) + float(np.abs(bias).max(initial=0.0))
        return terms * _EPS * (size * reach + abs(loss) + float(np.square(V).sum()))


def _root_of(label_kernel: Floats) -> Floats:
    """Return Q of full rank with T = Q Q'."""
    values, vectors = np.linalg.eigh(label_kernel)
    kept = values > 1e-12 * max(float(values[-1]), 0.0)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
