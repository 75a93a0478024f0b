"""What the measurements of CRFs share: corpora with their attributes, peers and the course of their training."""

from __future__ import annotations

import logging
import os
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pycrfsuite
from pycrfsuite._logparser import TrainLogParser

from benchmarks.interning import TAG_WINDOWS, WORD_WINDOWS, read_conll
from dualfield.datasets.benchmark_data import benchmark_file
from dualfield.metrics import span_f1_score

Items = list[list[str]]
Sentence = list[list[str]]
# Column, offsets and name of each attribute of CRFsuite's chunking tutorial.
WINDOWS = [(0, window, "|".join(f"w[{k}]" for k in window) + "=") for window in WORD_WINDOWS]
WINDOWS += [(1, window, "|".join(f"pos[{k}]" for k in window) + "=") for window in TAG_WINDOWS]


@dataclass(frozen=True, eq=False)
class Corpus:
    """Attribute strings and labels, in memory as Python lists; raw columns of the test part."""

    name: str
    X: list[Items]
    y: list[list[str]]
    X_test: list[Items]
    y_test: list[list[str]]
    columns_test: list[list[tuple[str, ...]]] = field(default_factory=list)

    @property
    def n_tokens(self) -> int:
        return sum(map(len, self.y))


def chunking_items(sentence: Sentence) -> Items:
    """The attributes of CRFsuite's chunking tutorial: words and tags in windows that lie inside the sentence."""
    last, items = len(sentence) - 1, []
    for at in range(len(sentence)):
        item = [
            name + "|".join([sentence[at + k][column] for k in window])
            for column, window, name in WINDOWS
            if at + window[0] >= 0 and at + window[-1] <= last
        ]
        if at == 0:
            item.append("__BOS__")
        if at == last:
            item.append("__EOS__")
        items.append(item)
    return items


def entity_items(sentence: Sentence) -> Items:
    """The attributes of sklearn-crfsuite's tutorial on entities: forms of the word, its tag and its neighbours."""
    items = []
    for at, (word, tag, *_) in enumerate(sentence):
        item = ["bias", f"word.lower={word.lower()}", f"word[-3:]={word[-3:]}", f"word[-2:]={word[-2:]}"]
        item += [f"word.isupper={word.isupper()}", f"word.istitle={word.istitle()}", f"word.isdigit={word.isdigit()}"]
        item += [f"postag={tag}", f"postag[:2]={tag[:2]}"]
        for step, outside in ((-1, "BOS"), (1, "EOS")):
            if not 0 <= at + step < len(sentence):
                item.append(outside)
                continue
            other, other_tag = sentence[at + step][:2]
            item += [f"{step:+d}:word.lower={other.lower()}", f"{step:+d}:word.istitle={other.istitle()}"]
            item += [f"{step:+d}:word.isupper={other.isupper()}"]
            item += [f"{step:+d}:postag={other_tag}", f"{step:+d}:postag[:2]={other_tag[:2]}"]
        items.append(item)
    return items


def _from_columns(name: str, train: str, test: str, items: Callable[[Sentence], Items], size: int | None) -> Corpus:
    folder = Path(os.environ["DUALFIELD_DATA"])
    parts = [read_conll(folder / f"{part}.txt.gz")[:size] for part in (train, test)]
    (X, y), (X_test, y_test) = (
        ([items(sentence) for sentence in part], [[row[2] for row in sentence] for sentence in part]) for part in parts
    )
    return Corpus(name, X, y, X_test, y_test, [[(row[0], row[1]) for row in sentence] for sentence in parts[1]])


def conll2000(size: int | None = None) -> Corpus:
    """Chunks; `size` keeps the first sentences of both parts, for trying things out."""
    return _from_columns("CoNLL-2000", "conll2000_train", "conll2000_test", chunking_items, size)


def conll2002(size: int | None = None) -> Corpus:
    """Spanish named entities."""
    return _from_columns("CoNLL-2002 Spanish", "conll2002_esp_train", "conll2002_esp_testb", entity_items, size)


def ocr(size: int | None = None, *, train_folds: tuple[int, ...]) -> Corpus:
    """Handwritten words; the attributes of a letter are the names of its black pixels."""
    with np.load(benchmark_file("ocr")) as arrays:
        pixels, letters, words, folds = (arrays[key] for key in ("X", "y", "word_id", "fold"))
    names = np.array([f"p{at}" for at in range(pixels.shape[1])], dtype=object)
    inside = np.isin(folds, train_folds)
    sides: list[tuple[list[Items], list[list[str]]]] = []
    for rows in (np.flatnonzero(inside), np.flatnonzero(~inside)):
        bounds = np.flatnonzero(np.diff(words[rows])) + 1
        each = np.split(rows, bounds)[:size]
        X = [[names[pixels[row] > 0].tolist() for row in word] for word in each]
        sides.append((X, [[chr(97 + int(code)) for code in letters[word]] for word in each]))
    return Corpus(f"OCR {len(train_folds)}/{10 - len(train_folds)}", *sides[0], *sides[1])


@dataclass
class Course:
    """What a peer did when: objectives in its own units, seconds since its first example was handed over."""

    objectives: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    trials: list[int] = field(default_factory=list)
    appended: float = 0.0  # all examples are handed over
    prepared: float = 0.0  # features are laid out, the optimiser starts
    n_features: int | None = None
    clock: Callable[[], float] = time.perf_counter
    began: float = field(init=False)
    parser: TrainLogParser = field(default_factory=TrainLogParser)

    def __post_init__(self) -> None:
        self.began = self.clock()

    def now(self) -> float:
        return self.clock() - self.began

    def feed(self, line: str) -> None:
        """A line of CRFsuite's log."""
        event = self.parser.feed(line)
        if event == "featgen_end":
            self.prepared, self.n_features = self.now(), self.parser.featgen_num_features
        elif event == "iteration":
            last = self.parser.last_iteration
            self.add(last["loss"], self.now(), last["linesearch_trials"])

    def add(self, objective: float, seconds: float, trials: int = 1) -> None:
        """An iteration: where it has arrived, when, and after how many evaluations."""
        self.objectives.append(objective)
        self.seconds.append(seconds)
        self.trials.append(trials)

    def steps(self) -> list[tuple[float, float]]:
        """Seconds and objective of each iteration."""
        return list(zip(self.seconds, self.objectives, strict=True))

    def seconds_to(self, target: float) -> float:
        """When the objective was first this small; NaN if never."""
        reached = np.flatnonzero(np.array(self.objectives) <= target)
        return self.seconds[reached[0]] if reached.size else float("nan")

    def seconds_per_pass(self) -> float:
        """Median over the iterations of their time for each evaluation of objective and gradient."""
        each = np.diff([self.prepared, *self.seconds]) / self.trials
        return float(np.median(each[1:]))


def train_crfsuite(
    corpus: Corpus,
    path: Path,
    *,
    c1: float = 0.0,
    c2: float = 1.0,
    everything: bool = False,
    transitions: bool = False,
    min_freq: int = 0,
    most: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Course:
    """python-crfsuite's L-BFGS, to its own stop unless iterations are limited; the model goes to a file."""
    options = {"c1": c1, "c2": c2, "feature.possible_states": everything, "feature.minfreq": min_freq}
    options["feature.possible_transitions"] = everything or transitions
    course = Course(clock=clock)

    class Listener(pycrfsuite.Trainer):  # type: ignore[misc]
        def message(self, message: str) -> None:
            course.feed(message)

    trainer = Listener(params={**options, **({} if most is None else {"max_iterations": most})})
    for items, labels in zip(corpus.X, corpus.y, strict=True):
        trainer.append(items, labels)
    course.appended = course.now()
    trainer.train(str(path))
    return course


def as_weights(X: list[Items]) -> list[list[dict[str, float]]]:
    """The form that chaine wants: dicts from attribute to weight."""
    return [[dict.fromkeys(item, 1.0) for item in items] for items in X]


def train_chaine(
    corpus: Corpus, path: Path, *, c1: float = 0.0, c2: float = 1.0, everything: bool = False, most: int | None = None
) -> Course:
    """chaine's L-BFGS: CRFsuite again, behind another interface."""
    import chaine.logging

    options = {"c1": c1, "c2": c2, "all_possible_states": everything, "all_possible_transitions": everything}
    X, logger = as_weights(corpus.X), logging.getLogger("chaine._core.crf")
    chaine.logging.set_verbosity(0)
    logger.handlers, logger.propagate = [logging.Handler()], False
    logger.setLevel(logging.INFO)
    course = Course()

    def hear(record: logging.LogRecord) -> None:
        found = re.search(r"training loss: ([\d.]+)", record.getMessage())
        if found:
            course.add(float(found[1]), course.now())
        elif "Processing training data" in record.getMessage():
            course.appended = course.now()
        elif "Start training" in record.getMessage():
            course.prepared = course.now()

    logger.handlers[0].emit = hear  # type: ignore[method-assign]
    trainer = chaine.Trainer("lbfgs", **options, **({} if most is None else {"max_iterations": most}))
    trainer.train(X, corpus.y, model_filepath=str(path))
    return course


def train_wapiti(
    corpus: Corpus, path: Path, *, c1: float = 0.0, c2: float = 1.0, everything: bool = True, most: int | None = None
) -> Course:
    """Wapiti's L-BFGS on two threads, stopped by CRFsuite's rule; it has all features, and `path` stays empty."""
    from wapiti import Model

    assert everything, "Wapiti has a weight for every attribute and label"
    lines = [
        "\n".join(" ".join(["u" + text for text in item] + ["b", label]) for item, label in zip(items, y, strict=True))
        for items, y in zip(corpus.X, corpus.y, strict=True)
    ]
    course = Course()
    rules = {"objwin": 10, "stopwin": 0, "stopeps": 1e-5, "maxiter": most or 0}
    model = Model(nthread=2, rho1=c1, rho2=2 * c2, **rules)
    for text in lines:
        model.add_training_sequence(text)
    course.appended = course.prepared = course.now()
    with tempfile.TemporaryFile() as log:  # its library writes to the stream of errors and nowhere else
        kept = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            model.train()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        log.seek(0)
        for found in re.finditer(rb"obj=([\d.]+) .*/([\d.]+)s\n", log.read()):
            course.add(float(found[1]), course.prepared + float(found[2]))
    return course


def quality(corpus: Corpus, tags: list[list[str]]) -> dict[str, float]:
    """Share of wrong labels on the test part, and F1 of spans where labels are spans."""
    pairs = [(a, b) for true, found in zip(corpus.y_test, tags, strict=True) for a, b in zip(true, found, strict=True)]
    scores = {"error": sum(a != b for a, b in pairs) / len(pairs)}
    return scores if corpus.name.startswith("OCR") else {**scores, "f1": span_f1_score(corpus.y_test, tags)}


def crfsuite_tags(corpus: Corpus, path: Path) -> list[list[str]]:
    with pycrfsuite.Tagger().open(str(path)) as tagger:
        return [tagger.tag(items) for items in corpus.X_test]
