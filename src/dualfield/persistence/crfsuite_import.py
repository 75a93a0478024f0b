"""Import of CRFsuite's model files."""

from __future__ import annotations

import os

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data import Labels, Vocabulary
from dualfield.io import CrfsuiteModel, read_crfsuite_model
from dualfield.models.structured import StructuredModel
from dualfield.scores import FeatureTable, LinearScores
from dualfield.scores.stored import LinearWeights
from dualfield.solvers import Solution, Status, Trace
from dualfield.structures import Chain

# What its file does not tell.
UNTRAINED = Solution(
    parameters=None,
    objective=float("nan"),
    gap=float("nan"),
    status=Status.FINISHED,
    n_iter=0,
    trace=Trace.from_rows(np.zeros((0, 5))),
    solver="crfsuite",
)


def read_crfsuite(path: str | os.PathLike[str]) -> StructuredModel:
    """Return the model in a file of CRFsuite.

    Parameters
    ----------
    path : str or path-like
        The model file.

    Returns
    -------
    StructuredModel
        With the features and weights of the file.

    Raises
    ------
    ValueError
        If the file is not such a model, or is cut off or altered. The message names the file.
    """
    model = read_crfsuite_model(path)
    if not model.labels:
        raise ValueError(f"{os.fspath(path)} has no labels: a model must have at least one.")
    labels = Labels.fit(model.labels)
    score_map, parameters = _score_map(model, labels)
    return StructuredModel(
        labels=labels,
        structure=score_map.structure,
        vocabulary=Vocabulary.from_attributes(model.attributes),
        pair_vocabulary=None,
        weights=LinearWeights(score_map, parameters),
    )


def _score_map(model: CrfsuiteModel, labels: Labels) -> tuple[LinearScores, NDArray[np.float64]]:
    """Lay out exactly the features of the file, and their weights."""
    code = labels.encode(model.labels)  # CRFsuite numbers labels as they come, we in sorted order
    chain = Chain(len(labels))
    attribute, label, weight = model.state
    # Putting the entries in order adds up those that a file has twice, as CRFsuite does when it tags.
    shape = (len(model.attributes), len(labels))
    by_column = scipy.sparse.coo_array((weight, (attribute, code[label])), shape=shape).tocsr()
    by_column.sum_duplicates()
    outputs = by_column.indices.astype(np.int32)
    table = FeatureTable(by_column.indptr.astype(np.int64), outputs, len(labels))
    source, target, weight = model.transitions
    places = code[source].astype(np.int64) * len(labels) + code[target]
    mask, cliques = np.zeros(chain.n_cliques, dtype=bool), np.zeros(chain.n_cliques)
    mask[places], cliques[places] = True, weight
    score_map = LinearScores(chain, table, None, mask)
    return score_map, score_map.pack(by_column.data, cliques)
