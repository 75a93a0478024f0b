"""Tables of log-probabilities near a reference: the regulariser of discriminative generative models."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from dualfield import _native
from dualfield.data.arrays import Floats, Ints
from dualfield.regularisers.base import PlaneRegulariser, Response
from dualfield.regularisers.interior import Interior, RowProducts, room

__all__ = ["TableDivergence"]

_MOST_ROUNDS = 100  # of the search for a row's multiplier, which ends after a few
_INSIDE = 0.98  # the largest sum of a row to begin with
_SHORTER, _SHORTEST = 0.8, 1e-12


class TableDivergence(PlaneRegulariser):
    r"""The divergence of tables of probabilities from a reference.

    Parameters :math:`\theta` are logarithms of probabilities; those of one row i of a table, the values of one variable
    given one configuration of its parents, are :math:`\theta_i`.

    .. math::
        R(\theta) = \sum_i |c_i| \, \mathrm{KL}(c_i / |c_i| \,\|\, e^{\theta_i})
        = - \sum_i \langle c_i, \theta_i \rangle + \mathrm{constant} \quad \text{subject to} \quad
        \mathbf{1}^\top e^{\theta_i} \le 1, \quad \theta \ge \log(\mathrm{floor})

    The constant makes R zero at the reference: a tolerance relative to the entropy of large tables, which no training
    changes, would be met before the first step. A row may sum to less than one: what is missing is the probability of
    a value that nobody knows. With :math:`d = c - \mu` the minimum of
    :math:`R(\theta) + \langle \mu, \theta \rangle` is reached at

    .. math::
        \theta_{ij} = \log \max(d_{ij} / \lambda_i, \mathrm{floor}), \quad
        \lambda_i \ge 0 \text{ such that the row sums to one, or } 0 \text{ if no } d_{ij} \text{ is positive.}

    Yu, Bertsekas and Rousu have no floor; then the minimum is :math:`-\infty` where some :math:`d_{ij} < 0`, and not
    attained where :math:`c_{ij} = 0`. With a floor it is finite everywhere, so that every mixture of planes gives a
    bound. The floor binds only where a solution would have smaller probabilities.

    Parameters
    ----------
    reference : array of shape (n_parameters,)
        c of the formula; above 0 for parameters of a row.
    rows : int array of shape (n_parameters,)
        The row of each parameter, numbered from 0, in any order; -1 for what is no parameter and stays 0.
    floor : float, default=1e-11
        The least probability, times the length of any row less than 1.
    n_threads : int, default=1
        Number of threads.

    Examples
    --------
    Two rows of two values; the first value of the first row gets less likely:

    >>> import numpy as np
    >>> from dualfield.regularisers import TableDivergence
    >>> tables = TableDivergence(np.array([0.5, 0.5, 0.2, 0.8]), np.array([0, 0, 1, 1]))
    >>> slope, anchor = np.array([0.25, 0.0, 0.0, 0.0]), tables.origin()
    >>> np.exp(tables.respond(slope, anchor, 1e-9).w).round(3)
    array([0.333, 0.667, 0.2  , 0.8  ])
    """

    needs_anchor = True

    def __init__(self, reference: Floats, rows: Ints, floor: float = 1e-11, n_threads: int = 1) -> None:
        self.n_parameters, self._n_threads = len(reference), n_threads
        # Parameters in the order of their rows, which makes each row a range.
        self._order = np.argsort(rows, kind="stable")[np.count_nonzero(rows < 0) :]
        self._owner = np.asarray(rows, dtype=np.int64)[self._order]
        lengths = np.bincount(self._owner)
        if not lengths.size or not lengths.all():
            raise ValueError("rows must number the rows of the tables from 0, each with at least one parameter.")
        self._starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self._reference = np.asarray(reference, dtype=np.float64)[self._order]
        if not (self._reference > 0.0).all() or not np.isfinite(self._reference).all():
            raise ValueError("reference must be above 0 for every parameter of a row. Got a zero, negative or NaN.")
        self._origin = np.log(self._reference / self._sums(self._reference)[self._owner])
        if not 0.0 < floor * lengths.max() < 1.0:
            raise ValueError(f"floor must be in (0, 1 / {lengths.max()}), the length of the longest row. Got {floor}.")
        self._floor = float(np.log(floor))
        if self._origin.min() < self._floor:
            raise ValueError(f"reference must be at least floor={floor} of the sum of its row.")
        size = len(self._order)
        self._row_sums = scipy.sparse.csr_array(
            (np.ones(size), self._owner, np.arange(size + 1)), shape=(size, self.n_rows)
        )

    @property
    def resolution(self) -> float:
        """What rounding makes of a divergence that is zero: its terms are of this size everywhere."""
        return 4.0 * float(np.finfo(np.float64).eps) * float(self._reference @ np.abs(self._origin))

    @property
    def n_rows(self) -> int:
        """Number of rows of all tables."""
        return len(self._starts) - 1

    def origin(self) -> Floats:
        """Return the logarithm of the reference, its rows normalised: where R is 0.

        Returns
        -------
        array of shape (n_parameters,)
            Log-probabilities.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import TableDivergence
        >>> np.exp(TableDivergence(np.array([1.0, 3.0]), np.array([0, 0])).origin())
        array([0.25, 0.75])
        """
        return self._spread(self._origin)

    def nearest(self, w: Floats) -> Floats:
        """Return the tables nearest to given parameters.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Any numbers.

        Returns
        -------
        array of shape (n_parameters,)
            Log-probabilities whose rows sum to at most one.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import TableDivergence
        >>> tables = TableDivergence(np.ones(2), np.array([0, 0]))
        >>> np.exp(tables.nearest(np.array([7.0, 7.0]))).round(6)
        array([0.5, 0.5])
        """
        return self._spread(self._project(np.asarray(w, dtype=np.float64)[self._order])[0])

    def value(self, w: Floats) -> float:
        """Return R of tables.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Log-probabilities.

        Returns
        -------
        float
            R(w).

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import TableDivergence
        >>> round(TableDivergence(np.array([0.5, 0.5]), np.array([0, 0])).value(np.log([0.25, 0.75])), 4)
        0.1438
        """
        return self._divergence(w[self._order])

    def missing_mass(self, w: Floats) -> Floats:
        """Return what each row lacks to one.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Log-probabilities.

        Returns
        -------
        array of shape (n_rows,)
            The probability of a value that is not in the table; 0 up to rounding in most rows.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import TableDivergence
        >>> TableDivergence(np.ones(2), np.array([0, 0])).missing_mass(np.log([0.5, 0.25])).round(6)
        array([0.25])
        """
        return np.asarray(np.maximum(1.0 - self._sums(np.exp(w[self._order])), 0.0))

    def conjugate(self, v: Floats) -> float:
        """Return R*(v), the maximum of ⟨v, θ⟩ - R(θ).

        Parameters
        ----------
        v : array of shape (n_parameters,)
            The negative of a slope.

        Returns
        -------
        float
            The maximum, exact also where the slope exceeds the reference.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import TableDivergence
        >>> tables = TableDivergence(np.array([0.5, 0.5]), np.array([0, 0]))
        >>> round(tables.conjugate(np.array([-0.25, 0.0])), 4)
        0.2158
        """
        weight = self._reference + v[self._order]
        least = np.exp(self._floor)
        # The largest multiplier is right if no entry is at the floor; entries below it go there, which lowers it.
        multiplier = np.maximum(self._sums(np.maximum(weight, 0.0)), 0.0)
        for _ in range(_MOST_ROUNDS):
            free = weight > least * multiplier[self._owner]
            room = 1.0 - least * self._sums((~free).astype(np.float64))
            lower = self._sums(np.where(free, weight, 0.0)) / room
            if not (np.abs(lower - multiplier) > 1e-15 * multiplier).any():
                break
            multiplier = lower
        theta = np.full(len(weight), self._floor)
        theta[free] = np.log(weight[free] / multiplier[self._owner][free])
        return float(v[self._order] @ theta) - self._divergence(theta)

    def respond(self, slope: Floats, anchor: Floats | None = None, pull: float = 0.0) -> Response:
        r"""Return the minimiser of R(θ) + ⟨slope, θ⟩ and half the pull times the squared distance from the anchor.

        It is the point of the domain nearest to :math:`\bar\theta + (c - \mu) / \gamma`.

        Parameters
        ----------
        slope : array of shape (n_parameters,)
            μ of the formula.
        anchor : array of shape (n_parameters,)
            Where the tables are pulled to.
        pull : float
            How strongly, above 0.

        Returns
        -------
        Response
            The tables and the minimum.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.regularisers import TableDivergence
        >>> tables = TableDivergence(np.array([0.5, 0.5]), np.array([0, 0]))
        >>> np.exp(tables.respond(np.zeros(2), np.log([0.25, 0.75]), 1e9).w).round(6)  # held fast
        array([0.25, 0.75])
        """
        if anchor is None or not pull > 0.0:
            raise ValueError("TableDivergence.respond needs an anchor and a pull above 0.")
        near, slopes = anchor[self._order], slope[self._order]
        theta, _ = self._project(near + (self._reference - slopes) / pull)
        away = theta - near
        value = self._divergence(theta) + float(slopes @ theta) + 0.5 * pull * float(away @ away)

        return Response(self._spread(theta), value)

    def interior(
        self, rows: scipy.sparse.csr_array, near: Floats | None = None, anchor: Floats | None = None, pull: float = 0.0
    ) -> Interior:
        """Return tables inside the domain, whose rows sum to less than one.

        Parameters
        ----------
        rows : scipy.sparse.csr_array of shape (m, n_parameters)
            Slopes of the planes that are asked about.
        near : array of shape (n_parameters,), default=None
            Where to begin; None: at the anchor.
        anchor : array of shape (n_parameters,)
            Where the tables are pulled to.
        pull : float
            How strongly, above 0.

        Returns
        -------
        Interior
            With a multiplier for each row. The floor is not among the constraints.

        Examples
        --------
        >>> import numpy as np
        >>> import scipy.sparse
        >>> from dualfield.regularisers import TableDivergence
        >>> tables = TableDivergence(np.ones(2), np.array([0, 0]))
        >>> inside = tables.interior(scipy.sparse.csr_array([[1.0, -1.0]]), anchor=tables.origin(), pull=1.0)
        >>> inside.n_pairs
        1
        """
        if anchor is None or not pull > 0.0:
            raise ValueError("TableDivergence.interior needs an anchor and a pull above 0.")
        return _InsideTables(self, anchor if near is None else near, anchor, pull, rows)

    def _project(self, target: Floats) -> tuple[Floats, Floats]:
        """Return the nearest rows that sum to at most one, and the multipliers of these constraints."""
        return _native.project_rows(np.ascontiguousarray(target), self._starts, self._floor, self._n_threads)

    def _divergence(self, theta: Floats) -> float:
        return float(self._reference @ (self._origin - theta))

    def _sums(self, values: Floats) -> Floats:
        return np.add.reduceat(values, self._starts[:-1])

    def _spread(self, theta: Floats) -> Floats:
        out = np.zeros(self.n_parameters)
        out[self._order] = theta
        return out


class _InsideTables:
    r"""Newton's equations of :math:`\mu - c + \gamma (\theta - \bar\theta) + \lambda_i e^\theta = 0`.

    With :math:`\lambda_i (1 - \mathbf{1}^\top e^{\theta_i}) = \tau` for each row. Their matrix is a diagonal, and for
    each row something of rank one.
    """

    def __init__(
        self, tables: TableDivergence, near: Floats, anchor: Floats, pull: float, rows: scipy.sparse.csr_array
    ) -> None:
        order = tables._order
        self._tables, self._owner, self._pull = tables, tables._owner, pull
        self._anchor, self._theta = anchor[order], near[order]
        excess = tables._sums(np.exp(self._theta)) / _INSIDE
        self._theta = self._theta - np.log(np.maximum(excess, 1.0))[self._owner]
        # A row's multiplier is what is left of the reference, |c - mu|; without planes it is |c|.
        self._multiplier = tables._sums(tables._reference)
        self.n_pairs = tables.n_rows
        self._rows = rows[:, order].tocsr()
        self._products = RowProducts(self._rows)
        self._take_chances()

    @property
    def w(self) -> Floats:
        return self._tables._spread(self._theta)

    @property
    def complementarity(self) -> float:
        return float(self._multiplier @ self._slack)

    @property
    def decrement(self) -> float:
        return float(self._residual @ (self._residual / self._metric))

    metric = None  # one multiplier for each table ties its parameters together

    def linearise(self, slope: Floats) -> None:
        owner, chance = self._owner, self._chance
        push = self._multiplier[owner] * chance
        self._residual = slope[self._tables._order] - self._tables._reference
        self._residual += self._pull * (self._theta - self._anchor) + push
        self._metric = self._pull + push
        self._lean = chance / self._metric
        self._stiffness = self._slack + self._multiplier * self._tables._sums(self._lean * chance)

    def gram(self) -> Floats:
        scaled = self._rows.copy()
        scaled.data = self._rows.data * self._lean[self._rows.indices]
        shared = np.asarray((scaled @ self._tables._row_sums).toarray())
        full = self._products(1.0 / self._metric)
        return np.asarray(full - (shared * (self._multiplier / self._stiffness)) @ shared.T)

    def turn(self, change: Floats, target: float) -> Floats:
        ask = self._residual + change[self._tables._order]
        missing = target - self._multiplier * (self._slack + self._tables._sums(self._lean * ask))
        self._turn_multiplier = missing / self._stiffness
        self._turn = -(ask / self._metric + self._lean * self._turn_multiplier[self._owner])
        return self._tables._spread(self._turn)

    def longest(self) -> float:
        length = room(self._multiplier, self._turn_multiplier)
        # Sums are convex along the way: inside at the end is inside on the way there.
        while length > _SHORTEST and not (self._sums_at(min(length, 1.0)) < 1.0).all():
            length = _SHORTER * min(length, 1.0)
        return length

    def move(self, length: float) -> None:
        self._theta = self._theta + length * self._turn
        self._multiplier = self._multiplier + length * self._turn_multiplier
        self._take_chances()

    def _sums_at(self, length: float) -> Floats:
        return self._tables._sums(np.exp(np.minimum(self._theta + length * self._turn, 1.0)))

    def _take_chances(self) -> None:
        self._chance = np.exp(self._theta)
        self._slack = 1.0 - self._tables._sums(self._chance)
