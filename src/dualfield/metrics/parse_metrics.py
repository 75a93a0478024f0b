"""Scores of phrase-structure trees as evalb computes them with the parameters of Collins (1997)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from dualfield.data.parse_trees.trees import ParseTree
from dualfield.data.tables import Columns, Tabular
from dualfield.metrics.span_metrics import SpanScore

# evalb's file COLLINS.prm, with the other names that treebanks have for the outermost bracket.
_UNCOUNTED = frozenset(["TOP", "ROOT", "S1", "", "-NONE-", ",", ":", "``", "''", "."])
_EMPTY = "-NONE-"
_SAME = {"PRT": "ADVP"}
_CUTOFF = 40


@dataclass(frozen=True, repr=False)
class ParseScores(Tabular):
    """Scores of predicted trees; made by :func:`parse_scores`, printed as evalb prints its summary.

    Attributes
    ----------
    overall : SpanScore
        All brackets counted together.
    labels : dict from str to SpanScore
        The brackets of each label.
    n_sentences : int
        Number of sentences.
    n_unparsed : int
        Those without a predicted tree, whose brackets count as not found.
    n_complete : int
        Sentences all of whose brackets are right.
    n_crossing : int
        Predicted brackets that cross a true one.
    crossing_at_most : tuple of int
        Sentences with no, with at most one, and with at most two crossing brackets.
    n_words, n_right_tags : int
        Words that are not punctuation, and those with the right tag, of the sentences with a tree.
    short : ParseScores or None
        The same for sentences up to the cut-off length.
    cutoff : int
        The cut-off length.

    Examples
    --------
    >>> from dualfield.metrics import parse_scores
    >>> scores = parse_scores(["(S (NP (NN a)) (VP (VB b)))"], ["(S (NP (NN a)) (NP (NN b)))"])
    >>> scores.overall.recall, scores.tagging_accuracy, scores.labels["NP"].precision
    (0.666..., 0.5, 0.5)
    """

    overall: SpanScore
    labels: Mapping[str, SpanScore]
    _: KW_ONLY
    n_sentences: int
    n_unparsed: int
    n_complete: int
    n_crossing: int
    crossing_at_most: tuple[int, int, int]
    n_words: int
    n_right_tags: int
    short: ParseScores | None = None
    cutoff: int = _CUTOFF

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall of brackets."""
        return self.overall.f1

    @property
    def complete_match(self) -> float:
        """Share of sentences all of whose brackets are right."""
        return _share(self.n_complete, self.n_sentences)

    @property
    def average_crossing(self) -> float:
        """Predicted brackets for each sentence that cross a true one."""
        return _share(self.n_crossing, self.n_sentences)

    @property
    def tagging_accuracy(self) -> float:
        """Share of words with the right tag."""
        return _share(self.n_right_tags, self.n_words)

    def _columns(self) -> Columns:
        rows = {"all": self.overall, **self.labels}
        names = ("precision", "recall", "f1", "found", "support")
        return {"label": list(rows)} | {name: [getattr(one, name) for one in rows.values()] for name in names}

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        parts = ["-- All --", *self._lines()]
        if self.short is not None:
            parts += ["", f"-- len<={self.cutoff} --", *self.short._lines()]
        return "\n".join(parts)

    def _lines(self) -> list[str]:
        total = self.overall
        none, _, two = (100 * _share(count, self.n_sentences) for count in self.crossing_at_most)
        return [
            f"Number of sentence        = {self.n_sentences:6d}",
            f"Sentences without a parse = {self.n_unparsed:6d}",
            f"Bracketing Recall         = {100 * total.recall:6.2f}",
            f"Bracketing Precision      = {100 * total.precision:6.2f}",
            f"Bracketing FMeasure       = {100 * total.f1:6.2f}",
            f"Complete match            = {100 * self.complete_match:6.2f}",
            f"Average crossing          = {self.average_crossing:6.2f}",
            f"No crossing               = {none:6.2f}",
            f"2 or less crossing        = {two:6.2f}",
            f"Tagging accuracy          = {100 * self.tagging_accuracy:6.2f}",
        ]


@dataclass(frozen=True, kw_only=True)
class _Sentence:
    """What is counted in one sentence."""

    length: int
    true: Counter[tuple[str, int, int]]
    is_parsed: bool = False
    found: Counter[tuple[str, int, int]] = field(default_factory=Counter)
    n_crossing: int = 0
    n_words: int = 0
    n_right_tags: int = 0


def parse_scores(y_true: Any, y_pred: Any, *, cutoff: int = _CUTOFF) -> ParseScores:
    """Score predicted trees by evalb's rules.

    A bracket is right if a true one has the same words and the same label. Words whose tag is punctuation (``,`` ``:``
    ``.`` and quotes) or ``-NONE-`` are removed first, so that where they are attached does not count; brackets without
    any other word, and the outermost ``TOP`` or unlabelled one, are not counted. Function tags are cut off, and ADVP
    and PRT are the same. Unary chains are counted as often as they have brackets.

    Parameters
    ----------
    y_true : list of trees
        Each a :class:`dualfield.data.ParseTree`, a str of brackets, or a tree of NLTK.
    y_pred : list of trees or None
        The predicted trees of the same words; None, no tree found, counts as a tree without brackets, where evalb
        leaves the sentence out.
    cutoff : int, default=40
        Sentences of at most this length, punctuation included, are also scored apart.

    Returns
    -------
    ParseScores
        Precision, recall, complete matches, crossing brackets and right tags.

    Raises
    ------
    ValueError
        If two trees have different words; the message names the sentence.

    Examples
    --------
    >>> from dualfield.metrics import parse_scores
    >>> true = "(S (NP (DT a) (NN dog)) (VP (VBZ barks)) (. .))"
    >>> pred = "(S (NP (DT a)) (VP (NN dog) (VBZ barks) (. .)))"
    >>> scores = parse_scores([true, true], [pred, None])
    >>> scores.overall
    SpanScore(correct=1, found=3, support=6)
    >>> scores.n_crossing, scores.n_unparsed
    (1, 1)
    """
    true, pred = list(y_true), list(y_pred)
    if len(true) != len(pred):
        raise ValueError(f"y_pred must have as many trees as y_true. Got {len(pred)} and {len(true)}.")
    sentences = [_compared(i, one, other) for i, (one, other) in enumerate(zip(true, pred, strict=True))]
    short = _added([one for one in sentences if one.length <= cutoff], cutoff, None)
    return _added(sentences, cutoff, short)


def parse_f1_score(y_true: Any, y_pred: Any) -> float:
    """Return evalb's labelled F1: ``parse_scores(y_true, y_pred).overall.f1``.

    Parameters
    ----------
    y_true, y_pred
        As in :func:`parse_scores`.

    Returns
    -------
    float
        The F1 score, between 0 and 1.

    Examples
    --------
    >>> from dualfield.metrics import parse_f1_score
    >>> parse_f1_score(["(S (NP (NN a)) (VP (VB b)))"], ["(S (NP (NN a)) (NP (NN b)))"])
    0.666...
    """
    return parse_scores(y_true, y_pred).overall.f1


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _compared(i: int, true: Any, pred: Any) -> _Sentence:
    """Count what two trees of a sentence have in common."""
    gold = ParseTree.of(true)
    tokens = _without_empty(gold)
    kept = [tag not in _UNCOUNTED for _, tag in tokens]
    expected = _brackets(gold, kept)
    if pred is None:
        return _Sentence(length=len(tokens), true=Counter(expected))
    tree = ParseTree.of(pred)
    others = _without_empty(tree)
    words, found_words = ([word for word, _ in each] for each in (tokens, others))
    if words != found_words:
        at = next((t for t, (one, two) in enumerate(zip(words, found_words, strict=False)) if one != two), None)
        what = f"{len(others)} words instead of {len(words)}"
        if at is not None:
            what = f"{found_words[at]!r} instead of {words[at]!r}"
        raise ValueError(f"y_pred[{i}] must have the words of y_true[{i}]. It has {what}.")
    found = _brackets(tree, kept)
    crossing = sum(any(_cross(one, other) for other in expected) for one in found)
    tags = ((_SAME.get(one, one), _SAME.get(two, two)) for (_, one), (_, two) in zip(tokens, others, strict=True))
    right = sum(one == two for (one, two), is_kept in zip(tags, kept, strict=True) if is_kept)
    return _Sentence(
        length=len(tokens),
        true=Counter(expected),
        is_parsed=True,
        found=Counter(found),
        n_crossing=crossing,
        n_words=sum(kept),
        n_right_tags=right,
    )


def _without_empty(tree: ParseTree) -> list[tuple[str, str]]:
    """Return words and tags without empty elements."""
    return [token for token in tree.tokens() if token[1] != _EMPTY]


def _brackets(tree: ParseTree, kept: Sequence[bool]) -> list[tuple[str, int, int]]:
    """Return the brackets that are counted, over the words that are; kept: which ones, of those that are not empty."""
    place, flags = [0], iter(kept)
    for tag in tree.tags():
        place.append(place[-1] + (tag != _EMPTY and next(flags)))
    found = []
    for label, start, stop in tree.constituents():
        cut = label if label in _UNCOUNTED else label.replace("=", "-").partition("-")[0]
        if place[start] < place[stop] and cut not in _UNCOUNTED:
            found.append((_SAME.get(cut, cut), place[start], place[stop]))
    return found


def _cross(one: tuple[str, int, int], other: tuple[str, int, int]) -> bool:
    _, a, b = one
    _, c, d = other
    return a < c < b < d or c < a < d < b


def _added(sentences: list[_Sentence], cutoff: int, short: ParseScores | None) -> ParseScores:
    right: Counter[str] = Counter()
    found: Counter[str] = Counter()
    support: Counter[str] = Counter()
    n_complete = 0
    for one in sentences:
        both = one.true & one.found
        n_complete += one.is_parsed and both == one.true == one.found
        for counter, brackets in ((right, both), (found, one.found), (support, one.true)):
            for (label, _, _), count in brackets.items():
                counter[label] += count
    labels = {label: SpanScore(right[label], found[label], support[label]) for label in sorted(support | found)}
    none, one_, two = (sum(one.n_crossing <= most for one in sentences) for most in range(3))
    return ParseScores(
        SpanScore(right.total(), found.total(), support.total()),
        labels,
        n_sentences=len(sentences),
        n_unparsed=sum(not one.is_parsed for one in sentences),
        n_complete=n_complete,
        n_crossing=sum(one.n_crossing for one in sentences),
        crossing_at_most=(none, one_, two),
        n_words=sum(one.n_words for one in sentences),
        n_right_tags=sum(one.n_right_tags for one in sentences),
        short=short,
        cutoff=cutoff,
    )
