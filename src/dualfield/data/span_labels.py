"""Spans in label sequences: which spans labels mark, and how the schemes IOB1, BIO and BIOES mark them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

__all__ = ["SchemeError", "convert_scheme", "span_labels", "spans"]

Span = tuple[str, int, int]

SCHEMES = {"IOB1": "IOB1", "BIO": "BIO", "IOB2": "BIO", "BIOES": "BIOES", "IOBES": "BIOES"}  # names and their synonyms
ANY = "any"

_PREFIXES = frozenset("BIES")
_GOES_ON = frozenset("BI")  # prefixes after which a span may go on
_INNER = frozenset("IE")  # prefixes that go on with a span, if one of their type is there
_LETTERS = {"IOB1": frozenset("BI"), "BIO": frozenset("BI"), "BIOES": _PREFIXES}


class SchemeError(ValueError):
    """Labels break the rules of their scheme; raised by :func:`convert_scheme`.

    Parameters
    ----------
    reason : str
        What is wrong.
    sequence : int
        The sequence that breaks them.
    position : int
        The label there.

    Examples
    --------
    >>> from dualfield.metrics import SchemeError, convert_scheme
    >>> try:
    ...     convert_scheme([["O", "B-NP"], ["O", "I-NP"]], to="BIOES", source="BIO")
    ... except SchemeError as error:
    ...     error.sequence, error.position
    (1, 1)
    """

    def __init__(self, reason: str, sequence: int, position: int) -> None:
        super().__init__(f"labels[{sequence}][{position}]: {reason}")
        self.reason, self.sequence, self.position = reason, sequence, position


def spans(labels: Sequence[str]) -> list[Span]:
    """Return the spans that a label sequence marks, by conlleval's rules.

    A label is ``O`` or a prefix, a dash and a type. In IOB2 the first token of a span has the prefix ``B``, the others
    ``I``; in IOB1 the first has ``B`` only right after another span of its type; in IOBES the last of several tokens
    has ``E``, a single one ``S``. One rule reads them all, and sequences that break the rules of their scheme: a token
    belongs to the span before it if that ended in ``B`` or ``I``, its own prefix is ``I`` or ``E``, and the types are
    the same; every other token but ``O`` begins a span.

    Parameters
    ----------
    labels : sequence of str
        One label sequence. A label may be a prefix alone; its type is then the empty string.

    Returns
    -------
    list of (type, start, stop)
        The spans from left to right; the tokens of each are ``start`` to ``stop - 1``.

    Raises
    ------
    ValueError
        If a label is not ``O`` and has none of the prefixes.

    See Also
    --------
    span_labels : The way back.
    dualfield.structures.span_constraints : For models that never break the rules.

    Examples
    --------
    >>> from dualfield.metrics import spans
    >>> spans(["B-NP", "I-NP", "B-VP", "O", "I-NP"])
    [('NP', 0, 2), ('VP', 2, 3), ('NP', 4, 5)]
    >>> spans(["S-PER", "B-LOC", "I-LOC", "E-LOC"])
    [('PER', 0, 1), ('LOC', 1, 4)]
    """
    if isinstance(labels, str):
        raise TypeError("'labels' must be a sequence of str. Got str instead.")
    return found_spans(labels.tolist() if isinstance(labels, np.ndarray) else list(labels), "labels")


def span_labels(spans: Iterable[Span], length: int, scheme: str = "BIO") -> list[str]:
    """Return the labels that mark spans.

    Parameters
    ----------
    spans : iterable of (type, start, stop)
        The spans, as :func:`dualfield.metrics.spans` returns them, in any order. They may not overlap.
    length : int
        Number of labels.
    scheme : {"BIO", "IOB1", "BIOES"}, default="BIO"
        How spans are marked; "IOB2" is another name for "BIO", and "IOBES" for "BIOES".

    Returns
    -------
    list of str
        The labels; ``O`` outside of all spans.

    Raises
    ------
    ValueError
        If a span is empty or outside of the sequence, or if two spans overlap.

    See Also
    --------
    dualfield.metrics.spans : The way back.

    Examples
    --------
    >>> from dualfield.metrics import span_labels
    >>> span_labels([("NP", 0, 2), ("NP", 2, 3)], 4)
    ['B-NP', 'I-NP', 'B-NP', 'O']
    >>> span_labels([("NP", 0, 2), ("NP", 2, 3)], 4, scheme="IOB1")
    ['I-NP', 'I-NP', 'B-NP', 'O']
    """
    scheme = scheme_name("span_labels", "scheme", scheme)
    labels = ["O"] * length
    before: Span = ("", 0, 0)
    for span in sorted(spans, key=lambda span: span[1:]):
        kind, start, stop = span
        if not 0 <= start < stop <= length:
            raise ValueError(f"The span {span!r} must have a token, and lie within {length} labels.")
        if start < before[2]:
            raise ValueError(f"The spans {before!r} and {span!r} overlap; a label can mark one of them only.")
        prefixes = ["I"] * (stop - start)
        if scheme != "IOB1" or (start == before[2] > 0 and kind == before[0]):
            prefixes[0] = "B"
        if scheme == "BIOES":
            prefixes[-1] = "E" if len(prefixes) > 1 else "S"
        labels[start:stop] = [f"{prefix}-{kind}" if kind else prefix for prefix in prefixes]
        before = span
    return labels


def convert_scheme(labels: Any, to: str = "BIO", *, source: str | None = None) -> Any:
    """Return label sequences in another scheme; the spans stay the same.

    Labels that follow the rules of their scheme come back unchanged from every other one.

    Parameters
    ----------
    labels : list of label sequences, or one sequence of str
        ``O``, or a prefix, a dash and a type.
    to : {"BIO", "IOB1", "BIOES"}, default="BIO"
        The scheme of the result; "IOB2" is another name for "BIO", and "IOBES" for "BIOES".
    source : str, default=None
        The scheme of `labels`. None: the one whose rules all of them follow, of which there is at most one if there is
        a span. "any": labels are read as :func:`spans` reads them, also where they follow no scheme.

    Returns
    -------
    list of lists of str, or list of str
        The labels in the new scheme.

    Raises
    ------
    SchemeError
        At the first label that breaks the rules of its scheme.

    Examples
    --------
    >>> from dualfield.metrics import convert_scheme
    >>> convert_scheme([["I-PER", "I-PER", "O", "I-LOC"]], to="BIOES")
    [['B-PER', 'E-PER', 'O', 'S-LOC']]
    >>> convert_scheme(["S-LOC", "S-LOC"], to="IOB1")
    ['I-LOC', 'B-LOC']
    """
    to = scheme_name("convert_scheme", "to", to)
    if isinstance(labels, str):
        raise TypeError("'labels' must be a list of label sequences. Got str instead.")
    rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in labels]
    single = bool(rows) and all(isinstance(row, str) for row in rows)
    y = [rows] if single else [list(row) for row in rows]
    if source != ANY:
        source = _detected(y) if source is None else scheme_name("convert_scheme", "source", source, f" or {ANY!r}")
        fault = _first_fault(y, source)
        if fault is not None:
            raise fault
    found = [span_labels(found_spans(row, f"labels[{i}]"), len(row), to) for i, row in enumerate(y)]
    return found[0] if single else found


def scheme_name(function: str, parameter: str, name: str, more: str = "") -> str:
    """Return the usual name of a scheme, or raise an error that names the parameter."""
    if not isinstance(name, str) or name.upper() not in SCHEMES:
        known = ", ".join(map(repr, SCHEMES))
        raise ValueError(
            f"The {parameter!r} parameter of {function} must be one of {known}{more}. Got {name!r} instead."
        )
    return SCHEMES[name.upper()]


def scheme_of(labels: Iterable[str]) -> str:
    """Return the scheme that a set of labels, such as those of a model, belongs to: BIOES if one has E or S."""
    return "BIOES" if any(label.partition("-")[0] in ("E", "S") for label in labels) else "BIO"


def marks_spans(labels: Iterable[str]) -> bool:
    """Tell whether labels are of such a scheme: O, or a prefix and a type, and not O alone."""
    marked = [label for label in labels if label != "O"]
    return bool(marked) and all(label.partition("-")[0] in _PREFIXES for label in marked)


def found_spans(labels: list[Any], name: str) -> list[Span]:
    """Return the spans of a list; `name` is what errors call it."""
    found: list[Span] = []
    before, kind_before = "O", ""
    for at, label in enumerate(labels):
        prefix, kind = _split(label, at, name)
        if prefix in _INNER and before in _GOES_ON and kind == kind_before:
            found[-1] = (kind, found[-1][1], at + 1)
        elif prefix != "O":
            found.append((kind, at, at + 1))
        before, kind_before = prefix, kind
    return found


def _split(label: Any, at: int, name: str) -> tuple[str, str]:
    if not isinstance(label, str):
        raise TypeError(f"{name}[{at}] must be a str. Got {type(label).__name__} instead.")
    if label == "O":
        return label, ""
    prefix, _, kind = label.partition("-")
    if prefix not in _PREFIXES:
        raise ValueError(f"{name}[{at}] must be 'O' or begin with 'B-', 'I-', 'E-' or 'S-'. Got {label!r} instead.")
    return prefix, kind


def _detected(y: list[list[Any]]) -> str:
    """Return the scheme that all labels follow; if there is none, the one that they follow longest."""
    faults = {scheme: _first_fault(y, scheme) for scheme in ("BIO", "BIOES", "IOB1")}
    for scheme, fault in faults.items():
        if fault is None:
            return scheme
    at = {scheme: (fault.sequence, fault.position) for scheme, fault in faults.items() if fault is not None}
    return max(at, key=at.__getitem__)


def _first_fault(y: list[list[Any]], scheme: str) -> SchemeError | None:
    """Return the first label that breaks the rules of a scheme."""
    for sequence, labels in enumerate(y):
        before = "O", ""
        for at, label in enumerate(labels):
            after = _split(label, at, f"labels[{sequence}]")
            said = "has no type behind its dash" if label.endswith("-") else _fault(scheme, before, after)
            if said:
                where = f"may not follow {labels[at - 1]!r}" if at else "may not stand first"
                return SchemeError(f"{label!r} {where if said == 'place' else said} in {scheme}.", sequence, at)
            before = after
        if scheme == "BIOES" and before[0] in _GOES_ON:
            return SchemeError(f"{labels[-1]!r} may not stand last in {scheme}.", sequence, len(labels) - 1)
    return None


def _fault(scheme: str, before: tuple[str, str], after: tuple[str, str]) -> str:
    """Return what is wrong with a label after another; "place" if it is the place."""
    prefix, kind = after
    if prefix != "O" and prefix not in _LETTERS[scheme]:
        return "is no label"
    continues = before[0] in _GOES_ON and kind == before[1] and prefix != "O"
    if scheme == "IOB1":
        return "place" if prefix == "B" and not continues else ""
    if prefix in _INNER and not continues:
        return "place"
    return "place" if scheme == "BIOES" and before[0] in _GOES_ON and prefix not in _INNER else ""
