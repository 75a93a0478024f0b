"""What solvers need of an objective: each need is a function that returns a sentence where it is not met, or None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualfield.objectives import (
    KernelMargin,
    KernelObjective,
    KernelSoftmax,
    Objective,
    PartitionedObjective,
    StreamedObjective,
)
from dualfield.regularisers import PlaneRegulariser
from dualfield.structures import Chain, Graph, Tree

Need = Callable[[Any], str | None]


def in_memory(objective: Any) -> str | None:
    """Need examples that are in memory."""
    if isinstance(objective, StreamedObjective):
        return "Its sentences are read from disk block by block: this solver needs them in memory."
    return None


def native_losses(objective: Any) -> str | None:
    """Need linear scores, and losses that native code knows."""
    if isinstance(objective, PartitionedObjective):
        return (
            "Its examples are in partitions, and this solver visits them one by one: train out of core on one machine, "
            "from a compiled corpus without a client, or by gradients."
        )
    if isinstance(objective, StreamedObjective):
        return in_memory(objective)
    if not isinstance(objective, Objective):
        return (
            "It has no linear scores: this solver does not support slack rescaling or sign constraints, "
            "custom problems or kernels."
        )
    if objective.loss.rescaling == "slack":
        return "Its cost rescales slacks (rescaling='slack')."
    structure = objective.score_map.structure
    if not structure.is_native:
        return f"Best labellings of its {structure!r} are not found by native code."
    return None if objective.is_native else "Some labels do not compete, or cost nothing."


def gradient(objective: Any) -> str | None:
    """Need values and gradients: of a linear model with its gap, or of a kernel machine."""
    if isinstance(objective, KernelSoftmax | StreamedObjective):
        return in_memory(objective)
    if not all(hasattr(objective, name) for name in ("evaluate", "gap", "certify", "regulariser", "convex")):
        return "It has no gradients."
    return positive_temperature(objective) if hasattr(objective, "temperature") else None


def losses_of_planes(objective: Any) -> str | None:
    """Need losses that are maxima of planes."""
    if isinstance(objective, StreamedObjective):
        return in_memory(objective)
    if not hasattr(objective, "planes") or getattr(objective, "temperature", 0.0) > 0.0:
        return "It is not made of planes, as hinge losses are."
    return None if getattr(objective, "convex", True) else all_labels(objective)


def kernel_machine(objective: Any) -> str | None:
    """Need a kernel machine: a softmax over the classes of points."""
    return None if isinstance(objective, KernelSoftmax) else "It is not the softmax of a kernel machine."


def kernel_structure(objective: Any) -> str | None:
    """Need a structured model with a kernel."""
    is_one = isinstance(objective, KernelObjective | KernelMargin)
    return None if is_one else "It is not a structured model with a kernel."


def kernel_nodes(objective: Any) -> str | None:
    """Need nodes that are scored by a kernel, and transitions that have weights."""
    if not isinstance(objective, KernelObjective):
        return "It is not a chain with a kernel."
    return None if objective.pair_kernel is None else "Its kernel scores pairs of nodes (kernel_on)."


def positive_temperature(objective: Any) -> str | None:
    """Need a temperature above zero."""
    return "Its temperature is zero: it is the hinge." if objective.temperature == 0.0 else None


def zero_temperature(objective: Any) -> str | None:
    """Need a temperature of zero."""
    return "It has a temperature above zero: it is not the hinge." if objective.temperature > 0.0 else None


def squared_norm(objective: Any) -> str | None:
    """Need a penalty on squares alone."""
    ratio = objective.regulariser.l1_ratio
    if ratio is None:
        return "Its regulariser is not half the squared norm."
    return "It penalises absolute values (l1_ratio > 0)." if ratio > 0 else None


def elastic_net(objective: Any) -> str | None:
    """Need a penalty on squares and absolute values, and weights that may have any sign; or a kernel machine."""
    if isinstance(objective, KernelSoftmax):
        return None
    return squared_norm(objective) if objective.regulariser.l1_ratio is None else free_signs(objective)


def plane_regulariser(objective: Any) -> str | None:
    """Need a regulariser that can be minimised together with planes."""
    if isinstance(objective.regulariser, PlaneRegulariser):
        return None
    return squared_norm(objective) or "Its regulariser is not one for planes: half the squared norm is SquaredNorm."


def all_labels(objective: Any) -> str | None:
    """Need the label of every node."""
    return None if objective.convex else "Some examples are labelled only in part."


def no_pair_features(objective: Any) -> str | None:
    """Need features of single labels only."""
    return None if objective.score_map.pair is None else "Features score pairs of labels (pair_features)."


def swappable(objective: Any) -> str | None:
    """Need chains of order 1 without features of label pairs, or trees or graphs with exact answers."""
    structure = objective.score_map.structure
    if isinstance(structure, Tree | Graph):
        if structure.label_sets is not None:
            return "Its nodes have types, with label sets of their own."
        relaxation = structure.relaxation(objective.examples.nodes.shape)
        return f"Its structure is a relaxation, {relaxation!r}: it has no tables of cliques." if relaxation else None
    return no_pair_features(objective) or first_order(objective)


def first_order(objective: Any) -> str | None:
    """Need a chain in which a label depends on its neighbours only."""
    structure = objective.score_map.structure
    if not isinstance(structure, Chain):
        return a_chain(objective)
    return None if structure.order == 1 else f"The chain has order {structure.order}."


def a_chain(objective: Any) -> str | None:
    """Need chains, of any order."""
    structure = objective.score_map.structure
    return None if isinstance(structure, Chain) else f"Its structure is a {type(structure).__name__}, not a chain."


def relaxed_graph(objective: Any) -> str | None:
    """Need graphs whose inference is a relaxation, and whose nodes may have all labels."""
    structure = objective.score_map.structure
    if structure.label_sets is not None:
        return "Its node types have label sets of their own, which the tables of this solver do not know."
    if objective.relaxation is not None:
        return None
    kind = type(structure).__name__
    return f"Its structure is a {kind}, which has exact answers: this solver is for graphs with inference='trw'."


def free_signs(objective: Any) -> str | None:
    """Need weights that may have any sign."""
    return None if objective.regulariser.positive is None else "It keeps weights from being negative (positive)."


def separate_classes(objective: Any) -> str | None:
    """Need classes that share no strength: whole points are moved."""
    return None if objective.label_kernel is None else "Its classes share strength by a label_kernel."
