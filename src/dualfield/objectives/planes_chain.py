"""Planes of linear chains."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data import Batch
from dualfield.data.shapes import rows_of_examples
from dualfield.objectives.planes import Planes
from dualfield.objectives.planes_features import PartFeatures
from dualfield.objectives.planes_slack import SlackArgmax
from dualfield.scores import LinearScores
from dualfield.structures import Chain

__all__ = ["ChainPlanes"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class ChainPlanes:
    r"""The structural hinge loss of linear chains as a maximum of planes, one for each labelling.

    .. math::
        P(w) = \tfrac{1}{2} \|w\|^2
        + \sum_i c_i \max_y \, [ \Delta(y_i, y) + \langle w, F(x_i, y) - F(x_i, y_i) \rangle ]

    with margins rescaled; :math:`\max_y \Delta(y_i, y) [ 1 + \langle w, F(x_i, y) - F(x_i, y_i) \rangle ]` with slacks
    rescaled. Chains of any order, with features of label pairs and weights of the ends; a chain of one node, without
    transitions, is a multiclass problem.

    Parameters
    ----------
    score_map : LinearScores
        Gives F.
    batch : Batch
        Features of nodes.
    labels : int32 array of shape (n_nodes,)
        True labels.
    weights : array of shape (n_examples,)
        c_i of the formula.
    cost : array of shape (n_labels, n_labels)
        Cost of a label (column) where another one is true (row); Δ is their sum. At least 0, and 0 on the diagonal.
    pair_batch : Batch, default=None
        Features of label pairs.
    positive : bool array of shape (n_parameters,), default=None
        Weights that must be at least 0; None: no weight.
    rescaling : {"margin", "slack"}, default="margin"
        What the cost rescales. Slacks of chains of several nodes only by the number of wrong labels.
    n_threads : int, default=1
        Number of threads.
    fixed : bool array of shape (n_nodes,), default=None
        Nodes whose label is known at prediction, too: no other label competes there. None: no node.
    unscored : bool array of shape (n_nodes,), default=None
        Nodes where a wrong label costs nothing: their true label is a guess. None: no node.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.data import Batch
    >>> from dualfield.objectives import ChainPlanes
    >>> from dualfield.scores import FeatureTable, LinearScores
    >>> from dualfield.structures import Chain
    >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
    >>> batch = Batch.build([np.array([[1.0], [-2.0]])])
    >>> problem = ChainPlanes(score_map, batch, np.array([0, 1], dtype=np.int32), np.ones(1), 1.0 - np.eye(2))
    >>> planes = problem.planes(np.zeros(score_map.n_parameters))
    >>> planes.offsets                                        # both labels wrong
    array([2.])
    >>> score_map.unpack(planes.slopes.toarray()[0]).node     # of the two labels: -2 - 1 and 1 + 2
    array([-3.,  3.])
    """

    score_map: LinearScores
    batch: Batch
    labels: Codes
    weights: Floats
    cost: Floats
    pair_batch: Batch | None = None
    positive: NDArray[np.bool_] | None = None
    rescaling: Literal["margin", "slack"] = "margin"
    n_threads: int = 1
    fixed: NDArray[np.bool_] | None = None
    unscored: NDArray[np.bool_] | None = None

    @property
    def n_examples(self) -> int:
        """Number of sequences."""
        return self.batch.n_examples

    @property
    def n_parameters(self) -> int:
        """Length of w."""
        return self.score_map.n_parameters

    @cached_property
    def features(self) -> PartFeatures:
        """The parameters that parts of labellings use."""
        return PartFeatures(self.score_map, self.batch, self.pair_batch)

    @cached_property
    def _data(self) -> _native.Problem:
        return self.score_map.bind(self.batch, self.pair_batch)

    @cached_property
    def _slack_argmax(self) -> SlackArgmax:
        if not isinstance(self.score_map.structure, Chain):
            raise ValueError("rescaling='slack' needs sequences or single nodes. Use rescaling='margin'.")
        reason = SlackArgmax.missing(self.cost, int(self.batch.lengths.max(initial=0)))
        if reason is not None:
            raise ValueError(reason)
        return SlackArgmax(self.score_map.structure, self.cost)

    def planes(self, w: Floats, examples: NDArray[np.int64] | None = None) -> Planes:
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
        >>> from dualfield.data import Batch
        >>> from dualfield.objectives import ChainPlanes
        >>> from dualfield.scores import FeatureTable, LinearScores
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> batch = Batch.build([np.array([[1.0]]), np.array([[-1.0]])])
        >>> problem = ChainPlanes(score_map, batch, np.array([0, 1], dtype=np.int32), np.ones(2), 1.0 - np.eye(2))
        >>> w = score_map.pack(np.array([0.1, -0.1]), np.zeros(4))
        >>> problem.planes(w, np.array([1])).values(w)        # 1 - 2 * 0.1
        array([0.8])
        """
        if examples is None:
            chosen, nodes = np.arange(self.n_examples), np.arange(self.batch.n_nodes)
            scores = self.score_map.scores_of(self._data, w, self.batch.shape, self.n_threads)
        else:
            chosen = np.asarray(examples, dtype=np.int64)
            part = self.batch[chosen]
            nodes = rows_of_examples(self.batch.offsets, chosen)[1]
            pairs = None if self.pair_batch is None else self.pair_batch[chosen]
            scores = self.score_map.scores_of(self.score_map.bind(part, pairs), w, part.shape, self.n_threads)
        truth = self.labels[nodes]
        if self.rescaling == "slack":
            if self.fixed is not None or self.unscored is not None:
                raise ValueError(
                    "rescaling='slack' needs all labels to compete, and to cost something: margins do not."
                )
            found = self._slack_argmax(scores, truth)
        else:
            if self.fixed is not None:
                known = np.flatnonzero(self.fixed[nodes])
                own = scores.node[known, truth[known]]
                scores.node[known] = -np.inf
                scores.node[known, truth[known]] = own
            costs = self._node_costs(nodes, truth)
            found = self.score_map.structure.argmax(scores, cost=costs, n_jobs=self.n_threads)
        return self.planes_of(found, chosen)

    def planes_of(self, labels: Codes, examples: NDArray[np.int64]) -> Planes:
        """Return the planes of given labellings.

        Parameters
        ----------
        labels : int32 array of shape (n_nodes of the examples,)
            A labelling for each, one after another.
        examples : int array of shape (m,)
            Which examples.

        Returns
        -------
        Planes
            One plane for each.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Batch
        >>> from dualfield.objectives import ChainPlanes
        >>> from dualfield.scores import FeatureTable, LinearScores
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> truth = np.array([0, 1], dtype=np.int32)
        >>> problem = ChainPlanes(score_map, Batch.build([np.ones((2, 1))]), truth, np.ones(1), 1.0 - np.eye(2))
        >>> problem.planes_of(truth, np.array([0])).slopes.nnz                        # the truth has the plane 0
        0
        """
        offsets, nodes = rows_of_examples(self.batch.offsets, examples)
        owner = np.repeat(np.arange(len(examples)), np.diff(offsets))
        truth = self.labels[nodes]
        paid = self._node_costs(nodes, truth, labels)
        costs = np.bincount(owner, paid, minlength=len(examples)).astype(np.float64)
        # Slacks are rescaled: the whole plane is multiplied by the cost.
        scale = costs if self.rescaling == "slack" else np.ones(len(examples))
        differs = np.flatnonzero(labels != truth)
        entries = [
            self.features.labels(nodes[differs], codes[differs], sign * scale[owner[differs]], owner[differs])
            for codes, sign in ((labels, 1.0), (truth, -1.0))
        ]
        structure, shape = self.score_map.structure, self.batch.shape.take(examples)
        found, true = (structure.parts_of(codes, shape) for codes in (labels, truth))
        at = structure.edge_nodes(shape)
        # Where both have as many shared parts, those at the same place are most often the same ones.
        aligned = np.array_equal(found.begins, true.begins)
        moved = np.flatnonzero(found.shared != true.shared) if aligned else slice(None)
        for parts, sign in ((found, 1.0), (true, -1.0)):
            of = parts.owner[moved]
            entries.append(self.features.shared(parts.shared[moved], sign * scale[of], of))
            some = np.flatnonzero((found.edges != true.edges) & (parts.edges >= 0))
            of = owner[at[some]]
            entries.append(self.features.edges(nodes[at[some]], parts.edges[some], sign * scale[of], of))
        keys: list[Hashable] = [labels[a:b].tobytes() for a, b in itertools.pairwise(offsets.tolist())]
        return Planes(examples, costs, self.features.matrix(entries, len(examples)), keys)

    def _node_costs(self, nodes: NDArray[np.int64], truth: Codes, labels: Codes | None = None) -> Floats:
        """Return what each label of each node costs, or what given labels cost."""
        costs: Floats = self.cost[truth] if labels is None else self.cost[truth, labels]
        if self.unscored is not None:
            costs[self.unscored[nodes]] = 0.0
        return costs
