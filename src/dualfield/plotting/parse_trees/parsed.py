"""Sentences with trees that a model predicts, for displays: brackets or arcs, and their probabilities."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.labels import Labels
from dualfield.data.parse_trees.dependency_sentence import DependencySentence
from dualfield.data.parse_trees.heads import read_heads
from dualfield.data.parse_trees.tree_cleaning import joined_constituents
from dualfield.plotting.labels import label_list
from dualfield.structures import ArcShape, SpanShape
from dualfield.structures.parse_trees.arc_shape import arc_rows


@dataclass(frozen=True, eq=False, kw_only=True)
class Parsed:
    """What a model says of sentences, one entry for each.

    Attributes
    ----------
    are_arcs : bool
        Whether trees are heads of words; else brackets.
    words : list of lists of str
        The words.
    tags : list of lists of str, or of None
        Their tags.
    predicted : list
        Brackets (label, start, stop), or arcs (head, label) of all words.
    chances : list of arrays, or None
        The probability of each bracket or arc; None where the model has none.
    truth : list of lists or None, or None
        The true brackets or arcs, None where they are not known as a whole; None if no truth was given.
    trees, true_trees : list of ParseTree or None
        Of brackets, with tags; empty for arcs.
    """

    are_arcs: bool
    words: list[list[str]]
    tags: list[list[str] | None]
    predicted: list[list[Any]]
    chances: list[NDArray[np.float64]] | None
    truth: list[list[Any] | None] | None
    trees: list[Any]
    true_trees: list[Any]

    def shown(self, at: int) -> dict[str, Any]:
        """Return what a display shows of one sentence."""
        return {
            "words": self.words[at],
            "heads" if self.are_arcs else "brackets": self.predicted[at],
            "probabilities": None if self.chances is None else self.chances[at],
            "truth": None if self.truth is None else self.truth[at],
            "tags": self.tags[at],
        }


def is_parser(model: Any) -> bool:
    """Return whether a model predicts trees of sentences."""
    structure = getattr(model, "structure_", None)
    return getattr(structure, "empty_label", None) is not None and hasattr(model, "decision_scores")


def parsed(model: Any, X: Any, y: Any = None, words: Any = None) -> Parsed:
    """Predict the trees of sentences, and look up the probabilities of their brackets or arcs."""
    X = list(X)
    shape, codes = model.model_.best_codes(X)
    chances = None
    if hasattr(model, "predict_proba"):
        rows = np.concatenate([np.reshape(one, (-1, len(model.classes_))) for one in model.predict_proba(X)])
        chances = rows[np.arange(len(codes)), codes]
    given = None if words is None else [[str(word) for word in sentence] for sentence in words]
    if isinstance(shape, ArcShape):
        return _parsed_arcs(shape, model.labels_, codes, chances, X, y, given)
    if isinstance(shape, SpanShape):
        return _parsed_brackets(shape, model.labels_, codes, chances, X, y, given)
    raise TypeError(f"The model must predict trees of sentences. Its structure is {model.structure_!r:.100}.")


def _columns(sentence: Any, n: int) -> tuple[list[str], list[str] | None]:
    """Return the words of a sentence, or their numbers, and tags if it has any."""
    if isinstance(sentence, DependencySentence):
        sentence = sentence.tokens
    if isinstance(sentence, tuple) and len(sentence) == 2 and np.ndim(sentence[1]) == 2 and len(sentence[0]) == n:
        sentence = sentence[0]  # with rows of numbers
    tokens = label_list(sentence) if isinstance(sentence, (list, tuple)) else []
    rows: list[Any] = [(token,) if isinstance(token, str) else token for token in tokens]
    if len(rows) != n or not all(isinstance(row, (tuple, list)) and row and isinstance(row[0], str) for row in rows):
        return [str(at + 1) for at in range(n)], None
    return [str(row[0]) for row in rows], [str(row[1]) for row in rows] if all(len(row) > 1 for row in rows) else None


def _texts(X: Sequence[Any], n_words: Sequence[int], given: Any) -> tuple[list[Any], list[Any]]:
    columns = [_columns(sentence, n) for sentence, n in zip(X, n_words, strict=True)]
    for i, (words, n) in enumerate(zip(given or [], n_words, strict=False)):
        if len(words) != n:
            raise ValueError(f"tokens[{i}] has {len(words)} entries; X[{i}] has {n} words.")
    if given is not None and len(given) != len(n_words):
        raise ValueError(f"tokens has {len(given)} sentences; X has {len(n_words)}.")
    return [words for words, _ in columns] if given is None else given, [tags for _, tags in columns]


def _parsed_arcs(
    shape: ArcShape, labels: Labels, codes: NDArray[np.int32], chances: Any, X: list[Any], y: Any, given: Any
) -> Parsed:
    n_words = shape.n_words.tolist()
    words, tags = _texts(X, n_words, given)
    decoded = replace(shape, sentences=None).decode(labels, codes)
    read = read_heads(decoded, n_words, "predicted")
    children = np.arange(len(read.heads)) - np.repeat(read.offsets[:-1], n_words)
    rows = arc_rows(np.repeat(shape.offsets[:-1], n_words), np.repeat(n_words, n_words), read.heads, children)
    cuts = list(itertools.pairwise(read.offsets.tolist()))
    truth: list[Any] | None = None
    if y is not None:
        truth = [one if all(head >= 0 for head, _ in one) else None for one in _arcs(read_heads(y, n_words))]
    return Parsed(
        are_arcs=True,
        words=words,
        tags=tags,
        predicted=_arcs(read),
        chances=None if chances is None else [chances[rows[start:stop]] for start, stop in cuts],
        truth=truth,
        trees=[],
        true_trees=[],
    )


def _arcs(read: Any) -> list[list[tuple[int, str]]]:
    labels = read.labels or [None] * len(read.heads)
    pairs = [(head, label or "") for head, label in zip(read.heads.tolist(), labels, strict=True)]
    return [pairs[start:stop] for start, stop in itertools.pairwise(read.offsets.tolist())]


def _parsed_brackets(
    shape: SpanShape, labels: Labels, codes: NDArray[np.int32], chances: Any, X: list[Any], y: Any, given: Any
) -> Parsed:
    n_words = shape.n_words.tolist()
    words, tags = _texts(X, n_words, given)
    tokens = shape.tokens
    if tokens is None:
        tokens = [[(word, "") for word in sentence] for sentence in words]
    whole = replace(shape, tokens=tokens, output="tree", forms=[])
    trees = whole.decode(labels, codes)
    predicted = [_brackets(tree) for tree in trees]
    found: list[NDArray[np.float64]] = []
    for i, brackets in enumerate(predicted if chances is not None else ()):
        _, starts, stops = zip(*brackets, strict=True) if brackets else ((), (), ())
        found.append(np.asarray(chances[whole.rows(i, np.array(starts, int), np.array(stops, int))]))
    true_trees = [] if y is None else read_true_trees(whole, y)
    shown = [None if tree is None else tree.tags() for tree in trees]
    return Parsed(
        are_arcs=False,
        words=words,
        tags=[one if mine is None or given is not None else mine for one, mine in zip(tags, shown, strict=True)],
        predicted=predicted,
        chances=None if chances is None else found,
        truth=None if y is None else [None if tree is None else _brackets(tree) for tree in true_trees],
        trees=trees,
        true_trees=true_trees,
    )


def read_true_trees(shape: SpanShape, y: Any) -> list[Any]:
    """Return true trees with the words and tags of sentences; None where they are not known as a whole."""
    whole = replace(shape, output="tree", forms=[])
    read = whole.read_labels(list(y))
    trees = whole.decode(read.labels, np.maximum(read.codes, 0))
    for i, (start, stop) in enumerate(itertools.pairwise(whole.offsets.tolist())):
        if (read.codes[start:stop] < 0).any():
            trees[i] = None
    return trees


def _brackets(tree: Any) -> list[tuple[str, int, int]]:
    """Return the brackets of a tree, unary chains as one, without what has no label."""
    if tree is None or tree.is_leaf:
        return []
    return [(one.label, one.start, one.stop) for one in joined_constituents(tree) if one.label]
