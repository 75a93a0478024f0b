"""Words that training does not have: does a structured model read them better than letter by letter?

Errors and not times. The handwritten words have 55 distinct ones only, and on further copies of known words a model can
know them by heart. Here every fifth of the distinct words is held out once, in two random orders of the words: ten
splits with 700 words for training and 800 copies of other words for testing; the first five are those of `python -m
reproductions perezcruz2007`, part disjoint. Settings are chosen in each split by the letter error on three folds of the
distinct training words, never on the test words. The grids themselves were laid out after trials on splits of the same
words, the first five among them; that of the network was moved where these folds had chosen its edge.

Letters alone: SVC with its votes, and the kernel machine of Crammer and Singer. Max-margin network: the same kernel on
letters, with weights for transitions that are penalised more strongly than the letters (`transition_scale`). Pairs by
hand: kernel logistic letters, and how often letters follow each other in the distinct training words, smoothed towards
single letters. Differences are means over splits with standard errors; training words of the splits overlap, so that
these are a guide and no test.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.svm import SVC

from benchmarks.kernel_logistic_data import markdown
from dualfield import KernelLogisticRegression, StructuredSVM
from dualfield.kernels import Kernel
from dualfield.structures import Chain, Scores
from reproductions.perezcruz_data import Words, handwritten_words, word_disjoint_splits
from reproductions.records import Settings

NEEDS_DATA = True
PARTS = ("SVC", "letters", "network", "pairs")
NAMES = {
    "SVC": "letters alone, SVC",
    "letters": "letters alone, Crammer and Singer",
    "network": "kernel max-margin network",
    "pairs": "kernel logistic letters, pairs by hand",
}
N_FOLDS, N_LETTERS = 3, 26
Grid = Mapping[str, Sequence[float]]
Setting = dict[str, float]
Predictor = Callable[[Words], Any]
LETTER_GRID: Grid = {"C": (2.0, 5.0, 15.0), "gamma": (1 / 16, 1 / 24, 1 / 32)}
NETWORK_GRID: Grid = {"C": (1.0, 2.0, 5.0), "C_transitions": (0.003, 0.01, 0.03)}
NODE_GRID: Grid = {"C": (100.0, 1000.0), "gamma": (1 / 24,)}
PAIR_GRID: Grid = {
    "prior": (0.6, 0.9),
    "pairs": (1.0, 1.5, 2.0),
    "ends": (0.0, 0.5, 1.0),
    "smoothing": (20.0, 40.0, 80.0),
}


def settings_of(grid: Grid) -> list[Setting]:
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def folds(train: Words, seed: int) -> Iterator[tuple[Words, Words]]:
    """Training words in two, so that no distinct word is in both."""
    order = np.random.default_rng(seed).permutation(np.unique(train.names))
    for at in range(N_FOLDS):
        held_out = np.isin(train.names, order[at::N_FOLDS])
        yield train.take(~held_out), train.take(held_out)


def chosen(grid: Grid, fit: Callable[..., Predictor], parts: Sequence[tuple[Words, Words]]) -> tuple[Setting, float]:
    """The setting with the lowest letter error on the held-out folds, and this error."""

    def error(setting: Setting) -> float:
        wrong = [fit(train, **setting)(held_out) != held_out.y for train, held_out in parts]
        return float(np.concatenate(wrong).mean())

    errors = [error(setting) for setting in settings_of(grid)]
    return settings_of(grid)[int(np.argmin(errors))], min(errors)


def fit_svc(train: Words, C: float, gamma: float) -> Predictor:
    machine = SVC(C=C, kernel=Kernel("rbf", gamma).values).fit(train.X, train.y)
    return lambda words: machine.predict(words.X)


def fit_letters(train: Words, C: float, gamma: float) -> Predictor:
    machine = StructuredSVM("single", C, kernel="rbf", gamma=gamma, tol=1e-2, random_state=0).fit(train.X, train.y)
    return lambda words: machine.predict(words.X)


def fit_network(train: Words, gamma: float, C: float, C_transitions: float) -> Predictor:
    scale = float(np.sqrt(C_transitions / C))
    model = StructuredSVM(
        C=C, kernel="rbf", gamma=gamma, transition_scale=scale, start_stop=True, tol=3e-2, random_state=0
    )
    model.fit(train.X, train.y, lengths=train.lengths)
    return lambda words: np.concatenate(model.predict(words.X, lengths=words.lengths))


def letter_log_probabilities(train: Words, C: float, gamma: float) -> Callable[[Words], Any]:
    model = KernelLogisticRegression(C=C, gamma=gamma, tol=1e-2).fit(train.X, train.y)

    def nodes(words: Words) -> Any:
        scores = np.full((len(words.y), N_LETTERS), -20.0)  # letters that training lacks
        scores[:, model.classes_] = np.maximum(model.predict_log_proba(words.X), -20.0)
        return scores

    return nodes


def letter_statistics(train: Words, smoothing: float) -> tuple[Any, Any, Any, Any]:
    """Log of the frequency of letters; of how many times likelier they are after a letter, first and last.

    Every distinct word counts once. P(b | a) = (n(a, b) + k P(b)) / (n(a) + k), with k the smoothing.
    """
    single, pairs, ends = np.ones(N_LETTERS), np.zeros((N_LETTERS, N_LETTERS)), np.zeros((2, N_LETTERS))
    for name in np.unique(train.names):
        codes = np.frombuffer(name.encode(), np.uint8) - ord("a")
        np.add.at(single, codes, 1.0)
        np.add.at(pairs, (codes[:-1], codes[1:]), 1.0)
        ends[[0, 1], codes[[0, -1]]] += 1.0
    prior = single / single.sum()

    def ratios(counts: Any) -> Any:
        return np.log((counts / prior + smoothing) / (counts.sum(axis=-1, keepdims=True) + smoothing))

    return np.log(prior), ratios(pairs), *ratios(ends)


def decode(nodes: Any, words: Words, train: Words, setting: Setting) -> Any:
    """The likeliest letter of each node, given all of the word."""
    prior, pairs, start, stop = letter_statistics(train, setting["smoothing"])
    weight, ends = setting["pairs"], setting["pairs"] * setting["ends"]
    offsets = np.concatenate([[0], np.cumsum(words.lengths)])
    scores = Scores(nodes - setting["prior"] * prior, offsets, weight * pairs, start=ends * start, stop=ends * stop)
    return Chain(N_LETTERS).marginals(scores).node.argmax(axis=1)


def choose_pairs(node_grid: Grid, pair_grid: Grid, parts: Sequence[tuple[Words, Words]]) -> tuple[Setting, float]:
    """As `chosen`; letters are fitted once for all ways to join them."""
    found: list[tuple[float, Setting]] = []
    for own in settings_of(node_grid):
        nodes = [letter_log_probabilities(train, **own)(held_out) for train, held_out in parts]
        for setting in settings_of(pair_grid):
            wrong = [
                decode(scores, held_out, train, setting) != held_out.y
                for scores, (train, held_out) in zip(nodes, parts, strict=True)
            ]
            found.append((float(np.concatenate(wrong).mean()), {**own, **setting}))
    error, setting = min(found, key=lambda one: one[0])
    return setting, error


def measure(train: Words, test: Words, seed: int, models: Sequence[str], few: bool) -> dict[str, Any]:
    """Choose on folds of the training words, fit all of them, and count errors on the test words."""
    letter_grid, network_grid, node_grid, pair_grid = (
        {name: values[1:2] if few and len(values) > 1 else values for name, values in grid.items()}
        for grid in (LETTER_GRID, NETWORK_GRID, NODE_GRID, PAIR_GRID)
    )
    parts, result = list(folds(train, seed)), {}

    def keep(name: str, setting: Setting, error: float, predicted: Any) -> None:
        letter, word = test.errors(predicted)
        result[name] = {"letter": letter, "word": word, "validation": error, "setting": setting}

    if "SVC" in models:
        setting, error = chosen(letter_grid, fit_svc, parts)
        keep("SVC", setting, error, fit_svc(train, **setting)(test))
    if "letters" in models or "network" in models:
        setting, error = chosen(letter_grid, fit_letters, parts)
        keep("letters", setting, error, fit_letters(train, **setting)(test))
        network_grid["gamma"] = (setting["gamma"],)
    if "network" in models:
        setting, error = chosen(network_grid, fit_network, parts)
        keep("network", setting, error, fit_network(train, **setting)(test))
    if "pairs" in models:
        setting, error = choose_pairs(node_grid, pair_grid, parts)
        nodes = letter_log_probabilities(train, setting["C"], setting["gamma"])(test)
        keep("pairs", setting, error, decode(nodes, test, train, setting))
    return result


def run(parts: Sequence[str] = PARTS, size: int | None = None) -> dict[str, Any]:
    """Measure all models, or those named; `size` limits words, splits and settings, for trying things out."""
    words = handwritten_words(Settings())
    sizes = {} if size is None else {"n_train": size, "n_test": size}
    splits = word_disjoint_splits(words, 5 if size is None else 1, **sizes)
    if size is None:
        splits += word_disjoint_splits(words, 5, seed=8)
    measured = Parallel(n_jobs=2)(
        delayed(measure)(words.take(split.train), words.take(split.new), number, parts, size is not None)
        for number, split in enumerate(splits)
    )
    return {"name": "unseen_words", "splits": measured}


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    splits, rows = result["splits"], []
    errors = {
        name: 100.0 * np.array([[one[name]["letter"], one[name]["word"]] for one in splits])
        for name in NAMES
        if name in splits[0]
    }
    for name, own in errors.items():
        mean = own.mean(axis=0)
        row = [NAMES[name], *(f"{letter:.1f} / {word:.1f}" for letter, word in own), f"{mean[0]:.2f} / {mean[1]:.2f}"]
        if name == "SVC" or "SVC" not in errors:
            rows.append([*row, "", "", ""])
            continue
        difference = own - errors["SVC"]
        spread = difference.std(axis=0, ddof=1) / np.sqrt(len(own)) if len(own) > 1 else np.full(2, np.nan)
        shown = [f"{value:+.2f} ± {one:.2f}" for value, one in zip(difference.mean(axis=0), spread, strict=True)]
        rows.append([*row, *shown, f"{(difference[:, 0] < 0).sum()} of {len(own)}"])
    numbers = " | ".join(f"split {number}" for number in range(len(splits)))
    return "Letter / word error on unseen words, %.\n\n" + markdown(
        f"model | {numbers} | mean | letters, minus SVC | words, minus SVC | better letters", rows
    )
