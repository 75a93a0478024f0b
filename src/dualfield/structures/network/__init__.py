"""Bayesian networks: directed graphs of discrete variables, some of them latent."""

from dualfield.structures.network.hidden import Conditioned
from dualfield.structures.network.network import Network

__all__ = ["Conditioned", "Network"]
