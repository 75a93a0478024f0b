"""The formula on partitions: losses and gradients are computed where partitions are, and added up in their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.engines import Engine, Handles
from dualfield.objectives.part_problem import PartProblem
from dualfield.objectives.primal_gap import primal_and_gap
from dualfield.objectives.touched import TouchedValues, add_values
from dualfield.regularisers import Regulariser, SquaredNorm
from dualfield.scores import LinearScores

__all__ = ["PartitionedObjective"]

BUNDLE = 20


class PartitionedObjective:
    r"""What a conditional random field minimises, on examples in partitions.

    .. math::
        P(w) = R(w) + \sum_k L_k(w), \qquad \nabla L(w) = \sum_k \nabla L_k(w)

    Each :math:`L_k` and its gradient are computed by native code where partition k is, on the columns that it has, and
    come back as index and value of the weights that it touches, 12 bytes each, or as 8 bytes for every weight of the
    model where that is less. The sums have a fixed order, so that the same partitions give the same bits wherever they
    are. For solvers it is the same as :class:`Objective`.

    Parameters
    ----------
    engine : Engine
        Where the partitions are.
    parts : Handles
        A :class:`~dualfield.objectives.part_problem.PartProblem` for each.
    score_map : LinearScores
        The features of the model.
    regulariser : Regulariser, default=None
        R of the formula; None: half the squared norm.
    temperature : float, default=1.0
        T of the formula, the same as in the partitions.
    bytes_of_round : int, default=0
        Bytes that all partitions together send in an exchange.

    Attributes
    ----------
    n_rounds, bytes_up : int
        Exchanges with all partitions so far, and the bytes of indices and values that they have sent.
    bundle_size : int
        How many points the certificate of a descent combines; see
        :class:`dualfield.solvers.primal.bundle.Bundle`.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.engines import Serial
    >>> from dualfield.objectives import PartitionedObjective
    >>> from dualfield.objectives.part_problem import PartProblem
    >>> from dualfield.solvers import LBFGS, StopRule, prototypes
    >>> whole = prototypes.objective(temperature=1.0)
    >>> n = whole.score_map.used_places.size
    >>> part = PartProblem(
    ...     examples=whole.examples,
    ...     score_map=whole.score_map,
    ...     loss=whole.loss,
    ...     places=np.arange(n, dtype=np.int32),
    ...     size=n,
    ... )
    >>> engine = Serial()
    >>> twice = PartitionedObjective(engine, engine.map(lambda one: one, [part, part]), whole.score_map)
    >>> w = np.zeros(whole.n_parameters)
    >>> bool(twice.evaluate(w)[0] == 2.0 * whole.evaluate(w)[0])
    True
    >>> LBFGS().solve(twice, StopRule(1e-6)).status.value
    'converged'
    """

    convex = True
    bundle_size = BUNDLE

    def __init__(
        self,
        engine: Engine,
        parts: Handles,
        score_map: LinearScores,
        regulariser: Regulariser | None = None,
        temperature: float = 1.0,
        bytes_of_round: int = 0,
    ) -> None:
        self.engine, self.parts, self.score_map, self.temperature = engine, parts, score_map, temperature
        self.regulariser = SquaredNorm(score_map.n_parameters) if regulariser is None else regulariser
        self._bytes_of_round = bytes_of_round
        self._used = score_map.used_places
        self.n_rounds = self.bytes_up = 0

    @property
    def n_parameters(self) -> int:
        """Length of w."""
        return self.score_map.n_parameters

    def travelling(self, w: Floats) -> Floats:
        """Return what is sent of a vector of parameters: the weights that can differ from zero.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters, among which some are zero for alignment.

        Returns
        -------
        array
            In the order of `LinearScores.used_places`.
        """
        return np.asarray(w[self._used])

    def whole(self, values: TouchedValues) -> Floats:
        """Return what has come of weights as a vector of parameters.

        Parameters
        ----------
        values : TouchedValues
            Values for weights that can differ from zero.

        Returns
        -------
        array of shape (n_parameters,)
            With zeros elsewhere.
        """
        found = np.zeros(self.n_parameters)
        found[self._used] = values.dense()
        return found

    def evaluate(self, w: Floats) -> tuple[float, Floats, float, float]:
        """Return losses, their gradient, magnitude and slack, as :meth:`Objective.evaluate` does.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        loss, gradient, magnitude, slack
            What :meth:`gap` takes.
        """
        loss, magnitude, slack, gradient = self.sum_of(PartProblem.evaluate, self.travelling(w))
        return float(loss), self.whole(gradient), float(magnitude), float(slack)

    def loss_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return the weighted losses and their gradient, without the penalty.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        loss, gradient
            As in :meth:`Objective.loss_and_gradient`.
        """
        return self.evaluate(w)[:2]

    def value(self, w: Floats) -> float:
        """Return P(w) without its gradient.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        float
            Losses and penalty.
        """
        self.n_rounds += 1
        losses = self.engine.sum_of(PartProblem.value, self.parts, self.travelling(w))
        return float(losses) + self.regulariser.value(w)

    def sum_of(self, function: Any, *shared: Any) -> Any:
        """Exchange once with all partitions: add up tuples, with vectors of touched weights in them.

        Parameters
        ----------
        function : callable
            Of a partition and what is shared.
        *shared : object
            Sent to all.

        Returns
        -------
        tuple
            The sums.
        """
        self.n_rounds += 1
        self.bytes_up += self._bytes_of_round
        return self.engine.sum_of(function, self.parts, *shared, add=add_values)

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
        objective, gap : float
            P(w), and a bound on P(w) - P*.
        """
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
