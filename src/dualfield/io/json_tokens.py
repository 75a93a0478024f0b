"""JSON with tokens and tags, as data sets of Hugging Face have them: {"tokens": [...], "ner_tags": [...]}."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dualfield.io.json_records import Record, checked_text, iter_json_records, shortened
from dualfield.io.text_lines import Source, Target, source_name, write_lines

_TAGS = ("ner_tags", "tags", "labels")  # the field of the tags, if none is named


def read_json_tokens(
    source: Source,
    *,
    label_names: Sequence[str] | None = None,
    tags: str | None = None,
    encoding: str = "utf-8",
) -> tuple[list[list[str]], list[list[str]]]:
    """Read tokens with tags: JSON Lines, a JSON list, or an object with a list under "data".

    Parameters
    ----------
    source : path, open file, or iterable of str
        A path may lead to a gzip file.
    label_names : sequence of str, default=None
        Names of the tags 0, 1, ..., where tags are integers. None: those that the file has, under "label_names" or
        "features".
    tags : str, default=None
        The field of the tags. None: "ner_tags", "tags" or "labels".
    encoding : str, default="utf-8"
        How characters are stored in files.

    Returns
    -------
    tokens, labels : lists of lists of str
        A list for each sequence.

    Raises
    ------
    ValueError
        If a record has no tokens or tags, or not equally many, or if a tag has no name. The message names file and
        line.

    See Also
    --------
    write_json_tokens : The way back.

    Examples
    --------
    >>> from dualfield.io import read_json_tokens
    >>> read_json_tokens(['{"tokens": ["in", "Gent"], "ner_tags": [0, 1]}'], label_names=["O", "B-LOC"])
    ([['in', 'Gent']], [['O', 'B-LOC']])
    """
    name = source_name(source)
    X, y = [], []
    for number, record in iter_json_records(source, encoding):
        place = f"{name}, line {number}"
        X.append(tokens_of_record(record, place))
        y.append(labels_of_record(record, place, len(X[-1]), label_names=label_names, tags=tags))
    return X, y


def write_json_tokens(
    tokens: Iterable[Sequence[str]],
    labels: Iterable[Sequence[str]],
    target: Target,
    *,
    label_names: Sequence[str] | None = None,
    tags: str = "ner_tags",
) -> None:
    """Write tokens and tags as JSON Lines.

    Parameters
    ----------
    tokens : iterable of sequences of str
        The tokens.
    labels : iterable of sequences of str
        A label for each.
    target : path or open text file
        A path is written atomically; one that ends in ``.gz`` gets a gzip file.
    label_names : sequence of str, default=None
        If it is given, the number of a label in this list is written instead of the label.
    tags : str, default="ner_tags"
        The field of the tags.

    Raises
    ------
    ValueError
        If there are more or fewer labels than tokens, or a label is not in `label_names`.

    See Also
    --------
    read_json_tokens : The way back.

    Examples
    --------
    >>> import sys
    >>> from dualfield.io import write_json_tokens
    >>> write_json_tokens([["in", "Gent"]], [["O", "B-LOC"]], sys.stdout)
    {"tokens": ["in", "Gent"], "ner_tags": ["O", "B-LOC"]}
    """
    codes = None if label_names is None else {name: code for code, name in enumerate(label_names)}
    write_lines(target, _lines(tokens, labels, codes, tags))


def tokens_of_record(record: Record, place: str) -> list[str]:
    """Return the tokens of an object."""
    found = record.get("tokens")
    if not isinstance(found, list):
        raise ValueError(f'{place}: "tokens" must be a list of strings. Got {shortened(found)} instead.')
    return [checked_text(token, f'"tokens"[{at}]', place) for at, token in enumerate(found)]


def labels_of_record(
    record: Record,
    place: str,
    n_tokens: int,
    *,
    label_names: Sequence[str] | None = None,
    tags: str | None = None,
) -> list[str]:
    """Return the labels of an object, one for each token."""
    field = tags or next((name for name in _TAGS if name in record), _TAGS[0])
    given = record.get(field)
    if not isinstance(given, list):
        raise ValueError(f'{place}: "{field}" must be a list of tags. Got {shortened(given)} instead.')
    if len(given) != n_tokens:
        raise ValueError(f'{place}: has {n_tokens} tokens and {len(given)} "{field}"; expected equally many.')
    names = label_names if label_names is not None else names_in(record, field)
    return [_label(tag, names, f'"{field}"[{at}]', place) for at, tag in enumerate(given)]


def names_in(record: Any, field: str | None = None) -> list[str] | None:
    """Return the names of tags that an object knows: its "label_names", or those in its "features".

    Without a field, the first feature that has names counts.
    """
    names = record.get("label_names") if isinstance(record, dict) else None
    if names is None and isinstance(record, dict) and isinstance(record.get("features"), dict):
        features = record["features"]
        chosen = [features.get(field)] if field is not None else [features.get(name) for name in (*_TAGS, *features)]
        names = next((found for found in map(_feature_names, chosen) if found is not None), None)
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names
    return None


def _feature_names(feature: Any) -> Any:
    """Return the names of a ClassLabel, which may be inside of a Sequence."""
    for _ in range(3):
        if isinstance(feature, list) and len(feature) == 1:
            feature = feature[0]
        elif isinstance(feature, dict) and "feature" in feature:
            feature = feature["feature"]
    return feature.get("names") if isinstance(feature, dict) else None


def _label(tag: Any, names: Sequence[str] | None, what: str, place: str) -> str:
    if isinstance(tag, str) and tag:
        return checked_text(tag, what, place)
    if not isinstance(tag, int) or isinstance(tag, bool):
        raise ValueError(f"{place}: {what} must be a string or an integer. Got {shortened(tag)} instead.")
    if names is None:
        raise ValueError(f"{place}: {what} is {tag}, a tag without a name. Name the tags by label_names.")
    if not 0 <= tag < len(names):
        raise ValueError(f"{place}: {what} must be in [0, {len(names)}), the number of names. Got {tag} instead.")
    return names[tag]


def _lines(
    tokens: Iterable[Sequence[str]], labels: Iterable[Sequence[str]], codes: dict[str, int] | None, field: str
) -> Iterator[str]:
    for i, (one, tags) in enumerate(zip(tokens, labels, strict=True)):
        if len(one) != len(tags):
            raise ValueError(f"tokens[{i}] has {len(one)} tokens; labels[{i}] has {len(tags)} labels.")
        written: list[str | int] = list(tags)
        if codes is not None:
            unknown = [tag for tag in tags if tag not in codes]
            if unknown:
                raise ValueError(f"labels[{i}] has {unknown[0]!r}, which is not among the label_names {list(codes)}.")
            written = [codes[tag] for tag in tags]
        yield json.dumps({"tokens": list(one), field: written}, ensure_ascii=False)
