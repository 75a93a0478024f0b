"""Spans and their probabilities: every labelling of a short sequence, one by one, is the reference."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dualfield import CRF
from dualfield.metrics import spans
from dualfield.models import spans as module
from dualfield.models.spans import PredictedSpan, predict_spans
from dualfield.structures import Chain, Scores
from tests.reference import enumeration
from tests.structures.problems import problems

POOL = ["O", "B-x", "I-x", "E-x", "S-x", "B-y", "I-y", "E-y", "S-y", "B", "I"]


def expected_spans(sequence, names, temperature):
    """Spans of the best labelling, with the summed probability of all labellings that have them."""
    if not sequence.node:
        return []
    _, best = enumeration.best_first(sequence)[0]
    probability = enumeration.probabilities(sequence, temperature)
    return [
        (span, sum(p for p, y in probability if span in spans([names[code] for code in y])))
        for span in spans([names[code] for code in best])
    ]


def by_clique(problem):
    """The scores of a problem as models give them: by clique, the cost among the node scores."""
    scores = problem.scores
    n_edges = int(np.maximum(scores.lengths - 1, 0).sum())
    shared, per_edge = problem.chain._transition_rows(scores.transition, n_edges)
    node = scores.node if problem.cost is None else scores.node + problem.cost
    return Scores(node, scores.offsets, shared if per_edge is None else per_edge, start=scores.start, stop=scores.stop)


@settings(max_examples=150, deadline=None)
@given(problems(max_labels=4, max_length=4, max_order=2), st.permutations(POOL), st.sampled_from([0.3, 1.0, 2.0]))
def test_probability_is_that_of_all_labellings_with_the_span(problem, pool, temperature):
    assume(problem.solvable)
    # -inf among the node scores of a model is not something that training can lead to.
    assume(np.isfinite(problem.scores.node).all())
    names = pool[: problem.chain.n_labels]
    found = predict_spans(problem.chain, by_clique(problem), names, "O", 0.0, temperature, None)
    for mine, sequence in zip(found, problem.sequences, strict=True):
        expected = expected_spans(sequence, names, temperature)
        assert [tuple(span[:3]) for span in mine] == [span for span, _ in expected]
        np.testing.assert_allclose([span.probability for span in mine], [p for _, p in expected], rtol=1e-9, atol=1e-12)


X = [
    [["the"], ["big"], ["dog"], ["ran"]],
    [["dog"], ["dog"], ["ran"]],
    [["Ann"], ["ran"], ["Ann"], ["ran"]],
    [["the"], ["dog"], ["big"]],
]
BIO = [
    ["B-NP", "I-NP", "I-NP", "O"],
    ["B-NP", "I-NP", "O"],
    ["B-NP", "O", "B-NP", "B-VP"],
    ["B-NP", "B-NP", "O"],
]
BIOES = [
    ["B-NP", "I-NP", "E-NP", "O"],
    ["B-NP", "E-NP", "O"],
    ["S-NP", "O", "S-NP", "O"],
    ["B-NP", "E-NP", "S-NP"],
]
# Labels that break the rules of their scheme: spans begin with I.
ILL_FORMED = [["I-NP", "I-NP", "B-NP", "O"], ["O", "I-NP", "O"], ["I-NP", "I-VP", "I-NP", "O"], ["O", "B-NP", "I-NP"]]


@pytest.mark.parametrize(
    ("y", "params"),
    [
        (BIO, {}),
        (BIO, {"constraints": "BIO"}),
        (BIO, {"structure": Chain(order=2)}),
        (BIO, {"structure": Chain(order=2), "constraints": "BIO"}),
        (BIO, {"pair_features": True, "start_stop": True}),
        (BIO, {"pair_features": True, "structure": Chain(order=2), "constraints": "BIO"}),
        (BIOES, {}),
        (BIOES, {"constraints": "BIOES"}),
        (ILL_FORMED, {}),
    ],
    ids=str,
)
def test_models(y, params):
    model = CRF(C=0.7, **params).fit(X, y)
    names = model.classes_.tolist()
    for sequence, found, predicted in zip(X, model.predict_spans(X), model.predict(X), strict=True):
        assert [tuple(span[:3]) for span in found] == spans(predicted)
        everything = [list(labels) for labels in itertools.product(names, repeat=len(sequence))]
        probability = np.exp(model.score_sequences([sequence] * len(everything), everything))
        for span in found:
            having = [tuple(span[:3]) in spans(labels) for labels in everything]
            assert span.probability == pytest.approx(probability[having].sum(), abs=1e-10)


def test_single_token_span_is_a_marginal():
    model = CRF().fit([[["a"]], [["b"]]], [["B-x"], ["O"]])
    (span,) = model.predict_spans([[["a"]]])[0]
    assert span == PredictedSpan("x", 0, 1, pytest.approx(model.predict_proba([[["a"]]])[0][0, 0]))


def test_temperature_of_the_model_counts():
    model = CRF(temperature=0.3).fit(X, BIO)
    scores = model.decision_scores(X[:1])
    names = model.classes_.tolist()
    everything = [list(labels) for labels in itertools.product(names, repeat=4)]
    codes = model.labels_.encode(everything)
    copies = Scores(np.tile(scores.node, (len(codes) // 4, 1)), np.arange(0, len(codes) + 1, 4), scores.transition)
    raw = model.structure_.score(copies, codes) / 0.3
    weight = np.exp(raw - raw.max())
    for span in model.predict_spans(X[:1])[0]:
        having = [tuple(span[:3]) in spans(labels) for labels in everything]
        assert span.probability == pytest.approx(weight[having].sum() / weight.sum())


def test_portions_do_not_change_the_answer(monkeypatch):
    model = CRF(pair_features=True, constraints="BIO").fit(X, BIO)
    together = model.predict_spans(X)
    monkeypatch.setattr(module, "_PORTION", 40)
    assert model.predict_spans(X) == together


def test_least_probability():
    model = CRF().fit(X, BIO)
    everything = [span for spans_of_one in model.predict_spans(X) for span in spans_of_one]
    cut = sorted(span.probability for span in everything)[len(everything) // 2]
    kept = [span for spans_of_one in model.predict_spans(X, min_proba=cut) for span in spans_of_one]
    assert kept == [span for span in everything if span.probability >= cut]
    assert 0 < len(kept) < len(everything)


def test_another_label_outside():
    y = [[label.replace("O", "none") for label in labels] for labels in BIO]
    expected = CRF(tol=1e-10).fit(X, BIO).predict_spans(X)
    found = CRF(tol=1e-10).fit(X, y).predict_spans(X, outside="none")
    assert [[tuple(span[:3]) for span in some] for some in found] == [
        [tuple(span[:3]) for span in some] for some in expected
    ]
    mine, theirs = ([span.probability for some in answer for span in some] for answer in (found, expected))
    np.testing.assert_allclose(mine, theirs, rtol=1e-4)


def test_sequences_without_spans():
    model = CRF().fit([[["a"], ["b"]]], [["B-x", "O"]])
    assert model.predict_spans([[], [["b"]]]) == [[], []]
    assert model.predict_spans([]) == []


def test_flat_input():
    model = CRF().fit(X, BIO)
    flat = [item for sequence in X for item in sequence]
    assert model.predict_spans(flat, lengths=[len(sequence) for sequence in X]) == model.predict_spans(X)


def test_labels_that_mark_no_spans():
    model = CRF().fit([[["a"]], [["b"]]], [["name"], ["O"]])
    with pytest.raises(ValueError, match=r"^Labels must begin with 'B-'.*outside='O'\. Got 'name' instead\.$"):
        model.predict_spans([[["a"]]])
    with pytest.raises(ValueError, match="Got 1 instead"):
        CRF().fit([[["a"]], [["b"]]], [[1], [2]]).predict_spans([[["a"]]])


def test_bad_least_probability():
    model = CRF().fit(X, BIO)
    with pytest.raises(ValueError, match="The 'min_proba' parameter of predict_spans"):
        model.predict_spans(X, min_proba=-0.5)
