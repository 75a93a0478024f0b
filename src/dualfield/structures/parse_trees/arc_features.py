"""The features that arcs of dependency trees have unless users say otherwise."""

from __future__ import annotations

from dualfield.data.anchored_texts import ARC, AnchoredTexts

ARGUMENT = "The 'arc_features' parameter of Dependency"

_STEPS = ("-1", "+1")


def default_arc_texts(n_columns: int) -> AnchoredTexts:
    """Return a first-order set for tokens with so many columns, words first, then tags.

    Words and tags of both ends alone and together, tags of their neighbours, each with the direction and with direction
    and distance; tags between the ends. Where tokens are words only, the neighbours are words.

    Parameters
    ----------
    n_columns : int
        Columns of tokens.

    Returns
    -------
    AnchoredTexts
        The texts.

    Examples
    --------
    >>> from dualfield.structures.parse_trees.arc_features import default_arc_texts
    >>> default_arc_texts(1).texts[:3]
    ('%n', '%x[head]/%d', '%x[head]/%n')
    """
    head, child = "%x[head]", "%x[child]"
    ends = [head, child, f"{head}/{child}"]
    column, between = "", []
    if n_columns > 1:
        column, word_head, word_child = ",1", head, child
        head, child = "%x[head,1]", "%x[child,1]"
        ends += [head, child, f"{head}/{child}", f"{word_head}/{child}", f"{head}/{word_child}"]
        ends += [f"{head}/%x[head{a},1]/{child}/%x[child{b},1]" for a in _STEPS for b in _STEPS]
        between = [f"{head}/%b[1]/{child}/%d"]
    ends += [f"{head}/{child}/%x[{one}{step}{column}]" for one in ("head", "child") for step in _STEPS]
    with_place = [f"{text}/{place}" for text in ends for place in ("%d", "%n")]
    return AnchoredTexts(("%n", *with_place, *between), ARC, ARGUMENT)
