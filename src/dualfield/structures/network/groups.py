"""Examples of a network with different hidden variables, in groups that are computed together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Codes, Ints
from dualfield.structures.network.hidden import Conditioned
from dualfield.structures.network.network import Network

__all__ = ["condition"]

# Sets of hidden variables that fewer examples have are answered together, if eliminating all variables that one of
# them hides needs no table of more numbers than this: a call for each set would cost more.
FEW_EXAMPLES, SMALL_TABLE = 16, 2**12


def condition(
    network: Network, codes: Codes, hidden: NDArray[np.bool_], *, max_table: int = 10**7
) -> list[tuple[Ints, Conditioned]]:
    """Return groups of examples that are answered together; every example with a hidden variable is in one of them.

    Parameters
    ----------
    network : Network
        The variables.
    codes : int array of shape (n, n_variables)
        Values; below 0 for none.
    hidden : bool array of shape (n, n_variables)
        Which variables are hidden.
    max_table : int, default=10**7
        The largest table that elimination may need for one example.

    Returns
    -------
    list of (int array, Conditioned)
        Examples, and their hidden variables given the others. A group has one set of hidden variables, or all sets
        that only few examples have.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.structures import Network
    >>> from dualfield.structures.network.groups import condition
    >>> hidden = np.array([[True, False], [False, False], [True, False]])
    >>> [(examples, part)] = condition(Network([2, 2], [[], [0]]), np.zeros((3, 2), dtype=np.int32), hidden)
    >>> examples, part.hidden
    (array([0, 2]), [0])
    """
    sets, owner = np.unique(hidden, axis=0, return_inverse=True)
    owner = owner.ravel()
    rare = (np.bincount(owner, minlength=len(sets)) < FEW_EXAMPLES) & sets.any(axis=1)
    found: list[tuple[Ints, Conditioned]] = []
    left = np.ones(len(codes), dtype=bool)
    if np.count_nonzero(rare) > 1:
        members = np.flatnonzero(sets[rare].any(axis=0))
        lost = ((codes < 0) & ~hidden)[:, members].any(axis=1)  # a value that is known and yet none cannot be kept
        examples = np.flatnonzero(rare[owner] & ~lost)
        known = ~hidden[examples[:, None], members]
        part = Conditioned(network, codes[examples], members.tolist(), known, min(SMALL_TABLE, max_table))
        if len(examples) and part.is_narrow:
            left[examples] = False
            found.append((examples, part))
    for at in np.flatnonzero(sets.any(axis=1)):
        examples = np.flatnonzero((owner == at) & left)
        if len(examples):
            members = np.flatnonzero(sets[at])
            found.append((examples, Conditioned(network, codes[examples], members.tolist(), None, max_table)))
    for _, part in found:
        if not part.is_listed:
            _ = part.graph  # says before the work begins what is too wide
    return found
