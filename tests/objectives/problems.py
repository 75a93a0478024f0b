"""Random chain problems in the library's form and in the enumeration's, and the way between their parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import scipy.sparse

from dualfield.data import Batch
from dualfield.losses import Loss
from dualfield.objectives import Examples, Objective
from dualfield.regularisers import ElasticNet
from dualfield.scores import FeatureTable, LinearScores
from dualfield.structures import Chain
from tests.reference.chain_crf import ChainCRF, Example
from tests.reference.chain_crf import Objective as Reference


@dataclass
class ChainProblem:
    score_map: LinearScores
    batch: Batch
    pair_batch: Batch | None
    codes: np.ndarray
    allowed: np.ndarray | None  # [N][K], for partly labelled nodes
    model: ChainCRF
    examples: list[Example]

    @property
    def labelled(self) -> Examples:
        weights = np.array([example.weight for example in self.examples])
        return Examples(
            nodes=self.batch, pairs=self.pair_batch, labels=self.codes, weights=weights, allowed=self.allowed
        )

    def loss(self, l1_ratio=0.0, n_threads=1) -> Objective:
        loss, net = Loss(self.model.temperature, self.model.cost), ElasticNet(l1_ratio) if l1_ratio else None
        return Objective(self.score_map, self.labelled, loss, net, n_threads)

    def reference(self, l1_ratio=0.0) -> Reference:
        return Reference(self.model, self.examples, l1_ratio)

    @cached_property
    def _window_of_clique(self) -> np.ndarray:
        """For each clique of the chain the window of the reference; -1 for one that is not allowed."""
        listed = {window: at for at, window in enumerate(self.model.windows)}
        rows = self.score_map.structure.cliques.tolist()
        return np.array([listed.get(tuple(v for v in row if v >= 0), -1) for row in rows])

    def to_reference(self, w: np.ndarray) -> np.ndarray:
        parts, score_map = self.score_map.unpack(w), self.score_map
        out = np.zeros(self.model.size)
        node, window, start, stop, pair = self.model.blocks(out)
        node[score_map.node.columns, score_map.node.outputs] = parts.node
        known = self._window_of_clique >= 0
        window[self._window_of_clique[known]] = parts.cliques[known]
        start[:], stop[:] = parts.start, parts.stop
        if score_map.pair is not None:
            at = self._window_of_clique[score_map.pair.outputs]
            pair[score_map.pair.columns[at >= 0], at[at >= 0]] = parts.pair[at >= 0]
        return out

    def to_library(self, v: np.ndarray) -> np.ndarray:
        score_map, at = self.score_map, self._window_of_clique
        node, window, start, stop, pair = self.model.blocks(v)
        cliques = np.where(at >= 0, window[np.maximum(at, 0)], 0.0)
        pairs = None if score_map.pair is None else pair[score_map.pair.columns, at[score_map.pair.outputs]]
        return score_map.pack(node[score_map.node.columns, score_map.node.outputs], cliques, start, stop, pairs)

    def random_parameters(self, seed: int, scale: float = 1.0) -> np.ndarray:
        """Any parameters that exist; cliques that are not allowed have none."""
        rng, score_map = np.random.default_rng(seed), self.score_map
        n, cliques = score_map.structure.n_labels, score_map.structure.n_cliques
        pair = None
        if score_map.pair is not None:
            pair = scale * rng.normal(size=score_map.pair.outputs.size)
            pair[self._window_of_clique[score_map.pair.outputs] < 0] = 0.0
        node = scale * rng.normal(size=score_map.node.outputs.size)
        return score_map.pack(node, scale * rng.normal(size=cliques), rng.normal(size=n), rng.normal(size=n), pair)


def random_table(rng, n_columns: int, n_outputs: int, share: float) -> FeatureTable:
    """Each column with each output with the given probability."""
    flags = scipy.sparse.csr_array(rng.random((n_columns, n_outputs)) < share)
    flags.sort_indices()
    return FeatureTable(flags.indptr.astype(np.int64), flags.indices.astype(np.int32), n_outputs)


def random_problem(
    seed: int,
    n_labels: int = 3,
    lengths=(3, 0, 1, 4, 2, 3),
    n_columns: int = 4,
    order: int = 1,
    ends: bool = False,
    pair: bool = False,
    constrained: bool = False,
    cost: bool = False,
    temperature: float = 1.0,
    partial: bool = False,
    form: str = "dense",
    weight: float = 1.0,
) -> ChainProblem:
    rng = np.random.default_rng(seed)
    chain = Chain(n_labels, order, *(_rules(rng, n_labels, order) if constrained else ()))
    matrix, batch = random_batch(rng, lengths, n_columns, form)
    pair_matrix, pair_batch = random_batch(rng, lengths, 2, "weighted") if pair else (None, None)
    score_map = LinearScores(
        chain,
        random_table(rng, n_columns, n_labels, 0.7),
        random_table(rng, 2, chain.n_cliques, 0.6) if pair else None,
        rng.random(chain.n_cliques) < 0.8,
        ends,
    )
    costs = rng.random((n_labels, n_labels)) * (1 - np.eye(n_labels)) if cost else None
    model = ChainCRF(n_labels, n_columns, order, 2 * pair, *_limits(chain), costs, temperature)
    examples = []
    for first, last in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
        choices = model.labellings(last - first)
        truth = list(choices[rng.integers(len(choices))])
        z = None if pair_matrix is None else pair_matrix[first:last]
        examples.append(Example(matrix[first:last], truth, z, float(weight * rng.uniform(0.2, 2.0))))
    codes = np.array([label for example in examples for label in example.truth], dtype=np.int32)
    allowed = None
    if partial:
        allowed = rng.random((len(codes), n_labels)) < 0.5
        allowed[np.arange(len(codes)), codes] = True
        for example, (first, last) in zip(
            examples, zip(batch.offsets[:-1], batch.offsets[1:], strict=True), strict=True
        ):
            example.truth = [set(np.flatnonzero(row).tolist()) for row in allowed[first:last]]
    problem = ChainProblem(score_map, batch, pair_batch, codes, allowed, model, examples)
    # What exists is what the vector of the library reaches.
    n_pairs = 0 if score_map.pair is None else score_map.pair.outputs.size
    ones = [np.ones(n) for n in (score_map.node.outputs.size, chain.n_cliques, n_labels, n_labels, n_pairs)]
    model.exists = problem.to_reference(score_map.pack(*ones[:4], ones[4] if pair else None))
    return problem


def random_batch(rng, lengths, n_columns: int, form: str) -> tuple[np.ndarray, Batch]:
    """A matrix and a batch of it: "dense", "mostly zeros", "weighted" (sparse) or "unit" (sparse, no weights)."""
    n_rows, lengths = int(np.sum(lengths)), np.asarray(lengths)
    matrix = rng.normal(size=(n_rows, n_columns))
    if form == "dense":
        return matrix, Batch.build(matrix, lengths=lengths)
    matrix *= rng.random(matrix.shape) < 0.3
    if form == "mostly zeros":
        return matrix, Batch.build(matrix, lengths=lengths)
    if form == "unit":
        matrix = (matrix != 0).astype(float)
    csr = scipy.sparse.csr_array(matrix)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    values = None if form == "unit" else csr.data
    indptr, indices = csr.indptr.astype(np.int64), csr.indices.astype(np.int32)
    return matrix, Batch(offsets, n_columns, indptr=indptr, indices=indices, values=values)


def _rules(rng, n_labels: int, order: int) -> list[np.ndarray]:
    """Windows and ends that are allowed; a sequence of one label always is."""
    windows = rng.random((n_labels,) * (order + 1)) < 0.6
    windows[(np.arange(n_labels),) * (order + 1)] = True
    ends = [rng.random(n_labels) < 0.6 for _ in range(2)]
    for flags in ends:
        flags[0] = True
    return [windows, *ends]


def _limits(chain: Chain) -> list[set | None]:
    if chain.allowed is None:
        return [None, None, None]
    windows = {w for w in product(range(chain.n_labels), repeat=chain.order + 1) if chain.allowed[w]}
    return [windows, *(set(np.flatnonzero(flags).tolist()) for flags in (chain.allowed_start, chain.allowed_stop))]
