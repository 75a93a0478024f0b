"""Export of models to CRFsuite's model files."""

from __future__ import annotations

import os

import numpy as np

from dualfield.io import CrfsuiteModel, StateWeights, TransitionWeights, write_crfsuite_model
from dualfield.models.structured import StructuredModel
from dualfield.structures import Chain


def write_crfsuite(model: StructuredModel, path: str | os.PathLike[str]) -> None:
    """Write a model as a file of CRFsuite.

    Parameters
    ----------
    model : StructuredModel
        As for :func:`crfsuite_model`.
    path : str or path-like
        The file; one that exists is replaced when the new one is complete.

    Raises
    ------
    ValueError
        If CRFsuite cannot have such a model; the message says why.
    """
    write_crfsuite_model(crfsuite_model(model), path)


def crfsuite_model(model: StructuredModel) -> CrfsuiteModel:
    """Return a model as CRFsuite would have it: labels in sorted order, and the weights that are not zero.

    Weights are divided by the temperature of the probabilities, which CRFsuite does not have.

    Parameters
    ----------
    model : StructuredModel
        A chain of order 1 with attributes.

    Returns
    -------
    CrfsuiteModel
        It gives the same labels and probabilities.

    Raises
    ------
    ValueError
        If CRFsuite cannot have such a model; the message says why.
    """
    check_crfsuite(model)
    assert model.vocabulary is not None
    score_map, T = model.score_map, model.probability_temperature
    weights = score_map.unpack(model.parameters)
    kept = np.flatnonzero(weights.node)
    columns, attribute = np.unique(score_map.node.columns[kept], return_inverse=True)
    names = list(model.vocabulary)
    state = StateWeights(attribute.astype(np.int32), score_map.node.outputs[kept], weights.node[kept] / T)
    pairs = np.flatnonzero(weights.cliques)
    source, target = model.structure.cliques[pairs].T.astype(np.int32)
    transitions = TransitionWeights(source, target, weights.cliques[pairs] / T)
    return CrfsuiteModel(model.names, [names[column] for column in columns.tolist()], state, transitions)


def check_crfsuite(model: StructuredModel) -> None:
    """Raise a ValueError if CRFsuite cannot have such a model, whatever its weights are."""
    missing = _missing(model)
    if missing is not None:
        raise ValueError(f"CRFsuite's models {missing}")


def _missing(model: StructuredModel) -> str | None:
    """Return what CRFsuite lacks for a model, as the end of a sentence; None if it can have it."""
    chain = model.structure
    if not isinstance(chain, Chain) or chain.order != 1:
        shape = f"a Chain of order {chain.order}" if isinstance(chain, Chain) else f"a {type(chain).__name__}"
        return f"are chains of order 1. Got {shape} instead."
    if model.has_kernel:
        return "have weights of attributes. This model has a kernel."
    if model.vocabulary is None:
        return "have weights of attributes. This model was fitted to numbers; use dicts of names and values."
    if model.weights.has_pairs:
        return "have no attributes that score pairs of labels. Use pair_features=False."
    if model.score_map.with_ends:
        return "have no weights of the first and the last label. Use start_stop=False."
    if any(part is not None for part in (chain.allowed, chain.allowed_start, chain.allowed_stop)):
        return "cannot forbid labels. Use constraints=None."
    if model.labels.kind != "str":
        return f"have labels of type str. Got {model.labels.kind} instead."
    return None
