"""The rules of a context-free grammar as symbols and numbers: two symbols, or one terminal, on the right-hand side."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.data.records import Fields, Record, packed

Symbols = NDArray[np.int32]

MOST_RULES = 1_000_000


@dataclass(frozen=True, eq=False, kw_only=True)
class GrammarRules:
    """Rules A → B C and A → t, and the symbols of whole sentences.

    Parameters
    ----------
    symbols : tuple of str
        Names of symbols.
    labels : tuple of str
        Labels of brackets; the first one is empty: no bracket.
    terminals : tuple of str
        What sentences are made of: words or tags.
    symbol_labels : int32 array of shape (n_symbols,)
        The label of a span of two words or more that has a symbol.
    binary : int32 array of shape (3, n_binary)
        Parent, left and right symbol.
    lexical : int32 array of shape (3, n_lexical)
        Terminal, symbol, and the label that a word then has.
    roots : int32 array of shape (n_roots,)
        Symbols.
    scores : array of shape (n_rules,), default=None
        Logarithms of probabilities, where rules came with some.
    """

    symbols: tuple[str, ...]
    labels: tuple[str, ...]
    terminals: tuple[str, ...]
    symbol_labels: Symbols
    binary: Symbols
    lexical: Symbols
    roots: Symbols
    scores: Floats | None = None

    @property
    def n_rules(self) -> int:
        """Number of rules and roots."""
        return len(self.binary[0]) + len(self.lexical[0]) + len(self.roots)

    @cached_property
    def terminal_codes(self) -> dict[str, int]:
        """Codes of terminals."""
        return {name: code for code, name in enumerate(self.terminals)}

    def names(self) -> list[str]:
        """Return the rules as text: binary ones, lexical ones, roots."""
        name = self.symbols
        binary = [f"{name[a]} -> {name[b]} {name[c]}" for a, b, c in self.binary.T.tolist()]
        lexical = [
            f"{self.labels[label] or name[a]} -> '{self.terminals[t]}'" for t, a, label in self.lexical.T.tolist()
        ]
        return binary + lexical + [f"-> {name[a]}" for a in self.roots.tolist()]

    @cached_property
    def keys(self) -> list[tuple[str, ...]]:
        """What tells each rule from all others, whatever codes symbols have."""
        name = self.symbols
        binary = [(name[a], name[b], name[c]) for a, b, c in self.binary.T.tolist()]
        lexical = [("'", self.terminals[t], name[a], self.labels[label]) for t, a, label in self.lexical.T.tolist()]
        return binary + lexical + [(name[a],) for a in self.roots.tolist()]

    @cached_property
    def parents(self) -> NDArray[np.int64]:
        """The table of probabilities that each rule belongs to: its parent symbol; the last one is that of roots."""
        roots = np.full(len(self.roots), len(self.symbols))
        return np.concatenate([self.binary[0], self.lexical[1], roots]).astype(np.int64)

    def clique_labels(self) -> Symbols:
        """Return the labels of the symbols of each rule, shape (n_rules, 3), parent first; -1 for none."""
        label, none = self.symbol_labels, np.full((2, self.n_rules), -1)
        parts = (
            label[self.binary],
            np.vstack([self.lexical[2:], none[:, : len(self.lexical[0])]]),
            np.vstack([label[self.roots][None], none[:, : len(self.roots)]]),
        )
        found = np.concatenate(parts, axis=1).T
        return np.ascontiguousarray(np.where(found == 0, -1, found), dtype=np.int32)

    def over_states(self, label: NDArray[np.int64]) -> tuple[GrammarRules, NDArray[np.int64]]:
        """Return the rules over states, each of which belongs to a label, and the rule that each of them comes from.

        A symbol is split as its label is; one without a label, which stands above words alone, as that of its words. So
        states determine symbols, and a tree of states has one derivation.
        """
        sizes = np.bincount(label, minlength=len(self.labels))
        if sizes[0] != 1:
            raise ValueError(f"No bracket, the empty label, must have one sub-state. Got {sizes[0]}.")
        first, split = np.cumsum(sizes) - sizes, sizes[self.symbol_labels]
        above_words = np.unique(self.lexical[1:], axis=1)
        unlabelled = self.symbol_labels[above_words[0]] == 0
        np.maximum.at(split, above_words[0][unlabelled], sizes[above_words[1][unlabelled]])
        for symbol, word in above_words.T[sizes[above_words[1]] != split[above_words[0]]].tolist():
            raise ValueError(
                f"{self.labels[word]!r}, the label of words, must have as many sub-states as the symbol "
                f"{self.symbols[symbol]!r} above them: {split[symbol]}. Got {sizes[word]}."
            )
        binary, lexical = split[self.binary], split[self.lexical[1]]
        n_rules = int(binary.prod(axis=0).sum() + lexical.sum())
        if n_rules > MOST_RULES:
            raise ValueError(f"The grammar would have {n_rules:,} rules of states, at most {MOST_RULES:,}: split less.")
        begin = np.cumsum(split) - split
        a, b, c, of_binary = _combined(begin[self.binary], binary)
        symbol, of_lexical = _combined(begin[self.lexical[1:2]], lexical[None])
        word = first[self.lexical[2, of_lexical]] + symbol - begin[self.lexical[1, of_lexical]]
        root, of_root = _combined(begin[self.roots][None], split[self.roots][None])
        origin = np.repeat(np.arange(len(self.symbols)), split)
        which = np.arange(len(origin)) - begin[origin]
        of_label = np.arange(len(label)) - first[label]
        ordered = np.lexsort((a, c, b))  # as builders have them
        rules = GrammarRules(
            symbols=_distinct(state_name(self.symbols[s], h, split[s]) for s, h in zip(origin, which, strict=True)),
            labels=tuple(state_name(self.labels[k], h, sizes[k]) for k, h in zip(label, of_label, strict=True)),
            terminals=self.terminals,
            symbol_labels=np.where(self.symbol_labels[origin] > 0, first[self.symbol_labels[origin]] + which, 0).astype(
                np.int32
            ),
            binary=np.ascontiguousarray(np.stack([a, b, c])[:, ordered], dtype=np.int32),
            lexical=np.ascontiguousarray(np.stack([self.lexical[0, of_lexical], symbol, word]), dtype=np.int32),
            roots=root.astype(np.int32),
        )
        n_binary, n_lexical = self.binary.shape[1], self.lexical.shape[1]
        parts = of_binary[ordered], n_binary + of_lexical, n_binary + n_lexical + of_root
        return rules, np.concatenate(parts).astype(np.int64)

    def record(self) -> Fields:
        """Return the record of the rules."""
        return {
            "symbols": packed(list(self.symbols)),
            "labels": packed(list(self.labels)),
            "terminals": packed(list(self.terminals)),
            "symbol_labels": self.symbol_labels,
            "binary": self.binary.ravel(),
            "lexical": self.lexical.ravel(),
            "roots": self.roots,
            "scores": self.scores,
        }

    @classmethod
    def from_record(cls, record: Record) -> GrammarRules:
        """Build rules from their record, which is checked."""
        symbols, labels, terminals = (_names(record, name) for name in ("symbols", "labels", "terminals"))
        record.check(bool(labels) and labels[0] == "", "the first label of its grammar must be empty.")
        arrays = {
            name: np.ascontiguousarray(record.array(name, np.int32, (None,)))
            for name in ("symbol_labels", "binary", "lexical", "roots")
        }
        record.check(len(arrays["symbol_labels"]) == len(symbols), "its grammar must have a label for each symbol.")
        for name in ("binary", "lexical"):
            record.check(len(arrays[name]) % 3 == 0, f"the {name} rules of its grammar must have three entries each.")
            arrays[name] = np.ascontiguousarray(arrays[name].reshape(3, -1))
        limits = (
            ("symbol_labels", arrays["symbol_labels"], len(labels)),
            ("binary", arrays["binary"], len(symbols)),
            ("lexical", arrays["lexical"][0], len(terminals)),
            ("lexical", arrays["lexical"][1], len(symbols)),
            ("lexical", arrays["lexical"][2], len(labels)),
            ("roots", arrays["roots"], len(symbols)),
        )
        for name, codes, n in limits:
            is_code = codes.min(initial=0) >= 0 and codes.max(initial=-1) < n
            record.check(bool(is_code), f"{name} of its grammar are no codes.")
        scores = None
        if record.has("scores"):
            n = len(arrays["binary"][0]) + len(arrays["lexical"][0]) + len(arrays["roots"])
            scores = record.array("scores", np.float64, (n,))
            record.check(bool((scores <= 0.0).all()), "the scores of its grammar are no logarithms of probabilities.")
        return cls(symbols=symbols, labels=labels, terminals=terminals, scores=scores, **arrays)


class RuleBuilder:
    """Collects rules whose symbols are known by keys; a rule that comes again is the same rule.

    Keys are tuples that begin with what kind of symbol it is; their names are made distinct at the end.
    """

    def __init__(self) -> None:
        self._names: dict[Hashable, str] = {}
        self._labels: dict[Hashable, str] = {}
        self._binary: dict[tuple[Hashable, Hashable, Hashable], float] = {}
        self._lexical: dict[tuple[str, Hashable, str], float] = {}
        self._roots: dict[Hashable, float] = {}

    def symbol(self, key: Hashable, name: str, label: str) -> Hashable:
        """Add a symbol; `label` is that of its spans of two words or more."""
        self._names.setdefault(key, name)
        self._labels.setdefault(key, label)
        return key

    def name(self, key: Hashable) -> str:
        """Return the name of a symbol."""
        return self._names[key]

    def add_binary(self, parent: Hashable, left: Hashable, right: Hashable, score: float = 0.0) -> None:
        """Add a rule of two symbols."""
        self._binary[parent, left, right] = score

    def add_lexical(self, terminal: str, symbol: Hashable, label: str, score: float = 0.0) -> None:
        """Add a rule of a terminal; `label` is what a word then has."""
        self._lexical[terminal, symbol, label] = score

    def share_tags(self) -> None:
        """Let words that have a tag, the last part of a label, have every symbol and label that ends in it."""
        words: dict[str, set[str]] = {}
        ways: dict[str, set[tuple[Hashable, str]]] = {}
        for terminal, symbol, label in self._lexical:
            tag = label.rpartition("+")[2]
            words.setdefault(tag, set()).add(terminal)
            ways.setdefault(tag, set()).add((symbol, label))
        for tag, found in words.items():
            for terminal in found:
                for symbol, label in ways[tag]:
                    self._lexical.setdefault((terminal, symbol, label), 0.0)

    def add_root(self, symbol: Hashable, score: float = 0.0) -> None:
        """Add a symbol of whole sentences."""
        self._roots[symbol] = score

    @property
    def n_rules(self) -> int:
        """Number of rules so far."""
        return len(self._binary) + len(self._lexical) + len(self._roots)

    def finish(self, labels: Sequence[str] | None = None, *, with_scores: bool = False) -> GrammarRules:
        """Return the rules in order.

        Parameters
        ----------
        labels : sequence of str, default=None
            Labels in the order of their codes, the empty one first; None: those that occur, sorted.
        with_scores : bool, default=False
            Whether the scores of rules are kept.
        """
        names = self._distinct_names()
        keys = sorted(self._names, key=lambda key: names[key])
        code = {key: at for at, key in enumerate(keys)}
        if labels is None:
            used = {label for _, _, label in self._lexical} | {self._labels[key] for key in keys}
            labels = sorted(used | {""})
        label_code = {label: at for at, label in enumerate(labels)}
        terminals = sorted({terminal for terminal, _, _ in self._lexical})
        terminal_code = {terminal: at for at, terminal in enumerate(terminals)}
        binary = sorted((code[b], code[c], code[a], score) for (a, b, c), score in self._binary.items())
        lexical = sorted(
            (terminal_code[t], code[a], label_code[label], score) for (t, a, label), score in self._lexical.items()
        )
        roots = sorted((code[a], score) for a, score in self._roots.items())
        scores = [row[-1] for rows in (binary, lexical, roots) for row in rows]
        return GrammarRules(
            symbols=tuple(names[key] for key in keys),
            labels=tuple(labels),
            terminals=tuple(terminals),
            symbol_labels=np.array([label_code.get(self._labels[key], 0) for key in keys], dtype=np.int32),
            binary=_columns([(a, b, c) for b, c, a, _ in binary]),
            lexical=_columns([row[:3] for row in lexical]),
            roots=np.array([row[0] for row in roots], dtype=np.int32),
            scores=np.array(scores, dtype=np.float64) if with_scores else None,
        )

    def _distinct_names(self) -> dict[Hashable, str]:
        found: dict[Hashable, str] = {}
        taken: set[str] = set()
        for key in sorted(self._names, key=lambda key: (self._names[key], repr(key))):
            name = self._names[key]
            while name in taken:
                name += "'"
            taken.add(name)
            found[key] = name
        return found


def state_name(name: str, substate: int, n_substates: int) -> str:
    """Return the name of a state: name/sub-state, unless there is one alone."""
    return f"{name}/{substate}" if n_substates > 1 else name


def _combined(begin: NDArray[np.int64], sizes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return all combinations of states of the symbols in each column, and the column that each comes from."""
    column = np.repeat(np.arange(sizes.shape[1]), sizes.prod(axis=0))
    left = np.arange(len(column)) - np.repeat(np.cumsum(sizes.prod(axis=0)) - sizes.prod(axis=0), sizes.prod(axis=0))
    found = []
    for row, size in zip(begin[::-1], sizes[::-1], strict=True):
        found.append(row[column] + left % size[column])
        left = left // size[column]
    return [*found[::-1], column]


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of which those that come again have an apostrophe more."""
    found: dict[str, None] = {}
    for name in names:
        while name in found:
            name += "'"
        found[name] = None
    return tuple(found)


def _names(record: Record, name: str) -> tuple[str, ...]:
    found = record.unpacked(name)
    record.check(isinstance(found, list) and all(isinstance(one, str) for one in found), f"its {name} must be names.")
    record.check(len(set(found)) == len(found), f"its grammar has {name} twice.")
    return tuple(found)


def _columns(rows: Sequence[tuple[int, ...]]) -> Symbols:
    return np.ascontiguousarray(np.array(rows, dtype=np.int32).reshape(-1, 3).T)
