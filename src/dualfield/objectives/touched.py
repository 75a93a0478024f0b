"""Vectors of parameters of which a partition touches a part, and their sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats

BYTES = 12  # of an index and a value


def touched_bytes(n_places: int, size: int) -> int:
    """Return the bytes of a vector of this size with so many entries: listed, or whole where that is shorter."""
    return min(BYTES * n_places, 8 * size)


@dataclass(frozen=True, eq=False)
class TouchedValues:
    """A vector that is zero but for some entries: the weights whose features a partition has.

    Parameters
    ----------
    places : int32 array of shape (m,) or None
        Which entries; None: all of them.
    values : array of shape (m,)
        Their values.
    size : int
        Length of the vector.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.objectives.touched import TouchedValues
    >>> TouchedValues(np.array([2], dtype=np.int32), np.array([0.5]), 3).dense()
    array([0. , 0. , 0.5])
    """

    places: NDArray[np.int32] | None
    values: Floats
    size: int

    @property
    def where(self) -> Any:
        """An index of its entries."""
        return slice(None) if self.places is None else self.places

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return int(self.values.nbytes + (0 if self.places is None else self.places.nbytes))

    def dense(self) -> Floats:
        """Return the whole vector.

        Returns
        -------
        array of shape (size,)
            A new one.
        """
        if self.places is None:
            return self.values.copy()
        whole = np.zeros(self.size)
        whole[self.places] = self.values
        return whole

    def shortest(self) -> TouchedValues:
        """Return the same vector as a whole one, where that is shorter than a list of places.

        Returns
        -------
        TouchedValues
            Of :func:`touched_bytes`.
        """
        if self.nbytes > touched_bytes(self.values.size, self.size):
            return TouchedValues(None, self.dense(), self.size)
        return self

    @staticmethod
    def sum_of(vectors: tuple[TouchedValues, ...]) -> TouchedValues:
        """Add up vectors from left to right; the sum lists places as long as that is shorter.

        Parameters
        ----------
        vectors : tuple of TouchedValues
            Of one size.

        Returns
        -------
        TouchedValues
            The sum.
        """
        total, is_dense = vectors[0].dense(), any(vector.places is None for vector in vectors)
        for vector in vectors[1:]:
            total[vector.where] += vector.values
        if is_dense:
            return TouchedValues(None, total, total.size)
        touched = np.zeros(total.size, dtype=bool)
        for vector in vectors:
            touched[vector.where] = True
        places = np.flatnonzero(touched).astype(np.int32)
        return TouchedValues(places, total[places], total.size).shortest()


def add_values(*children: tuple[Any, ...]) -> tuple[Any, ...]:
    """Add up tuples of numbers and :class:`TouchedValues`, from left to right.

    Parameters
    ----------
    *children : tuple
        All of the same make.

    Returns
    -------
    tuple
        The sums.

    Examples
    --------
    >>> from dualfield.objectives.touched import add_values
    >>> add_values((1.0, 2.0), (3.0, 4.0))
    (4.0, 6.0)
    """
    columns = zip(*children, strict=True)
    return tuple(
        TouchedValues.sum_of(one) if isinstance(one[0], TouchedValues) else sum(one[1:], one[0]) for one in columns
    )
