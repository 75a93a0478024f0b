"""``dualfield demo digits``: read handwritten numbers digit by digit and as whole words, and write a page about it.

What comes out of it is laid out in :mod:`dualfield.report.digit_words` for the page and in
:mod:`dualfield.report.terminal`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from dualfield import __version__
from dualfield.cli.digit_reader import GaussianDigits, Reader, context_tables, read_words, train_reader
from dualfield.cli.help_pages import Command
from dualfield.cli.outputs import STANDARD_OUTPUT, check_outputs, check_page, written_page
from dualfield.datasets.digit_words import LANGUAGES, DigitWords, load_digit_words
from dualfield.report import CalibrationBins, calibration_bins, write_page
from dualfield.report.digit_words import digit_words_page
from dualfield.report.digit_words_records import CardGroup, DigitWordsReport, ModelRow, Reading, WordCard
from dualfield.report.terminal import progress_steps, show_digit_words
from dualfield.structures import Scores

__all__ = ["digits"]

_NOISE = 0.35
_ORDERS = (0, 1, 2, 3)  # of the chains that are counted; the trained one has the last


def compare(reader: Reader, truth: NDArray[np.int64], offsets: NDArray[np.int64]) -> ModelRow:
    """Measure a reader against the true digits (N,)."""
    wrong = reader.digits != truth
    given = reader.marginals[np.arange(len(truth)), truth]
    return ModelRow(
        name=reader.name,
        digit_error=float(wrong.mean()),
        word_error=float(_any_wrong(reader.digits, truth, offsets).mean()),
        log_loss=float(-np.log(np.maximum(given, np.finfo(np.float64).tiny)).mean()),
        calibration_error=_calibration(reader, truth).error,
        seconds=reader.seconds,
    )


def _any_wrong(digits: NDArray[np.int32], truth: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.logical_or.reduceat(digits != truth, offsets[:-1])


def _calibration(reader: Reader, truth: NDArray[np.int64]) -> CalibrationBins:
    return calibration_bins(reader.marginals.max(axis=1), reader.marginals.argmax(axis=1) == truth)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Result:
    """All that was computed: data, true digits (N,), word boundaries (n + 1,), count tables, readers and their rows."""

    data: DigitWords
    truth: NDArray[np.int64]
    offsets: NDArray[np.int64]
    tables: list[NDArray[np.float64]]
    readers: tuple[Reader, ...]
    rows: tuple[ModelRow, ...]

    @property
    def alone(self) -> Reader:
        """The reader that sees one picture at a time."""
        return self.readers[0]

    @property
    def chain(self) -> Reader:
        """The counted chain with the longest context."""
        return self.readers[len(_ORDERS) - 1]

    def kinds(self) -> dict[str, NDArray[np.int64]]:
        """Sort test words by who reads them rightly, digit by digit or in context."""
        alone = _any_wrong(self.alone.digits, self.truth, self.offsets)
        chain = _any_wrong(self.chain.digits, self.truth, self.offsets)
        return {
            "corrected": np.flatnonzero(alone & ~chain),
            "chain wrong": np.flatnonzero(chain),
            "both right": np.flatnonzero(~alone & ~chain),
        }

    def card(self, word: int) -> WordCard:
        """Collect what there is to say about one test word."""
        here = slice(self.offsets[word], self.offsets[word + 1])
        first, last = self.alone, self.chain
        alone = Scores(last.scores.node[here], None, transition=last.scores.transition, start=last.scores.start)
        best = last.structure.k_best(alone, 3)
        chances = np.exp(best.scores[0] - last.log_partition[word])
        return WordCard(
            digits=self.truth[here],
            images=self.data.images[self.data.test[word]],
            readings=(
                Reading(first.name, first.digits[here], first.marginals[here]),
                Reading(last.name, last.digits[here], last.marginals[here]),
            ),
            best=tuple((digits, float(chance)) for digits, chance in zip(best.labels, chances, strict=True)),
        )


def run(n_words: int, language: str, seed: int, n_jobs: int, step: Callable[[str], None]) -> Result:
    """Set the words, fit the model of images, count contexts and read the test words with every order.

    Parameters
    ----------
    n_words, language, seed
        As for :func:`dualfield.datasets.load_digit_words`.
    n_jobs : int
        Number of threads.
    step : callable
        Told the name of each step as it begins.

    Returns
    -------
    Result
        One reader and one row of errors for each order, 0 to 3, and for a trained CRF of order 3.

    Examples
    --------
    >>> from dualfield.cli.demo_digits import run
    >>> names = []
    >>> result = run(60, "codes", seed=0, n_jobs=1, step=names.append)
    >>> [row.name for row in result.rows]
    ['independent', 'chain, order 1', 'chain, order 2', 'chain, order 3', 'CRF, order 3']
    >>> names[0]
    'setting the words'
    """
    step("setting the words")
    data = load_digit_words(n_words, language=language, noise=_NOISE, random_state=seed)
    step("learning what digits look like")
    train_labels = [data.labels[word] for word in data.train]
    model = GaussianDigits.fit(np.concatenate([data.images[word] for word in data.train]), np.concatenate(train_labels))
    tables = context_tables(train_labels, max(_ORDERS))
    truth = np.concatenate([data.labels[word] for word in data.test])
    offsets = np.concatenate([[0], np.cumsum([len(data.labels[word]) for word in data.test])])
    log_density = model.log_density(np.concatenate([data.images[word] for word in data.test]))
    readers = []
    for order in _ORDERS:
        step(f"reading with {order} digits of context" if order != 1 else "reading with 1 digit of context")
        readers.append(read_words(log_density, offsets, tables, order, n_jobs))
    step("training a CRF")
    train_images, test_images = ([data.images[word] for word in part] for part in (data.train, data.test))
    readers.append(train_reader(train_images, train_labels, test_images, _ORDERS[-1], seed, n_jobs))
    rows = tuple(compare(reader, truth, offsets) for reader in readers)
    return Result(data=data, truth=truth, offsets=offsets, tables=tables, readers=tuple(readers), rows=rows)


# Which test words are shown on the page: rule, kind, how many.
_SHOWN = (
    ("Wrong digit by digit, right in context", "corrected", 6),
    ("Wrong in context", "chain wrong", 4),
    ("Right both ways", "both right", 2),
)


def summarise(result: Result, language: str, seed: int) -> DigitWordsReport:
    """Choose words by rule and say what was done."""
    data, kinds = result.data, result.kinds()
    known = {data.words[word] for word in data.train}
    n_known = sum(data.words[word] in known for word in data.test)
    return DigitWordsReport(
        summary=(
            f"{len(data.test)} test words after {len(data.train)} training words: {LANGUAGES[language]}.",
            f"Pictures: scikit-learn's digits, with pixel noise (standard deviation {_NOISE} of full ink) added on "
            "purpose. No original image is used both in training and in test words.",
        ),
        setting=(
            f"{len(data.test)} words ({len(result.truth)} digits) were read after {len(data.train)} training words. "
            f"The language: {LANGUAGES[language]}. Words are drawn with replacement: {n_known} of the test words "
            "occur, as text, among the training words too.",
            f"The pictures are scikit-learn's 8x8 digits. Gaussian noise (standard deviation {_NOISE} of full ink) was "
            "added on purpose, so that a picture alone does not suffice. No original image is used both in training "
            "and in test words.",
        ),
        rows=result.rows,
        calibration={one.name: _calibration(one, result.truth) for one in (result.alone, result.chain)},
        transition=result.tables[1],
        groups=tuple(
            CardGroup(rule, len(kinds[kind]), tuple(result.card(int(word)) for word in kinds[kind][:shown]))
            for rule, kind, shown in _SHOWN
            if len(kinds[kind])
        ),
        n_test=len(data.test),
        footer=f"dualfield {__version__}; language {language}, {len(data.words)} words, seed {seed}.",
    )


@click.command(cls=Command, examples=["dualfield demo digits --report page.html"])
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="Where the page goes.",
)
@click.option(
    "--words",
    type=click.IntRange(50, 100_000),
    default=2000,
    show_default=True,
    help="Words, a quarter of them test words.",
)
@click.option(
    "--language", type=click.Choice(list(LANGUAGES)), default="codes", show_default=True, help="What the words are."
)
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True, help="Random seed.")
@click.option("--threads", type=click.IntRange(1, 1024), default=1, show_default=True, help="Threads for inference.")
def digits(report: Path, words: int, language: str, seed: int, threads: int) -> None:
    """Read handwritten numbers digit by digit and as whole words.

    Compares independent reading with chains of order 1 to 3 and a trained CRF, all with exact inference, on built-in
    data, and writes one self-contained HTML page with pictures, readings and marginals.
    """
    check_outputs([], [("--report", report), STANDARD_OUTPUT])
    console = Console(highlight=False)
    check_page(report)
    with progress_steps(console, total=len(_ORDERS) + 4) as step:
        result = run(words, language, seed, threads, step)
        step("writing the report")
        summary = summarise(result, language, seed)
        with written_page(report):
            write_page(report, digit_words_page(summary))
    show_digit_words(console, summary)
    click.echo(f"Pictures, readings and marginals: {report}")
