"""The loss of softmax over one node: the digits of small and of large losses."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield.kernels import Kernel
from dualfield.objectives import KernelSoftmax


@pytest.mark.parametrize("scale", [1e-3, 1.0, 40.0, 2000.0])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_loss_and_dual_point_in_extended_precision(scale: float, n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    pinned, n = n_classes == 2, 60
    labels = rng.integers(0, n_classes, size=n).astype(np.int32)
    weights = rng.uniform(0.1, 3.0, size=n)
    scores = scale * rng.normal(size=(n, n_classes - int(pinned)))
    full = (np.column_stack([np.zeros(n), scores]) if pinned else scores).astype(np.longdouble)
    for at in range(n):
        problem = KernelSoftmax(
            Kernel(),
            None,
            labels[at : at + 1],
            weights=weights[at : at + 1],
            n_classes=n_classes,
            with_bias=True,
            pinned=pinned,
        )
        loss, dual = problem.loss(scores[at : at + 1])
        ahead = np.delete(full[at] - full[at, labels[at]], labels[at])
        top = max(ahead.max(), np.longdouble(0.0))
        wanted = weights[at] * (
            np.log1p(np.exp(ahead).sum()) if top == 0.0 else top + np.log(np.exp(-top) + np.exp(ahead - top).sum())
        )
        assert loss == pytest.approx(float(wanted), rel=1e-13, abs=1e-300)
        powers = np.exp(full[at] - full[at].max())
        apart = -weights[at] * powers / powers.sum()
        apart[labels[at]] = weights[at] * np.delete(powers, labels[at]).sum() / powers.sum()
        np.testing.assert_allclose(dual[0], apart[int(pinned) :].astype(float), rtol=1e-13, atol=1e-300)
