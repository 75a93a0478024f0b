"""Hidden Markov models that are trained to predict, beside CRFsuite; counted ones, beside hmmlearn

Training: parts of speech of the Penn Treebank sample in 23 classes, words seen once replaced by classes of their looks.
Ours minimises divergence from the counts plus margins, η = 0.01, to a certified relative gap of 1e-3; CRFsuite's L-BFGS
minimises the log-loss of a CRF on the same symbols with all states and transitions, c2 = 0.01, and stops by its own
rule. These are two problems with the same parameters, not one. CPU is the time of the process on one thread; both
sides start with lists of strings. "÷" is ours over CRFsuite's. Error is that on the test sentences.

Decoding: ours counts the tables from labelled sequences and finds the best path of each sequence; hmmlearn is given
these tables and finds the paths (`CategoricalHMM.predict`, which needs no fit then). Both get one flat array of
integers with lengths, and use one thread. The log-probabilities of the paths must agree. Times are medians of several
rounds in turns. For sentences the tables are counted once from the training sentences, of which there are more, and
once from those that are decoded.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pycrfsuite
from hmmlearn.hmm import CategoricalHMM
from threadpoolctl import threadpool_limits

from benchmarks.crf_data import Corpus, train_crfsuite
from benchmarks.kernel_logistic_data import markdown
from dualfield import DiscriminativeHMM
from reproductions.records import Settings
from reproductions.yu_data import MORE_SENTENCES, SENTENCES, Sequences, Study, study
from reproductions.yu_models import symbol_table

NEEDS_DATA = True
STUDIES = {"pos600": SENTENCES, "pos3000": MORE_SENTENCES}
PARTS = (*STUDIES, "decode")
SMOOTHING = {"start": 0.1, "transition": 0.1, "emission": 0.01}
ETA, GAP, C2 = 0.01, 1e-3, 0.01
AIMS = {"rounds": {"pos600": 40}, "cpu": 3.0, "decode": 5.0}  # at most, at most, at least
N_STATES, N_SYMBOLS, N_SEQUENCES = 20, 200, 5000
N_ROUNDS = 5
Flat = tuple[Any, Any, Any]


def clocks(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """What some work returns, its CPU time and its wall-clock time."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def share(part: Sequences, predicted: Any) -> float:
    return float(part.wrong(predicted).sum() / part.lengths.sum())


def cut(part: Sequences, size: int | None) -> Sequences:
    return Sequences(part.X[:size], part.y[:size])


def fit_ours(whole: Study, train: Sequences, n_jobs: int) -> DiscriminativeHMM:
    model = DiscriminativeHMM(ETA, smoothing=SMOOTHING, tol=GAP, n_jobs=n_jobs, **whole.rare)
    return model.fit(train.X, train.y)


def crfsuite_corpus(whole: Study, train: Sequences, test: Sequences) -> Corpus:
    """The symbols of the HMM as the only attribute of each token."""
    table = symbol_table(train, whole.rare)

    def items(part: Sequences) -> list[list[list[str]]]:
        columns = table.encode(list(itertools.chain.from_iterable(part.X))).tolist()
        flat = iter([str(column)] if column < table.unknown else [] for column in columns)
        return [list(itertools.islice(flat, len(words))) for words in part.X]

    return Corpus("treebank", items(train), train.y, items(test), test.y)


def measure_training(name: str, size: int | None = None) -> dict[str, Any]:
    """Train both on the same symbols, ours to a certified gap; `size` limits the sentences, for trying things out."""
    whole = study(Settings(), STUDIES[name])
    train, test = cut(whole.train, size), cut(whole.test, size)
    corpus = crfsuite_corpus(whole, train, test)
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        path = Path(folder) / "model"
        course, peer_cpu, peer_wall = clocks(lambda: train_crfsuite(corpus, path, c2=C2, everything=True))
        model, cpu, wall = clocks(lambda: fit_ours(whole, train, 1))
        both, _, wall_two = clocks(lambda: fit_ours(whole, train, 2))
        with pycrfsuite.Tagger().open(str(path)) as tagger:
            peer_error = share(test, [tagger.tag(items) for items in corpus.X_test])
    gap = float(model.dual_gap_ / (model.objective_ - model.dual_gap_))
    assert gap <= GAP, f"the gap is {gap}"
    assert np.array_equal(model.parameters_, both.parameters_), "threads have changed the result"
    counted = DiscriminativeHMM(0.0, smoothing=SMOOTHING, **whole.rare).fit(train.X, train.y)
    return {
        "n_sentences": len(train.y),
        "n_tokens": int(train.lengths.sum()),
        "n_symbols": int(model.emissionprob_.shape[1]),
        "n_states": len(model.classes_),
        "relative_gap": gap,
        "rounds": int(model.n_iter_),
        "peer_iterations": len(course.objectives),
        "cpu": cpu,
        "wall": wall,
        "wall_two_threads": wall_two,
        "peer_cpu": peer_cpu,
        "peer_wall": peer_wall,
        "ratio": cpu / peer_cpu,
        "error": share(test, model.predict(test.X)),
        "counted_error": share(test, counted.predict(test.X)),
        "peer_error": peer_error,
    }


def drawn(n_sequences: int) -> tuple[Flat, Flat]:
    """Symbols, states and lengths of sequences with 20 to 60 nodes from one random HMM: to train, and to decode."""
    rng = np.random.default_rng(0)
    step = rng.dirichlet(np.full(N_STATES, 0.3), N_STATES).cumsum(axis=1)
    emit = rng.dirichlet(np.full(N_SYMBOLS, 0.1), N_STATES).cumsum(axis=1)

    def one_side() -> Flat:
        lengths = rng.integers(20, 61, n_sequences)
        state = np.empty(lengths.sum(), dtype=np.int64)
        state[0] = 0
        uniform = rng.random(len(state))
        for at in range(1, len(state)):
            state[at] = min(np.searchsorted(step[state[at - 1]], uniform[at]), N_STATES - 1)
        symbol = (emit[state] < rng.random(len(state))[:, None]).sum(axis=1)
        return np.minimum(symbol, N_SYMBOLS - 1), state, lengths

    return one_side(), one_side()


def tagged(size: int | None) -> tuple[Flat, Flat]:
    """The larger set of sentences, with columns of the HMM for words and numbers for tags."""
    whole = study(Settings(), MORE_SENTENCES)
    table = symbol_table(whole.train, whole.rare)
    tags = {tag: code for code, tag in enumerate(sorted({tag for tags in whole.train.y for tag in tags}))}

    def flat(part: Sequences) -> Flat:
        columns = table.encode(list(itertools.chain.from_iterable(part.X)))
        assert columns.max() < table.unknown, "hmmlearn has no place for unknown symbols"
        # A tag that training lacks is not looked at: only paths are compared.
        codes = np.array([tags.get(tag, 0) for labels in part.y for tag in labels])
        return columns, codes, part.lengths

    return flat(cut(whole.train, size)), flat(cut(whole.test, size))


def peer_of(model: DiscriminativeHMM) -> CategoricalHMM:
    """The same tables in hmmlearn."""
    peer = CategoricalHMM(len(model.classes_), n_features=model.emissionprob_.shape[1])
    peer.startprob_, peer.transmat_, peer.emissionprob_ = model.startprob_, model.transmat_, model.emissionprob_
    return peer


def measure_decoding(train: Flat, test: Flat) -> dict[str, Any]:
    """Fit and decode against decoding alone, after checking that the paths are equally probable."""
    X, y, lengths = train
    X_test, _, test_lengths = test
    known = np.unique(X)
    X_test = np.where(np.isin(X_test, known), X_test, known[0])  # what training lacks has no column in either
    columns = np.searchsorted(known, X_test)[:, None]  # hmmlearn wants numbers from 0

    def fit() -> DiscriminativeHMM:
        return DiscriminativeHMM(0.0, smoothing=SMOOTHING, n_jobs=1).fit(X, y, lengths=lengths)

    times: dict[str, list[float]] = {"fit": [], "predict": [], "peer_predict": []}
    with threadpool_limits(1):
        model = fit()
        peer = peer_of(model)
        for _ in range(N_ROUNDS):
            model, _, wall = clocks(fit)
            times["fit"].append(wall)
            paths, _, wall = clocks(lambda model=model: model.predict(X_test, lengths=test_lengths))
            times["predict"].append(wall)
            peer_path, _, wall = clocks(lambda: peer.predict(columns, test_lengths))
            times["peer_predict"].append(wall)
    ours, theirs = (
        model.score_samples(X_test, split, lengths=test_lengths)
        for split in (paths, np.split(model.classes_[peer_path], np.cumsum(test_lengths)[:-1]))
    )
    assert np.allclose(ours, theirs, rtol=1e-9), "the paths are not equally probable"
    seconds = {name: float(np.median(each)) for name, each in times.items()}
    return {
        "n_train": int(lengths.sum()),
        "n_sequences": len(test_lengths),
        "n_nodes": int(test_lengths.sum()),
        "n_states": len(model.classes_),
        "n_symbols": len(known),
        "seconds": seconds,
        "ratio": seconds["peer_predict"] / (seconds["fit"] + seconds["predict"]),
        "predict_ratio": seconds["peer_predict"] / seconds["predict"],
        "same_nodes": float(np.mean(np.concatenate(paths) == model.classes_[peer_path])),
    }


def run(parts: Sequence[str] = PARTS, size: int | None = None) -> dict[str, Any]:
    """Measure all parts, or those named; `size` limits the sequences, for trying things out."""
    result: dict[str, Any] = {"name": "discriminative_hmm"}
    for part in parts:
        if part in STUDIES:
            result[part] = measure_training(part, size)
        else:
            train, test = tagged(size)
            result[part] = {
                "drawn, fitted to others": measure_decoding(*drawn(size or N_SEQUENCES)),
                "parts of speech, fitted to training sentences": measure_decoding(train, test),
                "parts of speech, fitted to the same sentences": measure_decoding(test, test),
            }
    return result


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown; aims in brackets."""
    parts = []
    rows = [training_row(name, result[name]) for name in STUDIES if name in result]
    if rows:
        head = (
            "sentences / tokens / symbols / states | rounds | gap | CPU s | CRFsuite CPU s (iterations) "
            f"| ÷ (aim at most {AIMS['cpu']:g}) | s, 2 threads | error, %: trained / counted / CRFsuite"
        )
        parts.append(markdown(head, rows))
    rows = [decoding_row(name, one) for name, one in result.get("decode", {}).items()]
    if rows:
        head = (
            "decoding | sequences / nodes | states / symbols | fit, s (nodes) | predict, s | hmmlearn predict, s "
            f"| × fit and predict (aim at least {AIMS['decode']:g}) | × predict"
        )
        parts.append(markdown(head, rows))
    return "\n\n".join(parts)


def training_row(name: str, one: dict[str, Any]) -> tuple[str, ...]:
    aim = AIMS["rounds"].get(name)
    errors = (one["error"], one["counted_error"], one["peer_error"])
    return (
        f"{one['n_sentences']:,} / {one['n_tokens']:,} / {one['n_symbols']:,} / {one['n_states']}",
        f"{one['rounds']}{f' ({aim})' if aim else ''}",
        f"{one['relative_gap']:.1e}",
        f"{one['cpu']:.2f}",
        f"{one['peer_cpu']:.2f} ({one['peer_iterations']})",
        f"{one['ratio']:.2f}",
        f"{one['wall_two_threads']:.2f}",
        " / ".join(f"{100 * error:.2f}" for error in errors),
    )


def decoding_row(name: str, one: dict[str, Any]) -> tuple[str, ...]:
    seconds = one["seconds"]
    return (
        name,
        f"{one['n_sequences']:,} / {one['n_nodes']:,}",
        f"{one['n_states']} / {one['n_symbols']}",
        f"{seconds['fit']:.3f} ({one['n_train']:,})",
        f"{seconds['predict']:.3f}",
        f"{seconds['peer_predict']:.3f}",
        f"{one['ratio']:.1f}",
        f"{one['predict_ratio']:.1f}",
    )
