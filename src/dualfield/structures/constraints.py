"""Constraints on label sequences that mark spans: BIO and BIOES."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Codes
from dualfield.data.shapes import Shape

# Rules by the letter before the dash.
_PREFIXES = {"BIO": "BIO", "BIOES": "BIOES"}
_OPEN = "BI"  # letters after which a span may go on
_INNER = "IE"  # letters that go on with a span
_UNFINISHED = {"BIO": "", "BIOES": "BI"}  # letters after which the span must go on


def span_constraints(labels: Sequence[str], scheme: str = "BIO") -> dict[str, NDArray[np.bool_]]:
    """Return which labels may follow each other when labels mark spans, as keyword arguments for :class:`Chain`.

    BIO: ``B-x`` begins a span of type x, ``I-x`` goes on with it and may follow only ``B-x`` or ``I-x``; ``O`` is
    outside.
    BIOES: a span of several nodes is ``B-x``, then any number of ``I-x``, then ``E-x``; a span of one node is ``S-x``.

    Parameters
    ----------
    labels : sequence of str
        The labels in the order of their codes.
    scheme : {"BIO", "BIOES"}, default="BIO"
        How spans are marked.

    Returns
    -------
    dict
        ``allowed`` of shape (n_labels, n_labels), ``allowed_start`` and ``allowed_stop`` of shape (n_labels,).

    Examples
    --------
    >>> from dualfield.structures import Chain, Scores, span_constraints
    >>> labels = ["B-NP", "I-NP", "O"]
    >>> rules = span_constraints(labels)
    >>> rules["allowed"].astype(int)
    array([[1, 1, 1],
           [1, 1, 1],
           [1, 0, 1]])
    >>> rules["allowed_start"]
    array([ True, False,  True])
    >>> Chain(3, **rules).argmax(Scores([[0.0, 2.0, 1.5], [0.0, 2.0, 0.0]]))  # O, I-NP is not allowed
    array([0, 1], dtype=int32)
    """
    if scheme not in _PREFIXES:
        raise ValueError(
            f"The 'scheme' parameter of span_constraints must be 'BIO' or 'BIOES'. Got {scheme!r} instead."
        )
    parts = [_split(label, position, scheme) for position, label in enumerate(labels)]
    must_go_on = _UNFINISHED[scheme]
    allowed = np.array(
        [
            [
                (before in _OPEN and kind == kind_before) if letter in _INNER else before not in must_go_on
                for letter, kind in parts
            ]
            for before, kind_before in parts
        ],
        dtype=bool,
    ).reshape(len(parts), len(parts))
    return {
        "allowed": allowed,
        "allowed_start": np.array([letter not in _INNER for letter, _ in parts], dtype=bool),
        "allowed_stop": np.array([letter not in must_go_on for letter, _ in parts], dtype=bool),
    }


def _split(label: str, position: int, scheme: str) -> tuple[str, str]:
    letter, dash, kind = str(label).partition("-")
    whole = letter == "O" and not dash
    if not whole and (letter == "O" or letter not in _PREFIXES[scheme] or len(letter) != 1 or not dash or not kind):
        shape = " or ".join(f"'{prefix}-type'" for prefix in _PREFIXES[scheme] if prefix != "O")
        raise ValueError(f"labels[{position}] must be 'O' or {shape} for scheme {scheme!r}. Got {label!r} instead.")
    return letter, kind


_IOB1 = (
    " In BIO every span begins with B-. Where I- begins a span, as in IOB1, convert the labels first by "
    "dualfield.metrics.convert_scheme, or set constraints=None."
)


def check_labels(rules: Mapping[str, Any], names: Sequence[Any], codes: Codes, shape: Shape, constraints: Any) -> None:
    """Raise an error that names the first label of training data that the rules of a chain forbid."""
    first, last = shape.offsets[:-1][shape.lengths > 0], shape.offsets[1:][shape.lengths > 0] - 1
    inner = np.ones(len(codes), dtype=bool)
    inner[first] = False
    at = np.flatnonzero(inner)
    wrong: list[tuple[int, str]] = []
    for key, nodes, why in (("allowed_start", first, "stand first"), ("allowed_stop", last, "stand last")):
        flags = rules.get(key)
        if flags is not None:
            some = nodes[(codes[nodes] >= 0) & ~flags[codes[nodes]]]
            wrong += [(int(some[0]), why)] if some.size else []
    table = rules.get("allowed")
    if table is not None:
        known = at[(codes[at] >= 0) & (codes[at - 1] >= 0)]
        some = known[~table[codes[known - 1], codes[known]]]
        wrong += [(int(some[0]), f"follow {names[codes[some[0] - 1]]!r}")] if some.size else []
    if not wrong:
        return
    node, why = min(wrong)
    example = int(np.searchsorted(shape.offsets, node, side="right")) - 1
    place = f"y[{example}][{node - int(shape.offsets[example])}]"
    label = names[codes[node]]
    hint = _IOB1 if isinstance(constraints, str) and constraints == "BIO" and str(label).startswith("I-") else ""
    raise ValueError(
        f"The labels of example {example} are not allowed: {place} is {label!r}, which may not {why}.{hint}"
    )
