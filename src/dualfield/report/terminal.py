"""The same results on the terminal: progress, the comparison and a few words."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.style import Style
from rich.table import Table
from rich.text import Text

from dualfield.report.digit_words_records import DigitWordsReport, WordCard, percent

_SIDE = 8  # pixels of a digit


@contextmanager
def progress_steps(console: Console, total: int) -> Iterator[Callable[[str], None]]:
    """Show a bar on a terminal and plain lines elsewhere.

    Parameters
    ----------
    console : rich.console.Console
        Where to show it.
    total : int
        Number of steps.

    Yields
    ------
    callable
        Call it with the name of a step when the step begins.

    Examples
    --------
    >>> import io
    >>> from rich.console import Console
    >>> from dualfield.report.terminal import progress_steps
    >>> out = io.StringIO()
    >>> with progress_steps(Console(file=out), total=1) as step:
    ...     step("counting")
    >>> out.getvalue().splitlines()
    ['counting ...']
    """
    if not console.is_terminal:
        yield lambda name: console.print(f"{name} ...", markup=False)
        return
    columns = (TextColumn("{task.description:<32}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=total)
        begun = -1  # a step counts when the next one begins

        def announce(name: str) -> None:
            nonlocal begun
            begun += 1
            progress.update(task, description=name, completed=begun)

        yield announce
        progress.update(task, description="done", completed=total)


def show_digit_words(console: Console, report: DigitWordsReport) -> None:
    """Print the comparison and the first word of each of the first two groups.

    Parameters
    ----------
    console : rich.console.Console
        Where to print; pictures need colours and enough columns, and are left out otherwise.
    report : DigitWordsReport
        What the page shows too.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> from rich.console import Console
    >>> from dualfield.report.digit_words_records import DigitWordsReport, ModelRow
    >>> from dualfield.report.terminal import show_digit_words
    >>> out = io.StringIO()
    >>> row = ModelRow(
    ...     name="independent", digit_error=0.1, word_error=0.3, log_loss=0.4, calibration_error=0.02, seconds=0.001
    ... )
    >>> show_digit_words(Console(file=out, width=80), DigitWordsReport(
    ...     summary=("Ten words.",), setting=(), rows=(row,),
    ...     calibration={}, transition=np.full((11, 10), 0.1), groups=(), n_test=10, footer="",
    ... ))
    >>> "Ten words." in out.getvalue(), "30.0%" in out.getvalue()
    (True, True)
    """
    console.print()
    for line in report.summary:
        console.print(line, markup=False)
    console.print()
    console.print(_comparison(report))
    console.print(
        "Errors: of the most probable word. Log-loss (nats per digit) and calibration error: of the marginals, exact "
        "under each model. The chains are scored by counts; the CRF is trained.",
        style="dim",
    )
    for group in report.groups[:2]:
        card = group.cards[0]
        console.print()
        console.print(f"{group.rule}: {group.n_fitting} of {report.n_test} test words, for example", style="bold")
        if _can_draw(console, len(card.digits)):
            console.print(_picture(card.images))
        console.print(_readings(card))
    console.print()


def _comparison(report: DigitWordsReport) -> Table:
    table = Table()
    table.add_column("model", no_wrap=True)
    for heading in ("digit error", "word error", "log-loss", "calibration", "ms"):
        table.add_column(heading, justify="right")
    for row in report.rows:
        shares = (percent(row.digit_error), percent(row.word_error))
        table.add_row(
            row.name, *shares, f"{row.log_loss:.3f}", f"{row.calibration_error:.3f}", f"{1000.0 * row.seconds:.1f}"
        )
    return table


def _readings(card: WordCard) -> Table:
    independent, chain = card.readings
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for heading in ("", "word", "wrong", "probability"):
        table.add_column(
            heading, justify="right" if heading in ("wrong", "probability") else "left", header_style="dim"
        )
    table.add_row("truth", "".join(map(str, card.digits)), "", "")
    alone = float(np.prod(independent.marginals.max(axis=1)))
    rows = [(independent.name, independent.digits, alone)]
    rows += [(chain.name if rank == 0 else "", word, chance) for rank, (word, chance) in enumerate(card.best)]
    for name, word, chance in rows:
        table.add_row(name, _marked(word, card.digits), str((word != card.digits).sum()), percent(chance))
    return table


def _marked(digits: NDArray[np.int32], truth: NDArray[np.int64]) -> Text:
    text = Text()
    for one, true in zip(digits, truth, strict=True):
        text.append(str(one), style="" if one == true else "bold red underline")
    return text


def _can_draw(console: Console, n_digits: int) -> bool:
    shades = console.color_system in ("256", "truecolor") and console.encoding.startswith("utf")
    return shades and console.width >= (_SIDE + 1) * n_digits


def _picture(images: NDArray[np.float64]) -> Text:
    """Draw digits side by side, two pixels to a character: the upper one in its colour, the lower one behind it."""
    grey = np.rint(255.0 * (1.0 - images)).astype(int).reshape(len(images), _SIDE, _SIDE)
    text = Text()
    for row in range(0, _SIDE, 2):
        for digit in grey:
            for upper, lower in zip(digit[row], digit[row + 1], strict=True):
                colours = Style(color=f"rgb({upper},{upper},{upper})", bgcolor=f"rgb({lower},{lower},{lower})")
                text.append("▀", style=colours)
            text.append(" ")
        if row + 2 < _SIDE:
            text.append("\n")
    return text
