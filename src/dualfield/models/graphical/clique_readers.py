"""The graph put together again: the best labelling, and marginals, of sequences and of graphs of fixed size.

Where unseen tuples are forbidden, one of them costs a barrier that is larger than all other differences of scores in an
example together. So a labelling without unseen tuples wins wherever there is one, and else one with as few as can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.models.graphical.clique_graph import FixedGraph, put_together
from dualfield.models.graphical.clique_scores import CliqueBank, CliqueScores, CliqueTable
from dualfield.scores.cliques import ChainLayout, GraphLayout, Index, Tying, with_blank_row
from dualfield.structures import Bounds, Chain, Scores, Single

# Tables of scores are made for so many numbers at a time.
_NUMBERS_OF_A_CHUNK = 2**24


@dataclass
class Answer:
    """Labels of all nodes, probabilities and bounds if asked for, and which examples the models do not know well.

    Probabilities are those at one temperature, or `marginals` gives those of some nodes at any.
    """

    labels: NDArray[np.int32]
    probabilities: Floats | None
    bounds: Bounds | None
    _: KW_ONLY
    is_without: NDArray[np.bool_]  # examples without a labelling of seen tuples
    is_unknown: NDArray[np.bool_]  # examples with a type of clique that training did not have
    marginals: list[tuple[Any, Callable[[float], Floats]]] | None = None
    values: list[Floats] = field(default_factory=list)  # scores that temperatures divide

    @property
    def has_probabilities(self) -> bool:
        """Whether probabilities are asked for, at one temperature or at any."""
        return self.probabilities is not None or self.marginals is not None

    @classmethod
    def empty(cls, n: int, n_nodes: int, n_labels: int, question: str) -> Answer:
        """Make room for an answer: labels, and also "probabilities", "marginals" or "bounds"."""
        probabilities = np.zeros((n_nodes, n_labels)) if question == "probabilities" else None
        bounds = Bounds(np.zeros(n), np.zeros(n)) if question == "bounds" else None
        labels, odd = np.zeros(n_nodes, dtype=np.int32), np.zeros((2, n), dtype=bool)
        marginals: list[Any] | None = [] if question == "marginals" else None
        return cls(labels, probabilities, bounds, is_without=odd[0], is_unknown=odd[1], marginals=marginals)

    def keep_marginals(self, nodes: Any, scores: CliqueScores, marginals: Callable[[float], Floats], T: float) -> None:
        """Keep the probabilities of some nodes at a temperature, or what gives them at any."""
        if self.probabilities is not None:
            self.probabilities[nodes] = marginals(T)
        if self.marginals is not None:
            self.marginals.append((nodes, marginals))
            self.values += [table[np.isfinite(table)] for table in map(scores.filled, sorted(scores.weights))]

    def keep_best(self, part: Index, nodes: Any, best: Best) -> None:
        """Keep the best labellings of some examples, with these nodes."""
        self.labels[nodes] = best.labels
        self.is_without[part], self.is_unknown[part] = best.is_without, best.is_unknown
        if self.bounds is not None:
            self.bounds.score[part] = best.score
            self.bounds.bound[part] = best.score if best.bound is None else best.bound


@dataclass(frozen=True, eq=False, kw_only=True)
class Best:
    """The best labellings of some examples."""

    labels: NDArray[np.int32]
    score: Floats | float  # not a number unless it was needed
    bound: Floats | None = None  # None: no labelling has a higher score
    is_without: NDArray[np.bool_]
    is_unknown: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ChainReader:
    """Prediction of sequences."""

    bank: CliqueBank
    weights: Mapping[int, float]  # by order
    _: KW_ONLY
    padding: tuple[int, int]
    tying: Tying
    n_jobs: int | None
    temperature: float = 1.0

    def answer(self, matrix: Any, lengths: Index, *, question: str) -> Answer:
        """Label sequences whose rows lie one after another in a matrix."""
        result = Answer.empty(len(lengths), int(np.sum(lengths)), self.bank.n_labels, question)
        order = max(self.weights)
        depth = np.minimum(lengths + sum(self.padding) - 1, order)
        for level in np.unique(depth[lengths > 0]).tolist():
            examples = np.flatnonzero((depth == level) & (lengths > 0))
            self._answer(matrix, lengths, examples, _Level(self, level, is_dense=False), result)
        return result

    def tables(self, matrix: Any, lengths: Index) -> dict[int, CliqueTable]:
        """Return the scores of all cliques by order."""
        depth = np.minimum(lengths + sum(self.padding) - 1, max(self.weights))
        owner = np.repeat(np.arange(len(lengths)), lengths)
        found: dict[int, list[CliqueTable]] = {}
        for order in np.unique(depth[lengths > 0]).tolist():
            part = np.flatnonzero((depth == order) & (lengths > 0))
            layout = ChainLayout(lengths[part], self.padding, self.tying)
            rows = with_blank_row(matrix[np.flatnonzero(np.isin(owner, part))], self.padding)
            scores = CliqueScores(self.bank, layout, rows, self.clipped(order))
            for size in scores.weights:
                cliques = scores.cliques(size)
                places = layout.position[cliques.nodes] - self.padding[0]
                table = CliqueTable(part[cliques.owner], places, self.bank.tuples(size), scores.filled(size))
                found.setdefault(size - 1, []).append(table)
        return {order: _joined(found[order]) for order in sorted(found)}

    def clipped(self, order: int) -> dict[int, float]:
        """Return weights by size where cliques are cut to the length of the sequence: no order above this one."""
        weights: dict[int, float] = {}
        for wanted, weight in self.weights.items():
            size = min(wanted, order) + 1
            weights[size] = weights.get(size, 0.0) + weight
        return weights

    def _answer(self, matrix: Any, lengths: Index, examples: Index, level: _Level, result: Answer) -> None:
        """Label sequences whose cliques are windows of the same sizes."""
        owner = np.repeat(np.arange(len(lengths)), lengths)
        left: list[Index] = []
        if not level.is_dense:
            possible = level.possible(lengths[examples])
            left.append(examples[~possible])
            examples = examples[possible]
        for part in chunks(examples, lengths + sum(self.padding), level.width):
            chosen = np.zeros(len(lengths), dtype=bool)
            chosen[part] = True
            chosen = chosen[owner]
            layout = ChainLayout(lengths[part], self.padding, self.tying)
            rows = with_blank_row(matrix[np.flatnonzero(chosen)], self.padding)
            scores = CliqueScores(self.bank, layout, rows, level.weights)
            best = level.best(scores, with_score=result.bounds is not None)
            result.keep_best(part, chosen, best)
            if not level.is_dense:
                left.append(part[best.is_without])
            if result.has_probabilities:
                marginals = partial(level.probabilities, scores, best.is_without)
                result.keep_marginals(chosen, scores, marginals, self.temperature)
        again = np.sort(np.concatenate(left)) if left else np.zeros(0, dtype=np.int64)
        if again.size:  # not possible with the listed tuples alone
            self._answer(matrix, lengths, again, _Level(self, level.order, is_dense=True), result)


class _Level:
    """Sequences that are long enough for cliques of an order, and the chain that puts these together.

    Above order 1, and where unseen tuples are forbidden, the chain has those tuples only that were seen: `is_dense` is
    False. Otherwise it has all of them.
    """

    def __init__(self, reader: ChainReader, order: int, *, is_dense: bool) -> None:
        self.bank, self.padding, self.order, self.n_jobs = reader.bank, reader.padding, order, reader.n_jobs
        self.weights = reader.clipped(order)
        states = self.bank.n_states
        self.is_dense = is_dense or order < 2 or self.bank.unseen != -np.inf
        if order == 0:
            self.chain: Chain | Single = Single(states)
        elif self.is_dense:
            self.chain = Chain(states, order)
        else:
            self.chain = Chain(states, order, self.bank.tuples(order + 1))
        seen = sum(len(self.bank.tuples(size)) for size in self.weights)
        self.width = seen + (self.chain.n_cliques if isinstance(self.chain, Chain) else states)

    def possible(self, lengths: Index) -> NDArray[np.bool_]:
        """Return for which lengths the listed tuples leave a labelling at all."""
        known = {}
        for length in np.unique(lengths).tolist():
            layout = ChainLayout(np.array([length]), self.padding, "shared")
            known[length] = bool(self.chain.is_possible(Scores(self._blanks(layout), layout.offsets)).all())
        return np.array([known[length] for length in lengths.tolist()], dtype=bool)

    def best(self, scores: CliqueScores, *, with_score: bool) -> Best:
        """Return the best labels of nodes that are not blank, and which examples have none of seen tuples only."""
        parts = self._scores(scores, scores.forbidden)
        labels = self.chain.argmax(parts if self.order else parts.node, n_jobs=self.n_jobs)
        total = self._total(parts, labels) if with_score or scores.is_strict else np.full(parts.n_examples, np.nan)
        return Best(
            labels=labels[self._layout(scores).is_real],
            score=total + self._blank_score(scores) if with_score else total,
            is_without=scores.is_without(total),
            is_unknown=scores.is_unknown,
        )

    def _blank_score(self, scores: CliqueScores) -> Floats | float:
        """Return what blank nodes score by themselves: their label is known, so that nothing else depends on it."""
        if 1 not in self.weights or not self.bank.has_blanks:
            return 0.0
        layout = self._layout(scores)
        blank = ~layout.is_real
        each = scores.table(1, 0.0)[blank, -1]
        return np.bincount(layout.owner[blank], each, layout.n_examples).astype(np.float64)

    def probabilities(self, scores: CliqueScores, without: NDArray[np.bool_], temperature: float) -> Floats:
        """Return the marginals of all nodes that are not blank."""
        parts = self._scores(scores, np.where(without, -scores.barrier, -np.inf))
        given = parts if self.order else parts.node
        found = self.chain.marginals(given, temperature=temperature, n_jobs=self.n_jobs).node
        return found[self._layout(scores).is_real, : self.bank.n_labels]

    def _total(self, parts: Scores, labels: NDArray[np.int32]) -> Floats:
        if isinstance(self.chain, Chain):
            return self.chain.score(parts, labels, n_jobs=self.n_jobs)
        each = parts.node[np.arange(parts.n_nodes), labels]
        return np.add.reduceat(each, parts.offsets[:-1])

    def _scores(self, scores: CliqueScores, forbidden: Floats) -> Scores:
        """Lay out the scores of all cliques as those of nodes and edges; `forbidden` has a number for each example."""
        layout = self._layout(scores)
        node = self._blanks(layout)
        if 1 in self.weights:
            node[layout.is_real] += scores.table(1, forbidden[layout.owner])[layout.is_real]
        if self.order == 0:
            return Scores(node, layout.offsets)
        assert isinstance(self.chain, Chain)
        inside = np.flatnonzero(layout.position > 0)
        edge = np.cumsum(layout.position > 0) - 1
        rows = np.zeros((len(inside), self.chain.n_cliques))
        for size in sorted(self.weights):
            if size > 1:
                cliques = scores.cliques(size)
                self._add(rows, edge[cliques.nodes[:, -1]], size, scores, forbidden[cliques.owner])
        return Scores(node, layout.offsets, rows)

    def _add(self, rows: Floats, edges: Index, size: int, scores: CliqueScores, forbidden: Floats) -> None:
        """Add the scores of cliques of a size to the windows that end where they end."""
        assert isinstance(self.chain, Chain)
        windows, states = self.chain.cliques, self.bank.n_states
        if not self.is_dense:
            codes = scores.seen(size)[0]
            wide = np.flatnonzero(windows[:, -size] >= 0)
            wanted = self.bank.codes(windows[wide][:, -size:])
            place = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
            column = np.where(codes[place] == wanted, place, len(codes))
            rows[np.ix_(edges, wide)] += scores.listed(size, forbidden)[:, column]
            return
        # All windows: those of 2 labels at the start of a sequence, then those of 3, and so on up to order + 1.
        table = scores.table(size, forbidden)
        for length in range(size, self.order + 2):
            first = sum(states**smaller for smaller in range(2, length))
            block = rows[:, first : first + states**length].reshape(len(rows), -1, states**size)
            block[edges] += table[:, None, :]

    def _blanks(self, layout: ChainLayout) -> Floats:
        """Return node scores that leave the blank label to blank nodes."""
        node = np.zeros((layout.n_nodes, self.bank.n_states))
        if self.bank.has_blanks:
            node[layout.is_real, -1] = -np.inf
            node[~layout.is_real, :-1] = -np.inf
        return node

    @staticmethod
    def _layout(scores: CliqueScores) -> ChainLayout:
        assert isinstance(scores.layout, ChainLayout)
        return scores.layout


def _joined(tables: list[CliqueTable]) -> CliqueTable:
    if len(tables) == 1:
        return tables[0]
    examples = np.concatenate([table.examples for table in tables])
    order = np.argsort(examples, kind="stable")
    nodes, scores = (np.concatenate([getattr(table, name) for table in tables])[order] for name in ("nodes", "scores"))
    return CliqueTable(examples[order], nodes, tables[0].tuples, scores)


def chunks(examples: Index, lengths: Index, width: int) -> Iterator[Index]:
    """Cut examples so that each part has tables of a bounded size, or one example."""
    ends = np.cumsum(lengths[examples]) * width // _NUMBERS_OF_A_CHUNK
    for part in np.split(examples, np.flatnonzero(np.diff(ends)) + 1):
        if part.size:
            yield part


@dataclass(frozen=True, eq=False)
class GraphReader:
    """Prediction of outputs of a fixed number of nodes."""

    bank: CliqueBank
    scored: Mapping[tuple[int, ...], float]
    by_size: dict[int, list[tuple[int, ...]]]
    _: KW_ONLY
    n_nodes: int
    tying: Tying
    is_shared_input: bool
    temperature: float = 1.0

    @property
    def _weights(self) -> dict[int, float]:
        return {len(clique): weight for clique, weight in self.scored.items()}

    def answer(self, matrix: Any, n: int, *, question: str) -> Answer:
        """Label examples; their rows are one for each, or one for each node."""
        width = self.bank.n_labels
        graph = put_together(self.n_nodes, width, self._seen(), with_lists=self.bank.unseen == -np.inf)
        result = Answer.empty(n, n * self.n_nodes, width, question)
        per_example = sum(
            len(self.bank.tuples(len(clique))) + (0 if clique in graph.lists else width ** len(clique))
            for clique in self.scored
        )
        for part in chunks(np.arange(n), np.ones(n, dtype=np.int64), per_example):
            nodes = slice(part[0] * self.n_nodes, (part[-1] + 1) * self.n_nodes)
            rows = matrix[part[0] : part[-1] + 1] if self.is_shared_input else matrix[nodes]
            layout = GraphLayout(len(part), self.n_nodes, self.by_size, self.tying, self.is_shared_input)
            scores = CliqueScores(self.bank, layout, rows, self._weights)
            labels, score = graph.argmax(self._tables(graph, scores, scores.forbidden))
            without = scores.is_without(score)
            result.keep_best(
                part,
                nodes,
                Best(labels=labels.ravel(), score=score, is_without=without, is_unknown=scores.is_unknown),
            )
            if result.has_probabilities:
                marginals = partial(self._marginals, graph, scores, without)
                result.keep_marginals(nodes, scores, marginals, self.temperature)
        return result

    def _marginals(
        self, graph: FixedGraph, scores: CliqueScores, without: NDArray[np.bool_], temperature: float
    ) -> Floats:
        """Return the probabilities of the labels of all nodes."""
        tables = self._tables(graph, scores, np.where(without, -scores.barrier, -np.inf))
        width = self.bank.n_labels
        found = graph.node_marginals([table / temperature for table in tables], width)
        return np.asarray(found.reshape(-1, width))

    def _seen(self) -> dict[tuple[int, ...], NDArray[np.int32]]:
        """Return the tuples that the type of each clique has seen."""
        layout = GraphLayout(1, self.n_nodes, self.by_size, self.tying, self.is_shared_input)
        models = {clique: self.bank.models.get((len(clique), layout.key(clique))) for clique in self.scored}
        every = np.arange(self.bank.n_labels, dtype=np.int32)[:, None]
        return {
            clique: np.repeat(every, len(clique), axis=1) if model is None else model.tuples
            for clique, model in models.items()
        }

    def tables(self, matrix: Any, n: int) -> dict[int, CliqueTable]:
        """Return the scores of all cliques by order."""
        layout = GraphLayout(n, self.n_nodes, self.by_size, self.tying, self.is_shared_input)
        scores = CliqueScores(
            self.bank, layout, matrix, {len(clique): weight for clique, weight in self.scored.items()}
        )
        found = {}
        for size in sorted(scores.weights):
            cliques = scores.cliques(size)
            chosen = np.repeat([clique in self.scored for clique in self.by_size[size]], n)
            nodes = cliques.nodes[chosen] % self.n_nodes
            found[size - 1] = CliqueTable(
                cliques.owner[chosen], nodes, self.bank.tuples(size), scores.filled(size)[chosen]
            )
        return found

    def _tables(self, graph: FixedGraph, scores: CliqueScores, forbidden: Floats) -> list[Floats]:
        """Return what the graph adds up, for each example; `forbidden` has a number for each of them."""
        n, states = len(forbidden), self.bank.n_states
        found: dict[tuple[int, ...], Floats] = {}
        for size in {len(clique) for clique in self.scored}:
            each, wanted = self.by_size[size], forbidden[scores.cliques(size).owner]
            if any(clique in self.scored and clique not in graph.lists for clique in each):
                tables = scores.table(size, wanted).reshape(-1, n, *(states,) * size)
                found.update(dict(zip(each, tables, strict=True)))
            if any(clique in graph.lists for clique in each):
                rows = scores.listed(size, wanted).reshape(len(each), n, -1)
                codes = scores.seen(size)[0]
                for clique, listed in zip(each, rows, strict=True):
                    if clique in graph.lists:
                        columns = np.searchsorted(codes, self.bank.codes(graph.lists[clique]))
                        found[clique] = listed[:, [*columns, -1]]
        return graph.tables(found)
