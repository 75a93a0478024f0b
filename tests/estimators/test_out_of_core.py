"""Fits to a compiled corpus: the optimum, its certificate, and results that depend on neither memory nor threads."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import cvxpy
import numpy as np
import pytest

from dualfield import CRF, StructuredSVM, load
from dualfield.datasets import load_town_news
from dualfield.io import read_conll
from dualfield.regularisers import ElasticNet
from dualfield.structures import Chain
from tests.estimators.out_of_core_problems import compiled, in_memory, least_memory, sentences

HAMMING = 1.0 - np.eye(3)
FITS = {
    "log": lambda **more: CRF(C=2.0, **more),
    "net": lambda **more: CRF(C=2.0, l1_ratio=0.4, **more),
    "hinge": lambda **more: StructuredSVM(C=2.0, **more),
}


@pytest.fixture(scope="module")
def data():
    return sentences(200)


@pytest.fixture(scope="module")
def corpus(data, tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("out_of_core"), *data, parts=1)


@pytest.mark.parametrize("kind", FITS)
def test_the_optimum_is_that_of_a_fit_in_memory(kind, corpus, data):
    tol = 1e-3 if kind == "hinge" else 1e-4
    streamed, held = FITS[kind](tol=tol), FITS[kind](tol=tol).fit(*data)
    streamed.fit(corpus, memory=least_memory(streamed, corpus))
    assert streamed.status_.value == "converged"
    assert abs(streamed.objective_ - held.objective_) <= streamed.dual_gap_ + held.dual_gap_
    # The value that is claimed is that of the weights.
    is_hinge, penalty = kind == "hinge", ElasticNet(0.4) if kind == "net" else None
    own = in_memory(corpus, streamed, 2.0, 0.0 if is_hinge else 1.0, HAMMING if is_hinge else None, penalty)
    assert own.value(streamed.parameters_) == pytest.approx(streamed.objective_, rel=1e-9)
    assert streamed.predict(data[0][:50]) == held.predict(data[0][:50])


def labelling_features(corpus, model, example):
    """Return the features and costs of all labellings of a sentence, the truth first."""
    rows = corpus.part(0)
    node, n = model.score_map_.node, rows.codes.max() + 1
    at = slice(*rows.nodes.offsets[example : example + 2])
    truth = rows.codes[at].tolist()
    matrix = rows.nodes.to_csr()[at].toarray()
    found = []
    for labels in sorted(itertools.product(range(n), repeat=len(truth)), key=lambda one: list(one) != truth):
        weights = np.zeros((matrix.shape[1], n))
        pairs = np.zeros((n, n))
        for t, label in enumerate(labels):
            weights[:, label] += matrix[t]
            if t:
                pairs[labels[t - 1], label] += 1
        cost = sum(a != b for a, b in zip(labels, truth, strict=True))
        packed = model.score_map_.pack(weights[node.columns, node.outputs], pairs.ravel())
        found.append((packed, float(cost)))
    return np.array([one for one, _ in found]), np.array([cost for _, cost in found])


@pytest.mark.parametrize("kind", ["log", "hinge"])
def test_the_optimum_is_that_of_a_general_solver(kind, tmp_path):
    X, y = sentences(6, seed=3, n_words=3, n_labels=2)
    corpus = compiled(tmp_path, [one[:3] for one in X], [one[:3] for one in y], parts=1)
    model = FITS[kind](features="all", tol=1e-5).fit(corpus)
    w = cvxpy.Variable(model.score_map_.n_parameters)
    losses = []
    for example in range(corpus.n_examples):
        rows, costs = labelling_features(corpus, model, example)
        scores = (rows - rows[0]) @ w
        losses.append(cvxpy.log_sum_exp(scores) if kind == "log" else cvxpy.max(scores + costs))
    best = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(w) + 2.0 * sum(losses))).solve()
    assert -1e-4 * best <= model.objective_ - best <= model.dual_gap_ + 1e-6 * best


@pytest.mark.parametrize("kind", FITS)
def test_the_gap_holds_at_every_row_of_the_trace(kind, corpus, data):
    best = FITS[kind](tol=1e-7 if kind != "hinge" else 1e-5, max_iter=3000).fit(*data)
    streamed = FITS[kind](tol=1e-2)
    trace = streamed.fit(corpus, memory=least_memory(streamed, corpus)).trace_
    seen = np.isfinite(trace.objective)
    assert seen.sum() >= 2
    assert (trace.dual[seen] <= best.objective_ * (1 + 1e-9)).all()
    assert (trace.objective[seen] - (best.objective_ - best.dual_gap_) >= -1e-9).all()
    assert (trace.objective[seen] - best.objective_ <= trace.gap[seen] * (1 + 1e-9) + 1e-9).all()


@pytest.mark.parametrize("kind", FITS)
def test_memory_and_threads_do_not_change_a_bit(kind, corpus):
    least = least_memory(FITS[kind](tol=1e-2), corpus)
    limits = ((1, least), (1, None), (3, 3 * least), (2, least))  # threads, memory
    fits = [FITS[kind](tol=1e-2, n_jobs=n).fit(corpus, memory=memory) for n, memory in limits]
    assert len({fit.parameters_.tobytes() for fit in fits}) == 1
    assert len({(fit.objective_, fit.dual_gap_, fit.n_iter_) for fit in fits}) == 1
    other = FITS[kind](tol=1e-2, random_state=1).fit(corpus)
    assert other.parameters_.tobytes() != fits[0].parameters_.tobytes()


def passes_to(model, gap):
    trace = model.trace_
    return float(trace.passes[np.flatnonzero((trace.dual > 0) & (trace.gap <= gap * trace.dual))[0]])


def test_as_many_passes_as_in_memory(tmp_path):
    news = load_town_news()
    X, y = news.X_train, news.y_train
    if "DUALFIELD_DATA" in os.environ:
        read = read_conll(Path(os.environ["DUALFIELD_DATA"], "conll2000_train.txt.gz"))[:600]
        X, y = [[row[:1] for row in one] for one in read], [[row[-1] for row in one] for one in read]
    template = "U00:%x[-1,0]\nU01:%x[0,0]\nU02:%x[1,0]\nB"
    corpus = compiled(tmp_path, X, y, template=template)
    assert corpus.n_blocks > 100
    settings = {"tol": 1e-3, "solver": "block_dual"}
    held = CRF(template=template, **settings).fit(X, y)
    streamed = CRF(**settings).fit(corpus)
    assert passes_to(streamed, 1e-3) <= 1.15 * passes_to(held, 1e-3)
    assert abs(streamed.objective_ - held.objective_) <= streamed.dual_gap_ + held.dual_gap_


def test_large_blocks_are_mixed(tmp_path):
    # Where the sentences of a block follow each other in every sweep, this takes more than twice the passes.
    X, y = sentences(25_000, n_words=20_000)
    corpus = compiled(tmp_path, X, y, parts=1)
    assert corpus.n_examples / corpus.n_blocks > 40
    settings = {"C": 0.5, "min_freq": 2, "tol": 1e-3, "solver": "block_dual"}
    held = CRF(**settings).fit(X, y)
    passes = [passes_to(CRF(**settings, random_state=seed).fit(corpus), 1e-3) for seed in range(3)]
    assert np.median(passes) <= 1.25 * passes_to(held, 1e-3)


SETTINGS = {
    "all features": {"features": "all"},
    "rare ones left out": {"min_freq": 3},
    "ends": {"start_stop": True},
    "balanced": {"class_weight": "balanced"},
    "weights of labels": {"class_weight": {"L0": 2.0, "L1": 0.5}},
    "cost": {"cost": "hamming", "temperature": 0.5},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_mean_what_they_mean_in_memory(name, corpus, data):
    streamed, held = CRF(**SETTINGS[name], tol=1e-3).fit(corpus, memory=1e6), CRF(**SETTINGS[name], tol=1e-3).fit(*data)
    assert abs(streamed.objective_ - held.objective_) <= streamed.dual_gap_ + held.dual_gap_
    assert streamed.n_features_ == held.n_features_


def test_second_order_and_pairs_of_labels(tmp_path):
    X, y = sentences(60)
    rows = [[[token[0]] for token in one] for one in X]
    corpus = compiled(tmp_path, X, y)
    chain = Chain(order=2)
    streamed, held = CRF(chain, tol=1e-3).fit(corpus), CRF(chain, tol=1e-3).fit(X, y)
    assert abs(streamed.objective_ - held.objective_) <= streamed.dual_gap_ + held.dual_gap_
    template = "U00:%x[0,0]\nB00:%x[0,0]\nB"
    pairs = compiled(tmp_path / "pairs", rows, y, template=template)
    streamed, held = CRF(tol=1e-3).fit(pairs), CRF(template=template, tol=1e-3).fit(rows, y)
    assert abs(streamed.objective_ - held.objective_) <= streamed.dual_gap_ + held.dual_gap_
    assert streamed.predict(rows[:9]) == held.predict(rows[:9])
    with pytest.raises(ValueError, match="Features score pairs of labels"):
        StructuredSVM().fit(pairs)


def test_a_model_file_needs_no_corpus(corpus, data, tmp_path):
    model = CRF(tol=1e-2).fit(corpus)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.predict(data[0][:20]) == model.predict(data[0][:20])
    assert again.parameters_.tobytes() == model.parameters_.tobytes()
    assert model.classes_.tolist() == ["L0", "L1", "L2"]
    assert model.solver_ == "block_dual"


def test_a_warm_start_begins_at_the_weights(corpus):
    model = CRF(tol=1e-4, warm_start=True).fit(corpus)
    first = model.n_iter_
    assert model.fit(corpus).n_iter_ < first
    assert model.dual_gap_ <= 1e-4 * model.objective_


def test_a_monitor_sees_models_and_may_end_the_fit(corpus, data):
    seen = []

    def look(moment, model):
        seen.append((moment.objective, moment.gap, model.predict(data[0][:1])))
        return len(seen) == 4

    model = CRF(tol=1e-6).fit(corpus, monitor=look, memory=least_memory(CRF(tol=1e-6), corpus))
    assert model.status_.value == "stopped"
    assert len(seen) == 4
    assert seen[3][0] < seen[0][0]
    best = CRF(tol=1e-7).fit(*data)
    assert all(value - best.objective_ <= gap * (1 + 1e-9) for value, gap, _ in seen)
