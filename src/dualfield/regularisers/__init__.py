"""Regularisers: the penalty term R of the formula, with its conjugate."""

from dualfield.regularisers.base import PlaneRegulariser, Regulariser, Response
from dualfield.regularisers.elastic_net import ElasticNet
from dualfield.regularisers.interior import Interior
from dualfield.regularisers.squared_norm import SquaredNorm
from dualfield.regularisers.table_divergence import TableDivergence

__all__ = [
    "ElasticNet",
    "Interior",
    "PlaneRegulariser",
    "Regulariser",
    "Response",
    "SquaredNorm",
    "TableDivergence",
]
