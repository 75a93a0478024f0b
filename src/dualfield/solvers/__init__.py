"""Solvers: settings of an algorithm. Each takes an objective and returns a solution with its duality gap."""

from dualfield.solvers.base import LinearSolution, Solution, Start, Status, StopRule, Trace
from dualfield.solvers.kernel import SMO, Auto, NewtonCG, Online, WorkingSet
from dualfield.solvers.lbfgs import LBFGS
from dualfield.solvers.linear import SGD, AutoLinear, BlockDual, Perceptron

__all__ = [
    "LBFGS",
    "SGD",
    "SMO",
    "Auto",
    "AutoLinear",
    "BlockDual",
    "LinearSolution",
    "NewtonCG",
    "Online",
    "Perceptron",
    "Solution",
    "Start",
    "Status",
    "StopRule",
    "Trace",
    "WorkingSet",
]
