"""Discriminative HMMs of compiled corpora: tables, optimum and certificate as in memory, and what they refuse."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dualfield import DiscriminativeHMM, load
from dualfield.data.symbols import SymbolTable
from dualfield.solvers import Simplicial
from tests.estimators.hmm_reference import drawn, objective, planes, reference, simulated, theta_of
from tests.estimators.hmm_reference import minimum as by_cones
from tests.estimators.out_of_core_problems import compiled, least_memory


def named(sequences, letter):
    return [[f"{letter}{code}" for code in one] for one in sequences]


@pytest.fixture(scope="module")
def data():
    X, y = simulated(n_symbols=12)
    return named(X, "w"), named(y, "s")


@pytest.fixture(scope="module")
def corpus(data, tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("hmm"), [[[symbol] for symbol in one] for one in data[0]], data[1])


def check_same_tables(one, other):
    assert one.startprob_.tolist() == other.startprob_.tolist()
    assert one.transmat_.tolist() == other.transmat_.tolist()
    for a, b in zip(np.atleast_1d(one.emissionprob_), np.atleast_1d(other.emissionprob_), strict=True):
        assert a.tolist() == b.tolist()


COUNTED = {
    "smoothed": {},
    "not smoothed": {"smoothing": 0.0},
    "rare": {"min_count": 12},
    "classes": {"min_count": 12, "rare": lambda symbol: int(symbol[1:]) % 2, "unknown": "mass"},
}


@pytest.mark.parametrize("name", COUNTED)
def test_counted_tables_are_those_of_a_fit_in_memory(name, corpus, data):
    streamed, held = (DiscriminativeHMM(0.0, **COUNTED[name]) for _ in range(2))
    streamed.fit(corpus)
    check_same_tables(streamed, held.fit(*data))
    assert streamed.symbols_.tolist() == held.symbols_.tolist()
    assert streamed.rare_classes_ == held.rare_classes_
    assert streamed.classes_.tolist() == held.classes_.tolist()
    assert ("rare" in name) == (held.rare_classes_ == ["rare"])
    assert streamed.predict(data[0]) == held.predict(data[0])


TRAINED = {
    "rows": {"eta": 0.1},
    "counts": {"eta": 1.0, "prior": "count"},
    "rare": {"eta": 0.1, "min_count": 12, "rare": "shape"},
    "cost": {"eta": 0.1, "loss": [[0, 2, 1], [0.5, 0, 1], [1, 1, 0]]},
    "few groups": {"eta": 0.1, "solver": Simplicial(n_blocks=3)},
}


@pytest.mark.parametrize("name", TRAINED)
def test_the_optimum_is_that_of_a_fit_in_memory(name, corpus, data):
    streamed, held = (DiscriminativeHMM(tol=1e-6, **TRAINED[name]) for _ in range(2))
    streamed.fit(corpus)
    held.fit(*data)
    assert streamed.status_.value == "converged"
    assert held.n_iter_ > 1  # the counts are not the optimum
    assert streamed.dual_gap_ <= 1e-6 * streamed.objective_
    rounding = 1e-12 * held.objective_
    assert abs(streamed.objective_ - held.objective_) <= max(streamed.dual_gap_, held.dual_gap_) + rounding
    assert streamed.predict(data[0]) == held.predict(data[0])


def test_the_gap_holds_at_every_row_of_the_trace(corpus, data):
    best = DiscriminativeHMM(0.1, tol=1e-8).fit(*data)
    trace = DiscriminativeHMM(0.1, tol=1e-5).fit(corpus).trace_
    assert len(trace.objective) > 2
    assert (trace.dual <= best.objective_ * (1 + 1e-12)).all()
    assert (trace.objective >= best.objective_ - best.dual_gap_).all()
    assert (trace.objective - best.objective_ <= trace.gap * (1 + 1e-9)).all()


@pytest.mark.parametrize("eta", [0.05, 5.0])
def test_the_optimum_is_that_of_a_general_solver(eta, tmp_path):
    S, V = 2, 3
    X, y = drawn(1)
    corpus = compiled(tmp_path, [[[symbol] for symbol in one] for one in named(X, "w")], named(y, "s"))
    model = DiscriminativeHMM(eta, tol=1e-8, smoothing=0.5).fit(corpus)
    c, found = reference(X, y, S, V, 0.5)[1], planes(X, y, S, V)
    best, _ = by_cones(c, found, S, V, eta)
    assert model.objective_ == pytest.approx(objective(theta_of(model), c, found, eta, S, V), rel=1e-9)
    assert abs(model.objective_ - best) <= 1e-6 * max(1.0, abs(best))
    assert model.objective_ - model.dual_gap_ <= best + 1e-6 * max(1.0, abs(best))


def needed(corpus, memory, **settings):
    """Return the memory that a fit asks for, and what for."""
    with pytest.raises(ValueError, match="memory must be at least") as refused:
        DiscriminativeHMM(0.1, **settings).fit(corpus, memory=memory)
    least, what = re.match(r"memory must be at least (\d+) bytes, for (.*)\. Got ", str(refused.value)).groups()
    assert ("fewer max_columns or n_blocks need less" in str(refused.value)) == (what != "tables")
    return int(least), what


def test_memory_and_threads_do_not_change_a_bit(corpus):
    settings = {"tol": 1e-5, "max_columns": 20}
    least = least_memory(DiscriminativeHMM(0.0), corpus)
    assert DiscriminativeHMM(0.0).fit(corpus, memory=least).status_.value == "converged"
    assert needed(corpus, 1) == (least, "tables")
    before, _ = needed(corpus, least + 10_000, **settings)
    after, what = needed(corpus, before, **settings)
    assert re.match(r"tables, planes of [1-9]\d* bytes in a round, and mixtures", what)
    assert least < before < after
    # Later rounds may have larger planes than the first.
    enough = 2 * after
    limits = ((1, enough), (2, None), (3, 1e12))
    fits = [DiscriminativeHMM(0.1, n_jobs=n, **settings).fit(corpus, memory=memory) for n, memory in limits]
    assert len({(fit.parameters_.tobytes(), fit.objective_, fit.dual_gap_, fit.n_iter_) for fit in fits}) == 1


def test_fewer_columns_need_less_memory(corpus):
    few, many = (needed(corpus, 5e5, max_columns=columns)[0] for columns in (20, 40))
    assert few < many


@pytest.mark.parametrize("eta", [0.0, 0.1])
def test_streams_of_places_and_of_a_template(eta, data, tmp_path):
    y = data[1]
    rows = [[(f"{symbol[1:]}", symbol[-1]) for symbol in one] for one in data[0]]
    held = DiscriminativeHMM(eta, tol=1e-6, min_count=2, rare="shape").fit(rows, y)
    template = "# symbols\nU0:%x[0,0]\nU1:%x[0,1]\nB"
    for name, X, options in (
        ("places", [[(f"a{one}", f"b{other}") for one, other in row] for row in rows], {}),
        ("template", rows, {"template": template}),
    ):
        model = DiscriminativeHMM(eta, tol=1e-6, min_count=2, rare="shape")
        model.fit(compiled(tmp_path / name, X if options else [list(map(list, one)) for one in X], y, **options))
        assert abs(model.objective_ - held.objective_) <= model.dual_gap_ + held.dual_gap_ + 1e-12
        assert model.predict(X) == held.predict(rows)
    # Names of lines are no part of symbols.
    assert [table.tolist() for table in model.symbols_] == [table.tolist() for table in held.symbols_]
    if eta == 0.0:
        assert [table.tolist() for table in model.emissionprob_] == [table.tolist() for table in held.emissionprob_]


def test_a_model_file_and_a_warm_start(corpus, data, tmp_path):
    model = DiscriminativeHMM(0.1, tol=1e-6, warm_start=True).fit(corpus)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").predict(data[0]) == model.predict(data[0])
    first = model.n_iter_
    assert model.fit(corpus).n_iter_ < first


def refused(message, corpus, **given):
    with pytest.raises(ValueError, match=re.escape(message)):
        DiscriminativeHMM(0.0).fit(corpus, **given)


def test_arguments_that_a_corpus_leaves_no_place_for(corpus, data):
    refused("y must be None with a CompiledCorpus, which has the labels. Got", corpus, y=data[1])
    refused("sample_weight must be None with a CompiledCorpus, whose sentences", corpus, sample_weight=[1.0])
    refused("hidden must be None with a CompiledCorpus", corpus, hidden=[[True]])
    refused("lengths must be None with a CompiledCorpus, which knows where sentences end", corpus, lengths=[1])
    with pytest.raises(ValueError, match="memory must be None unless X is a CompiledCorpus"):
        DiscriminativeHMM(0.0).fit(*data, memory=1e9)


ODD = {
    "no attribute": ([[["a"], []]], {}, "Token 1 of sentence 0 of block 0 of {} has 0; expected 1."),
    "two attributes": ([[["a"], ["a", "b"]]], {}, "Token 1 of sentence 0 of block 0 of {} has 2; expected 1."),
    "another place": (
        [[["a", "b"], ["b", "c"]]],
        {},
        "Token 0 of sentence 0 of block 0 of {} has 'b' in one place, and",
    ),
    "twice": ([[["a", "b"], ["c", "c"]]], {}, "Token 1 of sentence 0 of block 0 of {} has 'c' in one place, and"),
    "weights": ([[{"a": 0.5}, {"b": 2.0}]], {}, "{} has weights of attributes, and DiscriminativeHMM takes symbols."),
    "pairs": ([["a", "b"]], {"template": "U:%x[0,0]\nB:%x[0,0]"}, "{} has attributes of pairs of labels"),
    "left out": ([["a", "b"]], {"template": "!omit-outside\nU:%x[0,0]\nU1:%x[-1,0]"}, "has 2; expected 1"),
    "ends": ([["a"]], {"template": "!mark-ends\nU:%x[0,0]"}, "It has 1 such lines; tokens have 3 attributes."),
}


@pytest.mark.parametrize("name", ODD)
def test_tokens_that_are_not_symbols(name, tmp_path):
    X, options, message = ODD[name]
    corpus = compiled(tmp_path, X, [["x", "y"][: len(one)] for one in X], parts=1, **options)
    refused(message.format(corpus.path), corpus)


def test_the_table_of_symbols_is_that_of_their_counts():
    values = ["b", "a", "b", "C", "b", "a"]
    symbols = np.array(["C", "a", "b"], dtype=object)
    table = SymbolTable.of_counts(symbols, np.array([1, 2, 3]), 3, "shape")
    assert table.names == SymbolTable.fit(values, 3, "shape").names == ["b", "<Capital>", "<small>"]


def test_more_groups_need_fewer_rounds(corpus):
    fine, coarse = (DiscriminativeHMM(0.1, tol=1e-6, n_blocks=n).fit(corpus) for n in (100, 1))
    assert fine.n_iter_ < coarse.n_iter_
    assert abs(fine.objective_ - coarse.objective_) <= fine.dual_gap_ + coarse.dual_gap_
