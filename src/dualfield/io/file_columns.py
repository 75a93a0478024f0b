"""Which columns of a file a model was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dualfield.data.records import Fields, Record

__all__ = ["FileColumns"]


@dataclass(frozen=True)
class FileColumns:
    """The columns of a file of tokens: how many there are, which are read, and which is the label.

    Columns are counted from 0. A model that ``dualfield train`` has written keeps those of its training data.

    Parameters
    ----------
    n_columns : int
        How many columns each line has.
    features : sequence of int
        The columns that describe a token, in the order in which templates count them.
    label : int
        The column of the label.

    Raises
    ------
    ValueError
        If a column is not in the file, occurs twice, or is both a feature and the label.

    Examples
    --------
    >>> from dualfield.io import FileColumns
    >>> columns = FileColumns(4, features=(0, 1), label=3)
    >>> columns.split(("He", "PRP", "he", "B-NP"))
    (('He', 'PRP'), 'B-NP')
    >>> print(columns)
    4 columns, tokens in 0,1 and the label in 3
    """

    n_columns: int
    features: Sequence[int]
    label: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))
        listed = (*self.features, self.label)
        for column in listed:
            if not 0 <= column < self.n_columns:
                raise ValueError(f"there is no column {column}: columns are counted from 0 to {self.n_columns - 1}.")
            if listed.count(column) > 1:
                raise ValueError(f"column {column} is listed twice, as a feature or as the label.")
        if not self.features:
            raise ValueError("there must be a column besides the label.")

    @property
    def without_label(self) -> tuple[int, ...]:
        """The features in a file that lacks the column of the label."""
        return tuple(column - (column > self.label) for column in self.features)

    def split(self, row: Sequence[str]) -> tuple[tuple[str, ...], str]:
        """Return the features of a row, and its label.

        Parameters
        ----------
        row : sequence of str
            All columns of a line.

        Returns
        -------
        tuple of str, and str
            The features and the label.
        """
        return tuple([row[column] for column in self.features]), row[self.label]

    def record(self) -> Fields:
        """Return the record of the columns."""
        return {"n_columns": self.n_columns, "features": list(self.features), "label": self.label}

    @classmethod
    def from_record(cls, record: Record) -> FileColumns:
        """Build the columns from their record, which is checked."""
        n_columns = record.integer("n_columns", 2, 2**31)
        features, label = record.items("features", int), record.integer("label")
        record.check(len(features) < min(n_columns, 2**16), f"its {record.place('features')!r} must be fewer.")
        try:
            return cls(n_columns, features, label)
        except ValueError as error:
            raise record.fault(f"its {record.path!r} are wrong: {error}") from None

    def __str__(self) -> str:
        features = ",".join(map(str, self.features))
        return f"{self.n_columns} columns, tokens in {features} and the label in {self.label}"
