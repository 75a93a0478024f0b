"""Descent on partitions of CoNLL-2000: the minimum of block dual ascent, and the exchanges that settings save."""

from __future__ import annotations

import os
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dualfield import CRF
from dualfield.data import Partition
from dualfield.io import read_conll
from dualfield.objectives import PartitionedObjective
from dualfield.solvers import LBFGS

DATA = os.environ.get("DUALFIELD_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="DUALFIELD_DATA does not name the folder with conll2000_train.txt.gz")


@cache
def sentences(n: int) -> tuple[list[list[tuple[str, ...]]], list[list[str]]]:
    assert DATA
    read = read_conll(Path(DATA, "conll2000_train.txt.gz"))[:n]
    return [[row[:2] for row in one] for one in read], [[row[2] for row in one] for one in read]


def partitions(n: int, n_parts: int) -> list[Partition]:
    from dualfield.features import Template

    X, y = sentences(n)
    cuts = np.linspace(0, n, n_parts + 1).astype(int)
    return [Partition.build(X[a:b], y[a:b], Template.chunking()) for a, b in pairwise(cuts.tolist())]


def exchanges(solver: LBFGS, parts: list[Partition]) -> float:
    return float(CRF(C=0.5, tol=1e-3, solver=solver).fit(parts).trace_.passes[-1])


def test_it_is_the_minimum_of_block_dual_ascent() -> None:
    X, y = sentences(400)
    parts = CRF(C=0.5, tol=1e-4).fit(partitions(400, 6))
    whole = CRF(C=0.5, tol=1e-4, template="chunking", solver="block_dual").fit(X, y)
    assert parts.n_features_ == whole.n_features_
    assert abs(parts.objective_ - whole.objective_) <= parts.dual_gap_ + whole.dual_gap_


def test_what_a_round_sends_up() -> None:
    """All of CoNLL-2000 in 16 partitions: 13.8 MB of values were seen, where dense vectors take 58."""
    with pytest.warns(ConvergenceWarning):
        model = CRF(C=0.5, max_iter=1, solver="lbfgs").fit(partitions(8936, 16))
    assert model.trace_.passes[-1] == 1  # the other exchange has values of the objective alone
    assert model.bytes_moved_ / 12 * 8 <= 14e6
    assert model.bytes_moved_ < 8 * model.n_features_ * 16


def test_what_saves_exchanges(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = partitions(1000, 16)
    short, long = exchanges(LBFGS(memory=10), parts), exchanges(LBFGS(memory=40), parts)
    assert long <= 0.8 * short
    averaged = exchanges(LBFGS(memory=40, begin="average"), parts)
    assert averaged <= 0.95 * long
    assert averaged <= 0.92 * 0.8 * short
    monkeypatch.setattr(PartitionedObjective, "bundle_size", 0)
    assert long <= 0.95 * exchanges(LBFGS(memory=40), parts)
