"""Trees for sentences: in brackets, in columns of words and tags, or in plain text."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from dualfield.cli.labelling.labellings import Style
from dualfield.cli.models import LoadedModel
from dualfield.cli.reading.data_files import DELIMITERS
from dualfield.cli.reading.line_groups import Numbered, counted_from
from dualfield.cli.reading.tree_data import is_trees, tokens_of, tree_columns
from dualfield.data import ParseTree, clean_tree

_SLASH = "/"


@dataclass(frozen=True, eq=False)
class TreeTagger:
    """Writes a tree for each sentence.

    Attributes
    ----------
    loaded : LoadedModel
        The model.
    style : Style
        What is written besides the best tree.
    """

    loaded: LoadedModel
    style: Style

    def tagged(self, name: str, begin: str, groups: Iterator[Numbered]) -> Iterator[list[str]]:
        """Yield a line for each sentence: those of a file of trees when all of it is read."""
        if self.style.is_text or not is_trees(begin):
            for group in groups:
                with counted_from(group[0][0], name):
                    yield self.lines(self._text(group) if self.style.is_text else self._columns(group, name))
            return
        from dualfield.io.bracket_files import iter_trees

        numbered = list(itertools.chain.from_iterable(groups))
        with counted_from(1, name):
            trees = [clean_tree(tree) for _, tree in iter_trees([text for _, text in numbered]) if tree is not None]
        yield self.lines([tokens_of(tree, self._wanted) for tree in trees if tree is not None])

    @property
    def _wanted(self) -> tuple[int, ...]:
        """The columns that the model was trained on."""
        known = self.loaded.tree_columns
        chosen = known if self.style.columns is None else tree_columns(self.style.columns)
        if chosen != known:
            said = "words alone" if len(known) == 1 else "words and tags"
            raise click.UsageError(f"{self.loaded.path} was trained on {said}; --columns asks for others.")
        return known

    def _text(self, group: Numbered) -> list[list[Any]]:
        """Read tokens with blanks between them, for tagged ones such as dog/NN."""
        found = []
        for number, text in group:
            tokens: list[Any] = text.split()
            if len(self._wanted) == 2:
                for at, token in enumerate(tokens):
                    word, slash, tag = token.rpartition(_SLASH)
                    if not slash or not word or not tag:
                        raise ValueError(
                            f"lines, line {number - group[0][0] + 1}: {token!r} has no tag; expected such as dog/NN: "
                            f"{self.loaded.path} was trained on words and tags."
                        )
                    tokens[at] = (word, tag)
            if tokens:
                found.append(tokens)
        return found

    def _columns(self, group: Numbered, name: str) -> list[list[Any]]:
        """Read a token in each line: the word, and its tag in the next column."""
        found: list[list[Any]] = [[]]
        for number, text in group:
            fields = text.split(DELIMITERS[self.style.delimiter])
            if not text.strip():
                found.append([])
            elif len(fields) < len(self._wanted):
                raise ValueError(
                    f"lines, line {number - group[0][0] + 1}: has 1 column; expected a word and its tag, which "
                    f"{self.loaded.path} was trained on."
                )
            else:
                found[-1].append(fields[0] if len(self._wanted) == 1 else (fields[0], fields[1]))
        return [sentence for sentence in found if sentence]

    def lines(self, X: Sequence[Any]) -> list[str]:
        """Return what is written for sentences."""
        if not X:
            return []
        model, style = self.loaded.model, self.style
        if style.k_best:
            made: list[str] = []
            for ranked in model.k_best(X, style.k_best):
                made += [f"{rank} {p:.6f} {brackets(tree)}" for rank, (tree, p) in enumerate(ranked, start=1)]
                made.append("")
            return made
        trees = [brackets(tree) for tree in model.predict(X)]
        if not style.marginals:
            return trees
        rows = model.predict_proba(X)
        return [self._with_chances(tree, own) for tree, own in zip(trees, rows, strict=True)]

    def _with_chances(self, tree: str, rows: Any) -> str:
        """Return JSON: the tree, and its brackets with their probabilities."""
        from dualfield.data.tree_cleaning import joined_constituents

        names = {name: code for code, name in enumerate(self.loaded.names)}
        read = ParseTree.from_brackets(tree)
        n, found = len(read.words()), []
        for label, start, stop in joined_constituents(read):
            row = rows[start * n - start * (start - 1) // 2 + stop - start - 1]
            found.append([start, stop, label, round(float(row[names[label]]), 6) if label in names else None])
        return json.dumps({"tree": tree, "brackets": found}, ensure_ascii=False)


def brackets(tree: Any) -> str:
    """Return a tree as brackets."""
    return ParseTree.of(tree).to_brackets()
