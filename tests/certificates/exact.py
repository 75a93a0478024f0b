"""What a model minimises, in extended precision, from its coefficients and the raw data; and minima by other means.

Every problem here is one of nodes in rows, each with a label, in sequences of length one or more:

    R(A, trans) + Σ_i c_i [ M_T(F_i + Δ_i) - score_i(y_i) ],       F = basis A + bias.

With weights the basis is X and R is ½‖A‖² + ½‖trans‖² or an elastic net; with a kernel the basis is K(X, points) and R
is ½ tr(Aᵀ K(points, points) A) + ½‖trans‖². T is 1 (log-loss) or 0 (hinge with the Hamming cost). Nothing is shared
with the library. Inner products of raw features, in which offsets of 10⁶ cancel, have 60 decimal digits.
"""

from __future__ import annotations

import decimal
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import product

import clarabel
import numpy as np
import scipy.optimize
import scipy.sparse

Wide = np.longdouble
decimal.getcontext().prec = 60

_decimals = np.vectorize(Decimal, otypes=[object])
_NOTHING = Decimal(0)  # what sums over no points are, too


def _wide(numbers: np.ndarray) -> np.ndarray:
    return np.vectorize(lambda number: Wide(str(number)), otypes=[Wide])(numbers)


@dataclass(frozen=True)
class Kernel:
    """A kernel function, in extended precision."""

    name: str
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3

    def __call__(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        a, b = a.astype(Wide), b.astype(Wide)
        if self.name in ("rbf", "laplacian"):
            apart = a[:, None, :] - b[None, :, :]
            distance = (apart**2).sum(-1) if self.name == "rbf" else np.abs(apart).sum(-1)
            return np.exp(-Wide(self.gamma) * distance)
        inner = (a[:, None, :] * b[None, :, :]).sum(-1)
        if self.name == "linear":
            return inner
        inside = Wide(self.gamma) * inner + Wide(self.coef0)
        return np.tanh(inside) if self.name == "sigmoid" else inside**self.degree

    def decimals(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The same in decimal numbers; what the others subtract before they multiply has digits enough."""
        if self.name not in ("linear", "poly"):
            return _decimals(self(a, b).astype(str))
        inner = _decimals(a) @ _decimals(b).T
        return inner if self.name == "linear" else (Decimal(self.gamma) * inner + Decimal(self.coef0)) ** self.degree


@dataclass
class Point:
    """A model: coefficients [m][K] on ``points`` (None: weights of columns), transitions [K][K], bias [K]."""

    coefficients: np.ndarray
    transitions: np.ndarray | None = None
    bias: np.ndarray | None = None
    points: np.ndarray | None = None


@dataclass
class Exact:
    """A problem; ``weights`` are C times those of the sequences, ``pinned``: two classes share one row, as 0 and s."""

    X: np.ndarray  # [N][d]
    lengths: np.ndarray  # [n]
    labels: np.ndarray  # [N]
    weights: np.ndarray  # [n]
    n_labels: int
    temperature: int
    chain: bool
    kernel: Kernel | None = None
    bias: bool = False
    pinned: bool = False
    l1_ratio: float = 0.0
    resolution: float = 0.0  # differences of objectives below this mean nothing

    @cached_property
    def gram(self) -> np.ndarray:
        assert self.kernel is not None
        return self.kernel(self.X, self.X)

    def value(self, point: Point) -> float:
        """The objective, as a float that is right in all its digits but the last few."""
        F = self.scores(point)
        if not np.isfinite(F).all():
            return float("inf")
        if self.kernel is None:
            total = self._penalty(point.coefficients.astype(Wide))
        else:
            A, points = _decimals(point.coefficients), self.X if point.points is None else point.points
            total = Wide(str((A * (self.kernel.decimals(points, points) @ A)).sum() / 2))
        trans = np.zeros((self.n_labels, self.n_labels), Wide)
        if point.transitions is not None:
            trans = point.transitions.astype(Wide)
            total += self._penalty(trans)
        if not np.isfinite(trans).all():
            return float("inf")
        return float(total + self._losses(F, trans))

    def scores(self, point: Point) -> np.ndarray:
        """Scores of all nodes and labels, with the bias."""
        A, points = _decimals(point.coefficients), self.X if point.points is None else point.points
        basis = _decimals(self.X) if self.kernel is None else self.kernel.decimals(self.X, points)
        return _wide(basis @ A + _NOTHING + (0 if point.bias is None else _decimals(point.bias)))

    def _penalty(self, weights: np.ndarray) -> np.longdouble:
        ridge, lasso = 1 - Wide(self.l1_ratio), Wide(self.l1_ratio)
        return ridge / 2 * (weights**2).sum() + lasso * np.abs(weights).sum()

    def _losses(self, F: np.ndarray, trans: np.ndarray) -> np.longdouble:
        """Forward recursions on all sequences of one length at once, with the score of the truth taken off first."""
        cost = Wide(0) if self.temperature else 1 - np.eye(self.n_labels, dtype=Wide)[self.labels]
        # A table added to all labels of a node changes nothing: the truth scores 0 at its node.
        S = F - F[np.arange(len(F)), self.labels][:, None] + cost
        firsts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
        total = Wide(0)
        for length in np.unique(self.lengths):
            which = np.flatnonzero(self.lengths == length)
            at = firsts[which]
            forward, of_truth = S[at], np.zeros(len(which), Wide)
            for t in range(1, length):
                forward = self._reduce(forward[:, :, None] + trans[None], 1) + S[at + t]
                of_truth += trans[self.labels[at + t - 1], self.labels[at + t]]
            total += self.weights[which].astype(Wide) @ (self._reduce(forward, 1) - of_truth)
        return total

    def _reduce(self, scores: np.ndarray, axis: int) -> np.ndarray:
        highest = scores.max(axis=axis, keepdims=True)
        if self.temperature == 0:
            return np.squeeze(highest, axis)
        return np.squeeze(highest + np.log(np.exp(scores - highest).sum(axis=axis, keepdims=True)), axis)

    def rounding(self, point: Point) -> float:
        """What scores and squares that are computed in double precision leave undecided about the objective."""
        A = np.abs(point.coefficients)
        if self.kernel is None:
            sizes, squares = np.abs(self.X) @ A, 0.0
        else:
            points = self.X if point.points is None else point.points
            sizes = np.abs(self.kernel(self.X, points).astype(float)) @ A
            squares = float((A * (np.abs(self.kernel(points, points).astype(float)) @ A)).sum())
        scores = float(np.repeat(self.weights, self.lengths) @ sizes.max(axis=1))
        return 4.0 * float(np.finfo(float).eps) * (scores + squares)

    def zero(self) -> Point:
        """The model that knows nothing."""
        rows = self.X.shape[1] if self.kernel is None else len(self.X)
        return Point(np.zeros((rows, self.n_labels)))

    def best(self) -> Point:
        """A point close to the minimum, where double precision is enough to get there; any point is admissible."""
        if self.temperature == 0:
            return self._point(_hinge_minimum(self._tables))
        return self._point(
            _lasso_minimum(self._tables, self.l1_ratio) if self.l1_ratio else _smooth_minimum(self._tables)
        )

    @cached_property
    def _root(self) -> tuple[np.ndarray, np.ndarray]:
        """Columns Φ with node scores Φ W and penalty ½‖W‖², and what turns W into coefficients."""
        if self.kernel is None:
            return self.X.astype(float), np.eye(self.X.shape[1])
        values, vectors = np.linalg.eigh(self.gram.astype(float))
        keep = values > 1e-13 * max(values[-1], 1e-300)
        return vectors[:, keep] * np.sqrt(values[keep]), vectors[:, keep] / np.sqrt(values[keep])

    @cached_property
    def _tables(self) -> _Tables:
        """Every labelling of every sequence as a row: its features less those of the truth, its cost."""
        columns = self._root[0]
        r, k = columns.shape[1], self.n_labels
        free = [1] if self.pinned else list(range(k))
        place = {label: at for at, label in enumerate(free)}
        size = r * len(free)
        n_trans, n_bias = (k * k if self.chain else 0), (len(free) if self.bias else 0)
        rows, costs, owner, first = [], [], [], 0
        for i, length in enumerate(self.lengths):
            truth = tuple(self.labels[first : first + length])
            for y in product(range(k), repeat=int(length)):
                row = np.zeros(size + n_trans + n_bias)
                for sign, labels in ((1.0, y), (-1.0, truth)):
                    for t, label in enumerate(labels):
                        if label in place:
                            row[place[label] * r : (place[label] + 1) * r] += sign * columns[first + t]
                            if self.bias:
                                row[size + n_trans + place[label]] += sign
                        if t > 0:
                            row[size + labels[t - 1] * k + label] += sign
                rows.append(row)
                costs.append(0.0 if self.temperature else float(np.sum(np.array(y) != truth)))
                owner.append(i)
            first += length
        penalised = np.arange(size + n_trans + n_bias) < size + n_trans
        return _Tables(np.array(rows), np.array(costs), np.array(owner), self.weights.astype(float), penalised)

    def _point(self, w: np.ndarray) -> Point:
        columns, back = self._root
        r, k = columns.shape[1], self.n_labels
        n_free = 1 if self.pinned else k
        size = r * n_free
        A = back @ w[:size].reshape(n_free, r).T
        trans = w[size : size + k * k].reshape(k, k) if self.chain else None
        bias = w[len(w) - n_free :] if self.bias else None
        if self.pinned:
            A = np.column_stack([np.zeros(len(A)), A])
            bias = None if bias is None else np.concatenate([[0.0], bias])
        return Point(A, trans, bias)


@dataclass
class _Tables:
    rows: np.ndarray  # [m][p]
    costs: np.ndarray  # [m]
    owner: np.ndarray  # [m]
    weights: np.ndarray  # [n]
    penalised: np.ndarray  # [p]

    def losses(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """The weighted sum of log-losses, and the probability of each row within its sequence."""
        starts = np.flatnonzero(np.diff(self.owner, prepend=-1))
        scores = self.rows @ w
        high = np.maximum.reduceat(scores, starts)
        p = np.exp(scores - high[self.owner])
        sums = np.add.reduceat(p, starts)
        return float(self.weights @ (high + np.log(sums))), p / sums[self.owner]


def _smooth_minimum(tables: _Tables) -> np.ndarray:
    """Newton's method with a line search on log-losses, in coordinates of equal curvature."""
    rows, penalised = tables.rows, tables.penalised.astype(float)
    starts = np.flatnonzero(np.diff(tables.owner, prepend=-1))
    each = tables.weights[tables.owner]

    def value(w: np.ndarray) -> float:
        return float(0.5 * penalised @ w**2) + tables.losses(w)[0]

    w = np.zeros(rows.shape[1])
    for _ in range(60):
        p = tables.losses(w)[1]
        gradient = penalised * w + rows.T @ (each * p)
        mean = np.add.reduceat(p[:, None] * rows, starts)
        hessian = np.diag(penalised) + rows.T @ ((each * p)[:, None] * rows) - mean.T @ (tables.weights[:, None] * mean)
        scale = 1 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
        with np.errstate(all="ignore"):
            step = -scale * np.linalg.lstsq(hessian * np.outer(scale, scale), scale * gradient, rcond=1e-15)[0]
        now, length, slope = value(w), 1.0, float(gradient @ step)
        if not np.isfinite(slope) or slope > -1e-15 * abs(now):
            break
        while length > 1e-9 and not value(w + length * step) <= now + 1e-4 * length * slope:
            length /= 2
        if length <= 1e-9:
            break
        w = w + length * step
    return w


def _lasso_minimum(tables: _Tables, l1_ratio: float) -> np.ndarray:
    """SciPy's L-BFGS-B on w = a - b with a, b >= 0, from where the penalty is all squares."""
    each, n = tables.weights[tables.owner], tables.rows.shape[1]

    def split(ab: np.ndarray) -> tuple[float, np.ndarray]:
        w = ab[:n] - ab[n:]
        loss, p = tables.losses(w)
        slope = tables.rows.T @ (each * p) + (1 - l1_ratio) * w
        value = loss + (1 - l1_ratio) / 2 * float(w @ w) + l1_ratio * float(ab.sum())
        return value, np.concatenate([slope + l1_ratio, l1_ratio - slope])

    begin = _smooth_minimum(tables)
    first = np.concatenate([np.maximum(begin, 0), np.maximum(-begin, 0)])
    options = {"maxiter": 1000, "maxfun": 2000, "ftol": 0.0, "gtol": 1e-12, "maxcor": 30}
    found = scipy.optimize.minimize(
        split, first, jac=True, method="L-BFGS-B", bounds=[(0, None)] * (2 * n), options=options
    )
    return np.asarray(found.x[:n] - found.x[n:])


def _hinge_minimum(tables: _Tables) -> np.ndarray:
    """Interior points on the primal with one slack for each sequence, rows scaled; whatever comes back is a point."""
    m, p = tables.rows.shape
    n = len(tables.weights)
    # w = u / s with s so that rows have a size of one; ξ_i >= cost + row w, and the penalty is ½ ‖u‖² / s².
    size = max(float(np.abs(tables.rows).max()), 1e-300)
    slack = scipy.sparse.csc_array((-np.ones(m), (np.arange(m), tables.owner)), shape=(m, n))
    A = scipy.sparse.hstack([scipy.sparse.csc_array(tables.rows / size), slack]).tocsc()
    heavy = max(float(tables.weights.max()), 1e-300)
    P = scipy.sparse.diags_array(np.concatenate([tables.penalised / size**2 / heavy, np.zeros(n)])).tocsc()
    q = np.concatenate([np.zeros(p), tables.weights / heavy])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    cones = [clarabel.NonnegativeConeT(m)]
    found = clarabel.DefaultSolver(P, q, A, -tables.costs, cones, settings).solve()
    w = np.array(found.x[:p]) / size
    return w if np.isfinite(w).all() else np.zeros(p)
