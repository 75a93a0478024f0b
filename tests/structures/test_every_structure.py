"""Every structure answers every question as enumeration does."""

import numpy as np
import pytest

from dualfield.structures import Scores, SemiMarkov
from tests.reference.parts import enumerators

NAMES = list(enumerators(np.random.default_rng(0)))


class Drawn:
    """Scores of the parts of an enumerator's examples, and its labellings with their scores."""

    def __init__(self, name, seed, scale=1.0, per_edge=False, ends=True):
        rng = np.random.default_rng(seed)
        self.table = table = enumerators(rng)[name]
        structure, shape = table.structure, table.shape
        self.node = rng.normal(0, scale, (shape.n_nodes, table.n_labels))
        forbidden = np.full(table.n_labels, 0.05)
        if structure.empty_label is not None:
            forbidden[structure.empty_label] = 0.01  # which says that a candidate must be part of the output
        self.node[rng.random(self.node.shape) < forbidden] = -np.inf
        for t in range(len(self.node)):
            if not np.isfinite(self.node[t]).any():
                self.node[t] = 0.0
        self.is_semi_markov = isinstance(structure, SemiMarkov)
        self.cliques = rng.normal(0, scale, structure.n_cliques)
        self.ends = rng.normal(0, scale, (structure.n_ends, table.n_labels)) * ends
        self.at = structure.edge_nodes(shape)
        self.edges = rng.normal(0, scale, (len(self.at), structure.edge_width)) if per_edge else None
        self.every = [self._labellings(i) for i in range(shape.n_examples)]

    def _labellings(self, i):
        first, begin = self.table.shape.offsets[i], np.searchsorted(self.at, self.table.shape.offsets[i])
        shared = np.concatenate([self.cliques, self.ends.ravel()])
        found = []
        for labels in self.table.labellings(i):
            total = sum(self.node[first + t, label] for t, label in enumerate(labels))
            if self.edges is not None:
                total += sum(self.edges[begin + row, part] for row, part in self.table.edges(i, labels))
            # Scores of edges take the place of those that they share, but those of segments are added to them.
            least = 0 if self.edges is None or self.is_semi_markov else self.table.structure.n_cliques
            total += sum(shared[part] for part in self.table.shared(i, labels) if part >= least)
            if total > -np.inf:
                found.append((total, labels))
        return found

    def scores(self):
        structure, shape = self.table.structure, self.table.shape
        if not structure.has_edges:
            return Scores(self.node, None, self.cliques if structure.n_cliques else None, shape=shape)
        start, stop = [*self.ends, None, None][:2]
        if self.is_semi_markov:
            return Scores(self.node, None, self.cliques, start=start, stop=stop, shape=shape, segment=self.edges)
        transition = self.cliques if self.edges is None else self.edges
        return Scores(self.node, None, transition, start=start, stop=stop, shape=shape)


CASES = [(name, scale, per_edge) for name in NAMES for scale in (1.0, 200.0) for per_edge in (False, True)]
WITHOUT_EDGES = ("arcs", "grammar", "single", "spans")
CASES = [case for case in CASES if not (case[2] and any(one in case[0] for one in WITHOUT_EDGES))]


@pytest.mark.parametrize(("name", "scale", "per_edge"), CASES)
@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0])
def test_sums_and_maxima(name, scale, per_edge, temperature):
    for seed in range(6):
        drawn = Drawn(name, seed, scale, per_edge)
        structure, shape = drawn.table.structure, drawn.table.shape
        possible = np.array([bool(found) for found in drawn.every])
        np.testing.assert_array_equal(structure.is_possible(drawn.scores()), possible)
        if not possible.all():
            with pytest.raises(ValueError, match="has no allowed labelling"):
                structure.argmax(drawn.scores())
            continue
        answer = structure.marginals(
            drawn.scores(), temperature=temperature, cliques="sum" if structure.n_cliques else None
        )
        each = structure.marginals(drawn.scores(), temperature=temperature, cliques="each").clique
        entropy = structure.entropy(drawn.scores(), temperature=temperature, n_jobs=2)
        best = structure.argmax(drawn.scores(), n_jobs=3)
        wide = structure.max_marginals(drawn.scores())
        starts = np.searchsorted(drawn.at, shape.offsets)
        for i, every in enumerate(drawn.every):
            rows = slice(*shape.offsets[i : i + 2])
            values = np.array([score for score, _ in every])
            top, tolerance = values.max(), 1e-9 * max(1.0, scale)
            if temperature:
                weights = np.exp((values - top) / temperature)
                total = top + temperature * np.log(weights.sum())
                p = weights / weights.sum()
                assert entropy[i] == pytest.approx(-(p[p > 0] * np.log(p[p > 0])).sum(), abs=1e-9)
            else:
                total, p = top, np.zeros(len(values))
                chosen = [labels for _, labels in every].index(tuple(best[rows].tolist()))
                assert values[chosen] == pytest.approx(top, abs=tolerance)
                p[chosen] = 1.0
            assert answer.log_partition[i] == pytest.approx(total, abs=tolerance)
            node, clique = np.zeros((rows.stop - rows.start, drawn.table.n_labels)), np.zeros(structure.n_cliques)
            edges = np.zeros((starts[i + 1] - starts[i], structure.edge_width))
            most = np.full(node.shape, -np.inf)
            for share, (score, labels) in zip(p, every, strict=True):
                for t, label in enumerate(labels):
                    node[t, label] += share
                    most[t, label] = max(most[t, label], score)
                for part in drawn.table.shared(i, labels):
                    if part < structure.n_cliques:
                        clique[part] += share
                for row, part in drawn.table.edges(i, labels):
                    edges[row, part] += share
            np.testing.assert_allclose(answer.node[rows], node, atol=1e-9)
            np.testing.assert_allclose(wide[rows], most, atol=tolerance)
            if structure.n_cliques:
                np.testing.assert_allclose(answer.clique[i].ravel(), clique, atol=1e-8)
            if structure.has_edges:
                np.testing.assert_allclose(each[starts[i] : starts[i + 1]].reshape(edges.shape), edges, atol=1e-9)


@pytest.mark.parametrize(("name", "scale", "per_edge"), CASES)
def test_lists_and_scores(name, scale, per_edge):
    for seed in range(4):
        drawn = Drawn(name, seed, scale, per_edge)
        structure, shape = drawn.table.structure, drawn.table.shape
        if not all(drawn.every):
            continue
        k = 7
        found = structure.k_best(drawn.scores(), k)
        draws = structure.sample(drawn.scores(), 20, random_state=seed)
        for i, every in enumerate(drawn.every):
            rows = slice(*shape.offsets[i : i + 2])
            ranked = sorted((score for score, _ in every), reverse=True)[:k]
            known = {labels: score for score, labels in every}
            want = np.array(ranked + [-np.inf] * (k - len(ranked)))
            np.testing.assert_allclose(found.scores[i], want, rtol=1e-9, atol=1e-9 * max(1.0, scale))
            lists = [tuple(labels[rows].tolist()) for labels in found.labels[: len(ranked)]]
            assert len(set(lists)) == len(lists)
            for labels, score in zip(lists, found.scores[i], strict=False):
                assert known[labels] == pytest.approx(score, abs=1e-9 * max(1.0, scale))
            for labels in draws[:, rows]:
                assert tuple(labels.tolist()) in known
            assert (found.labels[len(ranked) :, rows] == -1).all()
        labels = np.zeros(shape.n_nodes, dtype=np.int32)
        for i, every in enumerate(drawn.every):
            labels[slice(*shape.offsets[i : i + 2])] = every[-1][1]
        want = [every[-1][0] for every in drawn.every]
        np.testing.assert_allclose(structure.score(drawn.scores(), labels), want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_draws_have_the_frequencies_of_the_marginals(name):
    drawn = next(one for seed in range(50) if all((one := Drawn(name, seed)).every))
    structure = drawn.table.structure
    draws = structure.sample(drawn.scores(), 4000, random_state=3, n_jobs=2)
    node = structure.marginals(drawn.scores()).node
    for label in range(drawn.table.n_labels):
        spread = np.sqrt(np.maximum(node[:, label] * (1 - node[:, label]), 0.0) / len(draws))  # 1 but for rounding
        assert (np.abs((draws == label).mean(axis=0) - node[:, label]) <= 6 * spread + 1e-3).all()


@pytest.mark.parametrize("name", NAMES)
def test_answers_do_not_depend_on_threads(name):
    drawn = next(one for seed in range(50) if all((one := Drawn(name, seed)).every))
    structure, scores = drawn.table.structure, drawn.scores()
    for n_jobs in (2, 5):
        np.testing.assert_array_equal(structure.marginals(scores).node, structure.marginals(scores, n_jobs=n_jobs).node)
        np.testing.assert_array_equal(
            structure.sample(scores, 3, random_state=1), structure.sample(scores, 3, random_state=1, n_jobs=n_jobs)
        )


@pytest.mark.parametrize("name", NAMES)
def test_parts_of_labellings(name):
    table = enumerators(np.random.default_rng(1))[name]
    rng = np.random.default_rng(2)
    lists = [list(table.labellings(i)) for i in range(table.shape.n_examples)]
    chosen = [one[rng.integers(len(one))] for one in lists]
    codes = np.array([label for labels in chosen for label in labels], dtype=np.int32)
    found = table.structure.parts_of(codes, table.shape)
    starts = np.searchsorted(table.structure.edge_nodes(table.shape), table.shape.offsets)
    for i, labels in enumerate(chosen):
        mine = found.shared[found.begins[i] : found.begins[i + 1]]
        assert sorted(mine.tolist()) == sorted(table.shared(i, labels))
        edges = found.edges[starts[i] : starts[i + 1]]
        assert [(row, part) for row, part in enumerate(edges.tolist()) if part >= 0] == sorted(table.edges(i, labels))


@pytest.mark.parametrize(("name", "per_edge"), sorted({(name, each) for name, _, each in CASES}))
def test_scores_of_fewer_labels_are_those_of_fewer_labellings(name, per_edge):
    """Nothing but the scores of labels that are not allowed is left out: ends, edges, segments, shapes."""
    n_seen = 0
    for seed in range(8):
        drawn = Drawn(name, seed, per_edge=per_edge)
        structure, shape = drawn.table.structure, drawn.table.shape
        if not all(drawn.every):
            continue
        rng = np.random.default_rng(seed)
        allowed = rng.random((shape.n_nodes, drawn.table.n_labels)) < 0.5
        for i, every in enumerate(drawn.every):  # one labelling is left in any case
            labels = list(every[rng.integers(len(every))][1])
            allowed[np.arange(*shape.offsets[i : i + 2]), labels] = True
        left = drawn.scores().only(allowed)
        total, best = structure.log_partition(left), structure.k_best(left, 2)
        for i, every in enumerate(drawn.every):
            first = shape.offsets[i]
            fitting = [score for score, y in every if all(allowed[first + t, label] for t, label in enumerate(y))]
            assert total[i] == pytest.approx(np.logaddexp.reduce(fitting), abs=1e-9)
            ranked = [*sorted(fitting, reverse=True), -np.inf][:2]
            np.testing.assert_allclose(best.scores[i], ranked, atol=1e-9)
            n_seen += len(fitting) < len(every)
    assert n_seen > 3
