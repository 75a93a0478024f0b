"""``dualfield completion``: print the script that completes commands in a shell."""

from __future__ import annotations

import click

from dualfield.cli.help_pages import Command

__all__ = ["completion"]

_INSTALL = {
    "bash": 'add the line  eval "$(dualfield completion bash)"  to ~/.bashrc',
    "zsh": 'add the line  eval "$(dualfield completion zsh)"  to ~/.zshrc, after compinit',
    "fish": "dualfield completion fish > ~/.config/fish/completions/dualfield.fish",
}


@click.command(cls=Command, examples=["dualfield completion zsh"])
@click.argument("shell", type=click.Choice(list(_INSTALL)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands in a shell.

    Its last line, a comment, says how to install it.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # the choices are the shells that click knows
    script = kind(ctx.find_root().command, {}, "dualfield", "_DUALFIELD_COMPLETE").source()
    click.echo(f"{script.rstrip()}\n# To install: {_INSTALL[shell]}")
