"""What is written for each token: its label, and how much more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dualfield.cli.models import LoadedModel


@dataclass(frozen=True, kw_only=True)
class Style:
    """What is written for each token: its label, and how much more.

    Attributes
    ----------
    marginals : str or None
        "best": also the probability of the label; "all": also those of all labels.
    k_best : int
        If it is not 0, this many labellings of each sentence, each under a line with its rank and probability.
    labelled : bool or None
        Whether data have labels already; None: as it looks.
    delimiter : str
        What separates columns, a key of `DELIMITERS`.
    encoding : str
        How characters are stored in the data.
    columns : tuple of int or None
        The columns to read; None: as in training.
    is_text : bool
        Whether lines are sentences of plain text.
    to : str
        The form of the output: "conll", or one of JSON; empty: as the input is, plain text as columns.
    """

    marginals: str | None = None
    k_best: int = 0
    labelled: bool | None = None
    delimiter: str = "blanks"
    encoding: str = "utf-8"
    columns: tuple[int, ...] | None = None
    is_text: bool = False
    to: str = ""

    @property
    def writes_json(self) -> bool:
        """Whether the output is JSON, whatever the input is."""
        return self.to not in ("", "conll")


@dataclass(frozen=True)
class Labelling:
    """The fields to write for each token of a sentence, and the probability of all labels together."""

    fields: list[list[str]]
    probability: float = 0.0


def predicted(loaded: LoadedModel, X: Sequence[Any], style: Style) -> list[list[Labelling]]:
    """Ask the model; return one labelling of each sentence, or several."""
    if not X:
        return []
    model, names = loaded.model, loaded.names
    probabilities = model.predict_proba(X) if style.marginals else [None] * len(X)
    ranked = model.k_best(X, style.k_best) if style.k_best else [[(labels, 0.0)] for labels in model.predict(X)]
    return [
        [Labelling(fields(labels, rows, names, style), chance) for labels, chance in alternatives]
        for alternatives, rows in zip(ranked, probabilities, strict=True)
    ]


def fields(labels: Sequence[Any], rows: Any, names: list[str], style: Style) -> list[list[str]]:
    """Return what is written behind each token."""
    if rows is None:
        return [[str(label)] for label in labels]
    codes = {name: code for code, name in enumerate(names)}
    found = []
    for label, row in zip(map(str, labels), rows.tolist(), strict=True):
        every = [f"{name}:{chance:.6f}" for name, chance in zip(names, row, strict=True)]
        found.append([label, f"{row[codes[label]]:.6f}", *(every if style.marginals == "all" else [])])
    return found


def ranked(texts: Sequence[str], alternatives: list[Labelling]) -> Iterator[str]:
    """Yield the lines of several labellings of a sentence, each under its rank and probability."""
    for rank, labelling in enumerate(alternatives, start=1):
        yield f"# rank {rank}, probability {labelling.probability:.6f}"
        yield from (behind(text, fields) for text, fields in zip(texts, labelling.fields, strict=True))
        yield ""


def behind(text: str, fields: Sequence[str]) -> str:
    """Return a line with fields behind it."""
    return ("\t" if "\t" in text else " ").join([text, *fields]) if text else "\t".join(fields)
