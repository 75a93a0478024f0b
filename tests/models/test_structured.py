"""The frozen tagger answers as the estimator that was saved, and refuses what that refuses."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dualfield import CRF
from dualfield.features import Template
from dualfield.models.structured import StructuredModel
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
    tagger = StructuredModel.from_record(open_model(tmp_path / "model", mmap=mmap).record.child("model"))
    assert tagger.predict(X) == model.predict(X)
    assert tagger.k_best(X, 3) == model.k_best(X, 3)
    for own, other in zip(tagger.predict_proba(X), model.predict_proba(X), strict=True):
        np.testing.assert_array_equal(own, other)
    assert tagger.classes.tolist() == model.classes_.tolist()


def test_numbers_and_kernels(tmp_path):
    X = [np.arange(len(labels) * 2.0).reshape(-1, 2) for labels in LABELS]
    for model in (CRF(), CRF(kernel="rbf")):
        model.fit(X, LABELS).save(tmp_path / "model")
        again = StructuredModel.from_record(open_model(tmp_path / "model").record.child("model"))
        assert again.predict(X) == model.predict(X)


def test_predictions_do_not_import_scikit_learn(tmp_path):
    """Its import takes longer than to tag a few sentences."""
    CRF().fit(ITEMS, LABELS).save(tmp_path / "model")
    code = """
import sys
from dualfield.models.structured import StructuredModel
from dualfield.persistence.file import open_model
model = StructuredModel.from_record(open_model(sys.argv[1]).record.child("model"))
print(model.predict([[["word"]]]), "sklearn" in sys.modules)
"""
    said = subprocess.run([sys.executable, "-c", code, tmp_path / "model"], capture_output=True, text=True, check=True)
    assert said.stdout.endswith("False\n")
