"""The lines of the command line in the pages for people from other tools: every command and option exists."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from dualfield.cli import main

PAGES = sorted((Path(__file__).parents[1] / "docs" / "coming_from").glob("*.md"))
CONTEXT = click.Context(main)
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
OPTION = re.compile(r"(?<!\S)--[a-zA-Z][\w-]*")


def options(command: str) -> set[str]:
    found = main.get_command(CONTEXT, command)
    return (
        set() if found is None else {word for option in found.params for word in (*option.opts, *option.secondary_opts)}
    )


def unknown(text: str) -> list[str]:
    """Return the commands and options of dualfield in a text that do not exist.

    Options that stand alone may be those of any command; of a table, only the last cell, the new line, is looked at.
    """
    everywhere = {option for name in main.list_commands(CONTEXT) for option in options(name)}
    cells = [line.rstrip("| ").split(" | ")[-1] if line.startswith("|") else line for line in text.splitlines()]
    wrong = []
    for code in CODE.findall("\n".join(cells)):
        for part in re.split(r"\\?\| ", code):
            name = re.match(r"(?:dualfield )?(\w+)", part)
            named = name is not None and (part.startswith("dualfield ") or name[1] in main.list_commands(CONTEXT))
            known = options(name[1]) if named and name else everywhere
            wrong += [part] if named and not known else []
            wrong += [f"{part}: {option}" for option in OPTION.findall(part) if option not in known]
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_and_options_exist(page):
    assert unknown(page.read_text(encoding="utf-8")) == []


def test_unknown_ones_are_found():
    table = "| old | new |\n|---|---|\n| `old --x` | `dualfield tag --y` |\n"
    text = table + "`--z`, `dualfield fly`, `dualfield train --C 1`, `tag --w`"
    assert unknown(text) == ["dualfield tag --y: --y", "--z: --z", "dualfield fly", "tag --w: --w"]
