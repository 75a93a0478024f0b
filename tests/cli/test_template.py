"""``dualfield template``: what it prints is what the name stands for."""

from __future__ import annotations

import pytest

from dualfield.features import Template


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["default"], Template.default()),
        (["default", "--columns", "3"], Template.default(3)),
        (["chunking"], Template.chunking()),
        (["chunking", "--columns", "2"], Template.chunking()),
    ],
    ids=["default", "default of 3", "chunking", "chunking of 2"],
)
def test_it_reads_as_what_it_is(shell, arguments, expected):
    assert Template(shell("template", *arguments).stdout) == expected


def test_printed_and_built_in_give_the_same_model(trained, shell):
    shell.write("my.tpl", shell("template", "default", "--columns", 2).stdout)
    shell("train", trained.path("train.txt"), "--template", "my.tpl", "--model", "m", "-q")
    assert shell.path("m").read_bytes() == trained.path("chunks").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["other"], "'other' is not one of 'default', 'chunking'."),
        (["chunking", "--columns", "3"], "--columns is for default; chunking has 2 columns. Got 3."),
        (["default", "--columns", "0"], "0 is not in the range 1<=x<=1000."),
    ],
    ids=["name", "chunking", "range"],
)
def test_wrong_usage(shell, arguments, said):
    assert said in shell("template", *arguments, code=2).stderr
