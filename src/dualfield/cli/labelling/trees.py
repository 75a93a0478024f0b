"""Trees for sentences: in brackets, in columns of words and tags, or in plain text."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from dualfield.cli.labelling.labellings import Style
from dualfield.cli.models import LoadedModel
from dualfield.cli.reading.data_files import DELIMITERS
from dualfield.cli.reading.line_groups import Numbered, counted_from
from dualfield.cli.reading.tree_data import is_trees, tell_unparsed, tokens_of, tree_columns
from dualfield.data import ParseTree, clean_tree

NO_TREE = "(())"
_SLASH = "/"

Sentences = list[tuple[int, list[Any]]]  # the line where each begins, and its tokens


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
                    sentences = self._text(group) if self.style.is_text else self._columns(group)
                yield self.lines(name, sentences)
            return
        from dualfield.io.bracket_files import iter_trees

        numbered = list(itertools.chain.from_iterable(groups))
        with counted_from(1, name):
            trees = list(iter_trees([text for _, text in numbered]))
        cleaned = ((numbered[at - 1][0], clean_tree(tree)) for at, tree in trees if tree is not None)
        yield self.lines(
            name, [(number, tokens_of(tree, self._wanted)) for number, tree in cleaned if tree is not None]
        )

    @property
    def _wanted(self) -> tuple[int, ...]:
        """The columns that the model was trained on."""
        known = self.loaded.tree_columns
        chosen = known if self.style.columns is None else tree_columns(self.style.columns)
        if chosen != known:
            said = "words alone" if len(known) == 1 else "words and tags"
            raise click.UsageError(f"{self.loaded.path} was trained on {said}; --columns asks for others.")
        return known

    def _text(self, group: Numbered) -> Sentences:
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
                found.append((number, tokens))
        return found

    def _columns(self, group: Numbered) -> Sentences:
        """Read a token in each line: the word, and its tag in the next column."""
        found: Sentences = [(group[0][0], [])]
        for number, text in group:
            fields = text.split(DELIMITERS[self.style.delimiter])
            if not text.strip():
                found.append((number + 1, []))
            elif len(fields) < len(self._wanted):
                raise ValueError(
                    f"lines, line {number - group[0][0] + 1}: has 1 column; expected a word and its tag, which "
                    f"{self.loaded.path} was trained on."
                )
            else:
                found[-1][1].append(fields[0] if len(self._wanted) == 1 else (fields[0], fields[1]))
        return [(number, sentence) for number, sentence in found if sentence]

    def lines(self, name: str, sentences: Sentences) -> list[str]:
        """Return what is written for sentences: (()) for those without a tree, which are told."""
        if not sentences:
            return []
        model, style = self.loaded.model, self.style
        trees, reasons = self.loaded.parse([sentence for _, sentence in sentences])
        tell_unparsed({f"{name}:{sentences[i][0]}": reason for i, reason in reasons.items()})
        if not style.k_best and not style.marginals:
            return [brackets(tree) for tree in trees]
        X = [sentence for i, (_, sentence) in enumerate(sentences) if i not in reasons]
        if style.k_best:
            found = iter(model.k_best(X, style.k_best) if X else [])
            made: list[str] = []
            for tree in trees:
                ranked = [(None, 0.0)] if tree is None else next(found)
                made += [f"{rank} {p:.6f} {brackets(one)}" for rank, (one, p) in enumerate(ranked, start=1)]
                made.append("")
            return made
        rows = iter(model.predict_proba(X) if X else [])
        return [self._with_chances(brackets(tree), () if tree is None else next(rows)) for tree in trees]

    def _with_chances(self, tree: str, rows: Any) -> str:
        """Return JSON: the tree, and its brackets with their probabilities."""
        from dualfield.data.parse_trees.tree_cleaning import joined_constituents

        if tree == NO_TREE:
            return json.dumps({"tree": tree, "brackets": []})
        names = {name: code for code, name in enumerate(self.loaded.names)}
        read = ParseTree.from_brackets(tree)
        n, found = len(read.words()), []
        for label, start, stop in joined_constituents(read):
            row = rows[start * n - start * (start - 1) // 2 + stop - start - 1]
            found.append([start, stop, label, round(float(row[names[label]]), 6) if label in names else None])
        return json.dumps({"tree": tree, "brackets": found}, ensure_ascii=False)


def brackets(tree: Any) -> str:
    """Return a tree as brackets; None as brackets with nothing in them."""
    return NO_TREE if tree is None else ParseTree.of(tree).to_brackets()
