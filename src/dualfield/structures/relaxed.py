"""Which examples are too wide for exact answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dualfield.data.shapes import Shape
from dualfield.structures.base import Structure


def relaxed_examples(structure: Structure, shape: Shape) -> NDArray[np.bool_]:
    """Return which examples are answered by bounds, if each is asked about alone.

    A question about several examples is answered by bounds if one of them is too wide.

    Parameters
    ----------
    structure : Structure
        The structure.
    shape : Shape
        Shapes of the examples.

    Returns
    -------
    bool array of shape (n_examples,)
        All False where there is no relaxation.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.structures import Graph, GraphShape
    >>> from dualfield.structures.relaxed import relaxed_examples
    >>> circle = np.array([[0, 1], [1, 2], [2, 0], [0, 1]])
    >>> shape = GraphShape(np.array([0, 3, 5]), circle.astype(np.int32), np.array([0, 3, 4]))
    >>> relaxed_examples(Graph(2, budget=64), shape)
    array([ True, False])
    """
    if structure.relaxation(shape) is None:
        return np.zeros(shape.n_examples, dtype=bool)
    alone = (shape.take(np.array([at])) for at in range(shape.n_examples))
    return np.array([structure.relaxation(one) is not None for one in alone])
