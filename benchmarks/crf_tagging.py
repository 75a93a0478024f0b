"""Tagging beside python-crfsuite

One model for all: python-crfsuite trains it on CoNLL-2000 with the features of its chunking tutorial, ours reads the
file, so that the weights are equal. All must tag the test part alike before anything is timed. From raw columns the
peers need a Python function that makes attribute strings; ours has the same features as a template. Ready ids are a
batch of columns, which the peers do not have. Figures are thousands of tokens per second, medians of interleaved rounds
on one thread where nothing else is said.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pycrfsuite

from benchmarks.crf_data import Corpus, as_weights, chunking_items, conll2000, quality, train_crfsuite
from benchmarks.kernel_logistic_data import markdown, medians
from dualfield import CRF
from dualfield.data import Batch
from dualfield.features import Template

NEEDS_DATA = True
PARTS = ("columns", "strings", "ids")
ITERATIONS = 40  # enough for a model that tags well; the tags of both sides are the same whatever the weights
N_ROUNDS = 15
# How many times the tokens per second of python-crfsuite we aim at; for ids, tokens per second for each thread.
AIMS: dict[str, float] = {"columns": 20, "strings": 6, "ids": 3e6}
Tags = list[list[str]]
Calls = dict[str, Callable[[], Tags]]


@contextmanager
def trained(corpus: Corpus) -> Iterator[tuple[Path, pycrfsuite.Tagger]]:
    """A model file of python-crfsuite, and a tagger that has opened it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        train_crfsuite(corpus, path, most=ITERATIONS)
        with pycrfsuite.Tagger().open(str(path)) as tagger:
            yield path, tagger


def ours_on_threads(path: Path, X: Any, template: Template | None = None) -> Calls:
    one, two = (CRF.from_crfsuite(path).set_params(template=template, n_jobs=n) for n in (1, 2))
    return {"ours": lambda: one.predict(X), "ours, two threads": lambda: two.predict(X)}


def chaine_on(path: Path, weights: Callable[[], list[Any]]) -> Calls:
    """chaine reads the same file, as it has CRFsuite inside."""
    if importlib.util.find_spec("chaine") is None:
        return {}
    import chaine

    model = chaine.Model(str(path))
    return {"chaine": lambda: model.predict(weights())}


def calls_for(part: str, corpus: Corpus, path: Path, tagger: pycrfsuite.Tagger) -> Calls:
    """The ways to tag the test part, from what `part` names."""
    if part == "columns":
        rows = corpus.columns_test
        return {
            **ours_on_threads(path, rows, Template.chunking()),
            "python-crfsuite": lambda: [tagger.tag(chunking_items(sentence)) for sentence in rows],
            **chaine_on(path, lambda: as_weights([chunking_items(sentence) for sentence in rows])),
        }
    if part == "strings":
        ready = as_weights(corpus.X_test)
        return {
            **ours_on_threads(path, corpus.X_test),
            "python-crfsuite": lambda: [tagger.tag(items) for items in corpus.X_test],
            **chaine_on(path, lambda: ready),
        }
    batch = Batch.build(corpus.X_test, vocabulary=CRF.from_crfsuite(path).vocabulary_)
    return ours_on_threads(path, batch)


def measure(part: str, corpus: Corpus, path: Path, tagger: pycrfsuite.Tagger, n_rounds: int) -> dict[str, Any]:
    calls = calls_for(part, corpus, path, tagger)
    truth = [tagger.tag(items) for items in corpus.X_test]
    for name, call in calls.items():
        wrong = sum(a != b for x, y in zip(call(), truth, strict=True) for a, b in zip(x, y, strict=True))
        assert wrong == 0, f"{name} from {part} tags {wrong} tokens differently"
    n_tokens, seconds = sum(map(len, truth)), medians(calls, n_rounds)
    speeds = {name: n_tokens / each for name, each in seconds.items()}
    peer = speeds.get("python-crfsuite")
    return {
        "n_tokens": n_tokens,
        "tokens_per_second": speeds,
        "ratios": {} if peer is None else {name: speed / peer for name, speed in speeds.items()},
        "aim": AIMS[part],
        **quality(corpus, truth),
    }


def run(parts: Sequence[str] = PARTS, size: int | None = None) -> dict[str, Any]:
    """Measure all parts, or those named; `size` limits the sentences, for trying things out."""
    corpus = conll2000(size)
    with trained(corpus) as (path, tagger):
        rounds = N_ROUNDS if size is None else 3
        return {"name": "crf_tagging", **{part: measure(part, corpus, path, tagger, rounds) for part in parts}}


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    names = {"columns": "raw columns", "strings": "attribute strings", "ids": "ready ids"}
    rows = []
    for part, what in names.items():
        for name, speed in result.get(part, {}).get("tokens_per_second", {}).items():
            ratio, aim = result[part]["ratios"].get(name), result[part]["aim"]
            shown = {"ours": f"{aim / 1e3:,.0f} thousand" if part == "ids" else f"× {aim:g}"}.get(name, "")
            rows.append((what, name, f"{speed / 1e3:,.0f}", "" if ratio is None else f"{ratio:.1f}", shown))
    found = next(iter(result[part] for part in PARTS if part in result))
    note = f"{found['n_tokens']:,} tokens, F1 {100 * found['f1']:.2f}; all tags are equal."
    return markdown("from | who | thousand tokens/s | × python-crfsuite | aim", rows) + "\n\n" + note
