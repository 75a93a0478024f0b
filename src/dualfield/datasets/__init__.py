"""Small built-in data sets, and a reader of data sets in a folder."""

from dualfield.datasets.benchmark_data import BenchmarkData, load_benchmark_data
from dualfield.datasets.digit_words import DigitWords, load_digit_words

__all__ = ["BenchmarkData", "DigitWords", "load_benchmark_data", "load_digit_words"]
