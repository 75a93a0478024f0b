"""Displays as markup: the numbers are read back, and nothing gets through that is not escaped."""

import re
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest

from dualfield.metrics import calibration_bins
from dualfield.plotting import (
    ConfusionDisplay,
    ConvergenceDisplay,
    MarginalsDisplay,
    ReliabilityDisplay,
    TopFeaturesDisplay,
    TransitionDisplay,
)

NASTY = "</title><script>alert(\"1\" & '2')</script>"


def tips(markup: str) -> dict[str, float]:
    """Return what the cells of a picture say: the text before the colon, and the number behind it."""
    found = (unescape(tip).rpartition(": ") for tip in re.findall(r"<title>(.*?)</title>", markup))
    return {name: float(number.split()[0]) for name, _, number in found}


def marks(markup: str, colour: str) -> int:
    """Count the marks of lines in a colour, with those of legends."""
    return len(re.findall(rf'transform="translate\([^"]*\)" style="fill:var\(--{colour}\)', markup))


def parsed(markup: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<div>{markup}</div>")


def random_transitions(n: int, seed: int = 0) -> TransitionDisplay:
    rng = np.random.default_rng(seed)
    weights = np.where(rng.uniform(size=(n, n)) < 0.3, 0.0, rng.normal(size=(n, n)))
    return TransitionDisplay(weights, [f"L{at}" for at in range(n)], rng.uniform(size=(n, n)) < 0.8)


def test_transitions_can_be_read_back():
    display = random_transitions(6)
    found = tips(display.html())
    expected = {
        f"L{a} → L{b}": display.weights[a, b] for a, b in np.argwhere(display.allowed & (display.weights != 0.0))
    }
    assert found == pytest.approx(expected, rel=1e-3)
    cells = re.findall(
        r'style="fill:var\(--(accent|second)\);fill-opacity:([\d.]+)"><title>.*?: ([-+.\d]+)<', display.html()
    )
    full = np.abs(display.weights[display.allowed]).max()
    assert len(cells) == len(expected)
    for colour, shade, weight in cells:
        assert (colour == "second") == (float(weight) < 0)
        assert float(shade) == pytest.approx(0.45 * abs(float(weight)) / full, abs=1e-3)


def test_forbidden_transitions_are_struck_out_and_blank():
    markup = random_transitions(6).html()
    struck = re.search(r'<path d="([^"]*)" style="fill:none;stroke:var\(--soft\)', markup)[1].count("M")
    assert struck == (~random_transitions(6).allowed).sum()
    assert ">weight; struck out: forbidden</text>" in markup
    everything = TransitionDisplay(np.ones((2, 2)), "ab").html()
    assert "stroke:var(--soft)" not in everything
    assert "forbidden" not in everything


@pytest.mark.parametrize(("n", "shown"), [(1, 1), (25, 25), (26, 26), (45, 45), (120, 45)])
def test_many_labels_are_cut_to_the_largest(n, shown):
    display = random_transitions(n)
    display.weights[0, n - 1] = 99.0
    display.allowed[0, n - 1] = True
    markup = display.html()
    assert (f"45 of {n} labels, those with the largest weights." in markup) == (n > 45)
    assert tips(markup)[f"L0 → L{n - 1}"] == 99.0
    assert len(re.findall(r"text-anchor:end;[^>]*>L\d+</text>", markup)) == shown
    assert (">99.0</text>" in markup) == (n <= 25)


def test_weights_of_zero_can_be_drawn():
    markup = TransitionDisplay(np.zeros((2, 2)), ["a", "b"]).html()
    assert "nan" not in markup
    assert "<title>" not in markup


def test_a_weight_near_zero_has_no_sign():
    markup = TransitionDisplay([[-0.01, 1.0], [0.0, 0.04]], ["a", "b"]).html()
    assert "-0.0<" not in markup
    assert tips(markup) == {"a → a": -0.01, "a → b": 1.0, "b → b": 0.04}


def test_top_features_can_be_read_back():
    rng = np.random.default_rng(0)
    features = {
        f"L{at}": sorted(zip("abcdef", rng.normal(size=6), strict=True), key=lambda pair: -pair[1]) for at in range(30)
    }
    markup = TopFeaturesDisplay(features).html(max_labels=30)
    cards = re.findall(r"<section><h4>(\w+)</h4>(.*?)</section>", markup)
    assert [name for name, _ in cards] == list(features)
    full = max(abs(weight) for ranked in features.values() for _, weight in ranked)
    for name, card in cards:
        rows = re.findall(r"<td>(\w)</td>.*?>([-+][\d.]+)</td>.*?margin-left:([\d.]+)%;width:([\d.]+)%", card)
        assert [attribute for attribute, *_ in rows] == [attribute for attribute, _ in features[name]]
        for (_, *numbers), (_, weight) in zip(rows, features[name], strict=True):
            shown, left, width = map(float, numbers)
            assert shown == pytest.approx(weight, abs=5e-4)
            assert width == pytest.approx(50 * abs(weight) / full, abs=0.06)
            assert (left if weight > 0 else left + width) == pytest.approx(50.0, abs=0.11)
    cut = TopFeaturesDisplay(features).html(max_labels=3)
    largest = sorted(features, key=lambda name: -max(abs(weight) for _, weight in features[name]))[:3]
    assert sorted(re.findall(r"<h4>(\w+)</h4>", cut)) == sorted(largest)
    assert "3 of 30 labels, those with the largest weights." in cut


def test_a_label_without_weights_says_so():
    assert "No weights." in TopFeaturesDisplay({"x": []}).html()


def test_convergence_draws_what_there_is():
    nan = float("nan")
    rows = [9.0, 8.0, 7.5], [-5.0, 7.0, 7.4], [14.0, 1.0, 0.1], [1, 2, 3], [0.1, 0.2, 0.3]
    both = ConvergenceDisplay(*rows, history=[(1, 0.1, "F1", 0.5)]).html()
    assert re.findall(r'aria-label="([^"]*)"', both) == ["Objective", "Relative duality gap", "Scores on held-out data"]
    assert "lower bound" in both
    # The first bound is below 0 and says nothing: two points are left of each of the others.
    assert marks(both, "second") == 2 + 1
    unbounded = ConvergenceDisplay([9.0, 8.0], [nan, nan], [nan, nan], [1, 2], [0.1, 0.2]).html()
    assert re.findall(r'aria-label="([^"]*)"', unbounded) == ["Objective"]
    assert "lower bound" not in unbounded
    assert "<svg" not in ConvergenceDisplay([9.0], [8.0], [1.0], [30.0], [0.1]).html()
    assert ">passes</text>" in ConvergenceDisplay(*rows).html(against="passes")
    with pytest.raises(ValueError, match=r"'against' parameter of ConvergenceDisplay must be 'seconds' or 'passes'"):
        ConvergenceDisplay(*rows).html(against="hours")


def test_passes_stand_in_for_seconds_that_are_not_known():
    nan, inf = float("nan"), float("inf")
    display = ConvergenceDisplay([inf, 8.0, 7.5], [5.0, 7.0, 7.4], [inf, 1.0, 0.1], [1, 2, 3], [nan, nan, nan])
    assert display.html() == display.html(against="passes")
    assert display.html().count(">passes</text>") == 2
    assert display.has_bounds
    assert marks(display.html(), "accent") == 2 + 2 + 1  # what is infinite is left out; one legend


def test_at_most_six_scores_are_drawn():
    history = [(1, 0.1, f"score {at}", 0.5) for at in range(8)]
    markup = ConvergenceDisplay([], [], [], [], [], history).html()
    assert re.findall(r">(score \d)</text>", markup) == [f"score {at}" for at in range(6)]


def test_reliability_can_be_read_back():
    rng = np.random.default_rng(0)
    bins = calibration_bins(rng.uniform(size=300), rng.uniform(size=300) < 0.5)
    markup = ReliabilityDisplay(bins, name="some model").html()
    rows = re.findall(r"<tr><td>([\d.]+)</td><td>([\d.]+)</td><td>(\d+)</td></tr>", markup)
    np.testing.assert_allclose(
        np.array(rows, dtype=float), np.transpose([bins.confidence, bins.accuracy, bins.count]), atol=5e-4
    )
    assert float(re.search(r"calibration error: ([\d.]+)", markup)[1]) == pytest.approx(bins.error, abs=5e-5)
    assert f">some model (calibration error {bins.error:.3f})</text>" in markup


@pytest.mark.parametrize(("n", "shown"), [(3, 3), (25, 25), (60, 25)])
def test_confusion_can_be_read_back(n, shown):
    rng = np.random.default_rng(n)
    counts = rng.poisson(0.3, size=(n, n)) + np.diag(rng.poisson(200, size=n))
    display = ConfusionDisplay(counts, [f"L{at}" for at in range(n)])
    markup = display.html()
    found = {tuple(map(int, re.findall(r"L(\d+)", name))): count for name, count in tips(markup).items()}
    wrong = counts - np.diag(np.diag(counts))
    trouble = wrong.sum(axis=0) + wrong.sum(axis=1)
    kept = {row for row, _ in found}
    assert len(kept) == shown
    assert min(trouble[list(kept)]) >= max(np.delete(trouble, list(kept)), default=0)
    for (row, column), count in found.items():
        assert count == counts[row, column]
        assert f"true L{row}, predicted L{column}: {count:.0f} of {counts[row].sum()}" in markup
    # Shares are of the whole row, though other columns may not be shown.
    cells = re.findall(r'fill-opacity:([\d.]+)"><title>true L(\d+), predicted L(\d+)', markup)
    for shade, row, column in cells:
        assert float(shade) == pytest.approx(0.45 * display.shares[int(row), int(column)], abs=1e-3)
    assert ("of 60 labels, those confused most often." in markup) == (n == 60)


def test_marginals_shade_by_probability_and_mark_errors():
    display = MarginalsDisplay(list("abcd"), list("wxyz"), [0.0, 0.5, 0.99999, 1.0], truth=list("wxYz"))
    markup = display.html()
    assert re.findall(r"--strength:([\d.]+)%", markup) == ["0.0", "22.5", "45.0", "45.0"]
    assert re.findall(r"--hue:var\(--hue-(\d)\)", markup) == ["1", "2", "3", "4"]  # in the order Y, w, x, y, z
    assert re.findall(r'class="chance">([^<]*)<', markup) == ["0.000", "0.500", "&gt;0.999", "1.000"]
    assert re.findall(r'class="note">([^<]*)<', markup) == ["true: Y"]
    assert markup.count('class="token wrong"') == 1
    assert MarginalsDisplay([], [], []).html() == '<div class="sentence spans"></div>'


def test_everything_is_escaped_and_well_formed():
    labels = [NASTY, "b"]
    displays = [
        TransitionDisplay([[1.0, -1.0], [0.5, 0.0]], labels, [[True, True], [True, False]]),
        TopFeaturesDisplay({NASTY: [(NASTY, 1.0), (NASTY, -1.0)]}),
        ConvergenceDisplay([2.0, 1.5], [1.0, 1.2], [1.0, 0.3], [1, 2], [1, 2], [(1, 1, NASTY, 0.5)]),
        ReliabilityDisplay(calibration_bins([0.5], [1]), NASTY),
        ConfusionDisplay([[1, 2], [3, 4]], labels),
        MarginalsDisplay([NASTY, " ", ""], [NASTY, "b", "b"], [0.5, 0.5, 0.5], truth=["b", "b", NASTY]),
    ]
    for display in displays:
        markup = display.html()
        assert "<script" not in markup
        text = "".join(parsed(markup.replace("&nbsp;", " ")).itertext())
        assert "</title><script>alert(" in text


def test_long_labels_are_cut_in_pictures_and_whole_in_tips():
    long = "B-" + "ORGANISATION" * 5
    markup = TransitionDisplay([[1.0]], [long]).html()
    assert tips(markup) == {f"{long} → {long}": 1.0}
    assert f">{long[:23]}…</text>" in markup


@pytest.mark.parametrize(
    "display", [TransitionDisplay([[1.0]], ["a"]), TopFeaturesDisplay({"a": []}), ConfusionDisplay([[1]], ["a"])]
)
def test_no_labels_cannot_be_asked_for(display):
    with pytest.raises(ValueError, match=r"'max_labels' parameter must be an int in \[1, inf\)\. Got 0 instead"):
        display.html(max_labels=0)
