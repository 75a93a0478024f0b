"""The frozen tagger answers as the estimator that was saved, and refuses what that refuses."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield import CRF
from dualfield.features import Template
from dualfield.models.sequence_tagger import SequenceTagger
from dualfield.persistence.file import open_model
from dualfield.structures import Chain

WORDS = [["the", "cat", "sees", "it"], ["a", "dog", "ran"], ["it", "sees", "the", "äpfel"]]
LABELS = [["D", "N", "V", "P"], ["D", "N", "V"], ["P", "V", "D", "N"]]
ITEMS = [[{"word": word, "length": float(len(word))} for word in sentence] for sentence in WORDS]
COLUMNS = [[[word, word[-1]] for word in sentence] for sentence in WORDS]
PAIRS = "U00:%x[0,0]\nU01:%x[-1,1]\nB00:%x[0,1]\nB\n"
CASES = {
    "attributes": (CRF(), ITEMS),
    "pairs of attributes": (CRF(pair_features=True, start_stop=True, temperature=2), ITEMS),
    "order 2": (CRF(Chain(order=2)), ITEMS),
    "template": (CRF(template=PAIRS), COLUMNS),
    "template object": (CRF(template=Template(PAIRS)), COLUMNS),
}


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_answers_are_those_of_the_estimator(case, mmap, tmp_path):
    model, X = CASES[case]
    model.fit(X, LABELS).save(tmp_path / "model")
    tagger = SequenceTagger.from_record(open_model(tmp_path / "model", mmap=mmap).record)
    assert tagger is not None
    assert tagger.predict(X) == model.predict(X)
    assert tagger.k_best(X, 3) == model.k_best(X, 3)
    for own, other in zip(tagger.predict_proba(X), model.predict_proba(X), strict=True):
        np.testing.assert_array_equal(own, other)
    assert tagger.classes.tolist() == model.classes_.tolist()


def test_numbers_and_kernels_are_left_to_the_estimator(tmp_path):
    X = [np.arange(len(labels) * 2.0).reshape(-1, 2) for labels in LABELS]
    for model in (CRF(), CRF(kernel="rbf")):
        model.fit(X, LABELS).save(tmp_path / "model")
        assert SequenceTagger.from_record(open_model(tmp_path / "model").record) is None
