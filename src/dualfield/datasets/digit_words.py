"""Handwritten digits as words of a small language, so that neighbouring labels carry information."""

import datetime
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.utils import check_random_state

N_DIGITS = 10
_FULL_INK = 16.0  # the grey level of a black pixel in scikit-learn's digits
_TEST_IMAGES = 1.0 / 3.0  # share of the original images of each digit that only test words may use


def _draw_dates(rng: np.random.RandomState, n: int) -> list[str]:
    first = datetime.date(1950, 1, 1).toordinal()
    last = datetime.date(2029, 12, 31).toordinal()
    days = rng.randint(first, last + 1, size=n)
    return [datetime.date.fromordinal(int(day)).strftime("%d%m%Y") for day in days]


def _draw_squares(rng: np.random.RandomState, n: int) -> list[str]:
    return [str(int(root) ** 2) for root in rng.randint(32, 317, size=n)]


def _draw_codes(rng: np.random.RandomState, n: int) -> list[str]:
    groups = [
        f"{a}{b}{c}{(a + b + c) % N_DIGITS}"
        for a in range(N_DIGITS)
        for b in range(a + 1, min(a + 4, N_DIGITS))
        for c in range(b + 1, min(b + 4, N_DIGITS))
    ]
    return [groups[i] + groups[j] for i, j in rng.randint(len(groups), size=(n, 2))]


def _draw_mixed(rng: np.random.RandomState, n: int) -> list[str]:
    drawn = np.array([_draw_dates(rng, n), _draw_squares(rng, n), _draw_codes(rng, n)])
    return [str(word) for word in drawn[rng.randint(len(drawn), size=n), np.arange(n)]]


_DRAW: dict[str, Callable[[np.random.RandomState, int], list[str]]] = {
    "codes": _draw_codes,
    "dates": _draw_dates,
    "squares": _draw_squares,
    "mixed": _draw_mixed,
}

LANGUAGES: dict[str, str] = {
    "codes": (
        "codes of two groups of four digits; in a group three digits rise by steps of one to three "
        "and the fourth is a check digit, the last digit of their sum"
    ),
    "dates": "dates from 1950 to 2029, written as day, month and year in eight digits",
    "squares": "the squares of 32 to 316, four or five digits long",
    "mixed": "check-digit codes, dates and squares in equal shares; the reader is not told which",
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DigitWords:
    """Words whose letters are pictures of handwritten digits.

    Made by :func:`load_digit_words`; word ``i`` has ``T_i`` digits.

    Attributes
    ----------
    words : tuple of str
        The words as text, for example ``"29022024"``.
    labels : tuple of ndarray of shape (T_i,), int64
        The digits of each word, 0 to 9.
    images : tuple of ndarray of shape (T_i, 64), float64
        One 8x8 picture per digit, row by row; 0 is paper and 1 is full ink.
    sources : tuple of ndarray of shape (T_i,), int64
        Which row of :func:`sklearn.datasets.load_digits` each picture was made from.
    train, test : ndarray of int64
        Indices of the training words and of the test words.

    Examples
    --------
    >>> from dualfield.datasets import load_digit_words
    >>> data = load_digit_words(n_words=40, language="squares")
    >>> len(data.train), len(data.test)
    (30, 10)
    >>> data.images[0].shape == (len(data.words[0]), 64)
    True
    """

    words: tuple[str, ...]
    labels: tuple[NDArray[np.int64], ...]
    images: tuple[NDArray[np.float64], ...]
    sources: tuple[NDArray[np.int64], ...]
    train: NDArray[np.int64]
    test: NDArray[np.int64]


def load_digit_words(
    n_words: int = 2000,
    *,
    language: str = "codes",
    noise: float = 0.35,
    test_size: float = 0.25,
    random_state: int | np.random.RandomState | None = 0,
) -> DigitWords:
    """Set scikit-learn's handwritten digits in words of a small language.

    Words are drawn with replacement, so a test word may also occur, as text, among the training words. Pictures never
    do: a third of the original images of each digit is kept for test words, and training words use only the others.
    Each use of an image gets fresh noise. Nothing is downloaded.

    Parameters
    ----------
    n_words : int, default=2000
        Number of words, at least 2.
    language : {"codes", "dates", "squares", "mixed"}, default="codes"
        - ``"codes"``: two groups of four digits. In a group, three digits rise by steps of one to three and the fourth
          is the last digit of their sum. One neighbour tells that digits rise; three tell the check digit.
        - ``"dates"``: ``ddmmyyyy``, every day from 1950 to 2029 equally likely.
        - ``"squares"``: the squares of 32 to 316, four or five digits.
        - ``"mixed"``: one of the three at random for each word.
    noise : float, default=0.35
        Standard deviation of the Gaussian noise added to every pixel, as a share of full ink; the result is cut off
        to [0, 1]. Without noise the digits are read almost perfectly one by one and the neighbours have little to add.
    test_size : float, default=0.25
        Share of the words that are test words, in (0, 1); at least one word remains on each side.
    random_state : int, RandomState instance or None, default=0
        Seed of words, images and noise.

    Returns
    -------
    DigitWords
        Words, labels, images and the split; training words come first.

    Examples
    --------
    >>> from dualfield.datasets import load_digit_words
    >>> data = load_digit_words(n_words=8, language="dates", random_state=3)
    >>> [len(word) for word in data.words]
    [8, 8, 8, 8, 8, 8, 8, 8]
    >>> data.labels[0].tolist() == [int(letter) for letter in data.words[0]]
    True
    """
    n_words, noise, test_size = _check_arguments(n_words, language, noise, test_size)
    rng = check_random_state(random_state)
    n_test = min(max(round(n_words * test_size), 1), n_words - 1)
    words = _DRAW[language](rng, n_words)
    ends = np.cumsum([len(word) for word in words])
    labels = np.array([int(letter) for word in words for letter in word], dtype=np.int64)
    is_test = np.arange(len(labels)) >= ends[n_words - n_test - 1]

    pixels, targets = load_digits(return_X_y=True)
    sources = _draw_sources(rng, targets, labels, is_test)
    images = pixels[sources] / _FULL_INK + noise * rng.standard_normal((len(labels), pixels.shape[1]))
    cuts = ends[:-1]
    return DigitWords(
        words=tuple(words),
        labels=tuple(np.split(labels, cuts)),
        images=tuple(np.split(np.clip(images, 0.0, 1.0), cuts)),
        sources=tuple(np.split(sources, cuts)),
        train=np.arange(n_words - n_test),
        test=np.arange(n_words - n_test, n_words),
    )


def _draw_sources(
    rng: np.random.RandomState, targets: NDArray[np.int64], labels: NDArray[np.int64], is_test: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Pick an original image for every label; test and training labels from disjoint pools."""
    sources = np.empty(len(labels), dtype=np.int64)
    for digit in range(N_DIGITS):
        pool = rng.permutation(np.flatnonzero(targets == digit))
        n_test = round(len(pool) * _TEST_IMAGES)
        for images, wanted in ((pool[:n_test], is_test), (pool[n_test:], ~is_test)):
            places = np.flatnonzero((labels == digit) & wanted)
            sources[places] = rng.choice(images, size=len(places))
    return sources


def _check_arguments(n_words: Any, language: Any, noise: Any, test_size: Any) -> tuple[int, float, float]:
    def complain(name: str, expected: str, got: Any) -> ValueError:
        return ValueError(f"The '{name}' parameter of load_digit_words must be {expected}. Got {got!r} instead.")

    if not isinstance(n_words, numbers.Integral) or isinstance(n_words, bool) or n_words < 2:
        raise complain("n_words", "an int in [2, inf)", n_words)
    if not isinstance(language, str) or language not in _DRAW:
        raise complain("language", "a str among {'codes', 'dates', 'mixed', 'squares'}", language)
    if not isinstance(noise, numbers.Real) or isinstance(noise, bool) or not 0.0 <= float(noise) < np.inf:
        raise complain("noise", "a float in [0, inf)", noise)
    if not isinstance(test_size, numbers.Real) or isinstance(test_size, bool) or not 0.0 < float(test_size) < 1.0:
        raise complain("test_size", "a float in (0, 1)", test_size)
    return int(n_words), float(noise), float(test_size)
