"""The report of a training, on all kinds of models and data."""

import os
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import numpy as np
import pycrfsuite
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss

import dualfield
from dualfield import CRF, BayesianCRF, KernelLogisticRegression, StructuredSVM
from dualfield.estimators import crfsuite
from dualfield.metrics import calibration_error
from dualfield.report import DevData, training_page, write_page
from dualfield.structures import Chain
from tests.report.pages import BIO, NASTY, corpus, number, read, shown_sentences


def test_without_dev_data_the_page_says_what_is_missing(tagger):
    page = read(training_page(tagger, title="t", facts=[]))
    assert page.texts["h2"] == ["Model", "Training"]
    assert page.texts["h3"] == ["Transitions", "Attributes"]
    assert any("dev=DevData(X, y)" in text and "--dev" in text for text in page.texts["p"])


@pytest.mark.parametrize("empty", [([], []), ([[]], [[]]), (iter([[], []]), [[], []])], ids=["none", "one", "two"])
def test_dev_data_without_a_token(tagger, empty):
    page = read(training_page(tagger, title="t", facts=[], dev=DevData(*empty)))
    assert "The held-out data have no labels, so there is nothing to score." in page.texts["p"]


def test_a_model_without_probabilities(dev):
    model = StructuredSVM(random_state=0).fit(*corpus(40, BIO, 0))
    document = training_page(model, title="t", facts=[], dev=dev)
    page = read(document)
    assert page.texts["h2"] == ["Errors", "Sentences", "Model", "Training"]
    assert set(page.cards) == {"F1", "precision", "recall", "accuracy", "sentences right"}
    assert any("The model has margins and no probabilities, so there is no log-loss" in t for t in page.texts["p"])
    assert page.facts["solver"] == "flow_swap"
    shown = [int(at) for at in re.findall(r"Sentence (\d+)", document.partition("<h3>Missed")[2].partition("<h3>")[0])]
    assert shown == sorted(shown)  # the first ones, as no error is surer than another
    assert "exact probability" not in document
    calibrated = read(training_page(model.calibrate(*corpus(30, BIO, 2)), title="t", facts=[], dev=dev))
    assert "Are the probabilities calibrated?" in calibrated.texts["h3"]
    assert {"log-loss", "calibration error"} <= set(calibrated.cards)
    temperatures = [row[0] for row in calibrated.rows if len(row) == 3]
    assert {"1", f"{model.temperature:.4g}"} <= set(temperatures)
    assert not any("margins" in text for text in calibrated.texts["p"])


def test_single_nodes_have_no_transitions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    model = StructuredSVM("single", random_state=0).fit(X, y)
    page = read(training_page(model, title="t", facts=[], dev=DevData(X, y)))
    assert page.texts["h2"] == ["Errors", "Model", "Training"]
    assert page.texts["h3"] == ["Confusions of labels", "Attributes"]
    assert page.facts["features"] == "3"
    assert page.facts["weights"] == "6"
    X_noisy = rng.normal(size=(40, 3))
    model.calibrate(X_noisy, (X_noisy[:, 0] + rng.normal(size=40) > 0).astype(int))
    page = read(training_page(model, title="t", facts=[], dev=DevData(X, y)))
    assert "Are the probabilities calibrated?" in page.texts["h3"]


def test_one_label():
    model = CRF().fit([[["a"], ["b"]]], [["x", "x"]])
    page = read(training_page(model, title="t", facts=[], dev=DevData([[["a"]], [["c"]]], [["x"], ["y"]])))
    assert page.facts["labels"] == "1: x"
    assert page.table("x", 6) == [["x", "50.00", "100.00", "66.67", "2", "1"], ["y", "0.00", "0.00", "0.00", "0", "1"]]


@pytest.mark.parametrize("n", [45, 500])
def test_many_labels_are_cut_with_a_note(n):
    labels = [f"T{at:03}" for at in range(n)]
    model = CRF(solver="perceptron", max_iter=1, random_state=0).fit(*corpus(n, labels, 0))
    document = training_page(model, title="t", facts=[], dev=DevData(*corpus(100, labels, 1)))
    page = read(document)
    n_seen = len(model.classes_)
    shown = re.findall(r"(\d+) of (\d+) labels, ([\w ]+)", document)
    assert ("25", "those confused most often") in [(some, why) for some, _, why in shown]
    assert (("45", "those with the largest weights") in [(some, why) for some, _, why in shown]) == (n_seen > 45)
    assert all(int(total) >= n_seen for _, total, _ in shown)
    assert len(page.texts["h4"]) == 24
    assert ("more" in page.facts["labels"]) == (n_seen > 60)
    assert len(document) < 1_000_000


def test_integer_labels_and_numeric_columns():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(size, 2)) for size in (3, 1, 4)]
    y = [np.sign(x[:, 0]).astype(int) for x in X]
    model = CRF().fit(X, y)
    page = read(training_page(model, title="t", facts=[], dev=DevData(X, y)))
    assert page.facts["labels"] == "2: -1, 1"
    assert "attributes" not in page.facts
    assert [row[0] for row in page.table("-1", 6)] == ["-1", "1"]
    assert "x[0]" in page.texts["td"]


def test_hostile_labels_tokens_facts_and_titles():
    labels = [NASTY, "&amp;"]
    X = [[[NASTY], ["<b>"]], [["<b>"], [NASTY]]]
    model = CRF().fit(X, [labels, labels[::-1]])
    dev = DevData(X, [labels, [NASTY, NASTY]])
    document = training_page(model, title=NASTY, facts=[(NASTY, NASTY)], dev=dev, history=[(1, 1, NASTY, 0.5)])
    page = read(document)
    assert "<script" not in document
    assert page.texts["h1"] == [NASTY]
    assert page.facts[NASTY] == NASTY
    assert NASTY in page.texts["h4"]
    assert {text.replace(NASTY, "").replace("<b>", "").strip() for text in shown_sentences(document)} == {""}


def test_partly_labelled_data_have_no_bound():
    model = CRF(features="all").fit([[["a"], ["b"]], [["b"], ["a"]]] * 3, [["x", None], ["y", "x"]] * 3)
    assert np.isnan(model.dual_gap_)
    document = training_page(model, title="t", facts=[])
    page = read(document)
    assert any("There is no bound on how much better other weights could be" in text for text in page.texts["p"])
    assert "duality gap" not in page.facts
    assert 'aria-label="Relative duality gap"' not in document
    assert 'aria-label="Objective"' in document


@pytest.mark.parametrize("mmap", [False, True])
def test_a_model_from_a_file_has_the_same_report_but_for_the_seconds(tagger, dev, tmp_path, mmap):
    tagger.save(tmp_path / "model")
    loaded = dualfield.load(tmp_path / "model", mmap=mmap)
    there, here = (training_page(model, title="t", dev=dev) for model in (tagger, loaded))
    was, now = read(there), read(here)
    assert {name: was.facts[name] for name in now.facts} == now.facts
    assert set(was.facts) - set(now.facts) <= {"seconds in the solver"}
    assert 'aria-label="Relative duality gap"' in here
    cut = "<h2>Training</h2>"
    assert there.partition(cut)[0] == here.partition(cut)[0]


@pytest.fixture(scope="module")
def crfsuite_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("crfsuite") / "model.crfsuite"
    trainer = pycrfsuite.Trainer(verbose=False)
    for xseq, yseq in zip(*corpus(30, BIO, 0), strict=True):
        trainer.append(xseq, yseq)
    trainer.train(str(path))
    return path


@pytest.mark.parametrize("estimator", ["dualfield", "sklearn_crfsuite"])
def test_models_of_crfsuite_have_no_record(crfsuite_file, dev, estimator):
    read_model = {
        "dualfield": lambda: CRF.from_crfsuite(crfsuite_file),
        "sklearn_crfsuite": lambda: crfsuite.CRF(model_filename=str(crfsuite_file)),
    }[estimator]
    document = training_page(read_model(), title="t", facts=[], dev=dev)
    page = read(document)
    assert any("are not known" in text for text in page.texts["p"])
    assert "objective" not in page.facts
    assert "There is no convergence curve to draw" in document
    assert page.table("all", 6)


def test_the_model_with_the_manners_of_sklearn_crfsuite(dev):
    model = crfsuite.CRF(c1=0.1, c2=0.1).fit(*corpus(20, BIO, 0))
    page = read(training_page(model, title="t", facts=[], dev=dev))
    assert (page.facts["c1"], page.facts["c2"]) == ("0.1", "0.1")
    assert number(page.facts["objective"]) == pytest.approx(model.objective_, rel=1e-5)


def test_longer_windows_of_labels_are_listed(dev):
    model = CRF(Chain(order=2)).fit(*corpus(30, BIO, 0))
    page = read(training_page(model, title="t", facts=[], dev=dev))
    ((labels, weight), *_) = model.top_features(1).likely
    assert page.facts[" → ".join(map(str, labels))] == f"{weight:+.3f}"


def test_how_a_posterior_was_found():
    for model in (BayesianCRF(C=1.0, n_predict=2), BayesianCRF(C=10.0, inference="power_ep", max_iter=2)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the second one does not converge
            model.fit(*corpus(20, BIO, 0))
        facts = read(training_page(model, title="t", facts=[])).facts
        assert float(facts["log-evidence"]) == pytest.approx(model.log_evidence_, rel=1e-5)
        assert facts["posterior"] == f"{model.inference}, {'converged' if model.converged_ else 'did not converge'}"
    assert not model.converged_


def test_kernel_logistic_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    model = KernelLogisticRegression(C=10.0).fit(X[:80], y[:80])
    document = training_page(model, title="Points", facts=[("rows", 80)], dev=DevData(X[80:], y[80:]))
    page = read(document)
    assert page.texts["h2"] == ["Errors", "Training"]
    assert page.texts["h3"] == ["Are the probabilities calibrated?", "Confusions of labels"]
    assert page.facts["features"] == "2"
    assert page.facts["C"] == "10.0"
    right = (model.predict(X[80:]) == y[80:]).mean()
    assert "On held-out data: 40 examples." in page.texts["p"]
    assert page.cards["accuracy"] == pytest.approx(100 * right, abs=0.005)
    assert page.cards["log-loss"] == pytest.approx(log_loss(y[80:], model.predict_proba(X[80:])), abs=5e-5)
    error = calibration_error([y[80:]], [model.predict_proba(X[80:])], model.classes_)
    assert float(re.search(r"Expected calibration error: ([\d.]+)", document)[1]) == pytest.approx(error, abs=5e-5)
    read(training_page(model, title="Points", facts=[]))
    one = read(training_page(model, title="Points", facts=[], dev=DevData(X[80:81], y[80:81])))
    assert "On held-out data: 1 example." in one.texts["p"]


def test_what_does_not_fit_is_refused(tagger, dev):
    with pytest.raises(NotFittedError):
        training_page(CRF(), title="t", facts=[])
    with pytest.raises(ValueError, match=r"y_true has 29 sequences; y_pred has 30"):
        training_page(tagger, title="t", facts=[], dev=DevData(dev.X, dev.y[:-1]))


def test_without_matplotlib_there_is_no_page(tagger, without_matplotlib):
    with pytest.raises(ImportError, match=r"need matplotlib: pip install matplotlib"):
        training_page(tagger, title="t")


def test_a_fit_that_stopped_early_says_so():
    with pytest.warns(UserWarning, match="limit on passes"):
        model = CRF(solver="lbfgs", max_iter=2, tol=1e-12).fit(*corpus(30, BIO, 0))
    page = read(training_page(model, title="t", facts=[]))
    assert any(text.startswith("The limit on passes was reached.") for text in page.texts["p"])


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
@pytest.mark.parametrize("width", [400, 1200])
def test_nothing_is_wider_than_the_screen(tagger, dev, tmp_path, width):
    """Let a browser lay out the page in a frame of some width, and ask for its width in the end."""
    write_page(tmp_path / "report.html", training_page(tagger, title="t", facts=[("word", "long" * 60)], dev=dev))
    (tmp_path / "frame.html").write_text(
        f'<body><iframe id="f" src="report.html" style="width:{width}px;height:900px;border:0"></iframe><p id="w"></p>'
        "<script>f.onload = () => { w.textContent = 'width ' + f.contentDocument.documentElement.scrollWidth }</script>"
    )
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--allow-file-access-from-files",
        "--dump-dom",
    ]
    environment = os.environ | {"HOME": str(tmp_path)}
    place = Path(tmp_path / "frame.html").as_uri()
    done = subprocess.run([*command, place], capture_output=True, text=True, env=environment, timeout=120, check=False)
    found = re.search(r"width (\d+)", done.stdout)
    if found is None:
        pytest.skip("this chromium does not run here")
    assert int(found[1]) <= width
