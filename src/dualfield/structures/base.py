"""The interface of all structures: their queries."""

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
from dualfield.structures.bounds import BestPoints, BoundedLabels, Bounds
from dualfield.structures.checks import (
    add_cost,
    check_codes,
    check_count,
    check_end,
    check_temperature,
    draw_seed,
    n_threads,
)
from dualfield.structures.label_sets import LabelSets
from dualfield.structures.opened import Opened
from dualfield.structures.scores import EdgeKind, KBest, LabellingParts, Marginals, PartSets, Scores


class Structure(ABC):
    r"""A set of labellings with exact inference on their scores.

    With score(y) the score of a labelling and T the temperature, the smoothed maximum of the score is

    .. math::
        M_T = T \log \sum_y \exp(\mathrm{score}(y) / T), \qquad M_0 = \max_y \mathrm{score}(y),

    and its gradient, the marginals, is the probability of each part under p(y) proportional to exp(score(y) / T); at
    T = 0 it is the indicator of the best labelling.

    Every query takes the scores as :class:`Scores` or as the array of node scores alone; ``cost``, an array of the
    shape of the node scores that is added to them (loss-augmented inference); and ``n_jobs``, the number of threads:
    None is 1 unless a joblib context says otherwise, -1 is all cores. Answers do not depend on the number of threads.

    Examples
    --------
    >>> from dualfield.structures import Single, Structure
    >>> def confidence(structure: Structure, node):
    ...     return structure.marginals(node).node.max(axis=1)
    >>> confidence(Single(2), [[0.0, 0.0], [0.0, 9.0]]).round(3)
    array([0.5, 1. ])
    """

    name: ClassVar[str] = ""  # by which estimators and files know it; user-defined structures need none
    n_ends: ClassVar[int] = 0  # ends with scores of labels: 1 for roots, 2 for the first and the last node
    has_edges: ClassVar[bool] = False  # whether edges may have scores of their own
    is_flat: ClassVar[bool] = False  # whether every node is an example: X is a matrix, y a vector
    has_same_parts: ClassVar[bool] = True  # whether all labellings of an example have parts in the same places
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
    def from_record(cls, record: Record) -> Structure:
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

    @property
    def is_native(self) -> bool:
        """Whether native code answers every question about it."""
        return True

    @property
    def no_sums(self) -> str | None:
        """Why there are no sums over labellings, which log-losses and probabilities need; None if there are."""
        return None

    def relaxation(self, shape: Shape) -> str | None:
        """Return the name of the relaxation that answers questions about examples of given shapes; None: exact answers.

        Parameters
        ----------
        shape : Shape
            The shapes of the examples.

        Returns
        -------
        str or None
            "trw" for graphs that are too wide; "max_flow" where maxima over fractional points take their place.

        Examples
        --------
        >>> from dualfield.data.shapes import Shape
        >>> from dualfield.structures import Chain
        >>> Chain(2).relaxation(Shape.of([0, 3])) is None
        True
        """
        return None

    def _parts(self, scores: Scores) -> tuple[Floats | None, Floats | None]:
        """Check what edges score: return scores that all cliques share, and those of each edge; None: zeros."""
        if scores.transition is not None:
            raise ValueError(f"{type(self).__name__} takes no transition scores.")
        return None, None

    def scores_of(
        self,
        node: Floats,
        cliques: Floats,
        edges: Floats | None,
        ends: tuple[Floats | None, Floats | None],
        shape: Shape,
    ) -> Scores:
        """Return scores of all parts as one record.

        Parameters
        ----------
        node : array of shape (n_nodes, n_labels)
            Of labels.
        cliques : array of shape (n_cliques,)
            That all edges share.
        edges : array of shape (n_edges, edge_width) or None
            That edges have of their own.
        ends : pair of array of shape (n_labels,) or None
            Of the first and of the last label.
        shape : Shape
            The shapes of the examples.

        Returns
        -------
        Scores
            What the structure is asked about.
        """
        transition = cliques if edges is None else edges + self.edge_scores(cliques, shape)
        return Scores(node, None, transition, start=ends[0], stop=ends[1], shape=shape)

    def _shape_cliques(self, rows: Floats) -> Floats:
        """Bring rows of clique values into the shape that users see."""
        return rows

    def _read_scores(self, scores: Scores | ArrayLike) -> Scores:
        """Check scores as far as all structures do."""
        if not self.n_labels:
            raise ValueError(f"This {type(self).__name__.lower()} has no number of labels: pass n_labels.")
        batch = scores if isinstance(scores, Scores) else Scores(scores)
        if batch.n_labels != self.n_labels:
            raise ValueError(
                f"node must have {self.n_labels} columns, one for each label. Got shape {batch.node.shape} instead."
            )
        return batch

    def _ends(self, scores: Scores) -> list[Floats | None]:
        """Check the scores of the first and of the last label; None: there are none."""
        ends = [check_end(name, getattr(scores, name), self.n_labels) for name in ("start", "stop")]
        for name, end in list(zip(("start", "stop"), ends, strict=True))[self.n_ends :]:
            if end is not None:
                raise ValueError(f"{type(self).__name__} takes no {name} scores.")
        return ends

    def _bind(
        self,
        scores: Scores | ArrayLike,
        cost: ArrayLike | None,
        temperature: float,
        n_jobs: int | None,
        with_edges: bool = False,
    ) -> _native.Oracle:
        """Check the scores and hand out the native oracle for them, divided by the temperature.

        ``with_edges``: its marginals are asked edge by edge.
        """
        batch = self._read_scores(scores)
        shared, per_edge = self._parts(batch)
        ends = self._ends(batch)
        with_ends = any(end is not None for end in ends)
        with_edges = self.has_edges and (with_edges or per_edge is not None)
        if with_ends:
            cliques = np.zeros(self.n_cliques) if shared is None else shared
            labels = (np.zeros(self.n_labels) if end is None else end for end in ends[: self.n_ends])
            shared = np.concatenate([cliques, *labels])
        native = self.native(batch.shape, with_edges=with_edges, with_ends=with_ends)
        node = add_cost(batch.node, cost)
        own = [node, per_edge] if with_edges else [node]
        return _native.Oracle(native, own, shared, 1.0 / temperature, n_threads(n_jobs))

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

    def _indicator(
        self, scores: Scores | ArrayLike, labels: Codes, cliques: str | None
    ) -> tuple[Floats, Floats | None]:
        """Return node and clique indicators of a labelling."""
        node = np.zeros((len(labels), self.n_labels))
        node[np.arange(len(labels)), labels] = 1.0
        if cliques is None:
            return node, None
        shape = self._read_scores(scores).shape
        parts = self.parts_of(labels, shape)
        if cliques == "sum":
            rows = np.zeros((shape.n_examples, self.n_cliques))
            inside = parts.shared < self.n_cliques
            np.add.at(rows, (parts.owner[inside], parts.shared[inside]), 1.0)
        else:
            rows = np.zeros((len(parts.edges), self.edge_width))
            found = np.flatnonzero(parts.edges >= 0)
            rows[found, parts.edges[found]] = 1.0
        return node, self._shape_cliques(rows)

    @property
    def edge_width(self) -> int:
        """Number of own scores of an edge; 0 if it has none."""
        return self.n_cliques if self.has_edges else 0

    def for_labels(
        self, names: Sequence[Any], codes: Codes, shape: Shape, constraints: Any = None, owner: str = "CRF"
    ) -> Structure:
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

    def _with_labels(self, n_labels: int, shape: Shape) -> Structure:
        """Return this structure with `n_labels` labels."""
        raise TypeError(f"{type(self).__name__} must say how it is made for {n_labels} labels.")

    def matched_cliques(self, old: Structure, labels: NDArray[np.int64]) -> NDArray[np.int64]:
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

    def matched_edges(self, old: Structure, labels: NDArray[np.int64]) -> NDArray[np.int64]:
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

    def over_states(self, label: NDArray[np.int64]) -> Structure:
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
        raise ValueError(f"Sub-states need a chain of order 1 or a tree. Got {self!r}.")

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

    def argmax(self, scores: Scores | ArrayLike, *, cost: ArrayLike | None = None, n_jobs: int | None = None) -> Codes:
        """Return the best labelling of each example.

        Ties go to the labelling with the lowest last label, then the lowest label before it, and so on.

        Parameters
        ----------
        scores : Scores, or array of shape (n_nodes, n_labels)
            The scores.
        cost : array of shape (n_nodes, n_labels), default=None
            Added to the node scores.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        int array of shape (n_nodes,)
            Label codes.

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> stay = [[1.0, 0.0], [0.0, 1.0]]
        >>> Chain(2).argmax(Scores([[2.0, 0.0], [0.0, 0.5], [0.0, 0.1]], transition=stay))
        array([0, 0, 0], dtype=int32)
        """
        return self._bind(scores, cost, 1.0, n_jobs).argmax()

    def bounded_argmax(
        self, scores: Scores | ArrayLike, *, cost: ArrayLike | None = None, n_jobs: int | None = None
    ) -> BoundedLabels:
        """Return the best labelling of each example that was found, its score, and a bound for all labellings.

        Where answers are exact the two are the same.

        Parameters
        ----------
        scores, cost, n_jobs
            As in :meth:`argmax`.

        Returns
        -------
        BoundedLabels
            Labels of shape (n_nodes,), score and bound of shape (n_examples,).

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> found = Chain(2).bounded_argmax(Scores([[1.0, 0.0], [0.0, 0.5]]))
        >>> found.labels, found.bounds.score, found.bounds.bound
        (array([0, 1], dtype=int32), array([1.5]), array([1.5]))
        """
        oracle = self._bind(scores, cost, 1.0, n_jobs)
        labels = oracle.argmax()
        return BoundedLabels(labels, Bounds(oracle.score(labels), oracle.maximum()))

    def best_point(
        self, scores: Scores | ArrayLike, *, cost: ArrayLike | None = None, n_jobs: int | None = None
    ) -> BestPoints:
        """Return a point with the highest score for each example: what hinge losses are trained on.

        Where answers are exact it is the indicator of the best labelling. A relaxation has a point of its larger
        polytope, which may be fractional, and says how far from the highest score it may be.

        Parameters
        ----------
        scores, cost, n_jobs
            As in :meth:`argmax`.

        Returns
        -------
        BestPoints
            The points, bounds and slacks.

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> found = Chain(2).best_point(Scores([[1.0, 0.0], [0.0, 0.5]]))
        >>> found.node, found.slack
        (array([[1., 0.],
               [0., 1.]]), array([0.]))
        """
        return BestPoints(*self._bind(scores, cost, 1.0, n_jobs).best_point())

    def is_possible(
        self, scores: Scores | ArrayLike, *, cost: ArrayLike | None = None, n_jobs: int | None = None
    ) -> NDArray[np.bool_]:
        """Return whether each example has a labelling at all: one without a score of -inf.

        Parameters
        ----------
        scores, cost, n_jobs
            As in :meth:`argmax`.

        Returns
        -------
        bool array of shape (n_examples,)
            Whether other queries on the example have an answer.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Chain, Scores
        >>> Chain(2).is_possible(Scores([[0.0, 1.0], [-np.inf, -np.inf], [0.0, 1.0]], offsets=[0, 2, 3]))
        array([False,  True])
        """
        return np.asarray(self._bind(scores, cost, 1.0, n_jobs).possible())

    def log_partition(
        self,
        scores: Scores | ArrayLike,
        *,
        temperature: float = 1.0,
        cost: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Floats:
        """Return the smoothed maximum of the score of each example.

        Parameters
        ----------
        scores, cost, n_jobs
            As in :meth:`argmax`.
        temperature : float, default=1.0
            T of the formula; 0 gives the maximum.

        Returns
        -------
        array of shape (n_examples,)
            T log sum_y exp(score(y) / T).

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> Chain(3).log_partition(Scores([[0.0, 0.0, 0.0]] * 2)).round(4)  # log of 3 ** 2 labellings
        array([2.1972])
        """
        temperature = check_temperature("log_partition", temperature)
        if temperature == 0.0:
            return self._bind(scores, cost, 1.0, n_jobs).maximum()
        return np.multiply(temperature, self._bind(scores, cost, temperature, n_jobs).log_partition())

    def marginals(
        self,
        scores: Scores | ArrayLike,
        *,
        temperature: float = 1.0,
        cliques: str | None = None,
        cost: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Marginals:
        """Return the probability of each label at each node, and of each clique if asked for.

        Memory beyond the result: two rows of numbers over the states of the structure for each node of the four longest
        examples, for each thread; linear in the batch.

        Parameters
        ----------
        scores, temperature, cost, n_jobs
            As in :meth:`log_partition`.
        cliques : {"each", "sum"}, default=None
            Also return clique marginals: of each edge, or summed over the edges of each example.

        Returns
        -------
        Marginals
            Node and clique marginals, and the log-partition.

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> Chain(2).marginals(Scores([[0.0, 1.0], [0.0, 0.0]], transition=[[0.0, 0.0], [0.0, 2.0]])).node.round(3)
        array([[0.081, 0.919],
               [0.15 , 0.85 ]])
        """
        temperature = check_temperature("marginals", temperature)
        if cliques not in (None, "each", "sum"):
            raise ValueError(
                f"The 'cliques' parameter of marginals must be 'each', 'sum' or None. Got {cliques!r} instead."
            )
        if temperature == 0.0:
            oracle = self._bind(scores, cost, 1.0, n_jobs)
            return Marginals(*self._indicator(scores, oracle.argmax(), cliques), oracle.maximum())
        each = cliques == "each"
        oracle = self._bind(scores, cost, temperature, n_jobs, with_edges=each)
        node, edges, shared, log_partition = oracle.marginals(cliques == "sum", each and self.has_edges)
        rows = edges if each else shared
        return Marginals(node, self._shape_cliques(rows) if cliques else None, np.multiply(temperature, log_partition))

    def max_marginals(
        self, scores: Scores | ArrayLike, *, cost: ArrayLike | None = None, n_jobs: int | None = None
    ) -> Floats:
        """Return, for each node and label, the best score of a labelling that has this label there.

        Parameters
        ----------
        scores, cost, n_jobs
            As in :meth:`argmax`.

        Returns
        -------
        array of shape (n_nodes, n_labels)
            Best scores; -inf where no allowed labelling has the label.

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> Chain(2).max_marginals(Scores([[1.0, 0.0], [0.0, 0.5]]))
        array([[1.5, 0.5],
               [1. , 1.5]])
        """
        return self._bind(scores, cost, 1.0, n_jobs).max_marginals()

    def entropy(
        self,
        scores: Scores | ArrayLike,
        *,
        temperature: float = 1.0,
        cost: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Floats:
        """Return the entropy of each example's distribution over labellings, in nats; 0 at temperature 0.

        Parameters
        ----------
        scores, temperature, cost, n_jobs
            As in :meth:`log_partition`.

        Returns
        -------
        array of shape (n_examples,)
            - sum_y p(y) log p(y).

        Examples
        --------
        >>> from dualfield.structures import Single
        >>> Single(4).entropy([[0.0, 0.0, 0.0, 0.0]]).round(4)
        array([1.3863])
        """
        temperature = check_temperature("entropy", temperature)
        entropies = self._bind(scores, cost, temperature or 1.0, n_jobs).entropy()
        return entropies if temperature else np.zeros_like(entropies)

    def sample(
        self,
        scores: Scores | ArrayLike,
        n_samples: int = 1,
        *,
        temperature: float = 1.0,
        random_state: Any = None,
        cost: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Codes:
        """Draw labellings exactly from each example's distribution.

        Parameters
        ----------
        scores, temperature, cost, n_jobs
            As in :meth:`log_partition`.
        n_samples : int, default=1
            Draws for each example.
        random_state : int, RandomState or None, default=None
            Seed. Each example has its own random stream: its draws do not depend on the other examples.

        Returns
        -------
        int array of shape (n_samples, n_nodes)
            Label codes.

        Examples
        --------
        >>> from dualfield.structures import Single
        >>> Single(2).sample([[0.0, -100.0]], 3, random_state=0).ravel()
        array([0, 0, 0], dtype=int32)
        """
        temperature = check_temperature("sample", temperature)
        count = check_count("sample", "n_samples", n_samples, 0, _answer_size(scores))
        if temperature == 0.0:
            return np.tile(self.argmax(scores, cost=cost, n_jobs=n_jobs), (count, 1))
        return self._bind(scores, cost, temperature, n_jobs).sample(count, draw_seed(random_state))

    def k_best(
        self, scores: Scores | ArrayLike, k: int, *, cost: ArrayLike | None = None, n_jobs: int | None = None
    ) -> KBest:
        """Return the k best labellings of each example, best first; the first is :meth:`argmax`.

        Parameters
        ----------
        scores, cost, n_jobs
            As in :meth:`argmax`.
        k : int
            How many.

        Returns
        -------
        KBest
            Labels of shape (k, n_nodes) and scores of shape (n_examples, k).

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> best = Chain(2).k_best(Scores([[1.0, 0.0], [0.0, 0.5]]), 3)
        >>> best.labels
        array([[0, 1],
               [0, 0],
               [1, 1]], dtype=int32)
        >>> best.scores
        array([[1.5, 1. , 0.5]])
        """
        count = check_count("k_best", "k", k, 1, _answer_size(scores))
        return KBest(*self._bind(scores, cost, 1.0, n_jobs).k_best(count))

    def score(
        self,
        scores: Scores | ArrayLike,
        labels: ArrayLike,
        *,
        cost: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Floats:
        """Return the score of a given labelling of each example.

        ``score(scores, y) - log_partition(scores)`` is the log-probability of the labelling.

        Parameters
        ----------
        scores, cost, n_jobs
            As in :meth:`argmax`.
        labels : int array of shape (n_nodes,)
            Label codes.

        Returns
        -------
        array of shape (n_examples,)
            Scores; -inf where the labelling is forbidden.

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> Chain(2).score(Scores([[1.0, 0.0], [0.0, 0.5]]), [0, 1])
        array([1.5])
        """
        node = scores.node if isinstance(scores, Scores) else np.asarray(scores)
        return self._bind(scores, cost, 1.0, n_jobs).score(check_codes(labels, len(node), self.n_labels))


def _answer_size(scores: Scores | ArrayLike) -> int:
    """Return how many labels, or scores, one labelling of each example has."""
    if isinstance(scores, Scores):
        return max(scores.n_nodes, scores.n_examples)
    return int(max((1, *np.shape(scores)[:1])))
