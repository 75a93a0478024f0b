"""``model.report``: one line writes the page, whatever the model labels."""

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dualfield import (
    CRF,
    DiscriminativeBayesNet,
    DiscriminativeHMM,
    KernelLogisticRegression,
    LatentCRF,
    LatentStructuredSVM,
    StructuredSVM,
)
from dualfield.estimators import crfsuite
from dualfield.report import DevData, training_page
from dualfield.structures import Chain
from tests.report.pages import BIO, corpus, read, shown_sentences

X, Y = corpus(30, BIO, 0)
X_DEV, Y_DEV = corpus(15, BIO, 1)
TREES = [(nodes, [at - 1 for at in range(len(nodes))]) for nodes in X]
POINTS = np.random.default_rng(0).normal(size=(40, 3))
SIDES = (POINTS[:, 0] > 0).astype(int)
MODELS = {
    "CRF": lambda: CRF().fit(X, Y),
    "order 2": lambda: CRF(Chain(order=2)).fit(X, Y),
    "crfsuite": lambda: crfsuite.CRF().fit(X, Y),
    "hinge": lambda: StructuredSVM(random_state=0).fit(X, Y),
    "calibrated hinge": lambda: StructuredSVM(random_state=0).fit(X, Y).calibrate(X_DEV, Y_DEV),
    "latent CRF": lambda: LatentCRF(random_state=0).fit(X, Y),
    "latent SVM": lambda: LatentStructuredSVM(random_state=0).fit(X, Y),
    "HMM": lambda: DiscriminativeHMM().fit([[token[0] for token in one] for one in X], Y),
}
FLAT = {
    "kernel": lambda: KernelLogisticRegression().fit(POINTS, SIDES),
    "single CRF": lambda: CRF("single").fit(POINTS, SIDES),
    "single SVM": lambda: StructuredSVM("single", random_state=0).fit(POINTS, SIDES),
    "Bayes net": lambda: DiscriminativeBayesNet().fit((POINTS > 0).astype(int), SIDES),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_sequences(name, tmp_path):
    model = MODELS[name]()
    data = [[token[0] for token in one] for one in X_DEV] if name == "HMM" else X_DEV
    model.report(tmp_path / "r.html", data, Y_DEV)
    document = (tmp_path / "r.html").read_text(encoding="utf-8")
    page = read(document)
    assert page.texts["h1"] == [type(model).__name__]
    pairs = [pair for both in zip(model.predict(data), Y_DEV, strict=True) for pair in zip(*both, strict=True)]
    assert page.cards["accuracy"] == pytest.approx(100 * np.mean([a == b for a, b in pairs]), abs=0.005)
    assert {"F1", "sentences right"} <= set(page.cards)
    assert ("log-loss" in page.cards) == hasattr(model, "predict_proba")
    assert document.count('class="sentence spans"') >= 4


@pytest.mark.parametrize("name", FLAT)
def test_single_examples(name, tmp_path):
    model = FLAT[name]()
    data = (POINTS > 0).astype(int) if name == "Bayes net" else POINTS
    model.report(tmp_path / "r.html", data, SIDES, title="Two & sides")
    page = read((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert page.texts["h1"] == ["Two & sides"]
    assert page.cards["accuracy"] == pytest.approx(100 * np.mean(model.predict(data) == SIDES), abs=0.005)


def test_trees_show_their_words(tmp_path):
    model = CRF("tree").fit(TREES, Y)
    model.report(tmp_path / "r.html", TREES[:5], Y[:5])
    document = (tmp_path / "r.html").read_text(encoding="utf-8")
    texts = {" ".join(token[0].removeprefix("w=") for token in nodes) for nodes, _ in TREES[:5]}
    assert texts.issuperset(shown_sentences(document))
    assert "Transitions" not in read(document).texts["h3"]


def test_it_is_the_page_of_the_report_module(tmp_path):
    model = CRF().fit(X, Y)
    words = [[f"word{at}" for at in range(len(labels))] for labels in Y_DEV]
    history = [(1.0, 0.1, "F1", 0.5)]
    model.report(tmp_path / "r.html", X_DEV, Y_DEV, tokens=words, history=history)
    expected = training_page(model, title="CRF", dev=DevData(X_DEV, Y_DEV, words), history=history)
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == expected
    assert re.search(r">word\d+ ", expected)
    model.report(tmp_path / "bare.html")
    assert read((tmp_path / "bare.html").read_text(encoding="utf-8")).cards == {}


def test_what_cannot_be_reported_is_refused_before_anything_is_written(tmp_path):
    model = CRF().fit(X, Y)
    with pytest.raises(ValueError, match=r"report needs both X and y, or neither\. Got X without y\."):
        model.report(tmp_path / "r.html", X_DEV)
    with pytest.raises(TypeError, match="path must be a str or path-like, where the page is written"):
        model.report(X_DEV, Y_DEV)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        model.report(tmp_path / "none" / "r.html", X_DEV, Y_DEV)
    with pytest.raises(NotFittedError):
        CRF().report(tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []
