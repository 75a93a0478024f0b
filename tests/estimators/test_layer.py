"""What the layer of estimators may hold: estimators, the faces that pass questions on, and no mathematics."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import dualfield.estimators
from dualfield.estimators.base import Estimator

FOLDER = Path(dualfield.estimators.__file__).parent
MODULES = sorted(path.stem for path in FOLDER.glob("*.py"))
# What is beside the estimators, and why.
FACES = {
    "Fitted": "an attribute of the model inside",
    "Model": "what a model inside must have",
    "StructuredPredictor": "passes the questions of dependent labels on",
    "FittedTagger": "the same, for a model that is a part of another",
    "_Search": "the same, for the best estimator of a search",
    "CRFCV": "a search for the C of a CRF",
    "StructuredSVMCV": "a search for that of a structural SVM",
    "EarlyStopping": "a monitor for fits, which scores models",
    "Tagger": "the same questions in the words of python-crfsuite",
    "TaggerInfo": "what python-crfsuite tells of a model",
    "GraphicalPredictor": "passes the questions of cliques on",
    "LatentPredictor": "passes the questions of latent variables on",
}
ALGEBRA = {"linalg", "einsum", "dot", "matmul", "tensordot"}


def tree(module: str) -> ast.Module:
    return ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize("module", MODULES)
def test_every_class_is_an_estimator_or_a_face(module):
    there = importlib.import_module(f"dualfield.estimators.{module}".removesuffix(".__init__"))
    own = [one for _, one in inspect.getmembers(there, inspect.isclass) if one.__module__ == there.__name__]
    assert [one.__name__ for one in own if not issubclass(one, Estimator) and one.__name__ not in FACES] == []


@pytest.mark.parametrize("module", MODULES)
def test_no_linear_algebra(module):
    nodes = list(ast.walk(tree(module)))
    products = [node.lineno for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)]
    calls = [node.lineno for node in nodes if isinstance(node, ast.Attribute) and node.attr in ALGEBRA]
    assert products + calls == []


def is_of_names(loop: ast.For) -> bool:
    """Whether a loop goes over names and settings: a tuple written out, sorted names, or the items of a dict."""
    over = loop.iter
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute):
        return over.func.attr == "items"
    is_sorted = isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "sorted"
    is_keys = isinstance(over, ast.BinOp) and isinstance(over.op, ast.Sub)
    return isinstance(over, ast.Tuple) or is_sorted or is_keys


@pytest.mark.parametrize("module", MODULES)
def test_no_loops_over_examples(module):
    loops = [node for node in ast.walk(tree(module)) if isinstance(node, (ast.For, ast.While))]
    wrong = [node.lineno for node in loops if isinstance(node, ast.While) or not is_of_names(node)]
    assert len(wrong) <= (module == "graphical")  # which shows a line for each type of clique
