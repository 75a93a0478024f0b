"""How probable the labels of the training data are, whatever the weights: Laplace's approximation, for each C."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.objectives import Objective
from dualfield.objectives.log_determinant import log_determinant

__all__ = ["Evidence", "EvidenceTable", "laplace_evidence"]


@dataclass(frozen=True)
class Evidence:
    """The evidence of one C.

    Attributes
    ----------
    C : float
        The weight of the losses: the variance of the weights in advance, divided by the temperature.
    log_evidence : float
        log p(y | X, C), by Laplace's approximation.
    standard_error : float
        Of the log-determinant in it; 0 where that is exact.
    log_likelihood : float
        log p(y | X, w) at the weights.
    n_informed : float
        How many weights the data determine.
    squared_norm : float
        ‖w‖².

    Examples
    --------
    >>> from dualfield.models.bayes.evidence import Evidence
    >>> Evidence(1.0, -10.0, 0.0, log_likelihood=-6.0, n_informed=3.0, squared_norm=2.0).C
    1.0
    """

    C: float
    log_evidence: float
    standard_error: float
    _: KW_ONLY
    log_likelihood: float
    n_informed: float
    squared_norm: float


@dataclass(frozen=True)
class EvidenceTable:
    """The evidence of several values of C.

    Attributes
    ----------
    rows : tuple of Evidence
        In the order in which they were computed.

    Examples
    --------
    >>> from dualfield.models.bayes.evidence import Evidence, EvidenceTable
    >>> rest = {"standard_error": 0.0, "log_likelihood": 0.0, "n_informed": 0.0, "squared_norm": 0.0}
    >>> table = EvidenceTable((Evidence(1.0, -10.0, **rest), Evidence(10.0, -8.0, **rest)))
    >>> table.best.C
    10.0
    >>> print(table)
             C  log-evidence  weights informed
             1       -10.000               0.0
            10        -8.000               0.0  best
    """

    rows: tuple[Evidence, ...]

    @property
    def best(self) -> Evidence:
        """The row with the largest evidence; of equal ones the first."""
        return max(self.rows, key=lambda row: row.log_evidence)

    @property
    def values(self) -> Floats:
        """The values of C."""
        return np.array([row.C for row in self.rows])

    @property
    def log_evidences(self) -> Floats:
        """Their log-evidences."""
        return np.array([row.log_evidence for row in self.rows])

    def __str__(self) -> str:
        is_exact = all(row.standard_error == 0.0 for row in self.rows)
        lines = [f"{'C':>10}  {'log-evidence':>12}" + ("" if is_exact else "    +-") + "  weights informed"]
        for row in self.rows:
            error = "" if is_exact else f"  {row.standard_error:4.1f}"
            end = "  best" if row is self.best else ""
            lines.append(f"{row.C:10.4g}  {row.log_evidence:12.3f}{error}  {row.n_informed:16.1f}{end}")
        return "\n".join(lines)


def laplace_evidence(
    objective: Objective, w: Floats, C: float, *, exact: bool | None = None, seed: int = 0, n_probes: int = 8
) -> Evidence:
    r"""Return the evidence at the weights that minimise an objective.

    The objective is ½|w|² + C Σ losses, which is C T times - log p(w, y | X) with weights that are Gaussian of variance
    C T in advance. Laplace's approximation of p(y | X) = ∫ p(w) p(y | X, w) dw at its minimum is

    .. math::
        \log p(y \mid X) \approx \log p(y \mid X, w) - \tfrac{1}{2CT} |w|^2 - \tfrac{1}{2} \log\det(I + H),

    where H are the second derivatives of C Σ losses (MacKay 1992).

    Parameters
    ----------
    objective : Objective
        With half the squared norm as penalty and log-losses without cost, whose weights have the factor C.
    w : array of shape (n_parameters,)
        Its minimum.
    C : float
        The factor.
    exact : bool, default=None
        Whether the log-determinant is exact; None: up to 2,000 weights.
    seed : int, default=0
        Of random probes, where it is not.
    n_probes : int, default=8
        How many there are.

    Returns
    -------
    Evidence
        The terms and their sum.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.models.bayes.evidence import laplace_evidence
    >>> from dualfield.solvers import prototypes
    >>> objective = prototypes.objective(temperature=1.0)
    >>> round(laplace_evidence(objective, np.zeros(objective.n_parameters), 1.0).log_likelihood, 4)
    -0.6931
    """
    T = objective.temperature
    determinant = log_determinant(objective, w, exact=exact, seed=seed, n_probes=n_probes)
    losses, squared = objective.loss_and_gradient(w)[0] / C, float(w @ w)
    value = -losses / T - squared / (2.0 * C * T) - determinant.value / 2.0
    return Evidence(
        float(C),
        float(value),
        determinant.standard_error / 2.0,
        log_likelihood=float(-losses / T),
        n_informed=determinant.n_informed,
        squared_norm=squared,
    )
