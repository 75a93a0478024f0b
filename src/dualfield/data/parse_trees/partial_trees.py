"""What is known of a tree: brackets that it has, and brackets that it does not have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from dualfield.data.parse_trees.tree_cleaning import JOIN, joined_constituents
from dualfield.data.parse_trees.trees import ParseTree

__all__ = ["PartialTree"]


@dataclass(frozen=True)
class PartialTree:
    """Some brackets of a sentence. What is not told may be anything: the rest of the tree is latent.

    Parameters
    ----------
    brackets : iterable of (start, stop, label)
        Brackets that the tree has; a label of None stands for any label.
    forbidden : iterable of (start, stop, label), default=()
        Brackets that it does not have; a label of None stands for all labels.

    Examples
    --------
    >>> from dualfield.data import PartialTree
    >>> PartialTree([(0, 2, "NP")], forbidden=[(2, 4, None)]).brackets
    ((0, 2, 'NP'),)
    """

    brackets: tuple[tuple[int, int, str | None], ...]
    forbidden: tuple[tuple[int, int, str | None], ...] = ()

    def __post_init__(self) -> None:
        for name in ("brackets", "forbidden"):
            object.__setattr__(self, name, _read(getattr(self, name), f"PartialTree.{name}"))


@dataclass(frozen=True)
class Bracketing:
    """The brackets of a sentence as users gave them.

    Attributes
    ----------
    labels : dict from (start, stop) to str or None
        Unary chains as one label; None stands for any label.
    forbidden : tuple of (start, stop, label)
        As in :class:`PartialTree`.
    is_complete : bool
        Whether the tree has no other brackets.
    form : str
        How it was given: "tree", "brackets", "nltk", "spans" or "partial".
    words, tags : list of str or None
        Its words and their tags, where it came with words.
    """

    _: KW_ONLY
    labels: dict[tuple[int, int], str | None]
    forbidden: tuple[tuple[int, int, str | None], ...]
    is_complete: bool
    form: str
    words: list[str] | None = None
    tags: list[str] | None = None


def read_bracketing(given: Any, name: str, *, is_complete: bool = True) -> Bracketing:
    """Read a tree in any form, spans, or a :class:`PartialTree`; spans are all brackets, or some of them."""
    if isinstance(given, PartialTree):
        return Bracketing(
            labels=_chained(given.brackets, name), forbidden=given.forbidden, is_complete=False, form="partial"
        )
    if isinstance(given, (list, tuple)) and not callable(getattr(given, "label", None)):
        return Bracketing(
            labels=_chained(_read(given, name), name), forbidden=(), is_complete=is_complete, form="spans"
        )
    form = "tree" if isinstance(given, ParseTree) else "brackets" if isinstance(given, str) else "nltk"
    try:
        tree = ParseTree.of(given)
        found = joined_constituents(tree)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must be a tree. {error}") from None
    for label, start, stop in found:
        if "" in label.split(JOIN):
            raise ValueError(
                f"{name} has a bracket without a label at ({start}, {stop}). dualfield.data.clean_tree removes outer "
                "brackets."
            )
    labels: dict[tuple[int, int], str | None] = {(start, stop): label for label, start, stop in found}
    return Bracketing(labels=labels, forbidden=(), is_complete=True, form=form, words=tree.words(), tags=tree.tags())


def _chained(spans: Iterable[tuple[int, int, str | None]], name: str) -> dict[tuple[int, int], str | None]:
    """Join the labels of the same words, the outer one first."""
    found: dict[tuple[int, int], str | None] = {}
    for start, stop, label in spans:
        before = found.get((start, stop))
        if (start, stop) in found and (before is None or label is None):
            raise ValueError(f"{name} has two brackets at ({start}, {stop}), one of them with any label.")
        found[start, stop] = label if before is None or label is None else f"{before}{JOIN}{label}"
    return found


def _read(spans: Any, name: str) -> tuple[tuple[int, int, str | None], ...]:
    return tuple(_span(one, f"{name}[{at}]") for at, one in enumerate(spans))


def _span(span: Any, place: str) -> tuple[int, int, str | None]:
    """Return (start, stop, label) from that or from (label, start, stop)."""
    if isinstance(span, (tuple, list)) and len(span) == 3:
        start, stop, label = (span[1], span[2], span[0]) if isinstance(span[0], str) else span
        integers = all(isinstance(one, (int, np.integer)) and not isinstance(one, bool) for one in (start, stop))
        if integers and (label is None or (isinstance(label, str) and label)):
            return int(start), int(stop), label
    raise ValueError(f"{place} must be a bracket (start, stop, label). Got {span!r:.100} instead.")
