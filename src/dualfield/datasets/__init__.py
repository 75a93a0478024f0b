"""Small built-in data sets."""

from dualfield.datasets.digit_words import DigitWords, load_digit_words

__all__ = ["DigitWords", "load_digit_words"]
