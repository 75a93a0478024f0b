"""The handwritten words of Pérez-Cruz et al. (2007): folds, and splits whose test words do not occur in training."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from dualfield.datasets import load_benchmark_data
from dualfield.datasets.benchmark_data import benchmark_file
from reproductions.records import Settings

FILE = "ocr"
DIRECTIONS = ("1/9", "9/1")  # folds for training / folds for testing
_N_FOLDS = 10
_QUICK_FOLDS, _QUICK_NAMES, _QUICK_COPIES = 3, 10, 3


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """Words, letter by letter.

    Attributes
    ----------
    X : ndarray of shape (n_letters, n_pixels), float32
        Pixels, 0 or 1; the letters of a word follow each other.
    y : ndarray of shape (n_letters,)
        Letters, from 0.
    lengths, folds : ndarray of shape (n_words,)
        Number of letters of each word, and its fold.
    names : ndarray of shape (n_words,)
        What each word says.

    Examples
    --------
    >>> import numpy as np
    >>> from reproductions.perezcruz_data import Words
    >>> words = Words(np.eye(3), np.array([0, 1, 1]), np.array([2, 1]), np.array([0, 1]), np.array(["ab", "b"]))
    >>> words.take(np.array([1])).X
    array([[0., 0., 1.]])
    >>> words.errors(np.array([0, 0, 1]))
    (0.3333333333333333, 0.5)
    """

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    lengths: NDArray[np.int64]
    folds: NDArray[np.int64]
    names: NDArray[np.str_]

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, chosen: NDArray[Any]) -> "Words":
        """Return some of the words, in their old order; `chosen` are indices or a mask."""
        kept = np.zeros(len(self), dtype=bool)
        kept[chosen] = True
        letters = np.repeat(kept, self.lengths)
        return Words(self.X[letters], self.y[letters], self.lengths[kept], self.folds[kept], self.names[kept])

    def errors(self, predicted: NDArray[Any]) -> tuple[float, float]:
        """Return the share of letters that are wrong, and of words with a wrong letter."""
        wrong = np.asarray(predicted) != self.y
        per_word = np.bincount(np.repeat(np.arange(len(self)), self.lengths), weights=wrong, minlength=len(self))
        return float(wrong.mean()), float(np.mean(per_word > 0))


@lru_cache(maxsize=1)
def handwritten_words(settings: Settings) -> Words:
    """Read the words.

    Parameters
    ----------
    settings : Settings
        Where the data is; a quick run gets the ten shortest distinct words, three copies in each of three folds.

    Returns
    -------
    Words
        All words in the order of the file.
    """
    data = load_benchmark_data(FILE, settings.folder)
    with np.load(benchmark_file(FILE, settings.folder), allow_pickle=False) as arrays:
        found = {key: arrays[key] for key in ("word_id", "fold") if key in arrays.files}
    if any(key not in found or found[key].shape != data.y.shape for key in ("word_id", "fold")):
        raise click.UsageError(f"The data set '{FILE}' must hold word_id and fold, an entry for each letter.")
    starts = np.flatnonzero(np.diff(found["word_id"].astype(np.int64), prepend=-1))
    lengths = np.diff(np.append(starts, len(data.y)))
    text = "".join(chr(ord("a") + int(code)) for code in data.y)
    names = np.array([text[at : at + n] for at, n in zip(starts, lengths, strict=True)])
    pixels = np.asarray(data.X, dtype=np.float32)
    words = Words(pixels, data.y.astype(np.int64), lengths, found["fold"][starts].astype(np.int64), names)
    n_folds = _QUICK_FOLDS if settings.quick else _N_FOLDS
    if not np.isin(np.arange(n_folds), words.folds).all():
        raise click.UsageError(f"The data set '{FILE}' must have words in each of the folds 0 to {n_folds - 1}.")
    return words.take(np.fromiter(_few(words), dtype=np.int64)) if settings.quick else words


def _few(words: Words) -> Iterator[int]:
    names = sorted(set(words.names.tolist()), key=lambda name: (len(name), name))[:_QUICK_NAMES]
    for fold in range(_QUICK_FOLDS):
        for name in names:
            yield from np.flatnonzero((words.names == name) & (words.folds == fold))[:_QUICK_COPIES].tolist()


def fold_split(words: Words, direction: str, fold: int) -> tuple[Words, Words]:
    """Return training and test words: one fold against all others (1/9), or the other way round (9/1)."""
    inside = words.folds == fold
    train, test = (inside, ~inside) if direction == "1/9" else (~inside, inside)
    return words.take(train), words.take(test)


@dataclass(frozen=True, slots=True, eq=False)
class WordSplit:
    """Indices of words: for training; `known`, further copies of these; `new`, what training never says."""

    train: NDArray[np.int64]
    known: NDArray[np.int64]
    new: NDArray[np.int64]


def word_disjoint_splits(
    words: Words, n_splits: int = 5, *, seed: int = 7, n_train: int = 700, n_test: int = 800
) -> list[WordSplit]:
    """Split by what words say: the distinct words, in random order, are cut into five, and each part is held out once.

    Parameters
    ----------
    words : Words
        All words.
    n_splits : int, default=5
        How many of the five splits are returned.
    seed : int, default=7
        Seed of the order of the distinct words. With 7 and the default sizes the first two splits are, word for word,
        those on which independent RBF letters were first found to win, with letter errors 0.163 and 0.187.
    n_train, n_test : int, default=700, 800
        How many words are drawn for training, half of all there are at most, and for each of the two test sets.

    Returns
    -------
    list of WordSplit
        Indices in ascending order.

    Examples
    --------
    >>> import numpy as np
    >>> from reproductions.perezcruz_data import Words, word_disjoint_splits
    >>> names = np.repeat(list("abcde"), 4)
    >>> words = Words(np.zeros((20, 1)), np.arange(20) // 4, np.ones(20, int), np.zeros(20, int), names)
    >>> split = word_disjoint_splits(words, seed=0)[0]
    >>> sorted(set(names[split.new].tolist())), set(names[split.new]) & set(names[split.train])
    (['c'], set())
    >>> len(split.train), len(split.known)
    (8, 8)
    """
    order = np.random.default_rng(seed).permutation(np.unique(words.names))
    held_out = len(order) // 5
    random, other = np.random.default_rng(1), np.random.default_rng(2)
    # The first draw of the first study of these splits was for something else; it is repeated to get the same words.
    outside = int(np.sum(words.folds != 3))
    random.choice(outside, min(n_test, outside), replace=False)
    splits = []
    for number in range(n_splits):
        is_new = np.isin(words.names, order[number * held_out : (number + 1) * held_out])
        inside, new = np.flatnonzero(~is_new), np.flatnonzero(is_new)
        train = np.sort(random.choice(inside, min(n_train, len(inside) // 2), replace=False))
        new = np.sort(random.choice(new, min(n_test, len(new)), replace=False))
        rest = np.setdiff1d(inside, train)
        rest = rest[np.isin(words.names[rest], words.names[train])]
        known = np.sort(other.choice(rest, min(n_test, len(rest)), replace=False))
        splits.append(WordSplit(train, known, new))
    return splits
