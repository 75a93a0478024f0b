"""A look inside: contributions that add up, and weights by name."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from dualfield import CRF
from dualfield.features import Template
from dualfield.structures import Chain

GENERATOR = np.random.default_rng(4)
WORDS = [f"w{number}" for number in range(12)]
X = [
    [
        {"word": word, "len": float(GENERATOR.normal()), "cap": bool(GENERATOR.integers(2))}
        for word in GENERATOR.choice(WORDS, GENERATOR.integers(1, 7)).tolist()
    ]
    for _ in range(25)
]
NAMES = ["A", "B", "C"]
Y = [
    [NAMES[(int(item["word"][1:]) + (GENERATOR.random() < 0.3)) % 3 if t % 2 else 0] for t, item in enumerate(sequence)]
    for sequence in X
]
NUMBERS = [GENERATOR.normal(size=(len(sequence), 4)) for sequence in X]
ALLOWED = np.array([[True, True, True], [True, True, False], [True, True, True]])


def labelling(codes, names):
    return [names[code] for code in codes]


def check_explanation(model, xseq, explanation):
    """Everything in an explanation against enumeration of all labellings, and against the structure's own scores."""
    scores = model.decision_scores([xseq])
    names = model.classes_.tolist()
    predicted = model.predict_single(xseq)
    assert explanation.labels == predicted
    proba = model.predict_proba([xseq])[0]

    def score(labels):
        return float(model.structure_.score(scores, model.labels_.encode([labels]))[0])

    everything = [(score(list(y)), list(y)) for y in itertools.product(names, repeat=len(predicted))]
    for t, token in enumerate(explanation):
        assert (token.position, token.label) == (t, predicted[t])
        assert token.probability == pytest.approx(proba[t, names.index(predicted[t])])
        rival, _ = max((value, labels) for value, labels in everything if labels[t] != predicted[t])
        if rival == -math.inf:
            assert token.runner_up is None
            assert token.difference == math.inf
            assert token.contributions == []
            continue
        assert token.runner_up == token.alternative[t] != predicted[t]
        assert score(token.alternative) == pytest.approx(rival, abs=1e-9)
        assert token.difference == pytest.approx(score(predicted) - rival, abs=1e-9)
        assert sum(value for _, value in token.contributions) == pytest.approx(token.difference, abs=1e-9)
        sizes = [abs(value) for _, value in token.contributions]
        assert sizes == sorted(sizes, reverse=True)
        assert all(sizes)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"start_stop": True, "l1_ratio": 0.3},
        {"structure": Chain(order=2)},
        {"pair_features": ["word"], "start_stop": True},
        {"pair_features": True, "structure": Chain(order=2), "features": "all"},
        {"constraints": ALLOWED},
        {"constraints": ALLOWED, "structure": Chain(order=2)},
    ],
    ids=str,
)
def test_contributions_sum_to_the_difference(params):
    labels = Y if "constraints" not in params else [[label.replace("C", "A") for label in one] for one in Y]
    labels = [*labels, ["C"]]
    model = CRF(C=2.0, **params).fit([*X, X[0][:1]], labels)
    for xseq in X[:6]:
        check_explanation(model, xseq[:5], model.explain(xseq[:5]))


def test_numeric_columns():
    model = CRF().fit(NUMBERS, Y)
    check_explanation(model, NUMBERS[3], model.explain(NUMBERS[3]))
    assert any(what.startswith("x[2]") for what, _ in model.explain(NUMBERS[3])[0].contributions)
    assert set(model.state_features_) == {(f"x[{j}]", name) for j in range(4) for name in model.classes_.tolist()}
    sparse = [scipy.sparse.csr_array(matrix) for matrix in NUMBERS]
    check_explanation(model, sparse[3], model.explain(sparse[3]))


def test_template():
    rows = [[(item["word"], str(item["cap"])) for item in sequence] for sequence in X]
    model = CRF(template=Template("U0:%x[0,0]\nU1:%x[-1,0]\nB0:%x[0,1]\nB")).fit(rows, Y)
    for xseq in rows[:4]:
        check_explanation(model, xseq[:5], model.explain(xseq[:5]))
    longest = max(rows, key=len)
    assert any("B0:" in what for token in model.explain(longest) for what, _ in token.contributions)


def test_attributes_that_were_not_seen_contribute_nothing():
    model = CRF().fit(X, Y)
    explanation = model.explain([{"word": "new", "strange": 5.0}, {"word": "w1"}])
    assert not any("new" in what or "strange" in what for token in explanation for what, _ in token.contributions)


def test_forced_label_has_no_runner_up():
    # After x comes y, and x comes first.
    chain = Chain(2, allowed=np.array([[False, True], [True, True]]), allowed_start=np.array([True, False]))
    model = CRF(chain).fit([[["a"], ["b"], ["a"]], [["a"], ["b"], ["b"]]], [["x", "y", "x"], ["x", "y", "y"]])
    token = model.explain([["a"], ["b"]])[1]
    assert str(token) == "1 (b): y with probability 1.00; no other label is allowed"


def test_text():
    model = CRF(start_stop=True).fit(X, Y)
    xseq = max(X, key=len)
    token = model.explain(xseq, top=2)[1]
    lines = str(token).splitlines()
    assert lines[0].startswith(f"1 ({token.token}): {token.label} with probability 0.")
    assert lines[0].endswith(f"not {token.runner_up}; the scores differ by {token.difference:.2f}")
    assert len(lines) == 4
    assert lines[-1].endswith(f"{len(token.contributions) - 2} more")
    assert str(model.explain(xseq)).count("with probability") == len(xseq)


def test_empty_sequence():
    explanation = CRF().fit(X, Y).explain([])
    assert len(explanation) == 0
    assert str(explanation) == ""


def test_bad_top():
    with pytest.raises(ValueError, match="The 'top' parameter of explain must be an int"):
        CRF().fit(X, Y).explain(X[0], top=0)


# Weights by name.


def test_weights_by_name_are_the_weights():
    model = CRF(l1_ratio=0.5).fit(X, Y)
    columns = list(model.vocabulary_)
    coef = model.coef_.tocoo()
    names = model.classes_.tolist()
    expected = {
        (columns[column], names[label]): weight
        for label, column, weight in zip(*coef.coords, coef.data, strict=True)
        if weight
    }
    assert model.state_features_ == expected
    assert len(expected) < coef.nnz  # some weights are zero
    transitions = {
        (names[i], names[j]): float(weight) for (i, j), weight in np.ndenumerate(model.transitions_) if weight
    }
    assert model.transition_features_ == transitions


def test_windows_of_higher_order():
    model = CRF(Chain(order=2)).fit(X, Y)
    weights = model.transition_features_
    assert {len(window) for window in weights} == {2, 3}  # at the start, and further on
    assert len(weights) == np.count_nonzero(model.transitions_)


@pytest.mark.parametrize("label", [None, "B"])
@pytest.mark.parametrize("n", [1, 3, 10_000])
def test_top_features_are_the_extremes(n, label):
    model = CRF(C=3.0).fit(X, Y)
    top = model.top_features(n, label)
    state = {key: weight for key, weight in model.state_features_.items() if label in (None, key[1])}
    transition = {key: weight for key, weight in model.transition_features_.items() if label is None or label in key}
    for found, weights, sign in (
        (top.positive, state, 1),
        (top.negative, state, -1),
        (top.likely, transition, 1),
        (top.unlikely, transition, -1),
    ):
        expected = sorted((w for w in weights.values() if sign * w > 0), key=lambda w: -sign * w)[:n]
        assert [weight for _, weight in found] == expected
        assert all(weights[key] == weight for key, weight in found)


def test_top_features_text():
    model = CRF(C=3.0, features="all").fit(X, Y)
    text = str(model.top_features(2))
    assert [line for line in text.splitlines() if not line.startswith(" ")] == [
        "Attributes for a label",
        "Attributes against a label",
        "Transitions, likely",
        "Transitions, unlikely",
    ]
    (attribute, label), weight = model.top_features(2).positive[0]
    assert f"    {weight:+.3f}  {attribute} -> {label}" in text


def test_unknown_label():
    with pytest.raises(ValueError, match=r"^The 'label' parameter of top_features must be a label .* Got 'Z'\.$"):
        CRF().fit(X, Y).top_features(label="Z")


@pytest.mark.parametrize(
    "question",
    [
        lambda model: model.state_features_,
        lambda model: model.transition_features_,
        lambda model: model.top_features(),
        lambda model: model.explain([["a"]]),
        lambda model: model.predict_spans([[["a"]]]),
    ],
)
def test_not_fitted(question):
    with pytest.raises(NotFittedError):
        question(CRF())
