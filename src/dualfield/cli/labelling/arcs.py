"""Trees for sentences: CoNLL-U with heads and labels in it, or columns with the head behind them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from dualfield.cli.labelling.labellings import Style, behind
from dualfield.cli.models import LoadedModel
from dualfield.cli.reading.arc_data import is_conllu
from dualfield.cli.reading.data_files import DELIMITERS
from dualfield.cli.reading.line_groups import Numbered, counted_from
from dualfield.data import DependencySentence

_MISC = 9  # the last column of CoNLL-U


class ArcTagger:
    """Parses sentences, whose lines come in groups."""

    def __init__(self, loaded: LoadedModel, name: str, style: Style) -> None:
        self.loaded, self.name, self.style = loaded, name, style
        self._is_conllu: bool | None = None

    def tagged(self, groups: Iterator[Numbered]) -> Iterator[list[str]]:
        """Yield what is to be written for each group of lines."""
        from dualfield.io import read_conllu

        for group in groups:
            first = next((text for _, text in group if text.strip()), None)
            if first is None:
                continue
            if self._is_conllu is None:
                self._is_conllu = is_conllu(first)
            if self._is_conllu:
                with counted_from(group[0][0], self.name):
                    sentences = read_conllu([text for _, text in group])
                yield [line for one in self._parsed(sentences) for line in _lines(one)]
            else:
                yield list(self._columns(group))

    def _columns(self, group: Numbered) -> Iterator[str]:
        """Yield the lines of sentences in columns, with heads and labels behind them."""
        for is_full, run in groupby(group, lambda line: bool(line[1].strip())):
            lines = list(run)
            if not is_full:
                yield from ("" for _ in lines)
                continue
            sentence = DependencySentence.from_tokens([self._token(*line) for line in lines])
            for rank, found in enumerate(self._parsed([sentence])):
                yield from [""] * (rank > 0)
                yield from found.comments
                for (_, text), word in zip(lines, found.words, strict=True):
                    label = [word[7]] if self.loaded.tagger.classes_.tolist() != ["", "arc"] else []
                    chance = [word[_MISC].rpartition("=")[2]] if self.style.marginals else []
                    yield behind(text, [word[6], *label, *chance])

    def _token(self, number: int, text: str) -> tuple[str, ...]:
        """Return the columns of a token, without the true head where there is one."""
        row = tuple(text.split(DELIMITERS[self.style.delimiter]))
        trained = self.loaded.columns
        width = len(row) - int(self.style.labelled is True) if trained is None else len(trained.features)
        if len(row) not in (width, width + 1):
            raise ValueError(f"{self.name}, line {number}: has {len(row)} columns; expected {width}, or the head too.")
        return row[:width]

    def _parsed(self, sentences: list[DependencySentence]) -> Iterator[DependencySentence]:
        """Yield the best tree of each sentence, or several, each under its rank and probability."""
        from dualfield.structures import head_probabilities

        model = self.loaded.model
        chances: list[Any] = [None] * len(sentences)
        if self.style.marginals:
            chances = [head_probabilities(rows) for rows in model.predict_proba(sentences)]
        if self.style.k_best:
            ranked = model.k_best(sentences, self.style.k_best)
        else:
            ranked = [[(tree, None)] for tree in model.predict(sentences)]
        for alternatives, heads in zip(ranked, chances, strict=True):
            for rank, (tree, probability) in enumerate(alternatives, start=1):
                said = () if probability is None else (f"# rank {rank}, probability {probability:.6f}",)
                found = tree if heads is None else _with_chances(tree, heads)
                yield DependencySentence(found.rows, (*found.comments, *said))


def _with_chances(tree: DependencySentence, heads: Any) -> DependencySentence:
    """Write the probability of each head into the last column."""
    rows, word = [], 0
    for row in tree.rows:
        if row[0].isdecimal():
            chance = f"Probability={heads[word, int(row[6])]:.6f}"
            row = (*row[:_MISC], chance if row[_MISC] == "_" else f"{row[_MISC]}|{chance}")
            word += 1
        rows.append(row)
    return DependencySentence(tuple(rows), tree.comments)


def _lines(sentence: DependencySentence) -> Iterator[str]:
    yield from sentence.comments
    yield from ("\t".join(row) for row in sentence.rows)
    yield ""
