"""The formula for linear scores: loss, regulariser, score map and examples together."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data.arrays import Codes, Floats
from dualfield.data.shapes import rows_of_examples
from dualfield.losses import Loss
from dualfield.objectives.examples import Examples
from dualfield.objectives.part_features import PartFeatures
from dualfield.objectives.planes import Planes
from dualfield.objectives.planes_slack import SlackArgmax
from dualfield.objectives.primal_gap import primal_and_gap
from dualfield.regularisers import Regulariser, SquaredNorm
from dualfield.scores import LinearScores
from dualfield.structures import BestPoints

__all__ = ["Objective"]


class Objective:
    r"""What conditional random fields and structural support vector machines minimise, on any structure.

    .. math::
        P(w) = R(w) + \sum_i c_i [ M_T(A_i w + \Delta_i) - \langle A_i w, u_i \rangle ]

    For any w the marginals of the model at w are a point of the dual. With v the negative gradient of the losses there
    and E the entropies and costs, which are :math:`\sum_i c_i M_T + \langle w, v \rangle`,

    .. math::
        D(s) = s E - R^*(s v) \le P^* , \qquad 0 \le s \le 1

    since a share s of the way from the truth to that point keeps at least this share of E. P(w) less the largest D(s)
    is the gap: :math:`R(w) + R^*(v) - \langle w, v \rangle` near the minimum, where s is 1. It is never below what
    rounding can hide in the value. With partly labelled examples the problem is not convex and there is no gap: it is
    NaN.

    Where the structure is a relaxation, M_T is bounded from above by iterations, and its marginals are a point whose
    value is lower by a *slack*: E is less by that, and the gap greater. It is the gap of the relaxed problem, whose
    minimum is at least that of the exact one.

    At T = 0 the losses are maxima of planes, one for each labelling, and the gradient is that of the highest ones.

    Parameters
    ----------
    score_map : LinearScores
        A of the formula.
    examples : Examples
        Features, labels and weights.
    loss : Loss
        T, Δ, and what the cost rescales.
    regulariser : Regulariser, default=None
        R of the formula; None: half the squared norm.
    n_threads : int, default=1
        Number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.data import Batch
    >>> from dualfield.losses import Loss
    >>> from dualfield.objectives import Examples, Objective
    >>> from dualfield.scores import FeatureTable, LinearScores
    >>> from dualfield.structures import Chain
    >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
    >>> batch = Batch.build([np.array([[1.0], [-2.0]])])
    >>> examples = Examples(nodes=batch, labels=np.array([0, 1], dtype=np.int32), weights=np.ones(1))
    >>> w = np.zeros(score_map.n_parameters)
    >>> value, gap = Objective(score_map, examples, Loss()).certify(w)
    >>> round(value, 4), round(gap, 4)                        # two nodes, each log 2
    (1.3863, 1.2033)
    >>> planes = Objective(score_map, examples, Loss(0.0, 1.0 - np.eye(2))).planes(w)
    >>> planes.offsets                                        # both labels wrong
    array([2.])
    >>> score_map.unpack(planes.slopes.toarray()[0]).node     # of the two labels: -2 - 1 and 1 + 2
    array([-3.,  3.])
    """

    def __init__(
        self,
        score_map: LinearScores,
        examples: Examples,
        loss: Loss,
        regulariser: Regulariser | None = None,
        n_threads: int = 1,
    ) -> None:
        self.score_map, self.examples, self.loss, self.n_threads = score_map, examples, loss, n_threads
        self.regulariser = SquaredNorm(score_map.n_parameters) if regulariser is None else regulariser
        self._met_relaxation = False

    @property
    def n_parameters(self) -> int:
        """Length of w."""
        return self.score_map.n_parameters

    @property
    def n_examples(self) -> int:
        """Number of losses."""
        return self.examples.nodes.n_examples

    @property
    def weights(self) -> Floats:
        """Weight of each loss."""
        return self.examples.weights

    @property
    def temperature(self) -> float:
        """T of the formula."""
        return self.loss.temperature

    @property
    def convex(self) -> bool:
        """Whether every label is known."""
        return self.examples.allowed is None

    @property
    def is_native(self) -> bool:
        """Whether native code knows all of it: margins are rescaled, all labels compete and cost something."""
        given = self.examples
        known = self.loss.rescaling == "margin" and given.fixed is None and given.unscored is None
        return known and self.score_map.structure.is_native

    @cached_property
    def relaxation(self) -> str | None:
        """The relaxation that answers for the structure; None: exact answers."""
        return self.score_map.structure.relaxation(self.examples.nodes.shape)

    @property
    def relaxation_met(self) -> str | None:
        """The relaxation; None if every plane so far was that of a best labelling, as far as this is known here."""
        return self.relaxation if self._met_relaxation or self.is_native else None

    @cached_property
    def native(self) -> _native.Problem:
        """The native twin of loss and examples."""
        given, loss = self.examples, self.loss
        return self.score_map.bind(
            given.nodes, given.pairs, given.labels, given.weights, loss.cost, given.allowed, loss.temperature
        )

    @cached_property
    def features(self) -> PartFeatures:
        """The parameters that parts of labellings use."""
        return PartFeatures(self.score_map, self.examples.nodes, self.examples.pairs)

    @cached_property
    def _losses(self) -> _native.Objective:
        return _native.Objective(self.native, self.n_threads)

    @cached_property
    def _slack_argmax(self) -> SlackArgmax:
        return SlackArgmax.of(self.score_map.structure, self.loss, self.examples)

    def value(self, w: Floats) -> float:
        """Return P(w) without its gradient, which is cheaper.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        float
            Losses and penalty.
        """
        return (self._losses.loss(w) if self.is_native else self.evaluate(w)[0]) + self.regulariser.value(w)

    def loss_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return the weighted losses and their gradient, without the penalty.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        loss : float
            The sum of the losses times their weights.
        gradient : array of shape (n_parameters,)
            Its gradient.
        """
        return self.evaluate(w)[:2]

    def evaluate(self, w: Floats) -> tuple[float, Floats, float, float]:
        """Return losses, their gradient, and by how much they may be wrong: what :meth:`gap` takes.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        loss, gradient
            As :meth:`loss_and_gradient` returns them.
        magnitude : float
            The sizes of the maxima and of the scores of the truth, summed with the weights of the examples: rounding
            takes its share of that.
        slack : float
            How far the losses of a relaxation are above those that belong to the gradient; 0 for exact structures.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers import prototypes
        >>> objective = prototypes.objective(temperature=1.0)
        >>> w = objective.score_map.pack(np.array([1e9, 0.0]), np.zeros(4))
        >>> loss, gradient, magnitude, slack = objective.evaluate(w)
        >>> loss, magnitude, slack
        (0.0, 2000000000.0, 0.0)
        """
        if self.is_native:
            return self._losses.evaluate(w)
        planes = self.planes(w)
        heights = planes.losses(w)
        gradient = np.asarray(planes.slopes.T @ np.where(heights > 0.0, self.weights, 0.0))
        magnitude = float(self.weights @ (planes.offsets + abs(planes.slopes) @ np.abs(w)))
        slack = 0.0 if planes.slack is None else float(self.weights @ planes.slack)
        return float(self.weights @ heights), gradient, magnitude, slack

    @property
    def has_hessian(self) -> bool:
        """Whether there are second derivatives: log-losses of a structure that knows the covariances of its parts."""
        structure = self.score_map.structure
        return self.is_native and self.temperature > 0.0 and structure.has_directional(self.examples.nodes.shape)

    def hessian_product(self, w: Floats, v: Floats) -> Floats:
        r"""Return the second derivatives of the losses times a vector, without the penalty.

        .. math::
            \sum_i c_i A_i^\top \mathrm{Cov}_i A_i v / T,

        where Cov_i is the covariance of the parts of example i. It takes about three gradients.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.
        v : array of shape (n_parameters,)
            A vector; zero where there is no feature, as parameters are.

        Returns
        -------
        array of shape (n_parameters,)
            The product.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers import prototypes
        >>> objective = prototypes.objective(temperature=1.0)
        >>> w = np.zeros(objective.n_parameters)
        >>> v = objective.score_map.pack(np.array([1.0, 0.0]), np.zeros(4))
        >>> objective.score_map.unpack(objective.hessian_product(w, v)).node   # p (1 - p) and - p (1 - p)
        array([ 0.25, -0.25])
        """
        return self._losses.hessian_product(w, v)

    def hessian(self, w: Floats, places: NDArray[np.int64] | None = None) -> Floats:
        """Return all second derivatives of the losses, without the penalty: for few parameters.

        The covariances of the parts of each example are added up over the points first, and taken to the parameters
        once. Memory grows with the square of the places, and of the parts of an example.

        Parameters
        ----------
        w : array of shape (n_parameters,) or (n_points, n_parameters)
            Parameters; of several points the mean is returned.
        places : int array of shape (m,), default=None
            The parameters that have rows and columns, rising; None: all, those without a feature among them.

        Returns
        -------
        array of shape (m, m)
            Symmetric and positive semidefinite where all labels are known.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers import prototypes
        >>> objective = prototypes.objective(temperature=1.0)
        >>> places = np.flatnonzero(objective.score_map.used)[:2]
        >>> objective.hessian(np.zeros(objective.n_parameters), places)
        array([[ 0.25, -0.25],
               [-0.25,  0.25]])
        """
        wanted = np.arange(self.n_parameters) if places is None else np.ascontiguousarray(places, dtype=np.int64)
        return self._losses.hessian([np.ascontiguousarray(point) for point in np.atleast_2d(w)], wanted)

    def gap(
        self, w: Floats, loss: float, gradient: Floats, magnitude: float = 0.0, slack: float = 0.0
    ) -> tuple[float, float]:
        """Return primal value and duality gap, given the losses and their gradient at w.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.
        loss, gradient, magnitude, slack
            As :meth:`evaluate` returns them.

        Returns
        -------
        objective : float
            P(w).
        gap : float
            A bound on P(w) - P*; NaN if the problem is not convex.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.solvers import prototypes
        >>> objective = prototypes.objective(temperature=1.0)
        >>> w = np.zeros(objective.n_parameters)
        >>> round(objective.gap(w, *objective.loss_and_gradient(w))[1], 12)
        0.25
        """
        if not self.convex:
            return loss + self.regulariser.value(w), float("nan")
        return primal_and_gap(self.regulariser, w, loss, gradient, magnitude, slack)

    def certify(self, w: Floats) -> tuple[float, float]:
        """Return primal value and duality gap of any parameters.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        objective, gap : float
            As in :meth:`gap`.
        """
        return self.gap(w, *self.evaluate(w))

    def planes(self, w: Floats, examples: NDArray[np.int64] | None = None) -> Planes:
        """Return the highest plane of each example at w, or of those listed; at T = 0.

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
        >>> from dualfield.solvers import prototypes
        >>> hinge = prototypes.objective(temperature=0.0)
        >>> w = hinge.score_map.pack(np.array([0.1, -0.1]), np.zeros(4))
        >>> hinge.planes(w).values(w)                         # 1 - 2 * 0.1
        array([0.8])
        """
        given = self.examples
        if examples is None:
            chosen, nodes = np.arange(self.n_examples), np.arange(given.nodes.n_nodes)
            scores = self.score_map.scores_of(self.native, w, given.nodes.shape, self.n_threads)
        else:
            chosen = np.asarray(examples, dtype=np.int64)
            nodes = rows_of_examples(given.nodes.offsets, chosen)[1]
            pairs = None if given.pairs is None else given.pairs[chosen]
            scores = self.score_map.scores(w, given.nodes[chosen], pairs, self.n_threads)
        truth = given.labels[nodes]
        if self.loss.rescaling == "slack":
            return self.planes_of(self._slack_argmax(scores, truth), chosen)
        if given.fixed is not None:
            known = np.flatnonzero(given.fixed[nodes])
            own = scores.node[known, truth[known]]
            scores.node[known] = -np.inf
            scores.node[known, truth[known]] = own
        costs = self.node_costs(nodes)
        if self.relaxation is not None:
            found = self.score_map.structure.best_point(scores, cost=costs, n_jobs=self.n_threads)
            self._met_relaxation |= not found.are_labellings
            return self.planes_at(found, chosen)
        return self.planes_of(self.score_map.structure.argmax(scores, cost=costs, n_jobs=self.n_threads), chosen)

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
        >>> from dualfield.solvers import prototypes
        >>> hinge = prototypes.objective(temperature=0.0)
        >>> hinge.planes_of(hinge.examples.labels, np.array([0])).slopes.nnz       # the truth has the plane 0
        0
        """
        offsets, nodes = rows_of_examples(self.examples.nodes.offsets, examples)
        owner = np.repeat(np.arange(len(examples)), np.diff(offsets))
        truth = self.examples.labels[nodes]
        paid = self.node_costs(nodes, labels)
        costs = np.bincount(owner, paid, minlength=len(examples)).astype(np.float64)
        # Slacks are rescaled: the whole plane is multiplied by the cost.
        scale = costs if self.loss.rescaling == "slack" else np.ones(len(examples))
        slopes = self.features.differences(labels, truth, examples, scale)
        keys: list[Hashable] = [labels[a:b].tobytes() for a, b in itertools.pairwise(offsets.tolist())]
        return Planes(examples, costs, slopes, keys)

    def planes_at(self, points: BestPoints, examples: NDArray[np.int64]) -> Planes:
        """Return the planes of given points of the marginal polytope, or of a larger one that relaxes it.

        Parameters
        ----------
        points : BestPoints
            A point for each example, and its slack.
        examples : int array of shape (m,)
            Which examples.

        Returns
        -------
        Planes
            One plane for each: its expected cost, and its expected features less those of the truth.

        Examples
        --------
        >>> from dualfield.solvers import prototypes
        >>> hinge = prototypes.objective(temperature=0.0)
        >>> w = np.zeros(hinge.n_parameters)
        >>> scores = hinge.score_map.scores(w, hinge.examples.nodes)
        >>> points = hinge.score_map.structure.best_point(scores, cost=hinge.node_costs(np.array([0])))
        >>> hinge.planes_at(points, np.array([0])).offsets    # the wrong label
        array([1.])
        """
        offsets, nodes = rows_of_examples(self.examples.nodes.offsets, examples)
        owner = np.repeat(np.arange(len(examples)), np.diff(offsets))
        paid = (points.node * self.node_costs(nodes)).sum(axis=1)
        costs = np.bincount(owner, paid, minlength=len(examples)).astype(np.float64)
        slopes = self.features.expected_differences(points, self.examples.labels[nodes], examples)
        rows = [slice(a, b) for a, b in itertools.pairwise(slopes.indptr.tolist())]
        keys: list[Hashable] = [(slopes.indices[row].tobytes(), slopes.data[row].tobytes()) for row in rows]
        return Planes(examples, costs, slopes, keys, points.slack)

    def node_costs(self, nodes: NDArray[np.int64], labels: NDArray[Any] | None = None) -> Floats:
        """Return what labels cost at nodes.

        Parameters
        ----------
        nodes : int array of shape (m,)
            Which nodes.
        labels : int array of shape (m,), default=None
            A label for each; None: all labels.

        Returns
        -------
        array of shape (m,) or (m, n_labels)
            Costs.
        """
        truth = self.examples.labels[nodes]
        n, unscored = self.score_map.structure.n_labels, self.examples.unscored
        table = np.zeros((n, n)) if self.loss.cost is None else self.loss.cost
        costs: Floats = table[truth] if labels is None else table[truth, labels]
        if unscored is not None:
            costs[unscored[nodes]] = 0.0
        return costs
