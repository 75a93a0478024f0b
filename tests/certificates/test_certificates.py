"""Every estimator with every solver on hostile problems: objectives are right, and gaps are bounds.

``make torture`` runs the same families over far more seeds. What it finds is kept here, in FOUND.
"""

from __future__ import annotations

import pytest

from tests.certificates.__main__ import run
from tests.certificates.claims import violated
from tests.certificates.hostile import FAMILIES, WITH_KERNEL, indefinite
from tests.certificates.precision import in_single_precision

_CHUNK, _CHUNKS = 28, 3
# Problems whose certificates were false once.
FOUND = [
    ("plain", "StructuredSVM-kernel", 17),  # a flow that was no distribution
    ("plain", "ConditionalGraphicalModel-log", 31),  # a Gram matrix refused
    ("plain", "KernelLogisticRegression-lbfgs", 31),  # a start that does not sum to zero, and a centred kernel
    ("plain", "StructuredSVM-single", 0),  # worse than zero weights
    ("plain", "KernelLogisticRegression-working_set", 1032),  # extended precision was not enough to judge it
    ("single", "KernelLogisticRegression-smo", 1126),  # refused for what single precision had left
    ("plain", "CRF-block_dual", 1188),  # rounding of entropies, times a large C, as a lower bound
    ("plain", "StructuredSVM-auto", 1302),  # swaps that stalled were waited for without end
    ("plain", "StructuredSVM-marginal", 1321),  # a warm start that was worse than zero weights
    ("plain", "StructuredSVM-auto", 2018),  # "converged" because the gap was below 1e-14, as the objective nearly was
    ("plain", "StructuredSVM-simplicial", 2595),  # the same
    ("plain", "CRF-auto", 5142),  # a difference of numbers of 1e11 as a lower bound on 1e-7
    ("plain", "KernelLogisticRegression-working_set", 5951),  # coefficients that summed to zero, but for rounding
    ("plain", "DiscriminativeHMM", 4252),  # a divergence of zero, and nothing but its rounding to lower
    ("plain", "KernelLogisticRegression-smo", 1706),  # refused for scores kept as differences from large logits
    ("indefinite", "KernelLogisticRegression-auto", 1580),  # negative by less than a hundredth, and refused rightly
]


def broken(draw, seeds) -> dict[int, list[str]]:
    found = {seed: violated(draw(seed)) for seed in seeds}
    return {seed: claims for seed, claims in found.items() if claims}


@pytest.mark.parametrize("chunk", range(_CHUNKS))
@pytest.mark.parametrize("family", FAMILIES)
def test_claims_hold(family, chunk):
    assert broken(FAMILIES[family], range(chunk * _CHUNK, (chunk + 1) * _CHUNK)) == {}


@pytest.mark.parametrize("family", WITH_KERNEL)
def test_claims_hold_in_single_precision(family, monkeypatch):
    in_single_precision(monkeypatch)
    assert broken(FAMILIES[family], range(_CHUNK)) == {}


@pytest.mark.parametrize("family", WITH_KERNEL)
def test_kernels_that_are_none_are_refused(family):
    assert broken(lambda seed: indefinite(family, seed), range(_CHUNK)) == {}


@pytest.mark.parametrize("task", FOUND, ids=str)
def test_problems_that_broke_a_claim_once(task):
    assert run(task)[1] == []
