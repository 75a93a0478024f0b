"""``--loss hinge``: structural SVMs on the command line, which have margins and no probabilities."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest

import dualfield
from dualfield import LatentChain, LatentStructuredSVM, StructuredSVM
from dualfield.cli.solver_names import suited_solvers
from dualfield.features import Template
from dualfield.io import write_svmlight
from dualfield.solvers import Status

from .conftest import corpus
from .test_train import columns


@pytest.fixture(scope="module")
def hinge(trained):
    """The folder of `trained` with a structural SVM, `svm`, beside its model."""
    trained("train", trained.path("train.txt"), "--model", trained.path("svm"), "--loss", "hinge", "-q")
    return trained


@pytest.fixture
def examples(shell):
    X = np.random.default_rng(0).normal(size=(40, 3)).round(3)
    write_svmlight(X, np.where(X[:, 0] > 0, 2, 1), "x.svm")
    return X


# train


def test_model_is_that_of_python(shell, hinge):
    options = ["--C", "0.5", "--features", "all", "--constraints", "BIO", "--tol", "1e-2"]
    shell("train", hinge.path("train.txt"), "--model", "m", "--loss", "hinge", *options)
    X, y = columns(corpus(40, 0))
    settings = {"C": 0.5, "features": "all", "constraints": "BIO", "tol": 1e-2}
    expected = StructuredSVM(template=Template.default(2), random_state=0, **settings).fit(X, y)
    found = dualfield.load("m")
    assert found.get_params() == expected.get_params()
    assert np.array_equal(found.parameters_, expected.parameters_)
    assert dualfield.load(hinge.path("svm")).tol == 1e-3


def test_what_it_says(shell, hinge):
    result = shell("train", hinge.path("train.txt"), "--model", "m", "--loss", "hinge", "--dev", hinge.path("dev.txt"))
    assert re.search(r"^ +\d+\.\d +\d+\.\d{4} +\S+ +100\.00 +\d+\.\d$", result.stderr, re.MULTILINE)
    assert result.stdout.startswith("The duality gap is within the tolerance: relative gap ")
    assert shell.path("m").read_bytes() == hinge.path("svm").read_bytes()


@pytest.mark.parametrize("solver", suited_solvers("sequences", "hinge")[1:])
def test_solvers(shell, hinge, solver):
    shell.write("few.txt", corpus(5, 0))
    options = ("--solver", solver, "--max-iter", 3, "--C", "0.01", "--template", "chunking")
    shell("train", "few.txt", "--model", "m", "--loss", "hinge", *options, "-q")
    assert dualfield.load("m").solver_ == solver


def test_order_2_and_a_warm_start(shell, hinge):
    options = ("train", hinge.path("train.txt"), "--model", "m", "--loss", "hinge")
    shell(*options, "--order", 2, "--tol", "0.1", "-q")
    assert dualfield.load("m").solver_ == "cutting_plane"
    shell(*options, "--warm-start", hinge.path("svm"), "--max-iter", 1, "--tol", "0.2", "-q")
    model = dualfield.load("m")
    assert (model.status_, model.warm_start) == (Status.CONVERGED, False)


def test_a_checkpoint_is_kept_where_the_solver_can(shell, hinge):
    options = ("train", hinge.path("train.txt"), "--model", "m", "--loss", "hinge", "--checkpoint", "state")
    shell(*options, "--checkpoint-every", 0, "-q")
    assert not shell.path("state").exists()
    assert shell.path("m").read_bytes() == hinge.path("svm").read_bytes()
    said = shell(*options, "--solver", "cutting_plane", code=1).stderr
    assert "checkpoint needs a solver in native code: CuttingPlane does not keep its state." in said


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--l1-ratio", "0.5"], 2, "--l1-ratio is for --loss log."),
        (["--solver", "lbfgs"], 2, "--solver lbfgs is not for --loss hinge and sequences, which take auto"),
        (["--warm-start", "CHUNKS"], 1, "is a CRF; this training can only start from a StructuredSVM. See --loss."),
        (["--kernel", "rbf"], 2, "--kernel is for svmlight; the data are conll."),
    ],
    ids=["penalty", "solver", "other model", "kernel"],
)
def test_options_of_other_models_are_refused(shell, hinge, options, code, said):
    given = [hinge.path("chunks") if option == "CHUNKS" else option for option in options]
    result = shell("train", hinge.path("train.txt"), "--model", "m", "--loss", "hinge", *given, code=code)
    assert said in result.stderr
    assert not shell.path("m").exists()


# The other commands


def test_tag(shell, hinge):
    svm, dev = hinge.path("svm"), hinge.path("dev.txt")
    lines = shell("tag", "--model", svm, dev).stdout.splitlines()
    X, _ = columns(corpus(12, 1))
    found = [line.split()[-1] for line in lines if line]
    assert found == [label for labels in dualfield.load(svm).predict(X) for label in labels]
    assert shell("tag", "--model", svm, "--mmap", dev).stdout.splitlines() == lines
    for option in ("--marginals", "--k-best"):
        value = ["best"] if option == "--marginals" else [2]
        said = shell("tag", "--model", svm, dev, option, *value, code=2).stderr
        assert f"{option} needs probabilities, which {svm} does not have: a StructuredSVM has margins." in said
        assert "calibrate(X, y)" in said


def test_evaluate(shell, hinge):
    svm, dev = hinge.path("svm"), hinge.path("dev.txt")
    tagged = shell("tag", "--model", svm, dev).stdout
    assert shell("evaluate", "--model", svm, dev).stdout == shell("evaluate", stdin=tagged).stdout
    assert "log_loss" not in json.loads(shell("evaluate", "--model", svm, dev, "--json").stdout)


def test_inspect(shell, hinge):
    svm = hinge.path("svm")
    out = shell("inspect", svm, "--top", 1).stdout
    assert "StructuredSVM(random_state=0), for CoNLL columns" in out
    assert "training     flow_swap, converged; objective" in out
    assert "probability  none: the margins were not calibrated" in out
    assert "Transitions: the label on the left" in out
    assert json.loads(shell("inspect", svm, "--json").stdout)["calibration"] is None


def test_once_it_is_calibrated(shell, hinge):
    X, y = columns(corpus(12, 1))
    with pytest.warns(UserWarning, match="All 94 labels that calibrate was given are predicted right"):
        model = dualfield.load(hinge.path("svm")).calibrate(X, y)
    model.save("m")
    tagged = shell("tag", "--model", "m", hinge.path("dev.txt"), "--marginals", "best").stdout.splitlines()
    expected = np.concatenate([rows.max(axis=1) for rows in model.predict_proba(X)])
    np.testing.assert_allclose([float(line.split()[-1]) for line in tagged if line], expected, atol=1e-6)
    assert "# rank 2, probability 0." in shell("tag", "--model", "m", hinge.path("dev.txt"), "--k-best", 2).stdout
    assert "log-loss: " in shell("evaluate", "--model", "m", hinge.path("dev.txt")).stdout
    said = f"probability  scores / {model.temperature:.4g}, calibrated on {model.calibration_.n_nodes} labels"
    assert said in shell("inspect", "m").stdout
    record = json.loads(shell("inspect", "m", "--json").stdout)
    assert record["calibration"]["temperature"] == model.temperature


def test_report(shell, hinge):
    options = ("--dev", hinge.path("dev.txt"), "--report", "page.html", "-q")
    shell("train", hinge.path("train.txt"), "--model", "m", "--loss", "hinge", *options)
    page = shell.path("page.html").read_text(encoding="utf-8")
    assert "The model has margins and no probabilities, so there is no log-loss and no reliability diagram here" in page
    assert "Are the probabilities calibrated?" not in page


# Single examples


def test_svmlight(shell, examples):
    result = shell("train", "x.svm", "--model", "m", "--loss", "hinge", "--dev", "x.svm", "--report", "page.html")
    assert "dev accuracy" in result.stderr
    expected = StructuredSVM("single", random_state=0).fit(examples, np.where(examples[:, 0] > 0, 2, 1))
    found = dualfield.load("m")
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9)
    assert shell("tag", "--model", "m", "x.svm").stdout.split() == list(map(str, expected.predict(examples)))
    assert "40 examples, 40 right" in shell("evaluate", "--model", "m", "x.svm").stdout
    assert "weights      6 for 3 features; 6 are not zero" in shell("inspect", "m").stdout
    record = json.loads(shell("inspect", "m", "--json").stdout)
    np.testing.assert_allclose(record["coefficients"], found.coef_)
    page = shell.path("page.html").read_text(encoding="utf-8")
    assert "Transitions" not in page
    assert "The model has margins and no probabilities" in page
    assert "needs probabilities" in shell("tag", "--model", "m", "--marginals", "all", "x.svm", code=2).stderr


def test_svmlight_with_a_kernel(shell, examples):
    said = shell("train", "x.svm", "--model", "m", "--loss", "hinge", "--kernel", "rbf", code=2).stderr
    assert "--kernel is for --loss log." in said


# Models with latent variables, which are trained in Python


def test_models_with_sub_states(shell, hinge):
    X, y = columns(corpus(40, 0))
    model = LatentStructuredSVM(
        StructuredSVM(C=0.1, tol=0.1, template=Template.chunking()), LatentChain(2), n_restarts=1, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y).save("m")
    tagged = shell("tag", "--model", "m", hinge.path("dev.txt")).stdout
    assert "processed 94 tokens" in shell("evaluate", stdin=tagged).stdout
    assert shell("evaluate", "--model", "m", hinge.path("dev.txt")).stdout == shell("evaluate", stdin=tagged).stdout
    assert "needs probabilities" in shell("tag", "--model", "m", "--k-best", 2, hinge.path("dev.txt"), code=2).stderr
    out = shell("inspect", "m", "--label", "B-NP/1").stdout
    assert "states       8: B-NP/0 B-NP/1" in out
    assert "training     concave-convex procedure, " in out
    assert "Attributes of B-NP/1" in out
    assert json.loads(shell("inspect", "m", "--json").stdout)["training"]["gap"] is None


def test_models_of_bags_are_for_python(shell):
    from tests.estimators.saved_margin_models import latent

    latent("bags").save("m")
    assert "concave-convex procedure, settled" in shell("inspect", "m").stdout
    said = shell("tag", "--model", "m", code=1, stdin="a\n").stderr
    assert said == "Error: m: does not label sequences; use it in Python.\n"


def test_models_of_cliques_are_for_python(shell):
    from tests.estimators.saved_graphical_models import labeller, tagger

    for model in (tagger("log"), labeller("tree")):
        model.save("m")
        assert "training     clique by clique, converged" in shell("inspect", "m").stdout
        said = shell("tag", "--model", "m", code=1, stdin="a\n").stderr
        assert said == "Error: m: works on matrices of numbers, for which there is no file format here.\n"


# --calibrate


@pytest.mark.parametrize("how", ["file", "dev", "cv"])
def test_calibrated_models_print_probabilities(shell, hinge, how):
    train, dev = hinge.path("train.txt"), hinge.path("dev.txt")
    options = ["--calibrate", dev if how == "file" else how, *(["--dev", dev] if how == "dev" else [])]
    said = shell("train", train, "--model", "m", "--loss", "hinge", *options).stderr
    found = dualfield.load("m")
    X, y = columns(corpus(40, 0))
    held_out = columns(corpus(12, 1))
    expected = dualfield.load(hinge.path("svm"))
    assert np.array_equal(found.parameters_, expected.parameters_)
    with pytest.warns(UserWarning, match="All .* labels .* are predicted right") as warned:
        expected = expected.calibrate(X, y, cv=5) if how == "cv" else expected.calibrate(*held_out)
    assert str(warned[0].message) in said.replace("\n", " ")
    assert found.calibration_ == expected.calibration_
    assert f"temperature {expected.calibration_.temperature:.3g}, log-loss" in said
    rows = [line.split() for line in shell("tag", "--model", "m", dev, "--marginals").stdout.splitlines() if line]
    codes = {label: code for code, label in enumerate(expected.classes_)}
    every = [row for table in expected.predict_proba(held_out[0]) for row in table.tolist()]
    own = [row[codes[line[-2]]] for row, line in zip(every, rows, strict=True)]
    assert [float(line[-1]) for line in rows] == pytest.approx(own, abs=1e-6)
    assert "log-loss" in shell("evaluate", "--model", "m", dev).stdout
    assert "probability" in shell("inspect", "m", "--top", "0").stdout


def test_examples_are_calibrated(shell, examples):
    shell("train", "x.svm", "--model", "m", "--loss", "hinge", "--calibrate", "cv", "-q")
    assert dualfield.load("m").calibration_.n_nodes == 40


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--loss", "hinge", "--calibrate", "dev"], 2, "--calibrate dev needs --dev"),
        (["--loss", "hinge", "--calibrate", "nowhere"], 2, "--calibrate nowhere: there is no such file"),
        (["--loss", "hinge", "--calibrate", "other.txt"], 1, "other.txt:1: the label 'NEW' has no training example"),
        (["--loss", "hinge", "--calibrate", "m"], 2, "--model m and --calibrate m are the same file"),
    ],
)
def test_calibrate_where_it_cannot_be(shell, hinge, options, code, said):
    shell.write("other.txt", "a DT NEW\n")
    if options[-1] == "m":
        shell.write("m", "a DT O\n")
    assert said in shell("train", hinge.path("train.txt"), "--model", "m", "-q", *options, code=code).stderr
