"""What structures are made of: their parts, how users' input becomes examples of them, and what labels they have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data import Batch
from dualfield.data.arrays import Codes, Floats
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.structures.checks import check_codes
from dualfield.structures.label_sets import LabelSets
from dualfield.structures.opened import Opened
from dualfield.structures.scores import EdgeKind, LabellingParts, PartSets, Scores


class Parts(ABC):
    """The parts of the labellings of a structure, own and shared ones; questions about their scores are elsewhere."""

    name: ClassVar[str] = ""  # by which estimators and files know it; user-defined structures need none
    n_ends: ClassVar[int] = 0  # ends with scores of labels: 1 for roots, 2 for the first and the last node
    has_edges: ClassVar[bool] = False  # whether edges may have scores of their own
    is_flat: ClassVar[bool] = False  # whether every node is an example: X is a matrix, y a vector
    has_same_parts: ClassVar[bool] = True  # whether all labellings of an example have parts in the same places
    # The label of candidates that are not part of the output, where rows stand for candidates: it has no weights.
    empty_label: ClassVar[int | None] = None
    counts_impossible: ClassVar[bool] = False  # whether `agreement` counts None, an example without a labelling
    label_sets: LabelSets | None = None  # the labels of each node type; None: nodes have no types
    n_labels: int

    @property
    @abstractmethod
    def n_cliques(self) -> int:
        """Number of clique scores that all places of an example share."""

    @property
    def cliques(self) -> Codes:
        """The labels of each clique, shape (n_cliques, n_labels_of_a_clique)."""
        return np.zeros((self.n_cliques, 0), dtype=np.int32)

    @property
    def clique_allowed(self) -> NDArray[np.bool_]:
        """Which cliques may occur, shape (n_cliques,)."""
        return np.ones(self.n_cliques, dtype=bool)

    def clique_names(self, names: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the labels of each clique, behind what :meth:`clique_kind` says of it.

        Parameters
        ----------
        names : sequence
            The labels in the order of their codes.

        Returns
        -------
        list of tuples
            Places before the first node are left out.

        Examples
        --------
        >>> from dualfield.structures import Chain
        >>> Chain(2).clique_names(["a", "b"])
        [('a', 'a'), ('a', 'b'), ('b', 'a'), ('b', 'b')]
        """
        windows = ([names[code] for code in row if code >= 0] for row in self.cliques.tolist())
        kinds = (self.clique_kind(at) for at in range(self.n_cliques))
        return [(*([EdgeKind(kind)] if kind else []), *labels) for kind, labels in zip(kinds, windows, strict=True)]

    def edge_names(self, names: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the labels of each part that an edge has of its own.

        Parameters
        ----------
        names : sequence
            The labels in the order of their codes.

        Returns
        -------
        list of tuples
            For chains those of :meth:`clique_names`.
        """
        rows = self.cliques[: self.edge_width].tolist()
        return [tuple(names[code] for code in row if code >= 0) for row in rows]

    def clique_kind(self, clique: int) -> str:
        """Return what tells a clique from another one with the same labels; empty if nothing does.

        Parameters
        ----------
        clique : int
            Which one.

        Returns
        -------
        str
            The type of its edges, where there are several.

        Examples
        --------
        >>> from dualfield.structures import Graph
        >>> Graph(2, n_types=3).clique_kind(4)
        'type 1'
        """
        return ""

    def part_sets(self, shape: Shape) -> PartSets | None:
        """Return which labels nodes may have, and which parts edges; None: all.

        Parameters
        ----------
        shape : Shape
            The shapes of the examples.

        Returns
        -------
        PartSets or None
            The sets, where nodes have types.

        Examples
        --------
        >>> from dualfield.data.shapes import Shape
        >>> from dualfield.structures import Chain
        >>> Chain(2).part_sets(Shape.of([0, 3])) is None
        True
        """
        return None

    def record(self) -> Fields:
        """Return the record of the structure."""
        if not self.name:
            raise ValueError(
                f"A {type(self).__name__} cannot be saved: a user-defined structure is code, which a model file "
                "cannot hold."
            )
        return {"kind": self.name, "n_labels": self.n_labels or None}

    @classmethod
    def from_record(cls, record: Record) -> Any:
        """Build a structure from its record, which is checked."""
        raise record.fault(f"a {cls.__name__} cannot be read from a file.")

    @property
    def is_free(self) -> bool:
        """Whether every labelling is allowed."""
        return bool(self.clique_allowed.all())

    @abstractmethod
    def native(self, shape: Shape, *, with_edges: bool = False, with_ends: bool = False) -> _native.Structure:
        """Create the native twin for examples of given shapes.

        Parameters
        ----------
        shape : Shape
            The shapes of the examples.
        with_edges : bool, default=False
            Whether edges have own scores, besides the shared ones.
        with_ends : bool, default=False
            Whether labels of the ends have scores.

        Returns
        -------
        Structure
            For native calls. Its shared parts are the cliques, then the labels of each end.
        """

    def clique_indices(self, labels: ArrayLike, shape: Shape | ArrayLike | None = None) -> NDArray[np.int64]:
        """Return which clique each edge of given labellings has.

        Parameters
        ----------
        labels : int array of shape (n_nodes,)
            Label codes.
        shape : Shape, or array of shape (n_examples + 1,), default=None
            The shapes of the examples, or their offsets; None: one example.

        Returns
        -------
        array of shape (n_edges,)
            Among the own parts of an edge, which for chains are its cliques; -1 for none.

        Examples
        --------
        >>> from dualfield.structures import Chain
        >>> Chain(3).clique_indices([0, 2, 1])  # the pairs (0, 2) and (2, 1)
        array([2, 7])
        """
        codes = check_codes(labels, np.size(np.asarray(labels)), self.n_labels)
        if not isinstance(shape, Shape):
            shape = Scores(np.zeros((len(codes), 1)), shape).shape
        return self.parts_of(codes, shape).edges

    def parts_of(self, codes: Codes, shape: Shape) -> LabellingParts:
        """Return the parts of given labellings.

        Parameters
        ----------
        codes : int32 array of shape (n_nodes,)
            Label codes.
        shape : Shape
            The shapes of the examples.

        Returns
        -------
        LabellingParts
            The part of each edge, and the shared parts of each example.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data.shapes import Shape
        >>> from dualfield.structures import Chain
        >>> Chain(2).parts_of(np.array([0, 1, 1], dtype=np.int32), Shape.of([0, 3])).shared  # cliques, first, last
        array([1, 3, 4, 7])
        """
        native = self.native(shape, with_edges=self.has_edges, with_ends=self.n_ends > 0)
        return LabellingParts(*(np.asarray(found, dtype=np.int64) for found in native.list_parts(codes)))

    def edge_nodes(self, shape: Shape) -> NDArray[np.int64]:
        """Return the node that each edge leads to: its row has the features of the edge.

        Parameters
        ----------
        shape : Shape
            The shapes of the examples.

        Returns
        -------
        int array of shape (n_edges,)
            Nodes, counted over all examples.
        """
        return np.zeros(0, dtype=np.int64)

    def edge_ends(self, shape: Shape) -> NDArray[np.int64]:
        """Return the two nodes of each edge, the one that it comes from and the one that it leads to.

        Parameters
        ----------
        shape : Shape
            The shapes of the examples.

        Returns
        -------
        int array of shape (n_edges, 2)
            Nodes, counted over all examples; twice the same where a row is that of no edge.
        """
        return np.zeros((0, 2), dtype=np.int64)

    def edge_rows(self, shape: Shape) -> NDArray[np.int64]:
        """Return which row of :meth:`pair_batch` has the features of each edge.

        Parameters
        ----------
        shape : Shape
            The shapes of the examples.

        Returns
        -------
        int array of shape (n_edges,)
            Rows.
        """
        return self.edge_nodes(shape)

    def pair_batch(self, nodes: Batch) -> Batch:
        """Return the features that score edges where those of nodes do.

        Parameters
        ----------
        nodes : Batch
            Features of nodes.

        Returns
        -------
        Batch
            The same, if an edge has those of the node that it leads to and no other edge does.
        """
        return nodes

    def edge_offsets(self, shape: Shape) -> NDArray[np.int64]:
        """Return where the edges of each example begin.

        Parameters
        ----------
        shape : Shape
            The shapes of the examples.

        Returns
        -------
        int array of shape (n_examples + 1,)
            Places among all edges.
        """
        return np.searchsorted(self.edge_nodes(shape), shape.offsets)

    def shared_nodes(self, shape: Shape) -> NDArray[np.int64]:
        """Return the node that each shared part of a labelling belongs to, in the order of :meth:`parts_of`.

        Parameters
        ----------
        shape : Shape
            The shape of one example.

        Returns
        -------
        int array
            That an edge leads to, or that is an end.
        """
        return self.edge_nodes(shape)

    @property
    def edge_width(self) -> int:
        """Number of own scores of an edge; 0 if it has none."""
        return self.n_cliques if self.has_edges else 0

    def for_labels(
        self, names: Sequence[Any], codes: Codes, shape: Shape, constraints: Any = None, owner: str = "CRF"
    ) -> Any:
        """Return this structure for the labels of training data.

        Parameters
        ----------
        names : sequence
            The labels, in the order of their codes.
        codes : int32 array of shape (n_nodes,)
            Label codes of the training data, -1 where a label is not known.
        shape : Shape
            The shapes of the examples.
        constraints : str or array, default=None
            Which labels may be neighbours, in the forms that the structure supports.
        owner : str, default="CRF"
            The estimator, for error messages.

        Returns
        -------
        Structure
            With a known number of labels.
        """
        if self.n_labels not in (0, len(names)):
            raise ValueError(f"structure has {self.n_labels} labels; y has {len(names)}.")
        if constraints is not None:
            raise ValueError(f"constraints must be None: a {type(self).__name__} has none.")
        return self._with_labels(len(names), shape)

    def _with_labels(self, n_labels: int, shape: Shape) -> Any:
        """Return this structure with `n_labels` labels."""
        raise TypeError(f"{type(self).__name__} must say how it is made for {n_labels} labels.")

    def matched_cliques(self, old: Any, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find the cliques of this structure in one of the same kind with other labels.

        Parameters
        ----------
        old : Structure
            The other one.
        labels : int array of shape (n_labels,)
            The label of `old` that each label here is; -1 for none.

        Returns
        -------
        int array of shape (n_cliques,)
            Cliques of `old`; -1 for none.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Chain
        >>> Chain(2).matched_cliques(Chain(3), np.array([0, 2]))
        array([0, 2, 6, 8])
        """
        return np.full(self.n_cliques, -1, dtype=np.int64)

    def matched_edges(self, old: Any, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find the own parts of edges in a structure of the same kind with other labels.

        Parameters
        ----------
        old, labels
            As in :meth:`matched_cliques`.

        Returns
        -------
        int array of shape (edge_width,)
            Parts of edges of `old`; -1 for none.
        """
        return self.matched_cliques(old, labels)

    def over_states(self, label: NDArray[np.int64]) -> Any:
        """Return the same structure over states, each of which belongs to a label: sub-states of latent models.

        Parameters
        ----------
        label : int array of shape (n_states,)
            The label of each state.

        Returns
        -------
        Structure
            With as many labels as there are states; what is allowed for labels is allowed for their states.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Chain
        >>> Chain(2, allowed=[[True, False], [True, True]]).over_states(np.array([0, 0, 1])).allowed
        array([[ True,  True, False],
               [ True,  True, False],
               [ True,  True,  True]])
        """
        raise ValueError(
            "Sub-states need a chain of order 1, a tree, a graph or a grammar; with n_substates=1 nothing is hidden "
            f"but what y leaves open. Got {self!r}."
        )

    @property
    def no_pairs(self) -> str | None:
        """Why edges are not pairs of labels; None if they are."""
        return f"needs edges; a {type(self).__name__} has none."

    def table_of(self, cliques: Floats) -> Floats:
        """Return values of cliques in the shape that users see them in.

        Parameters
        ----------
        cliques : array of shape (n_cliques,)
            One for each clique.

        Returns
        -------
        array
            For pairs of labels (n_labels, n_labels), label on the left first.
        """
        return cliques

    def open(self, X: Any, lengths: ArrayLike | None = None) -> Opened:
        """Split the input of users: the nodes of each example, how they are connected, and features of edges.

        Parameters
        ----------
        X : list, array or matrix
            Examples as users pass them.
        lengths : array of int, default=None
            How many rows of a flat `X` each example has.

        Returns
        -------
        Opened
            Its parts.
        """
        return Opened(X, lengths)

    def as_labels(self, y: Any, lengths: Sequence[int]) -> Any:
        """Return labels that users may give in another form as label sequences.

        Parameters
        ----------
        y : list
            For each example what users pass.
        lengths : sequence of int
            Number of nodes of each example.

        Returns
        -------
        list
            The same, unless a structure knows better.

        Examples
        --------
        >>> from dualfield.structures import SemiMarkov
        >>> SemiMarkov(["B-x", "I-x", "O"], 2).as_labels([[(0, 2, "x")]], [3])
        [['B-x', 'I-x', 'O']]
        """
        return y

    def agreement(self, predicted: Any, y: Any) -> float | None:
        """Return how well predictions agree with the truth, for outputs that are not labels of nodes.

        Parameters
        ----------
        predicted, y : list
            For each example an output in the form that users pass.

        Returns
        -------
        float or None
            In [0, 1]; None: the share of nodes with the right label.
        """
        return None

    def edge_scores(self, cliques: Floats, shape: Shape) -> Floats:
        """Return what each edge scores by scores that all edges share.

        Parameters
        ----------
        cliques : array of shape (n_cliques,)
            Shared scores.
        shape : Shape
            The shapes of the examples.

        Returns
        -------
        array of shape (n_edges, edge_width), or (edge_width,) where all edges score the same
            Their scores.
        """
        return cliques
