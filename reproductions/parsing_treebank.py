"""Trees of English sentences: models of labelled spans, with tags given and with words alone."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dualfield import CRF, StructuredSVM
from dualfield.data import ParseTree, clean_tree
from dualfield.io import read_trees
from dualfield.metrics import parse_f1_score, parse_scores
from reproductions.bootstrap import Counts, intervals
from reproductions.parsing_grammars import (
    fit_counted,
    fit_discriminative,
    fit_grammar_likelihood,
    fit_grammar_margin,
    fit_grammar_perceptron,
    fit_markovised,
)
from reproductions.records import Cell, Findings, Part, Settings, Table, Task
from reproductions.text_data import read_text

N_TRAIN, N_HELD_BACK = 3000, 500
QUICK = (60, 20, 30)  # training, held back, test
LENGTHS = (15, 40)
TAGS, WORDS = "words and tags", "words alone"
PERCEPTRON, COUNTED = "span perceptron", "PCFG"

Trees = list[ParseTree]
Fit = Callable[[Settings, float, Any, Trees], Any]


@dataclass(frozen=True, slots=True)
class Parser:
    """A model that is tried out.

    Attributes
    ----------
    name : str
        What the table calls it.
    grid : tuple of float
        Settings, C or numbers of passes, one of which is chosen on sentences that were held back from training.
    fit : callable
        From a setting, sentences and trees to a model.
    is_certified : bool
        Whether its fit has a duality gap.
    """

    name: str
    grid: tuple[float, ...]
    fit: Fit
    is_certified: bool = True


def _shared(settings: Settings) -> dict[str, Any]:
    return {"n_jobs": settings.threads, "random_state": settings.seed}


def fit_perceptron(settings: Settings, passes: float, X: Any, y: Trees) -> Any:
    """Train an averaged perceptron."""
    return CRF("spans", solver="perceptron", max_iter=int(passes), **_shared(settings)).fit(X, y)


def fit_likelihood(settings: Settings, C: float, X: Any, y: Trees) -> Any:
    """Train a CRF."""
    return CRF("spans", C=C, tol=1e-3, **_shared(settings)).fit(X, y)


def fit_margin(settings: Settings, C: float, X: Any, y: Trees) -> Any:
    """Train a structural SVM with the Hamming cost of rows: of brackets that are missing or too many."""
    return StructuredSVM("spans", C=C, tol=2e-2, **_shared(settings)).fit(X, y)


# Further parsers of the same sentences are added here.
PARSERS: tuple[Parser, ...] = (
    Parser(PERCEPTRON, (5, 10, 20), fit_perceptron, is_certified=False),
    Parser("span CRF", (0.3, 1.0, 3.0), fit_likelihood),
    Parser("span SVM", (0.03, 0.1, 0.3), fit_margin),
    Parser(COUNTED, (0.0, 0.1), fit_counted, is_certified=False),
    Parser("PCFG, two labels up", (0.0, 0.1), fit_markovised, is_certified=False),
    Parser("discriminative PCFG", (0.001, 0.003, 0.01), fit_discriminative),
    Parser("grammar CRF", (0.3, 1.0, 3.0), fit_grammar_likelihood),
    Parser("grammar SVM", (0.03, 0.1, 0.3), fit_grammar_margin),
    Parser("grammar perceptron", (5, 10, 20), fit_grammar_perceptron, is_certified=False),
)


@dataclass(frozen=True, slots=True)
class TreebankRow:
    """One parser on one kind of input.

    Attributes
    ----------
    parser, given : str
        Its name, and what is given.
    setting : float
        The one that was chosen.
    held_back : tuple of float
        F1 on the short held-back sentences for each setting of the grid.
    counts : tuple of (int, int, int)
        For each test sentence the brackets that are right, predicted and true.
    complete : float
        Share of test sentences whose brackets are all right, in per cent.
    n_unparsed : int
        Test sentences without a tree.
    gap, seconds : float
        Relative duality gap, nan where there is none, and processor time of the fit on all training sentences.
    """

    parser: str
    given: str
    setting: float
    held_back: tuple[float, ...]
    counts: tuple[tuple[int, int, int], ...]
    complete: float
    n_unparsed: int
    gap: float
    seconds: float


def read(settings: Settings) -> Trees:
    """Read the treebank, cleaned."""
    trees = read_text(settings, "treebank_trees", "trees in brackets", read_trees)
    found = [None if tree is None else clean_tree(tree) for tree in trees]
    return [tree for tree in found if tree is not None]


def sentences(trees: Trees, given: str) -> list[Any]:
    """Return what parsers get."""
    return [tree.tokens() if given == TAGS else tree.words() for tree in trees]


def counted(y: Trees, found: Sequence[Any]) -> list[tuple[int, int, int]]:
    """Return evalb's counts of each sentence: brackets that are right, predicted and true."""
    scores = [parse_scores([true], [tree]).overall for true, tree in zip(y, found, strict=True)]
    return [(one.correct, one.found, one.support) for one in scores]


def parsed(model: Any, trees: Trees, given: str) -> list[Any]:
    """Return predicted trees; None for sentences that a grammar cannot parse, which are counted."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[0-9,]+ of [0-9,]+ examples ha")
        return list(model.predict(sentences(trees, given), impossible="none"))


def compute(settings: Settings, parser: Parser, given: str, longest: int) -> TreebankRow:
    """Choose the setting on short held-back sentences, train on all of at most so many words, parse the test part."""
    trees = read(settings)
    n_train, n_held, n_test = QUICK if settings.quick else (N_TRAIN, N_HELD_BACK, len(trees) - N_TRAIN)

    def part(first: int, last: int, most: int) -> Trees:
        return [tree for tree in trees[first:last] if 2 <= len(tree.words()) <= most]

    grid = parser.grid[:1] if settings.quick else parser.grid
    fitting, held = part(0, n_train - n_held, LENGTHS[0]), part(n_train - n_held, n_train, LENGTHS[0])
    scores = []
    for setting in grid:
        one = parser.fit(settings, setting, sentences(fitting, given), fitting)
        scores.append(100.0 * parse_f1_score(held, parsed(one, held, given)))
    setting = grid[int(np.argmax(scores))]
    whole, test = part(0, n_train, longest), part(n_train, n_train + n_test, longest)
    began = time.process_time()
    chosen = parser.fit(settings, setting, sentences(whole, given), whole)
    seconds = time.process_time() - began
    found = parsed(chosen, test, given)
    result = parse_scores(test, found)
    return TreebankRow(
        parser=parser.name,
        given=given,
        setting=setting,
        held_back=tuple(scores),
        counts=tuple(counted(test, found)),
        complete=100.0 * result.complete_match,
        n_unparsed=result.n_unparsed,
        gap=float(chosen.dual_gap_ / max(chosen.objective_, 1e-300)) if parser.is_certified else np.nan,
        seconds=seconds,
    )


def tasks(longest: int, settings: Settings) -> list[Task[TreebankRow]]:
    """Return one task for each parser and what it is given."""
    return [
        Task(f"{parser.name}, {given}", partial(compute, settings, parser, given, longest))
        for parser in PARSERS
        for given in (TAGS, WORDS)
    ]


def present(longest: int, rows: Sequence[TreebankRow]) -> Findings:
    """Lay out scores, and what each parser adds to the perceptron with tags, and to the PCFG that is given the same."""
    names = [f"{row.parser}, {row.given}" for row in rows]
    counts: dict[str, Counts] = {
        name: np.array(row.counts, dtype=np.int64) for name, row in zip(names, rows, strict=True)
    }
    reference = f"{PERCEPTRON}, {TAGS}"
    found = intervals(counts, reference)
    beside = {
        given: intervals(counts, f"{COUNTED}, {given}") for given in (TAGS, WORDS) if f"{COUNTED}, {given}" in counts
    }
    header = ("parser", "given", "setting", "F1 held back", "F1 (95 %)", "minus the perceptron with tags (95 %)",
              "minus the PCFG (95 %)", "complete", "unparsed", "gap", "CPU s")  # fmt: skip
    body: list[tuple[Cell, ...]] = []
    for name, row in zip(names, rows, strict=True):
        own, more = found[name]
        gap: Cell = row.gap if np.isfinite(row.gap) else ""
        gain = str(beside[row.given][name][1]) if row.given in beside else ""
        body.append(
            (row.parser, row.given, row.setting, f"{max(row.held_back):.2f}", str(own), str(more), gain,
             f"{row.complete:.1f}", row.n_unparsed, gap, row.seconds)
        )  # fmt: skip
    grid = " ".join(
        f"{name}: " + ", ".join(f"{one:.2f}" for one in row.held_back) + "."
        for name, row in zip(names, rows, strict=True)
    )
    best = max(names, key=lambda name: found[name][0].value)
    n_test = len(counts[reference])
    return Findings(
        summary=(f"Up to {longest} words, {n_test} test sentences: {best} has the highest F1, {found[best][0]}.",),
        tables=(
            Table(
                f"Sentences of 2 to {longest} words; settings chosen on held-back ones up to {LENGTHS[0]} words.",
                header,
                tuple(body),
                (
                    f"F1 held back for each setting: {grid}",
                    "F1 is evalb's labelled F1; given tags are those of the treebank. Sentences without a tree count "
                    "as trees without brackets.",
                    "Intervals by drawing test sentences again, 2,000 times.",
                ),
            ),
        ),
        differences=(
            "Hall, Durrett and Klein train on 39,832 sentences, with a small grammar beside features of spans, and "
            "test on another part; these are 3,914 sentences of the same source, so no figure is compared.",
        ),
    )


SHORT, LONG = (
    Part(f"up-to-{longest}", f"Sentences up to {longest} words", (), partial(tasks, longest), partial(present, longest))
    for longest in LENGTHS
)
