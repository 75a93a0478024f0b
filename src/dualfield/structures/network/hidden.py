"""The hidden variables of a network given the others: exact answers for many examples at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data.arrays import Codes, Floats, Ints
from dualfield.structures.factor_graph import FactorGraph
from dualfield.structures.network.network import Network

# Up to so many assignments of the hidden variables are listed; beyond that variables are eliminated one by one.
MOST_LISTED = 4096
# Examples are taken in chunks whose scores have about this many numbers, 8 MB.
NUMBERS_OF_A_CHUNK = 2**20
Rows = NDArray[np.intp]


class _Factors(NamedTuple):
    """The tables that touch the same hidden variables, cut to the rows that the known variables select.

    ``places[r]`` has the places of the entries of row r, one for each assignment of the hidden variables of the scope;
    the last row belongs to tables that are left out, and has places behind all entries. ``rows[i, f]`` is the row of
    table f for example i.
    """

    scope: tuple[int, ...]  # positions in the list of hidden variables
    places: Ints
    rows: Codes


@dataclass(frozen=True, eq=False)
class Conditioned:
    r"""Some examples of a network in which the same variables are hidden, and the others known.

    What the hidden variables score is the sum over the tables that touch one of them, with the known values filled in:

    .. math::
        \mathrm{score}(h) = \sum_{v:\ \mathrm{family}(v) \cap H \ne \emptyset} \theta[\mathrm{index}_v(h, o)]

    A table that touches a known variable without a value (a code below 0) is left out. Memory: 4 bytes for each
    example and table, the tables themselves, and 8 MB for scores on the way.

    Parameters
    ----------
    network : Network
        The variables.
    codes : int array of shape (n, n_variables)
        Values; below 0 for none. Those of hidden variables are used by costs only.
    hidden : sequence of int
        The hidden variables.
    known : bool array of shape (n, number of hidden variables), default=None
        Where a hidden variable is known after all: it keeps its value. So examples with different hidden variables can
        be answered together.
    max_table : int, default=10**7
        The largest table that elimination may need for one example.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.structures import Conditioned, Network
    >>> network = Network([2, 2], [[], [0]])
    >>> theta = np.log([0.4, 0.6, 0.9, 0.1, 0.5, 0.5])
    >>> Conditioned(network, np.array([[-1, 0], [-1, 1]]), [0]).argmax(theta)
    array([[0],
           [1]], dtype=int32)
    """

    network: Network
    codes: Codes
    hidden: Sequence[int]
    known: NDArray[np.bool_] | None = None
    max_table: int = 10**7

    @cached_property
    def n_values(self) -> tuple[int, ...]:
        """Numbers of values of the hidden variables."""
        return tuple(self.network.n_values[v] for v in self.hidden)

    @cached_property
    def truth(self) -> Codes:
        """The values that the codes have for the hidden variables, of shape (n, number of hidden variables)."""
        return np.ascontiguousarray(np.asarray(self.codes)[:, list(self.hidden)], dtype=np.int32)

    @cached_property
    def is_listed(self) -> bool:
        """Whether all assignments are compared; otherwise variables are eliminated one after another."""
        return self.known is None and prod(self.n_values) <= MOST_LISTED

    @cached_property
    def graph(self) -> FactorGraph:
        """The graph of the hidden variables: a clique for each set of them in a table, then one for each of them."""
        try:
            return FactorGraph(self.n_values, self._cliques, max_table=self.max_table)
        except ValueError as error:
            names = [self.network.names[v] for v in self.hidden]
            raise ValueError(
                f"The hidden variables {names!r:.200} are too many to be predicted exactly. {error}"
            ) from None

    @property
    def is_narrow(self) -> bool:
        """Whether elimination needs no table beyond the limit."""
        try:
            return bool(self.graph.n_nodes)
        except ValueError:
            return False

    @cached_property
    def _scopes(self) -> dict[tuple[int, ...], list[int]]:
        """The variables whose tables touch the same hidden ones, by the positions of these."""
        place = {v: at for at, v in enumerate(self.hidden)}
        scopes: dict[tuple[int, ...], list[int]] = {}
        for v in range(self.network.n_variables):
            scope = tuple(sorted(place[one] for one in self.network.family(v) if one in place))
            if scope:
                scopes.setdefault(scope, []).append(v)
        return scopes

    @property
    def _cliques(self) -> list[tuple[int, ...]]:
        return [*self._scopes, *((at,) for at in range(len(self.hidden)))]

    @cached_property
    def _factors(self) -> list[_Factors]:
        return [self._cut(scope, variables) for scope, variables in self._scopes.items()]

    def _cut(self, scope: tuple[int, ...], variables: Sequence[int]) -> _Factors:
        n, blank = len(self.codes), self.network.n_parameters
        n_columns = prod(self.n_values[at] for at in scope)
        rows, places, total = np.empty((n, len(variables)), dtype=np.int32), [], 0
        for f, v in enumerate(variables):
            first, row = self._known_rows(v)
            axes = dict(zip(self.network.family(v), self.network.strides(v), strict=True))
            steps = np.zeros(1, dtype=np.int64)
            for at in scope:
                stride = axes.get(self.hidden[at], 0)
                steps = (steps[:, None] + stride * np.arange(self.n_values[at])).ravel()
            places.append(first[:, None] + steps)
            rows[:, f] = np.where(row < 0, -1, row + total)
            total += len(first)
        rows[rows < 0] = total
        places.append(np.full((1, n_columns), blank, dtype=np.int64))
        return _Factors(scope, np.concatenate(places), rows)

    def _known_rows(self, v: int) -> tuple[Ints, Ints]:
        """Return first entries of a table by what is known, and which of them each example has; -1: a value is missing.

        A large table is cut down to what the examples need of it.
        """
        hidden, family = set(self.hidden), self.network.family(v)
        seen = [(one, stride) for one, stride in zip(family, self.network.strides(v), strict=True) if one not in hidden]
        start = int(self.network.starts[v])
        if not seen:
            return np.array([start]), np.zeros(len(self.codes), dtype=np.int64)
        values = np.asarray(self.codes)[:, [one for one, _ in seen]].astype(np.int64)
        sizes = [self.network.n_values[one] for one, _ in seen]
        good = (values >= 0).all(axis=1)
        if prod(sizes) > len(values):
            first, inverse = np.unique(
                start + values[good] @ np.array([stride for _, stride in seen]), return_inverse=True
            )
            row = np.full(len(values), -1, dtype=np.int64)
            row[good] = inverse
            return first, row
        first = np.full(1, start, dtype=np.int64)
        row = np.zeros(len(values), dtype=np.int64)
        for size, (_, stride), column in zip(sizes, seen, values.T, strict=True):
            first = (first[:, None] + stride * np.arange(size)).ravel()
            row = row * size + column
        return first, np.where(good, row, -1)

    def tables(self, parameters: Floats, examples: Rows | None = None) -> Iterator[tuple[Rows, list[Floats]]]:
        """Return chunks of examples, and what the hidden variables of each clique of :attr:`graph` score.

        Parameters
        ----------
        parameters : array of shape (n_parameters,)
            Entries of all tables.
        examples : int array, default=None
            Which examples; None: all.

        Returns
        -------
        iterator of (int array, list of arrays)
            Examples, and for each set of hidden variables in a table an array of shape (examples, values of the
            first, values of the second, ...).

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Conditioned, Network
        >>> part = Conditioned(Network([2, 2], [[], [0]]), np.array([[-1, 0], [-1, 1]]), [0])
        >>> [(rows, [table])] = part.tables(np.log([0.4, 0.6, 0.9, 0.1, 0.5, 0.5]))
        >>> np.exp(table).round(2)
        array([[0.36, 0.3 ],
               [0.04, 0.3 ]])
        """
        chosen = np.arange(len(self.codes)) if examples is None else np.asarray(examples, dtype=np.intp)
        padded = np.append(parameters, 0.0)  # what is left out scores 0
        entries = [padded[factors.places] for factors in self._factors]
        width = prod(self.n_values) if self.is_listed else sum(table.shape[1] for table in entries)
        step = max(1, NUMBERS_OF_A_CHUNK // max(width, max((f.rows.shape[1] for f in self._factors), default=1)))
        for start in range(0, len(chosen), step):
            at = chosen[start : start + step]
            summed = [_sum_rows(table, factors.rows[at]) for table, factors in zip(entries, self._factors, strict=True)]
            sizes = [tuple(self.n_values[one] for one in factors.scope) for factors in self._factors]
            yield at, [table.reshape(len(at), *size) for table, size in zip(summed, sizes, strict=True)]

    def argmax(self, parameters: Floats, costs: Sequence[Floats] | None = None, examples: Rows | None = None) -> Codes:
        """Return the best values of the hidden variables; the lowest among equals where all are listed.

        Parameters
        ----------
        parameters : array of shape (n_parameters,)
            Entries of all tables.
        costs : sequence of arrays of shape (n_values, n_values), default=None
            For each variable of the network, what a value (column) costs where another is true (row), added to scores.
        examples : int array, default=None
            Which examples; None: all.

        Returns
        -------
        int array of shape (examples, number of hidden variables)
            Values.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Conditioned, Network
        >>> part = Conditioned(Network([2], [[]]), np.array([[0]]), [0])
        >>> part.argmax(np.log([0.6, 0.4])), part.argmax(np.log([0.6, 0.4]), costs=[1.0 - np.eye(2)])
        (array([[0]], dtype=int32), array([[1]], dtype=int32))
        """
        n = len(self.codes) if examples is None else len(examples)
        found, start = np.zeros((n, len(self.hidden)), dtype=np.int32), 0
        for at, tables in self.tables(parameters, examples):
            single = [np.zeros((1, size)) for size in self.n_values]
            if costs is not None:
                single = [costs[v][self.truth[at, h]] for h, v in enumerate(self.hidden)]
            choose = self._listed if self.is_listed else self._eliminated
            found[start : start + len(at)] = choose(at, tables, single)
            start += len(at)
        return found

    def _listed(self, at: Rows, tables: list[Floats], single: list[Floats]) -> Codes:
        total = np.zeros((len(at), *self.n_values))
        for scope, table in zip(self._cliques, [*tables, *single], strict=True):
            shape = [size if h in scope else 1 for h, size in enumerate(self.n_values)]
            total += table.reshape(len(table), *shape)
        best = total.reshape(len(at), -1).argmax(axis=1)
        return np.stack(np.unravel_index(best, self.n_values), axis=1).astype(np.int32)

    def _eliminated(self, at: Rows, tables: list[Floats], single: list[Floats]) -> Codes:
        shared = [table if len(table) == len(at) else table[0] for table in single]
        return self.graph.argmax([*tables, *shared], evidence=self._evidence(at))

    def _evidence(self, at: Rows) -> Codes:
        if self.known is None:
            return np.full((len(at), len(self.hidden)), -1, dtype=np.int32)
        return np.where(self.known[at], self.truth[at], np.int32(-1))

    def rest(self, parameters: Floats) -> Floats:
        """Return what the tables score that touch no hidden variable.

        Parameters
        ----------
        parameters : array of shape (n_parameters,)
            Entries of all tables.

        Returns
        -------
        array of shape (n,)
            One for each example.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Conditioned, Network
        >>> part = Conditioned(Network([2, 2], [[], [0]]), np.array([[0, -1]]), [1])
        >>> np.exp(part.rest(np.log([0.4, 0.6, 0.9, 0.1, 0.5, 0.5])))                     # P(first is 0)
        array([0.4])
        """
        total, padded = np.zeros(len(self.codes)), np.append(parameters, 0.0)
        for v in range(self.network.n_variables):
            if not set(self.network.family(v)) & set(self.hidden):
                first, row = self._known_rows(v)
                total += padded[np.append(first, len(parameters))[row]]  # the last one where a value is missing
        return total

    def log_partition(self, parameters: Floats, fixed: tuple[int, int] | None = None) -> Floats:
        """Return the logarithm of the sum of exp(score) over all values of the hidden variables.

        Parameters
        ----------
        parameters : array of shape (n_parameters,)
            Entries of all tables.
        fixed : (int, int), default=None
            A position in ``hidden``, and the only value there that counts.

        Returns
        -------
        array of shape (n,)
            One for each example.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Conditioned, Network
        >>> part = Conditioned(Network([2, 2], [[], [0]]), np.array([[-1, 0]]), [0])
        >>> np.exp(part.log_partition(np.log([0.4, 0.6, 0.9, 0.1, 0.5, 0.5]))).round(2)   # P(second is 0)
        array([0.66])
        """
        total = np.empty(len(self.codes))
        for at, tables in self.tables(parameters):
            evidence = self._evidence(at)
            if fixed is not None:
                evidence[:, fixed[0]] = fixed[1]
            total[at] = self.graph.log_partition([*tables, *self._blank()], evidence=evidence)
        return total

    def marginals(self, parameters: Floats) -> list[Floats]:
        """Return the probabilities of the values of each hidden variable.

        Parameters
        ----------
        parameters : array of shape (n_parameters,)
            Entries of all tables.

        Returns
        -------
        list of arrays of shape (n, n_values)
            One for each hidden variable.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Conditioned, Network
        >>> part = Conditioned(Network([2, 2], [[], [0]]), np.array([[-1, 0]]), [0])
        >>> part.marginals(np.log([0.4, 0.6, 0.9, 0.1, 0.5, 0.5]))[0].round(3)
        array([[0.545, 0.455]])
        """
        found = [np.empty((len(self.codes), size)) for size in self.n_values]
        for at, tables in self.tables(parameters):
            answers = self.graph.node_marginals([*tables, *self._blank()], evidence=self._evidence(at))
            for kept, answer in zip(found, answers, strict=True):
                kept[at] = answer
        return found

    def _blank(self) -> list[Floats]:
        return [np.zeros(size) for size in self.n_values]

    def used(self, values: Codes, examples: Rows) -> Ints:
        """Return the places of the entries that assignments of the hidden variables use.

        Parameters
        ----------
        values : int array of shape (m, number of hidden variables)
            Assignments.
        examples : int array of shape (m,)
            Of which examples.

        Returns
        -------
        int array of shape (m, number of tables that touch hidden variables)
            Places; n_parameters for tables that are left out.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Conditioned, Network
        >>> part = Conditioned(Network([2, 2], [[], [0]]), np.array([[-1, 0]]), [0])
        >>> part.used(np.array([[1]]), np.array([0]))
        array([[1, 4]])
        """
        found = []
        for factors in self._factors:
            column = np.zeros(len(values), dtype=np.int64)
            for at in factors.scope:
                column = column * self.n_values[at] + values[:, at]
            found.append(factors.places[factors.rows[examples], column[:, None]])
        return np.concatenate(found, axis=1) if found else np.zeros((len(values), 0), dtype=np.int64)


def _sum_rows(table: Floats, rows: Codes) -> Floats:
    """Return for each example the sum of its rows of a table, in their order."""
    if rows.shape[1] == 1:
        return np.asarray(table[rows[:, 0]])
    bounds = np.arange(0, rows.size + 1, rows.shape[1], dtype=np.int32)
    select = scipy.sparse.csr_array((np.ones(rows.size), rows.ravel(), bounds), shape=(len(rows), len(table)))
    return np.asarray(select @ table)
