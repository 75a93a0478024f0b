"""What solvers need of an objective: each need is a function that returns a sentence where it is not met, or None."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dualfield.objectives import ChainLoss, KernelChain, KernelMargin, KernelSoftmax
from dualfield.structures import Chain

Need = Callable[[Any], str | None]


def chain_loss(objective: Any) -> str | None:
    """Need the native losses of linear chains."""
    if isinstance(objective, ChainLoss):
        return None
    return (
        "It is not the plain loss of linear chains: this solver does not support slack rescaling or sign constraints, "
        "custom problems or kernels."
    )


def gradient(objective: Any) -> str | None:
    """Need values and gradients: of a linear model with its gap, or of a kernel machine."""
    if isinstance(objective, KernelSoftmax):
        return None
    if not all(hasattr(objective, name) for name in ("evaluate", "gap", "certify", "l1_ratio", "convex")):
        return "It has no gradients."
    return positive_temperature(objective) if hasattr(objective, "temperature") else None


def losses_of_planes(objective: Any) -> str | None:
    """Need losses that are maxima of planes."""
    return None if hasattr(objective, "planes") else "It is not made of planes, as hinge losses are."


def kernel_machine(objective: Any) -> str | None:
    """Need a kernel machine: a softmax over the classes of points."""
    return None if isinstance(objective, KernelSoftmax) else "It is not the softmax of a kernel machine."


def kernel_structure(objective: Any) -> str | None:
    """Need a structured model with a kernel."""
    return None if isinstance(objective, KernelChain | KernelMargin) else "It is not a structured model with a kernel."


def kernel_chain(objective: Any) -> str | None:
    """Need chains whose nodes are scored by a kernel."""
    return None if isinstance(objective, KernelChain) else "It is not a chain with a kernel."


def positive_temperature(objective: Any) -> str | None:
    """Need a temperature above zero."""
    return "Its temperature is zero: it is the hinge." if objective.temperature == 0.0 else None


def zero_temperature(objective: Any) -> str | None:
    """Need a temperature of zero."""
    return "It has a temperature above zero: it is not the hinge." if objective.temperature > 0.0 else None


def squared_norm(objective: Any) -> str | None:
    """Need a penalty on squares alone."""
    return "It penalises absolute values (l1_ratio > 0)." if objective.l1_ratio > 0 else None


def all_labels(objective: Any) -> str | None:
    """Need the label of every node."""
    return None if objective.convex else "Some examples are labelled only in part."


def no_pair_features(objective: Any) -> str | None:
    """Need features of single labels only."""
    return None if objective.score_map.pair is None else "Features score pairs of labels (pair_features)."


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


def free_signs(objective: Any) -> str | None:
    """Need weights that may have any sign."""
    return None if objective.positive is None else "It keeps weights from being negative (positive)."


def separate_classes(objective: Any) -> str | None:
    """Need classes that share no strength: whole points are moved."""
    return None if objective.label_kernel is None else "Its classes share strength by a label_kernel."
