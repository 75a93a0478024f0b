"""Planes of Bayesian networks with hidden variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data.arrays import Codes, Floats, Ints
from dualfield.objectives.planes import Planes
from dualfield.regularisers import PlaneRegulariser
from dualfield.structures import Conditioned, Network
from dualfield.structures.network.groups import condition

__all__ = ["NetworkPlanes"]


@dataclass(frozen=True, eq=False)
class NetworkPlanes:
    r"""The margin losses of a network whose hidden variables are to be predicted, as maxima of planes.

    .. math::
        \sum_k c_k \max_s \, [ \ell(s_k, s) + \langle n(s, o_k) - n(s_k, o_k), \theta \rangle ]

    where n counts the entries of tables that the hidden values s and the known values o of an example use, and
    :math:`s_k` are its true hidden values. The set of hidden variables may differ from example to example; the
    examples of one set are answered together, and sets that only few examples have are joined where that is cheap.

    Parameters
    ----------
    network : Network
        The variables and their tables.
    codes : int32 array of shape (n_examples, n_variables)
        Values; of known variables below 0 where a value must be left out.
    hidden : bool array of shape (n_examples, n_variables)
        Which variables are hidden.
    weights : array of shape (n_examples,)
        c of the formula.
    regulariser : PlaneRegulariser
        R, which keeps the tables near a reference.
    costs : sequence of arrays of shape (n_values, n_values), default=None
        For each variable what a value (column) costs where another is true (row); the loss is their sum over the hidden
        variables. At least 0, and 0 on the diagonal. None: 1 for every wrong value.
    max_table : int, default=10**7
        The largest table that elimination may need for one example.

    Examples
    --------
    A class with one feature; the class is hidden:

    >>> import numpy as np
    >>> from dualfield.objectives import NetworkPlanes
    >>> from dualfield.regularisers import SquaredNorm
    >>> from dualfield.structures import Network
    >>> network = Network([2, 2], [[], [0]])
    >>> codes, hidden = np.array([[0, 1], [1, 1]], dtype=np.int32), np.array([[True, False], [True, False]])
    >>> problem = NetworkPlanes(
    ...     network, codes, hidden, weights=np.ones(2), regulariser=SquaredNorm(network.n_parameters)
    ... )
    >>> planes = problem.planes(np.log([0.5, 0.5, 0.9, 0.1, 0.4, 0.6]))
    >>> planes.offsets                   # the first is wrong; the truth of the second wins by more than a margin of 1
    array([1., 0.])
    >>> planes.slopes.toarray()[0]       # P(1) and P(1 | 1) are used instead of P(0) and P(1 | 0)
    array([-1.,  1.,  0., -1.,  0.,  1.])
    """

    network: Network
    codes: Codes
    hidden: NDArray[np.bool_]
    _: KW_ONLY
    weights: Floats
    regulariser: PlaneRegulariser
    costs: Sequence[Floats] | None = None
    max_table: int = 10**7

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.codes)

    @property
    def n_parameters(self) -> int:
        """Number of entries of all tables."""
        return self.network.n_parameters

    @cached_property
    def _costs(self) -> Sequence[Floats]:
        return [1.0 - np.eye(size) for size in self.network.n_values] if self.costs is None else self.costs

    @cached_property
    def _groups(self) -> list[tuple[Ints, Conditioned]]:
        return condition(self.network, self.codes, self.hidden, max_table=self.max_table)

    @cached_property
    def _home(self) -> tuple[Ints, Ints]:
        """The group of each example, -1 for none, and its place there."""
        group, place = np.full(self.n_examples, -1), np.zeros(self.n_examples, dtype=np.int64)
        for number, (members, _) in enumerate(self._groups):
            group[members], place[members] = number, np.arange(len(members))
        return group, place

    def planes(self, w: Floats, examples: Ints | None = None) -> Planes:
        """Return the highest plane of each example at w, or of those listed.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.
        examples : int array of shape (m,), default=None
            Which examples; None: all.

        Returns
        -------
        Planes
            One plane for each.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.objectives import NetworkPlanes
        >>> from dualfield.regularisers import SquaredNorm
        >>> from dualfield.structures import Network
        >>> codes, hidden = np.array([[0, 1]], dtype=np.int32), np.array([[True, True]])
        >>> problem = NetworkPlanes(
        ...     Network([2, 2], [[], []]), codes, hidden, weights=np.ones(1), regulariser=SquaredNorm(4)
        ... )
        >>> problem.planes(np.log([0.9, 0.1, 0.5, 0.5])).offsets          # only the second can be wrong with a margin
        array([1.])
        """
        chosen = np.arange(self.n_examples) if examples is None else np.asarray(examples, dtype=np.int64)
        offsets, keys = np.zeros(len(chosen)), np.full(len(chosen), b"", dtype=object)
        group, place = self._home
        order = np.argsort(group[chosen], kind="stable")
        bounds = np.searchsorted(group[chosen][order], np.arange(len(self._groups) + 1))
        entries: list[tuple[Ints, Ints, Floats]] = []
        for (_, part), begin, end in zip(self._groups, bounds[:-1], bounds[1:], strict=True):
            if begin == end:
                continue
            at = order[begin:end]
            rows = place[chosen[at]]
            values = part.argmax(w, self._costs, rows)
            truth = part.truth[rows]
            for h, v in enumerate(part.hidden):
                offsets[at] += self._costs[v][truth[:, h], values[:, h]]
            keys[at] = values.view(np.dtype((np.void, values.strides[0])))[:, 0].astype(object)
            entries += _differences(part, values, truth, rows, at)
        return Planes(chosen, offsets, _matrix(entries, (len(chosen), self.n_parameters)), keys.tolist())


def _differences(
    part: Conditioned, values: Codes, truth: Codes, rows: Ints, at: Ints
) -> list[tuple[Ints, Ints, Floats]]:
    """Return entries of n(s, o) - n(s*, o): only tables whose entry is another one than that of the truth."""
    wrong = np.flatnonzero((values != truth).any(axis=1))
    found, true = (part.used(codes[wrong], rows[wrong]) for codes in (values, truth))
    example, factor = np.nonzero(found != true)
    owner = at[wrong[example]]
    return [
        (owner, found[example, factor], np.ones(len(owner))),
        (owner, true[example, factor], np.full(len(owner), -1.0)),
    ]


def _matrix(entries: list[tuple[Ints, Ints, Floats]], shape: tuple[int, int]) -> scipy.sparse.csr_array:
    if not entries:
        return scipy.sparse.csr_array(shape)
    rows, columns, values = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    matrix = scipy.sparse.coo_array((values, (rows, columns)), shape=shape).tocsr()
    matrix.eliminate_zeros()  # variables that share a table may trade places
    return matrix
