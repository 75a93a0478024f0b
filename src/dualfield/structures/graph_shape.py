"""How the nodes of graphs are connected, and how users arrange what there is for each node."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dualfield.data.shapes import Shape, rows_of_examples
from dualfield.structures.typed_graphs import TypeNames, labels_apart, labels_together

__all__ = ["GraphShape"]


@dataclass(frozen=True, eq=False)
class GraphShape(Shape):
    """How the nodes of graphs are connected.

    Parameters
    ----------
    offsets : int64 array of shape (n_examples + 1,)
        Example i has nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.
    edges : int32 array of shape (n_edges, 2)
        The node that each edge comes from, and the one that it leads to, counted from the first node of their example.
    edge_offsets : int64 array of shape (n_examples + 1,)
        Example i has edges ``edge_offsets[i]`` to ``edge_offsets[i + 1] - 1``.
    types : int32 array of shape (n_edges,), default=None
        The type of each edge; None: all are 0.
    grids : int32 array of shape (n_examples, 2), default=None
        Height and width of examples that are images, whose labels are arranged so; 0 for the others.
    node_types : int32 array of shape (n_nodes,), default=None
        The type of each node; None: all are alike.
    names : TypeNames, default=None
        What node types and the tables of edges are called, where they have names.
    is_grouped : bool array of shape (n_examples,), default=None
        Which examples have their labels by type, as a dict; None: none has.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.structures import GraphShape
    >>> triangle = np.array([[0, 1], [1, 2], [2, 0]], dtype=np.int32)
    >>> GraphShape(np.array([0, 3]), triangle, np.array([0, 3])).n_edges
    3
    """

    edges: NDArray[np.int32]
    edge_offsets: NDArray[np.int64]
    _: KW_ONLY
    types: NDArray[np.int32] | None = None
    grids: NDArray[np.int32] | None = None
    node_types: NDArray[np.int32] | None = None
    names: TypeNames | None = None
    is_grouped: NDArray[np.bool_] | None = None

    @property
    def n_edges(self) -> int:
        """Number of edges of all examples together."""
        return len(self.edges)

    def take(self, examples: NDArray[np.int64]) -> Self:
        """Return the shape of some of the examples."""
        offsets, nodes = rows_of_examples(self.offsets, examples)
        edge_offsets, rows = rows_of_examples(self.edge_offsets, examples)
        types = None if self.types is None else self.types[rows]
        grids = None if self.grids is None else self.grids[examples]
        node_types = None if self.node_types is None else self.node_types[nodes]
        is_grouped = None if self.is_grouped is None else self.is_grouped[examples]
        return type(self)(
            offsets,
            self.edges[rows],
            edge_offsets,
            types=types,
            grids=grids,
            node_types=node_types,
            names=self.names,
            is_grouped=is_grouped,
        )

    def nodes_by_type(self, example: int) -> dict[Any, NDArray[np.int64]]:
        """Return which nodes of an example are of each type that it has.

        Parameters
        ----------
        example : int
            Which one.

        Returns
        -------
        dict
            From a type to its nodes, counted from the first of the example.
        """
        assert self.node_types is not None
        own = self.node_types[self.offsets[example] : self.offsets[example + 1]]
        kinds = np.unique(own)
        called = kinds.tolist() if self.names is None else self.names.nodes.classes[kinds].tolist()
        return {name: np.flatnonzero(own == kind) for name, kind in zip(called, kinds, strict=True)}

    def place(self, node: int) -> str:
        """Return where users find a node: its example, its type where nodes come by type, and its place there."""
        example = int(np.searchsorted(self.offsets, node, side="right")) - 1
        if self.is_grouped is None or not self.is_grouped[example]:
            return super().place(node)
        local = node - int(self.offsets[example])
        kind, at = next((kind, at) for kind, at in self.nodes_by_type(example).items() if local in at)
        return f"[{example}][{kind!r}][{int(np.searchsorted(at, local))}]"

    def _grouped(self) -> list[int]:
        """Return the examples whose nodes come by type."""
        return [] if self.is_grouped is None else np.flatnonzero(self.is_grouped).tolist()

    def flat_labels(self, y: Any, name: str = "y", *, partly: bool = False) -> Any:
        """Return labels in the order of the nodes: those of images row by row, those that come by type put together."""
        if (self.grids is None and self.node_types is None) or len(y) != self.n_examples:
            return super().flat_labels(y, name, partly=partly)
        found = list(y)
        if self.node_types is not None:
            for i in self._grouped():
                found[i] = labels_together(f"{name}[{i}]", found[i], self.nodes_by_type(i), partly)
            return super().flat_labels(found, name, partly=partly)
        assert self.grids is not None
        for i, (height, width) in enumerate(self.grids.tolist()):
            if height and found[i] is not None and np.ndim(found[i]) != 1:
                labels = np.asarray(found[i])
                if labels.shape != (height, width):
                    raise ValueError(
                        f"{name}[{i}] must have shape {(height, width)}, as its image. Got {labels.shape} instead."
                    )
                found[i] = labels.ravel()
        return super().flat_labels(found, name, partly=partly)

    def arranged(self, rows: Any) -> Any:
        """Return what images have for each pixel as an array of their height and width, and what comes by type so."""
        if self.node_types is not None:
            found = list(rows)
            for i in self._grouped():
                found[i] = labels_apart(found[i], self.nodes_by_type(i))
            return found
        if self.grids is None:
            return rows
        return [
            np.reshape(one, (height, width, *np.shape(one)[1:])) if height else one
            for one, (height, width) in zip(rows, self.grids.tolist(), strict=True)
        ]
