"""Segments of sequences: which labels mark them, and the shape of sequences that are cut into them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.shapes import Shape
from dualfield.data.span_labels import marks_spans, scheme_of, span_labels

__all__ = ["SegmentShape"]

BEGIN, INSIDE, END, SINGLE = range(4)


class Kinds(NamedTuple):
    """The kinds of segments that labels mark.

    Attributes
    ----------
    names : list of str
        What is behind the dash, or the label itself where labels have none.
    roles : int32 array of shape (n_kinds, 4)
        The label of the first node, of nodes inside, of the last node, and of a segment of one node; -1 for none.
    outside : bool array of shape (n_kinds,)
        Which are none: their nodes stand alone.
    are_runs : bool
        Whether a segment is a run of one label.
    """

    names: list[str]
    roles: NDArray[np.int32]
    outside: NDArray[np.bool_]
    are_runs: bool


def kinds_of(labels: Sequence[str], outside: str) -> Kinds:
    """Find the kinds of segments, in the order of their first labels, or raise an error that names a label."""
    marked = [label for label in labels if label != outside]
    are_runs = not marks_spans(["O", *marked])
    letters: dict[str, tuple[int, ...]] = {"B": (BEGIN,), "I": (INSIDE,), "E": (END,), "S": (SINGLE,)}
    if not are_runs and scheme_of(marked) == "BIO":
        letters = {"B": (BEGIN, SINGLE), "I": (INSIDE, END)}
    if not are_runs and "O" in marked:
        raise ValueError(
            f"The label 'O' is not that of a segment, such as 'B-x', and SemiMarkov has outside={outside!r}. Leave "
            "outside at 'O', or give the nodes outside of segments one label."
        )
    rows: dict[str, list[int]] = {}
    for code, label in enumerate(labels):
        if label == outside:
            rows[label] = [-1, -1, -1, code]
        elif are_runs:
            rows[label] = [code] * 4
        else:
            letter, _, kind = label.partition("-")
            for role in letters[letter]:
                rows.setdefault(kind, [-1] * 4)[role] = code
    for kind, row in rows.items():
        if row[SINGLE] < 0 and min(row[BEGIN], row[END]) < 0:
            raise ValueError(
                f"The labels of {kind!r} cannot make a segment: one begins with 'B-{kind}'. Where 'I-' begins "
                "segments, as in IOB1, convert the labels first by dualfield.metrics.convert_scheme."
            )
    is_outside = np.array([name == outside for name in rows], dtype=bool)
    return Kinds(list(rows), np.array(list(rows.values()), dtype=np.int32).reshape(-1, 4), is_outside, are_runs)


def segment_lengths(kinds: Kinds, codes: NDArray[np.int32], shape: Shape) -> NDArray[np.int64]:
    """Return the numbers of nodes of the segments that labels mark; those with unknown labels are cut there."""
    if not len(codes):
        return np.zeros(0, dtype=np.int64)
    alone = np.isin(codes, kinds.roles[kinds.outside, SINGLE]) | (codes < 0)
    begins = np.zeros(len(codes), dtype=bool)
    begins[shape.offsets[:-1][shape.lengths > 0]] = True
    if kinds.are_runs:
        begins[1:] |= codes[1:] != codes[:-1]
    else:
        begins |= np.isin(codes, kinds.roles[:, [BEGIN, SINGLE]])
    begins |= alone
    begins[1:] |= alone[:-1]
    first = np.flatnonzero(begins)
    return np.diff(first, append=len(codes))[~alone[first]]


def check_continued(kinds: Kinds, names: Sequence[str], codes: NDArray[np.int32], shape: Shape) -> None:
    """Raise an error that names the first label inside of a segment, such as I-x, before which none of it goes on."""
    if kinds.are_runs:
        return
    # Labels that go on a segment, by what it is of; and labels behind which one of that goes on.
    going_on, open_kind = (np.full(len(names), -1) for _ in range(2))
    for kind, (begin, inside, end, _) in enumerate(kinds.roles.tolist()):
        for table, some in ((going_on, (inside, end)), (open_kind, (begin, inside))):
            table[[code for code in some if code >= 0 and not kinds.outside[kind]]] = kind
    first = np.zeros(len(codes), dtype=bool)
    first[shape.offsets[:-1][shape.lengths > 0]] = True
    before = np.roll(codes, 1)
    is_known = (codes >= 0) & (first | (before >= 0))
    goes_on = ~first & (open_kind[before] == going_on[codes])
    wrong = np.flatnonzero(is_known & (going_on[codes] >= 0) & ~goes_on)
    if not wrong.size:
        return
    node = int(wrong[0])
    example = int(np.searchsorted(shape.offsets, node, side="right")) - 1
    label, why = names[codes[node]], "stand first" if first[node] else f"follow {names[before[node]]!r}"
    raise ValueError(
        f"The labels of example {example} are not allowed: y[{example}][{node - int(shape.offsets[example])}] is "
        f"{label!r}, which may not {why}: every segment begins with 'B-'. Where 'I-' begins segments, as in IOB1, "
        "convert the labels first by dualfield.metrics.convert_scheme."
    )


def first_segments(n_nodes: NDArray[np.int64], nodes: NDArray[np.int64], max_length: int) -> NDArray[np.int64]:
    """Return how many segments of sequences of given lengths begin before given nodes of them."""
    full = np.maximum(n_nodes - max_length, 0)
    more = np.maximum(nodes - full, 0)
    return np.asarray(np.minimum(nodes, full) * max_length + more * (n_nodes - full) - more * (more - 1) // 2)


@dataclass(frozen=True, eq=False)
class SegmentShape(Shape):
    """The sizes of sequences whose labels may be given as spans.

    Parameters
    ----------
    offsets : int64 array of shape (n_examples + 1,)
        Sequence i has nodes ``offsets[i]`` to ``offsets[i + 1] - 1``.
    scheme : {"BIO", "BIOES"}, default="BIO"
        How labels mark spans.
    outside : str, default="O"
        The label of nodes outside of all spans.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.structures import SegmentShape
    >>> SegmentShape(np.array([0, 4])).flat_labels([[(1, 3, "NP")]])
    [['O', 'B-NP', 'I-NP', 'O']]
    """

    scheme: str = "BIO"
    outside: str = "O"

    def _taken(self, offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> Self:
        return type(self)(offsets, self.scheme, self.outside)

    def flat_labels(self, y: Any, name: str = "y", *, partly: bool = False) -> Any:
        """Return spans as labels, and label sequences as they are.

        Spans are (start, stop, type), (type, start, stop), or as ``predict_spans`` returns them, with probabilities.
        """
        if len(y) != self.n_examples:
            return y
        found = list(y)
        for i, (labels, n) in enumerate(zip(found, self.lengths.tolist(), strict=True)):
            if isinstance(labels, (list, tuple)) and (
                any(_looks_like_a_span(one) for one in labels) or (n and not labels)
            ):
                found[i] = self._marked(f"{name}[{i}]", labels, n)
        return super().flat_labels(found, name, partly=partly)

    def _marked(self, place: str, spans: Sequence[Any], n: int) -> list[str]:
        named = []
        for at, span in enumerate(spans):
            read = _span_of(span)
            if read is None:
                raise ValueError(
                    f"{place}[{at}] must be a span, (start, stop, type) or (type, start, stop). Got {span!r} instead."
                )
            named.append(read)
        try:
            labels = span_labels(named, n, self.scheme)
        except ValueError as error:
            raise ValueError(f"{place} must be spans of its {n} nodes. {error}") from None
        return [self.outside if label == "O" else label for label in labels]


def _looks_like_a_span(entry: Any) -> bool:
    """Tell a span from a label, and from several labels that a node may have."""
    return isinstance(entry, (tuple, list)) and any(isinstance(one, (int, np.integer)) for one in entry)


def _span_of(entry: Any) -> tuple[str, int, int] | None:
    """Return type, start and stop of a span; None for what is none."""
    if not isinstance(entry, (tuple, list)) or len(entry) < 3:
        return None
    kind, start, stop, *more = entry if isinstance(entry[0], str) else (entry[2], *entry[:2], *entry[3:])
    are_places = all(isinstance(one, (int, np.integer)) for one in (start, stop))
    are_probabilities = all(isinstance(one, (float, np.floating)) for one in more)
    return (kind, int(start), int(stop)) if isinstance(kind, str) and are_places and are_probabilities else None


def read_pairs(X: Any) -> tuple[list[Any], list[Any]] | None:
    """Take apart sequences that come with features of their segments, tuples (nodes, segments); None if X has none."""
    if not isinstance(X, list) or not X or not all(isinstance(one, tuple) and len(one) == 2 for one in X):
        return None
    if not all(np.ndim(one[1]) == 2 for one in X):
        return None
    return [one[0] for one in X], [one[1] for one in X]


def check_rows(segments: Sequence[Any], offsets: NDArray[np.int64], max_length: int) -> None:
    """Raise an error where the number of rows is not that of the segments."""
    n_nodes = np.diff(offsets)
    for i, (rows, wanted) in enumerate(zip(segments, first_segments(n_nodes, n_nodes, max_length), strict=True)):
        if np.shape(rows)[0] != wanted:  # sparse ones have no length
            raise ValueError(
                f"X[{i}][1] must have {wanted} rows, one for each segment of at most {max_length} of its {n_nodes[i]} "
                f"nodes. Got {np.shape(rows)[0]} instead."
            )


def check_max_length(max_length: ArrayLike | None, lengths: NDArray[np.int64]) -> int:
    """Return the greatest length of segments: that of the training data unless it is given."""
    longest = int(lengths.max(initial=1))
    if max_length is None:
        return longest
    given = int(max_length)  # type: ignore[arg-type]
    if longest > given:
        raise ValueError(
            f"max_length={given} is too short for {int((lengths > given).sum())} of the {len(lengths)} segments of y, "
            f"the longest of which has {longest} nodes. Set max_length={longest}, or leave those out."
        )
    return given
