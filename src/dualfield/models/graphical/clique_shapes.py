"""Cliques of trees and graphs of any shape, put together again: exactly, or by bounds where a graph is too wide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.data.shapes import Shape
from dualfield.models.graphical.clique_readers import Answer, Best, chunks
from dualfield.models.graphical.clique_scores import CliqueBank, CliqueScores, CliqueTable
from dualfield.scores.cliques import Index, ShapeLayout, Tying
from dualfield.structures import Graph, GraphShape, Scores, TreeShape
from dualfield.structures.pairwise import Pairwise


@dataclass(frozen=True, eq=False, kw_only=True)
class ShapeInput:
    """Rows of the nodes of some examples, how these are joined, and features of their edges or None."""

    matrix: Any
    shape: Shape
    edge_features: Any = None

    def take(self, part: Index) -> ShapeInput:
        """Return some examples that follow each other."""
        first, end = part[0], part[-1] + 1
        matrix = self.matrix[self.shape.offsets[first] : self.shape.offsets[end]]
        edges = self.edge_features
        if edges is not None:
            assert isinstance(self.shape, GraphShape)
            edges = edges[self.shape.edge_offsets[first] : self.shape.edge_offsets[end]]
        return ShapeInput(matrix=matrix, shape=self.shape.take(part), edge_features=edges)


@dataclass(frozen=True, eq=False, kw_only=True)
class ShapeReader:
    """Prediction of trees and graphs."""

    bank: CliqueBank
    structure: Pairwise
    weights: Mapping[int, float]  # by order
    sizes: set[int]  # of cliques that need a model
    tying: Tying
    n_jobs: int | None
    temperature: float = 1.0

    def answer(self, given: ShapeInput, *, question: str) -> Answer:
        """Label examples."""
        shape = given.shape
        result = Answer.empty(shape.n_examples, shape.n_nodes, self.bank.n_labels, question)
        structure, asked = self._question(shape)
        if result.has_probabilities and structure.relaxation(asked) is not None:
            asking = "predict_proba" if result.marginals is None else "calibrate"
            raise ValueError(
                f"{asking} needs exact answers: the beliefs of inference='trw' are not probabilities, and can be "
                "far from them. Raise the budget of the graph, or ask about smaller graphs."
            )
        for part, inputs in self._parts(given):
            scores, layout = self._scores(inputs), inputs.shape
            best = self._best(layout, scores, with_score=result.bounds is not None)
            nodes = slice(shape.offsets[part[0]], shape.offsets[part[-1] + 1])
            result.keep_best(part, nodes, best)
            if result.has_probabilities:
                marginals = partial(self._marginals, layout, scores, best.is_without)
                result.keep_marginals(nodes, scores, marginals, self.temperature)
        return result

    def _marginals(self, shape: Shape, scores: CliqueScores, without: NDArray[np.bool_], temperature: float) -> Floats:
        """Return the probabilities of the labels of all nodes."""
        structure, asked = self._question(shape)
        parts = self._laid_out(asked, scores, np.where(without, -scores.barrier, -np.inf))
        return structure.marginals(parts, temperature=temperature, n_jobs=self.n_jobs).node

    def tables(self, given: ShapeInput) -> dict[int, CliqueTable]:
        """Return the scores of all cliques by order."""
        found, scores = {}, self._scores(given)
        for size, weight in scores.weights.items():
            cliques = scores.cliques(size)
            scored = np.broadcast_to(weight, (len(cliques),)) > 0.0
            if scored.any():
                owner = cliques.owner[scored]
                nodes = cliques.nodes[scored] - given.shape.offsets[owner][:, None]
                found[size - 1] = CliqueTable(owner, nodes, self.bank.tuples(size), scores.filled(size)[scored])
        return found

    def _parts(self, given: ShapeInput) -> Iterator[tuple[Index, ShapeInput]]:
        """Cut examples so that each part has tables of a bounded size, or one example."""
        shape, width = given.shape, self.bank.n_labels
        edges = np.diff(self.structure.edge_offsets(shape))
        numbers = shape.lengths * (width + len(self.bank.tuples(1)))
        numbers = numbers + edges * (width**2 + len(self.bank.tuples(2)))
        for part in chunks(np.arange(shape.n_examples), numbers, 1):
            yield part, given.take(part)

    def _scores(self, given: ShapeInput) -> CliqueScores:
        layout = ShapeLayout(given.shape, self.sizes, self.tying, given.edge_features)
        return CliqueScores(self.bank, layout, given.matrix, layout.weights(dict(self.weights)))

    def _question(self, shape: Shape) -> tuple[Pairwise, Shape]:
        """Return the structure to ask, and the shape to ask about: types say nothing where each edge has its scores."""
        assert isinstance(shape, (TreeShape, GraphShape))
        if 1 in self.weights:
            return self.structure, replace(shape, types=None)
        none = np.zeros((0, 2), dtype=np.int32), np.zeros(shape.n_examples + 1, dtype=np.int64)
        return Graph(self.structure.n_labels), GraphShape(shape.offsets, *none)

    def _best(self, shape: Shape, scores: CliqueScores, *, with_score: bool) -> Best:
        structure, asked = self._question(shape)
        parts = self._laid_out(asked, scores, scores.forbidden)
        if not with_score and not scores.is_strict:
            labels, score, bound = structure.argmax(parts, n_jobs=self.n_jobs), np.full(parts.n_examples, np.nan), None
        else:
            found = structure.bounded_argmax(parts, n_jobs=self.n_jobs)
            labels, score, bound = found.labels, found.bounds.score, found.bounds.bound
        return Best(
            labels=labels,
            score=score,
            bound=bound,
            is_without=scores.is_without(score),
            is_unknown=scores.is_unknown,
        )

    def _laid_out(self, shape: Shape, scores: CliqueScores, forbidden: Floats) -> Scores:
        """Lay out the scores of all cliques as those of nodes and edges; `forbidden` has a number for each example."""
        layout, states = scores.layout, self.bank.n_states
        assert isinstance(layout, ShapeLayout)
        node = np.zeros((shape.n_nodes, states))
        alone, weights = scores.cliques(1), np.asarray(scores.weights[1])
        scored = np.flatnonzero(weights > 0.0)
        if scored.size:
            node[alone.nodes[scored, 0]] = scores.table(1, forbidden[alone.owner])[scored]
        if 2 not in scores.weights:
            return Scores(node, shape=shape)
        # A row for each edge, all pairs of labels in it: shared tables have another number of axes.
        edge = np.zeros((shape.n_nodes if isinstance(shape, TreeShape) else len(layout.ends), states**2))
        if len(layout.ends):
            edge[layout.edge_rows] = scores.table(2, forbidden[scores.cliques(2).owner])
        return Scores(node, transition=edge, shape=shape)
