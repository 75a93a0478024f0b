"""Structures: sets of labellings with an exact oracle on scores."""

from dualfield.structures.base import Structure
from dualfield.structures.chain import Chain
from dualfield.structures.constraints import span_constraints
from dualfield.structures.custom import CustomProblem, check_custom_problem
from dualfield.structures.records import KBest, Marginals, Scores
from dualfield.structures.single import Single

__all__ = [
    "Chain",
    "CustomProblem",
    "KBest",
    "Marginals",
    "Scores",
    "Single",
    "Structure",
    "check_custom_problem",
    "span_constraints",
]
