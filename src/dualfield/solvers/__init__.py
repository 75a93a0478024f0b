"""Solvers: settings of an algorithm. Each takes an objective and returns a solution with its duality gap."""

from dualfield.solvers.auto import Auto, AutoLinear
from dualfield.solvers.base import LinearSolution, Moment, Solution, Start, Status, StopRule, Trace
from dualfield.solvers.block_dual import BlockDual
from dualfield.solvers.lbfgs import LBFGS
from dualfield.solvers.newton import NewtonCG
from dualfield.solvers.one_by_one import SGD, Perceptron
from dualfield.solvers.smo import SMO
from dualfield.solvers.working_set import Online, WorkingSet

__all__ = [
    "LBFGS",
    "SGD",
    "SMO",
    "Auto",
    "AutoLinear",
    "BlockDual",
    "LinearSolution",
    "Moment",
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
