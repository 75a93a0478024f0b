"""Newton's equations of mixtures of planes, as a system of the planes or of the parameters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from dualfield.data.arrays import Floats, Ints

_RIDGES = (1e-15, 1e-12, 1e-9, 1e-6)  # beside each entry of the diagonal
_REFINEMENTS = 2


class Changes(NamedTuple):
    """Changes of shares, of those of the planes 0, of heights, and of the slope of the mixture."""

    shares: Floats
    truth: Floats
    top: Floats
    slope: Floats


class ByPlanes:
    """Solves for the changes of shares, under the condition that those of a block sum to zero."""

    def __init__(
        self,
        gram: Floats,
        ratio: Floats,
        truth_ratio: Floats,
        blocks: Ints,
        n_blocks: int,
        columns: scipy.sparse.csr_array,
    ) -> None:
        m = len(ratio)
        gram[np.diag_indices(m)] += ratio
        self._whole, self._columns = _cholesky(gram), columns
        members = np.zeros((m, n_blocks))
        members[np.arange(m), blocks] = 1.0
        self._members, self._truth_ratio = members, truth_ratio
        self._spread = scipy.linalg.cho_solve(self._whole, members, check_finite=False)
        small = members.T @ self._spread + np.diag(truth_ratio)
        self._small = _cholesky(small)

    def solve(self, ask: Floats, ask_truth: Floats) -> Changes:
        """Return the changes for what planes, and the planes 0, are asked to give."""
        raw = scipy.linalg.cho_solve(self._whole, ask, check_finite=False)
        rise = scipy.linalg.cho_solve(
            self._small, self._members.T @ raw + self._truth_ratio * ask_truth, check_finite=False
        )
        change = raw - self._spread @ rise
        return Changes(change, self._truth_ratio * (ask_truth - rise), rise, np.asarray(self._columns @ change))


class ByParameters:
    r"""The same changes from a system with one row for each parameter, where their metric M is diagonal.

    With weights :math:`\delta` of the planes, their shares by what they lack, the plane 0 among those of each block,
    and slopes and demands less their weighted means over the block,

    .. math::
        \Bigl( M + \sum_j \delta_j \bar a_j \bar a_j^\top \Bigr) z = \sum_j \delta_j \bar a_j \bar r_j, \qquad
        \dot \alpha_j = \delta_j ( \bar r_j - \langle \bar a_j, z \rangle ), \qquad A^\top \dot \alpha = M z .

    Means are taken out before anything is squared: an offset common to the features of all planes of a block, however
    large beside their differences, costs no digits. Nor do parameters of different scales, which an elimination by
    Cholesky's method does not mix.
    """

    def __init__(
        self, slopes: Floats, metric: Floats, ratio: Floats, truth_ratio: Floats, blocks: Ints, n_blocks: int
    ) -> None:
        self._blocks, self._n_blocks, self._metric, self._slopes = blocks, n_blocks, metric, slopes
        self._weight, self._truth_weight = 1.0 / ratio, truth_ratio
        self._total = truth_ratio + np.bincount(blocks, self._weight, minlength=n_blocks)
        adds = scipy.sparse.csr_array(
            (self._weight / self._total[blocks], (blocks, np.arange(len(ratio)))), shape=(n_blocks, len(ratio))
        )
        self._mean = np.asarray(adds @ slopes)
        self._centred = slopes - self._mean[blocks]
        rows = np.vstack(
            [np.sqrt(self._weight)[:, None] * self._centred, np.sqrt(self._truth_weight)[:, None] * self._mean]
        )
        matrix = rows.T @ rows
        matrix[np.diag_indices(len(metric))] += metric
        self._factor = _cholesky(matrix)

    def solve(self, ask: Floats, ask_truth: Floats) -> Changes:
        """Return the changes for what planes, and the planes 0, are asked to give."""
        found = self._solve(ask, ask_truth, np.zeros(self._n_blocks))
        for _ in range(_REFINEMENTS):
            # Weights of planes that lack next to nothing are huge, and would multiply rounding.
            fall = self._slopes @ (found.slope / self._metric) + found.shares / self._weight
            missing = ask - fall - found.top[self._blocks]
            missing_truth = ask_truth - found.top - found.truth / self._truth_weight
            sums = np.bincount(self._blocks, found.shares, minlength=self._n_blocks) + found.truth
            more = self._solve(missing, missing_truth, -sums)
            found = Changes(*(one + other for one, other in zip(found, more, strict=True)))
        return found

    def _solve(self, ask: Floats, ask_truth: Floats, total: Floats) -> Changes:
        """Solve for changes that add up to `total` in each block."""
        mean = self._truth_weight * ask_truth + np.bincount(self._blocks, self._weight * ask, minlength=self._n_blocks)
        mean = (mean - total) / self._total
        rest, rest_truth = ask - mean[self._blocks], ask_truth - mean
        right = self._centred.T @ (self._weight * rest) - self._mean.T @ (self._truth_weight * rest_truth - total)
        z = scipy.linalg.cho_solve(self._factor, right, check_finite=False)
        along = self._mean @ z
        change = self._weight * (rest - self._centred @ z)
        change_truth = self._truth_weight * (rest_truth + along)
        return Changes(change, change_truth, mean - along, self._slopes.T @ change)


def _cholesky(matrix: Floats) -> tuple[Floats, bool]:
    """Return the factor of a matrix that is positive definite but for rounding, which a ridge makes up for."""
    diagonal, places = matrix.diagonal().copy(), np.diag_indices(len(matrix))
    for ridge in _RIDGES:
        matrix[places] = (1.0 + ridge) * diagonal
        try:
            factor, lower = scipy.linalg.cho_factor(matrix, lower=True, check_finite=False)
        except scipy.linalg.LinAlgError:
            continue
        return factor, bool(lower)
    raise FloatingPointError("Newton's equations of a mixture have no solution in floating point.")
