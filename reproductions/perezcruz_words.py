"""How little the handwritten words of Pérez-Cruz et al. (2007) vary: what a model can learn by heart."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from reproductions.perezcruz_data import (
    DIRECTIONS,
    FILE,
    Words,
    fold_split,
    handwritten_words,
    word_disjoint_splits,
)
from reproductions.records import Findings, Part, Settings, Table, Task

_SIZES = (1, 2, 3)
_NAMES = {1: "letters", 2: "pairs", 3: "triples"}


@dataclass(frozen=True, slots=True)
class TupleRow:
    """Label tuples of one size.

    Attributes
    ----------
    size : int
        Number of letters; 0 for whole words.
    distinct, by_position : int
        How many occur, and how many pairs of a position and a tuple.
    strings, strings_by_position : int
        How many strings, of the lengths that words have, have only tuples that occur, somewhere or at their position.
    repeated : dict from str to float
        For each direction the smallest share over folds of test tuples that occur in training.
    new : tuple of float
        The share of tuples in held-out words that training does not have, for each word-disjoint split.
    """

    size: int
    distinct: int
    by_position: int
    strings: int
    strings_by_position: int
    repeated: dict[str, float]
    new: tuple[float, ...]


def windows(name: str, size: int) -> list[str]:
    """Return all neighbouring letters of a word; size 0 stands for the word itself."""
    return [name[at : at + size] for at in range(len(name) - size + 1)] if size else [name]


def allowed_strings(names: Sequence[str], size: int, *, by_position: bool) -> int:
    """Count the strings with no tuple that the words lack.

    Parameters
    ----------
    names : sequence of str
        The words, which have at least `size` letters.
    size : int
        Of the tuples, 1 or more.
    by_position : bool
        Whether a tuple must occur at its very position.

    Returns
    -------
    int
        Number of strings whose length is that of some word.

    Examples
    --------
    >>> from reproductions.perezcruz_words import allowed_strings
    >>> allowed_strings(["ab", "cd"], 1, by_position=False)
    16
    >>> allowed_strings(["ab", "cd"], 1, by_position=True)
    4
    >>> allowed_strings(["ab", "cd"], 2, by_position=True)
    2
    """
    lengths = {len(name) for name in names}
    seen = [{windows(name, size)[at] for name in names if len(name) >= at + size} for at in range(max(lengths))]
    anywhere = set().union(*seen)
    total, ends = 0, {"": 1}  # number of strings by their last letters
    for at in range(max(lengths) - size + 1):
        grown: dict[str, int] = {}
        for one in seen[at] if by_position else anywhere:
            before = sum(ends.values()) if size == 1 else 1 if at == 0 else ends.get(one[:-1], 0)
            grown[one[1:]] = grown.get(one[1:], 0) + before
        ends = grown
        total += sum(ends.values()) if at + size in lengths else 0
    return total


def compute(settings: Settings, size: int) -> TupleRow:
    """Count the tuples of one size."""
    words = handwritten_words(settings)
    distinct = sorted(set(words.names.tolist()))
    folds = sorted(set(words.folds.tolist()))
    splits = word_disjoint_splits(words, 2 if settings.quick else 5)
    return TupleRow(
        size=size,
        distinct=len({one for name in distinct for one in windows(name, size)}),
        by_position=len({(at, one) for name in distinct for at, one in enumerate(windows(name, size))}),
        strings=allowed_strings(distinct, size, by_position=False) if size else len(distinct),
        strings_by_position=allowed_strings(distinct, size, by_position=True) if size else len(distinct),
        repeated={
            direction: min(1.0 - _unseen(*fold_split(words, direction, fold), size) for fold in folds)
            for direction in DIRECTIONS
        },
        new=tuple(_unseen(words.take(split.train), words.take(split.new), size) for split in splits),
    )


def _unseen(train: Words, test: Words, size: int) -> float:
    """Return the share of tuples in test words that training words do not have."""
    known = {one for name in set(train.names.tolist()) for one in windows(name, size)}
    is_new = [one not in known for name in test.names.tolist() for one in windows(name, size)]
    return sum(is_new) / len(is_new)


def tasks(settings: Settings) -> list[Task[TupleRow]]:
    """Return one task for whole words and one for each size of tuples."""
    return [Task(_NAMES.get(size, "words"), partial(compute, settings, size)) for size in (0, *_SIZES)]


def present(rows: Sequence[TupleRow]) -> Findings:
    """Show how much of a test word was there in training."""
    table = Table(
        title="Words, and the letters, pairs and triples in them.",
        header=(
            "",
            "distinct",
            "with their position",
            "strings allowed",
            "strings allowed by position",
            *(f"in training, {direction}" for direction in DIRECTIONS),
            "not in training, word-disjoint",
        ),
        rows=tuple(tuple(_cells(row)) for row in rows),
        notes=(
            "Strings allowed: how many strings, of the lengths that words have, consist of these only. In training: "
            "share of those in test words that also occur in training words, the smallest of all folds. Word-disjoint: "
            "share of those in held-out words that training does not have, mean over the splits of part disjoint.",
        ),
    )
    whole, triples = rows[0], rows[-1]
    summary = (
        f"There are {whole.distinct} distinct words. In every fold at least "
        + " and ".join(f"{whole.repeated[name]:.0%} ({name})" for name in DIRECTIONS)
        + " of the words for testing occur in training as well. Of all strings of these lengths only "
        f"{triples.strings_by_position} consist of triples that occur at their positions, the words among them: to "
        "forbid all others is nearly to have a list of the words.",
    )
    differences = ("The paper does not say how many distinct words there are.",)
    return Findings(summary, (table,), differences=differences)


def _cells(row: TupleRow) -> Iterator[str | int | float]:
    yield from (_NAMES.get(row.size, "words"), row.distinct, row.by_position)
    for count in (row.strings, row.strings_by_position):
        yield count if count < 100_000 else float(count)
    yield from (f"{row.repeated[direction]:.1%}" for direction in DIRECTIONS)
    yield f"{sum(row.new) / len(row.new):.1%}"


WORDS = Part(
    name="words",
    title="The words: what there is to learn by heart",
    data=(FILE,),
    tasks=tasks,
    present=present,
)
