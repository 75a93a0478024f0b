"""Which columns of a file are read: those that options name, or those of the training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dualfield.cli.program import warn

if TYPE_CHECKING:
    from dualfield.io import FileColumns


@dataclass(frozen=True)
class ColumnChoice:
    """What options and the model say about columns.

    Attributes
    ----------
    features : tuple of int or None
        The option --columns.
    label : int or None
        The option --label.
    model : str
        The file of the model that is to read them; empty if one is to be trained.
    trained : FileColumns or None
        The columns of its training, if they are known.
    n_needed : int
        How many columns its template reads.
    """

    features: tuple[int, ...] | None = None
    label: int | None = None
    model: str = ""
    trained: FileColumns | None = None
    n_needed: int = 0

    def labelled(self, n_columns: int, name: str) -> FileColumns:
        """Return the columns of a labelled file, or raise a ValueError; `name` is what warnings call the file."""
        from dualfield.io import FileColumns

        trained = self.trained
        if trained is not None and self.label is None and n_columns != trained.n_columns:
            raise ValueError(
                f"has {counted(n_columns)}; {self._training(trained)}. Name them, such as {_options(trained)}; or "
                "leave out --model, to compare a prediction in the last column with the label before it."
            )
        label = self.label if self.label is not None else n_columns - 1 if trained is None else trained.label
        features: Sequence[int] = [column for column in range(n_columns) if column != label]
        if self.features is not None:
            features = self.features
        elif trained is not None:
            features = trained.features
        elif self.model and self.label is None and len(features) > self.n_needed > 0:
            warn(
                f"{name}: has {counted(n_columns)}; the template of {self.model} reads {self.n_needed}, "
                f"and the last is taken for the true label. --label {label} says that it is, --label "
                f"{self.n_needed} that it is column {self.n_needed}."
            )
        try:
            chosen = FileColumns(n_columns, features, label)
        except ValueError as error:
            asked = f"--columns {_listed(features)} --label {label}"
            raise ValueError(f"has {counted(n_columns)}, which do not fit {asked}: {error}") from None
        self._check_number(chosen.features, " besides the label")
        return chosen

    def unlabelled(self, n_columns: int, name: str, *, labelled: bool | None = None) -> tuple[int, ...]:
        """Return the columns to read of a file that is to be tagged; `labelled` tells whether it has labels too."""
        trained = self.trained
        if self.features is not None:
            features = self.features
            if max(features) >= n_columns:
                raise ValueError(f"has {counted(n_columns)}; --columns names column {max(features)}, counted from 0.")
        elif trained is None:
            features = tuple(range(n_columns - (labelled is True)))
        elif n_columns == trained.n_columns:
            features = tuple(trained.features)
        elif n_columns == trained.n_columns - 1 and not labelled:
            features = trained.without_label
        else:
            text = "; --text reads plain text" * (len(trained.features) == 1)
            raise ValueError(
                f"has {counted(n_columns)}; {self._training(trained)}. Name the columns to read, such as --columns "
                f"{_listed(trained.features)}{text}."
            )
        self._check_number(features, " besides the label" * (labelled is True))
        if trained is None and self.features is None and 0 < self.n_needed < n_columns - 1:
            read = _listed(range(self.n_needed))
            warn(
                f"{name}: has {counted(n_columns)}; the template of {self.model} reads {read}. --columns {read} "
                f"says that this is right{'; --text reads plain text' * (self.n_needed == 1)}."
            )
        return features

    def check_one_column(self, name: str) -> None:
        """Raise a ValueError if the model reads more columns than the tokens, which are all that JSON and text have."""
        n_columns = max(self.n_needed, 0 if self.trained is None else len(self.trained.features))
        if n_columns > 1:
            raise ValueError(
                f"{name}: has tokens only, one column; the template of {self.model} reads {n_columns}. Give these "
                "columns, or train on tokens and labels alone."
            )

    def _training(self, trained: FileColumns) -> str:
        return f"{self.model} was trained on {trained}"

    def _check_number(self, features: Sequence[int], besides: str) -> None:
        """Refuse fewer columns than the template of a model reads, or others than it was trained on."""
        trained = self.trained
        if len(features) < self.n_needed:
            found = f"has {counted(len(features))}{besides}"
            found = found if self.features is None else f"--columns names {counted(len(features))}"
            raise ValueError(f"{found}; expected {self.n_needed}, which the template of {self.model} reads.")
        if trained is not None and len(features) != len(trained.features):
            raise ValueError(f"--columns names {counted(len(features))}; {self._training(trained)}.")


def counted(n: int) -> str:
    """Return a number of columns."""
    return f"{n} column{'s' * (n != 1)}"


def _listed(columns: Sequence[int]) -> str:
    return ",".join(map(str, columns))


def _options(columns: FileColumns) -> str:
    return f"--columns {_listed(columns.features)} --label {columns.label}"
