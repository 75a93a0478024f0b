"""Line charts, read back from their markup."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from dualfield.plotting.line_chart import _DARK, _LIGHT, LINE_CHART_STYLE, tick_label
from dualfield.report import Line, line_chart, page, svg_document

BOX = (62.0, 8.0, 420.0, 260.0)  # left, top, width, height of the plane


def parsed(chart: str) -> ElementTree.Element:
    return ElementTree.fromstring(chart)


def polyline(chart: str, number: int) -> list[list[tuple[float, float]]]:
    """Return the pieces of a series as lists of points; the first path of its class is the series itself."""
    path = re.search(rf'class="series s{number}" d="([^"]*)"', chart)[1]
    return [
        [tuple(map(float, point.split())) for point in piece.split("L")] for piece in path.removeprefix("M").split("M")
    ]


def labels(chart: str, anchor: str) -> dict[str, tuple[float, float]]:
    return {
        text.text: (float(text.get("x")), float(text.get("y")))
        for text in parsed(chart).iter("text")
        if text.get("text-anchor") == anchor and text.get("x") and text.get("class") is None
    }


def draw(*lines: Line, **axes: bool) -> str:
    return line_chart(lines, title="t", x_axis="x axis", y_axis="y axis", **axes)


@pytest.mark.parametrize("log_x", [False, True])
@pytest.mark.parametrize("log_y", [False, True])
def test_points_stand_where_the_axes_say(log_x, log_y):
    """Fit the map from values to pixels to the ticks, and predict the points with it."""
    x, y = np.geomspace(0.02, 700.0, 9), np.geomspace(3e-5, 4.0, 9)
    chart = draw(Line("a", tuple(x), tuple(y)), log_x=log_x, log_y=log_y)
    (points,) = polyline(chart, 0)
    for values, log, anchor, at in ((x, log_x, "middle", 0), (y, log_y, "end", 1)):
        ticks = labels(chart, anchor)
        known = np.array([float(text) for text in ticks])
        shift = 0.0 if at == 0 else 4.0  # text is set a little below its line
        pixels = np.array([place[at] for place in ticks.values()]) - shift
        assert len(known) >= 3
        scale = np.log10 if log else np.asarray
        slope, start = np.polyfit(scale(known), pixels, 1)
        found = np.array([point[at] for point in points])
        np.testing.assert_allclose(found, start + slope * scale(values), atol=0.25)


def test_points_and_ticks_are_inside_the_plane():
    rng = np.random.default_rng(0)
    for _ in range(30):
        x, y = (10.0 ** rng.uniform(-3, 3)) * rng.normal(size=5), (10.0 ** rng.uniform(-6, 6)) * rng.normal(size=5)
        chart = draw(Line("a", tuple(np.abs(x)), tuple(y)), log_x=True)
        left, top, width, height = BOX
        for piece in polyline(chart, 0):
            for px, py in piece:
                assert left <= px <= left + width
                assert top <= py <= top + height
        for px, _ in labels(chart, "middle").values():
            assert left <= px <= left + width
        assert 2 <= len(labels(chart, "end")) <= 11


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1e-4, 1e4, ["1e-4", "0.001", "0.01", "0.1", "1", "10", "100", "1000", "10000"]),
        (1e-12, 1e6, ["1e-12", "1e-9", "1e-6", "0.001", "1", "1000", "1e6"]),
        (1.0, 20.0, ["1", "2", "5", "10", "20"]),
        (100.0, 140.0, ["100", "110", "120", "130", "140"]),
    ],
)
def test_ticks_of_a_logarithmic_axis(low, high, expected):
    chart = draw(Line("a", (low, high), (0.0, 1.0)), log_x=True)
    assert list(labels(chart, "middle")) == expected


def test_a_single_point_and_equal_values_can_be_drawn():
    for value in (0.0, -3.0, 1e-9, 1e9):
        chart = draw(Line("a", (1.0, 2.0), (value, value)))
        assert len(labels(chart, "end")) >= 2
    assert len(labels(draw(Line("a", (5.0,), (5.0,)), log_x=True, log_y=True), "middle")) >= 1


def test_a_line_is_broken_where_nothing_can_be_shown():
    y = (1.0, 2.0, float("nan"), 4.0, 0.0, 6.0, 7.0)
    chart = draw(Line("a", tuple(np.arange(7.0)), y), log_y=True)
    assert [len(piece) for piece in polyline(chart, 0)] == [2, 1, 2]
    # One mark for each point, and one in the legend.
    assert chart.count('class="m0"') == 5 + 1
    assert [len(piece) for piece in polyline(draw(Line("a", tuple(np.arange(7.0)), y)), 0)] == [2, 4]


def test_a_line_without_points_is_in_the_legend_only():
    chart = draw(Line("full", (1.0, 2.0), (1.0, 2.0)), Line("empty", (), ()))
    assert list(labels(chart, "start")) == ["full", "empty"]
    assert chart.count('class="m1"') == 1


def test_long_lines_have_no_marks():
    x = tuple(np.arange(200.0))
    assert draw(Line("a", x, x)).count('class="m0"') == 1


def test_texts_are_escaped():
    nasty = "<b>&\"'"
    chart = line_chart([Line(nasty, (1.0,), (1.0,))], title=nasty, x_axis=nasty, y_axis=nasty)
    assert "<b>" not in chart
    assert chart.count("&lt;b&gt;&amp;&quot;&#x27;") == 4
    assert parsed(chart).get("aria-label") == nasty


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
    document = svg_document(chart)
    root = ElementTree.fromstring(document)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    style = root.find("{http://www.w3.org/2000/svg}style").text
    for name in set(re.findall(r'class="([\w ]+)"', chart)):
        assert f".{name.split()[-1]} " in style
    assert not re.search(r"@import|url\(|<script", document)
    assert set(re.findall(r"var\(([\w-]+)\)", style)) <= set(re.findall(r"(--[\w-]+):", style))
    with_style = page("six", [chart], style=LINE_CHART_STYLE)
    assert chart in with_style
    assert ".lines .s5" in with_style


@pytest.mark.parametrize(("colours", "paper"), [(_LIGHT, "#ffffff"), (_DARK, "#14171a")])
def test_colours_stand_out_from_the_paper(colours, paper):
    def luminance(colour: str) -> float:
        parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255.0
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    assert len(set(colours)) == 6
    for colour in colours:
        dark, light = sorted([luminance(colour), luminance(paper)])
        assert (light + 0.05) / (dark + 0.05) >= 4.5


@pytest.mark.parametrize("value", [1.0, -2.5, 0.1 + 0.2, 99999.0, 1e5, -1.25e-7, 3e300])
def test_labels_of_ticks_say_the_number(value):
    assert float(tick_label(value)) == pytest.approx(value, rel=1e-3)
