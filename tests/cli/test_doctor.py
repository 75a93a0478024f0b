"""``dualfield doctor``: it tells what is there, and notices what is wrong."""

from __future__ import annotations

import importlib.metadata
import platform

import dualfield
from dualfield import _native
from dualfield.cli import doctor


def facts(text):
    return {line[:20].strip(): line[20:] for line in text.splitlines()}


def test_facts(shell, monkeypatch):
    monkeypatch.delenv("DUALFIELD_DATA", raising=False)
    found = facts(shell("doctor").stdout)
    assert found["dualfield"] == dualfield.__version__
    assert found["Python"].startswith(platform.python_version())
    assert found["vector extensions"].startswith(f"{_native.instruction_set()} in use")
    assert found["numpy"] == importlib.metadata.version("numpy")
    assert found["DUALFIELD_DATA"].startswith("not set")
    assert found["self check"].startswith("ok")
    assert "threads" in found["BLAS"]


def test_missing_packages_say_what_for(shell, monkeypatch):
    monkeypatch.setitem(doctor._OPTIONAL, "no-such-package", "nothing at all")
    monkeypatch.setenv("DUALFIELD_DATA", "/no/such/folder")
    found = facts(shell("doctor").stdout)
    assert found["no-such-package"] == "missing: only for nothing at all"
    assert found["DUALFIELD_DATA"] == "/no/such/folder, which is not a folder"


def test_faults_are_found(shell, monkeypatch):
    monkeypatch.setattr(dualfield.CRF, "predict", lambda self, X: [])
    result = shell("doctor", code=1)
    assert facts(result.stdout)["self check"].startswith("failed: predicted []")
    monkeypatch.undo()
    monkeypatch.setattr(dualfield.CRF, "fit", lambda self, X, y: 1 / 0)
    assert "failed: ZeroDivisionError" in shell("doctor", code=1).stdout


def test_a_gap_that_is_too_large_is_found(monkeypatch):
    fit = dualfield.CRF.fit

    def sloppy(self, X, y):
        fit(self, X, y)
        self.dual_gap_ = 1.0
        return self

    monkeypatch.setattr(dualfield.CRF, "fit", sloppy)
    assert doctor.self_check().startswith("failed: the gap is 1")


def test_a_model_file_that_changes_something_is_found(monkeypatch):
    load = dualfield.load

    def altered(path):
        model = load(path)
        model._model = model.model_.with_parameters(model.parameters_ + 1e-3 * (model.parameters_ > 0))
        return model

    monkeypatch.setattr(dualfield.estimators, "load", altered)
    assert doctor.self_check() == "failed: a saved and loaded model gives other probabilities"
