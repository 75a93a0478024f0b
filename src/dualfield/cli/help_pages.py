"""Help in sections, with examples, wrapped by words: at 100 columns at most, and also where there are few."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

MAX_WIDTH = 100
_TWO_COLUMNS = 64  # where lines are shorter, an option stands above what it means

Sections = Mapping[str, Sequence[str]]


class HelpFormatter(click.HelpFormatter):
    """Breaks lines between words only; definitions are in two columns, or one above the other where lines are short."""

    def write_text(self, text: str) -> None:
        """Write paragraphs."""
        indent = " " * self.current_indent
        paragraphs = [_wrapped(paragraph, self.width - len(indent)) for paragraph in text.split("\n\n")]
        self.write("\n".join("".join(f"{indent}{line}\n" for line in lines) for lines in paragraphs))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write names and what they mean."""
        rows, indent = list(rows), " " * self.current_indent
        stacked = self.width < _TWO_COLUMNS
        column = 4 if stacked else min(max(len(name) for name, _ in rows), col_max) + col_spacing
        deeper = " " * (len(indent) + column)
        for name, text in rows:
            *names, last = _cut(f"{indent}{name}", self.width, " " * (len(indent) + 4))
            first, *rest = _wrapped(text, self.width - len(deeper)) or [""]
            if stacked or len(last) + col_spacing > len(deeper):
                names, last = [*names, last], deeper
            lines = [*names, last.ljust(len(deeper)) + first, *(deeper + line for line in rest)]
            self.write("".join(f"{line.rstrip()}\n" for line in lines))


class HelpContext(click.Context):
    """A context whose help is written by `HelpFormatter`."""

    formatter_class = HelpFormatter


class Command(click.Command):
    """A command whose options are listed in sections.

    Parameters
    ----------
    *arguments
        As for :class:`click.Command`.
    sections : mapping from str to sequence of str, default=None
        Titles, and the names of the parameters under them. Options that are in none come last; names that no option
        has are passed over.
    examples : sequence of str, default=()
        Command lines, which are written as they are.
    **settings
        As for :class:`click.Command`.
    """

    context_class = HelpContext

    def __init__(
        self, *arguments: Any, sections: Sections | None = None, examples: Sequence[str] = (), **settings: Any
    ) -> None:
        super().__init__(*arguments, **settings)
        self.sections, self.examples = sections or {}, examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options, section by section."""
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        found = {param.name: param.get_help_record(ctx) for param in options}
        known = {name: record for name, record in found.items() if record is not None}
        for title, names in self.sections.items():
            rows = [known.pop(name) for name in names if name in known]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)
        if known:
            with formatter.section("Other options" if self.sections else "Options"):
                formatter.write_dl(list(known.values()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the examples."""
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
                indent = " " * formatter.current_indent
                formatter.write("".join(f"{indent}{line}\n" for line in self.examples))


class CommandGroup(Command, click.Group):
    """A command with sub-commands, whose help is like that of the others."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options, then the sub-commands."""
        super().format_options(ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(limit=200)) for name, command in self.commands.items()]
            )


def _wrapped(text: str, width: int) -> list[str]:
    """Return lines that are broken between words."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _cut(name: str, width: int, deeper: str) -> list[str]:
    """Return an option in lines, which are cut behind the choices that it lists."""
    lines, begun = [], ""
    for piece in name.replace("|", "|\0").split("\0"):
        if begun and len(begun) + len(piece) > width:
            lines.append(begun)
            begun = deeper
        begun += piece
    return [*lines, begun]
