"""Pictures on pages: alike every time, and strangers to the state of matplotlib."""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest

from dualfield.metrics import calibration_bins
from dualfield.plotting import ConfusionDisplay, ConvergenceDisplay, ReliabilityDisplay, TransitionDisplay
from dualfield.plotting.style import CYCLE, LIGHT, PALETTE

DISPLAYS = {
    "transitions": TransitionDisplay([[1.0, -0.5], [0.0, 2.0]], ["a", "$x_1$"], [[True, True], [False, True]]),
    "confusion": ConfusionDisplay([[5, 1], [0, 7]], ["a", "日本語"]),
    "convergence": ConvergenceDisplay([3.0, 2.0], [1.0, 1.9], [2.0, 0.1], [1, 2], [0.1, 0.2], [(1, 0.1, "F1", 0.5)]),
    "reliability": ReliabilityDisplay(calibration_bins([0.9, 0.6, 0.55], [1, 0, 1])),
}


@pytest.mark.parametrize("name", DISPLAYS)
def test_a_picture_needs_nothing_of_its_page_but_the_colours(name):
    markup = DISPLAYS[name].html()
    assert not re.search(r"https?:|url\(|href|\bid=|<style|<image|<defs|font-family", markup)
    assert not re.search(r"#[0-9a-f]{3,6}\b", re.sub(r">[^<]*<", "><", markup))
    assert set(re.findall(r"var\(--(\w+)\)", markup)) <= set(PALETTE)
    assert markup.count("<svg") == len(re.findall(r'<svg role="img" [^>]*aria-label="[^"]+"', markup)) >= 1
    assert not {"ax_", "figure_"} & set(vars(DISPLAYS[name]))  # nothing was plotted, as far as the user sees


def test_a_picture_is_alike_whatever_the_style_and_leaves_it_alone():
    alone = {name: display.html() for name, display in DISPLAYS.items()}
    with matplotlib.rc_context({"text.usetex": True, "font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams)
        assert {name: display.html() for name, display in DISPLAYS.items()} == alone
        assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("label", ["a\x00b", "a\x1bb", "a\ud800b", "a\ufffeb", "a\nb", "_x", "", "\\$x$"])
def test_any_label_can_be_drawn(label):
    kept = label.translate(dict.fromkeys((0, 0x1B, 0xD800, 0xFFFE), "\N{REPLACEMENT CHARACTER}"))
    course = ConvergenceDisplay([], [], [], [], [], [(1, 1, label, 0.5), (1, 1, "other", 0.5)]).html()
    pictures = [
        TransitionDisplay([[1.0, -1.0], [0.5, 0.2]], [label, "b"]).html(),
        ConfusionDisplay([[1, 2], [3, 4]], [label, "b"]).html(),
        ReliabilityDisplay(calibration_bins([0.5], [1]), label).html(),
        course,
    ]
    for picture in pictures:
        picture.encode()
        whole = ElementTree.fromstring(f"<div>{picture}</div>")
        assert all(line in "".join(whole.itertext()) for line in kept.split("\n"))
    # The marks of both lines, and those of the legend, where a line without a name has no place.
    assert course.count("M 0 3") + course.count('d="M -3 ') == 2 + (2 if label else 1)


def test_pictures_are_drawn_from_many_threads():
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda name: DISPLAYS[name].html(), [*DISPLAYS] * 2))
    assert drawn == [display.html() for display in DISPLAYS.values()] * 2


def test_pages_do_without_pyplot_and_everything_else_without_matplotlib():
    script = (
        "import sys, json, os\nos.environ.pop('DISPLAY', None)\n"
        "import dualfield, dualfield.report, dualfield.cli.tag, dualfield.cli.demo\n"
        "from dualfield.plotting import ConfusionDisplay\n"
        "before = [name for name in sys.modules if name.partition('.')[0] == 'matplotlib']\n"
        "ConfusionDisplay([[1]], ['a']).html()\n"
        "print(json.dumps([before, 'matplotlib.figure' in sys.modules, 'matplotlib.pyplot' in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[], True, False]


@pytest.mark.parametrize("scheme", [0, 1])
def test_colours_stand_out_from_the_paper(scheme):
    def luminance(colour: str) -> float:
        parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255.0
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    names = [name for name in PALETTE if name not in ("paper", "panel", "line")]
    assert {LIGHT[name] for name in names} >= set(CYCLE)
    assert len(set(CYCLE)) == 6
    for name in names:
        for paper in ("paper", "panel"):
            dark, light = sorted(luminance(PALETTE[one][scheme]) for one in (name, paper))
            assert (light + 0.05) / (dark + 0.05) >= 4.5
