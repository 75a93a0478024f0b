"""Graphs of fixed size, exact by elimination."""

from dualfield.structures.factor_graph.factor_graph import FactorGraph

__all__ = ["FactorGraph"]
