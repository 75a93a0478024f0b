"""The features that CRFsuite chooses for training data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dualfield.models.training_data import TrainingData
from dualfield.scores import FeatureTable, LinearScores


def choose_features(data: TrainingData, min_freq: float, all_states: bool, all_transitions: bool) -> TrainingData:
    """Choose the features that CRFsuite chooses: what does not occur has frequency 0, and min_freq is for all."""
    chain, node, mask = data.structure, data.score_map.node, data.score_map.clique_mask > 0
    if min_freq > 0.0:
        node = _occurring(data, min_freq)
        cliques = chain.clique_indices(data.codes, data.nodes.offsets)
        mask = np.bincount(cliques, minlength=chain.n_cliques) >= min_freq
    else:
        if all_states:
            node = FeatureTable.all(node.n_columns, chain.n_labels)
        elif data.nodes.values is not None and data.allowed is None:
            node = _occurring(data, -np.inf)
        mask = np.ones_like(mask) if all_transitions else mask
    return replace(data, score_map=LinearScores(chain, node, None, mask))


def _occurring(data: TrainingData, least: float) -> FeatureTable:
    """Return the pairs of attribute and label where the attribute's values add up to enough.

    An attribute with value 0, as False is, occurs; for the other models it does not.
    """
    nodes, n_labels = data.nodes, data.structure.n_labels
    parts: tuple[Any, Any, Any] = (nodes.indptr, nodes.indices, nodes.values)
    if nodes.dense is not None:
        sparse = nodes.to_csr()
        parts = (sparse.indptr, sparse.indices, sparse.data)
    indptr, indices, values = parts
    keys = indices.astype(np.int64) * n_labels + np.repeat(data.codes, np.diff(indptr))
    found, place = np.unique(keys, return_inverse=True)
    kept = found[np.bincount(place, weights=values, minlength=len(found)) >= least]
    sizes = np.bincount(kept // n_labels, minlength=nodes.n_columns)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return FeatureTable(starts, (kept % n_labels).astype(np.int32), n_labels)
