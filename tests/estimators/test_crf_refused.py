"""Each wrong parameter and input is refused with a message that names it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dualfield import CRF
from dualfield.data import Batch
from dualfield.solvers import SMO, BlockDual
from dualfield.structures import Chain
from tests.estimators.tagging import sentences

X, Y = sentences(8)
NUMBERS = [np.random.default_rng(0).normal(size=(len(xs), 3)) for xs in X]
PARTIAL = [[None, *ys[1:]] for ys in Y]


def wrong(name: str, expected: str, got: str) -> str:
    return rf"The '{name}' parameter of CRF must be {expected}.*Got {got} instead\."


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        *[("C", value, r"a float in \(0, inf\)") for value in (0.0, -1.0, np.inf, np.nan, "1", True, None)],
        *[("l1_ratio", value, r"a float in \[0, (1\]|inf\))") for value in (-0.1, 1.5, np.nan, "half")],
        *[("features", value, r"one of \['observed', 'all'\]") for value in ("some", None, 1)],
        *[("min_freq", value, r"an int in \[0, inf\)") for value in (-1, 1.5, None)],
        *[("temperature", value, r"a float in \(0, inf\)") for value in (0, 0.0, -1.0, np.inf)],
        *[("tol", value, r"a float in \(0, inf\)") for value in (0.0, -1e-3, None)],
        *[("max_iter", value, r"None or an int in \[1, inf\)") for value in (0, -1, 2.5)],
        *[("verbose", value, r"an int in \[0, inf\)") for value in (-1, "yes")],
        *[("start_stop", value, "a bool") for value in (1, "yes", None)],
        *[("warm_start", value, "a bool") for value in (1, None)],
        *[("structure", value, r"a Structure or one of \['chain', .*\]") for value in ("forest", None, Chain)],
        *[("solver", value, r".*'lbfgs', 'passive_aggressive', 'perceptron', 'sgd'\].*") for value in ("smo", None, 3)],
        ("template", 3, "None, a Template or its text"),
    ],
)
def test_parameters(name, value, expected):
    got = ".*" if name == "solver" else str(value).replace("(", r"\(") if isinstance(value, float) else ".*"
    for train in (CRF(**{name: value}).fit, CRF(**{name: value}).partial_fit):
        with pytest.raises(ValueError, match=wrong(name, expected, got)):
            train(X, Y)


def test_a_solver_for_something_else():
    with pytest.raises(ValueError, match=r"The 'solver' parameter of CRF .* an object of dualfield\.solvers.*SMO"):
        CRF(solver=SMO()).fit(X, Y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_freq": 2, "features": "all"}, r"'min_freq' parameter of CRF must be 0 with features='all'.*Got 2\."),
        ({"constraints": "BILOU"}, r"The 'constraints' parameter of CRF must be None, 'BIO', 'BIOES' .*Got 'BILOU'"),
        ({"constraints": np.ones((2, 2), bool)}, r"'constraints' .* shape \(3, 3\).*Got shape \(2, 2\)"),
        ({"constraints": np.ones((3, 3))}, r"'constraints' .* boolean array .* dtype float64"),
        ({"class_weight": {"X": 1.0}}, r"The 'class_weight' parameter of CRF has labels that y does not have: \['X'\]"),
        ({"class_weight": {"O": -1.0}}, r"The 'class_weight' parameter of CRF must be weights of at least 0"),
        ({"class_weight": "even"}, r"The 'class_weight' parameter of CRF must be .*Got 'even'"),
        ({"cost": "zero-one"}, r"The 'cost' parameter of CRF must be None, 'hamming' or an array. Got 'zero-one'"),
        ({"cost": np.ones((3, 3))}, r"The 'cost' parameter of CRF must be .* zeros on the diagonal"),
        ({"cost": np.zeros((2, 2))}, r"The 'cost' parameter of CRF must be .* shape \(3, 3\).*Got shape \(2, 2\)"),
        ({"cost": np.full((3, 3), np.nan)}, r"The 'cost' parameter of CRF must be finite"),
        ({"pair_features": [0]}, r"The 'pair_features' parameter of CRF must be a bool or a list of beginnings"),
        ({"structure": Chain(2)}, r"structure has 2 labels; y has 3"),
        (
            {"structure": Chain(3), "constraints": "BIO"},
            r"constraints must be None if the structure has allowed transitions",
        ),
        (
            {"solver": "sgd", "l1_ratio": 0.5},
            r"solver='sgd' cannot take .*l1_ratio.* Use solver='auto', .*'lbfgs'",
        ),
        ({"solver": BlockDual(memory=10)}, r"The state of the dual takes .* more than .* allowed.*'auto', .*'lbfgs'"),
        ({"template": "U0:%x[0]"}, r"Line 1 of the template"),
    ],
)
def test_settings_that_do_not_fit(settings, message):
    with pytest.raises(ValueError, match=message):
        CRF(**settings).fit(X, Y)


@pytest.mark.parametrize("solver", ["block_dual", "perceptron"])
def test_partly_labelled(solver):
    with pytest.raises(ValueError, match=rf"'{solver}' .*(in part|all their labels).*'lbfgs'"):
        CRF(solver=solver).fit(X, PARTIAL)


def test_columns_of_pair_features():
    with pytest.raises(ValueError, match=r"'pair_features' parameter of CRF must list columns in \[0, 3\)"):
        CRF(pair_features=[3]).fit(NUMBERS, Y)
    with pytest.raises(ValueError, match=r"'pair_features' parameter of CRF must be a bool or a list of columns"):
        CRF(pair_features=["w="]).fit(NUMBERS, Y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([-1.0] + [1.0] * 7, "sample_weight must be finite numbers of at least 0"),
        ([np.nan] + [1.0] * 7, "sample_weight must be finite numbers of at least 0"),
        ([1.0] * 7, r"sample_weight must have shape \(8,\), one for each sequence. Got \(7,\)"),
        (2.0, r"sample_weight must have shape \(8,\)"),
        ([0.0] * 8, "sample_weight and class_weight must leave an example"),
    ],
)
def test_sample_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        CRF().fit(X, Y, sample_weight=weights)


@pytest.mark.parametrize("partial", [False, True])
def test_labels_that_do_not_fit_the_sequences(partial):
    y = PARTIAL if partial else Y
    for change, message in [
        ([*y[:2], y[2][:-1], *y[3:]], rf"y\[2\] has {len(y[2]) - 1} labels; X\[2\] has {len(y[2])} nodes"),
        (y[:-1], "y has 7 examples; X has 8"),
        (
            [*y[:2], [3] * len(y[2]), *y[3:]],
            r"(y\[2\]\[0\]|y\[\d+\]) must be of type str, as other labels are\. Got int",
        ),
        (
            [*y[:2], [1.5] * len(y[2]), *y[3:]],
            r"(y\[2\]\[0\]|y\[\d+\]) must be of type str, as other labels are\. Got float",
        ),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            CRF().fit(X, change)


def test_labels_that_are_none():
    with pytest.raises(ValueError, match=r"y\[1\]\[0\] is an empty set: no label is allowed there"):
        CRF().fit(X, [Y[0], [set(), *Y[1][1:]], *Y[2:]])
    with pytest.raises(ValueError, match="y must have at least one label"):
        CRF().fit([[["a"], ["b"]]], [[None, None]])
    with pytest.raises(TypeError, match=r"y must have a list of labels per example\. Got str"):
        CRF().fit(X, "BIO")


def test_sequences_that_are_no_sequences():
    with pytest.raises(ValueError, match="X must have at least one node"):
        CRF().fit([], [])
    with pytest.raises(ValueError, match="X must have at least one node"):
        CRF().fit([[], []], [[], []])
    for bad in (np.nan, np.inf):
        matrix = NUMBERS[1].copy()
        matrix[0, 2] = bad
        with pytest.raises(ValueError, match=rf"X\[1\]\[0\] has {bad} in column 2; expected a finite number"):
            CRF().fit([NUMBERS[0], matrix, *NUMBERS[2:]], Y)
    with pytest.raises(ValueError, match=r"X\[0\] must be 2-d, of shape \(n_nodes, n_columns\)"):
        CRF().fit([[3, 4]], [["a", "b"]])
    with pytest.raises(TypeError, match=r"X\[0\]\[1\]"):
        CRF().fit([[["a"], 4]], [["a", "b"]])
    with pytest.raises(TypeError, match="X must be a list of examples"):
        CRF().fit("abc", ["x"])
    with pytest.raises(ValueError, match="lengths"):
        CRF().fit(np.ones((4, 2)), [["a"] * 4], lengths=[3])


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.predict(X),
        lambda m: m.predict_single(X[0]),
        lambda m: m.predict_proba(X),
        lambda m: m.score_sequences(X, Y),
        lambda m: m.k_best(X, 2),
        lambda m: m.sample(X),
        lambda m: m.score(X, Y),
        lambda m: m.decision_scores(X),
        lambda m: m.coef_,
        lambda m: m.transitions_,
        lambda m: m.start_,
    ],
)
def test_not_fitted(ask):
    with pytest.raises(NotFittedError, match="This CRF instance is not fitted yet"):
        ask(CRF())


def test_prediction_on_something_else():
    names, numbers = CRF().fit(X, Y), CRF().fit(NUMBERS, Y)
    with pytest.raises(ValueError, match=r"X.*(4|3) columns"):
        numbers.predict([np.ones((2, 4))])
    with pytest.raises(TypeError, match=r"X must be numbers in 3 columns\. Got attributes instead"):
        numbers.predict(X)
    with pytest.raises(TypeError, match=r"X must have attributes, as 'vocabulary' is given\. Got numbers instead"):
        names.predict(NUMBERS)
    with pytest.raises(ValueError, match="X is a Batch with another vocabulary"):
        names.predict(Batch.build([[["something"]]]))
    with pytest.raises(ValueError, match=r"y\[0\]\[0\] is '\?', a label not seen in training"):
        names.score_sequences(X[:1], [["?"] * len(X[0])])
    with pytest.raises(ValueError, match=r"'k' parameter of CRF\.k_best must be an int in \[1, inf\)"):
        names.k_best(X, 0)
    with pytest.raises(ValueError, match="n_samples"):
        names.sample(X, -1)


def test_a_refused_fit_leaves_the_model_as_it_was():
    model = CRF().fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X[:2], Y[:2], sample_weight=[-1.0, 1.0])
    assert model.predict(X) == before


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["I-PER", "O"], r"y\[1\]\[0\] is 'I-PER', which may not stand first. .* as in IOB1, convert"),
        (["O", "I-PER"], r"y\[1\]\[1\] is 'I-PER', which may not follow 'O'. .* as in IOB1, convert"),
    ],
)
def test_labels_that_break_the_constraints_are_named(labels, message):
    with pytest.raises(ValueError, match=message):
        CRF(constraints="BIO").fit([[["a"], ["b"]]] * 2, [["B-PER", "I-PER"], labels])


def test_a_pair_that_a_matrix_forbids_is_named():
    with pytest.raises(ValueError, match=r"y\[0\]\[1\] is 'x', which may not follow 'x'\.$"):
        CRF(constraints=~np.eye(2, dtype=bool)).fit([[["a"], ["b"]], [["c"]]], [["x", "x"], ["y"]])
