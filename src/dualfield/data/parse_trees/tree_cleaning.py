"""Trees of treebanks made ready for training: empty elements and function tags off, unary chains as one label."""

from __future__ import annotations

from collections.abc import Sequence

from dualfield.data.parse_trees.trees import Constituent, ParseTree

__all__ = ["clean_tree", "join_unaries", "split_unaries"]

TOPS = ("", "TOP", "ROOT", "S1")  # labels of brackets around a whole sentence that say nothing
JOIN = "+"


def clean_tree(
    tree: ParseTree,
    *,
    empty: str | None = "-NONE-",
    functions: bool = False,
    alternatives: bool = False,
    repeated: bool = False,
    tops: Sequence[str] = TOPS,
) -> ParseTree | None:
    """Return a tree without what parsers are neither trained nor scored on.

    Parameters
    ----------
    tree : ParseTree
        The tree.
    empty : str, default="-NONE-"
        The tag of empty elements, which are removed with the constituents that have nothing else; None: they stay.
    functions : bool, default=False
        Whether function tags and indices stay: ``NP-SBJ-1`` becomes ``NP``, and ``-LRB-`` stays.
    alternatives : bool, default=False
        Whether labels such as ``ADVP|PRT`` stay; otherwise the first alternative, ``ADVP``, is taken.
    repeated : bool, default=False
        Whether a constituent stays that has one part only, of the same label.
    tops : sequence of str, default=("", "TOP", "ROOT", "S1")
        Labels of an outermost bracket that is removed; around several parts, or one word, it becomes ``TOP``.

    Returns
    -------
    ParseTree or None
        The tree; None if no word is left.

    Examples
    --------
    >>> from dualfield.data import ParseTree, clean_tree
    >>> tree = ParseTree.from_brackets("((S (NP-SBJ-1 (-NONE- *)) (VP (VB go) (ADVP|PRT (RB home)))))")
    >>> print(clean_tree(tree))
    (S (VP (VB go) (ADVP (RB home))))
    """

    def label_of(label: str, *, is_tag: bool) -> str:
        if not alternatives and label.find("|") > 0:
            label = label[: label.find("|")]
        if functions or is_tag or label.startswith("-"):
            return label
        cuts = [at for at in (label.find("-"), label.find("=")) if at > 0]
        return label[: min(cuts, default=len(label))]

    def leaf(one: ParseTree) -> ParseTree | None:
        return None if one.label == empty else ParseTree(label_of(one.label, is_tag=True), (), one.word)

    def node(one: ParseTree, parts: list[ParseTree | None]) -> ParseTree | None:
        kept = [part for part in parts if part is not None]
        if not kept:
            return None
        label = label_of(one.label, is_tag=False)
        if not repeated and len(kept) == 1 and not kept[0].is_leaf and kept[0].label == label:
            return kept[0]
        return ParseTree(label, tuple(kept))

    found = tree.fold(leaf, node)
    while found is not None and not found.is_leaf and found.label in tops and len(found.children) == 1:
        if found.children[0].is_leaf:
            break
        found = found.children[0]
    if found is None or (not found.is_leaf and found.label not in tops):
        return found
    return ParseTree("TOP", (found,) if found.is_leaf else found.children)


def join_unaries(tree: ParseTree) -> ParseTree:
    """Return a tree in which constituents of the same words are one, with a label such as ``S+VP``.

    Parameters
    ----------
    tree : ParseTree
        The tree. Tags of words stay as they are.

    Returns
    -------
    ParseTree
        With at most one constituent for the same words.

    Raises
    ------
    ValueError
        If a label has a plus sign already.

    See Also
    --------
    split_unaries : The way back.

    Examples
    --------
    >>> from dualfield.data import ParseTree, join_unaries
    >>> print(join_unaries(ParseTree.from_brackets("(S (VP (VB go) (NP (NN home))))")))
    (S+VP (VB go) (NP (NN home)))
    """

    def node(one: ParseTree, parts: list[ParseTree]) -> ParseTree:
        if JOIN in one.label:
            raise ValueError(f"The label {one.label!r} has a {JOIN!r}, which joins the labels of unary chains.")
        if len(parts) == 1 and not parts[0].is_leaf:
            return ParseTree(f"{one.label}{JOIN}{parts[0].label}", parts[0].children)
        return ParseTree(one.label, tuple(parts))

    return tree.fold(lambda one: one, node)


def split_unaries(tree: ParseTree) -> ParseTree:
    """Return a tree in which labels such as ``S+VP`` are several constituents again.

    Parameters
    ----------
    tree : ParseTree
        The tree.

    Returns
    -------
    ParseTree
        The tree with unary chains.

    See Also
    --------
    join_unaries : The way back.

    Examples
    --------
    >>> from dualfield.data import ParseTree, split_unaries
    >>> print(split_unaries(ParseTree.from_brackets("(S+VP (VB go) (NP (NN home)))")))
    (S (VP (VB go) (NP (NN home))))
    """

    def node(one: ParseTree, parts: list[ParseTree]) -> ParseTree:
        *above, lowest = one.label.split(JOIN)
        found = ParseTree(lowest, tuple(parts))
        for label in reversed(above):
            found = ParseTree(label, (found,))
        return found

    return tree.fold(lambda one: one, node)


def joined_constituents(tree: ParseTree) -> list[Constituent]:
    """Return the constituents of a tree, those of the same words as one.

    Examples
    --------
    >>> from dualfield.data import ParseTree
    >>> from dualfield.data.parse_trees.tree_cleaning import joined_constituents
    >>> [tuple(one) for one in joined_constituents(ParseTree.from_brackets("(S (VP (VB go)))"))]
    [('S+VP', 0, 1)]
    """
    return join_unaries(tree).constituents()
