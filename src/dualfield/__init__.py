"""Structured prediction with honest probabilities and a proof of optimality."""

__version__ = "0.1.0.dev0"
