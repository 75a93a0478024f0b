"""The spans of the best labelling, each with the probability of exactly that span."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Flags, Floats
from dualfield.metrics import spans
from dualfield.models.listings import SpanList
from dualfield.structures import Chain, Scores, SemiMarkov, Structure

__all__ = ["PredictedSpan", "SpanInterval"]

# Copies of scores are made in portions of this many numbers.
_PORTION = 2**21


class PredictedSpan(NamedTuple):
    """A span of a predicted labelling.

    Attributes
    ----------
    type : str
        What is behind the dash of its labels.
    start, stop : int
        Its nodes are ``start`` to ``stop - 1``.
    probability : float
        That of all labellings together that have exactly this span.

    Examples
    --------
    >>> from dualfield.models.spans import PredictedSpan
    >>> kind, start, stop, probability = PredictedSpan("NP", 0, 2, 0.9)
    >>> stop - start
    2
    """

    type: str
    start: int
    stop: int
    probability: float


class Restriction(NamedTuple):
    """Labels that some nodes of an example may have: a row of flags for each of these nodes, counted from its first."""

    example: int
    nodes: NDArray[np.int64]
    allowed: Flags


def restricted_copies(
    structure: Structure, scores: Scores, wanted: Sequence[Restriction]
) -> Iterator[tuple[slice, Flags, Scores]]:
    """Give out copies of examples in which only the allowed labels are left, some at a time.

    Parameters
    ----------
    structure : Structure
        Of the examples.
    scores : Scores
        Of a batch; transitions by clique, shared or for each edge.
    wanted : sequence of Restriction
        One copy is made for each.

    Yields
    ------
    slice
        Which of the restrictions these are.
    bool array of shape (n_nodes, n_labels)
        The labels that are left.
    Scores
        An example for each of them, with scores of -inf for the other labels.
    """
    per_edge = scores.transition is not None and scores.transition.ndim == 2
    first_edge = structure.edge_offsets(scores.shape)
    row_size = scores.n_labels + (scores.transition.shape[1] if per_edge and scores.transition is not None else 0)
    row_size += 0 if scores.segment is None else len(scores.segment) * scores.segment.shape[1] // max(1, scores.n_nodes)
    example = np.array([one.example for one in wanted], dtype=np.int64)
    portion = np.cumsum(scores.lengths[example] * row_size) // _PORTION if len(wanted) else example
    cuts = [0, *(np.flatnonzero(np.diff(portion)) + 1).tolist(), len(wanted)]
    for begin, end in itertools.pairwise(cuts):
        if begin == end:
            continue
        offsets, rows = _ranges(scores.offsets[:-1], scores.lengths, example[begin:end])
        allowed = np.ones((len(rows), scores.n_labels), dtype=bool)
        chosen = wanted[begin:end]
        places = np.concatenate([at + one.nodes for at, one in zip(offsets[:-1], chosen, strict=True)])
        allowed[places] = np.concatenate([one.allowed for one in chosen])
        transition, segment = scores.transition, scores.segment
        if per_edge or segment is not None:
            edges = _ranges(first_edge[:-1], np.diff(first_edge), example[begin:end])[1]
            transition = transition[edges] if per_edge and transition is not None else transition
            segment = None if segment is None else segment[edges]
        node = np.where(allowed, scores.node[rows], -np.inf)
        shape = scores.shape.take(example[begin:end])
        yield (
            slice(begin, end),
            allowed,
            Scores(node, None, transition, start=scores.start, stop=scores.stop, shape=shape, segment=segment),
        )


class SpanInterval(NamedTuple):
    """A span of a predicted labelling, and how far models that might have been trained as well differ about it.

    Attributes
    ----------
    type : str
        What is behind the dash of its labels.
    start, stop : int
        Its nodes are ``start`` to ``stop - 1``.
    probability : float
        The mean over the models of the probability of exactly this span.
    std : float
        The standard deviation over the models.

    Examples
    --------
    >>> from dualfield.models.spans import SpanInterval
    >>> SpanInterval("NP", 0, 2, 0.9, 0.05).std
    0.05
    """

    type: str
    start: int
    stop: int
    probability: float
    std: float


class Marked(NamedTuple):
    """A span that a labelling marks: its example, type and place."""

    example: int
    type: str
    start: int
    stop: int


def marked_spans(
    structure: Structure, scores: Scores, codes: NDArray[np.int32], classes: Sequence[Any], outside: Any
) -> list[Marked]:
    """Return the spans of a labelling of each example, from left to right.

    Parameters
    ----------
    structure : Chain or SemiMarkov
        The structure.
    scores : Scores
        Whose shape the examples have.
    codes : int32 array of shape (n_nodes,)
        The labellings.
    classes : sequence
        The labels, in the order of their codes.
    outside : str
        The label outside of all spans; the kinds of segments know theirs.

    Returns
    -------
    list of Marked
        The spans of all examples.
    """
    shape = scores.shape
    if isinstance(structure, SemiMarkov):
        kinds, parts = structure.kinds, structure.parts_of(codes, shape).edges
        rows = np.flatnonzero(parts >= 0)
        rows = rows[~kinds.outside[parts[rows]]]
        example = np.searchsorted(structure.edge_offsets(shape), rows, side="right") - 1
        start = structure.edge_nodes(shape)[rows] - shape.offsets[example]
        stop = start + 1 + rows - structure.segment_row(shape, example, start, start + 1)
        names = [kinds.names[part] for part in parts[rows]]
        return [Marked(*one) for one in zip(example.tolist(), names, start.tolist(), stop.tolist(), strict=True)]
    if not isinstance(structure, Chain):
        raise ValueError(f"Spans are parts of sequences; this model labels a {type(structure).__name__}.")
    names, labels = _names(classes, outside), codes.tolist()
    return [
        Marked(i, kind, start, stop)
        for i, (begin, end) in enumerate(itertools.pairwise(scores.offsets.tolist()))
        for kind, start, stop in spans([names[code] for code in labels[begin:end]])
    ]


def span_probabilities(
    structure: Structure,
    scores: Scores,
    found: Sequence[Marked],
    classes: Sequence[Any],
    outside: Any,
    temperature: float,
    n_jobs: int | None,
) -> Floats:
    """Return the probabilities of given spans: of all labellings together that have exactly this span.

    Parameters
    ----------
    structure, scores, classes, outside
        As in :func:`marked_spans`.
    found : sequence of Marked
        The spans.
    temperature : float
        That of the model.
    n_jobs : int or None
        Threads.

    Returns
    -------
    array of shape (n_spans,)
        Probabilities.
    """
    if isinstance(structure, SemiMarkov):
        each = structure.marginals(scores, temperature=temperature, cliques="each", n_jobs=n_jobs).clique
        assert each is not None
        places = np.array([(one.example, one.start, one.stop) for one in found], dtype=np.int64).reshape(-1, 3)
        rows = structure.segment_row(scores.shape, *places.T)
        kinds = list(structure.kinds.names)
        return np.minimum(each[rows, [kinds.index(one.type) for one in found]], 1.0)
    assert isinstance(structure, Chain)
    names = _names(classes, outside)
    letters = {kind: _letters(names, kind) for kind in {one.type for one in found}}
    ways = [
        [Restriction(i, *way) for way in _ways(letters[kind], start, stop, int(scores.lengths[i]))]
        for i, kind, start, stop in found
    ]
    owner = np.repeat(np.arange(len(found)), [len(some) for some in ways])
    wanted = [one for some in ways for one in some]
    total = structure.log_partition(scores, temperature=temperature, n_jobs=n_jobs) if wanted else np.zeros(0)
    probability = np.zeros(len(found))
    for part, allowed, copies in restricted_copies(structure, scores, wanted):
        mine = np.array([one.example for one in wanted[part]], dtype=np.int64)
        values = _log_partition(structure, allowed, copies, temperature, n_jobs)
        np.add.at(probability, owner[part], np.exp((values - total[mine]) / temperature))
    return np.minimum(probability, 1.0)


def predict_spans(
    structure: Structure,
    scores: Scores,
    classes: Sequence[Any],
    outside: Any,
    min_proba: float,
    temperature: float,
    n_jobs: int | None,
) -> list[list[PredictedSpan]]:
    """Find the spans of the best labelling of each example, and their probabilities.

    A span has a probability as the rules of :func:`dualfield.metrics.spans` read it: that of all labellings in which
    these rules find the same type, start and stop. Where a model may break the rules of its scheme, ``I-x`` after
    ``O`` begins a span, in the best labelling as in all others; a model with constraints has no such labellings.

    Parameters
    ----------
    structure : Chain or SemiMarkov
        The structure.
    scores : Scores
        Of the examples.
    classes : sequence
        The labels, in the order of their codes.
    outside : str
        The label outside of all spans.
    min_proba : float
        Spans that are less probable are left out.
    temperature : float
        That of the model.
    n_jobs : int or None
        Threads.

    Returns
    -------
    list of lists of PredictedSpan
        From left to right.
    """
    found = marked_spans(structure, scores, structure.argmax(scores, n_jobs=n_jobs), classes, outside)
    probability = span_probabilities(structure, scores, found, classes, outside, temperature, n_jobs)
    result: list[list[PredictedSpan]] = SpanList(SpanList() for _ in range(scores.n_examples))
    for (i, kind, start, stop), p in zip(found, probability.tolist(), strict=True):
        if p >= min_proba:
            result[i].append(PredictedSpan(kind, start, stop, p))
    return result


def _names(classes: Sequence[Any], outside: Any) -> list[str]:
    """Return the labels with "O" for the one outside of spans, after checking that the others mark spans."""
    names = ["O" if label == outside else label for label in classes]
    for name in names:
        if not isinstance(name, str) or (name != "O" and name.partition("-")[0] not in ("B", "I", "E", "S")):
            raise ValueError(
                f"Labels must begin with 'B-', 'I-', 'E-' or 'S-' to mark spans, or be outside={outside!r}. "
                f"Got {name!r} instead."
            )
    return names


def _letters(names: Sequence[str], kind: str) -> NDArray[np.str_]:
    """Return the letter before the dash for the labels of a type, and an empty string for others."""
    parts = [name.partition("-") for name in names]
    return np.array([letter if letter != "O" and rest == kind else "" for letter, _, rest in parts], dtype="U1")


def _ways(letters: NDArray[np.str_], start: int, stop: int, length: int) -> Iterator[tuple[NDArray[np.int64], Flags]]:
    """List the ways in which a labelling can have a span: nodes, and the labels that each may have.

    No labelling has the span in two ways, and each way limits the nodes one by one.
    """
    inner, goes_on, member = np.isin(letters, ["I", "E"]), np.isin(letters, ["B", "I"]), letters != ""
    anything = np.ones(len(letters), dtype=bool)
    # A span begins with B or S, or with I or E where the node before does not go on with it; so at its end.
    heads = [(anything, member)] if start == 0 else [(anything, member & ~inner), (~goes_on, inner)]
    tails = [(member, anything)] if stop == length else [(member & ~goes_on, anything), (goes_on, ~inner)]
    for before, head in heads:
        for tail, after in tails:
            rows = np.tile(inner & goes_on, (stop - start + 2, 1))
            rows[0], rows[-1] = before, after
            if stop - start == 1:
                rows[1] = head & tail
            else:
                rows[1], rows[-2] = head & goes_on, inner & tail
            inside = slice(0 if start > 0 else 1, len(rows) if stop < length else len(rows) - 1)
            if rows[inside].any(axis=1).all():
                yield np.arange(start - 1, stop + 1)[inside], rows[inside]


def _log_partition(chain: Chain, allowed: Flags, copies: Scores, temperature: float, n_jobs: int | None) -> Floats:
    """Return log-partitions; -inf where the chain allows none of the labellings that are left."""
    if chain.allowed is None and chain.allowed_start is None and chain.allowed_stop is None:
        return chain.log_partition(copies, temperature=temperature, n_jobs=n_jobs)
    # Lost labels cost 1: the best labelling is free if it keeps to those that are left.
    cost = Scores(np.where(allowed, 0.0, -1.0), copies.offsets)
    possible = chain.log_partition(cost, temperature=0.0, n_jobs=n_jobs) == 0.0
    # Where there is none, ask about all labellings, so that there is an answer to put aside.
    anything = ~np.repeat(possible, copies.lengths)
    node = np.where(anything[:, None], 0.0, copies.node)
    whole = Scores(node, copies.offsets, copies.transition, start=copies.start, stop=copies.stop)
    return np.where(possible, chain.log_partition(whole, temperature=temperature, n_jobs=n_jobs), -np.inf)


def _ranges(
    starts: NDArray[np.int64], sizes: NDArray[np.int64], chosen: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return offsets of the chosen ranges put one after another, and the places of all their members."""
    offsets = np.concatenate([[0], np.cumsum(sizes[chosen])]).astype(np.int64)
    return offsets, np.repeat(starts[chosen] - offsets[:-1], sizes[chosen]) + np.arange(offsets[-1])
