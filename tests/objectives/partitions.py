"""Sequences cut into partitions by hand: what the readers of partitions make, without them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualfield.data import Batch
from dualfield.engines import Engine
from dualfield.losses import Loss
from dualfield.objectives import Examples, Objective, PartitionedObjective
from dualfield.objectives.part_problem import PartProblem, PartScores
from dualfield.scores import FeatureTable, LinearScores
from dualfield.structures import Chain


def sequences(n: int, seed: int = 0) -> tuple[list[Any], list[np.ndarray]]:
    """Words whose label depends on them and on the label before."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(1, 9))
        labels = rng.integers(0, 3, size=length)
        words = [(int(label) * 7 + int(rng.zipf(1.5))) % 60 for label in labels]
        X.append([[f"w{word}", f"s{word % 5}"] for word in words])
        y.append(labels.astype(np.int32))
    return X, y


def whole_problem(X: Any, y: Any, C: float = 0.5, penalty: Any = None, with_ends: bool = True) -> Objective:
    nodes = Batch.build(X)
    codes = np.concatenate(y).astype(np.int32)
    score_map = LinearScores(Chain(3), FeatureTable.observed(nodes, codes, 3), with_ends=with_ends)
    examples = Examples(nodes=nodes, labels=codes, weights=np.full(nodes.n_examples, C))
    return Objective(score_map, examples, Loss(), penalty)


def problems(X: Any, y: Any, whole: Objective, cuts: list[int], n_threads: int = 1) -> list[PartProblem]:
    """Return what workers hold of sequences that are cut at some places."""
    scores, vocabulary = PartScores(whole.score_map), whole.examples.nodes.vocabulary
    found = []
    for first, last in zip([0, *cuts], [*cuts, len(X)], strict=True):
        nodes = Batch.build(X[first:last]) if last > first else Batch.build(X[:1])[:0]
        codes = np.concatenate([np.zeros(0, np.int32), *y[first:last]]).astype(np.int32)
        columns = np.asarray(vocabulary.columns(nodes.vocabulary))
        score_map, places = scores.of(columns)
        examples = Examples(nodes=nodes, labels=codes, weights=whole.weights[first:last])
        found.append(
            PartProblem(
                examples=examples,
                score_map=score_map,
                loss=whole.loss,
                places=places,
                size=whole.score_map.used_places.size,
                n_threads=n_threads,
            )
        )
    return found


def same(part: Any) -> Any:
    return part


def partitioned(engine: Engine, parts: list[PartProblem], whole: Objective) -> PartitionedObjective:
    touched = sum(part.bytes_up for part in parts)
    handles = engine.map(same, parts, keep=True)
    return PartitionedObjective(engine, handles, whole.score_map, whole.regulariser, 1.0, touched)
