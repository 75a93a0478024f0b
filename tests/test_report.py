"""The building blocks of reports, each read back by independent means."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from dualfield.report import (
    Html,
    Line,
    calibration_bins,
    escape,
    heat_map,
    line_chart,
    page,
    reliability_diagram,
    table,
    write_page,
)
from dualfield.report.digit_words_records import percent


class Tags(HTMLParser):
    """Collects attributes, and checks that what is opened is closed in order."""

    VOID = frozenset({"meta", "img", "br"})

    def __init__(self, document: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.feed(document)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_everything_but_html_is_escaped():
    nasty = "<script>alert(\"1\" & '2')</script>"
    safe = "&lt;script&gt;alert(&quot;1&quot; &amp; &#x27;2&#x27;)&lt;/script&gt;"
    assert escape(nasty) == safe
    assert escape(escape(nasty)) == safe
    bins = calibration_bins([0.5], [True])
    pieces = [
        table([nasty], [[nasty]], caption=nasty),
        heat_map([[0.5]], title=nasty, row_labels=[nasty], column_labels=[nasty], row_axis=nasty, column_axis=nasty),
        reliability_diagram({nasty: bins}, title=nasty),
        page(nasty, [nasty]),
    ]
    # Attributes of pictures escape the quotes that need it, their texts none.
    inside = safe.replace("&#x27;", "'")
    counts = [
        (piece.count(safe), piece.count(inside), piece.count(inside.replace("&quot;", '"')))
        for piece in pieces
        if "<script" not in piece
    ]
    assert counts == [(3, 0, 0), (0, 1, 6), (0, 1, 1), (2, 0, 0)]


def test_html_is_left_alone():
    assert "<em>yes</em>" in page("t", [Html("<em>yes</em>")])


def test_table_has_every_cell_and_refuses_ragged_rows():
    markup = table(["a", "b"], [[1, 2], [3, 4]])
    assert re.findall(r"<td>(\d)</td>", markup) == ["1", "2", "3", "4"]
    with pytest.raises(ValueError, match=r"rows\[1\] has 1 cells; expected 2"):
        table(["a", "b"], [[1, 2], [3]])


def test_heat_map_shades():
    values = np.array([[0.0, 0.25], [1.0, 0.5]])
    picture = heat_map(values, title="t", row_labels=["r", "s"], column_labels=["a", "b"], cell=(10, 20))
    cells = re.findall(
        r'<path d="M ([-\d.]+) ([-\d.]+) [^"]*" style="fill:var\(--accent\)([^"]*)"><title>(.*?)<', picture
    )
    assert [tip for *_, tip in cells] == ["r, b: 0.25", "s, a: 1", "s, b: 0.5"]
    shades = [float(look.partition("fill-opacity:")[2] or 1.0) for *_, look, _ in cells]
    assert shades == pytest.approx([0.25, 1.0, 0.5], abs=1e-3)
    (x0, y0), (x1, y1), (x2, y2) = ((float(x), float(y)) for x, y, *_ in cells)
    assert (x0, y2) == (x2, y1)
    assert (x0 - x1, y1 - y0) == pytest.approx((10, 20), abs=0.11)
    assert ">probability</text>" in picture


def test_heat_map_scale_is_in_the_legend():
    picture = heat_map([[0.2, 0.4]], title="t", row_labels=["r"], column_labels="ab", full=0.4)
    assert re.findall(r"fill-opacity:([\d.]+)\"><title>", picture) == ["0.5"]
    assert re.findall(r"style=\"fill:var\(--accent\)\"><title>(.*?)<", picture) == ["r, b: 0.4"]
    assert ">0.4</text>" in picture


@pytest.mark.parametrize("values", [[[1.1]], [[-0.1]], [[np.nan]]])
def test_heat_map_refuses_what_is_no_probability(values):
    with pytest.raises(ValueError, match=r"probabilities in \[0, 1\]"):
        heat_map(values, title="t", row_labels=["r"], column_labels=["c"])


def test_heat_map_refuses_a_vector():
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        heat_map([0.1, 0.2], title="t", row_labels=["r"], column_labels=["c"])


def test_calibration_bins_against_a_plain_loop():
    rng = np.random.default_rng(1)
    confidence = np.concatenate([rng.uniform(0, 1, 500), [0.0, 1.0]])
    correct = rng.uniform(size=502) < confidence
    bins = calibration_bins(confidence, correct, n_bins=7)
    inside = [[] for _ in range(7)]
    for sure, right in zip(confidence, correct, strict=True):
        inside[min(int(sure * 7), 6)].append((sure, right))
    np.testing.assert_array_equal(bins.count, [len(one) for one in inside])
    np.testing.assert_allclose(bins.confidence, [np.mean([sure for sure, _ in one]) for one in inside])
    np.testing.assert_allclose(bins.accuracy, [np.mean([right for _, right in one]) for one in inside])
    error = sum(abs(sum(sure - right for sure, right in one)) for one in inside) / 502
    assert bins.error == pytest.approx(error)


@pytest.mark.parametrize(("confidence", "correct"), [([], []), ([0.5], [True, False]), ([[0.5]], [[True]])])
def test_calibration_bins_refuse_other_shapes(confidence, correct):
    with pytest.raises(ValueError, match="non-empty 1D arrays of the same length"):
        calibration_bins(confidence, correct)


def test_reliability_diagram_puts_points_where_they_belong():
    bins = calibration_bins([0.5, 0.5], [True, False])
    picture = reliability_diagram({"first": bins, "second": bins}, title="t")
    (diagonal,) = re.findall(r'<path d="M ([-\d.]+) ([-\d.]+) L ([-\d.]+) ([-\d.]+)" style="[^"]*dasharray', picture)[
        :1
    ]
    left, bottom, right, top = map(float, diagonal)
    discs = re.findall(r'<path d="M 0 [^"]*" transform="translate\(([-\d.]+) ([-\d.]+)\)" style="fill:var', picture)
    middle = pytest.approx(((left + right) / 2, (top + bottom) / 2), abs=0.11)
    assert tuple(map(float, discs[0])) == middle
    # Two standard errors of two predictions at one half are 0.71: the bar is cut at both ends of the scale.
    bar = re.search(r'<path d="M ([-\d.]+) ([-\d.]+) L \1 ([-\d.]+)" style="fill:none;stroke:var\(--accent\)', picture)
    assert [float(place) for place in bar.groups()] == pytest.approx([(left + right) / 2, bottom, top], abs=0.11)
    names = re.findall(r">([^<]*) \(calibration error 0\.000\)</text>", picture)
    assert names == ["first", "second"]
    assert "var(--second)" in picture


def test_a_page_is_well_formed_and_needs_nothing_else():
    bins = calibration_bins([0.9, 0.4], [True, False])
    body = [
        table(["a"], [["b"]], caption="c"),
        heat_map(np.full((2, 2), 0.5), title="t", row_labels="ab", column_labels="cd"),
        reliability_diagram({"one": bins, "two": bins}, title="r"),
        line_chart([Line("a", (1.0, 2.0), (3.0, 4.0))], title="l", x_axis="x", y_axis="y", log_y=True),
    ]
    document = page("title", body)
    tags = Tags(document)
    assert not re.search(r"https?:|//|@import|url\(|<script|<link", document)
    assert [name for _, name, _ in tags.attributes if name in ("src", "href", "xlink:href", "srcset", "id")] == []


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0.0%"),
        (0.0004, "<0.1%"),
        (0.0005, "0.1%"),
        (0.5, "50.0%"),
        (0.9994, "99.9%"),
        (0.9996, ">99.9%"),
        (1.0, "100.0%"),
    ],
)
def test_percent_never_rounds_to_certainty(share, text):
    assert percent(share) == text


def test_write_page_replaces_the_old_file_and_leaves_nothing_else(tmp_path):
    target = tmp_path / "report.html"
    target.write_text("old")
    write_page(target, "nëw")
    assert target.read_text(encoding="utf-8") == "nëw"
    assert list(tmp_path.iterdir()) == [target]


def test_write_page_follows_a_link(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "report.html"
    link.symlink_to(tmp_path / "there" / "real.html")
    write_page(link, "text")
    assert link.is_symlink()
    assert (tmp_path / "there" / "real.html").read_text() == "text"


@pytest.mark.parametrize(("owner", "name"), [(os, "fsync"), (Path, "replace")])
def test_a_failed_write_keeps_the_old_page(tmp_path, monkeypatch, owner, name):
    target = tmp_path / "report.html"
    target.write_text("old")

    def fail(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(owner, name, fail)
    with pytest.raises(OSError, match="No space left"):
        write_page(target, "new")
    monkeypatch.undo()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_write_page_refuses_folders_devices_and_missing_parents(tmp_path):
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    for path, error in [
        (tmp_path, IsADirectoryError),
        (tmp_path / "missing" / "report.html", FileNotFoundError),
        (tmp_path / "file" / "report.html", NotADirectoryError),
        (tmp_path / "pipe", OSError),
    ]:
        with pytest.raises(error):
            write_page(path, "text")
    assert (tmp_path / "pipe").is_fifo()
