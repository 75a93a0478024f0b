"""Makes the pictures of the guides on parsing, in ``docs/_static``: ``python docs/parsed_sentences.py``."""

from __future__ import annotations

from pathlib import Path

from dualfield import CRF
from dualfield.data import ParseTree
from dualfield.plotting import ArcDisplay, TreeDisplay

FOLDER = Path(__file__).parent / "_static"


def tree() -> TreeDisplay:
    """Return a sentence with a bracket that the model of the guide gets wrong."""
    y = [
        "(S (NP (NNS dogs)) (VP (VBP bark)))",
        "(S (NP (DT a) (NN dog)) (VP (VBZ sees) (NP (DT the) (NN cat))))",
        "(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))",
        "(S (NP (NNS cats)) (VP (VBP see) (NP (DT a) (NN dog))))",
        "(S (NP (PRP they)) (VP (VBP see) (NP (NNS dogs))))",
    ]
    X = [ParseTree.from_brackets(text).tokens() for text in y]
    truth = "(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (NP (NNS cats)) (PP (IN at) (NN night)))))"
    question = ParseTree.from_brackets(truth)
    return TreeDisplay.from_estimator(CRF("spans", C=10.0, tol=1e-10).fit(X, y), question.tokens(), question)


def arcs() -> ArcDisplay:
    """Return a sentence with an arc that the model of the guide gets wrong."""
    X = [
        [("The", "DT"), ("dog", "NN"), ("barks", "VB")],
        [("A", "DT"), ("cat", "NN"), ("sees", "VB"), ("the", "DT"), ("dog", "NN")],
        [("See", "VB"), ("the", "DT"), ("cat", "NN")],
    ]
    y = [
        [(2, "det"), (3, "nsubj"), (0, "root")],
        [(2, "det"), (3, "nsubj"), (0, "root"), (5, "det"), (3, "obj")],
        [(0, "root"), (3, "det"), (1, "obj")],
    ]
    question = [("The", "DT"), ("dog", "NN"), ("sees", "VB"), ("a", "DT"), ("big", "JJ"), ("cat", "NN")]
    truth = [(2, "det"), (3, "nsubj"), (0, "root"), (6, "det"), (6, "amod"), (3, "obj")]
    return ArcDisplay.from_estimator(CRF("dependency", C=10.0, tol=1e-10).fit(X, y), question, truth)


PICTURES = {"parsed_sentence.svg": tree, "dependency_tree.svg": arcs}

if __name__ == "__main__":
    for name, display in PICTURES.items():
        (FOLDER / name).write_text(display().svg(), encoding="utf-8")
