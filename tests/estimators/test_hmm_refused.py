"""What HMMs refuse, and what they say: the argument, what was expected, what came, and where."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dualfield import DiscriminativeHMM

X = [["a", "b", "a"], ["b", "a"]]
Y = [["u", "v", "u"], ["v", "u"]]


def refused(message, X=X, y=Y, fit=None, error=ValueError, **parameters):
    with pytest.raises(error, match=message):
        DiscriminativeHMM(**{"eta": 0.0, **parameters}).fit(X, y, **(fit or {}))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"eta": -1.0}, "The 'eta' parameter of DiscriminativeHMM must be a float in [0, inf). Got -1.0 instead."),
        ({"eta": np.nan}, "The 'eta' parameter"),
        ({"eta": "0"}, "The 'eta' parameter"),
        ({"floor": 0.0}, "The 'floor' parameter of DiscriminativeHMM must be a float in (0, inf)"),
        ({"floor": 1.0}, "The 'floor' parameter of DiscriminativeHMM must be a float in (0, 1). Got 1.0"),
        ({"floor": 0.6, "eta": 0.1}, "must be below 1 / 2"),
        ({"smoothing": -0.1}, "The 'smoothing' parameter of DiscriminativeHMM must be a float in [0, inf). Got -0.1"),
        ({"smoothing": {"start": "x"}}, "The 'smoothing' parameter"),
        (
            {"smoothing": {"stop": 1.0}},
            "must have no keys but 'start', 'transition' and 'emission'. Got 'stop' instead",
        ),
        ({"smoothing": {"emission": [1.0, 2.0]}}, "has 2 values for emissions; X has 1 streams"),
        ({"prior": "flat"}, "The 'prior' parameter of DiscriminativeHMM must be 'prob', 'count', 'uniform', or a dict"),
        ({"prior": {"stop": [1.0]}}, "with keys among ['start', 'transition', 'emission']"),
        ({"prior": {"start": [1.0, 2.0, 1.0]}}, "must have shape (2,) for 'start': the training data has 2 states."),
        ({"prior": {"emission": np.ones((2, 3))}}, "for 'emission': the training data has 2 states and 2 symbols."),
        ({"prior": {"start": [1.0, -1.0]}}, "must have finite numbers of at least 0 for 'start'"),
        ({"prior": {"start": [1.0, np.nan]}}, "must have finite numbers of at least 0 for 'start'"),
        ({"prior": {"start": ["a", "b"]}}, "must have numbers for 'start'"),
        ({"loss": "zero_one"}, "The 'loss' parameter of DiscriminativeHMM must be 'hamming' or an array"),
        ({"loss": np.ones((2, 2))}, "with zeros on the diagonal. Got shape (2, 2) instead"),
        ({"loss": np.zeros((3, 3))}, "of shape (2, 2)"),
        ({"loss": [[0.0, -1.0], [1.0, 0.0]]}, "of at least 0"),
        ({"min_count": 0}, "The 'min_count' parameter"),
        ({"rare": "forms"}, "The 'rare' parameter of DiscriminativeHMM must be None, a callable or one of ['shape']"),
        ({"unknown": "drop"}, "The 'unknown' parameter of DiscriminativeHMM must be one of"),
        ({"solver": "lbfgs"}, "The 'solver' parameter"),
        ({"tol": 0.0}, "The 'tol' parameter"),
        ({"max_iter": 0}, "The 'max_iter' parameter"),
        ({"max_columns": 0}, "The 'max_columns' parameter"),
        ({"n_blocks": "all"}, "The 'n_blocks' parameter"),
        ({"warm_start": 1}, "The 'warm_start' parameter"),
        ({"verbose": -1}, "The 'verbose' parameter"),
    ],
)
def test_parameters(parameters, message):
    refused(re.escape(message), **parameters)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([], ValueError, "X must have at least one sequence"),
        ([["a"], []], ValueError, "X[1] is empty: a sequence must have at least one symbol. Leave it out."),
        ([np.array([1]), np.array([], dtype=int)], ValueError, "X[1] is empty"),
        ("ab", TypeError, "X must be a list of sequences of symbols. Got str instead."),
        ({"a": 1}, TypeError, "X must be a list of sequences of symbols. Got dict instead."),
        (["ab", "ba"], TypeError, "X[0] must be a list or array of symbols. Got str instead."),
        ([["a", 1, "b"], ["a", "b"]], TypeError, "X[0][1] must be of type str, as the symbols before it. Got int"),
        ([[1, 2, 3], [1, "b"]], TypeError, "X[1][1] must be of type int, as the symbols before it. Got str"),
        ([["a", None, "b"], ["a", "b"]], TypeError, "X[0][1] must be of type str, as the symbols before it. Got None"),
        ([[1, 2, float("nan")], [1, 2]], TypeError, "X[0][2] must be of type int, as the symbols before it. Got nan"),
        ([[0.5, 2, 3], [1, 2]], TypeError, "X[0][0] must be a str or an int. Got 0.5 instead. Cut numbers into bins"),
        ([np.array([0.5, 1.0, 2.0]), np.array([1.0, np.nan])], TypeError, "X[0][0] must be a str or an int. Got 0.5"),
        ([[{"w": 1}, "b", "c"], ["a", "b"]], TypeError, "X[0][0] must be a str or an int. Got dict instead."),
        ([[("a", 1), "b", ("a", 1)], [("b", 2)] * 2], TypeError, "X[0][1] must be a tuple of symbols, one for each"),
        ([[("a", 1), ("b",), ("a", 1)], [("b", 2)] * 2], ValueError, "X[0][1] has 1 symbols; expected 2, as in X[0]"),
        ([[("a", 1), ("b", {}), ("a", 1)], [("b", 2)] * 2], TypeError, "X[0][1][1] must be of type int"),
        ([[(), (), ()], [(), ()]], ValueError, "X[0][0] has 0 symbols; expected 1"),
        ([[1, 2, 2**70], [1, 2]], ValueError, "Symbols in X must fit in 64 bits"),
        ([np.array([1, 2, 2**63 + 1], dtype=np.uint64)] * 2, ValueError, "must fit in 64 bits"),
        (np.ones((5, 2), dtype=int), ValueError, "X is one array of shape (5, 2): give lengths, or a list"),
        (np.array([["a"], ["b"]]), ValueError, "X is one array of shape (2, 1): give lengths"),
        (np.ones(5, dtype=int), ValueError, "X is one array of shape (5,): give lengths"),
        ([np.ones((3, 1, 1), dtype=int)] * 2, TypeError, "X[0] must be a list or array of symbols. Got an array"),
    ],
)  # fmt: skip
def test_observations(X, error, message):
    refused(re.escape(message), X=X, error=error)


def test_flat_observations():
    refused("'lengths' must sum to the number of rows of X, 5", X=np.arange(5), fit={"lengths": [2, 2]})
    refused(
        "Got an array of float64 instead. Cut numbers into bins", X=np.ones(5), fit={"lengths": [3, 2]}, error=TypeError
    )
    refused(r"X\[1\] is empty", X=np.arange(5), y=[[0] * 3, [], [1] * 2], fit={"lengths": [3, 0, 2]})


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (Y[:1], ValueError, "y has 1 examples; X has 2."),
        ([["u", "v"], ["v", "u"]], ValueError, "y[0] has 2 labels; X[0] has 3 nodes."),
        ([["u", None], ["v", "u"]], ValueError, "y[0] has 2 labels; X[0] has 3 nodes."),
        ([np.array([1, 0]), np.array([1, 0])], ValueError, "y[0] has 2 labels; X[0] has 3 nodes."),
        ([["u", 0.5, "u"], ["v", "u"]], TypeError, "y[0][1] must be of type str"),
        ([[0.5, 1, 1], [1, 1]], TypeError, "y[0][0] must be a str, an int or a bool"),
        ([[None] * 3, [None] * 2], ValueError, "y must have at least one state that is known."),
        ([["u", set(), "v"], ["v", None]], ValueError, "y[0][1] is an empty set"),
    ],
)
def test_states(y, error, message):
    refused(re.escape(message), y=y, error=error)


def test_states_never_seen():
    """A prior for more states than the labels have."""
    prior = {"transition": np.ones((3, 3))}
    refused(
        re.escape("must have shape (2, 2) for 'transition': the training data has 2 states. Got shape (3, 3)"),
        prior=prior,
    )
    two = {"emission": [np.ones((2, 2)), np.ones((3, 2))]}
    refused(
        re.escape("must have shape (2, 2) for 'emission' of stream 1"),
        X=[[(s, s) for s in x] for x in X],
        prior=two,
    )
    refused(
        "a list of 2 arrays for 'emission'", X=[[(s, s) for s in x] for x in X], prior={"emission": np.ones((2, 2))}
    )
    with pytest.raises(ValueError, match=r"y\[0\]\[0\] is 'w', a label not seen in training"):
        DiscriminativeHMM(0.0).fit(X, Y).score_samples(X, [["w", "u", "u"], ["u", "v"]])


@pytest.mark.parametrize(
    ("hidden", "message"),
    [
        ([[True, False, True]], "hidden has 1 sequences; X has 2."),
        ([[True, False], [True, True]], "hidden[0] must be 3 bool, one for each symbol of X[0]. Got shape (2,)"),
        ([[1, 0, 1], [1, 1]], "hidden[0] must be 3 bool, one for each symbol of X[0]. Got shape (3,) and dtype int64"),
    ],
)
def test_hidden(hidden, message):
    refused(re.escape(message), fit={"hidden": hidden})


def test_what_is_not_hidden_must_be_known():
    hidden = [[True, False, True], [True, True]]
    refused(re.escape("hidden[0][1] is False, so that the state is known; y[0][1] does not tell it."),
            y=[["u", None, "u"], ["v", "u"]], fit={"hidden": hidden})  # fmt: skip


def test_weights():
    refused("sample_weight must have shape", fit={"sample_weight": [1.0]})
    refused("sample_weight must be finite numbers", fit={"sample_weight": [1.0, -1.0]})
    refused("must leave a sequence with a weight above zero", fit={"sample_weight": [0.0, 0.0]})


def test_margins_need_a_prior_without_zeros():
    for parameters in ({"smoothing": 0.0}, {"prior": "count", "smoothing": 0.0}):
        refused(
            "With eta > 0 the prior of DiscriminativeHMM must have no zeros; its .* Use smoothing",
            eta=0.1,
            **parameters,
        )
    refused("its emission table has 1", eta=0.1, prior={"emission": [[1.0, 0.0], [1.0, 1.0]]})
    DiscriminativeHMM(0.0, smoothing=0.0).fit(X, Y)


def test_impossible_sequences_are_named():
    model = DiscriminativeHMM(0.0, smoothing=0.0).fit([["a", "b"], ["a", "b"]], [["u", "v"]] * 2)
    assert model.predict([["a", "b"]]) == [["u", "v"]]
    assert model.predict([["a", "unheard"]]) == [["u", "v"]]
    bad = [["a", "b"], ["a", "a"]]
    for ask in (
        model.predict,
        model.predict_proba,
        model.predict_marginals,
        model.score_samples,
        model.filter,
        lambda X: model.k_best(X, 2),
        lambda X: model.score_sequences(X, [["u", "v"]] * 2),
        lambda X: model.sample_states(X, 2),
        lambda X: model.predict(X, known=[[None, None]] * 2),
        lambda X: model.score(X, [["u", "v"]] * 2),
    ):
        with pytest.raises(ValueError, match=r"X\[1\] is impossible under the model.*Fit with smoothing above 0"):
            ask(bad)
    with pytest.raises(ValueError, match=r"X\[0\] is impossible"):
        model.score_samples([["a", "b"]], [["v", "v"]])
    step = model.start_filter()
    step.step("a")
    with pytest.raises(ValueError, match="Observation 1, 'a', is impossible under the model after those before it"):
        step.step("a")
    assert step.n_steps == 1  # it stands where it stood
    np.testing.assert_allclose(step.step("b"), [0.0, 1.0])


def test_other_observations_than_in_training():
    model = DiscriminativeHMM(0.0).fit(X, Y)
    with pytest.raises(ValueError, match="X has 2 streams of symbols; the model was trained on 1"):
        model.predict([[("a", "b")]])
    with pytest.raises(TypeError, match=r"Symbols in X must be of type str, as in training. Got int instead"):
        model.predict([[1, 2]])
    both = DiscriminativeHMM(0.0).fit([[("a", 1)]], [["u"]])
    with pytest.raises(TypeError, match="Symbols in stream 1 of X must be of type int"):
        both.predict([[("a", "b")]])
    with pytest.raises(ValueError, match=r"X\[1\] is empty"):
        model.predict([["a"], []])


def test_draws():
    model = DiscriminativeHMM(0.0).fit(X, Y)
    for length in (0, 1.5, [1, 2], [1, 0, 2], "3"):
        with pytest.raises(ValueError, match=r"The 'length' parameter of DiscriminativeHMM.sample must be an int in"):
            model.sample(3, length)
    with pytest.raises(ValueError, match="The 'n_sequences' parameter"):
        model.sample(0)


def test_questions_before_fit():
    model = DiscriminativeHMM()
    for ask in (
        lambda: model.predict(X), lambda: model.filter(X), model.start_filter, model.sample,
        lambda: model.score_samples(X),
        lambda: model.transmat_, lambda: model.missing_mass_, lambda: model.predict_proba(X, known=Y),
    ):  # fmt: skip
        with pytest.raises(NotFittedError):
            ask()


def test_messages_name_the_argument():
    X, y = [["a", "b", "c"]] * 50, [["x", "y", "x"]] * 50
    with pytest.raises(
        ValueError, match=r"The 'smoothing' parameter of DiscriminativeHMM must leave no entry .* lower floor"
    ):
        DiscriminativeHMM(eta=0.1, smoothing=1e-10).fit(X, y)
    model = DiscriminativeHMM(eta=0.0).fit([["a", "b"]], [["x", "y"]])
    wrong = [
        ([["q", None]], r"known\[0\]\[0\] is 'q'"),
        ([["x"]], r"known\[0\]"),
        ([[set(), None]], r"known\[0\]\[0\] is an"),
    ]
    for known, message in wrong:
        for ask in (model.predict, model.predict_proba):
            with pytest.raises(ValueError, match=message):
                ask([["a", "b"]], known=known)
    with pytest.raises(ValueError, match=r"^y\[0\]\[0\] is 'q'"):
        model.score_samples([["a", "b"]], [["q", None]])
