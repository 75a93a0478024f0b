"""Span constraints against the definition of a well-formed sequence, checked label by label."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from dualfield.structures import Chain, Scores, span_constraints


def well_formed(labels, scheme):
    """Read the sequence from left to right with the open span in mind."""
    open_kind = None
    for label in labels:
        letter, _, kind = label.partition("-")
        if letter in "IE" and open_kind != kind:
            return False
        if scheme == "BIOES" and letter in "OBS" and open_kind is not None:
            return False
        open_kind = kind if letter in "BI" else None
    return scheme == "BIO" or open_kind is None


@pytest.mark.parametrize(
    ("scheme", "labels"),
    [
        ("BIO", ["O", "B-X", "I-X", "B-Y", "I-Y"]),
        ("BIOES", ["B-X", "I-X", "E-X", "S-X", "O", "B-Y", "E-Y"]),
        ("BIO", ["I-X", "B-X"]),
    ],
)
def test_exactly_the_well_formed_sequences_are_allowed(scheme, labels):
    chain = Chain(len(labels), **span_constraints(labels, scheme))
    for length in (1, 2, 3, 4):
        node = np.zeros((length, len(labels)))
        for codes in product(range(len(labels)), repeat=length):
            finite = np.isfinite(chain.score(Scores(node), codes)[0])
            assert finite == well_formed([labels[c] for c in codes], scheme), codes


def test_types_with_dashes():
    rules = span_constraints(["B-in-law", "I-in-law", "I-in"])
    np.testing.assert_array_equal(rules["allowed"], [[1, 1, 0], [1, 1, 0], [1, 0, 1]])


@pytest.mark.parametrize("label", ["X-NP", "B", "B-", "O-NP", "", "BI-NP", "E-NP"])
def test_labels_that_mark_no_span_are_named(label):
    with pytest.raises(ValueError, match=r"labels\[1\] must be 'O' or 'B-type' or 'I-type' for scheme 'BIO'. Got "):
        span_constraints(["O", label])


def test_unknown_scheme():
    with pytest.raises(ValueError, match=r"'scheme' parameter of span_constraints must be 'BIO' or 'BIOES'. Got 'IO'"):
        span_constraints(["O"], "IO")
