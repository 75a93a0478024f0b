"""Labels for JSON data, and labels written as JSON: with character spans, or with tokens and tags."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from dualfield.cli.models import LoadedModel
from dualfield.cli.reading.json_data import JSON_FORMATS, in_options, json_format
from dualfield.cli.reading.line_groups import Numbered, counted_from
from dualfield.data.span_labels import spans
from dualfield.io import AnnotatedText

_MARKED = ("spans", "label", "labels", "entities", "relations", "answer")  # what the prediction takes the place of


@dataclass(frozen=True)
class JsonWriter:
    """Predicts labels, and writes each sentence as a line of JSON.

    Attributes
    ----------
    loaded : LoadedModel
        The model.
    to : str
        "spans", "doccano" or "tokens"; empty: as the input is.
    with_probabilities : bool
        Whether to write the probability of each span, or of the label of each token.
    """

    loaded: LoadedModel
    to: str
    with_probabilities: bool = False

    def check(self) -> None:
        """Raise a usage error if the labels of the model mark no spans, which are to be written."""
        from dualfield.data.span_labels import marks_spans

        if self.to not in ("spans", "doccano"):
            return
        if self.with_probabilities and not hasattr(self.loaded.model, "predict_spans"):
            raise click.UsageError(
                f"--marginals is not for spans of {self.loaded.path}, whose labels have sub-states. Use --to tokens."
            )
        if not marks_spans(self.loaded.names):
            shown = ", ".join(self.loaded.names[:3])
            raise click.UsageError(
                f"--to {self.to} is for labels such as B-PER, I-PER, O; those of {self.loaded.path} are {shown}. "
                "Use --to tokens."
            )

    def lines(
        self, X: Sequence[Any], texts: Sequence[AnnotatedText], records: Sequence[dict[str, Any]] | None = None
    ) -> list[str]:
        """Return a line for each sentence: its record, if it has one, with the prediction in it.

        Parameters
        ----------
        X : sequence of sentences
            Rows of columns, as the model takes them.
        texts : sequence of AnnotatedText
            The same sentences as text; without spans.
        records : sequence of dicts, default=None
            What else is known of them.
        """
        full = [at for at, rows in enumerate(X) if len(rows)]
        known = [X[at] for at in full]
        labels = dict(zip(full, self.loaded.model.predict(known) if full else [], strict=True))
        scores: dict[int, Any] = {}
        if self.with_probabilities and full:
            ask = self._label_scores if self.to == "tokens" else self._span_scores
            scores = dict(zip(full, ask(known, [labels[at] for at in full]), strict=True))
        found = []
        for at, text in enumerate(texts):
            record = {} if records is None else {key: value for key, value in records[at].items() if key not in _MARKED}
            names = [str(label) for label in labels.get(at, ())]
            found.append(json.dumps(self._record(record, text, names, scores.get(at, ())), ensure_ascii=False))
        return found

    def _span_scores(self, X: Sequence[Any], labels: Sequence[Any]) -> list[list[float]]:
        return [[span.probability for span in found] for found in self.loaded.model.predict_spans(X)]

    def _label_scores(self, X: Sequence[Any], labels: Sequence[Any]) -> list[list[float]]:
        codes = {name: code for code, name in enumerate(self.loaded.names)}
        rows = self.loaded.model.predict_proba(X)
        return [
            [row[codes[str(name)]] for name, row in zip(*pair, strict=True)] for pair in zip(labels, rows, strict=True)
        ]

    def _record(self, record: dict[str, Any], text: AnnotatedText, labels: list[str], scores: Any) -> dict[str, Any]:
        from dualfield.io.json_spans import record_of_text

        rounded = [round(float(score), 6) for score in scores]
        if self.to == "tokens":
            found: dict[str, Any] = {"tokens": [token for token, *_ in text.tokens], "ner_tags": labels}
            return record | found | ({"probabilities": rounded} if self.with_probabilities else {})
        found = record_of_text(replace(text, spans=spans(labels)), "prodigy" if self.to == "spans" else self.to)
        if self.with_probabilities and self.to == "spans":
            found["spans"] = [span | {"score": score} for span, score in zip(found["spans"], rounded, strict=True)]
        elif self.with_probabilities:
            found["scores"] = rounded
        return record | found


def tagged_json(writer: JsonWriter, name: str, begin: str, groups: Iterator[Numbered]) -> Iterator[list[str]]:
    """Tag JSON data: JSON Lines as they come, and a list when it is complete; `begin` is how the text begins."""
    from dualfield.io.json_records import iter_json_records

    kind = json_format(begin)
    assert kind in JSON_FORMATS
    if not writer.to:
        doccano = any(f'"{key}"' in begin for key in ("label", "labels", "entities")) and '"spans"' not in begin
        writer = replace(writer, to="tokens" if kind == "tokens" else "doccano" if doccano else "spans")
        writer.check()
    if not is_json_lines(begin):
        groups = iter([list(itertools.chain.from_iterable(groups))])
    for group in groups:
        with in_options(), counted_from(group[0][0], name):
            numbered = list(iter_json_records([text for _, text in group]))
            texts = [_text(record, f"lines, line {number}", kind) for number, record in numbered]
        records = [{} if isinstance(record.get("data"), dict) else record for _, record in numbered]
        X = [[(token,) for token, *_ in text.tokens] for text in texts]
        yield writer.lines(X, texts, records)


def is_json_lines(begin: str) -> bool:
    """Tell whether the first line is a whole object, as far as it can be seen."""
    first, has_end, _ = begin.lstrip().partition("\n")
    if first.startswith("["):
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return not has_end
    return True


def _text(record: dict[str, Any], place: str, kind: str) -> AnnotatedText:
    from dualfield.io.json_spans import text_of_record
    from dualfield.io.json_tokens import tokens_of_record

    if kind == "tokens":
        return AnnotatedText.from_tokens(tokens_of_record(record, place))
    return text_of_record(record, place, is_labelled=False)
