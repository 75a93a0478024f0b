"""Handwritten words for models with few weights: pixels joined four by four, and a column of ones."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from reproductions.bayesian_data import Drawn
from reproductions.perezcruz_data import Words, handwritten_words
from reproductions.records import Settings

ROWS, COLUMNS = 16, 8


def pooled(pixels: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the shares of black in squares of two by two pixels, and a column of ones.

    Examples
    --------
    >>> import numpy as np
    >>> from reproductions.bayesian_words import pooled
    >>> pooled(np.ones((3, 128), dtype=np.float32)).shape
    (3, 33)
    """
    squares = pixels.reshape(-1, ROWS // 2, 2, COLUMNS // 2, 2).mean(axis=(2, 4))
    return np.hstack([squares.reshape(len(pixels), -1), np.ones((len(pixels), 1))])


@lru_cache(maxsize=1)
def _letters(settings: Settings) -> tuple[Words, NDArray[np.float64], NDArray[np.int64]]:
    words = handwritten_words(settings)
    return words, pooled(words.X), np.concatenate([[0], np.cumsum(words.lengths)])


def draw_words(settings: Settings, n: int, seed: int, n_test: int) -> Drawn:
    """Draw training words; test words are drawn once, and are never among them."""
    words, X, offsets = _letters(settings)
    order = np.random.default_rng(settings.seed).permutation(len(words))
    test, rest = order[: min(n_test, len(order) // 2)], order[min(n_test, len(order) // 2) :]
    train = np.random.default_rng([settings.seed, seed]).choice(rest, min(n, len(rest)), replace=False)

    def of(chosen: NDArray[np.int64]) -> tuple[list[NDArray[np.float64]], list[list[str]]]:
        spans = [slice(offsets[at], offsets[at + 1]) for at in chosen]
        return [X[span] for span in spans], [[chr(97 + int(code)) for code in words.y[span]] for span in spans]

    return Drawn(*of(train), *of(test))
