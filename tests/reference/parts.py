"""Every labelling of small examples of each structure, and its parts: plain Python on purpose.

A structure is added to the suite by one enumerator: how its examples are drawn, and which parts a labelling has.
"""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np

from dualfield.data.shapes import Shape
from dualfield.structures import (
    ArcShape,
    Chain,
    Dependency,
    Grammar,
    Graph,
    GraphShape,
    Hypergraph,
    HypergraphShape,
    SemiMarkov,
    Single,
    Spans,
    SpanShape,
    Tree,
    TreeShape,
)


class Enumerator:
    """Examples of a structure. Parts of a labelling: (row of an edge, own part) and shared parts, ends last."""

    def __init__(self, structure, shape, n_labels):
        self.structure, self.shape, self.n_labels = structure, shape, n_labels

    def length(self, i):
        return int(self.shape.offsets[i + 1] - self.shape.offsets[i])

    def labellings(self, i):
        allowed = self.structure.clique_allowed
        for labels in product(range(self.n_labels), repeat=self.length(i)):
            shared = self.shared(i, labels)
            if all(part >= len(allowed) or allowed[part] for part in shared) and self.fits_ends(i, labels):
                yield labels

    def fits_ends(self, i, labels):
        return True

    def edges(self, i, labels):
        """(row among the edges of the example, own part) of each edge."""
        return []

    def shared(self, i, labels):
        return []

    def input(self, i, nodes):
        """An example as users pass it."""
        return nodes

    def output(self, i, labels):
        """A labelling as users pass it."""
        names = getattr(self.structure, "labels", None)
        return [label if names is None else names[label] for label in labels]

    def listed(self, outputs):
        """Outputs as a list for each example."""
        return [list(one) for one in outputs]

    def columns(self, nodes):
        """The features that have weights."""
        return nodes


class Singles(Enumerator):
    def input(self, i, nodes):
        return nodes[0]

    def listed(self, outputs):
        return [[one] for one in outputs]


class Chains(Enumerator):
    def edges(self, i, labels):
        cliques = {tuple(window): at for at, window in enumerate(self.structure.cliques.tolist())}
        order = self.structure.order
        found = []
        for t in range(1, len(labels)):
            window = tuple(labels[t - back] if t - back >= 0 else -1 for back in range(order, -1, -1))
            found.append((t - 1, cliques[window]))
        return found

    def shared(self, i, labels):
        n, k = self.structure.n_cliques, self.n_labels
        ends = [n + labels[0], n + k + labels[-1]] if labels else []
        return [part for _, part in self.edges(i, labels)] + ends

    def fits_ends(self, i, labels):
        start, stop = self.structure.allowed_start, self.structure.allowed_stop
        return not labels or ((start is None or start[labels[0]]) and (stop is None or stop[labels[-1]]))


class Trees(Enumerator):
    def _parents(self, i):
        return self.shape.parents[self.shape.offsets[i] : self.shape.offsets[i + 1]].tolist()

    def _types(self, i):
        if self.shape.types is None:
            return [0] * self.length(i)
        return self.shape.types[self.shape.offsets[i] : self.shape.offsets[i + 1]].tolist()

    def edges(self, i, labels):
        parents = self._parents(i)
        return [(t, labels[up] * self.n_labels + labels[t]) for t, up in enumerate(parents) if up >= 0]

    def shared(self, i, labels):
        k, types, parents = self.n_labels, self._types(i), self._parents(i)
        pairs = [types[t] * k * k + part for t, part in self.edges(i, labels)]
        roots = [self.structure.n_cliques + labels[t] for t, up in enumerate(parents) if up < 0]
        return pairs + roots

    def fits_ends(self, i, labels):
        roots = self.structure.allowed_root
        return roots is None or all(roots[labels[t]] for t, up in enumerate(self._parents(i)) if up < 0)

    def input(self, i, nodes):
        if self.shape.types is None:
            return nodes, self._parents(i)
        return nodes, self._parents(i), self._types(i)


class Graphs(Enumerator):
    def _edges(self, i):
        return slice(*self.shape.edge_offsets[i : i + 2])

    def edges(self, i, labels):
        pairs = self.shape.edges[self._edges(i)].tolist()
        return [(at, labels[a] * self.n_labels + labels[b]) for at, (a, b) in enumerate(pairs)]

    def shared(self, i, labels):
        k, parts = self.n_labels, self.edges(i, labels)
        types = [0] * len(parts) if self.shape.types is None else self.shape.types[self._edges(i)].tolist()
        return [types[at] * k * k + part for at, part in parts]

    def input(self, i, nodes):
        edges = self.shape.edges[self._edges(i)]
        return (nodes, edges) if self.shape.types is None else (nodes, edges, self.shape.types[self._edges(i)])


class Hypergraphs(Enumerator):
    """Tables by number of nodes and type; rows of edges have the parts of every number of nodes."""

    def _edges(self, i):
        """(nodes, type) of each edge."""
        shape, found = self.shape, []
        for e in range(*shape.edge_offsets[i : i + 2].tolist()):
            nodes = shape.nodes[shape.scopes[e] : shape.scopes[e + 1]].tolist()
            found.append((nodes, 0 if shape.types is None else int(shape.types[e])))
        return found

    def _part(self, nodes, labels):
        """The place of the labels of some nodes among all labels that so many nodes may have."""
        return list(product(range(self.n_labels), repeat=len(nodes))).index(tuple(labels[node] for node in nodes))

    def edges(self, i, labels):
        sizes = sorted({size for size, _ in self.structure.tables})
        before = {size: sum(self.n_labels**less for less in sizes if less < size) for size in sizes}
        found = enumerate(self._edges(i))
        return [(row, before[len(nodes)] + self._part(nodes, labels)) for row, (nodes, _) in found]

    def shared(self, i, labels):
        tables, found = self.structure.tables, []
        for nodes, kind in self._edges(i):
            at = tables.index((len(nodes), kind))
            found.append(sum(self.n_labels**size for size, _ in tables[:at]) + self._part(nodes, labels))
        return found

    def input(self, i, nodes):
        edges, types = [edge for edge, _ in self._edges(i)], [kind for _, kind in self._edges(i)]
        return (nodes, edges) if self.shape.types is None else (nodes, edges, np.array(types, dtype=int))


class Segments(Enumerator):
    """Labels as in BIO, BIOES or runs; segments are found letter by letter."""

    def segments(self, labels):
        """(first node, length, kind) of each segment; None if labels make none."""
        names, structure = [self.structure.labels[label] for label in labels], self.structure
        found, kinds = [], structure.kinds.names
        scheme = (
            "runs" if structure.kinds.are_runs else "BIOES" if any(n[0] in "ES" for n in structure.labels) else "BIO"
        )
        at = 0
        while at < len(names):
            stop = at + 1
            if names[at] == structure.outside:
                kind = names[at]
            elif scheme == "runs":
                kind = names[at]
                while stop < len(names) and names[stop] == kind:
                    stop += 1
            else:
                letter, kind = names[at].split("-")
                if letter not in "BS":
                    return None
                while letter == "B" and stop < len(names) and names[stop] == f"I-{kind}":
                    stop += 1
                if scheme == "BIOES" and letter == "B":
                    if stop == len(names) or names[stop] != f"E-{kind}":
                        return None
                    stop += 1
            found.append((at, stop - at, kinds.index(kind)))
            at = stop
        return found

    def labellings(self, i):
        for labels in product(range(self.n_labels), repeat=self.length(i)):
            found = self.segments(labels)
            if found is not None and all(length <= self.structure.max_length for _, length, _ in found):
                yield labels

    def edges(self, i, labels):
        n, most = self.length(i), self.structure.max_length
        rows = [(first, size) for first in range(n) for size in range(1, min(most, n - first) + 1)]
        return [(rows.index((first, size)), kind) for first, size, kind in self.segments(labels)]

    def shared(self, i, labels):
        found, n, most = self.segments(labels), self.structure.n_kinds, self.structure.max_length
        pairs = [one[2] * n + two[2] for one, two in pairwise(found)]
        lengths = [n * n + kind * most + length - 1 for _, length, kind in found]
        ends = self.structure.n_cliques
        return pairs + lengths + ([ends + labels[0], ends + self.n_labels + labels[-1]] if labels else [])


class Grammars(Enumerator):
    """Every derivation, from the top, by trying every rule at every split point."""

    def _derivations(self, i, j, symbol, words):
        """(labels by span, shared parts) of every derivation of a symbol over the words i to j - 1."""
        rules = self.structure.rules
        n_binary = rules.binary.shape[1]
        if j == i + 1:
            for rule, (terminal, parent, label) in enumerate(rules.lexical.T.tolist()):
                if parent == symbol and rules.terminals[terminal] == words[i]:
                    yield {(i, j): label}, [n_binary + rule]
            return
        for rule, (parent, left, right) in enumerate(rules.binary.T.tolist()):
            for k in range(i + 1, j) if parent == symbol else ():
                for one, parts in self._derivations(i, k, left, words):
                    for two, more in self._derivations(k, j, right, words):
                        yield {(i, j): int(rules.symbol_labels[symbol]), **one, **two}, [rule, *parts, *more]

    def _every(self, i):
        kept = self.__dict__.setdefault("_found", {})
        if i not in kept:
            words = [token if isinstance(token, str) else token[1] for token in self.shape.tokens[i]]
            n, rules, found = len(words), self.structure.rules, {}
            first_root = rules.binary.shape[1] + rules.lexical.shape[1]
            spans = [(a, b) for a in range(n) for b in range(a + 1, n + 1)]
            for at, root in enumerate(rules.roots.tolist() if n else ()):
                for labels, parts in self._derivations(0, n, root, words):
                    labelling = tuple(labels.get(span, 0) for span in spans)
                    assert labelling not in found, "two derivations of a labelling"
                    found[labelling] = [*parts, first_root + at]
            kept[i] = found if n else {(): []}
        return kept[i]

    def labellings(self, i):
        return list(self._every(i))

    def shared(self, i, labels):
        return self._every(i)[tuple(labels)]

    def input(self, i, nodes):
        return self.shape.tokens[i], nodes


def projective_trees(n, single=True):
    """All projective trees of n words: tuples of heads, counted from 1, 0 for the root."""
    for heads in product(range(n + 1), repeat=n):
        if (not single or heads.count(0) == min(n, 1)) and _is_tree(heads) and not _crosses(heads):
            yield heads


def _is_tree(heads):
    for word in range(1, len(heads) + 1):
        for _ in heads:
            word = heads[word - 1] if word else 0
        if word:
            return False
    return True


def _crosses(heads):
    arcs = [(min(head, word), max(head, word)) for word, head in enumerate(heads, 1)]
    return any(a < c < b < d for a, b in arcs for c, d in arcs)


class Arcs(Enumerator):
    """Labels of the arcs of dependency trees, the empty one for those that are not in the tree."""

    def labellings(self, i):
        n = round(self.length(i) ** 0.5)
        for heads in projective_trees(n, self.structure.root == "single"):
            for kinds in product(range(1, self.n_labels), repeat=n):
                chosen = dict(zip(enumerate(heads), kinds, strict=True))
                yield tuple(
                    chosen.get((child, head), 0) for child in range(n) for head in range(n + 1) if head != child + 1
                )

    def output(self, i, labels):
        n, names = round(self.length(i) ** 0.5), self.structure.labels
        places = [(child, head) for child in range(n) for head in range(n + 1) if head != child + 1]
        found = [(head, names[label]) for (_, head), label in zip(places, labels, strict=True) if label]
        return found if self.structure.is_labelled else [head for head, _ in found]


class Bracketings(Enumerator):
    """Rows are the spans of a sentence, label 0 is no bracket; brackets do not cross."""

    def spans(self, i):
        n = 0
        while n * (n + 1) // 2 < self.length(i):
            n += 1
        return [(a, b) for a in range(n) for b in range(a + 1, n + 1)]

    def labellings(self, i):
        spans = self.spans(i)
        n = max((b for _, b in spans), default=0)
        crossing = [[q for q, (c, d) in enumerate(spans) if a < c < b < d or c < a < d < b] for a, b in spans]

        def extend(labels):
            at = len(labels)
            if at == len(spans):
                yield tuple(labels)
                return
            for label in range(self.n_labels):
                if label and any(q < at and labels[q] for q in crossing[at]):
                    continue
                if not label and spans[at] == (0, n) and self.structure.root == "labelled":
                    continue
                yield from extend([*labels, label])

        yield from extend([])


class TypedGraphs(Graphs):
    """Nodes have types, with weights and label sets of their own."""

    def fits_ends(self, i, labels):
        kinds = self.shape.node_types[self.shape.offsets[i] : self.shape.offsets[i + 1]]
        return all(self.structure.label_sets.flags[kind, label] for kind, label in zip(kinds, labels, strict=True))

    def columns(self, nodes):
        kinds = self.shape.node_types[:, None] == np.arange(len(self.structure.label_sets.types))
        return np.hstack([nodes * kinds[:, [at]] for at in range(kinds.shape[1])])


def _offsets(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def draw_tree(rng, lengths, n_types=1):
    """Trees in any order of their nodes, some of them forests."""
    parents = []
    for n in lengths:
        order = rng.permutation(n)
        up = np.full(n, -1)
        for at in range(1, n):
            if rng.random() < 0.85:
                up[order[at]] = order[rng.integers(at)]
        parents.append(up)
    flat = np.concatenate([np.zeros(0, dtype=int), *parents]).astype(np.int32)
    types = rng.integers(n_types, size=len(flat)).astype(np.int32) if n_types > 1 else None
    return TreeShape(_offsets(lengths), flat, types)


def draw_graph(rng, lengths, n_types=1, n_node_types=None):
    """Graphs with circles, in any direction, some with two edges between nodes, some in several parts."""
    edges = []
    for n in lengths:
        pairs = np.array([(a, b) for a in range(n) for b in range(n) if a != b and rng.random() < 0.35])
        edges.append(pairs.reshape(-1, 2).astype(np.int32))
    flat = np.concatenate([np.zeros((0, 2), dtype=np.int32), *edges])
    types = rng.integers(n_types, size=len(flat)).astype(np.int32) if n_types > 1 else None
    kinds = None if n_node_types is None else rng.integers(n_node_types, size=sum(lengths)).astype(np.int32)
    return GraphShape(_offsets(lengths), flat, _offsets([len(one) for one in edges]), types=types, node_types=kinds)


def _grammar_of_trees():
    """Tags are given; brackets with three and four parts, a unary chain, words with and without brackets."""
    trees = [
        "(S (NP (N b)) (VP (V c) (NP (NP (N b)) (PP (P d) (N b)))))",
        "(S (NP (N b)) (VP (V c) (NP (N b)) (PP (P d) (N b))))",
        "(S (VP (V c) (N b) (N b)))",
        "(NP (N b) (N b) (N b) (NP (N b)))",
        "(NP (NP (N b)) (NP (N b)))",
        "(NP (N b) (NP (N b) (N b)))",
        "(NP (N b))",
    ]
    return Grammar.from_treebank(trees)


def _grammar_of_rules():
    """Words with several tags, unary rules, a rule of three parts, and any bracketing."""
    rules = ["S -> A S | A B A | B", "B -> A A | 'b'", "A -> 'a' | 'b' | A A"]
    return Grammar.from_rules(rules)


def draw_hypergraph(rng, lengths, tables):
    """Edges of all sizes that fit, in any order of their nodes; each table has at least one edge somewhere."""
    edges, types = [[] for _ in lengths], [[] for _ in lengths]
    for i, n in enumerate(lengths):
        for size, kind in tables:
            for _ in range(2 if size <= n else 0):
                edges[i].append(rng.permutation(n)[:size].tolist())
                types[i].append(kind)
    has_types = any(kind for _, kind in tables)
    return HypergraphShape.of_edges(lengths, edges, np.concatenate(types).astype(int) if has_types else None)


def enumerators(rng):
    """Small batches of every structure, with and without constraints."""
    lengths = [3, 0, 1, 4, 2]
    pairs = np.array([[True, True, False], [True, True, True], [False, True, True]])
    ends = np.array([True, False, True])
    everything = np.indices((3, 3, 3)).reshape(3, -1).T
    return {
        "single": Singles(Single(3), Shape.of(range(6)), 3),
        "chain": Chains(Chain(3), Shape.of(_offsets(lengths)), 3),
        "chain limited": Chains(Chain(3, 1, pairs, ends, ends), Shape.of(_offsets(lengths)), 3),
        "chain order 2": Chains(Chain(3, 2, everything), Shape.of(_offsets(lengths)), 3),
        "tree": Trees(Tree(3), draw_tree(rng, lengths), 3),
        "tree types": Trees(Tree(2, 3), draw_tree(rng, [5, 1, 0, 6], 3), 2),
        "tree limited": Trees(Tree(3, 1, pairs, ends), draw_tree(rng, lengths), 3),
        "graph": Graphs(Graph(3), draw_graph(rng, lengths), 3),
        "graph types": Graphs(Graph(2, 3), draw_graph(rng, [5, 1, 0, 6], 3), 2),
        "graph limited": Graphs(Graph(3, 1, pairs), draw_graph(rng, [4, 0, 1, 5]), 3),
        "segments": Segments(SemiMarkov(["B-x", "B-y", "I-x", "I-y", "O"], 3), Shape.of(_offsets([3, 0, 1, 4])), 5),
        "segments with ends": Segments(
            SemiMarkov(["B-x", "E-x", "I-x", "O", "S-x"], 3), Shape.of(_offsets([4, 0, 1, 2])), 5
        ),
        "segments as runs": Segments(SemiMarkov(["O", "x", "y"], 3), Shape.of(_offsets([5, 0, 1, 3])), 3),
        "grammar of trees": Grammars(
            grammar := _grammar_of_trees(),
            grammar.shape([[("-", tag) for tag in tags] for tags in ("NNN", "", "N", "NVNPN", "VNN", "NNNN")]),
            grammar.n_labels,
        ),
        "grammar of rules": Grammars(
            grammar := _grammar_of_rules(),
            grammar.shape([list(words) for words in ("bab", "", "b", "aaba")]),
            grammar.n_labels,
        ),
        "arcs": Arcs(Dependency(["", "arc"]), ArcShape(_offsets([9, 0, 1, 16, 4])), 2),
        "arcs with labels": Arcs(Dependency(["", "x", "y"]), ArcShape(_offsets([4, 9, 0, 1, 9])), 3),
        "arcs from the root": Arcs(Dependency(["", "arc"], "any"), ArcShape(_offsets([9, 0, 1, 16])), 2),
        "spans": Bracketings(Spans(["", "a", "b"]), SpanShape.of_words([3, 0, 1, 2, 1]), 3),
        "spans any root": Bracketings(Spans(["", "a"], root="any"), SpanShape.of_words([4, 1, 3]), 2),
        "graph node types": TypedGraphs(
            Graph(3, 2, label_sets=np.array([[True, True, False], [False, True, True], [False, False, True]])),
            draw_graph(rng.spawn(1)[0], [5, 2, 0, 5, 4], 2, 3),  # what is drawn after it stays the same
            3,
        ),
        "hypergraph": Hypergraphs(Hypergraph(3, [3]), draw_hypergraph(rng.spawn(1)[0], [4, 0, 1, 3], [(3, 0)]), 3),
        "hypergraph types": Hypergraphs(
            Hypergraph(2, [2, (3, 0), (3, 2), 4]),
            draw_hypergraph(rng.spawn(1)[0], [4, 2, 0, 5], [(2, 0), (3, 0), (3, 2), (4, 0)]),
            2,
        ),
    }
