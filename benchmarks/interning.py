"""Attribute strings to columns

`Batch.build` beside `Trainer.append` of python-crfsuite, on the same lists and dicts of CRFsuite's chunking features.
"""

from __future__ import annotations

import gc
import gzip
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.memory import peak_megabytes
from dualfield.data import Batch

N_ROUNDS = 5

# Offsets of the words, and of the tags, that make one attribute of a token, as in CRFsuite's chunking tutorial.
WORD_WINDOWS = [(-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1)]
TAG_WINDOWS = [*[(k,) for k in range(-2, 3)], (-2, -1), (-1, 0), (0, 1), (1, 2), (-2, -1, 0), (-1, 0, 1), (0, 1, 2)]

Item = list[str]


def read_conll(path: Path) -> list[list[list[str]]]:
    """Sentences of a gzipped CoNLL file: tokens as lists of their columns."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().strip().split("\n\n")
    return [[line.split() for line in block.split("\n")] for block in blocks]


def chunking_items(sentence: list[list[str]]) -> list[Item]:
    """Attributes of each token: words and tags in windows; windows that reach past the sentence are left out."""
    items = []
    for at in range(len(sentence)):
        item = []
        for column, name, windows in ((0, "w", WORD_WINDOWS), (1, "pos", TAG_WINDOWS)):
            for window in windows:
                if at + window[0] >= 0 and at + window[-1] < len(sentence):
                    values = "|".join(sentence[at + k][column] for k in window)
                    item.append(name + "|".join(f"[{k}]" for k in window) + "=" + values)
        item += ["__BOS__"] * (at == 0) + ["__EOS__"] * (at == len(sentence) - 1)
        items.append(item)
    return items


def synthetic_sentences(n_sentences: int = 8936) -> list[list[list[str]]]:
    """Words with frequencies like those of text, in sentences as long as those of CoNLL-2000."""
    generator = random.Random(0)
    words = [f"word{i}" for i in range(20_000)]
    weights = [1 / (i + 3) for i in range(len(words))]
    sentences = []
    for _ in range(n_sentences):
        chosen = generator.choices(words, weights, k=generator.randint(2, 45))
        sentences.append([[word, f"T{len(word) * 7 % 40}", "O"] for word in chosen])
    return sentences


def as_dicts(sequences: list[list[Item]]) -> list[list[dict[str, str | bool]]]:
    """The same attributes as dicts {name: value}."""
    return [
        [{name: value or True for name, _, value in (text.partition("=") for text in item)} for item in sequence]
        for sequence in sequences
    ]


def check_columns(batch: Batch, sequences: list[list[Item]]) -> None:
    """Refuse to time what is wrong: every row must decode to the strings that went in."""
    assert batch.vocabulary is not None
    assert batch.indices is not None
    strings = list(batch.vocabulary)
    expected = [text for sequence in sequences for item in sequence for text in item]
    if [strings[column] for column in batch.indices.tolist()] != expected:
        raise AssertionError("columns do not decode to the attributes that went in")


def seconds(call: Callable[[], Any]) -> float:
    """Processor time of one call; the garbage collector, which would walk all lists, stays out of it."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        call()
        return time.process_time() - start
    finally:
        gc.enable()


def append_all(sequences: list[Any], labels: list[list[str]]) -> None:
    import pycrfsuite

    trainer = pycrfsuite.Trainer(verbose=False)
    for sequence, tags in zip(sequences, labels, strict=True):
        trainer.append(sequence, tags)


def compare(sequences: list[Any], labels: list[list[str]]) -> dict[str, float]:
    """Best of several interleaved runs of both."""
    ours, theirs = [], []
    for _ in range(N_ROUNDS):
        ours.append(seconds(lambda: Batch.build(sequences)))
        theirs.append(seconds(lambda: append_all(sequences, labels)))
    return {
        "seconds": min(ours),
        "crfsuite_seconds": min(theirs),
        "ratio": min(theirs) / min(ours),
        "median_ratio": sorted(theirs)[N_ROUNDS // 2] / sorted(ours)[N_ROUNDS // 2],
    }


def run() -> dict[str, Any]:
    folder = os.environ.get("DUALFIELD_DATA")
    sentences = read_conll(Path(folder) / "conll2000_train.txt.gz") if folder else synthetic_sentences()
    labels = [[token[2] for token in sentence] for sentence in sentences]
    sequences = [chunking_items(sentence) for sentence in sentences]
    batch = Batch.build(sequences)
    check_columns(batch, sequences)
    assert batch.indices is not None
    return {
        "name": "interning",
        "data": "CoNLL-2000, training part" if folder else "synthetic",
        "n_tokens": batch.n_nodes,
        "n_attributes": batch.n_columns,
        "n_occurrences": int(batch.indices.size),
        "peak_megabytes": peak_megabytes(lambda: Batch.build(sequences)),
        "lists": compare(sequences, labels),
        "dicts": compare(as_dicts(sequences), labels),
    }


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    lines = [
        f"{result['data']}: {result['n_tokens']:,} tokens, {result['n_attributes']:,} distinct attributes, "
        f"{result['n_occurrences']:,} occurrences; {result['peak_megabytes']:.0f} MB added at the peak.",
        "",
        "| items | seconds | python-crfsuite, seconds | × best | × median |",
        "|---|---|---|---|---|",
    ]
    for form in ("lists", "dicts"):
        row = result[form]
        lines.append(
            f"| {form} | {row['seconds']:.3f} | {row['crfsuite_seconds']:.2f} | {row['ratio']:.1f} "
            f"| {row['median_ratio']:.1f} |"
        )
    return "\n".join(lines)
