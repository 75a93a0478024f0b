"""Wrong and missing spans, sorted by what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from dualfield.data.span_labels import Span, found_spans
from dualfield.metrics.sequences import paired

Kind = Literal["missed", "spurious", "boundary", "type"]

KINDS: tuple[Kind, ...] = ("missed", "spurious", "boundary", "type")


class SpanError(NamedTuple):
    """A true span that was not found, a predicted one that is not true, or both where they overlap.

    Attributes
    ----------
    kind : {"missed", "spurious", "boundary", "type"}
        See :func:`span_errors`.
    sequence : int
        The sequence that it is in, counted from 0.
    true : (type, start, stop) or None
        The true span; None if the error is spurious.
    predicted : (type, start, stop) or None
        The predicted span; None if the error is missed.

    Examples
    --------
    >>> from dualfield.metrics import SpanError
    >>> SpanError("missed", 0, ("PER", 3, 5), None).kind
    'missed'
    """

    kind: Kind
    sequence: int
    true: Span | None
    predicted: Span | None


def span_errors(y_true: Any, y_pred: Any) -> list[SpanError]:
    """Sort the errors of predicted spans into missed, spurious, boundary and type.

    Each predicted span that is not correct is held against at most one true span that was not found, and vice versa:

    - *type*: they overlap, and the types differ; those with the same bounds are paired first.
    - *boundary*: they overlap and have the same type, but begin or end elsewhere.
    - *spurious*: a predicted span without such a partner.
    - *missed*: a true span without one.

    So precision loses spurious, boundary and type errors, and recall missed, boundary and type errors.

    Parameters
    ----------
    y_true, y_pred : list of label sequences
        The true and the predicted labels, as :func:`spans` reads them.

    Returns
    -------
    list of SpanError
        In the order of the sequences, and from left to right.

    See Also
    --------
    span_scores : Precision, recall and F1.

    Examples
    --------
    >>> from dualfield.metrics import span_errors
    >>> y_true = [["B-PER", "I-PER", "O", "B-LOC", "O", "B-ORG"]]
    >>> y_pred = [["B-PER", "O", "O", "B-ORG", "B-LOC", "O"]]
    >>> for error in span_errors(y_true, y_pred):
    ...     print(error.kind, error.true, error.predicted)
    boundary ('PER', 0, 2) ('PER', 0, 1)
    type ('LOC', 3, 4) ('ORG', 3, 4)
    spurious None ('LOC', 4, 5)
    missed ('ORG', 5, 6) None
    """
    true, pred = paired(y_true, y_pred)
    return [
        SpanError(kind, i, one, other)
        for i, (labels, guesses) in enumerate(zip(true, pred, strict=True))
        for kind, one, other in compared(found_spans(labels, f"y_true[{i}]"), found_spans(guesses, f"y_pred[{i}]"))
    ]


def compared(true: Sequence[Span], predicted: Sequence[Span]) -> Iterator[tuple[Kind, Span | None, Span | None]]:
    """Give out what is wrong with the spans of one sequence, from left to right."""
    missing = sorted(set(true).difference(predicted), key=_place)
    wrong = sorted(set(predicted).difference(true), key=_place)
    pairs = sorted(_pairs(missing, wrong))
    found: list[tuple[Kind, Span | None, Span | None]] = []
    for _, _, one, other in pairs:  # the closest first
        if one in missing and other in wrong:
            missing.remove(one)
            wrong.remove(other)
            found.append(("boundary" if one[0] == other[0] else "type", one, other))
    found += [("missed", one, None) for one in missing]
    found += [("spurious", None, other) for other in wrong]
    yield from sorted(found, key=lambda error: _place(error[1] or error[2]))


def _place(span: Span | None) -> tuple[int, int]:
    assert span is not None
    return span[1:]


def _pairs(missing: Sequence[Span], wrong: Sequence[Span]) -> Iterator[tuple[int, int, Span, Span]]:
    """Give out spans that overlap, with a rank: the same bounds before the same type, then the longest overlap."""
    for one in missing:
        for other in wrong:
            shared = min(one[2], other[2]) - max(one[1], other[1])
            if shared > 0:
                yield (0 if one[1:] == other[1:] else 1 if one[0] == other[0] else 2), -shared, one, other
