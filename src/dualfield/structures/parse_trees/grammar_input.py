"""Grammars as users write them: rules of any length, with chains of single symbols, into rules of two symbols."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

from dualfield.structures.parse_trees.grammar_rules import MOST_RULES, RuleBuilder

_ITEM = re.compile(r"'([^']*)'|\"([^\"]*)\"|(\||->|→)|(\[[^\]]*\])|([^\s|'\"\[\]]+)")


class Production(NamedTuple):
    """A rule as users write it.

    Attributes
    ----------
    parent : str
        Its left-hand side.
    children : tuple of str
        Its right-hand side.
    terminal : tuple of bool
        Which of them are terminals.
    score : float
        The logarithm of its probability; 0 if it has none.
    """

    parent: str
    children: tuple[str, ...]
    terminal: tuple[bool, ...]
    score: float


def read_productions(rules: Any) -> list[Production]:
    """Read rules: texts such as ``"NP -> DT NN | 'it' [0.3]"``, or tuples (parent, children[, probability]).

    What stands in quotes is a terminal, and so is what no rule has on its left-hand side.
    """
    if isinstance(rules, str):
        rules = [line for line in rules.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    found: list[tuple[str, list[tuple[str, bool]], float]] = []
    for at, rule in enumerate(rules):
        found += _alternatives(f"rules[{at}]", rule)
    parents = {parent for parent, _, _ in found}
    read = []
    for parent, children, score in found:
        quoted = tuple(is_quoted or name not in parents for name, is_quoted in children)
        read.append(Production(parent, tuple(name for name, _ in children), quoted, score))
    return _checked(read)


def read_nltk(grammar: Any) -> tuple[list[Production], str]:
    """Read a grammar of NLTK, or anything with its methods; returns the rules and the start symbol."""
    if not (callable(getattr(grammar, "productions", None)) and callable(getattr(grammar, "start", None))):
        raise TypeError(
            f"grammar must have the methods productions() and start(), as nltk.CFG has. Got {type(grammar).__name__}."
        )
    read = []
    for one in grammar.productions():
        children = tuple(one.rhs())
        probability = one.prob() if callable(getattr(one, "prob", None)) else 1.0
        terminal = tuple(not callable(getattr(child, "symbol", None)) for child in children)
        score = math.log(probability) if probability > 0 else -math.inf
        read.append(Production(str(one.lhs()), tuple(map(str, children)), terminal, score))
    return _checked(read), str(grammar.start())


def _alternatives(place: str, rule: Any) -> Iterator[tuple[str, list[tuple[str, bool]], float]]:
    if not isinstance(rule, str):
        if not isinstance(rule, (tuple, list)) or len(rule) not in (2, 3) or isinstance(rule[1], str):
            raise ValueError(f"{place} must be a text or a tuple (parent, children[, probability]). Got {rule!r:.100}.")
        children = [_quoted(str(child)) for child in rule[1]]
        yield str(rule[0]), children, _score(place, rule[2] if len(rule) == 3 else 1.0)
        return
    items = list(_ITEM.finditer(rule))
    if len(items) < 3 or items[0][5] is None or items[1][3] not in ("->", "→"):
        raise ValueError(f'{place} must be a text such as "NP -> DT NN". Got {rule!r:.100} instead.')
    children, score = [], 0.0
    for item in [*items[2:], None]:
        if item is None or item[3] == "|":
            yield items[0][5], children, score
            children, score = [], 0.0
        elif item[4] is not None:
            score = _score(place, item[4][1:-1])
        elif item[3] is not None:
            raise ValueError(f"{place} must have one arrow. Got {rule!r:.100} instead.")
        else:
            children.append((item[5], False) if item[5] is not None else (item[1] or item[2] or "", True))


def _quoted(name: str) -> tuple[str, bool]:
    is_quoted = len(name) > 2 and name[0] == name[-1] and name[0] in "'\""
    return (name[1:-1], True) if is_quoted else (name, False)


def _score(place: str, probability: Any) -> float:
    try:
        number = float(probability)
    except (TypeError, ValueError):
        number = math.nan
    if not 0.0 < number <= 1.0:
        raise ValueError(f"The probability of {place} must be in (0, 1]. Got {probability!r} instead.")
    return math.log(number)


def _checked(rules: list[Production]) -> list[Production]:
    if not rules:
        raise ValueError("A grammar must have at least one rule. Got none.")
    seen: set[tuple[Any, ...]] = set()
    for rule in rules:
        text = f"{rule.parent} -> {' '.join(rule.children)}"
        if not rule.children:
            raise ValueError(f"The rule {text!r} makes nothing: rules must have a right-hand side.")
        if rule[:3] in seen:
            raise ValueError(f"The rule {text!r} is listed twice.")
        seen.add(rule[:3])
        if "+" in rule.parent:
            raise ValueError(f"The symbol {rule.parent!r} has a '+', which joins the labels of unary chains.")
        if rule.parent.startswith("@") and len(rule.children) == 1 and not rule.terminal[0]:
            raise ValueError(f"The rule {text!r} makes a symbol without a label, '@', of one other symbol.")
    return rules


class _Chains:
    """Unary chains without repetitions: A, A+B, A+B+C for rules A -> B and B -> C."""

    def __init__(self, rules: Sequence[Production]) -> None:
        self._steps: dict[str, list[tuple[str, float]]] = {}
        made = set()
        for rule in rules:
            if len(rule.children) == 1 and not rule.terminal[0]:
                self._steps.setdefault(rule.parent, []).append((rule.children[0], rule.score))
            else:
                made.add(rule.parent)
        self.down: dict[str, list[tuple[tuple[str, ...], float]]] = {}
        self.up: dict[str, list[tuple[tuple[str, ...], float]]] = {}
        for parent in {rule.parent for rule in rules}:
            for chain, score in self._from((parent,), 0.0):
                if chain[-1] in made:
                    self.down.setdefault(parent, []).append((chain, score))
                    self.up.setdefault(chain[-1], []).append((chain, score))

    def _from(self, chain: tuple[str, ...], score: float) -> Iterator[tuple[tuple[str, ...], float]]:
        yield chain, score
        for child, more in self._steps.get(chain[-1], ()):
            if child not in chain:
                yield from self._from((*chain, child), score + more)


class Normaliser:
    """Puts rules as users write them into a builder."""

    def __init__(self, rules: Sequence[Production], starts: Iterable[str]) -> None:
        self.builder = RuleBuilder()
        self._chains = _Chains(rules)
        self._rests: set[Hashable] = set()
        starts = list(starts)
        for rule in rules:
            if len(rule.children) > 1 or rule.terminal[0]:
                self._add(rule)
            if self.builder.n_rules > MOST_RULES:
                raise ValueError(
                    f"The grammar has more than {MOST_RULES} rules of two symbols, for all unary chains. Leave out "
                    "unary rules."
                )
        for start in starts:
            if start not in self._chains.down:
                raise ValueError(f"The start symbol must be a parent of a rule that makes something. Got {start!r}.")
            for chain, _ in self._chains.down[start]:
                self.builder.add_root(self._symbol(chain))

    def _symbol(self, chain: tuple[str, ...]) -> Hashable:
        name = "+".join(chain)
        return self.builder.symbol(("bracket", chain), name, "" if name.startswith("@") else name)

    def _variants(self, name: str, is_terminal: bool) -> list[Hashable]:
        """Return the symbols that may stand for a child."""
        if is_terminal:
            symbol = self.builder.symbol(("tag", name), name, "")
            self.builder.add_lexical(name, symbol, "")
            return [symbol]
        return [self._symbol(chain) for chain, _ in self._chains.down.get(name, ())]

    def _add(self, rule: Production) -> None:
        parts = list(zip(rule.children, rule.terminal, strict=True))
        for chain, score in self._chains.up[rule.parent]:
            parent = self._symbol(chain)
            if len(parts) == 1:
                self.builder.add_lexical(rule.children[0], parent, self._word_label(chain), score + rule.score)
            else:
                self._pairs(parent, parts, score + rule.score)

    @staticmethod
    def _word_label(chain: tuple[str, ...]) -> str:
        return "" if chain[0].startswith("@") else "+".join(chain)

    def _pairs(self, parent: Hashable, parts: list[tuple[str, bool]], score: float) -> None:
        first, rest = self._variants(*parts[0]), parts[1:]
        others = self._variants(*rest[0]) if len(rest) == 1 else [self._rest(rest)]
        for left, right in product(first, others):
            self.builder.add_binary(parent, left, right, score)

    def _rest(self, parts: list[tuple[str, bool]]) -> Hashable:
        """Return the symbol of what is left of a long rule, which has a rule of its own."""
        symbol = self.builder.symbol(("rest", *parts), "@" + ",".join(name for name, _ in parts), "")
        if symbol not in self._rests:
            self._rests.add(symbol)
            self._pairs(symbol, parts, 0.0)
        return symbol
