"""Regularisers: the penalty term R of the formula, with its conjugate."""

from dualfield.regularisers.base import Interior, Regulariser, Response
from dualfield.regularisers.squared_norm import SquaredNorm
from dualfield.regularisers.table_divergence import TableDivergence

__all__ = ["Interior", "Regulariser", "Response", "SquaredNorm", "TableDivergence"]
