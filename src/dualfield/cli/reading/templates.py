"""The template that an option names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dualfield.cli.reading.data_files import LabelledData

if TYPE_CHECKING:
    from dualfield.features import Template

BUILT_IN = (None, "default", "chunking")


def read_template(name: str | None, data: LabelledData) -> Template:
    """Return a built-in template or one in a file; raise an error if it needs more columns than there are."""
    return template_of_option(name, data.n_columns, data.name)


def template_of_option(name: str | None, n_columns: int, data_name: str) -> Template:
    """Return the template for data of so many columns besides the label."""
    from dualfield.features import Template

    if name in (None, "default"):
        return Template.default(n_columns)
    if name == "chunking":
        template = Template.chunking()
    else:
        path = Path(str(name))
        try:
            template = Template(path.read_text(encoding="utf-8"))
        except OSError as error:
            hint = "" if path.exists() else "; 'default' and 'chunking' are built in"
            raise click.BadParameter(f"{path}: {error.strerror}{hint}.", param_hint="'--template'") from error
        except ValueError as error:
            raise click.ClickException(f"{path}: {' '.join(str(error).split())}") from error
    if template.n_columns > n_columns:
        raise click.ClickException(
            f"{data_name}: has {n_columns} column{'s' * (n_columns != 1)} besides the label; "
            f"the template {name} reads {template.n_columns}."
        )
    return template
