"""Features of the spans of a grammar's sentences: of words, and of longer spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.anchored_rows import AnchoredRows, segment_anchors
from dualfield.data.anchored_texts import SEGMENT, AnchoredTexts, read_row_features
from dualfield.data.attributes import Vocabulary
from dualfield.data.batch import Batch
from dualfield.data.records import Record
from dualfield.data.shapes import rows_of_examples
from dualfield.structures.parse_trees.span_features import DEFAULT, expanded_tokens, span_rows, width_of

# Of a word: column 0 is the word in lower case, 1 its shape, 2 its last three letters.
_WORD_TEXTS = (
    "bias",
    "%x[first]",
    "%x[first-1]",
    "%x[first+1]",
    "%x[first,1]",
    "%x[first,2]",
    "%x[first-1,2]",
    "%x[first+1,2]",
    "%x[first-1,2]/%x[first,2]",
)

Features = str | Sequence[str] | Callable[[Any, int, int], Any] | None


class GrammarFeatures:
    """What makes features of spans, and of words.

    Parameters
    ----------
    spans, words : "default", list of str, callable or None
        As `span_features` and `word_features` of :class:`~dualfield.structures.Grammar`.
    """

    def __init__(self, spans: Features, words: Features) -> None:
        self.spans, self.words = spans, words
        self._spans, self._words = _read("span_features", spans), _read("word_features", words)

    @property
    def are_none(self) -> bool:
        """Whether there are none."""
        return self.spans is None and self.words is None

    def rows(self, sentences: Sequence[Any]) -> AnchoredRows:
        """Return the rows of all spans."""
        if self.words is None:
            return span_rows(sentences, self._spans, width_of(sentences))
        return _WordsAndSpans(sentences, self._word_rows(sentences), self._span_rows(sentences))

    def _word_rows(self, sentences: Sequence[Any]) -> AnchoredRows:
        words, offsets = segment_anchors([len(one) for one in sentences], 1)
        features: Any = self._words
        if features is None:
            sentences, features = expanded_tokens(sentences, 1), _WORD_TEXTS
        if not callable(features):
            texts = features.texts if isinstance(features, AnchoredTexts) else features
            features = [f"w:{text}" for text in texts]  # which are no columns of spans
        return AnchoredRows(sentences, words, features, offsets=offsets)

    def _span_rows(self, sentences: Sequence[Any]) -> AnchoredRows | None:
        return None if self.spans is None else span_rows(sentences, self._spans, width_of(sentences))

    def record(self) -> dict[str, Any]:
        """Return the record of the features."""
        return {
            "span_features": _written("span_features", self.spans),
            "word_features": _written("word_features", self.words),
        }


class _WordsAndSpans(AnchoredRows):
    """Rows of spans that have features of words where they are words, and of spans, or none, where they are longer."""

    def __init__(self, sentences: Sequence[Any], words: AnchoredRows, spans: AnchoredRows | None) -> None:
        self.anchors, self.offsets = segment_anchors([len(one) for one in sentences])
        self._words, self._spans = words, spans
        self._is_word = self.anchors[:, 0] == self.anchors[:, 1]

    def build(
        self,
        *,
        vocabulary: Vocabulary | None = None,
        grow: bool | NDArray[np.bool_] = False,
        n_columns: int | None = None,
        name: str = "X",
        n_jobs: int = 1,
    ) -> Batch:
        """Lay out the rows, those of words and those of longer spans together."""
        if n_columns is not None:
            raise ValueError(f"{name} has rows with attributes; the training data had {n_columns} columns of numbers.")
        grow = True if vocabulary is None and isinstance(grow, bool) else grow
        of_words, of_spans = (grow, grow) if isinstance(grow, bool) else (grow[self._is_word], grow & ~self._is_word)
        words = self._words.build(vocabulary=vocabulary, grow=of_words, n_jobs=n_jobs)
        if self._spans is None:
            return self._joined(words, None, words.vocabulary)
        if isinstance(of_spans, bool):
            of_spans = ~self._is_word & of_spans
        spans = self._spans.build(vocabulary=words.vocabulary, grow=of_spans, n_jobs=n_jobs)
        return self._joined(words, spans, spans.vocabulary)

    def _joined(self, words: Batch, spans: Batch | None, vocabulary: Vocabulary | None) -> Batch:
        if vocabulary is None or words.indptr is None or words.indices is None:
            raise ValueError("Functions of word_features must return attributes.")
        indptr, indices, nothing = words.indptr, words.indices, words.n_nodes
        values = [words.values]
        order = np.where(self._is_word, np.cumsum(self._is_word) - 1, nothing)
        if spans is None:
            indptr = np.append(indptr, indptr[-1])  # an empty row
        else:
            assert spans.indptr is not None
            assert spans.indices is not None
            indptr = np.concatenate([indptr, indptr[-1] + spans.indptr[1:]])
            indices = np.concatenate([indices, spans.indices])
            values.append(spans.values)
            order = np.where(self._is_word, order, nothing + np.arange(len(order)))
        rows, entries = rows_of_examples(indptr, order)
        weights = None
        if any(one is not None for one in values):
            sizes = [words.indices.size, indices.size - words.indices.size]
            weights = np.concatenate([np.ones(n) if v is None else v for n, v in zip(sizes, values, strict=False)])
        return Batch(
            self.offsets,
            len(vocabulary),
            indptr=rows,
            indices=indices[entries],
            values=None if weights is None else weights[entries],
            vocabulary=vocabulary,
            n_unknown=words.n_unknown,
        )


def _read(name: str, features: Features) -> Any:
    if features is None or (isinstance(features, str) and features == DEFAULT):
        return None
    return read_row_features(features, SEGMENT, f"The {name!r} parameter of Grammar")


def _written(name: str, features: Features) -> Any:
    if callable(features):
        raise ValueError(
            f"A Grammar whose {name} is a function cannot be saved: a model file holds no code. Use texts with macros, "
            "or pass features of spans with X."
        )
    return None if features is None else [features] if isinstance(features, str) else list(features)


def read_features_record(record: Record) -> dict[str, Any]:
    """Return what the record of a grammar says of features."""
    found: dict[str, Any] = {}
    for name in ("span_features", "word_features"):
        found[name] = record.items(name, str) if record.has(name) else None
        if found[name] == [DEFAULT]:
            found[name] = DEFAULT
    with record.source.at_fault():
        GrammarFeatures(**{name.removesuffix("_features") + "s": features for name, features in found.items()})
    return found
