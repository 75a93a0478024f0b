"""Hidden Markov models on tagged sentences; needs the folder that DUALFIELD_DATA names."""

import os
from typing import Any

import numpy as np
import pytest

from dualfield import DiscriminativeHMM
from reproductions.records import Settings
from reproductions.yu_data import SENTENCES, Sequences, Study, study

pytestmark = pytest.mark.skipif(
    not os.environ.get("DUALFIELD_DATA"), reason="DUALFIELD_DATA does not name the folder with treebank_pos.txt.gz"
)
SMOOTHING = {"start": 0.1, "transition": 0.1, "emission": 0.01}


@pytest.fixture(scope="module")
def sentences() -> Study:
    """600 sentences for training and 800 others for testing."""
    return study(Settings(), SENTENCES)


def fitted(sentences: Study, eta: float, **parameters: Any) -> DiscriminativeHMM:
    model = DiscriminativeHMM(eta, smoothing=SMOOTHING, tol=1e-3, **sentences.rare, **parameters)
    return model.fit(sentences.train.X, sentences.train.y)


@pytest.fixture(scope="module")
def trained(sentences) -> DiscriminativeHMM:
    return fitted(sentences, 0.003)


def wrong(part: Sequences, model: DiscriminativeHMM) -> int:
    return int(part.wrong(model.predict(part.X)).sum())


def test_margins_lower_the_error_of_a_tagger(sentences, trained):
    """On other sentences with prior="count".

    With prior="prob" and η = 0.003 the best paths of many test sentences tie at the optimum: rare words as NN or JJ.
    The error is then that of counting, or 0.3 points lower, as rounding decides; in training sentences it is lower.
    """
    counted, by_counts = fitted(sentences, 0.0), fitted(sentences, 1.0, prior="count")
    assert wrong(sentences.test, by_counts) < wrong(sentences.test, counted)
    assert wrong(sentences.train, trained) < wrong(sentences.train, counted)
    # Without margins it tags well enough: the comparison is not with a broken model.
    assert wrong(sentences.test, counted) < 0.08 * sentences.test.lengths.sum()


def test_few_rounds_prove_a_gap_of_a_thousandth(trained):
    assert trained.status_.value == "converged"
    assert trained.dual_gap_ <= 1e-3 * (trained.objective_ - trained.dual_gap_)
    assert trained.n_iter_ <= 60
    assert trained.trace_.passes[-1] <= 61  # one for each round, and one at the start
    assert (np.diff(trained.trace_.objective) <= 0.0).all()  # the best so far
    assert (np.diff(trained.trace_.dual) >= 0.0).all()


def test_threads_do_not_change_a_bit(sentences, trained):
    other = fitted(sentences, 0.003, n_jobs=2)
    np.testing.assert_array_equal(other.parameters_, trained.parameters_)
    assert (other.n_iter_, other.objective_, other.dual_gap_) == (
        trained.n_iter_,
        trained.objective_,
        trained.dual_gap_,
    )
