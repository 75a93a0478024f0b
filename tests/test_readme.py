"""README.md is true: numbers of the benchmarks, a picture that the library draws, links that lead somewhere."""

from __future__ import annotations

import importlib.util
import json
import math
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def results(name: str) -> dict:
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    if not path.exists():
        pytest.skip("the results of the benchmarks are in the repository only")
    return json.loads(path.read_text(encoding="utf-8"))


def row(name: str) -> str:
    (found,) = re.findall(rf"^\| {name} \|(.*)\|$", README, re.MULTILINE)
    return found


def test_training_speed():
    result = results("crf_training")["conll2000"]
    assert (result["peer"], result["data"]) == ("python-crfsuite", "CoNLL-2000")
    assert result["objective"] <= result["peer_objective"]
    assert f"**{result['ratios']['fit']:.0f} ×** as fast" in row("training")


def test_tagging_speed():
    result = results("crf_tagging")
    columns, strings = (result[kind]["ratios"]["ours"] for kind in ("columns", "strings"))
    assert f"**{columns:.0f} ×** as fast; {strings:.0f} × from ready-made attributes" in row("tagging")


def test_log_loss():
    sets = results("kernel_logistic_peers")["sets"]
    ratios = [one["log_loss"] / one["svc_log_loss"] for one in sets]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    assert f"on {len(sets)} data sets" in row("log-loss")
    assert f"**{mean:.2f} ×** as high (geometric mean), lower on {sum(ratio < 1.0 for ratio in ratios)}" in row(
        "log-loss"
    )


def test_the_picture_is_what_the_library_draws():
    """Text and shapes are the same; numbers may differ in the last place, on another machine."""
    spec = importlib.util.spec_from_file_location("tagged_sentence", ROOT / "docs" / "tagged_sentence.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.PICTURE.relative_to(ROOT).as_posix() in README
    kept, drawn = script.PICTURE.read_text(encoding="utf-8"), script.drawn()
    assert NUMBER.sub("#", drawn) == NUMBER.sub("#", kept)
    numbers = [[float(number) for number in NUMBER.findall(text)] for text in (drawn, kept)]
    assert numbers[0] == pytest.approx(numbers[1], abs=2e-3)


def test_the_picture_is_safe_and_follows_light_and_dark():
    picture = (ROOT / "docs" / "_static" / "tagged_sentence.svg").read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in picture
    assert not re.search(r"<script|<foreignObject|<image|href=|url\(|@import", picture)


def test_links_work_on_a_code_host():
    """Links are relative paths of files in the repository, or of its own headings."""
    targets = re.findall(r"\]\(([^)\s]+)\)", README)
    assert len(targets) > 15
    for target in targets:
        assert not target.startswith(("/", "http:")), target
        assert target.startswith(("https://", "#")) or (ROOT / target.partition("#")[0]).exists(), target


def test_it_begins_with_a_sentence_a_picture_three_numbers_installation_and_six_lines():
    parts = [
        "# dualfield\n",
        "tagged_sentence.svg",
        "| training |",
        "| tagging |",
        "| log-loss |",
        "## Install",
        "## Six",
    ]
    places = [README.index(part) for part in parts]
    assert places == sorted(places)
    lines = re.search(r"## Six lines\n\n```python\n(.*?)```", README, re.DOTALL)[1].splitlines()
    assert sum(line.startswith((">>>", "...")) for line in lines) == 6
