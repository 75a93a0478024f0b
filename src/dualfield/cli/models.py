"""Model files: which data a model takes, and opening it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from dualfield.cli.data_files import FORMATS, LabelledData


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A model and what it works on.

    Attributes
    ----------
    path : str
        The file.
    model : CRF or KernelLogisticRegression
        The model.
    kind : str
        The format of its data, a key of `FORMATS`.
    """

    path: str
    model: Any
    kind: str


def load_model(path: Path, *, mmap: bool = False, threads: int = 1) -> LoadedModel:
    """Open a model of dualfield or of CRFsuite."""
    from dualfield.estimators import CRF, load

    model: Any = CRF.from_crfsuite(path) if is_crfsuite_model(path) else load(path, mmap=mmap)
    model.n_jobs = threads
    return LoadedModel(os.fspath(path), model, _kind(model, path))


def is_crfsuite_model(path: Path) -> bool:
    """Tell by the first bytes."""
    with path.open("rb") as file:
        return file.read(4) == b"lCRF"


def _kind(model: Any, path: Path) -> str:
    if hasattr(model, "dual_coef_"):
        return "svmlight"
    if model.template is not None:
        return "conll"
    if model.vocabulary_ is not None:
        return "crfsuite"
    raise click.ClickException(f"{path}: works on matrices of numbers, for which there is no file format here.")


def n_columns_of(loaded: LoadedModel) -> int:
    """Return how many columns the template of a model reads."""
    from dualfield.features import Template

    template = loaded.model.template
    return (template if isinstance(template, Template) else Template(str(template))).n_columns


def checked_columns(loaded: LoadedModel, data: LabelledData) -> None:
    """Raise an error unless data have the columns that the template of a model reads."""
    if loaded.kind == "conll" and data.n_columns < n_columns_of(loaded):
        raise click.ClickException(
            f"{data.name}: has {data.n_columns} column{'s' * (data.n_columns != 1)} besides the label; "
            f"the template of {loaded.path} reads {n_columns_of(loaded)}."
        )


def data_of(loaded: LoadedModel) -> str:
    """Say what a model works on."""
    return FORMATS[loaded.kind]
