"""Constituent trees and dependency trees as text: plain, and for a terminal in colours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dualfield.plotting.graph_picture import Colours
from dualfield.plotting.parse_trees.bracketing import Node
from dualfield.plotting.sentence import rounded
from dualfield.plotting.style import HUES

if TYPE_CHECKING:
    from rich.text import Text

Run = tuple[str, str]  # a text and its look: "", "wrong", "soft", or the label whose colour it has


def plain_tree(tree: Any) -> str:
    """Return a line for each bracket, and for words beside brackets, below what they are in."""
    return "\n".join("".join(text for text, _ in line) for line in _tree_lines(tree))


def rich_tree(tree: Any) -> Text:
    """Return the same lines in colours: a hue for each label, and red for what is wrong."""
    return _coloured(_tree_lines(tree), Colours(tree.labels))


def _tree_lines(tree: Any) -> Iterator[list[Run]]:
    stack: list[tuple[Node, str, str]] = [(top, "", "") for top in reversed(_joined(tree.tops))]
    while stack:
        node, lead, below = stack.pop()
        words = " ".join(tree.words[node.start : node.stop])
        if node.label is None:
            yield [(lead, "soft"), (words, "")]
            continue
        line = [(lead, "soft"), (node.label, f"label {node.label}")]
        line += [] if node.chance is None else [(f" {rounded(node.chance)}", "")]
        line += [(f" ✗ {node.note}", "wrong")] if node.note else []
        children = _joined(node.children)
        if all(child.label is None for child in children):
            yield [*line, (f"  {words}", "")]
            continue
        yield line
        for place, child in enumerate(reversed(children)):
            branch, further = ("└─ ", "   ") if place == 0 else ("├─ ", "│  ")
            stack.append((child, below + branch, below + further))
    for label, start, stop in tree.missed:
        yield [(f"✗ missed {label}", "wrong"), (f"  {' '.join(tree.words[start:stop])}", "")]


def _joined(children: list[Node]) -> list[Node]:
    """Return nodes, with words side by side as one."""
    found: list[Node] = []
    for child in children:
        if child.label is None and found and found[-1].label is None:
            found[-1] = Node(label=None, start=found[-1].start, stop=child.stop)
        else:
            found.append(child)
    return found


def _coloured(lines: Iterator[list[Run]], colours: Colours) -> Text:
    from rich.style import Style
    from rich.text import Text

    looks = {"": None, "wrong": Style(color="red", bold=True), "soft": Style(dim=True)}
    whole = Text()
    for at, line in enumerate(lines):
        whole.append("\n" if at else "")
        for text, look in line:
            if look.startswith("label "):
                hue = HUES[colours.of(look.removeprefix("label "))[0]][0]
                whole.append(text, Style(color=hue, bold=True))
            else:
                whole.append(text, looks[look])
    return whole


def plain_arcs(tree: Any) -> str:
    """Return a line for each word, with its head, label, probability, and what is true."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in _arc_lines(tree))


def rich_arcs(tree: Any) -> Text:
    """Return the same lines in colours: a hue for each label, and red for what is wrong."""
    return _coloured(_arc_lines(tree), Colours([label for _, label in tree.arcs]))


def _arc_lines(tree: Any) -> Iterator[list[Run]]:
    def named(head: int) -> str:
        return f"{head} {'ROOT' if head == 0 else tree.words[head - 1]}"

    wide = max((len(named(at + 1)) for at in range(len(tree.words))), default=0)
    wide_head = max((len(named(head)) for head, _ in tree.arcs), default=0)
    wide_label = max((len(label) for _, label in tree.arcs), default=0)
    for at, (head, label) in enumerate(tree.arcs):
        line = [(f"{named(at + 1):<{wide}}  ", ""), (f"← {named(head):<{wide_head}}", "")]
        line += [(f"  {label:<{wide_label}}", f"label {label}")] if wide_label else []
        line += [] if tree.probabilities is None else [(f"  {rounded(tree.probabilities[at])}", "")]
        if tree.wrong[at]:
            true, name = tree.truth[at]
            line.append((f"  ✗ true: {f'{name} ' if name else ''}← {named(true)}", "wrong"))
        yield line
