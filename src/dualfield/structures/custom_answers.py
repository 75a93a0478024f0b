"""What oracles of users have answered: a maximum that an earlier answer beats is none."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data.arrays import Floats

__all__ = ["EarlierAnswers", "read_only"]

_ROUNDING = 1e-8
_MOST = 30  # answers that are kept for each example, the latest ones


def read_only(w: Floats) -> Floats:
    """Return weights for the eyes of users' code: solvers go on with the same numbers.

    Parameters
    ----------
    w : array
        Weights.

    Returns
    -------
    array
        The same numbers, which cannot be written to.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.structures.custom_answers import read_only
    >>> read_only(np.ones(2)).flags.writeable
    False
    """
    seen = w.view()
    seen.flags.writeable = False
    return seen


class EarlierAnswers:
    r"""The outputs that an oracle has returned for each example, at whatever weights: :math:`b + \langle a, w \rangle`.

    An oracle that maximises returns no output that is below another one. Which outputs there are only the oracle
    knows, but those that it has returned itself are among them.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> from dualfield.structures.custom_answers import EarlierAnswers
    >>> earlier = EarlierAnswers()
    >>> earlier.add(0, 1.0, scipy.sparse.csr_array([[2.0, 0.0]]))
    >>> earlier.beat(0, 2.0, np.array([1.0, 1.0]))                     # 1 + 2 against 2
    1.0
    """

    def __init__(self) -> None:
        self._of: dict[int, OrderedDict[tuple[float, bytes, bytes], tuple[float, NDArray[np.int32], Floats]]] = {}

    def add(self, i: int, offset: float, slope: scipy.sparse.csr_array) -> None:
        """Keep an answer.

        Parameters
        ----------
        i : int
            The example.
        offset : float
            b of the formula.
        slope : scipy.sparse.csr_array of shape (1, n_parameters)
            a of the formula.
        """
        own = self._of.setdefault(i, OrderedDict())
        key = (offset, slope.indices.tobytes(), slope.data.tobytes())
        own[key] = (offset, slope.indices, slope.data)
        own.move_to_end(key)
        if len(own) > _MOST:
            own.popitem(last=False)

    def beat(self, i: int, value: float, w: Floats) -> float:
        """Return by how much an earlier answer is above a value; 0 where none is, or only by rounding.

        Parameters
        ----------
        i : int
            The example.
        value : float
            What the oracle's answer at w has.
        w : array of shape (n_parameters,)
            Weights.

        Returns
        -------
        float
            At least 0.
        """
        most = 0.0
        for offset, places, values in self._of.get(i, {}).values():
            terms = values * w[places]
            above = offset + float(terms.sum()) - value
            if above > _ROUNDING * (1.0 + abs(value) + abs(offset) + float(np.abs(terms).sum())):
                most = max(most, above)
        return most
