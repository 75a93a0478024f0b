"""Which candidates give their attributes to a vocabulary."""

from __future__ import annotations

import pytest

from dualfield import CRF, CRFCV
from dualfield.data.anchored_rows import AnchoredRows, segment_anchors
from dualfield.structures import Chain, Opened


class Segments(Chain):
    """Every segment of a sentence is a candidate, one after another."""

    empty_label = 0

    def open(self, X, lengths=None):
        anchors, offsets = segment_anchors([len(one) for one in X])
        return Opened(AnchoredRows(X, anchors, ["%x[all]", "%n"], offsets=offsets))


X = [["a", "b"], ["c", "a"]] * 5
Y = [["", "x", ""], ["y", "", ""]] * 5


def test_those_that_are_in_the_output():
    assert list(CRF(Segments()).fit(X, Y).vocabulary_) == ["S0:a b", "S1:2", "S0:c", "S1:1"]


def test_all_where_all_get_weights():
    assert len(CRF(Segments(), features="all").fit(X, Y).vocabulary_) == 7


def test_those_that_may_be_in_the_output():
    """A label that is not known, and a set with a label that is not empty."""
    partly = [["", "x", None], ["y", "", {"", "x"}], ["", "", {""}]]
    model = CRF(Segments()).fit([*X[:2], ["d", "e"]], partly)
    assert list(model.vocabulary_) == ["S0:a b", "S1:2", "S0:b", "S1:1", "S0:c", "S0:a"]


def test_vocabularies_grow_with_more_data():
    model = CRF(Segments(), random_state=0).partial_fit(X, Y)
    model.partial_fit([["d", "e"]], [["x", "", "y"]])
    assert list(model.vocabulary_) == ["S0:a b", "S1:2", "S0:c", "S1:1", "S0:d", "S0:e"]


def test_search_reads_them_the_same_way():
    search = CRFCV(CRF(Segments()), Cs=[1.0], cv=2).fit(X, Y)
    assert list(search.best_estimator_.vocabulary_) == ["S0:a b", "S1:2", "S0:c", "S1:1"]


def test_templates_are_refused():
    with pytest.raises(ValueError, match="template must be None: a Segments has texts with macros of its own"):
        CRF(Segments(), template="U:%x[0,0]").fit(X, Y)


def test_threads_give_the_same_weights():
    one, two = (CRF(Segments(), n_jobs=n_jobs, solver="lbfgs").fit(X, Y) for n_jobs in (1, 2))
    assert one.parameters_.tolist() == two.parameters_.tolist()
