"""The option --calibrate: the temperature of all probabilities, from data that the model was not trained on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from dualfield.cli.reading.data_files import LabelledData
from dualfield.cli.training.end import Options

_FOLDS = 5


def check_calibrate(given: Options) -> str | None:
    """Refuse --calibrate where it has no sense; return the file that it names, if it names one."""
    chosen: str | None = given["calibrate"]
    if chosen is None:
        return None
    if chosen == "dev" and given["dev"] is None:
        raise click.UsageError("--calibrate dev needs --dev, or name a file of held-out data.")
    if chosen in ("dev", "cv"):
        return None
    if not Path(chosen).is_file():
        raise click.UsageError(f"--calibrate {chosen}: there is no such file; expected a file, dev or cv.")
    return chosen


def calibrate(model: Any, data: LabelledData, held_out: LabelledData | None, say: Callable[[str], None]) -> None:
    """Choose the temperature of a fitted model, and say which it is; without held-out data by cross-validation."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how the fit ended is said of the model itself
        if held_out is not None:
            known = {str(label) for label in model.classes_}
            _check_known(held_out, known)
            model.calibrate(held_out.X, held_out.y)
        else:
            n_examples = len(data.y)
            if n_examples < _FOLDS:
                raise click.ClickException(f"--calibrate cv needs {_FOLDS} examples or more. Got {n_examples}.")
            model.calibrate(data.X, data.y, cv=_FOLDS)
    found = model.calibration_
    say(
        f"Calibrated on {found.n_nodes:,} labels: temperature {found.temperature:.3g}, log-loss {found.log_loss:.4f} "
        f"({found.log_loss_at_one:.4f} at temperature 1)."
    )
    if found.doubt is not None:
        say(found.doubt)


def _check_known(held_out: LabelledData, known: set[str]) -> None:
    for label in held_out.labels:
        if label not in known:
            raise click.ClickException(
                f"{held_out.place_of(label)}: the label {label!r} has no training example; probabilities are "
                "calibrated on labels that the model knows."
            )
