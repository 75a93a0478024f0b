"""The page on the command line is true: its commands are run, and it names every command and option."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from dualfield.cli import main
from tests.test_first_hour import steps_of, walk

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "command_line.md").read_text(encoding="utf-8")
CONTEXT = click.Context(main)
OWN_PAGES = ("demo",)


def test_commands_do_what_the_page_shows(tmp_path, warm_python):
    wrong = walk(PAGE, tmp_path, warm_python.command())
    assert not wrong, "\n\n".join(wrong)
    assert {"train", "tag", "evaluate", "inspect", "convert"} <= {
        word for step in steps_of(PAGE) for word in re.findall(r"dualfield (\w+)", step.text)
    }


def options(name):
    command = main.get_command(CONTEXT, name)
    shown = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    return {word for option in shown for word in (*option.opts, *option.secondary_opts)}


@pytest.mark.parametrize("name", [name for name in main.list_commands(CONTEXT) if name not in OWN_PAGES])
def test_every_option_has_a_row_and_every_row_an_option(name):
    _, _, section = PAGE.partition(f"### dualfield {name}\n")
    rows = [line.split("|")[1] for line in re.split(r"^#", section, flags=re.M)[0].splitlines() if line[:3] == "| `"]
    assert {word for row in rows for word in re.findall(r"`(-[^`]+)`", row)} == options(name)


def test_every_command_is_listed():
    assert set(re.findall(r"^\| `dualfield (\w+)", PAGE, re.M)) == set(main.list_commands(CONTEXT))


@pytest.mark.parametrize("suffix", re.findall(r"`(\.[a-z]+)`", PAGE.partition("Suffixes:")[2].split("\n\n")[0]))
def test_suffixes(suffix):
    from dualfield.cli.convert import _SUFFIXES

    assert suffix in {*_SUFFIXES, ".gz"}
