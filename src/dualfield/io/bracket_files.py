"""Files of trees in brackets, as treebanks have them: one tree on each line, or on several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dualfield.data.parse_trees.brackets import BracketReader
from dualfield.data.parse_trees.trees import ParseTree
from dualfield.io.text_lines import Source, Target, numbered_lines, source_name, write_lines

NO_PARSE = "(())"


def iter_trees(source: Source, *, encoding: str = "utf-8") -> Iterator[tuple[int, ParseTree | None]]:
    """Yield each tree of a file with the line where it begins; see :func:`read_trees`."""
    return BracketReader(ParseTree, source_name(source)).trees(numbered_lines(source, encoding))


def read_trees(source: Source, *, encoding: str = "utf-8") -> list[ParseTree | None]:
    """Read trees in brackets, ``(S (NP (DT a) (NN dog)) (VP (VBZ barks)))``, on one line each or on several.

    Trees are read as they are, with outer brackets, empty elements and function tags; :func:`dualfield.data.clean_tree`
    removes these.

    Parameters
    ----------
    source : path, open file, or iterable of str
        The file; a path may lead to a gzip file.
    encoding : str, default="utf-8"
        The encoding of a file.

    Returns
    -------
    list of ParseTree or None
        The trees; None for ``(())``, a sentence for which a parser found no tree.

    Raises
    ------
    ValueError
        If brackets are not balanced. The message names the file, the line, and what is missing.

    See Also
    --------
    write_trees : The way back.

    Examples
    --------
    >>> from dualfield.io import read_trees
    >>> read_trees(["(S (NN dogs)", "   (VBP bark))", "(())"])
    [ParseTree.from_brackets('(S (NN dogs) (VBP bark))'), None]
    >>> read_trees(["(S (NN dogs))", ")"])
    Traceback (most recent call last):
        ...
    ValueError: lines, line 2: a bracket is closed that was not opened.
    """
    return [tree for _, tree in iter_trees(source, encoding=encoding)]


def write_trees(trees: Iterable[Any], target: Target) -> None:
    """Write trees in brackets, one on each line.

    Parameters
    ----------
    trees : iterable of ParseTree, trees of NLTK, str or None
        The trees; a str is written as it is read, None as ``(())``.
    target : path or open text file
        A path is written atomically; one that ends in ``.gz`` gets a gzip file.

    Raises
    ------
    ValueError
        If a label or a word has blanks.

    See Also
    --------
    read_trees : The way back.

    Examples
    --------
    >>> import sys
    >>> from dualfield.io import write_trees
    >>> write_trees(["(S (NN dogs)   (VBP bark))", None], sys.stdout)
    (S (NN dogs) (VBP bark))
    (())
    """
    write_lines(target, _lines(trees))


def _lines(trees: Iterable[Any]) -> Iterator[str]:
    for at, tree in enumerate(trees):
        try:
            yield NO_PARSE if tree is None else ParseTree.of(tree).to_brackets()
        except (TypeError, ValueError) as error:
            raise type(error)(f"trees[{at}]: {error}") from error
