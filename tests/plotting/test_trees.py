"""Pictures of constituent and dependency trees: what they hold, and that nothing in them overlaps."""

from __future__ import annotations

import importlib.util
import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualfield.plotting import ArcDisplay, TreeDisplay
from dualfield.plotting.parse_trees.arc_picture import arc_sketch
from dualfield.plotting.parse_trees.tree_picture import tree_sketch
from dualfield.plotting.sentence_layout import text_width
from dualfield.plotting.sketch import Box, Stroke, Words

ROOT = Path(__file__).parents[2]
WORDS = ["the", "dog", "that", "I", "saw", "sleeps", "."]
BRACKETS = [("S", 0, 7), ("NP", 0, 5), ("NP", 0, 2), ("SBAR", 2, 5), ("VP", 5, 6)]
HEADS = [(2, "det"), (6, "nsubj"), (5, "mark"), (5, "nsubj"), (2, "rel"), (0, "root"), (6, "p")]


@st.composite
def trees(draw):
    """Words of any width under random brackets, some of which are over the same words."""
    n = draw(st.integers(1, 12))
    words = draw(st.lists(st.sampled_from(["a", "word", "incomprehensibilities", "", "日本"]), min_size=n, max_size=n))
    brackets = []

    def bracket(start, stop):
        if draw(st.booleans()) or stop - start == n:
            label = draw(st.sampled_from(["S", "NP", "ADVP", "S+VP"]))
            brackets.append((label, start, stop, draw(st.floats(0.0, 1.0))))
        cut = draw(st.integers(start, stop - 1))
        for one, other in ((start, cut), (cut, stop)) if start < cut else ():
            bracket(one, other)

    bracket(0, n)
    truth = [(draw(st.sampled_from(["NP", "X", label])), start, stop) for label, start, stop, _ in brackets]
    truth += [("EX", start, min(start + 2, n)) for start in draw(st.lists(st.integers(0, n - 1), max_size=2))]
    return TreeDisplay(words, brackets, truth=truth, tags=draw(st.sampled_from([None, ["NN"] * n])))


@st.composite
def arcs(draw):
    n = draw(st.integers(1, 10))
    words = draw(st.lists(st.sampled_from(["a", "word", "incomprehensibilities", ""]), min_size=n, max_size=n))
    label = st.sampled_from(["", "det", "a_very_long_label"])

    def heads():
        found = [draw(st.integers(0, n).filter(lambda head, at=at: head != at + 1)) for at in range(n)]
        return [(head, draw(label)) for head in found]

    return ArcDisplay(words, heads(), [draw(st.floats(0.0, 1.0)) for _ in range(n)], heads())


def place(part):
    if isinstance(part, Box):
        return part.x, part.x + part.width, part.y, part.y + part.height
    width = text_width(part.text, (1.15 if part.is_bold else 1.0) * part.size)
    left = part.x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[part.anchor]
    return left, left + width, part.y - 0.72 * part.size, part.y


def overlapping(parts, slack=1.0):
    for one, two in itertools.combinations(parts, 2):
        (a, b, c, d), (e, f, g, h) = place(one), place(two)
        if a + slack < f and e + slack < b and c + slack < h and g + slack < d:
            yield one, two


@settings(max_examples=150)
@given(trees(), st.sampled_from(["down", "right"]))
def test_nothing_in_a_tree_overlaps(tree, direction):
    parts = tree_sketch(tree, direction).parts
    boxes = [part for part in parts if isinstance(part, Box)]
    assert len(boxes) == len(tree.brackets)
    texts = [part for part in parts if isinstance(part, Words) and part.text.strip()]
    assert not list(overlapping(boxes))
    assert not list(overlapping(texts))
    lines = [part for part in parts if isinstance(part, Stroke) and not part.dashes]
    for line, box in itertools.product(lines, boxes):
        assert not passes(line, box), (line, box)
    assert sum(bool(part.dashes) for part in parts if isinstance(part, Stroke)) == len(tree.missed)


@pytest.mark.parametrize("direction", ["down", "right"])
def test_missed_brackets_side_by_side(direction):
    tree = TreeDisplay(["a", "b"], [], truth=[("NP", 0, 1), ("PP", 1, 2), ("NP", 0, 2)], direction=direction)
    texts = [part for part in tree_sketch(tree, direction).parts if isinstance(part, Words)]
    assert len(texts) == 2 + 3
    assert not list(overlapping(texts))


def passes(line, box):
    """Whether a line of level and upright pieces passes through a box."""
    left, right, top, bottom = (edge + sign * 1.5 for edge, sign in zip(place(box), (1, -1, 1, -1), strict=True))
    for (a, b), (c, d) in itertools.pairwise(line.points):
        if min(a, c) < right and max(a, c) > left and min(b, d) < bottom and max(b, d) > top:
            return True
    return False


@settings(max_examples=150)
@given(arcs(), st.sampled_from(["down", "right"]))
def test_nothing_in_a_dependency_tree_overlaps(tree, direction):
    parts = arc_sketch(tree, direction).parts
    texts = [part for part in parts if isinstance(part, Words) and part.text.strip()]
    assert not list(overlapping(texts))
    n_below = sum(tree.wrong) if direction == "down" else 0
    assert sum(isinstance(part, Stroke) for part in parts) == len(tree.words) + n_below


def test_what_a_tree_says():
    truth = [("S", 0, 7), ("NP", 0, 5), ("NP", 0, 2), ("S", 2, 5), ("S", 3, 5), ("VP", 5, 6)]
    chances = [0.9, 0.8, 0.7, 0.6, 0.5]
    tree = TreeDisplay(WORDS, BRACKETS, chances, truth, tags=["X"] * 7)
    assert tree.wrong == [False, False, False, True, False]
    assert tree.missed == [("S", 3, 5)]
    assert repr(tree) == "TreeDisplay(7 words, 5 brackets, 1 wrong, 1 missed)"
    assert str(tree).splitlines() == [
        "S 0.900",
        "├─ NP 0.800",
        "│  ├─ NP 0.700  the dog",
        "│  └─ SBAR 0.600 ✗ true: S  that I saw",
        "├─ VP 0.500  sleeps",
        "└─ .",
        "✗ missed S  I saw",
    ]
    assert tree.to_frame()["text"].tolist()[2] == "the dog"
    assert tree.__rich__().plain == str(tree)
    for direction in ("down", "right"):
        titles = [one.text for one in ElementTree.fromstring(_svg(tree, direction)).iter("title")]
        assert "SBAR: that I saw, probability 0.600, true: S" in titles
        assert "missed S: I saw" in titles


def _svg(display, direction):
    return type(display)(
        display.words,
        getattr(display, "brackets", None) or display.arcs,
        display.probabilities,
        display.truth,
        tags=display.tags,
        direction=direction,
    ).html()


def test_what_a_dependency_tree_says():
    truth = [(2, "det"), (6, "subj"), (5, "mark"), (5, None), (2, "rel"), (0, "root"), (2, "p")]
    tree = ArcDisplay(WORDS, HEADS, [0.5] * 7, truth, tags=["X"] * 7)
    assert tree.wrong == [False, True, False, False, False, False, True]
    assert str(tree).splitlines()[1] == "2 dog     ← 6 sleeps  nsubj  0.500  ✗ true: subj ← 6 sleeps"
    assert tree.__rich__().plain.split("\n")[0].rstrip() == str(tree).splitlines()[0]
    assert tree.to_frame()["true_head"].tolist() == [2, 6, 5, 5, 2, 0, 2]
    for direction in ("down", "right"):
        titles = [one.text for one in ElementTree.fromstring(_svg(tree, direction)).iter("title")]
        assert "sleeps → dog: nsubj 0.500" in titles
        assert "ROOT → sleeps: root 0.500" in titles
    assert "true: dog → .: p" in _svg(tree, "down")


def test_long_sentences_have_a_line_for_each_word():
    words = ["word"] * 60
    tree = TreeDisplay(words, [("S", 0, 60)])
    assert tree_sketch(tree, "auto").bounds()[1] < 400 < tree_sketch(tree, "down").bounds()[1]
    arc = ArcDisplay(words, [0, *range(1, 60)])
    assert arc_sketch(arc, "auto").bounds()[1] < 400 < arc_sketch(arc, "down").bounds()[1]
    assert 'class="scroll"' in tree.html()


@pytest.mark.parametrize("direction", ["auto", "down", "right"])
def test_figures_and_files_have_the_same_texts(direction):
    for display in (
        TreeDisplay(["<b>", "&", "$x$"], [("N&P", 0, 2)], truth=[("N&P", 1, 3)], direction=direction),
        ArcDisplay(["<b>", "&", "$x$"], [(2, "a<b"), (0, "r"), (2, "")], truth=[2, 0, 1], direction=direction),
    ):
        display.plot()
        drawn = [text.get_text() for text in display.ax_.texts]
        plt.close(display.figure_)
        root = ElementTree.fromstring(display.svg())
        assert [one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}text")] == drawn
        assert "var(--paper)" in display.svg()
        assert not re.search(r"id=|href", display.html())


def test_the_pictures_of_the_guides_are_what_the_models_say():
    spec = importlib.util.spec_from_file_location("parsed_sentences", ROOT / "docs" / "parsed_sentences.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    for name, display in made.PICTURES.items():
        picture = (made.FOLDER / name).read_text(encoding="utf-8")
        assert picture == display().svg(), "run: python docs/parsed_sentences.py"


def test_trees_without_words_or_brackets():
    assert str(TreeDisplay([], [])) == str(ArcDisplay([], [])) == ""
    assert str(TreeDisplay(["a", "b"], [])) == "a b"
    for display in (TreeDisplay([], []), ArcDisplay([], []), TreeDisplay(["a"], []), ArcDisplay(["a"], [0])):
        assert "<svg" in display.html()


def test_refused_trees():
    with pytest.raises(ValueError, match=r"brackets must be nested. \('B', 1, 3\) crosses \('A', 0, 2\)"):
        TreeDisplay(["a", "b", "c"], [("A", 0, 2), ("B", 1, 3)])
    with pytest.raises(ValueError, match=r"brackets\[0\] must be a bracket \(label, start, stop\). Got \(0, 1, 'A'\)"):
        TreeDisplay(["a"], [(0, 1, "A")])
    with pytest.raises(ValueError, match=r"truth\[0\] must be a part of the 1 words. Got \('A', 0, 2\)"):
        TreeDisplay(["a"], [], truth=[("A", 0, 2)])
    with pytest.raises(ValueError, match="probabilities has 2 entries; expected 1"):
        TreeDisplay(["a"], [("A", 0, 1)], [0.1, 0.2])
    with pytest.raises(ValueError, match="tags has 2 entries; expected 1"):
        TreeDisplay(["a"], [], tags=["x", "y"])
    with pytest.raises(ValueError, match=r"direction must be one of 'auto', 'down', 'right'\. Got 'up'"):
        TreeDisplay(["a"], [], direction="up")
    with pytest.raises(ValueError, match=r"direction must be one of 'auto', 'down', 'right'\. Got 'up'"):
        ArcDisplay(["a"], [0], direction="up")
    with pytest.raises(ValueError, match=r"heads\[0\] must be a head from 0, the root, to 1, not the word itself"):
        ArcDisplay(["a"], [1])
    with pytest.raises(ValueError, match=r"truth\[0\] must be a head .* Got -1 instead"):
        ArcDisplay(["a"], [0], truth=[-1])
    with pytest.raises(ValueError, match="heads has 2 entries; expected 1"):
        ArcDisplay(["a"], [0, 1])
    with pytest.raises(ValueError, match="labels has 2 entries; expected 1"):
        ArcDisplay(["a"], [0], labels=["x", "y"])
