"""What the concave-convex procedure asks of an inner solver, and what it returns."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass, fields
from enum import Enum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.objectives.latent import Completion
from dualfield.solvers.base import Solution, StopRule

__all__ = ["InnerSolver", "LatentSolution", "LatentStatus", "LatentTrace"]


class InnerSolver(Protocol):
    """Minimises the convex bound U of a completion; one object for each run, which may remember planes.

    Examples
    --------
    >>> from dualfield.solvers.latent.records import InnerSolver
    >>> InnerSolver.__name__
    'InnerSolver'
    """

    @abstractmethod
    def minimise(self, completion: Completion, start: Floats | None, rule: StopRule, seed: int) -> Solution[Floats]:
        """Minimise ½|w|² + loss(w) - ⟨w, features⟩: the bound without its offset, which is never negative.

        Parameters
        ----------
        completion : Completion
            The tangent.
        start : array or None
            The weights where the tangent touches g; None if there are none yet.
        rule : StopRule
            When to stop.
        seed : int
            For solvers that draw examples.

        Returns
        -------
        Solution[Floats]
            The point and its gap.

        Examples
        --------
        >>> InnerSolver.minimise.__name__
        'minimise'
        """


class LatentStatus(Enum):
    """How a run of the procedure ended.

    Examples
    --------
    >>> from dualfield.solvers.latent.records import LatentStatus
    >>> print(LatentStatus.SETTLED.sentence)
    The latent variables no longer change: no tangent improves the weights by more than the inner gap.
    """

    SETTLED = "settled"
    SMALL_STEP = "small_step"
    ITERATION_LIMIT = "iteration_limit"
    INTERRUPTED = "interrupted"

    @property
    def sentence(self) -> str:
        """What happened."""
        return {
            LatentStatus.SETTLED: "The latent variables no longer change: no tangent improves the weights by more than "
            "the inner gap.",
            LatentStatus.SMALL_STEP: "The last step lowered the objective by less than the tolerance.",
            LatentStatus.ITERATION_LIMIT: "The limit on steps was reached.",
            LatentStatus.INTERRUPTED: "The fit was interrupted; the model is the best point so far.",
        }[self]

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return {
            LatentStatus.ITERATION_LIMIT: "Increase max_iter, or tol if steps this small do not matter.",
            LatentStatus.INTERRUPTED: "Fit again with init='weights' to go on from here.",
        }.get(self, "")


@dataclass(frozen=True, eq=False)
class LatentTrace:
    r"""The certificate of a run, an entry for each step t from the weights :math:`w^t` to :math:`w^{t+1}`.

    At every step :math:`R(w^{t+1}) \le U_t(w^{t+1}) \le U_t(w^t) = R(w^t)`. Where the temperature changes, R changes
    with it: only steps at the same temperature are comparable.

    Attributes
    ----------
    before, after : array of shape (n_steps,)
        U_t(w^t) and U_t(w^{t+1}). ``before[0]`` is NaN where the run began with latent variables and not with weights.
    objective : array of shape (n_steps,)
        R(w^{t+1}) at the temperature of the step.
    inner_gap : array of shape (n_steps,)
        How far U_t(w^{t+1}) is above the minimum of U_t at most.
    reached : bool array of shape (n_steps,)
        Whether the inner problem was solved to its tolerance.
    changed : int array of shape (n_steps,)
        Latent variables that :math:`w^{t+1}` completes in another way.
    temperature : array of shape (n_steps,)
        T of the completion.
    passes, seconds : array of shape (n_steps,)
        Work of the inner solver in passes over the data, and time since the beginning.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.latent.records import LatentTrace
    >>> rows = [(np.nan, 5.0, 4.0, 0.1, True, 3, 0.0, 9, 0.1), (4.0, 3.5, 3.5, 0.1, True, 0, 0.0, 5, 0.2)]
    >>> trace = LatentTrace.from_rows(rows)
    >>> len(trace), trace.certified()
    (2, True)
    """

    before: Floats
    after: Floats
    objective: Floats
    _: KW_ONLY
    inner_gap: Floats
    reached: NDArray[np.bool_]
    changed: NDArray[np.int64]
    temperature: Floats
    passes: Floats
    seconds: Floats

    @classmethod
    def from_rows(cls, rows: list[tuple[Any, ...]]) -> LatentTrace:
        """Make a trace of one row for each step, in the order of the attributes.

        Parameters
        ----------
        rows : list of tuples
            Steps.

        Returns
        -------
        LatentTrace
            The columns by name.

        Examples
        --------
        >>> from dualfield.solvers.latent.records import LatentTrace
        >>> LatentTrace.from_rows([(5.0, 4.0, 4.0, 0.1, True, 3, 0.0, 9, 0.1)]).changed
        array([3])
        """
        names = [field.name for field in fields(cls)]
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        found: dict[str, Any] = {
            name: np.array(column, dtype=np.float64) for name, column in zip(names, columns, strict=True)
        }
        found |= {"reached": found["reached"].astype(bool), "changed": found["changed"].astype(np.int64)}
        return cls(**found)

    def __len__(self) -> int:
        return len(self.objective)

    def certified(self, tolerance: float = 1e-9) -> bool:
        """Tell whether the certificate holds: R ≤ U at every step, U never above where it began, R never rising.

        Parameters
        ----------
        tolerance : float, default=1e-9
            For rounding, relative to the values.

        Returns
        -------
        bool
            True unless there is an error in an oracle.

        Examples
        --------
        >>> from dualfield.solvers.latent.records import LatentTrace
        >>> LatentTrace.from_rows([(5.0, 4.0, 4.5, 0.1, True, 3, 0.0, 9, 0.1)]).certified()
        False
        """
        slack = tolerance * np.maximum(1.0, np.abs(self.after))
        same = self.temperature[1:] == self.temperature[:-1]
        bounded = bool((self.objective <= self.after + slack).all())
        lowered = bool((np.isnan(self.before) | (self.after <= self.before + slack)).all())
        falling = bool((self.objective[1:] <= self.objective[:-1] + slack[1:])[same].all())
        return bounded and lowered and falling


@dataclass(frozen=True, eq=False)
class LatentSolution:
    """Where a run of the procedure ended.

    Attributes
    ----------
    parameters : array of shape (n_parameters,)
        The weights.
    objective : float
        R.
    gap : float
        Of the last inner problem: no tangent at these weights gives more, if the latent variables have settled.
    reached : bool
        Whether the last inner problem was solved to its tolerance.
    status : LatentStatus
        How it ended.
    n_iter : int
        Steps.
    states : int array
        Latent variables of the truth, completed by the weights.
    trace : LatentTrace
        The certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.solvers.latent.records import LatentSolution, LatentStatus, LatentTrace
    >>> trace = LatentTrace.from_rows([(5.0, 4.0, 4.0, 0.1, True, 0, 0.0, 9, 0.1)])
    >>> LatentSolution(
    ...     np.zeros(2), 4.0, 0.1, reached=True, status=LatentStatus.SETTLED,
    ...     n_iter=1, states=np.zeros(3, int), trace=trace,
    ... ).n_iter
    1
    """

    parameters: Floats
    objective: float
    gap: float
    _: KW_ONLY
    reached: bool
    status: LatentStatus
    n_iter: int
    states: NDArray[Any]
    trace: LatentTrace
