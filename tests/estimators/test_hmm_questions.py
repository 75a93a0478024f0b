"""What a fitted HMM can be asked, against enumeration of all paths of states."""

from __future__ import annotations

import itertools
from decimal import Decimal

import numpy as np
import pytest

from dualfield import DiscriminativeHMM
from tests.estimators.hmm_reference import Reference, drawn, simulated

X, Y = simulated()
TEST = [x for x in simulated(30, seed=4, longest=6)[0] if len(x) <= 5]
MODELS = {
    "counted": lambda: DiscriminativeHMM(0.0).fit(X, Y),
    "trained": lambda: DiscriminativeHMM(0.3, tol=1e-3).fit(X, Y),
    "missing mass": lambda: DiscriminativeHMM(5.0).fit(*drawn(3, 3, 5, 8, 4)),
}


@pytest.fixture(params=MODELS, scope="module")
def model(request):
    return MODELS[request.param]()


def symbols(model, x):
    """Columns of a sequence of one stream; None where a symbol is skipped."""
    columns = {symbol: at for at, symbol in enumerate(model.symbols_.tolist())}
    return [(columns.get(int(symbol)),) for symbol in x]


def test_some_rows_lack_mass():
    mass = MODELS["missing mass"]().missing_mass_
    assert mass["transition"].max() > 0.1
    assert mass["emission"].max() > 0.01


def test_predict_and_k_best(model):
    tables = Reference.of(model)
    for x, path, best in zip(TEST, model.predict(TEST), model.k_best(TEST, 3), strict=True):
        paths, p = tables.paths(symbols(model, x))
        order = np.argsort(-p)
        assert tables.joint(path, symbols(model, x)) == pytest.approx(p.max(), rel=1e-10)
        assert [tables.joint(labels, symbols(model, x)) for labels, _ in best] == pytest.approx(p[order[: len(best)]])
        assert [q for _, q in best] == pytest.approx((p / p.sum())[order[: len(best)]])
        assert len(best) == min(3, len(paths))


def test_predict_proba(model):
    tables = Reference.of(model)
    nodes, edges = model.predict_proba(TEST, pairwise=True)
    for x, node, edge in zip(TEST, nodes, edges, strict=True):
        np.testing.assert_allclose(node, tables.marginals(symbols(model, x)), atol=1e-10)
        np.testing.assert_allclose(edge.sum(axis=2), node[:-1], atol=1e-12)
    assert model.predict_marginals(TEST)[2][0] == dict(enumerate(nodes[2][0]))


def test_score_samples(model):
    tables, rng = Reference.of(model), np.random.default_rng(0)
    truth = [rng.integers(0, 3, len(x)) for x in TEST]
    partly = [[None if rng.random() < 0.5 else int(k) for k in y] for y in truth]
    whole, joint, some = (model.score_samples(TEST, *more) for more in ((), (truth,), (partly,)))
    for i, x in enumerate(TEST):
        assert whole[i] == pytest.approx(np.log(tables.paths(symbols(model, x))[1].sum()))
        assert joint[i] == pytest.approx(np.log(tables.joint(truth[i], symbols(model, x))))
        assert some[i] == pytest.approx(np.log(tables.paths(symbols(model, x), partly[i])[1].sum()))
    np.testing.assert_allclose(model.score_sequences(TEST, truth), joint - whole, atol=1e-9)


def test_known_states(model):
    tables, rng = Reference.of(model), np.random.default_rng(1)
    known = [[None if rng.random() < 0.6 else int(rng.integers(3)) for _ in x] for x in TEST]
    nodes, edges = model.predict_proba(TEST, known=known, pairwise=True)
    alone = model.predict_proba(TEST, known=known)
    for i, (x, path) in enumerate(zip(TEST, model.predict(TEST, known=known), strict=True)):
        paths, p = tables.paths(symbols(model, x), known[i])
        assert tuple(path) in paths
        assert tables.joint(path, symbols(model, x)) == pytest.approx(p.max(), rel=1e-10)
        np.testing.assert_allclose(nodes[i], tables.marginals(symbols(model, x), known[i]), atol=1e-10)
        np.testing.assert_array_equal(nodes[i], alone[i])
        np.testing.assert_allclose(edges[i].sum(axis=1), nodes[i][1:], atol=1e-12)


def test_filter(model):
    tables = Reference.of(model)
    for x, rows, whole in zip(TEST, model.filter(TEST), model.predict_proba(TEST), strict=True):
        for t in range(len(x)):
            np.testing.assert_allclose(rows[t], tables.marginals(symbols(model, x[: t + 1]))[-1], atol=1e-12)
        np.testing.assert_allclose(rows[-1], whole[-1], atol=1e-12)
        step = model.start_filter()
        for t, symbol in enumerate(x):
            np.testing.assert_allclose(step.step(symbol), rows[t], atol=1e-12)
        assert step.n_steps == len(x)
        assert step.log_likelihood == pytest.approx(model.score_samples([x])[0], rel=1e-12)


def test_a_calibrated_filter_looks_at_the_past_alone():
    """At the temperature too, its row is that of the last state of what came so far; likelihoods have none."""
    model = DiscriminativeHMM(0.0).fit(X, Y)
    before = model.score_samples(TEST)
    with pytest.warns(UserWarning, match="no more probable under the model than by chance"):
        model.calibrate(X, [np.roll(path, 1) for path in Y])  # labels that do not fit: it is much too sure
    assert model.calibration_.temperature > 1.5
    for x, rows in zip(TEST, model.filter(TEST), strict=True):
        step = model.start_filter()
        for t, symbol in enumerate(x):
            want = model.predict_proba([x[: t + 1]])[0][-1]
            np.testing.assert_allclose(rows[t], want, atol=1e-12)
            np.testing.assert_allclose(step.step(symbol), want, atol=1e-12)
        assert step.log_likelihood == pytest.approx(model.score_samples([x])[0], rel=1e-12)
    np.testing.assert_array_equal(model.score_samples(TEST), before)


def test_filter_takes_flat_input():
    model = MODELS["counted"]()
    flat = model.filter(np.concatenate(TEST), lengths=[len(x) for x in TEST])
    for a, b in zip(flat, model.filter(TEST), strict=True):
        np.testing.assert_array_equal(a, b)


def test_filter_of_a_long_sequence_does_not_underflow():
    model = MODELS["counted"]()
    long = np.tile(X[0], 400)
    assert np.isfinite(model.filter([long])[0]).all()
    step = model.start_filter()
    for symbol in long:
        step.step(symbol)
    assert step.log_likelihood == pytest.approx(model.score_samples([long])[0], rel=1e-10)


def exactly_filtered(model, x):
    """P(state | observations so far), and log P(all of them), in decimal numbers: nothing underflows."""
    tables = Reference.of(model)
    start = [Decimal(p) for p in tables.start]
    transition, emission = ([[Decimal(p) for p in row] for row in t] for t in (tables.transition, tables.emission[0]))
    alpha, rows, n = None, [], range(len(start))
    for (symbol,) in symbols(model, x):
        ahead = start if alpha is None else [sum(alpha[a] * transition[a][b] for a in n) for b in n]
        alpha = [ahead[s] * emission[s][symbol] for s in n]
        rows.append([float(p / sum(alpha)) for p in alpha])
    return np.array(rows), float(sum(alpha).ln())


# Sequences that are wholly of one state; and states that only move on, with a last symbol that one alone has.
SEPARATE = [[0] * 7 + [1] * 2, [1] * 7 + [0] * 2], [[0] * 9, [1] * 9]
_ONWARD = [0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 2]
ONWARD = [_ONWARD, _ONWARD[:-1]], [[0] * 6 + [1] * 5 + [2], [0] * 6 + [1] * 5]


@pytest.mark.parametrize(
    ("data", "x"),
    [
        (SEPARATE, [0] * 700 + [1] * 900),
        (SEPARATE, [0] * 700 + [1] * 700),
        (SEPARATE, [1] * 800 + [0] * 810),
        (ONWARD, [0] * 50 + [1] * 700 + [0] * 400 + [2]),
        (ONWARD, [0] * 900 + [1, 2]),
    ],
)
def test_filter_keeps_states_whose_probability_underflows(data, x):
    model = DiscriminativeHMM(eta=0.0, smoothing=0.0).fit(*([np.array(one) for one in part] for part in data))
    assert (model.transmat_ == 0.0).any()
    wanted, log_likelihood = exactly_filtered(model, x)
    # Beside a shorter one, and in steps.
    [found, _] = model.filter([np.array(x), np.array(x[:2])])
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(found[-1], model.predict_proba([np.array(x)])[0][-1], rtol=1e-8, atol=1e-12)
    state = model.start_filter()
    steps = np.array([state.step(symbol) for symbol in x])
    np.testing.assert_allclose(steps, wanted, rtol=1e-9, atol=1e-300)
    assert state.log_likelihood == pytest.approx(log_likelihood, rel=1e-12)


def test_filter_says_what_is_impossible_and_a_filter_goes_on_after_it():
    model = DiscriminativeHMM(eta=0.0, smoothing=0.0).fit(*([np.array(one) for one in part] for part in ONWARD))
    with pytest.raises(ValueError, match=r"X\[1\] is impossible under the model up to position 1"):
        model.filter([np.array([0, 0, 0]), np.array([0, 2, 0])])  # from 0 there is no way to 2 but through 1
    state = model.start_filter()
    first = state.step(0).tolist()
    with pytest.raises(ValueError, match="Observation 1, 2, is impossible under the model after those before it"):
        state.step(2)
    assert (state.n_steps, state.probabilities.tolist()) == (1, first)
    np.testing.assert_allclose(state.step(1), model.filter([np.array([0, 1])])[0][1])


def test_draws_have_the_frequencies_of_the_tables():
    model = MODELS["missing mass"]()
    found, states = model.sample(4000, 3, random_state=0)
    tables = Reference.of(model)
    start, transition, emission = (
        table / table.sum(axis=-1, keepdims=True) for table in (tables.start, tables.transition, tables.emission[0])
    )
    symbols, path = np.stack(found), np.stack(states)
    assert symbols.shape == path.shape == (4000, 3)
    np.testing.assert_allclose(np.bincount(path[:, 0], minlength=3) / 4000, start, atol=0.03)
    for state in range(3):
        after = path[:, 1:][path[:, :-1] == state]
        emitted = np.searchsorted(model.symbols_, symbols[path == state])
        if len(after) > 500:
            np.testing.assert_allclose(np.bincount(after, minlength=3) / len(after), transition[state], atol=0.06)
            shares = np.bincount(emitted, minlength=emission.shape[1]) / len(emitted)
            np.testing.assert_allclose(shares, emission[state], atol=0.06)


def test_draws_can_be_read_again():
    model = MODELS["counted"]()
    found, states = model.sample(5, [1, 4, 2, 4, 3], random_state=3)
    assert [len(x) for x in found] == [len(y) for y in states] == [1, 4, 2, 4, 3]
    assert np.isfinite(model.score_samples(found, states)).all()
    again = model.sample(5, [1, 4, 2, 4, 3], random_state=3)
    for a, b in zip((*found, *states), (*again[0], *again[1]), strict=True):
        np.testing.assert_array_equal(a, b)
    words = np.array(["the", "dog", "Dogs", "barks", "42"])
    texts = [[words[k] for k in x] for x in X]
    rare = DiscriminativeHMM(0.0, min_count=30, rare="shape").fit(texts, Y)
    words_drawn, _ = rare.sample(30, 6, random_state=0)
    names = {*rare.symbols_.tolist(), *(f"<{name}>" for name in rare.rare_classes_)}
    assert set(itertools.chain.from_iterable(words_drawn)) == names
    assert rare.rare_classes_
    columns = {name: at for at, name in enumerate(rare.observations_.tables[0].names)}
    wanted = [columns[symbol] for symbol in itertools.chain.from_iterable(words_drawn)]
    assert rare.model_.read(words_drawn)[0].indices.tolist() == wanted
    both = DiscriminativeHMM(0.0).fit([list(zip(a, b.tolist(), strict=True)) for a, b in zip(texts, X, strict=True)], Y)
    pairs, _ = both.sample(2, 4, random_state=1)
    assert np.isfinite(both.score_samples(pairs)).all()
    assert all(isinstance(pair, tuple) and len(pair) == 2 for x in pairs for pair in x)
    arrays = DiscriminativeHMM(0.0).fit([np.column_stack([x, x]) for x in X], Y)
    assert [x.shape for x in arrays.sample(2, 4, random_state=1)[0]] == [(4, 2)] * 2


def test_states_of_given_observations_are_drawn_from_their_distribution():
    model, x = MODELS["counted"](), TEST[0][:3]
    draws = np.array(model.sample_states([x], 4000, random_state=0)[0])
    shares = np.stack([np.bincount(draws[:, t], minlength=3) for t in range(draws.shape[1])]) / 4000
    np.testing.assert_allclose(shares, model.predict_proba([x])[0], atol=0.03)


def test_inspection_names_symbols():
    model = DiscriminativeHMM(0.0).fit([["the", "dog"], ["a", "dog"]], [["D", "N"], ["D", "N"]])
    assert ("dog", "N") in model.state_features_
    assert ("D", "N") in model.transition_features_
    assert "dog" in str(model.explain(["the", "dog"]))
    assert model.state_features_["dog", "N"] == pytest.approx(np.log(model.emissionprob_[1, 1]))
    assert model.coef_.shape == (2, 4)  # and one column for unknown symbols
    twins = DiscriminativeHMM(0.0, min_count=2).fit(
        [["<rare>", "<rare>", "<unknown>", "<unknown>", "x"]], [["u", "v", "u", "v", "u"]]
    )
    assert list(twins.vocabulary_) == ["<rare>", "<unknown>", "<<rare>>", "<<unknown>>"]
    assert twins.model_.read([["<rare>", "new"]], None)[0].indices.tolist() == [0, 2]
