"""Hidden sub-states: noun phrases from tags, and a motif in DNA

Errors and not times. Noun phrases of CoNLL-2000 from part-of-speech tags alone, with 200 sentences to train on: with so
little to look at, a label gains from sub-states. Five splits: other sentences to train on, the same test part; C is
chosen on 200 more sentences of the training part. Motif: sequences of 60 letters, of which half hold a noisy copy of a
motif of eight letters somewhere; a bag has a window for each place. Beside it stand linear classifiers of the mean and
of all letters. Figures are means with standard errors over splits.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from benchmarks.interning import read_conll
from benchmarks.kernel_logistic_data import markdown
from dualfield import CRF, LatentChain, LatentCRF, LatentPosition, LatentStructuredSVM, StructuredSVM

NEEDS_DATA = True
PARTS = ("chunks", "motif")
N_SPLITS, N_TRAIN, N_RESTARTS = 5, 200, 6
CS = (0.03, 0.1, 0.3)
Sequences = tuple[list[Any], list[Any]]


def noun_phrases(name: str) -> Sequences:
    """Tags of a token and its neighbours as attributes; noun phrases as labels, other chunks are outside."""
    X, y = [], []
    for sentence in read_conll(Path(os.environ["DUALFIELD_DATA"]) / f"{name}.txt.gz"):
        tags = ["<", *(row[1] for row in sentence), ">"]
        X.append([[f"-1={tags[at]}", f"0={tags[at + 1]}", f"+1={tags[at + 2]}"] for at in range(len(sentence))])
        y.append([row[2] if row[2].endswith("-NP") else "O" for row in sentence])
    return X, y


def part_of(data: Sequences, chosen: Any) -> Sequences:
    return [data[0][at] for at in chosen], [data[1][at] for at in chosen]


def chunkers(seed: int, n_restarts: int) -> dict[str, Any]:
    """From the name of a model to a function from C to the model."""

    def latent(n_substates: int, init: str) -> Any:
        return lambda C: LatentStructuredSVM(
            StructuredSVM(C=C, start_stop=True),
            LatentChain(n_substates),
            init=init,
            n_restarts=n_restarts,
            random_state=seed,
        )

    return {
        "structural SVM": lambda C: StructuredSVM(C=C, start_stop=True),
        "2 sub-states": latent(2, "random"),
        "2 sub-states, from EM": latent(2, "em"),
        "3 sub-states": latent(3, "random"),
        "CRF": lambda C: CRF(C=10.0 * C, start_stop=True),
        "CRF, 2 sub-states": lambda C: LatentCRF(
            CRF(C=10.0 * C, start_stop=True), LatentChain(2), n_restarts=n_restarts, random_state=seed
        ),
    }


def measure_chunks(n_splits: int, n_train: int, n_test: int | None, n_restarts: int) -> dict[str, Any]:
    everything, test = noun_phrases("conll2000_train"), noun_phrases("conll2000_test")
    test = (test[0][:n_test], test[1][:n_test])
    errors: dict[str, list[float]] = {}
    better: dict[str, list[float]] = {}
    for split in range(n_splits):
        order = np.random.default_rng(split).permutation(len(everything[0]))
        train, held_out = part_of(everything, order[:n_train]), part_of(everything, order[n_train : 2 * n_train])
        for name, make in chunkers(split, n_restarts).items():
            models = [make(C).fit(*train) for C in CS]
            best = max(models, key=lambda model: model.score(*held_out))
            errors.setdefault(name, []).append(1.0 - best.score(*test))
            plain = getattr(best, "plain_objective_", None)
            better.setdefault(name, []).append(1.0 if plain is None else best.objective_ / plain)
    return {"n_train": n_train, "n_tokens": sum(map(len, test[1])), "errors": errors, "objective_to_plain": better}


def dna(n: int, seed: int, motif: Any, noise: float = 0.15) -> tuple[Any, Any]:
    """Sequences as codes of letters; the motif hides in every second one."""
    rng = np.random.default_rng(seed)
    texts = rng.integers(4, size=(n, 60))
    for text in texts[1::2]:
        at = int(rng.integers(60 - len(motif) + 1))
        text[at : at + len(motif)] = np.where(rng.random(len(motif)) < noise, rng.integers(4, size=len(motif)), motif)
    return texts, np.where(np.arange(n) % 2, "motif", "nothing")


def windows(texts: Any, size: int) -> list[Any]:
    """A bag of windows for each text, a column for each letter at each place of the window."""
    letters = np.eye(4)[texts]
    return [np.stack([text[at : at + size].ravel() for at in range(len(text) - size + 1)]) for text in letters]


def measure_motif(n_splits: int, n_train: int, n_test: int, n_restarts: int) -> dict[str, Any]:
    errors: dict[str, list[float]] = {}
    for split in range(n_splits):
        motif = np.random.default_rng(1000 + split).integers(4, size=8)
        (train, y), (test, y_test) = dna(n_train, split, motif), dna(n_test, 100 + split, motif)
        bags, bags_test = windows(train, 8), windows(test, 8)
        model = LatentStructuredSVM(
            StructuredSVM(C=1.0), LatentPosition("nothing"), n_restarts=n_restarts, random_state=split
        )
        scores = {
            "hidden place": model.fit(bags, y).score(bags_test, y_test),
            "all letters, linear": LinearSVC(C=0.01).fit(_flat(train), y).score(_flat(test), y_test),
            "mean window, linear": LinearSVC().fit(_means(bags), y).score(_means(bags_test), y_test),
        }
        for name, score in scores.items():
            errors.setdefault(name, []).append(1.0 - float(score))
    return {"n_train": n_train, "n_test": n_test, "errors": errors}


def _flat(texts: Any) -> Any:
    return np.eye(4)[texts].reshape(len(texts), -1)


def _means(bags: list[Any]) -> Any:
    return np.array([bag.mean(axis=0) for bag in bags])


def run(parts: Sequence[str] = PARTS, size: int | None = None) -> dict[str, Any]:
    """Measure both parts, or those named; `size` limits splits, restarts and examples, for trying things out."""
    result: dict[str, Any] = {"name": "latent_chunking"}
    splits, restarts = (N_SPLITS, N_RESTARTS) if size is None else (2, 2)
    with warnings.catch_warnings():
        # Runs that stop early or learn nothing are a part of what is measured; the ratio of objectives tells.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        if "chunks" in parts:
            result["chunks"] = measure_chunks(splits, size or N_TRAIN, size, restarts)
        if "motif" in parts:
            result["motif"] = measure_motif(splits, size or 400, 2000 if size is None else 4 * size, restarts)
    return result


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    rows = []
    for part, what in (("chunks", "noun phrases"), ("motif", "motif")):
        for name, errors in result.get(part, {}).get("errors", {}).items():
            percent = 100.0 * np.array(errors)
            spread = percent.std(ddof=1) / np.sqrt(len(percent)) if len(percent) > 1 else np.nan
            ratio = result[part].get("objective_to_plain", {}).get(name, [1.0])
            shown = "" if set(ratio) == {1.0} else f"{np.mean(ratio):.2f}"
            rows.append((what, name, f"{percent.mean():.2f} ± {spread:.2f}", shown))
    return markdown("data | model | test error, % | objective ÷ that without sub-states", rows)
