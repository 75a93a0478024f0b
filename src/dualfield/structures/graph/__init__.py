"""Graphs of fixed size, exact by elimination."""

from dualfield.structures.graph.graph import Graph

__all__ = ["Graph"]
