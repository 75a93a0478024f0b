"""Label schemes: spans survive every conversion, and labels that break their scheme are named."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualfield.metrics import SchemeError, convert_scheme, span_labels, span_scores, spans
from dualfield.structures import span_constraints

SCHEMES = ("IOB1", "BIO", "BIOES")


@st.composite
def marked(draw):
    """Draw spans that do not overlap, some side by side, and a length."""
    found, at = [], 0
    for _ in range(draw(st.integers(0, 5))):
        start = at + draw(st.integers(0, 2))
        at = start + draw(st.integers(1, 3))
        found.append((draw(st.sampled_from(["A", "B-x", "é", ""])), start, at))
    return found, at + draw(st.integers(0, 2))


@given(marked(), st.sampled_from(SCHEMES))
def test_spans_come_back(drawn, scheme):
    found, length = drawn
    labels = span_labels(reversed(found), length, scheme)
    assert len(labels) == length
    assert spans(labels) == found


@given(st.lists(marked(), min_size=1, max_size=4), st.sampled_from(SCHEMES), st.sampled_from(SCHEMES))
def test_round_trips_are_exact(drawn, source, to):
    y = [span_labels(*one, source) for one in drawn]
    there = convert_scheme(y, to)
    assert convert_scheme(y, to, source=source) == there == convert_scheme(y, to, source="any")
    assert convert_scheme(there, source) == y
    scores = span_scores(y, there)
    assert scores.overall.correct == scores.overall.found == scores.overall.support == sum(len(one) for one, _ in drawn)


@pytest.mark.parametrize("scheme", ["BIO", "BIOES"])
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_rules_are_those_of_the_constraints(scheme, length):
    """All labellings of two types: what a constrained model may predict is what is accepted, and nothing else."""
    names = ["O", *(f"{prefix}-{kind}" for prefix in scheme if prefix != "O" for kind in "XY")]
    rules = span_constraints(names, scheme)
    for codes in itertools.product(range(len(names)), repeat=length):
        allowed = (
            rules["allowed_start"][codes[0]]
            and rules["allowed_stop"][codes[-1]]
            and all(rules["allowed"][pair] for pair in itertools.pairwise(codes))
        )
        labels = [names[code] for code in codes]
        if allowed:
            assert convert_scheme(labels, scheme, source=scheme) == labels
        else:
            with pytest.raises(SchemeError):
                convert_scheme(labels, scheme, source=scheme)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_every_labelling_follows_one_scheme_at_most(length):
    """IOB1 is what `span_labels` writes, and no other labelling; so a file with a span tells its scheme."""
    names = ["O", "B-X", "I-X", "B-Y", "I-Y", "E-X", "S-X"]
    for labels in itertools.product(names, repeat=length):
        fitting = []
        for scheme in SCHEMES:
            canonical = span_labels(spans(labels), length, scheme) == list(labels)
            try:
                convert_scheme(labels, "BIO", source=scheme)
            except SchemeError:
                assert not canonical
            else:
                assert canonical
                fitting.append(scheme)
        assert len(fitting) <= 1 or set(labels) == {"O"}


@pytest.mark.parametrize(
    ("labels", "source", "place", "said"),
    [
        ([["O"], ["O", "I-X"]], "bio", (1, 1), "'I-X' may not follow 'O' in BIO."),
        ([["I-X"]], "IOB2", (0, 0), "'I-X' may not stand first in BIO."),
        ([["B-X", "O"]], "IOBES", (0, 1), "'O' may not follow 'B-X' in BIOES."),
        ([["B-X", "I-X"]], "BIOES", (0, 1), "'I-X' may not stand last in BIOES."),
        ([["B-X"]], "iob1", (0, 0), "'B-X' may not stand first in IOB1."),
        ([["B-X", "S-X"]], "BIO", (0, 1), "'S-X' is no label in BIO."),
        ([["B-"]], None, (0, 0), "'B-' has no type behind its dash in BIO."),
        ([["B-X", "I-X"], ["O", "I-Y", "B-Y"]], None, (1, 1), "'I-Y' may not follow 'O' in BIO."),
    ],
)
def test_labels_that_break_a_scheme_are_named(labels, source, place, said):
    with pytest.raises(SchemeError) as caught:
        convert_scheme(labels, "BIO", source=source)
    assert (caught.value.sequence, caught.value.position) == place
    assert caught.value.reason == said
    assert str(caught.value) == f"labels[{place[0]}][{place[1]}]: {said}"


def test_any_reads_as_conlleval_does():
    assert convert_scheme([["O", "I-X", "B-X", "E-Y"]], "BIOES", source="any") == [["O", "S-X", "S-X", "S-Y"]]


def test_forms_of_input():
    assert convert_scheme([], "BIOES") == []
    assert convert_scheme([[]], "BIOES") == [[]]
    assert convert_scheme(np.array(["B-X", "I-X"]), "BIOES") == ["B-X", "E-X"]
    assert convert_scheme((np.array(["B-X"]), ("O",)), "BIOES") == [["S-X"], ["O"]]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: convert_scheme([["O"]], "IOB3"), "'to' parameter of convert_scheme must be one of 'IOB1', 'BIO'"),
        (lambda: convert_scheme([["O"]], source="all"), "'source' parameter of convert_scheme .* or 'any'. Got 'all'"),
        (lambda: convert_scheme([["NN"]]), r"labels\[0\]\[0\] must be 'O' or begin with"),
        (lambda: span_labels([("X", 0, 2), ("Y", 1, 3)], 3), r"\('X', 0, 2\) and \('Y', 1, 3\) overlap"),
        (lambda: span_labels([("X", 2, 4)], 3), r"\('X', 2, 4\) must have a token, and lie within 3 labels"),
        (lambda: span_labels([("X", 1, 1)], 3), "must have a token"),
    ],
)
def test_wrong_arguments(call, said):
    with pytest.raises(ValueError, match=said):
        call()
