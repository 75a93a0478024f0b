"""Solvers: settings of an algorithm. Each takes an objective and returns a solution with its duality gap."""

from dualfield.solvers.auto import Auto
from dualfield.solvers.base import KernelParts, KernelPoint, Solution, Status, StopRule
from dualfield.solvers.callbacks import Callbacks
from dualfield.solvers.dual.block_dual import BlockDual
from dualfield.solvers.dual.flow_swap import FlowSwap
from dualfield.solvers.dual.local_blocks import LocalBlocks
from dualfield.solvers.dual.path_blocks import PathBlocks
from dualfield.solvers.kernel.ascent import KernelAscent
from dualfield.solvers.kernel.joint import JointOnline
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
from dualfield.solvers.primal.passive_aggressive import AROW, PassiveAggressive
from dualfield.solvers.primal.perceptron import Perceptron
from dualfield.solvers.primal.sgd import SGD
from dualfield.solvers.registry import register, solver_classes, solver_names
from dualfield.solvers.solver import Solver
from dualfield.solvers.trace import Moment, Trace

__all__ = [
    "AROW",
    "LBFGS",
    "SGD",
    "SMO",
    "Auto",
    "BlockDual",
    "Callbacks",
    "Cuts",
    "CuttingPlane",
    "FlowSwap",
    "JointOnline",
    "KernelAscent",
    "KernelParts",
    "KernelPoint",
    "LabellingSMO",
    "LabellingSet",
    "LocalBlocks",
    "MarginalQP",
    "Moment",
    "NewtonCG",
    "Online",
    "PassiveAggressive",
    "PathBlocks",
    "Perceptron",
    "PlaneFrankWolfe",
    "PlaneSGD",
    "Simplicial",
    "Solution",
    "Solver",
    "Status",
    "StopRule",
    "Trace",
    "WorkingSet",
    "register",
    "solver_classes",
    "solver_names",
]
