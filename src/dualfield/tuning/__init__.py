"""Choosing parameters: paths over C, folds, and the table of their scores."""

from dualfield.tuning.grid import Grid, Splits
from dualfield.tuning.results import Results
from dualfield.tuning.scoring import pick_scorer
from dualfield.tuning.search import search

__all__ = ["Grid", "Results", "Splits", "pick_scorer", "search"]
