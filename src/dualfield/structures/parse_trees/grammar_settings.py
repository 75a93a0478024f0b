"""How a grammar is read off trees, what its terminals and features are, and what its predictions look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dualfield.data.checks import check_choice
from dualfield.data.records import Fields, Record
from dualfield.structures.checks import check_int
from dualfield.structures.parse_trees.grammar_features import Features, GrammarFeatures, read_features_record
from dualfield.structures.parse_trees.lexicon import Lexicon
from dualfield.structures.parse_trees.span_shape import FORMS

_CHOICES = {"binarise": ("right", "left"), "tags": ("given", "predicted"), "lexicon": ("open", "seen")}


@dataclass(frozen=True, kw_only=True)
class GrammarSettings:
    """The parameters of :class:`~dualfield.structures.Grammar` beside its rules, checked."""

    binarise: Literal["right", "left"] = "right"
    horizontal: int | None = 1
    vertical: int = 1
    tags: Literal["given", "predicted"] = "given"
    lexicon: Literal["open", "seen"] = "open"
    column: int = 1
    span_features: Features = None
    word_features: Features = None
    output: str | None = None

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            check_choice("Grammar", name, getattr(self, name), choices)
        if self.output is not None:
            check_choice("Grammar", "output", self.output, FORMS, "None")
        if self.horizontal is not None:
            check_int("Grammar", "horizontal", self.horizontal, 0)
        check_int("Grammar", "vertical", self.vertical, 1)
        check_int("Grammar", "column", self.column, 0)
        for name in ("span_features", "word_features"):
            if isinstance(getattr(self, name), tuple):
                object.__setattr__(self, name, list(getattr(self, name)))
        _ = self.features  # which checks them

    @property
    def features(self) -> GrammarFeatures:
        """What makes features of spans."""
        return GrammarFeatures(self.span_features, self.word_features)

    @property
    def terminals(self) -> Lexicon:
        """What makes terminals of tokens."""
        return Lexicon(self.tags, self.lexicon, self.column)

    def record(self) -> Fields:
        """Return the record of the settings."""
        names = ("binarise", "horizontal", "vertical", "tags", "lexicon", "column", "output")
        return {name: getattr(self, name) for name in names} | self.features.record()

    @classmethod
    def from_record(cls, record: Record) -> GrammarSettings:
        """Build settings from their record, which is checked."""
        choices: dict[str, Any] = {name: record.text(name, choices) for name, choices in _CHOICES.items()}
        return cls(
            horizontal=record.integer("horizontal", 0) if record.has("horizontal") else None,
            vertical=record.integer("vertical", 1),
            column=record.integer("column", 0),
            output=record.text("output", FORMS) if record.has("output") else None,
            **choices,
            **read_features_record(record),
        )
