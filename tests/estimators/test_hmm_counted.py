"""The supervised HMM, counted: by hand, against hmmlearn, and by EM where states are not known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hmmlearn.hmm import CategoricalHMM

from dualfield import DiscriminativeHMM
from dualfield.data import Batch
from dualfield.scores import tables as hmm_tables
from dualfield.scores.tables import TableLayout, Tables, logarithms, normalised
from tests.estimators.hmm_reference import Reference, rows, simulated

X, Y = simulated()
LENGTHS = [len(x) for x in X]
FLAT_X, FLAT_Y = np.concatenate(X), np.concatenate(Y)


def same_tables(one, two):
    for name in ("startprob_", "transmat_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    for a, b in zip(np.atleast_3d(one.emissionprob_), np.atleast_3d(two.emissionprob_), strict=True):
        np.testing.assert_array_equal(a, b)


def test_counts_by_hand():
    X = [["a", "b", "b"], ["c", "a"]]
    y = [["u", "v", "v"], ["v", "u"]]
    model = DiscriminativeHMM(0.0, smoothing=0.0).fit(X, y)
    assert model.classes_.tolist() == ["u", "v"]
    assert model.symbols_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(model.startprob_, [0.5, 0.5])
    np.testing.assert_allclose(model.transmat_, [[0.0, 1.0], [0.5, 0.5]])
    np.testing.assert_allclose(model.emissionprob_, [[1.0, 0.0, 0.0], [0.0, 2 / 3, 1 / 3]])
    smooth = DiscriminativeHMM(0.0, smoothing={"start": 1.0, "emission": 0.5}).fit(X, y, sample_weight=[2.0, 1.0])
    np.testing.assert_allclose(smooth.startprob_, [3 / 5, 2 / 5])
    np.testing.assert_allclose(smooth.transmat_, [[0.1 / 2.2, 2.1 / 2.2], [1.1 / 3.2, 2.1 / 3.2]])
    np.testing.assert_allclose(
        smooth.emissionprob_, [[3.5 / 4.5, 0.5 / 4.5, 0.5 / 4.5], [0.5 / 6.5, 4.5 / 6.5, 1.5 / 6.5]]
    )
    assert smooth.missing_mass_["start"] == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_allclose(smooth.missing_mass_["emission"], 0.0, atol=1e-15)


def test_priors_without_margins():
    prob, count = (DiscriminativeHMM(0.0, prior=prior).fit(X, Y) for prior in ("prob", "count"))
    np.testing.assert_allclose(prob.parameters_, count.parameters_, atol=1e-12)
    assert (prob.objective_, prob.dual_gap_, count.objective_) == (0.0, 0.0, 0.0)
    uniform = DiscriminativeHMM(0.0, prior="uniform").fit(X, Y)
    np.testing.assert_allclose(uniform.transmat_, 1 / 3)
    np.testing.assert_allclose(uniform.emissionprob_, 1 / 5)
    transition = np.array([[1.0, 2.0, 1.0], [0.0, 1.0, 0.0], [5.0, 5.0, 0.0]])
    given = DiscriminativeHMM(0.0, prior={"transition": transition}).fit(X, Y)
    np.testing.assert_allclose(given.transmat_, [[0.25, 0.5, 0.25], [0.0, 1.0, 0.0], [0.5, 0.5, 0.0]])
    np.testing.assert_array_equal(given.emissionprob_, prob.emissionprob_)


def test_a_row_without_counts_is_uniform():
    model = DiscriminativeHMM(0.0, smoothing=0.0).fit([["a", "b"]], [["u", "v"]])
    np.testing.assert_allclose(model.transmat_, [[0.0, 1.0], [0.5, 0.5]])


def peer(model):
    hmm = CategoricalHMM(n_components=len(model.classes_))
    hmm.startprob_, hmm.transmat_, hmm.emissionprob_ = model.startprob_, model.transmat_, model.emissionprob_
    hmm.n_features = model.emissionprob_.shape[1]
    return hmm


def test_hmmlearn_answers_the_same():
    model = DiscriminativeHMM(0.0).fit(FLAT_X, FLAT_Y, lengths=LENGTHS)
    hmm, column = peer(model), FLAT_X[:, None]
    np.testing.assert_array_equal(np.concatenate(model.predict(column, lengths=LENGTHS)), hmm.predict(column, LENGTHS))
    np.testing.assert_allclose(
        np.vstack(model.predict_proba(FLAT_X, lengths=LENGTHS)), hmm.predict_proba(column, LENGTHS), atol=1e-12
    )
    assert model.score_samples(X).sum() == pytest.approx(hmm.score(column, LENGTHS), rel=1e-12)
    assert model.score_samples(X)[3] == pytest.approx(hmm.score(X[3][:, None]), rel=1e-12)


def test_all_forms_of_input_give_the_same_model():
    wanted = DiscriminativeHMM(0.0).fit(X, Y)
    lists = [x.tolist() for x in X]
    for form, more in (
        (lists, {}),
        (iter(lists), {}),
        ([tuple(x) for x in lists], {}),
        ([x.astype(np.uint8) for x in X], {}),
        ([x[:, None] for x in X], {}),
        ([[(symbol,) for symbol in x] for x in lists], {}),
        ([x if i % 2 else x.tolist() for i, x in enumerate(X)], {}),
        (FLAT_X, {"lengths": LENGTHS}),
        (FLAT_X[:, None], {"lengths": np.array(LENGTHS)}),
        (FLAT_X.tolist(), {"lengths": LENGTHS}),
    ):
        found = DiscriminativeHMM(0.0).fit(form, Y, **more)
        same_tables(found, wanted)
        assert found.symbols_.tolist() == [0, 1, 2, 3, 4]
    for form in ([y.tolist() for y in Y], iter(Y), FLAT_Y, FLAT_Y.tolist(), [np.array(y, dtype=object) for y in Y]):
        same_tables(DiscriminativeHMM(0.0).fit(FLAT_X, form, lengths=LENGTHS), wanted)
    equal = np.stack([x[:2] for x in X if len(x) > 1])
    labels = [y[:2] for y in Y if len(y) > 1]
    same_tables(DiscriminativeHMM(0.0).fit(equal[:, :, None], labels), DiscriminativeHMM(0.0).fit(list(equal), labels))


def test_integers_far_apart_and_strings_are_the_same_model():
    wanted = DiscriminativeHMM(0.0).fit(X, Y)
    far = np.array([-(2**62), -5, 10**6, 10**15, 2**62])
    model = DiscriminativeHMM(0.0).fit([far[x] for x in X], Y)
    same_tables(model, wanted)
    np.testing.assert_array_equal(model.symbols_, far)
    words = np.array(["a", "bb", "c", "d", "é"])
    text = DiscriminativeHMM(0.0).fit([words[x] for x in X], [[f"s{k}" for k in y] for y in Y])
    same_tables(text, wanted)
    assert text.predict([words[x] for x in X]) == [[f"s{k}" for k in y] for y in wanted.predict(X)]
    for one in (model, wanted):
        new = [np.array([0, 3, 4, 7, -9, 2**61])]
        known = [k for k, symbol in enumerate(new[0]) if symbol in one.symbols_]
        np.testing.assert_array_equal(
            one.model_.read(new, None)[0].indices, np.searchsorted(one.symbols_, new[0][known])
        )


def test_streams_are_products_of_emissions():
    rng = np.random.default_rng(0)
    second = [rng.integers(10, 13, len(x)) for x in X]
    both = [np.column_stack(pair) for pair in zip(X, second, strict=True)]
    model = DiscriminativeHMM(0.0, smoothing={"emission": [0.1, 1.0]}).fit(both, Y)
    alone = DiscriminativeHMM(0.0).fit(X, Y), DiscriminativeHMM(0.0, smoothing={"emission": 1.0}).fit(second, Y)
    for k in (0, 1):
        np.testing.assert_array_equal(model.emissionprob_[k], alone[k].emissionprob_)
        np.testing.assert_array_equal(model.symbols_[k], alone[k].symbols_)
    assert [mass.shape for mass in model.missing_mass_["emission"]] == [(3,), (3,)]
    crossed = DiscriminativeHMM(0.0).fit([3 * x + z - 10 for x, z in zip(X, second, strict=True)], Y)
    product = np.einsum("si,sj->sij", *model.emissionprob_).reshape(3, -1)[:, crossed.symbols_]
    tables = Reference(model.startprob_, model.transmat_, [product])
    for x, z, p in zip(X, second, model.predict_proba(both), strict=True):
        if len(x) < 6:
            codes = np.searchsorted(crossed.symbols_, 3 * x + z - 10)
            np.testing.assert_allclose(p, tables.marginals([(k,) for k in codes]), atol=1e-12)
    texts = [[(f"w{a}", int(b)) for a, b in rows] for rows in both]
    same = DiscriminativeHMM(0.0, smoothing={"emission": [0.1, 1.0]}).fit(texts, Y)
    np.testing.assert_array_equal(same.parameters_, model.parameters_)
    assert [table.tolist() for table in same.symbols_] == [[f"w{k}" for k in range(5)], [10, 11, 12]]


def partly(share=0.4):
    rng = np.random.default_rng(1)
    return [[None if rng.random() < share else int(k) for k in y] for y in Y]


def expected(tables, X, partial, smoothing):
    """One step of EM by enumeration."""
    counts = [np.full(one.shape, smoothing) for one in (tables.start, tables.transition, tables.emission[0])]
    value = sum(smoothing * np.log(one).sum() for one in (tables.start, tables.transition, tables.emission[0]))
    for x, y in zip(X, partial, strict=True):
        paths, p = tables.paths([(k,) for k in x], y)
        value += np.log(p.sum())
        for path, weight in zip(paths, p / p.sum(), strict=True):
            counts[0][path[0]] += weight
            for a, b in itertools.pairwise(path):
                counts[1][a, b] += weight
            for state, symbol in zip(path, x, strict=True):
                counts[2][state, symbol] += weight
    tables = [one / one.sum(axis=-1, keepdims=True) for one in counts]
    return Reference(tables[0], tables[1], tables[2:]), value


def test_em_ends_where_its_steps_do(monkeypatch):
    monkeypatch.setattr(hmm_tables, "EM_TOL", 1e-15)
    monkeypatch.setattr(hmm_tables, "EM_STEPS", 5000)
    short = [i for i in range(len(X)) if len(X[i]) <= 6]
    some_x, some_y = [X[i] for i in short], [partly()[i] for i in short]
    model = DiscriminativeHMM(0.0, smoothing=0.2).fit(some_x, some_y)
    tables, _ = expected(Reference.of(model), some_x, some_y, 0.2)
    for name, table in zip(
        ("startprob_", "transmat_", "emissionprob_"), (tables.start, tables.transition, *tables.emission), strict=True
    ):
        np.testing.assert_allclose(getattr(model, name), table, atol=1e-5)


def test_em_never_lowers_its_value(monkeypatch):
    values = []
    plain = TableLayout.expected_counts

    def watched(self, batch, parameters, allowed, weights, n_threads):
        counts, value = plain(self, batch, parameters, allowed, weights, n_threads)
        tables = self.unpack(parameters)
        values.append(value + 0.2 * sum(table.sum() for table in tables.every()))
        return counts, value

    monkeypatch.setattr(TableLayout, "expected_counts", watched)
    DiscriminativeHMM(0.0, smoothing=0.2).fit(X, partly(0.7))
    assert len(values) > 3
    assert (np.diff(values) >= -1e-9).all()


def test_expected_counts_against_enumeration():
    layout = TableLayout(3, [5])
    rng = np.random.default_rng(3)
    tables = Tables(rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3), [rng.dirichlet(np.ones(5), 3)])
    short = [i for i in range(len(X)) if len(X[i]) <= 5][:8]
    offsets = np.concatenate([[0], np.cumsum([len(X[i]) for i in short])])
    symbols = np.concatenate([X[i] for i in short]).astype(np.int32)
    batch = Batch(offsets, 6, indptr=np.arange(len(symbols) + 1), indices=symbols)
    known = [k for i in short for k in partly()[i]]
    allowed = np.array([[k is None or k == s for s in range(3)] for k in known])
    counts, value = layout.expected_counts(batch, layout.pack(logarithms(tables)), allowed, np.ones(len(short)), 1)
    total, reference = 0.0, Reference(*tables)
    wanted = [np.zeros(3), np.zeros((3, 3)), np.zeros((3, 5))]
    for i in short:
        paths, p = reference.paths([(k,) for k in X[i]], partly()[i])
        total += np.log(p.sum())
        for path, weight in zip(paths, p / p.sum(), strict=True):
            wanted[0][path[0]] += weight
            for a, b in itertools.pairwise(path):
                wanted[1][a, b] += weight
            for state, symbol in zip(path, X[i], strict=True):
                wanted[2][state, symbol] += weight
    assert value == pytest.approx(total, rel=1e-12)
    for found, want in zip(counts.every(), wanted, strict=True):
        np.testing.assert_allclose(found, want, atol=1e-12)


def test_what_is_known_weighs_as_much_as_it_is():
    """With all states known EM is counting; sequences without any state count nothing but what EM expects."""
    layout = TableLayout(3, [5])
    everything = DiscriminativeHMM(0.0).fit(X, Y)
    batch = everything.model_.read(X)[0]
    states = FLAT_Y.astype(np.int32)
    allowed = states[:, None] == np.arange(3)
    smoothing = Tables(np.full(3, 0.1), np.full((3, 3), 0.1), [np.full((3, 5), 0.1)])
    weights = np.linspace(0.5, 2.0, len(X))
    found = layout.em_counts(batch, states, allowed, weights, smoothing, 1)
    for a, b in zip(found.every(), layout.counts(batch, states, weights).every(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)
    runs = layout._known_counts(batch, states, np.ones(len(states), dtype=bool), weights)
    for a, b in zip(runs.every(), layout.counts(batch, states, weights).every(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    model = DiscriminativeHMM(0.0).fit([*X, *X], [*(y.tolist() for y in Y), *([None] * len(x) for x in X)])
    assert model.score(X, [y.tolist() for y in Y]) > 0.5


def test_sets_of_states():
    sets = [[{0, 1} if k < 2 else int(k) for k in y] for y in Y]
    sets[0] = Y[0].tolist()
    model = DiscriminativeHMM(0.0).fit([*X, *X], [*sets, *(y.tolist() for y in Y)])
    assert model.predict(X, known=[[{2} for _ in x] for x in X]) == [[2] * len(x) for x in X]


def test_layout():
    layout = TableLayout(2, [3, 1])
    number = layout.unpack(layout.rows().astype(float))
    np.testing.assert_array_equal(number.start, [0, 0])
    np.testing.assert_array_equal(number.transition, [[1, 1], [2, 2]])
    np.testing.assert_array_equal(number.emission[0], [[3] * 3, [4] * 3])
    np.testing.assert_array_equal(number.emission[1], [[5], [6]])
    assert (layout.rows() >= 0).sum() == 2 + 4 + 6 + 2
    assert set(layout.rows()) == {-1, *range(7)}
    np.testing.assert_array_equal(rows(2, 3), np.repeat(range(5), [2, 2, 2, 3, 3]))
    uniform = normalised(Tables(np.zeros(2), np.ones((2, 2)), [np.zeros((2, 4))]))
    np.testing.assert_array_equal(uniform.emission[0], 0.25)
