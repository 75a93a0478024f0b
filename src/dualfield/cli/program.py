"""What all sub-commands share: imported when called, errors of one line, exit codes that people expect."""

from __future__ import annotations

import contextlib
import importlib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from dualfield.cli.help_pages import MAX_WIDTH, HelpContext, Sections
from dualfield.cli.streams import prepare_streams

INTERRUPTED = 130  # as shells report a program that Ctrl-C ended: 128 and the number of the signal
BROKEN_PIPE = 141
COMMAND_LINE = "dualfield.command_line"  # where a context keeps it


class Program(click.Group):
    """A group whose sub-commands are imported when they are called.

    Parameters
    ----------
    lines : mapping from str to str
        Names of the sub-commands in the order in which they are listed, each with a line of help. The sub-command
        ``x`` is the member ``x`` of the module ``dualfield.cli.x``.
    groups : mapping from str to sequence of str, default=None
        Titles, and the sub-commands that are listed under them; others come last.
    **settings
        As for :class:`click.Group`.
    """

    context_class = HelpContext

    def __init__(self, *, lines: Mapping[str, str], groups: Sections | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.lines, self.groups = lines, groups or {}
        self.context_settings.setdefault("max_content_width", MAX_WIDTH)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, without an import."""
        return list(self.lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a sub-command."""
        if cmd_name not in self.lines:
            return None
        found = getattr(importlib.import_module(f"dualfield.cli.{cmd_name}"), cmd_name)
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the sub-commands, without an import."""
        left, width = dict(self.lines), max(map(len, self.lines))
        for title, names in (*self.groups.items(), ("Commands", self.lines)):
            rows = [(name.ljust(width), left.pop(name)) for name in names if name in left]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of sub-commands, without an import."""
        found = [CompletionItem(name, help=line) for name, line in self.lines.items() if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the arguments, and keep them as they were given."""
        command = shlex.join([info_name or "dualfield", *args])
        ctx = super().make_context(info_name, args, parent, **extra)
        ctx.meta[COMMAND_LINE] = command
        return ctx

    def invoke(self, ctx: click.Context) -> Any:
        """Run a sub-command; what goes wrong in it becomes one line, unless a traceback is wanted."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except BrokenPipeError:
            _forget_output()
            raise click.exceptions.Exit(BROKEN_PIPE) from None
        except Exception as error:
            if ctx.params.get("traceback"):
                raise
            raise click.ClickException(described(error)) from error

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **extra: Any
    ) -> Any:
        """Run the program and leave it with an exit code: 0, 1, 2, 130 after Ctrl-C, 141 if nobody reads the output."""
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **extra)
        prepare_streams()
        try:
            code = super().main(args, standalone_mode=False, **extra)
        except click.ClickException as error:
            with contextlib.suppress(OSError):
                error.show()
            code = error.exit_code
        except (click.Abort, KeyboardInterrupt):
            tell("Interrupted.")
            code = INTERRUPTED
        except OSError as error:  # help that cannot be written
            code = _failed_output(error)
        sys.exit(_flushed(code if isinstance(code, int) else 0))


def described(error: Exception) -> str:
    """Return one line about an error that the library or the system raised."""
    if isinstance(error, OSError) and error.strerror:
        name = error.filename
        return f"{os.fsdecode(name)}: {error.strerror}" if isinstance(name, str | bytes) else error.strerror
    if isinstance(error, MemoryError):
        return "There is not enough memory for this."
    text = " ".join(str(error).split())
    if isinstance(error, ValueError | OSError | ImportError):
        return text
    return (
        f"{type(error).__name__}: {text.rstrip('.')}. This should not happen: please report it with the output of "
        "`dualfield --traceback ...`."
    )


def tell(text: str) -> None:
    """Write a line on standard error, if that can be written to: no work is given up because nobody sees it."""
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


def warn(text: str) -> None:
    """Write a warning on standard error."""
    tell(f"Warning: {text}")


def _flushed(code: int) -> int:
    """Write what is left of the output; return the exit code, which is that of a failure if this fails."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if not code:
            return _failed_output(error)
        _forget_output()
    return code


def _failed_output(error: OSError) -> int:
    """Say why the output cannot be written, unless nobody reads it; return the exit code."""
    _forget_output()
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    tell(f"Error: {described(error)}")
    return 1


def _forget_output() -> None:
    """Send what is left of the output nowhere: flushing it at the end would complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # standard output that is no file, as in tests
        pass
    finally:
        os.close(nowhere)
