"""Solvers: settings of an algorithm. Each takes an objective and returns a solution with its duality gap."""

from dualfield.solvers.auto import Auto, AutoLinear
from dualfield.solvers.base import LinearSolution, Moment, Solution, Start, Status, StopRule, Trace
from dualfield.solvers.block_dual import BlockDual
from dualfield.solvers.cutting_plane import Cuts, CuttingPlane
from dualfield.solvers.flow_swap import FlowSwap
from dualfield.solvers.kernel_ascent import KernelAscent
from dualfield.solvers.labelling_set import LabellingSet
from dualfield.solvers.labelling_smo import LabellingSMO
from dualfield.solvers.lbfgs import LBFGS
from dualfield.solvers.marginal_qp import MarginalQP
from dualfield.solvers.newton import NewtonCG
from dualfield.solvers.one_by_one import SGD, Perceptron
from dualfield.solvers.plane_frank_wolfe import PlaneFrankWolfe
from dualfield.solvers.plane_sgd import PlaneSGD
from dualfield.solvers.simplicial import Simplicial
from dualfield.solvers.smo import SMO
from dualfield.solvers.working_set import Online, WorkingSet

__all__ = [
    "LBFGS",
    "SGD",
    "SMO",
    "Auto",
    "AutoLinear",
    "BlockDual",
    "Cuts",
    "CuttingPlane",
    "FlowSwap",
    "KernelAscent",
    "LabellingSMO",
    "LabellingSet",
    "LinearSolution",
    "MarginalQP",
    "Moment",
    "NewtonCG",
    "Online",
    "Perceptron",
    "PlaneFrankWolfe",
    "PlaneSGD",
    "Simplicial",
    "Solution",
    "Start",
    "Status",
    "StopRule",
    "Trace",
    "WorkingSet",
]
