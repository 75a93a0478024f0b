"""Trees of held-out sentences with what a model says of them, and tables of their scores and errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.metrics import parse_scores
from dualfield.plotting import ArcDisplay, TreeDisplay
from dualfield.plotting.markup import Html, escape
from dualfield.plotting.parse_trees.parsed import Parsed, parsed, read_true_trees
from dualfield.plotting.tables import table
from dualfield.report.training_scores import counted

_MOST_LABELS = 30  # rows of a table
_MOST_TYPES = 5  # labels that are named for a kind of error
_DISTANCES = (("from the root", 0, 0), ("1", 1, 1), ("2", 2, 2), ("3 to 6", 3, 6), ("7 and more", 7, 10**9))
_MEANS = {
    "label": "the right words, but another label",
    "spurious": "a predicted bracket without a true one of the same words",
    "missed": "a true bracket without a predicted one of the same words",
    "head": "another head",
    "arc label": "the right head, but another label",
}


@dataclass(frozen=True, eq=False, kw_only=True)
class DevTrees:
    """Predicted and true trees of those sentences whose truth is known."""

    found: Parsed
    classes: list[Any]  # without the empty label
    places: list[int]  # of the sentences
    numbers: list[int]  # of all sentences with a tree, among those that were passed
    unparsed: dict[int, str]  # those without any, and why
    lost_trees: list[Any]  # the true trees of these

    @property
    def tree_pairs(self) -> tuple[list[Any], list[Any]]:
        """True and predicted trees; None for sentences that have no tree."""
        truth, predicted = ([trees[at] for at in self.places] for trees in (self.found.true_trees, self.found.trees))
        return truth + self.lost_trees, predicted + [None] * len(self.lost_trees)

    def display(self, at: int) -> TreeDisplay | ArcDisplay:
        """Draw one of them."""
        if self.found.are_arcs:
            return ArcDisplay(**self.found.shown(at))
        return TreeDisplay(**self.found.shown(at), classes=self.classes)

    @cached_property
    def displays(self) -> dict[int, TreeDisplay | ArcDisplay]:
        """All of them, by their place."""
        return {at: self.display(at) for at in self.places}

    @property
    def part(self) -> str:
        """What a tree is made of."""
        return "arc" if self.found.are_arcs else "bracket"

    @cached_property
    def confidence(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]] | None:
        """The probability of every predicted part, and whether it is right."""
        if self.found.chances is None:
            return None
        sure = [self.found.chances[at] for at in self.places]
        right = [~np.array(self.displays[at].wrong, dtype=bool) for at in self.places]
        return np.concatenate([np.zeros(0), *sure]), np.concatenate([np.zeros(0, dtype=bool), *right])


def read_trees(model: Any, X: Any, y: Any, tokens: Any = None) -> DevTrees:
    """Predict the trees of held-out sentences."""
    X, y = list(X), list(y)
    scores = model.decision_scores(X)
    reasons = model.structure_.why_impossible(scores)
    kept = [at for at in range(len(X)) if at not in reasons]
    words = None if tokens is None else [tokens[at] for at in kept]
    found = parsed(model, [X[at] for at in kept], [y[at] for at in kept], words)
    assert found.truth is not None
    known = [at for at, one in enumerate(found.truth) if one is not None and found.words[at]]
    lost = []
    if reasons:
        shape = scores.shape.take(np.array(list(reasons)))
        lost = [tree for tree in read_true_trees(shape, [y[at] for at in reasons]) if tree is not None]
    return DevTrees(
        found=found,
        classes=[label for label in model.classes_ if label],
        places=known,
        numbers=kept,
        unparsed=reasons,
        lost_trees=lost,
    )


def bracket_table(result: DevTrees) -> Html:
    """Return evalb's scores of each label."""
    scores = parse_scores(*result.tree_pairs)
    order = sorted(scores.labels.items(), key=lambda one: (-one[1].support - one[1].found, one[0]))
    rows = [
        (name, *(f"{100.0 * share:.2f}" for share in (one.precision, one.recall, one.f1)), one.found, one.support)
        for name, one in [("all", scores.overall), *order[:_MOST_LABELS]]
    ]
    more = f"; the {_MOST_LABELS} most frequent of {len(order)} labels" if len(order) > _MOST_LABELS else ""
    header = ("brackets", "precision", "recall", "F1", "found", "true")
    return table(header, rows, caption=f"Brackets, in percent, counted as evalb does{more}")


def arc_tables(result: DevTrees) -> list[Html]:
    """Return scores by label, or by tag where arcs have none, and by the distance of the true head."""
    words = list(_words(result))
    tables = []
    if any(true[1] for _, true, _, _ in words):
        found, support, right = (Counter[str]() for _ in range(3))
        for _, true, guess, is_wrong in words:
            support[true[1]] += 1
            found[guess[1]] += 1
            right[true[1]] += not is_wrong
        order = [name for name, _ in (support + found).most_common(_MOST_LABELS)]
        rows = [(name, *_shares(right[name], found[name], support[name]), found[name], support[name]) for name in order]
        header = ("label", "precision", "recall", "F1", "found", "true")
        tables.append(table(header, rows, caption="Arcs with the right head and label, in percent"))
    else:
        tables.append(_accuracies("tag", [(tag, true[0] == guess[0]) for tag, true, guess, _ in words if tag]))
    apart = [(_distance(at, true[0]), true[0] == guess[0]) for at, true, guess in _places(result)]
    order = [name for name, _, _ in _DISTANCES]
    return [*tables, _accuracies("true head, words away", sorted(apart, key=lambda one: order.index(one[0])), order)]


def _shares(right: int, found: int, support: int) -> tuple[str, ...]:
    f1 = 2.0 * right / max(found + support, 1)
    return tuple(f"{100.0 * share:.2f}" for share in (right / max(found, 1), right / max(support, 1), f1))


def _accuracies(name: str, flags: list[tuple[str, bool]], order: list[str] | None = None) -> Html:
    if not flags:
        return Html("")
    total, right = Counter(key for key, _ in flags), Counter(key for key, is_right in flags if is_right)
    keys = [key for key, _ in total.most_common(_MOST_LABELS)] if order is None else [k for k in order if total[k]]
    rows = [(key, f"{100.0 * right[key] / total[key]:.2f}", total[key]) for key in keys]
    return table((name, "right heads", "words"), rows, caption="Words with the right head, in percent")


def _words(result: DevTrees) -> Iterator[tuple[str, tuple[int, str], tuple[int, str], bool]]:
    """Give out tag, true arc and predicted arc of every word, and whether it is wrong."""
    assert result.found.truth is not None
    for at in result.places:
        tags = result.found.tags[at] or [""] * len(result.found.words[at])
        yield from zip(
            tags, result.found.truth[at] or [], result.found.predicted[at], result.displays[at].wrong, strict=True
        )


def _places(result: DevTrees) -> Iterator[tuple[int, tuple[int, str], tuple[int, str]]]:
    assert result.found.truth is not None
    for at in result.places:
        for place, (true, guess) in enumerate(
            zip(result.found.truth[at] or [], result.found.predicted[at], strict=True), start=1
        ):
            yield place, true, guess


def _distance(place: int, head: int) -> str:
    away = 0 if head == 0 else abs(head - place)
    return next(name for name, low, high in _DISTANCES if low <= away <= high)


def error_table(result: DevTrees) -> Html:
    """Count the errors of each kind, by label."""
    kinds: dict[str, Counter[str]] = {}
    if result.found.are_arcs:
        for tag, true, guess, is_wrong in _words(result):
            if is_wrong:
                kind = "head" if true[0] != guess[0] else "arc label"
                kinds.setdefault(kind, Counter())[true[1] or tag] += 1
    else:
        for display in result.displays.values():
            assert isinstance(display, TreeDisplay)
            nodes = [node for top in display.tops for node in top.walk() if node.is_wrong]
            for node in nodes:
                kind = "spurious" if node.note == "spurious" else "label"
                kinds.setdefault(kind, Counter())[str(node.label)] += 1
            for label, _, _ in display.missed:
                kinds.setdefault("missed", Counter())[label] += 1
    total = sum(counts.total() for counts in kinds.values())
    rows = []
    for kind in _MEANS:
        if kind in kinds:
            most = ", ".join(f"{name} {count:,}" for name, count in kinds[kind].most_common(_MOST_TYPES) if name)
            share = f"{100.0 * kinds[kind].total() / total:.1f}"
            rows.append((Html(f"{kind}<small>{_MEANS[kind]}</small>"), kinds[kind].total(), share, most))
    header = ("error", "number", "%", "by label")
    return Html(f'<div class="kinds">{table(header, rows, caption=counted(total, "error"))}</div>')


def text_table(model: Any, X: Any) -> list[Html]:
    """Say which text the attributes that begin with a name are made by, folded; nothing where texts make none."""
    texts = getattr(model.structure_.open(list(X)[:1]).nodes, "texts", None)
    if texts is None:
        return []
    rows = list(zip(texts.prefixes, texts.texts, strict=True))
    made = table(("attribute", "text"), [(name, Html(f"<code>{escape(text)}</code>")) for name, text in rows])
    return [Html(f'<details class="facts"><summary>Texts that make attributes</summary>{made}</details>')]
