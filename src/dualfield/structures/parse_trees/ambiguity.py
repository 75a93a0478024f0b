"""Whether a labelled bracketing can have two derivations: the symbols of a grammar as states of a tree automaton."""

from __future__ import annotations

from collections import defaultdict

from dualfield.structures.parse_trees.grammar_rules import GrammarRules


def check_one_derivation(rules: GrammarRules) -> None:
    """Raise an error that names two rules if a labelled bracketing may have more than one derivation.

    Two symbols *coexist* if the same labelled bracketing can be derived from both. That is so for words of the same
    terminal and label, and for parents of the same label whose left children coexist and whose right children do. A
    bracketing has two derivations if and only if, at the highest place where they differ, there are two rules of one
    symbol whose children coexist, or two roots that do. That holds where symbols without a label are always on the same
    side, so that the parts of a bracket are joined in one order.

    Parameters
    ----------
    rules : GrammarRules
        The rules.

    Raises
    ------
    ValueError
        With the two rules.
    """
    names, binary = rules.names(), rules.binary.T.tolist()
    _check_sides(rules, names)
    by_left = defaultdict(list)
    for rule, (_, left, _) in enumerate(binary):
        by_left[left].append(rule)
    mates: dict[int, set[int]] = {symbol: {symbol} for symbol in range(len(rules.symbols))}
    words = defaultdict(list)
    for terminal, symbol, label in rules.lexical.T.tolist():
        words[terminal, label].append(symbol)
    for symbols in words.values():
        for symbol in symbols:
            mates[symbol].update(symbols)
    label_of, changed = rules.symbol_labels.tolist(), True
    while changed:
        changed = False
        for one, (parent, left, right) in enumerate(binary):
            for two in [rule for mate in mates[left] for rule in by_left[mate]]:
                other, _, other_right = binary[two]
                if two == one or other_right not in mates[right] or label_of[other] != label_of[parent]:
                    continue
                if other == parent:
                    raise _two_derivations(names[one], names[two])
                if other not in mates[parent]:
                    mates[parent].add(other)
                    mates[other].add(parent)
                    changed = True
    roots = rules.roots.tolist()
    for one in roots:
        for two in roots:
            if one < two and two in mates[one]:
                raise _two_derivations(f"-> {rules.symbols[one]}", f"-> {rules.symbols[two]}")


def _two_derivations(one: str, two: str) -> ValueError:
    return ValueError(
        f"A labelled bracketing may have two derivations, by {one!r} and by {two!r}: rules of symbols without a label, "
        "'@', must leave one. Give one of the symbols a label, by another name."
    )


def _check_sides(rules: GrammarRules, names: list[str]) -> None:
    """Refuse symbols without a label as left children of some rules and as right children of others."""
    joins = {parent for parent in rules.binary[0].tolist() if rules.symbol_labels[parent] == 0}
    sides = [next((at for at, one in enumerate(row.tolist()) if one in joins), None) for row in rules.binary[1:]]
    if None not in sides:
        raise _two_derivations(names[sides[0]], names[sides[1]])  # type: ignore[index]
