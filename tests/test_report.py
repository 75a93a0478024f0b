"""The building blocks of reports, each read back by independent means."""

import base64
import os
import re
import struct
import zlib
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from dualfield.report import (
    Html,
    calibration_bins,
    encode_png,
    escape,
    heat_map,
    page,
    png_data_uri,
    reliability_diagram,
    table,
    write_page,
)
from dualfield.report.digit_words_records import percent


def decode_png(data: bytes) -> np.ndarray:
    """Read an 8-bit grey PNG without filters, checking every chunk."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, place = [], 8
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind, payload = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        (check,) = struct.unpack(">I", data[place + 8 + length : place + 12 + length])
        assert check == zlib.crc32(kind + payload)
        chunks.append((kind, payload))
        place += 12 + length
    assert [kind for kind, _ in chunks] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[0][1])
    assert (depth, colour, rest) == (8, 0, [0, 0, 0])
    rows = np.frombuffer(zlib.decompress(chunks[1][1]), dtype=np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any()
    return rows[:, 1:]


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


@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (3, 17), (40, 5)])
def test_png_round_trip(shape):
    ink = np.random.default_rng(0).uniform(-0.2, 1.2, size=shape)
    np.testing.assert_array_equal(decode_png(encode_png(ink)), np.rint(255 * (1 - np.clip(ink, 0, 1))))


def test_png_white_is_paper_and_black_is_ink():
    assert decode_png(encode_png([[0.0, 1.0]])).tolist() == [[255, 0]]


def test_data_uri_holds_the_png():
    ink = np.eye(4)
    kind, _, payload = png_data_uri(ink).partition(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(payload, validate=True) == encode_png(ink)


@pytest.mark.parametrize(("ink", "message"), [([1.0], r"shape \(1,\)"), (np.empty((0, 3)), "2D"), ([[np.nan]], "NaN")])
def test_png_refuses_what_is_no_picture(ink, message):
    with pytest.raises(ValueError, match=message):
        encode_png(ink)


def test_everything_but_html_is_escaped():
    nasty = "<script>alert(\"1\" & '2')</script>"
    safe = "&lt;script&gt;alert(&quot;1&quot; &amp; &#x27;2&#x27;)&lt;/script&gt;"
    assert escape(nasty) == safe
    assert escape(escape(nasty)) == safe
    bins = calibration_bins([0.5], [True])
    pieces = [
        table([nasty], [[nasty]], caption=nasty),
        heat_map([[0.5]], title=nasty, row_labels=[nasty], column_labels=[nasty], row_axis=nasty, column_axis=nasty),
        heat_map([[0.5]], title="", row_labels=[""], marks=[(0, 0)], mark_label=nasty),
        reliability_diagram({nasty: bins}, title=nasty),
        page(nasty, [nasty]),
    ]
    for piece, times in zip(pieces, (3, 5, 1, 2, 2), strict=True):
        assert "<script" not in piece
        assert piece.count(safe) == times


def test_html_is_left_alone():
    assert "<em>yes</em>" in page("t", [Html("<em>yes</em>")])


def test_table_has_every_cell_and_refuses_ragged_rows():
    markup = table(["a", "b"], [[1, 2], [3, 4]])
    assert re.findall(r"<td>(\d)</td>", markup) == ["1", "2", "3", "4"]
    with pytest.raises(ValueError, match=r"rows\[1\] has 1 cells; expected 2"):
        table(["a", "b"], [[1, 2], [3]])


def test_heat_map_shades_and_marks():
    values = np.array([[0.0, 0.25], [1.0, 0.5]])
    picture = heat_map(
        values, title="t", row_labels=["r", "s"], marks=[(1, 0)], mark_label="truth", cell=(10, 20), margin=30
    )
    cells = re.findall(r'class="cell" x="(\d+)" y="(\d+)" .*?fill-opacity="([\d.]+)"', picture)
    assert [(int(x), float(shade)) for x, _, shade in cells] == [(40, 0.25), (30, 1.0), (40, 0.5)]
    assert int(cells[1][1]) - int(cells[0][1]) == 20
    assert picture.count('class="mark"') == 2  # the cell and the legend
    assert ">truth</text>" in picture
    assert ">1 probability</text>" in picture


def test_heat_map_scale_is_in_the_legend():
    picture = heat_map([[0.2, 0.4]], title="t", row_labels=["r"], full=0.4)
    assert re.findall(r'class="cell".*?fill-opacity="([\d.]+)"', picture) == ["0.500", "1.000"]
    assert ">0.4 probability</text>" in picture


@pytest.mark.parametrize("values", [[[1.1]], [[-0.1]], [[np.nan]]])
def test_heat_map_refuses_what_is_no_probability(values):
    with pytest.raises(ValueError, match=r"probabilities in \[0, 1\]"):
        heat_map(values, title="t", row_labels=["r"])


def test_heat_map_refuses_a_vector():
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        heat_map([0.1, 0.2], title="t", row_labels=["r"])


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
    frame = re.search(r'class="frame" x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"', picture)
    left, top, width, height = map(int, frame.groups())
    disc = re.search(r'class="dot c1" cx="([\d.]+)" cy="([\d.]+)"', picture)
    assert [float(place) for place in disc.groups()] == [left + width / 2, top + height / 2]
    # Two standard errors of two predictions at one half are 0.71: the bar is cut at both ends of the frame.
    assert re.search(r'class="spread c1" d="M[\d.]+ ([\d.]+)V([\d.]+)"', picture).groups() == (
        f"{top + height}.0",
        f"{top}.0",
    )
    assert ">first</text>" in picture
    assert ">second</text>" in picture
    with pytest.raises(ValueError, match=r"at most two models\. Got 3"):
        reliability_diagram(dict.fromkeys("abc", bins), title="t")


def test_a_page_is_well_formed_and_needs_nothing_else():
    bins = calibration_bins([0.9, 0.4], [True, False])
    body = [
        table(["a"], [["b"]], caption="c"),
        heat_map(np.full((2, 2), 0.5), title="t", row_labels="ab", column_labels="cd"),
        reliability_diagram({"one": bins, "two": bins}, title="r"),
        Html(f'<img alt="" src="{png_data_uri([[0.5]])}">'),
    ]
    document = page("title", body)
    tags = Tags(document)
    assert not re.search(r"https?:|//|@import|url\(|<script|<link", document.replace(png_data_uri([[0.5]]), ""))
    sources = [value for _, name, value in tags.attributes if name in ("src", "href", "xlink:href", "srcset")]
    assert sources == [png_data_uri([[0.5]])]


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
