"""The structured perceptron."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dualfield import _native
from dualfield.data.arrays import Floats
from dualfield.objectives import Objective
from dualfield.solvers.base import Progress, Solution, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.needs import Need, all_labels, free_signs, native_losses, positive_temperature
from dualfield.solvers.primal.sgd import certified, epochs
from dualfield.solvers.registry import register, suited
from dualfield.solvers.solver import Solver

__all__ = ["Perceptron"]


@register
@dataclass(frozen=True)
class Perceptron(Solver):
    """Collins' structured perceptron: moves from what was predicted to what is true.

    Minimises nothing in particular and knows no C; the scores are not logarithms of probabilities. Needs examples with
    all their labels.

    Parameters
    ----------
    average : bool, default=True
        Return the mean of all points.

    Examples
    --------
    >>> from dualfield.solvers import Perceptron
    >>> Perceptron().average
    True
    """

    name: ClassVar[str] = "perceptron"
    needs: ClassVar[tuple[Need, ...]] = (native_losses, positive_temperature, free_signs, all_labels)
    makes_epochs: ClassVar[bool] = True
    certifies: ClassVar[bool] = False
    safeguarded: ClassVar[bool] = True

    average: bool = True

    def solve(
        self,
        objective: Objective,
        rule: StopRule,
        start: Floats | None = None,
        callbacks: Progress | None = None,
        random_state: Any = None,
    ) -> Solution[Floats]:
        """Make as many epochs as the rule says, or until no mistake is left.

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
        >>> from dualfield.solvers import Perceptron, StopRule, prototypes
        >>> Perceptron().solve(prototypes.objective(temperature=1.0), StopRule(1e-6)).n_iter
        1
        """
        suited(self, objective)
        result = _native.solve_perceptron(
            objective.native,
            start,
            epochs(rule),
            self.average,
            random_state or 0,
            Callbacks.of(callbacks),
        )
        return certified(objective, result, rule, self.name)
