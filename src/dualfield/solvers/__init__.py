"""Solvers: settings of an algorithm. Each takes an objective and returns a solution with its duality gap."""

from dualfield.solvers.auto import Auto, AutoLinear
from dualfield.solvers.base import KernelParts, KernelPoint, Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.dual.block_dual import BlockDual
from dualfield.solvers.dual.flow_swap import FlowSwap
from dualfield.solvers.kernel.ascent import KernelAscent
from dualfield.solvers.kernel.labelling_smo import LabellingSMO
from dualfield.solvers.kernel.newton import NewtonCG
from dualfield.solvers.kernel.smo import SMO
from dualfield.solvers.kernel.working_set import Online, WorkingSet
from dualfield.solvers.planes.cutting_plane import Cuts, CuttingPlane
from dualfield.solvers.planes.frank_wolfe import PlaneFrankWolfe
from dualfield.solvers.planes.labelling_set import LabellingSet
from dualfield.solvers.planes.marginal_qp import MarginalQP
from dualfield.solvers.planes.sgd import PlaneSGD
from dualfield.solvers.planes.simplicial import Simplicial
from dualfield.solvers.primal.lbfgs import LBFGS
from dualfield.solvers.primal.perceptron import Perceptron
from dualfield.solvers.primal.sgd import SGD
from dualfield.solvers.trace import Moment, Trace

__all__ = [
    "LBFGS",
    "SGD",
    "SMO",
    "Auto",
    "AutoLinear",
    "BlockDual",
    "Callbacks",
    "Cuts",
    "CuttingPlane",
    "FlowSwap",
    "KernelAscent",
    "KernelParts",
    "KernelPoint",
    "LabellingSMO",
    "LabellingSet",
    "MarginalQP",
    "Moment",
    "NewtonCG",
    "Online",
    "Perceptron",
    "PlaneFrankWolfe",
    "PlaneSGD",
    "Simplicial",
    "Solution",
    "Status",
    "StopRule",
    "Trace",
    "WorkingSet",
]
