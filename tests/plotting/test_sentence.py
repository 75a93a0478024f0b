"""Sentences in pieces, and how they look on pages, in pictures and in terminals."""

import io
import itertools
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from dualfield import CRF, StructuredSVM
from dualfield.metrics import spans
from dualfield.plotting import MarginalsDisplay
from dualfield.plotting.sentence import hues, mark_spans
from dualfield.plotting.sentence_layout import laid_out, text_width
from dualfield.plotting.style import HUES, PALETTE, UNDER_TEXT

X = [[["the"], ["old"], ["dog"], ["runs"]], [["a"], ["cat"]], [["runs"], ["the"], ["cat"]]]
Y = [["B-NP", "I-NP", "I-NP", "B-VP"], ["B-NP", "I-NP"], ["B-VP", "B-NP", "I-NP"]]
SVG = "{http://www.w3.org/2000/svg}"


def sentence(pred: str, true: str | None = None, **more) -> MarginalsDisplay:
    labels = pred.split()
    return MarginalsDisplay(
        [f"w{at}" for at in range(len(labels))], labels, None, None if true is None else true.split(), **more
    )


@pytest.mark.parametrize(
    ("pred", "true", "text"),
    [
        ("B-x I-x O", None, "[w0 w1 x] w2"),
        ("B-x I-x O", "B-x I-x O", "[w0 w1 x] w2"),
        ("B-x I-x O", "B-y I-y O", "[w0 w1 x ✗ true: y] w2"),
        ("B-x I-x O", "B-x O O", "[w0 w1 x ✗ true: x “w0”] w2"),
        ("O B-x O", "O O O", "w0 [w1 x ✗ spurious] w2"),
        ("O O O", "O B-x I-x", "w0 [w1 w2 ✗ missed x]"),
        ("B-x I-x I-x", "B-x B-x I-x", "[w0 w1 w2 x ✗ missed x “w0”, true: x “w1 w2”]"),
        ("S-x B-y E-y", "S-x B-y E-y", "[w0 x] [w1 w2 y]"),
        ("I-x I-x O", "B-x I-x O", "[w0 w1 x] w2"),  # the same span in another scheme
        ("B I O", None, "[w0 w1 ] w2"),
        ("DT NN O", "DT VB O", "w0[DT] w1[NN ✗ true: VB] w2[O]"),
        ("", None, ""),
    ],
)
def test_text_says_what_is_there_and_what_is_wrong(pred, true, text):
    assert str(sentence(pred, true)) == text


def test_probabilities_of_spans_are_those_of_the_model():
    model = CRF(C=5.0, tol=1e-9).fit(X, Y)
    display = MarginalsDisplay.from_estimator(model, X[0], Y[0])
    (found,) = model.predict_spans([X[0]])
    assert display.spans == found
    assert [span[:3] for span in display.spans] == spans(model.predict([X[0]])[0])
    shown = re.findall(r"--strength:([\d.]+)%", display.html())
    assert [float(one) for one in shown] == pytest.approx([100 * UNDER_TEXT * span[3] for span in found], abs=0.06)


def test_a_model_without_probabilities_shows_its_labels():
    model = StructuredSVM(random_state=0).fit(X, Y)
    display = MarginalsDisplay.from_estimator(model, X[0], Y[0])
    assert display.probabilities is None
    assert "chance" not in display.html()
    assert display.labels == model.predict([X[0]])[0]


def test_without_probabilities_of_spans_the_least_probable_label_sets_the_colour():
    display = MarginalsDisplay(["a", "b"], ["B-x", "I-x"], [0.9, 0.5])
    assert re.findall(r"--strength:([\d.]+)%", display.html()) == ["22.5"]
    assert "chance" not in display.html()


def test_spans_must_be_those_of_the_labels():
    with pytest.raises(
        ValueError, match=r"spans must be those that the labels mark, \[\('x', 0, 2\)\]\. Got \[\('x', 0"
    ):
        sentence("B-x I-x", spans=[("x", 0, 1, 0.5)])


def test_tokens_outside_have_no_colour_and_doubts_are_underlined():
    markup = MarginalsDisplay(["a", "b", "c"], ["O", "O", "B-x"], [0.95, 0.6, 0.9]).html()
    assert markup.startswith(
        '<div class="sentence spans">a <span class="doubt" title="O, probability 0.600">b</span> <m'
    )
    tagged = MarginalsDisplay(["a", "b"], ["O", "x"], [0.95, 0.6]).html()
    assert tagged.count("--hue:") == 1


def test_a_type_has_the_same_hue_in_all_sentences_of_a_model():
    classes = ["B-LOC", "B-ORG", "B-PER", "I-ORG", "O"]
    assert hues(classes) == {"LOC": 0, "ORG": 1, "PER": 2}
    markups = [sentence(pred, classes=classes).html() for pred in ("B-PER", "B-LOC O B-PER", "B-ORG I-ORG B-PER")]
    assert [re.findall(r"hue-(\d)", one) for one in markups] == [["2"], ["0", "2"], ["1", "2"]]
    assert hues(["NN", "DT", "O"]) == {"DT": 0, "NN": 1}
    assert hues(["B", "I"]) == {"": 0}
    assert max(hues(range(50)).values()) == len(HUES) - 1


@pytest.mark.parametrize(
    ("labels", "expected"),
    [(["O", "B-x"], True), (["B", "I"], True), (["DT", "O"], False), ([1, 2], False), ([], True)],
)
def test_labels_of_spans_are_told_from_others(labels, expected):
    assert mark_spans(labels) == expected


# Pictures


def placed(markup: str) -> tuple[float, list[ElementTree.Element], list[ElementTree.Element]]:
    root = ElementTree.fromstring(markup)
    return float(root.attrib["width"]), list(root.iter(f"{SVG}rect")), list(root.iter(f"{SVG}text"))


@pytest.mark.parametrize("width", [300, 760])
@pytest.mark.parametrize("labels", ["spans", "tags"])
def test_a_picture_holds_all_words_within_its_width(width, labels):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefgilm"), size)) for size in rng.integers(1, 12, size=60)]
    tags = ["B-PER", *["I-PER"] * 30, *["O"] * 29] if labels == "spans" else ["NN"] * 60
    display = MarginalsDisplay(words, tags, np.full(60, 0.5), [*tags[:-1], tags[0]])
    wide, boxes, texts = placed(display.svg(width=width))
    assert wide == width
    shown = [text.text for text in texts if text.get("class") == "word"]
    assert " ".join(shown) == " ".join(words)
    for text in texts:
        assert float(text.get("x")) + float(text.get("textLength")) <= width - 24
    places = [[float(box.get(name)) for name in ("x", "y", "width", "height")] for box in boxes[1:]]
    for (x, y, w, h), (x2, y2, w2, h2) in itertools.combinations(places, 2):
        assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_a_picture_is_well_formed_and_has_both_schemes():
    display = MarginalsDisplay(["<&\x00", '"'], ["B-<", "O"], [0.5, 0.5], ["B-&", "B-<"], spans=[("<", 0, 1, 0.4)])
    markup = display.svg()
    assert "prefers-color-scheme: dark" in markup
    words = [text.text for text in placed(markup)[2]]
    assert words == ["<&\N{REPLACEMENT CHARACTER}", "<", "0.400", "true: &", '"', "missed <"]


def test_text_is_about_as_wide_as_letters_are():
    assert text_width("iii", 10) < text_width("nnn", 10) < text_width("NNN", 10) < text_width("MMM", 10)
    assert text_width("é", 10) == text_width("e", 10)
    assert text_width("漢字", 10) == 20
    assert laid_out([], 100.0, is_stacked=True) == ([], 26.0)


def test_terminals_get_colours_and_pipes_plain_text():
    display = MarginalsDisplay(
        ["in", "Rome", "or", "Oslo"],
        ["O", "B-LOC", "O", "O"],
        truth=["O", "B-ORG", "O", "B-LOC"],
        spans=[("LOC", 1, 2, 0.9)],
    )
    shown = {}
    for terminal in (True, False):
        out = io.StringIO()
        Console(file=out, force_terminal=terminal, color_system="truecolor" if terminal else None, width=80).print(
            display
        )
        shown[terminal] = out.getvalue()
    assert shown[False] == "in Rome LOC 0.900 ✗ true: ORG or Oslo ✗ missed LOC\n"
    assert re.sub(r"\x1b\[[\d;]*m", "", shown[True]) == shown[False]
    assert "48;2;" in shown[True]


# Colours


def luminance(colour) -> float:
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], dtype=float)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["paper", "panel"])
def test_text_can_be_read_on_the_strongest_shades(scheme, ground):
    ink, below = (rgb(PALETTE[name][scheme]) for name in ("ink", ground))
    for hue in HUES:
        shade = UNDER_TEXT * rgb(hue[scheme]) + (1.0 - UNDER_TEXT) * below
        low, high = sorted((luminance(ink), luminance(shade)))
        assert (high + 0.05) / (low + 0.05) >= 4.5


# What people with protanopia, deuteranopia and tritanopia see of linear red, green and blue, by Machado et al. (2009).
SIGHT = {
    "all": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(linear: np.ndarray) -> np.ndarray:
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ linear
    x, y, z = np.cbrt(xyz / [0.95047, 1.0, 1.08883])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("sight", SIGHT)
def test_hues_differ_for_all_kinds_of_colour_vision(scheme, sight):
    seen = []
    for hue in HUES:
        parts = rgb(hue[scheme]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        seen.append(lab(np.clip(SIGHT[sight] @ linear, 1e-3, 1.0)))
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 10.0
