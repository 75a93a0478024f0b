"""Structures that users write in Python."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data.arrays import Codes, Floats
from dualfield.data.shapes import Shape
from dualfield.structures.base import Structure

__all__ = ["UserStructure"]


class UserStructure(Structure):
    r"""Base class of user-defined structures in Python: any set of labellings with an argmax.

    Nodes have labels, features and weights as in other structures; :meth:`best`, :meth:`soft` and :meth:`parts` define
    the set of labellings and their scores beyond the sum over nodes. ``CRF``, ``StructuredSVM`` and all solvers that do
    not need a chain can train it, slower than native structures: there is a Python call for each example and visit.

    A subclass has ``n_labels`` (0 until it is known) and defines ``with_labels``.

    Examples
    --------
    Labellings with exactly one node of label 1, which no graph of neighbours can say:

    >>> import numpy as np
    >>> from dualfield import CRF
    >>> from dualfield.structures import UserStructure
    >>> class OneOf(UserStructure):
    ...     def __init__(self, n_labels=0):
    ...         self.n_labels = n_labels
    ...
    ...     def with_labels(self, n_labels):
    ...         return OneOf(n_labels)
    ...
    ...     def best(self, node, shared, shape):
    ...         labels = np.zeros(len(node), dtype=np.int32)
    ...         labels[np.argmax(node[:, 1] - node[:, 0])] = 1
    ...         return labels
    ...
    ...     def soft(self, node, shared, shape):
    ...         margins = node[:, 1] - node[:, 0]
    ...         chosen = np.exp(margins - margins.max())
    ...         total = node[:, 0].sum() + margins.max() + np.log(chosen.sum())
    ...         chosen /= chosen.sum()
    ...         return total, np.column_stack([1.0 - chosen, chosen]), shared
    ...
    ...     def refusal(self, labels, shape):
    ...         return "" if labels.sum() == 1 else "exactly one must be 1."
    >>> X = [np.array([[0.0], [2.0], [1.0]]), np.array([[1.0], [0.5]])]
    >>> model = CRF(OneOf(), C=10.0, features="all").fit(X, [[0, 1, 0], [1, 0]])
    >>> model.predict([np.array([[3.0], [4.0], [1.0], [3.9]])])
    [[0, 1, 0, 0]]
    >>> model.dual_gap_ <= 1e-4 * model.objective_
    True
    """

    @property
    def n_cliques(self) -> int:
        """Number of scores beyond those of nodes that labellings may have; 0 unless a subclass says otherwise."""
        return 0

    @abstractmethod
    def best(self, node: Floats, shared: Floats, shape: Shape) -> ArrayLike:
        """Return the best labelling of one example.

        Parameters
        ----------
        node : array of shape (n_nodes, n_labels)
            Scores of its labels.
        shared : array of shape (n_cliques,)
            Scores of its other parts.
        shape : Shape
            Its shape.

        Returns
        -------
        int array of shape (n_nodes,)
            Label codes.
        """

    def soft(self, node: Floats, shared: Floats, shape: Shape) -> tuple[float, ArrayLike, ArrayLike]:
        """Return the log-partition of one example, and the marginals of its parts; needed by a CRF.

        Parameters
        ----------
        node, shared, shape
            As in :meth:`best`.

        Returns
        -------
        log_partition : float
            log Σ_y exp(score(y)).
        node : array of shape (n_nodes, n_labels)
            Probability of each label of each node.
        shared : array of shape (n_cliques,)
            Expected number of occurrences of each other part.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method 'soft', which log-losses need.")

    def parts(self, labels: Codes, shape: Shape) -> Sequence[int]:
        """Return the parts of a labelling beyond its nodes, each as often as it occurs; by default there are none.

        Parameters
        ----------
        labels : int32 array of shape (n_nodes,)
            Label codes.
        shape : Shape
            The shape of the example.

        Returns
        -------
        sequence of int
            In [0, n_cliques).
        """
        return ()

    def refusal(self, labels: Codes, shape: Shape) -> str:
        """Say why a labelling is not allowed; an empty string if it is.

        Parameters
        ----------
        labels, shape
            As in :meth:`parts`.

        Returns
        -------
        str
            The end of the sentence "The labels of example 3 are not allowed: ...".
        """
        return ""

    @abstractmethod
    def with_labels(self, n_labels: int) -> Structure:
        """Return this structure for `n_labels` labels.

        Parameters
        ----------
        n_labels : int
            Number of labels that the training data have.

        Returns
        -------
        Structure
            Of the same class.
        """

    def native(self, shape: Shape, *, with_edges: bool = False, with_ends: bool = False) -> _native.UserStructure:
        """Create the native twin, which calls this object."""
        if with_edges or with_ends:
            raise ValueError(f"{type(self).__name__} has no edge scores and no start or stop scores.")
        return _native.UserStructure(_Calls(self, shape), self.n_labels, shape.offsets, self.n_cliques)

    def _with_labels(self, n_labels: int, shape: Shape) -> Structure:
        return self.with_labels(n_labels)

    def _parts(self, scores: Any) -> tuple[Floats | None, Floats | None]:
        if scores.transition is not None and scores.transition.shape != (self.n_cliques,):
            raise ValueError(f"transition must have shape ({self.n_cliques},). Got {scores.transition.shape} instead.")
        return scores.transition, None


class _Calls:
    """What native code calls."""

    def __init__(self, structure: UserStructure, shape: Shape) -> None:
        self._structure, self._shape = structure, shape

    def _of(self, example: int) -> Shape:
        return self._shape.take(np.array([example]))

    def best(self, example: int, node: Floats, shared: Floats) -> NDArray[np.int32]:
        return np.ascontiguousarray(self._structure.best(node, shared, self._of(example)), dtype=np.int32)

    def marginals(self, example: int, node: Floats, shared: Floats) -> tuple[float, Floats, Floats]:
        total, nodes, parts = self._structure.soft(node, shared, self._of(example))
        return float(total), np.ascontiguousarray(nodes, dtype=float), np.ascontiguousarray(parts, dtype=float)

    def parts(self, example: int, labels: Codes) -> list[int]:
        return [int(part) for part in self._structure.parts(labels, self._of(example))]

    def refusal(self, example: int, labels: Codes) -> str:
        return str(self._structure.refusal(labels, self._of(example)))
