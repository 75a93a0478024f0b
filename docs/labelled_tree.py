"""Makes ``docs/_static/labelled_tree.svg``, the picture of the guide on trees: ``python docs/labelled_tree.py``."""

from __future__ import annotations

from pathlib import Path

from dualfield import CRF
from dualfield.plotting import GraphDisplay

PICTURE = Path(__file__).parent / "_static" / "labelled_tree.svg"


def display() -> GraphDisplay:
    """Return a sentence as a tree of its words, labelled by the model of the guide."""
    X = [
        ([["ate"], ["dog"], ["the"], ["bone"]], [-1, 0, 1, 0]),
        ([["sleeps"], ["cat"], ["a"]], [-1, 0, 1]),
    ]
    y = [["verb", "noun", "article", "noun"], ["verb", "noun", "article"]]
    model = CRF("tree", C=10.0, start_stop=True, tol=1e-10).fit(X, y)
    words = [[word] for word in ("chases", "dog", "the", "often", "cat", "a")]
    truth = ["verb", "noun", "article", "adverb", "noun", "article"]
    return GraphDisplay.from_estimator(model, (words, [-1, 0, 1, 0, 0, 4]), truth)


if __name__ == "__main__":
    PICTURE.write_text(display().svg(), encoding="utf-8")
