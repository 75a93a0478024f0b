"""Score maps: from a vector of parameters to the scores of a structure."""

from dualfield.scores.feature_table import FeatureTable
from dualfield.scores.kernel import Expansion
from dualfield.scores.linear import LinearScores, Weights

__all__ = ["Expansion", "FeatureTable", "LinearScores", "Weights"]
