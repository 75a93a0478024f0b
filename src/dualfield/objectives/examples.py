"""Labelled examples, as objectives take them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch

__all__ = ["Examples"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Examples:
    """Features, labels and weights of examples, and what is known of labels beyond the true ones.

    Parameters
    ----------
    nodes : Batch
        Features of nodes.
    labels : int32 array of shape (n_nodes,)
        True labels.
    weights : array of shape (n_examples,)
        c_i of the formula: C times the weight of an example.
    pairs : Batch, default=None
        Features of label pairs, a row for each node.
    allowed : bool array of shape (n_nodes, n_labels), default=None
        For partly labelled examples: which labels each node may have. None: the true ones.
    fixed : bool array of shape (n_nodes,), default=None
        Nodes whose label is known at prediction, too: no other label competes there. None: no node.
    unscored : bool array of shape (n_nodes,), default=None
        Nodes where a wrong label costs nothing: their true label is a guess. None: no node.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.data import Batch
    >>> from dualfield.objectives import Examples
    >>> batch = Batch.build([np.array([[1.0], [-2.0]])])
    >>> Examples(nodes=batch, labels=np.array([0, 1], dtype=np.int32), weights=np.ones(1)).nodes.n_examples
    1
    """

    nodes: Batch
    labels: NDArray[np.int32]
    weights: NDArray[np.float64]
    pairs: Batch | None = None
    allowed: NDArray[np.bool_] | None = None
    fixed: NDArray[np.bool_] | None = None
    unscored: NDArray[np.bool_] | None = None

    def take(self, chosen: NDArray[np.int64]) -> Examples:
        """Return some of the examples, with all that is known of them.

        Parameters
        ----------
        chosen : int array of shape (m,)
            Which examples.

        Returns
        -------
        some : Examples
            They alone, in that order.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Batch
        >>> from dualfield.objectives import Examples
        >>> batch = Batch.build([np.zeros((2, 1)), np.ones((1, 1))])
        >>> labels = np.array([0, 1, 2], dtype=np.int32)
        >>> Examples(nodes=batch, labels=labels, weights=np.ones(2)).take(np.array([1])).labels
        array([2], dtype=int32)
        """
        offsets = self.nodes.offsets
        rows = np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in chosen] or [np.zeros(0, np.int64)])

        def of_rows(array: Any) -> Any:
            return None if array is None else array[rows]

        return Examples(
            nodes=self.nodes[chosen],
            labels=self.labels[rows],
            weights=self.weights[chosen],
            pairs=None if self.pairs is None else self.pairs[chosen],
            allowed=of_rows(self.allowed),
            fixed=of_rows(self.fixed),
            unscored=of_rows(self.unscored),
        )
