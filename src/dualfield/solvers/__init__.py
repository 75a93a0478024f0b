"""Solvers: settings of an algorithm. Each takes an objective and returns a solution with its duality gap."""

from dualfield.solvers.base import Solution, Start, Status, StopRule, Trace
from dualfield.solvers.kernel import SMO, Auto, NewtonCG, Online, WorkingSet
from dualfield.solvers.lbfgs import LBFGS

__all__ = [
    "LBFGS",
    "SMO",
    "Auto",
    "NewtonCG",
    "Online",
    "Solution",
    "Start",
    "Status",
    "StopRule",
    "Trace",
    "WorkingSet",
]
