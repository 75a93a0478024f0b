"""Small built-in data sets, and a reader of data sets in a folder."""

from dualfield.datasets.benchmark_data import BenchmarkData, load_benchmark_data
from dualfield.datasets.digit_words import DigitWords, load_digit_words
from dualfield.datasets.town_news import TownNews, load_town_news

__all__ = ["BenchmarkData", "DigitWords", "TownNews", "load_benchmark_data", "load_digit_words", "load_town_news"]
