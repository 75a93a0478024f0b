"""Bayesian networks: a directed graph of discrete variables, and the layout of its tables of log-probabilities."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.arrays import Codes, Floats, Ints
from dualfield.structures.checks import as_floats, check_int


@dataclass(frozen=True)
class Network:
    r"""A directed acyclic graph of discrete variables, each with a table given its parents.

    .. math::
        \log P(x; \theta) = \sum_v \theta[\mathrm{index}_v(x)] = \langle n(x), \theta \rangle

    where :math:`\mathrm{index}_v(x)` is the place of :math:`P(x_v \mid x_{\mathrm{parents}(v)})` in one long vector of
    all tables, and n(x) counts how often each place is used. A table has an axis for each parent and one for the
    variable, which comes last; a row of it, one value of each parent, is a distribution. Variables that share a table
    have it once, and their counts add up.

    Parameters
    ----------
    n_values : sequence of int
        Number of values of each variable.
    parents : sequence of sequences of int
        The parents of each variable.
    tables : sequence of int, default=None
        Which table each variable has; variables with equal numbers share one. None: each has its own.
    names : sequence, default=None
        What errors call the variables; None: their numbers.
    max_table : int, default=10**7
        The largest number of entries of a table.

    Examples
    --------
    Rain wets the grass, and so does the sprinkler, which is used less when it rains:

    >>> import numpy as np
    >>> from dualfield.structures import Network
    >>> network = Network([2, 2, 2], [[], [0], [0, 1]], names=["rain", "sprinkler", "wet"])
    >>> network.n_parameters, network.n_rows
    (14, 7)
    >>> network.indices([[1, 0, 1]])                 # P(rain), P(no sprinkler | rain), P(wet | rain, no sprinkler)
    array([[ 1,  4, 11]])
    >>> network.rows
    array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6])
    """

    n_values: tuple[int, ...]
    parents: tuple[tuple[int, ...], ...]
    tables: tuple[int, ...]
    names: tuple[Hashable, ...] = field(compare=False)
    order: tuple[int, ...] = field(compare=False, repr=False)

    def __init__(
        self,
        n_values: Sequence[int],
        parents: Sequence[Sequence[int]],
        tables: Sequence[int] | None = None,
        names: Sequence[Hashable] | None = None,
        *,
        max_table: int = 10**7,
    ) -> None:
        sizes = tuple(check_int("Network", f"n_values[{v}]", size, 1) for v, size in enumerate(n_values))
        known = tuple(range(len(sizes)) if names is None else names)
        own = tuple(range(len(sizes)) if tables is None else tables)
        for name, given in (("parents", parents), ("names", known), ("tables", own)):
            if len(given) != len(sizes):
                raise ValueError(
                    f"The {name!r} parameter of Network must have an entry for each of {len(sizes)} variables. "
                    f"Got {len(given)} instead."
                )
        found = tuple(_check_parents(v, of, len(sizes), known) for v, of in enumerate(parents))
        object.__setattr__(self, "n_values", sizes)
        object.__setattr__(self, "parents", found)
        object.__setattr__(self, "tables", tuple(int(n) for n in np.unique(own, return_inverse=True)[1]))
        object.__setattr__(self, "names", known)
        object.__setattr__(self, "order", _order(found, known))
        self._check_tables(check_int("Network", "max_table", max_table, 1))

    def _check_tables(self, max_table: int) -> None:
        for v, name in enumerate(self.names):
            size = prod(self.shape(v))
            if size > max_table:
                raise ValueError(
                    f"The table of {name!r} given its {len(self.parents[v])} parents would have {size} entries, more "
                    f"than max_table={max_table}. Use fewer parents or fewer values, or raise max_table where memory "
                    f"holds several times {8 * size} bytes."
                )
            first = self.tables.index(self.tables[v])
            if self.shape(first) != self.shape(v):
                raise ValueError(
                    f"Variables that share a table must have the same numbers of values, and so must their parents. "
                    f"The table of {self.names[first]!r} has shape {self.shape(first)}, that of {name!r} has "
                    f"{self.shape(v)}; the last axis is the variable, the others its parents."
                )

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.n_values)

    @cached_property
    def starts(self) -> Ints:
        """Where the table of each variable begins."""
        firsts = [self.tables.index(table) for table in range(max(self.tables, default=-1) + 1)]
        sizes = [prod(self.shape(v)) for v in firsts]
        return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])[list(self.tables)].astype(np.int64)

    @cached_property
    def n_parameters(self) -> int:
        """Number of entries of all tables."""
        return max((int(start) + prod(self.shape(v)) for v, start in enumerate(self.starts)), default=0)

    @cached_property
    def rows(self) -> Ints:
        """The row, numbered through all tables, of each entry; of shape (n_parameters,)."""
        # An entry begins a row where its place in the table is a multiple of the number of values.
        begins = np.zeros(self.n_parameters, dtype=np.int64)
        for v, start in enumerate(self.starts):
            begins[start : start + prod(self.shape(v)) : self.n_values[v]] = 1
        return np.cumsum(begins) - 1

    @property
    def n_rows(self) -> int:
        """Number of rows of all tables."""
        return int(self.rows[-1]) + 1 if self.n_parameters else 0

    def family(self, variable: int) -> tuple[int, ...]:
        """Return the parents of a variable and, last, the variable itself: the axes of its table.

        Parameters
        ----------
        variable : int
            Which one.

        Returns
        -------
        tuple of int
            Variables.

        Examples
        --------
        >>> from dualfield.structures import Network
        >>> Network([2, 3], [[1], []]).family(0)
        (1, 0)
        """
        return (*self.parents[variable], variable)

    def shape(self, variable: int) -> tuple[int, ...]:
        """Return the shape of the table of a variable.

        Parameters
        ----------
        variable : int
            Which one.

        Returns
        -------
        tuple of int
            Numbers of values of its parents, and its own.

        Examples
        --------
        >>> from dualfield.structures import Network
        >>> Network([2, 3], [[1], []]).shape(0)
        (3, 2)
        """
        return tuple(self.n_values[one] for one in self.family(variable))

    def strides(self, variable: int) -> Ints:
        """Return by how many entries of its table each axis moves, in the order of :meth:`family`.

        Parameters
        ----------
        variable : int
            Which one.

        Returns
        -------
        int array
            One for each parent, and 1 for the variable.

        Examples
        --------
        >>> from dualfield.structures import Network
        >>> Network([2, 3, 4], [[1, 2], [], []]).strides(0)
        array([8, 2, 1])
        """
        behind = self.shape(variable)[:0:-1]
        return np.cumprod([1, *behind], dtype=np.int64)[::-1].copy()

    def table(self, values: Floats, variable: int) -> Floats:
        """Return the table of a variable, as a view of a vector of all tables.

        Parameters
        ----------
        values : array of shape (n_parameters,)
            Entries of all tables.
        variable : int
            Which one.

        Returns
        -------
        array of the shape of the table
            Its entries.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Network
        >>> Network([2, 2], [[], [0]]).table(np.arange(6.0), 1)
        array([[2., 3.],
               [4., 5.]])
        """
        shape, start = self.shape(variable), int(self.starts[variable])
        return values[start : start + prod(shape)].reshape(shape)

    def indices(self, codes: ArrayLike) -> Ints:
        """Return the place of the entry that each variable uses.

        Parameters
        ----------
        codes : int array of shape (n, n_variables)
            Values; below 0 where there is none.

        Returns
        -------
        int array of shape (n, n_variables)
            Places; -1 where the variable or a parent has no value.

        Examples
        --------
        >>> from dualfield.structures import Network
        >>> Network([2, 2], [[], [0]]).indices([[1, 0], [-1, 0]])
        array([[ 1,  4],
               [-1, -1]])
        """
        table = self._check_codes(codes)
        found = np.empty(table.shape, dtype=np.int64)
        for v in range(self.n_variables):
            members = table[:, list(self.family(v))]
            places = self.starts[v] + members @ self.strides(v)
            found[:, v] = np.where((members >= 0).all(axis=1), places, -1)
        return found

    def _check_codes(self, codes: ArrayLike) -> NDArray[Any]:
        """Return rows of values, each below its number of values, or raise an error that says where one is not."""
        table: NDArray[Any] = np.asarray(codes)
        if table.size == 0 and table.ndim == 2:
            table = table.astype(np.int64)  # an empty list has no type of its own
        if table.ndim != 2 or table.shape[1] != self.n_variables or not np.issubdtype(table.dtype, np.integer):
            raise ValueError(
                f"codes must be integers of shape (n, {self.n_variables}), a column for each variable. "
                f"Got shape {table.shape} and dtype {table.dtype} instead."
            )
        outside = table >= np.asarray(self.n_values)
        if outside.any():
            row, v = (int(at) for at in np.unravel_index(int(outside.argmax()), table.shape))
            raise ValueError(
                f"codes of {self.names[v]!r} must be below {self.n_values[v]}, its number of values, or below 0 for "
                f"none. Got codes[{row}, {v}] = {table[row, v]} instead."
            )
        return table

    def counts(self, codes: ArrayLike, weights: ArrayLike | None = None) -> Floats:
        """Return how often each entry is used by rows of values: n of the formula, summed.

        Parameters
        ----------
        codes : int array of shape (n, n_variables)
            Values; below 0 where there is none.
        weights : array of shape (n,), default=None
            How much each row counts; None: 1.

        Returns
        -------
        array of shape (n_parameters,)
            Counts.

        Examples
        --------
        >>> from dualfield.structures import Network
        >>> Network([2, 2], [[], [0]]).counts([[1, 0], [1, 1], [0, 1]])
        array([1., 2., 0., 1., 1., 1.])
        """
        places = self.indices(codes)
        if weights is not None:
            weights = as_floats("weights", weights, 1)
            if len(weights) != len(places):
                raise ValueError(f"weights must have an entry for each of {len(places)} rows. Got {len(weights)}.")
        total = np.zeros(self.n_parameters)
        for column in places.T:
            used = column >= 0
            each = None if weights is None else weights[used]
            total += np.bincount(column[used], each, minlength=self.n_parameters)
        return total

    def sample(self, parameters: Floats, n: int, random: np.random.RandomState) -> Codes:
        """Draw rows of values, parents before children; rows of tables that sum to less than 1 are scaled.

        Parameters
        ----------
        parameters : array of shape (n_parameters,)
            Log-probabilities.
        n : int
            How many.
        random : RandomState
            The random generator.

        Returns
        -------
        int array of shape (n, n_variables)
            Values.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Network
        >>> always = np.log([1e-9, 1.0, 0.5, 0.5, 1.0, 1e-9])
        >>> Network([2, 2], [[], [0]]).sample(always, 2, np.random.RandomState(0))
        array([[1, 0],
               [1, 0]], dtype=int32)
        """
        codes = np.zeros((n, self.n_variables), dtype=np.int32)
        for v in self.order:
            table = np.exp(self.table(parameters, v)).reshape(-1, self.n_values[v])
            upto = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)
            row = codes[:, list(self.parents[v])] @ (self.strides(v)[:-1] // self.n_values[v])
            drawn = random.uniform(size=n)
            codes[:, v] = (drawn[:, None] >= upto[row, :-1]).sum(axis=1)
        return codes


def _check_parents(v: int, parents: Sequence[int], n: int, names: tuple[Hashable, ...]) -> tuple[int, ...]:
    found = tuple(int(one) for one in parents)
    if any(not 0 <= one < n for one in found):
        raise ValueError(f"The parents of {names[v]!r} must be variables in [0, {n}). Got {found} instead.")
    if len(set(found)) < len(found):
        twice = next(one for one in found if found.count(one) > 1)
        raise ValueError(f"The parents of {names[v]!r} must be distinct. Got {names[twice]!r} twice.")
    return found


def _order(parents: tuple[tuple[int, ...], ...], names: tuple[Hashable, ...]) -> tuple[int, ...]:
    """Return the variables, parents before children, the lowest first among those that may come next."""
    left, order = {v: set(of) for v, of in enumerate(parents)}, []
    while left:
        ready = [v for v, of in left.items() if not of]
        if not ready:
            raise ValueError(f"The network must have no cycle. Got {_cycle(left, names)} instead.")
        order += ready
        for v in ready:
            del left[v]
        left = {v: of.difference(ready) for v, of in left.items()}
    return tuple(order)


def _cycle(left: dict[int, set[int]], names: tuple[Hashable, ...]) -> str:
    """Return a cycle in words: every variable that is left has a parent that is left."""
    path = [min(left)]
    while path.count(path[-1]) == 1:
        path.append(min(left[path[-1]]))
    circle = path[path.index(path[-1]) :][::-1]  # from parents to children
    return " -> ".join(repr(names[v]) for v in circle)
