"""``dualfield inspect``: what a model file is said to hold is what it holds."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import dualfield
from dualfield.cli.inspect import _posterior
from dualfield.io import write_svmlight


@pytest.fixture
def chunks(trained):
    return dualfield.load(trained.path("chunks"))


def test_facts(trained, chunks):
    path = trained.path("chunks")
    lines = dict(line.split(maxsplit=1) for line in trained("inspect", path, "--top", 0).stdout.splitlines()[:7])
    assert lines["file"].startswith(f"{path}, {path.stat().st_size:,} bytes, written by dualfield ")
    assert lines["model"] == "CRF(random_state=0), for CoNLL columns"
    assert lines["labels"] == "4: B-NP B-VP I-NP O"
    assert lines["trained"] == "on   3 columns, tokens in 0,1 and the label in 2"
    assert lines["weights"].startswith(f"{chunks.n_features_:,} for {len(chunks.vocabulary_):,} attributes; ")
    assert lines["template"].startswith("default: Template of ")
    gap = chunks.dual_gap_ / (chunks.objective_ - chunks.dual_gap_)
    assert f"converged; objective {chunks.objective_:.6g}, relative gap {gap:.1e}" in lines["training"]


def test_top_attributes(trained, chunks):
    out = trained("inspect", trained.path("chunks"), "--top", 3, "--label", "B-VP").stdout
    found = chunks.top_features(3, "B-VP")
    block = out[out.index("Attributes of B-VP") :].split("\n\n")[0].splitlines()[1:]
    expected = [*found.positive, *reversed(found.negative)]
    assert block == [f"  {weight:+9.4f}  {attribute}" for (attribute, _), weight in expected]
    assert "Attributes of B-NP" not in out
    assert "B-VP > B-NP" in out


def test_transitions_are_a_table(trained, chunks):
    out = trained("inspect", trained.path("chunks"), "--top", 0).stdout
    header, *rows = out[out.index("Transitions") :].splitlines()[1:]
    assert header.split() == chunks.classes_.tolist()
    for row, name, weights in zip(rows, chunks.classes_, chunks.transitions_, strict=True):
        first, *numbers = row.split()
        assert first == name
        np.testing.assert_allclose([float(number) for number in numbers], weights, atol=5e-4)


def test_json_is_the_whole_model(trained, chunks):
    record = json.loads(trained("inspect", trained.path("chunks"), "--json").stdout)
    assert {(a, label): w for a, label, w in record["attributes"]} == chunks.state_features_
    assert {(a, b): w for a, b, w in record["transitions"]} == chunks.transition_features_
    assert record["labels"] == chunks.classes_.tolist()
    assert record["template"] == chunks.template.text
    assert record["training"]["gap"] == chunks.dual_gap_


def test_json_of_pairs_and_ends(shell):
    X, y = [[["a"], ["b"]], [["b"], ["a"], ["a"]]], [["x", "y"], ["y", "x", "y"]]
    model = dualfield.CRF(pair_features=True, start_stop=True).fit(X, y)
    model.save("m")
    record = json.loads(shell("inspect", "m", "--json").stdout)
    assert record["parameters"] == {"pair_features": True, "start_stop": True}
    assert record["start"] == dict(zip("xy", model.start_.tolist(), strict=True))
    weights = model.score_map_.unpack(model.parameters_).pair
    assert sorted(w for *_, w in record["pair_attributes"]) == sorted(weights[weights != 0].tolist())
    assert {tuple(names) for *names, _ in record["pair_attributes"]} <= {
        (a, b, c) for a in "ab" for b in "xy" for c in "xy"
    }


def test_higher_order(shell, trained):
    shell("train", trained.path("train.txt"), "--model", "m", "--order", 2, "-q", "--tol", "1e-2")
    out = shell("inspect", "m").stdout
    assert "Transitions, likely" in out
    assert "B-NP > I-NP > " in out


def test_kernel_machine(shell):
    X = np.random.default_rng(0).normal(size=(12, 2)).round(2)
    write_svmlight(X, [0, 1] * 6, "x.svm")
    shell("train", "x.svm", "--model", "m", "--C", "2", "-q")
    out = shell("inspect", "m").stdout
    assert "KernelLogisticRegression(C=2.0, random_state=0), for svmlight examples" in out
    assert "12 training points of 2 features" in out
    record = json.loads(shell("inspect", "m", "--json").stdout)
    np.testing.assert_allclose(record["points"], X)
    assert np.shape(record["dual_coefficients"]) == (1, 12)


def test_model_of_crfsuite(shell):
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.append([["w=a"], ["w=b"]], ["x", "y"])
    trainer.train("peer")
    out = shell("inspect", "peer").stdout
    assert "written by CRFsuite" in out
    assert "training     crfsuite, finished" in out
    assert "w=a" in out


def test_unknown_label_and_file(shell, trained):
    said = shell("inspect", trained.path("chunks"), "--label", "B-XX", code=2).stderr
    assert "'B-XX' is not a label of" in said
    shell.write("x", "hello")
    assert shell("inspect", "x", code=1).stderr.startswith("Error: x")


def models_for_python():
    """Models of which there are no files of data."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 3)), rng.integers(0, 2, (20, 2))
    numbers = [rng.normal(size=(3, 2)) for _ in range(4)]
    return {
        "CRF": dualfield.CRF().fit(numbers, [["a", "b", "a"]] * 4),
        "ConditionalGraphicalModel": dualfield.ConditionalGraphicalModel([(0, 1)]).fit(X, Y),
        "DiscriminativeBayesNet": dualfield.DiscriminativeBayesNet(eta=0.0).fit(Y, Y[:, 0]),
    }


@pytest.mark.parametrize("name", ["CRF", "ConditionalGraphicalModel", "DiscriminativeBayesNet"])
def test_models_without_a_format_of_data_can_be_looked_at(shell, name):
    models_for_python()[name].save("m")
    out = shell("inspect", "m").stdout
    assert f"model        {name}(" in out
    assert "training     " in out
    record = json.loads(shell("inspect", "m", "--json").stdout)
    assert record["estimator"] == name
    assert shell("convert", "m", "-", "--to", "json").stdout == shell("inspect", "m", "--json").stdout
    said = shell("tag", "--model", "m", code=1, stdin="a\n").stderr
    assert said.startswith("Error: m: works on ")


def test_how_a_posterior_was_found(shell):
    X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 3, [["x", "y"], ["y", "x"]] * 3
    model = dualfield.BayesianCRF(C=3.0, inference="laplace").fit(X, y)
    model.save("m")
    evidence = model.log_evidence_
    assert f"posterior    laplace, converged; log-evidence {evidence:.6g}\n" in shell("inspect", "m").stdout
    record = json.loads(shell("inspect", "m", "--json").stdout)
    assert record["posterior"] == {"inference": "laplace", "converged": True, "log_evidence": evidence}


def test_a_posterior_without_an_evidence_can_be_looked_at():
    model = SimpleNamespace(model_=SimpleNamespace(inference="power_ep"), converged_=False, log_evidence_=float("nan"))
    assert _posterior(model) == "power_ep, did not converge; log-evidence unknown"
