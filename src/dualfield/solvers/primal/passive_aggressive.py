"""Passive-aggressive learning and AROW: moves from mistakes, as CRFsuite makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualfield import _native
from dualfield.data.arrays import Floats
from dualfield.data.checks import check_number
from dualfield.objectives import Objective
from dualfield.solvers.base import Progress, Solution, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.needs import Need, all_labels, free_signs, native_losses, positive_temperature
from dualfield.solvers.primal.sgd import certified, epochs
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver

__all__ = ["AROW", "PassiveAggressive"]


@register
@dataclass(frozen=True)
class PassiveAggressive(Solver):
    r"""Passive-aggressive learning (Crammer et al. 2006): after a mistake the shortest move that gives a margin.

    With d the features of the truth minus those of the prediction, w moves by τ d, where

    .. math::
        \ell = \mathrm{margin} - \langle w, d \rangle, \qquad
        \tau = \frac{\ell}{\|d\|^2}, \quad \min\Bigl(c, \frac{\ell}{\|d\|^2}\Bigr) \quad\text{or}\quad
        \frac{\ell}{\|d\|^2 + 1 / (2c)}

    for the types 0, 1 and 2. Minimises nothing in particular and knows no C; the weights of examples, divided by the
    largest, scale the moves. The scores are not logarithms of probabilities. Needs examples with all their labels.

    Parameters
    ----------
    type : {0, 1, 2}, default=1
        How long moves are.
    c : float, default=1.0
        The larger, the longer moves may be, for types 1 and 2.
    error_sensitive : bool, default=True
        The margin is the square root of the number of wrong labels; False: 1.
    average : bool, default=True
        Return the mean of all points.
    epsilon : float, default=0.0
        Stop when the mean loss of an epoch is below this.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.solvers import PassiveAggressive
    >>> model = CRF(solver=PassiveAggressive(c=0.5)).fit([[["a"], ["b"]]], [["x", "y"]])
    >>> model.predict([[["a"], ["b"]]])
    [['x', 'y']]
    """

    name: ClassVar[str] = "passive_aggressive"
    needs: ClassVar[tuple[Need, ...]] = (native_losses, positive_temperature, free_signs, all_labels)
    makes_epochs: ClassVar[bool] = True
    certifies: ClassVar[bool] = False
    safeguarded: ClassVar[bool] = True

    type: int = 1
    c: float = 1.0
    error_sensitive: bool = True
    average: bool = True
    epsilon: float = 0.0

    def solve(
        self,
        objective: Objective,
        rule: StopRule,
        start: Floats | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Floats]:
        """Make as many epochs as the rule says, or until the mean loss is small.

        Parameters
        ----------
        objective, rule, start, callbacks, random_state
            As for :meth:`SGD.solve`.

        Returns
        -------
        Solution[Floats]
            The point, its gap and the course.

        Examples
        --------
        >>> from dualfield.solvers import PassiveAggressive, StopRule, prototypes
        >>> PassiveAggressive().solve(prototypes.objective(temperature=1.0), StopRule(1e-6, 5)).n_iter
        5
        """
        if self.type not in (0, 1, 2):
            raise ValueError(f"The 'type' parameter of PassiveAggressive must be 0, 1 or 2. Got {self.type!r} instead.")
        check_number("PassiveAggressive", "c", self.c, 0.0, open_low=True)
        check_number("PassiveAggressive", "epsilon", self.epsilon, 0.0)
        suited(self, objective)
        result = _native.solve_passive_aggressive(
            objective.native,
            start,
            epochs(rule),
            float(self.epsilon),
            int(self.type),
            float(self.c),
            bool(self.error_sensitive),
            bool(self.average),
            random_state or 0,
            Callbacks.of(callbacks),
        )
        return certified(objective, result, rule, self.name)


@register
@dataclass(frozen=True)
class AROW(Solver):
    r"""Adaptive regularisation of weights (Crammer, Kulesza and Dredze 2009), with a variance for each weight.

    With d the features of the truth minus those of the prediction and v the variances, after a mistake

    .. math::
        w_j \leftarrow w_j + \frac{n - \langle w, d \rangle}{\gamma + \sum_k v_k d_k^2} v_j d_j, \qquad
        \frac{1}{v_j} \leftarrow \frac{1}{v_j} + \frac{d_j^2}{\gamma},

    where n is the number of wrong labels. Minimises nothing in particular and knows no C; the weights of
    examples, divided by the largest, scale the moves. The scores are not logarithms of probabilities. Needs examples
    with all their labels.

    Parameters
    ----------
    variance : float, default=1.0
        Of every weight at first.
    gamma : float, default=1.0
        The larger, the shorter the moves, and the slower the variances fall.
    epsilon : float, default=0.0
        Stop when the mean loss of an epoch is below this.

    Examples
    --------
    >>> from dualfield import CRF
    >>> CRF(solver="arow").fit([[["a"], ["b"]]], [["x", "y"]]).predict([[["a"], ["b"]]])
    [['x', 'y']]
    """

    name: ClassVar[str] = "arow"
    needs: ClassVar[tuple[Need, ...]] = (native_losses, positive_temperature, free_signs, all_labels)
    makes_epochs: ClassVar[bool] = True
    certifies: ClassVar[bool] = False
    safeguarded: ClassVar[bool] = True

    variance: float = 1.0
    gamma: float = 1.0
    epsilon: float = 0.0

    def solve(
        self,
        objective: Objective,
        rule: StopRule,
        start: Floats | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Floats]:
        """Make as many epochs as the rule says, or until the mean loss is small.

        Parameters
        ----------
        objective, rule, start, callbacks, random_state
            As for :meth:`SGD.solve`.

        Returns
        -------
        Solution[Floats]
            The point, its gap and the course.

        Examples
        --------
        >>> from dualfield.solvers import AROW, StopRule, prototypes
        >>> AROW().solve(prototypes.objective(temperature=1.0), StopRule(1e-6, 5)).n_iter
        5
        """
        check_number("AROW", "variance", self.variance, 0.0, open_low=True)
        check_number("AROW", "gamma", self.gamma, 0.0, open_low=True)
        check_number("AROW", "epsilon", self.epsilon, 0.0)
        suited(self, objective)
        result = _native.solve_arow(
            objective.native,
            start,
            epochs(rule),
            float(self.epsilon),
            float(self.variance),
            float(self.gamma),
            random_state or 0,
            Callbacks.of(callbacks),
        )
        return certified(objective, result, rule, self.name)
