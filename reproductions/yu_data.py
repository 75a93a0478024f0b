"""The sequences on which the method of Yu, Bertsekas and Rousu is tried: tagged sentences, and letters as symbols."""

import itertools
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from dualfield.data.symbols import SymbolTable
from dualfield.io import read_conll
from reproductions.perezcruz_data import Words, handwritten_words
from reproductions.records import Settings
from reproductions.text_data import read_text

TAGGED = "treebank_pos"
SENTENCES, MORE_SENTENCES, LETTERS = "600 sentences", "3000 sentences", "letters"
_RARE = {"min_count": 2, "rare": "shape"}
# Sentences for training, for choices and for testing; those of the larger split for choices also serve for training.
_SIZES = {SENTENCES: (600, 300, 800), MORE_SENTENCES: (3000, 500, 914)}
_QUICK_SIZES = {SENTENCES: (40, 20, 20), MORE_SENTENCES: (60, 20, 20)}
_N_CLUSTERS, _QUICK_CLUSTERS = 200, 12


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """Symbols, str or int, and labels, one list for each sequence."""

    X: list[list[Any]]
    y: list[list[str]]

    def wrong(self, predicted: Any) -> NDArray[np.int64]:
        """Return how many labels of each sequence are wrong."""
        pairs = zip(predicted, self.y, strict=True)
        return np.array([sum(a != b for a, b in zip(*pair, strict=True)) for pair in pairs], dtype=np.int64)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of labels of each sequence."""
        return np.array([len(labels) for labels in self.y], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Study:
    """Data for one comparison.

    Attributes
    ----------
    fitted, dev : Sequences
        Every setting is fitted to the first, and the choice is made on the second.
    train, test : Sequences
        What is chosen is fitted to the first, and measured on the second.
    rare : dict
        What rare symbols share, as parameters of ``DiscriminativeHMM``.
    """

    fitted: Sequences
    dev: Sequences
    train: Sequences
    test: Sequences
    rare: dict[str, Any] = field(default_factory=dict)


def study(settings: Settings, name: str) -> Study:
    """Read the data of one comparison, by its name."""
    return _letters(settings) if name == LETTERS else _sentences(settings, name)


def coarse_tag(tag: str) -> str:
    """Return the class of a tag of the treebank: its first two letters, or one class for all that are signs.

    Parameters
    ----------
    tag : str
        One of 45.

    Returns
    -------
    str
        One of 23.

    Examples
    --------
    >>> from reproductions.yu_data import coarse_tag
    >>> [coarse_tag(tag) for tag in ("NN", "NNPS", "WP$", ",", "-LRB-")]
    ['NN', 'NN', 'WP', 'sign', 'sign']
    """
    return tag[:2] if tag[0].isalpha() else "sign"


def attributes(X: list[list[Any]], table: SymbolTable) -> list[list[list[str]]]:
    """Write what an HMM sees of sequences as attributes of a CRF: the symbol or its class, and which node is the first.

    Parameters
    ----------
    X : list of lists
        Symbols.
    table : SymbolTable
        Which of them have columns of their own, and what becomes of the others.

    Returns
    -------
    list of lists of lists of str
        A symbol that the HMM does not know has no attribute.

    Examples
    --------
    >>> from reproductions.yu_data import attributes
    >>> from dualfield.data.symbols import SymbolTable
    >>> table = SymbolTable.fit(["the", "dog", "the", "Rex"], 2, "shape")
    >>> attributes([["the", "Fido", "1984"]], table)
    [[['first', '0'], ['1'], []]]
    """
    flat = list(itertools.chain.from_iterable(X))
    columns = table.encode(flat if table.is_text else np.array(flat, dtype=np.int64))
    items = [[str(column)] if column < table.unknown else [] for column in columns.tolist()]
    ends = np.cumsum([len(symbols) for symbols in X]).tolist()
    sequences = [items[end - len(symbols) : end] for symbols, end in zip(X, ends, strict=True)]
    return [[["first", *first], *rest] for first, *rest in sequences]


def _two_columns(path: Path) -> list[list[tuple[str, ...]]]:
    sentences = read_conll(path)
    if any(len(row) != 2 for rows in sentences for row in rows[:1]):
        raise ValueError("it must have two columns, word and tag.")
    return sentences


@lru_cache(maxsize=1)
def tagged_sentences(settings: Settings) -> Sequences:
    """Read the words of the treebank and the classes of their tags."""
    sentences = read_text(settings, TAGGED, "words and tags", _two_columns)
    words = [[word for word, _ in rows] for rows in sentences]
    return Sequences(words, [[coarse_tag(tag) for _, tag in rows] for rows in sentences])


def _sentences(settings: Settings, name: str) -> Study:
    """Train on the first sentences and test on the last."""
    whole = tagged_sentences(settings)
    n_train, n_dev, n_test = (_QUICK_SIZES if settings.quick else _SIZES)[name]
    needed = n_train + n_test + (n_dev if name == SENTENCES else 0)
    if len(whole.y) < needed:
        raise click.UsageError(
            f"The data set '{TAGGED}' has {len(whole.y)} sentences; this reproduction needs {needed}."
        )

    def part(start: int, end: int) -> Sequences:
        return Sequences(whole.X[start:end], whole.y[start:end])

    train, test = part(0, n_train), part(len(whole.y) - n_test, len(whole.y))
    if name == SENTENCES:
        return Study(train, part(n_train, n_train + n_dev), train, test, _RARE)
    return Study(part(0, n_train - n_dev), part(n_train - n_dev, n_train), train, test, _RARE)


@lru_cache(maxsize=1)
def _letters(settings: Settings) -> Study:
    """Train on fold 0, choose on fold 1, test on folds 2 to 4; the symbol of a letter is its cluster."""
    words = handwritten_words(settings)
    train, dev, test = (words.take(np.isin(words.folds, folds)) for folds in ((0,), (1,), (2, 3, 4)))
    clusters = KMeans(_QUICK_CLUSTERS if settings.quick else _N_CLUSTERS, n_init=4, random_state=settings.seed)
    clusters.fit(train.X)

    def symbols(some: Words) -> Sequences:
        ends = np.cumsum(some.lengths)[:-1]
        codes = clusters.predict(some.X).astype(np.int64)
        letters = np.array([chr(ord("a") + code) for code in some.y.tolist()])
        return Sequences(*([one.tolist() for one in np.split(flat, ends)] for flat in (codes, letters)))

    fitted = symbols(train)
    return Study(fitted, symbols(dev), fitted, symbols(test))
