"""Line charts, read back from their markup."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from dualfield.report import Line, line_chart, page, svg_document

COLOURS = ("accent", "second", "third", "fourth", "soft", "wrong")


def parsed(chart: str) -> ElementTree.Element:
    return ElementTree.fromstring(chart)


def polyline(chart: str, number: int) -> list[list[tuple[float, float]]]:
    """Return the pieces of a series as lists of points; the first path in its colour is the series itself."""
    path = re.search(rf'<path d="([^"]*)" style="fill:none;(?:[^"]*;)?stroke:var\(--{COLOURS[number]}\)', chart)[1]
    return [
        [tuple(map(float, point.split())) for point in piece.split("L")] for piece in path.removeprefix("M").split("M")
    ]


def marks(chart: str, number: int) -> int:
    return len(re.findall(rf'transform="translate\([^"]*\)" style="fill:var\(--{COLOURS[number]}\)', chart))


def ticks(chart: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return the places of the grid by their labels: across, and down."""
    across, down = {}, {}
    for d, label in re.findall(
        r'<path d="([^"]*)" style="[^"]*stroke-opacity:0.6[^"]*" />(<text.*?</text>|<g.*?</g>)', chart
    ):
        (x, y), (x_end, _) = (map(float, point.split()) for point in d.removeprefix("M").split("L"))
        parts = [part for part in ElementTree.fromstring(label).itertext() if part.strip()]
        value = "".join(parts).replace("\N{MINUS SIGN}", "-")
        if label.startswith("<g"):  # a power of ten: its digits, then the exponent
            value = f"1e{value.removeprefix('10')}"
        (across if x == x_end else down)[value] = x if x == x_end else y
    return across, down


def draw(*lines: Line, **axes: bool) -> str:
    return line_chart(lines, title="t", x_axis="x axis", y_axis="y axis", **axes)


@pytest.mark.parametrize("log_x", [False, True])
@pytest.mark.parametrize("log_y", [False, True])
def test_points_stand_where_the_axes_say(log_x, log_y):
    """Fit the map from values to pixels to the ticks, and predict the points with it."""
    x, y = np.geomspace(0.02, 700.0, 9), np.geomspace(3e-5, 4.0, 9)
    chart = draw(Line("a", tuple(x), tuple(y)), log_x=log_x, log_y=log_y)
    (points,) = polyline(chart, 0)
    for values, log, places, at in ((x, log_x, ticks(chart)[0], 0), (y, log_y, ticks(chart)[1], 1)):
        known, pixels = np.array([float(text) for text in places]), np.array(list(places.values()))
        assert len(known) >= 3
        scale = np.log10 if log else np.asarray
        slope, start = np.polyfit(scale(known), pixels, 1)
        found = np.array([point[at] for point in points])
        np.testing.assert_allclose(found, start + slope * scale(values), atol=0.25)


def test_points_and_texts_are_inside_the_picture():
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, y = (10.0 ** rng.uniform(-3, 3)) * rng.normal(size=5), (10.0 ** rng.uniform(-6, 6)) * rng.normal(size=5)
        chart = draw(Line("a", tuple(np.abs(x)), tuple(y)), log_x=True)
        width, height = (float(parsed(chart).get(side)) for side in ("width", "height"))
        assert width >= 310
        places = [point for piece in polyline(chart, 0) for point in piece]
        places += [tuple(map(float, place)) for place in re.findall(r'<text x="([-\d.]+)" y="([-\d.]+)"', chart)]
        for px, py in places:
            assert 0 <= px <= width
            assert 0 <= py <= height
        assert 2 <= len(ticks(chart)[1]) <= 11


def test_a_single_point_and_equal_values_can_be_drawn():
    for value in (0.0, -3.0, 1e-9, 1e9):
        assert len(ticks(draw(Line("a", (1.0, 2.0), (value, value))))[1]) >= 2
    assert marks(draw(Line("a", (5.0,), (5.0,)), log_x=True, log_y=True), 0) == 1 + 1


def test_a_line_is_broken_where_nothing_can_be_shown():
    y = (1.0, 2.0, float("nan"), 4.0, 0.0, 6.0, 7.0)
    chart = draw(Line("a", tuple(np.arange(7.0)), y), log_y=True)
    # A piece of one point has nothing to draw but its mark.
    assert [len(piece) for piece in polyline(chart, 0) if len(piece) > 1] == [2, 2]
    # One mark for each point, and one in the legend.
    assert marks(chart, 0) == 5 + 1
    assert [len(piece) for piece in polyline(draw(Line("a", tuple(np.arange(7.0)), y)), 0)] == [2, 4]


def test_a_line_without_points_is_in_the_legend_only():
    chart = draw(Line("full", (1.0, 2.0), (1.0, 2.0)), Line("empty", (), ()))
    assert re.findall(r">(full|empty)</text>", chart) == ["full", "empty"]
    assert marks(chart, 1) == 1


def test_long_lines_have_no_marks():
    x = tuple(np.arange(200.0))
    assert marks(draw(Line("a", x, x)), 0) == 0


def test_the_axis_names_a_single_line():
    assert line_chart([Line("y", (1.0,), (1.0,))], title="t", x_axis="x", y_axis="y").count(">y</text>") == 1


def test_texts_are_escaped_and_no_formulas():
    nasty = "<b>&\"' $x_1$"
    chart = line_chart([Line("a", (1.0,), (1.0,)), Line(nasty, (1.0,), (1.0,))], title=nasty, x_axis="x", y_axis="y")
    assert "<b>" not in chart
    assert parsed(chart).get("aria-label") == nasty
    assert nasty in [text.text for text in parsed(chart).iter("text")]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "from 1 to 6 lines. Got 0"),
        ([Line("a", (1.0,), (1.0,))] * 7, "from 1 to 6 lines. Got 7"),
        ([Line("a", (1.0, 2.0), (1.0,))], r"line 'a' must be 1D and of the same length. Got shapes \(2,\) and \(1,\)"),
        ([Line("a", (), ())], "no point that can be shown"),
        ([Line("a", (0.0, 1.0), (1.0, -1.0))], "no point that can be shown"),
    ],
)
def test_what_cannot_be_drawn(lines, message):
    with pytest.raises(ValueError, match=message):
        line_chart(lines, title="t", x_axis="x", y_axis="y", log_x=True, log_y=True)


def test_a_file_is_well_formed_and_brings_its_look_along():
    lines = [Line(f"line {number}", (1.0, 2.0), (number, number + 1.0)) for number in range(6)]
    chart = line_chart(lines, title="six", x_axis="x", y_axis="y")
    assert [marks(chart, number) for number in range(6)] == [3] * 6
    document = svg_document(chart)
    root = ElementTree.fromstring(document)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    style = root.find("{http://www.w3.org/2000/svg}style").text
    assert not re.search(r"@import|url\(|<script", document)
    for whole in (style, page("six", [chart])):
        assert set(re.findall(r"var\((--\w+)\)", chart)) <= set(re.findall(r"(--\w+):", whole))
