"""Structures: sets of labellings with an exact oracle on scores."""

from dualfield.structures.base import Structure
from dualfield.structures.chain import Chain
from dualfield.structures.constraints import span_constraints
from dualfield.structures.records import KBest, Marginals, Scores
from dualfield.structures.single import Single

__all__ = ["Chain", "KBest", "Marginals", "Scores", "Single", "Structure", "span_constraints"]
