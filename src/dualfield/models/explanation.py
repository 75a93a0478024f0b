"""Why a sequence has its labels: the best labelling against its rivals, weight by weight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data import Vocabulary
from dualfield.data.arrays import Codes, Floats
from dualfield.data.shapes import Shape
from dualfield.data.tables import Columns, Tabular, html_table
from dualfield.data.token_texts import token_texts
from dualfield.models.spans import Restriction, restricted_copies
from dualfield.models.structured import StructuredModel
from dualfield.scores import FeatureTable
from dualfield.structures import GraphShape, Scores, Structure
from dualfield.structures.scores import EdgeKind, LabellingParts

__all__ = ["Explanation", "TokenExplanation"]

_IN_TABLE = 3  # contributions of a token in the table of a notebook


@dataclass(frozen=True, repr=False)
class TokenExplanation(Tabular):
    """Why a token has its label: the best labelling against the best one that has another label there.

    Attributes
    ----------
    position : int
        The token, counted from 0.
    label : str, int or bool
        Its predicted label.
    probability : float
        The probability of that label.
    runner_up : str, int, bool or None
        The label that it has in the best labelling with another one there; None if no other is allowed.
    alternative : list
        That labelling.
    difference : float
        The score of the predicted labelling less that of the alternative; infinite if there is none.
    contributions : list of (str, float)
        What the difference is the sum of, the largest in size first: attributes and transitions wherever the two
        labellings differ.
    n_shown : int
        How many of them are printed.
    token : str
        What is written at the token; empty if that is not known.

    Examples
    --------
    >>> from dualfield import CRF
    >>> model = CRF(tol=1e-9).fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]])
    >>> token = model.explain([["a"], ["b"]])[1]
    >>> token.label, token.runner_up, token.alternative
    ('y', 'x', ['x', 'x'])
    >>> print(token)
    1 (b): y with probability 0.68, not x; the scores differ by 1.00
        +0.641  b: y, not x
        +0.364  transition: x > y, not x > x
    """

    position: int
    label: Any
    probability: float
    _: KW_ONLY
    runner_up: Any
    alternative: list[Any]
    difference: float
    contributions: list[tuple[str, float]]
    n_shown: int = 10
    token: str = ""

    def __str__(self) -> str:
        place = f"{self.position} ({self.token})" if self.token else str(self.position)
        head = f"{place}: {_shown(self.label)} with probability {self.probability:.2f}"
        if self.runner_up is None:
            return f"{head}; no other label is allowed"
        lines = [f"{head}, not {_shown(self.runner_up)}; the scores differ by {self.difference:.2f}"]
        lines += [f"    {value:+.3f}  {what}" for what, value in self.contributions[: self.n_shown]]
        rest = self.contributions[self.n_shown :]
        if rest:
            lines.append(f"    {sum(value for _, value in rest):+.3f}  {len(rest)} more")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _columns(self) -> Columns:
        names, values = [what for what, _ in self.contributions], [value for _, value in self.contributions]
        return {"contribution": names, "value": values}

    def _repr_html_(self) -> str:
        head = str(self).partition("\n")[0]
        shown = {name: list(values)[: self.n_shown] for name, values in self._columns().items()}
        return html_table(shown, head)


@dataclass(frozen=True, repr=False)
class Explanation(Tabular):
    """Why a sequence has its labels, token by token; made by ``explain`` of a model.

    Attributes
    ----------
    tokens : list of TokenExplanation
        One for each token; also found by indexing.

    Examples
    --------
    >>> from dualfield import CRF
    >>> explanation = CRF().fit([[["a"], ["b"]]], [["x", "y"]]).explain([["a"], ["b"]])
    >>> explanation.labels
    ['x', 'y']
    >>> len(explanation), explanation[1].label
    (2, 'y')
    """

    tokens: list[TokenExplanation]

    @property
    def labels(self) -> list[Any]:
        """The predicted labels."""
        return [token.label for token in self.tokens]

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, position: int) -> TokenExplanation:
        return self.tokens[position]

    def __str__(self) -> str:
        return "\n".join(map(str, self.tokens))

    def __repr__(self) -> str:
        return str(self)

    def _columns(self) -> Columns:
        """Return a row for each contribution to each token."""
        nothing: list[tuple[Any, Any]] = [(None, None)]
        rows = [
            (one.position, one.token, one.label, one.probability, one.runner_up, *part)
            for one in self.tokens
            for part in one.contributions or nothing
        ]
        names = ("position", "token", "label", "probability", "runner_up", "contribution", "value")
        return {name: [row[at] for row in rows] for at, name in enumerate(names)}

    def _repr_html_(self) -> str:
        """Return a row for each token, with its largest contributions."""
        most = [
            ", ".join(f"{value:+.2f} {what}" for what, value in one.contributions[:_IN_TABLE]) for one in self.tokens
        ]
        columns: Columns = {
            "token": [f"{one.position} {one.token}".strip() for one in self.tokens],
            "label": self.labels,
            "probability": [one.probability for one in self.tokens],
            "not": [one.runner_up for one in self.tokens],
            "because of": most,
        }
        return html_table(columns)


def explain(model: StructuredModel, xseq: Any, n_shown: int, tokens: Any = None) -> Explanation:
    """Hold the best labelling of an example against the best one with another label, for each node."""
    sequence = _LinearSequence(model, xseq)
    structure, scores, classes = model.structure, sequence.scores, model.names
    model.need_exact("explain", scores)
    best = structure.argmax(scores)
    texts = _token_names(xseq, scores.shape, tokens)
    likely = structure.marginals(scores, temperature=model.probability_temperature).node
    found = []
    for position, other in enumerate(_alternatives(structure, scores, best)):
        label, probability = classes[best[position]], float(likely[position, best[position]])
        if other is None:
            found.append(
                TokenExplanation(
                    position,
                    label,
                    probability,
                    runner_up=None,
                    alternative=[],
                    difference=np.inf,
                    contributions=[],
                    n_shown=n_shown,
                    token=texts[position],
                )
            )
            continue
        contributions = sorted(sequence.contributions(best, other, position), key=lambda item: -abs(item[1]))
        difference = float((structure.score(scores, best) - structure.score(scores, other))[0])
        labels = [classes[code] for code in other]
        found.append(
            TokenExplanation(
                position,
                label,
                probability,
                runner_up=labels[position],
                alternative=labels,
                difference=difference,
                contributions=contributions,
                n_shown=n_shown,
                token=texts[position],
            )
        )
    return Explanation(found)


def _shown(label: Any) -> Any:
    """Return a label as it is written; the empty one in quotes."""
    return label if label != "" else "''"


def _token_names(xseq: Any, shape: Shape, tokens: Any) -> list[str]:
    """Return what is written at each node: the given texts, or the words, where there are any."""
    length, own = shape.n_nodes, shape.node_texts()
    if tokens is None and own is not None:
        return own
    if tokens is None:
        return ["" if text == f"token {at}" else text for at, text in enumerate(token_texts(xseq, length))]
    texts = [str(token) for token in tokens]
    if len(texts) != length:
        raise ValueError(f"tokens has {len(texts)} entries; xseq has {length} nodes.")
    return texts


class _LinearSequence:
    """One example under a linear model: its scores, and the weights that they are sums of."""

    def __init__(self, model: StructuredModel, xseq: Any) -> None:
        model.need_columns("explain")
        nodes, pairs = model.read([xseq])
        self.structure, self.classes, score_map = model.structure, model.names, model.score_map
        self.vocabulary, self.pair_vocabulary = model.vocabulary, model.pair_vocabulary
        self.scores = score_map.scores(model.parameters, nodes, pairs)
        self.weights = score_map.unpack(model.parameters)
        self.nodes, self.pairs = nodes.to_csr(), None if pairs is None else pairs.to_csr()
        self.node_weights = _Lookup(score_map.node, self.weights.node)
        self.pair_weights = None if score_map.pair is None else _Lookup(score_map.pair, self.weights.pair)

    def contributions(self, best: Codes, other: Codes, position: int) -> list[tuple[str, float]]:
        """Return what the scores of two labellings differ by; places other than the position are named."""
        found: list[tuple[str, float]] = []
        for t in np.flatnonzero(best != other).tolist():
            one, two = (_shown(self.classes[labels[t]]) for labels in (best, other))
            sides = f"{self._place(t, position)}: {one}, not {two}"
            found += self._attributes(
                self.nodes, self.node_weights, self.vocabulary, t, int(best[t]), int(other[t]), sides
            )
        structure, shape, n = self.structure, self.scores.shape, self.structure.n_cliques
        mine, theirs = (structure.parts_of(labels, shape) for labels in (best, other))
        if not structure.has_same_parts:
            return [(what, value) for what, value in found + self._parts(mine, theirs) if value]
        # As many shared parts, in the same order, whatever the labels.
        at = structure.shared_nodes(shape)
        for place in np.flatnonzero(mine.shared != theirs.shared).tolist():
            one, two, t = int(mine.shared[place]), int(theirs.shared[place]), int(at[place])
            if one < n:
                sides = f"{self._window(one)}, not {self._window(two)}"
                what = f"{self._edge(place, t, position, structure.clique_kind(one))}: {sides}"
                found.append((what, float(self.weights.cliques[one] - self.weights.cliques[two])))
                continue
            end, weights = (("start", self.weights.start), ("stop", self.weights.stop))[(one - n) // len(self.classes)]
            one, two = (_shown(self.classes[labels[t]]) for labels in (best, other))
            sides = f"{self._place(t, position)}: {one}, not {two}"
            found.append((f"{end}{sides}", float(weights[best[t]] - weights[other[t]])))
        if self.pairs is not None and self.pair_weights is not None:
            leads_to, rows = structure.edge_nodes(shape), structure.edge_rows(shape)
            for edge in np.flatnonzero(mine.edges != theirs.edges).tolist():
                one, two, t = int(mine.edges[edge]), int(theirs.edges[edge]), int(leads_to[edge])
                where = f" at {self._edge(edge, t, position, '')}"
                if not isinstance(shape, GraphShape):
                    where = self._place(t, position)
                sides = f"{where}: {self._window(one)}, not {self._window(two)}"
                row = int(rows[edge])
                found += self._attributes(self.pairs, self.pair_weights, self.pair_vocabulary, row, one, two, sides)
        return [(what, value) for what, value in found if value]

    def _parts(self, mine: LabellingParts, theirs: LabellingParts) -> list[tuple[str, float]]:
        """Return what parts score that only one of two labellings has, or has more often; places say little."""
        found: list[tuple[str, float]] = []
        n, k = self.structure.n_cliques, len(self.classes)
        more, less = Counter(mine.shared.tolist()), Counter(theirs.shared.tolist())
        names = [" > ".join(map(str, name)) for name in self.structure.clique_names(self.classes)]
        ends = [f"{end}: {label}" for end in ("start", "stop") for label in self.classes]
        weights = np.concatenate([self.weights.cliques, self.weights.start, self.weights.stop])
        for part in sorted({*more, *less}):
            count = more[part] - less[part]
            what = f"transition: {names[part]}" if part < n else ends[(part - n) % (2 * k)]
            found.append((what if count > 0 else f"not {what}", count * float(weights[part])))
        if self.pairs is not None and self.pair_weights is not None:
            kinds = [" > ".join(map(str, name)) for name in self.structure.edge_names(self.classes)]
            for edge in np.flatnonzero(mine.edges != theirs.edges).tolist():
                for part, other, no in ((int(mine.edges[edge]), -1, ""), (-1, int(theirs.edges[edge]), "not ")):
                    if max(part, other) >= 0:
                        what = f": {no}{kinds[max(part, other)]}"
                        found += self._attributes(
                            self.pairs, self.pair_weights, self.pair_vocabulary, edge, part, other, what
                        )
        return found

    @staticmethod
    def _attributes(
        rows: scipy.sparse.csr_array,
        weights: _Lookup,
        names: Vocabulary | None,
        t: int,
        best: int,
        other: int,
        sides: str,
    ) -> list[tuple[str, float]]:
        entries = slice(int(rows.indptr[t]), int(rows.indptr[t + 1]))
        columns = rows.indices[entries]
        values = rows.data[entries] * (weights(columns, best) - weights(columns, other))
        return [
            (column_name(names, column) + sides, value)
            for column, value in zip(columns.tolist(), values.tolist(), strict=True)
        ]

    def _window(self, clique: int) -> str:
        return " > ".join(str(self.classes[code]) for code in self._cliques[clique] if code >= 0)

    @cached_property
    def _cliques(self) -> list[list[int]]:
        rows: list[list[int]] = self.structure.cliques.tolist()
        return rows

    def _edge(self, edge: int, t: int, position: int, kind: str) -> str:
        """Name what joins two labels: a transition to a node, or in a graph, where many lead to one, both nodes."""
        shape = self.scores.shape
        of_type = f" of {kind}" if kind else ""
        if isinstance(shape, GraphShape):
            return f"edge {shape.edges[edge, 0]} > {shape.edges[edge, 1]}{of_type}"
        return f"transition{of_type}{self._place(t, position)}"

    @staticmethod
    def _place(t: int, position: int) -> str:
        return "" if t == position else f" at {t}"


class _Lookup:
    """Weights of a table by column and output; zero for what is no feature."""

    def __init__(self, table: FeatureTable, weights: Floats) -> None:
        self.size, self.weights = table.n_outputs, np.append(weights, 0.0)
        self.keys = table.columns * table.n_outputs + table.outputs  # rising

    def __call__(self, columns: NDArray[Any], output: int) -> Floats:
        if output < 0:
            return np.zeros(len(columns))
        wanted = columns.astype(np.int64) * self.size + output
        at = np.searchsorted(self.keys, wanted)
        known = at < len(self.keys)
        known[known] = self.keys[at[known]] == wanted[known]
        return np.asarray(self.weights[np.where(known, at, len(self.keys))])


def _alternatives(structure: Structure, scores: Scores, best: Codes) -> list[Codes | None]:
    """Return, for each node, the best labelling with another label there; None where there is none."""
    others = np.ones((len(best), structure.n_labels), dtype=bool)
    others[np.arange(len(best)), best] = False
    possible = (structure.max_marginals(scores) > -np.inf) & others
    nodes = np.flatnonzero(possible.any(axis=1))
    found: list[Codes | None] = [None] * len(best)
    wanted = [Restriction(0, np.array([t]), others[t : t + 1]) for t in nodes.tolist()]
    for part, _, copies in restricted_copies(structure, scores, wanted):
        for t, labels in zip(nodes[part].tolist(), structure.argmax(copies).reshape(-1, len(best)), strict=True):
            found[t] = labels
    return found


def written_key(key: Sequence[Any], arrow: str = " -> ") -> str:
    """Write a key of attributes or cliques; the kind of an edge is set off."""
    first, *rest = key
    return f"{first}: {arrow.join(map(str, rest))}" if isinstance(first, EdgeKind) else arrow.join(map(str, key))


def column_name(names: Vocabulary | None, column: int) -> str:
    """Return the attribute of a column, or ``x[3]`` where columns are numbers."""
    return f"x[{column}]" if names is None else names.attribute(column)
