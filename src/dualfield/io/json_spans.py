"""JSON with character spans, as annotation tools write it: Prodigy, Doccano, Label Studio."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from dualfield.io.annotated_text import AnnotatedText, CharacterSpan
from dualfield.io.json_records import Record, checked_text, iter_json_records, shortened
from dualfield.io.plain_text import Token
from dualfield.io.text_lines import Source, Target, source_name, write_lines

STYLES = ("prodigy", "doccano")

_SPANS = ("spans", "label", "labels", "entities")  # where tools put the spans of a text
_EXPECTED = (
    'expected "text" and "spans" (Prodigy), "label" or "entities" (Doccano), or "data" and "annotations" (Label Studio)'
)


def read_json_spans(source: Source, *, alignment: str = "strict", encoding: str = "utf-8") -> list[AnnotatedText]:
    """Read texts with marked spans: JSON Lines, or a JSON list, of Prodigy, Doccano or Label Studio.

    A text is one sequence. Its tokens are those of the record, as Prodigy writes them, without tokens that are white
    space; otherwise those of :func:`split_tokens`. Texts that were rejected or ignored in Prodigy, and tasks whose
    annotations were all cancelled in Label Studio, are left out.

    Parameters
    ----------
    source : path, open file, or iterable of str
        A path may lead to a gzip file.
    alignment : {"strict", "expand"}, default="strict"
        What becomes of a span that begins or ends inside a token: it is refused, or it gets the whole token.
    encoding : str, default="utf-8"
        How characters are stored in files.

    Returns
    -------
    list of AnnotatedText
        The texts.

    Raises
    ------
    ValueError
        If a record is not of this kind, a span does not fit the text or its tokens, or two spans overlap. The message
        names file and line.

    See Also
    --------
    write_json_spans : The way back.

    Notes
    -----
    Places count the characters of the text. Where a span says which text it covers, as those of Label Studio do, and
    this is right only if characters outside of Unicode's first 65,536 count twice, they do.

    Examples
    --------
    >>> from dualfield.io import read_json_spans
    >>> prodigy = '{"text": "Anna lives in Gent.", "spans": [{"start": 14, "end": 18, "label": "LOC"}]}'
    >>> doccano = '{"text": "Gent, said Anna", "label": [[0, 4, "LOC"], [11, 15, "PER"]]}'
    >>> for text in read_json_spans([prodigy, doccano]):
    ...     print(text.labels())
    ['O', 'O', 'O', 'B-LOC', 'O']
    ['B-LOC', 'O', 'O', 'B-PER']
    """
    name = source_name(source)
    found = []
    for number, record in iter_json_records(source, encoding):
        if not is_rejected(record):
            found.append(text_of_record(record, f"{name}, line {number}", alignment=alignment))
    return found


def write_json_spans(texts: Iterable[AnnotatedText], target: Target, *, style: str = "prodigy") -> None:
    """Write texts with marked spans as JSON Lines.

    Parameters
    ----------
    texts : iterable of AnnotatedText
        The texts.
    target : path or open text file
        A path is written atomically; one that ends in ``.gz`` gets a gzip file.
    style : {"prodigy", "doccano"}, default="prodigy"
        "prodigy": "text", "tokens" and "spans". "doccano": "text" and "label", without the tokens.

    See Also
    --------
    read_json_spans : The way back.

    Examples
    --------
    >>> import sys
    >>> from dualfield.io import AnnotatedText, write_json_spans
    >>> text = AnnotatedText.align("in New York", [(3, 11, "LOC")])
    >>> write_json_spans([text], sys.stdout, style="doccano")
    {"text": "in New York", "label": [[3, 11, "LOC"]]}
    """
    if style not in STYLES:
        raise ValueError(f"The 'style' parameter of write_json_spans must be one of {STYLES}. Got {style!r} instead.")
    write_lines(target, (json.dumps(record_of_text(text, style), ensure_ascii=False) for text in texts))


def record_of_text(text: AnnotatedText, style: str) -> Record:
    """Return the object that a tool reads."""
    if style == "doccano":
        return {"text": text.text, "label": [list(span) for span in text.character_spans]}
    tokens = [
        {"text": token, "start": start, "end": end, "id": at, "ws": text.text[end : end + 1] == " "}
        for at, (token, start, end) in enumerate(text.tokens)
    ]
    marked = [
        {"start": begin, "end": end, "token_start": start, "token_end": stop - 1, "label": kind}
        for (begin, end, kind), (_, start, stop) in zip(text.character_spans, text.spans, strict=True)
    ]
    return {"text": text.text, "tokens": tokens, "spans": marked}


def is_rejected(record: Mapping[str, Any]) -> bool:
    """Tell whether an annotator has rejected or skipped a text, so that what is marked in it is not the truth."""
    if record.get("answer", "accept") != "accept":
        return True
    tasks = _annotations(record)
    return bool(tasks) and all(isinstance(one, dict) and one.get("was_cancelled") is True for one in tasks or ())


def text_of_record(record: Record, place: str, *, alignment: str = "strict", is_labelled: bool = True) -> AnnotatedText:
    """Return the text of an object; with `is_labelled` its spans too, which must then be there."""
    text = _text(record, place)
    tokens = _tokens(record, text, place)
    spans = _character_spans(record, text, place) if is_labelled else []
    try:
        return AnnotatedText.align(text, spans, tokens, alignment=alignment)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def _text(record: Record, place: str) -> str:
    data = record.get("data")
    if isinstance(data, dict):  # Label Studio, where the text may have any name
        texts = [value for value in data.values() if isinstance(value, str)]
        found = data.get("text", texts[0] if len(texts) == 1 else None)
    else:
        found = record.get("text", data)  # Doccano had its text in "data" once
    if found is None:
        raise ValueError(f"{place}: has no text; {_EXPECTED}.")
    return checked_text(found, "the text", place)


def _tokens(record: Record, text: str, place: str) -> list[Token] | None:
    """Return the tokens of a record, but for white space, if it has any."""
    given = record.get("tokens")
    if given is None:
        return None
    if not isinstance(given, list):
        raise ValueError(f'{place}: "tokens" must be a list. Got {shortened(given)} instead.')
    found: list[Token] = []
    behind = 0
    for token in given:
        start, end = _ends(token)
        if not (_is_place(start) and _is_place(end) and behind <= start < end <= len(text)):
            raise ValueError(
                f'{place}: "tokens" must have "start" and "end", from left to right within the text. '
                f"Got {shortened(token)} instead."
            )
        if token.get("text", text[start:end]) != text[start:end]:
            raise ValueError(f"{place}: the token {shortened(token)} is {text[start:end]!r} in the text.")
        behind = end
        if text[start:end].strip():
            found.append((text[start:end], start, end))
    return found


def _annotations(record: Mapping[str, Any]) -> list[Any] | None:
    """Return the annotations of a task of Label Studio."""
    found = record.get("annotations", record.get("completions")) if isinstance(record.get("data"), dict) else None
    return found if isinstance(found, list) else None


def _character_spans(record: Record, text: str, place: str) -> list[CharacterSpan]:
    tasks = _annotations(record)
    if isinstance(record.get("data"), dict):
        if not tasks:
            raise ValueError(f"{place}: has no annotation. Export annotated tasks only.")
        kept = [one for one in tasks if not (isinstance(one, dict) and one.get("was_cancelled") is True)]
        kept = [one for one in kept if isinstance(one, dict) and one.get("ground_truth") is True] or kept
        if len(kept) != 1:
            raise ValueError(
                f"{place}: has {len(kept)} annotations; expected one. Mark the right one as ground truth, or remove "
                "the others."
            )
        results = kept[0].get("result") if isinstance(kept[0], dict) else None
        values = [one.get("value") for one in _listed(results, '"result"', place) if isinstance(one, dict)]
        items = [value for value in values if isinstance(value, dict) and "labels" in value]
    else:
        key = next((key for key in _SPANS if key in record), None)
        if key is None and "answer" not in record:
            raise ValueError(f"{place}: has no spans; {_EXPECTED}.")
        items = [] if key is None else _listed(record[key] or [], f'"{key}"', place)
    return [_span(item, text, place) for item in items]


def _listed(items: Any, name: str, place: str) -> list[Any]:
    if not isinstance(items, list):
        raise ValueError(f"{place}: {name} must be a list. Got {shortened(items)} instead.")
    return items


def _span(item: Any, text: str, place: str) -> CharacterSpan:
    """Return a span: [start, end, label], or an object."""
    said = None
    if isinstance(item, list) and len(item) == 3:
        start, end, label = item
    elif isinstance(item, dict):
        start, end = _ends(item)
        label, said = item.get("label", item.get("labels")), item.get("text")
    else:
        start = end = label = None
    if isinstance(label, list) and len(label) == 1:
        label = label[0]
    if not (_is_place(start) and _is_place(end) and isinstance(label, str) and label):
        raise ValueError(
            f'{place}: a span must be [start, end, label], or an object with "start", "end" and one "label". '
            f"Got {shortened(item)} instead."
        )
    if isinstance(said, str) and text[start:end] != said:
        start, end = _in_utf16(text, start), _in_utf16(text, end)
        if text[start:end] != said:
            raise ValueError(f"{place}: the span {shortened(item)} is {text[start:end][:40]!r} in the text.")
    return start, end, checked_text(label, "the label of a span", place)


def _ends(item: Any) -> tuple[Any, Any]:
    """Return where an object says that it begins and ends, under the names that tools use."""
    if not isinstance(item, dict):
        return None, None
    return item.get("start", item.get("start_offset")), item.get("end", item.get("end_offset"))


def _is_place(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _in_utf16(text: str, place: int) -> int:
    """Return the place of the character that begins behind so many units of 16 bits, as browsers count them."""
    return len(text.encode("utf-16-le")[: 2 * place].decode("utf-16-le", "ignore"))
