"""Phrase-structure trees as values: labels over words, brackets, and the trees of NLTK."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from dualfield.data.parse_trees.brackets import BracketReader, checked_name, escaped_word, nested

__all__ = ["Constituent", "ParseTree"]

_T = TypeVar("_T")


class Constituent(NamedTuple):
    """A labelled part of a sentence: words `start` to ``stop - 1``.

    Attributes
    ----------
    label : str
        Its label.
    start, stop : int
        Its first word, and the one behind the last.

    Examples
    --------
    >>> from dualfield.data import ParseTree
    >>> ParseTree.from_brackets("(S (NP (DT a) (NN dog)) (VP (VBZ barks)))").constituents()[1]
    Constituent(label='NP', start=0, stop=2)
    """

    label: str
    start: int
    stop: int


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class ParseTree:
    """A phrase-structure tree. Every node has a label; a leaf has a word, and its label is the tag of the word.

    Parameters
    ----------
    label : str
        The label; of a leaf its tag. Empty where a bracket or a word has none.
    children : sequence of ParseTree, default=()
        The parts, from left to right; none for a leaf.
    word : str, default=None
        The word of a leaf; None for all other nodes.

    Examples
    --------
    >>> from dualfield.data import ParseTree
    >>> tree = ParseTree.from_brackets("(S (NP (DT a) (NN dog)) (VP (VBZ barks)))")
    >>> tree.words(), tree.tags()
    (['a', 'dog', 'barks'], ['DT', 'NN', 'VBZ'])
    >>> print(ParseTree("NP", [ParseTree("NN", word="dog")]))
    (NP (NN dog))
    """

    label: str
    children: tuple[ParseTree, ...] = ()
    word: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "children", tuple(self.children))
        if (self.word is None) != bool(self.children):
            raise ValueError(
                f"A ParseTree has children, or is a leaf and has a word. Got the label {self.label!r} with "
                f"{len(self.children)} children and the word {self.word!r}."
            )

    @property
    def is_leaf(self) -> bool:
        """Whether the tree is one word."""
        return self.word is not None

    def fold(self, leaf: Callable[[ParseTree], _T], node: Callable[[ParseTree, list[_T]], _T]) -> _T:
        """Compute a value of the tree from those of its parts, from the leaves up; deep trees need no deep recursion.

        Parameters
        ----------
        leaf : callable
            From a leaf to its value.
        node : callable
            From a node and the values of its children to its value.

        Returns
        -------
        object
            The value of the whole tree.

        Examples
        --------
        >>> from dualfield.data import ParseTree
        >>> tree = ParseTree.from_brackets("(S (NP (DT a) (NN dog)) (VP (VBZ barks)))")
        >>> tree.fold(lambda leaf: 0, lambda node, depths: 1 + max(depths))
        2
        """
        values: list[list[_T]] = [[]]
        stack: list[tuple[ParseTree, bool]] = [(self, False)]
        while stack:
            tree, is_done = stack.pop()
            if is_done:
                value = node(tree, values.pop())
            elif tree.is_leaf:
                value = leaf(tree)
            else:
                stack.append((tree, True))
                stack.extend((child, False) for child in reversed(tree.children))
                values.append([])
                continue
            values[-1].append(value)
        return values[0][0]

    def walk(self) -> Iterator[tuple[ParseTree, int, int]]:
        """Yield every node with its first word and the one behind the last: a node before its parts.

        Yields
        ------
        tree : ParseTree
            The node.
        start, stop : int
            Its words.

        Examples
        --------
        >>> from dualfield.data import ParseTree
        >>> [(node.label, start, stop) for node, start, stop in ParseTree.from_brackets("(NP (DT a) (NN dog))").walk()]
        [('NP', 0, 2), ('DT', 0, 1), ('NN', 1, 2)]
        """
        nodes: list[tuple[ParseTree, int]] = []
        at, stack = 0, [self]
        while stack:
            tree = stack.pop()
            nodes.append((tree, at))
            at += tree.is_leaf
            stack.extend(reversed(tree.children))
        ends: list[int] = [0] * len(nodes)
        behind: list[int] = []  # the places of subtrees that no parent has taken yet, the leftmost on top
        for place in range(len(nodes) - 1, -1, -1):
            tree, start = nodes[place]
            if tree.is_leaf:
                ends[place] = start + 1
            else:
                for _ in tree.children:
                    ends[place] = ends[behind.pop()]
            behind.append(place)
        for (tree, start), stop in zip(nodes, ends, strict=True):
            yield tree, start, stop

    def words(self) -> list[str]:
        """Return the words from left to right.

        Returns
        -------
        list of str
            The words.
        """
        return [tree.word for tree, _, _ in self.walk() if tree.word is not None]

    def tags(self) -> list[str]:
        """Return the tags of the words from left to right; empty where a word has none.

        Returns
        -------
        list of str
            The tags.
        """
        return [tree.label for tree, _, _ in self.walk() if tree.is_leaf]

    def tokens(self) -> list[tuple[str, str]]:
        """Return words with their tags, as models take them.

        Returns
        -------
        list of (word, tag)
            The tokens.

        Examples
        --------
        >>> from dualfield.data import ParseTree
        >>> ParseTree.from_brackets("(NP (DT a) (NN dog))").tokens()
        [('a', 'DT'), ('dog', 'NN')]
        """
        return [(tree.word, tree.label) for tree, _, _ in self.walk() if tree.word is not None]

    def constituents(self) -> list[Constituent]:
        """Return what each node but the leaves covers: a node before its parts, and parts from left to right.

        Returns
        -------
        list of Constituent
            Labels with their words.

        Examples
        --------
        >>> from dualfield.data import ParseTree
        >>> [tuple(one) for one in ParseTree.from_brackets("(S (VP (VB go)))").constituents()]
        [('S', 0, 1), ('VP', 0, 1)]
        """
        return [Constituent(tree.label, start, stop) for tree, start, stop in self.walk() if not tree.is_leaf]

    @classmethod
    def from_constituents(cls, constituents: Sequence[Any], words: Sequence[str], tags: Sequence[str]) -> ParseTree:
        """Build the tree that has given constituents.

        Parameters
        ----------
        constituents : sequence of (label, start, stop)
            Of the same words, the outer one comes first. One of them covers all words.
        words, tags : sequence of str
            One for each leaf; a tag may be empty.

        Returns
        -------
        ParseTree
            The tree.

        Raises
        ------
        ValueError
            If two constituents cross, or none covers all words.

        Examples
        --------
        >>> from dualfield.data import ParseTree
        >>> print(ParseTree.from_constituents([("S", 0, 2), ("VP", 1, 2)], ["dogs", "bark"], ["NNS", "VBP"]))
        (S (NNS dogs) (VP (VBP bark)))
        """
        leaves = [cls(tag, (), word) for tag, word in zip(tags, words, strict=True)]
        found: ParseTree = nested(constituents, leaves, cls)
        return found

    @classmethod
    def from_brackets(cls, text: str) -> ParseTree:
        """Read a tree from brackets: ``(label part part)``, or ``(tag word)`` for a leaf.

        Words without a tag of their own, as in ``(NP the dog)``, become leaves with an empty tag.

        Parameters
        ----------
        text : str
            One tree, on one line or several.

        Returns
        -------
        ParseTree
            The tree.

        Raises
        ------
        ValueError
            If it is not one tree. The message says what is unbalanced.

        See Also
        --------
        dualfield.io.read_trees : For files.

        Examples
        --------
        >>> from dualfield.data import ParseTree
        >>> ParseTree.from_brackets("(NP (DT a) (NN dog)").words()
        Traceback (most recent call last):
            ...
        ValueError: text, line 1: the bracket '(NP' that opens in line 1 is not closed.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a str. Got {type(text).__name__} instead.")
        found = [tree for _, tree in BracketReader(cls, "text").trees(enumerate(text.splitlines(), start=1))]
        if len(found) != 1 or not isinstance(found[0], cls):
            raise ValueError(f"text must be one tree in brackets. Got {len(found)}: {text[:80]!r}.")
        return found[0]

    def to_brackets(self) -> str:
        """Return the tree as brackets on one line; round brackets in words become ``-LRB-`` and ``-RRB-``.

        Returns
        -------
        str
            Such as ``(S (NP (DT a) (NN dog)) (VP (VBZ barks)))``.

        Raises
        ------
        ValueError
            If a label or a word has blanks, or a label has brackets.

        Examples
        --------
        >>> from dualfield.data import ParseTree
        >>> ParseTree("NP", [ParseTree("DT", word="a"), ParseTree("", word="dog")]).to_brackets()
        '(NP (DT a) dog)'
        """

        def leaf(tree: ParseTree) -> str:
            word = escaped_word(tree.word or "")
            return f"({checked_name(tree.label)} {word})" if tree.label else word

        def node(tree: ParseTree, parts: list[str]) -> str:
            label = checked_name(tree.label)
            return f"({label} {' '.join(parts)})" if label else f"({' '.join(parts)})"

        return self.fold(leaf, node)

    @classmethod
    def of(cls, tree: Any) -> ParseTree:
        """Return a tree that may be given in any form.

        Parameters
        ----------
        tree : ParseTree, str or nltk.Tree
            The tree, its brackets, or a tree of NLTK.

        Returns
        -------
        ParseTree
            The tree.

        Examples
        --------
        >>> from dualfield.data import ParseTree
        >>> ParseTree.of("(NP (NN dog))").words()
        ['dog']
        """
        if isinstance(tree, cls):
            return tree
        return cls.from_brackets(tree) if isinstance(tree, str) else cls._from_nltk(tree)

    @classmethod
    def _from_nltk(cls, tree: Any) -> ParseTree:
        """Read any object with a method ``label`` whose items are trees or words."""
        if not (callable(getattr(tree, "label", None)) and hasattr(tree, "__iter__")):
            what = "a ParseTree, brackets, or a tree of NLTK"
            raise TypeError(f"tree must be {what}. Got {type(tree).__name__} instead.")
        children = list(tree)
        if len(children) == 1 and isinstance(children[0], str):
            return cls(str(tree.label()), (), children[0])
        read = (cls("", (), one) if isinstance(one, str) else cls._from_nltk(one) for one in children)
        return cls(str(tree.label()), tuple(read))

    def to_nltk(self, kind: Any = None) -> Any:
        """Return the tree as one of NLTK.

        Parameters
        ----------
        kind : callable, default=None
            The class, or a function of a label and a list of children; None: ``nltk.Tree``, which must be installed.

        Returns
        -------
        nltk.Tree
            The same tree.

        Examples
        --------
        >>> from dualfield.data import ParseTree
        >>> ParseTree.from_brackets("(NP (NN dog))").to_nltk(lambda label, children: [label, *children])
        ['NP', ['NN', 'dog']]
        """
        if kind is None:
            try:
                import nltk  # type: ignore[import-not-found,import-untyped,unused-ignore]
            except ImportError as error:
                raise ImportError(f"to_nltk needs NLTK: pip install nltk. ({error})") from error
            kind = nltk.Tree

        def leaf(one: ParseTree) -> Any:
            return kind(one.label, [one.word]) if one.label else one.word

        return self.fold(leaf, lambda one, parts: kind(one.label, parts))

    def _key(self) -> tuple[Any, ...]:
        return tuple((tree.label, tree.word, start, stop) for tree, start, stop in self.walk())

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, ParseTree) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return self.to_brackets()

    def __repr__(self) -> str:
        return f"ParseTree.from_brackets({self.to_brackets()!r})"
