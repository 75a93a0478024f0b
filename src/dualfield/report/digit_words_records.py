"""What ``dualfield demo`` has to show, before it is laid out for the page or for the terminal."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualfield.metrics import CalibrationBins


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """One line of the comparison.

    Attributes
    ----------
    name : str
        The model.
    digit_error, word_error : float
        Share of wrong digits, and of words with at least one.
    log_loss : float
        Mean of -log of the probability of the true digit, in nats.
    calibration_error : float
        See :attr:`dualfield.metrics.CalibrationBins.error`.
    seconds : float
        Time of inference.
    """

    name: str
    digit_error: float
    word_error: float
    log_loss: float
    calibration_error: float
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What the model `name` makes of one word: its digits (T,) and the marginals behind them (T, 10)."""

    name: str
    digits: NDArray[np.int32]
    marginals: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class WordCard:
    """One test word.

    Attributes
    ----------
    digits : ndarray of shape (T,)
        The truth.
    images : ndarray of shape (T, 64)
        The pictures.
    readings : (Reading, Reading)
        Digit by digit, and in context.
    best : tuple of (digits, probability)
        The most probable whole words in context, best first.
    """

    digits: NDArray[np.int64]
    images: NDArray[np.float64]
    readings: tuple[Reading, Reading]
    best: tuple[tuple[NDArray[np.int32], float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class CardGroup:
    """Cards chosen by the same rule, and how many test words the rule fits."""

    rule: str
    n_fitting: int
    cards: tuple[WordCard, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DigitWordsReport:
    """All that the page and the terminal show.

    Attributes
    ----------
    summary, setting : tuple of str
        Paragraphs: what was done, in short for the terminal and at length for the page.
    rows : tuple of ModelRow
        The comparison.
    calibration : dict from name to CalibrationBins
        Two models for the reliability diagram.
    transition : ndarray of shape (11, 10)
        Probability of a digit given the one before; the last row is for first digits.
    groups : tuple of CardGroup
        The words shown.
    n_test : int
        Number of test words.
    footer : str
        What is needed to get the same page again.
    """

    summary: tuple[str, ...]
    setting: tuple[str, ...]
    rows: tuple[ModelRow, ...]
    calibration: dict[str, CalibrationBins]
    transition: NDArray[np.float64]
    groups: tuple[CardGroup, ...]
    n_test: int
    footer: str


def percent(share: float) -> str:
    """Write a share as a percentage with one decimal, without claiming certainty by rounding.

    Parameters
    ----------
    share : float
        In [0, 1].

    Returns
    -------
    str
        For example ``"12.3%"``; ``">99.9%"`` and ``"<0.1%"`` where rounding would give 100% or 0% to something else.

    Examples
    --------
    >>> from dualfield.report.digit_words_records import percent
    >>> percent(0.1234), percent(0.99999), percent(0.0), percent(1.0)
    ('12.3%', '>99.9%', '0.0%', '100.0%')
    """
    if 0.0 < share < 0.0005:
        return "<0.1%"
    if 0.9995 <= share < 1.0:
        return ">99.9%"
    return f"{100.0 * share:.1f}%"
