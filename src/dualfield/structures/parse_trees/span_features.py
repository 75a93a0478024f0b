"""What makes features of spans: texts with macros, also those that fit most treebanks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from dualfield.data.anchored_rows import AnchoredRows, segment_anchors
from dualfield.data.anchored_texts import SEGMENT, AnchoredTexts, RowFunction, read_row_features
from dualfield.data.input_forms import listed, read_sentences, unwrapped
from dualfield.data.word_shapes import word_shape

__all__ = ["default_texts"]

DEFAULT = "default"

# Words and what is known of them (t: a tag, or the shape of the word) at the ends of a span and around it.
_ENDS = (
    "bias",
    "%n",
    "%x[first]",
    "%x[last]",
    "%x[first-1]",
    "%x[last+1]",
    "%x[first]/%n",
    "%x[first]/%x[last]",
    "%x[first,1]",
    "%x[last,1]",
    "%x[first-1,1]",
    "%x[last+1,1]",
    "%x[first,1]/%x[last,1]",
    "%x[first-1,1]/%x[first,1]",
    "%x[last,1]/%x[last+1,1]",
    "%x[first-1,1]/%x[last+1,1]",
    "%x[first-1,1]/%x[first,1]/%x[last,1]/%x[last+1,1]",
    "%x[first,1]/%x[first+1,1]/%n",
    "%x[last-1,1]/%x[last,1]/%n",
    "%x[last+1,1]/%x[last+2,1]",
    "%x[first-2,1]/%x[first-1,1]",
    "%x[all,1]",
    "%b[1]",
)
_SUFFIXES = ("%x[first,2]", "%x[last,2]", "%x[first-1,2]", "%x[last+1,2]", "%x[first,2]/%x[last,2]")


def default_texts(n_columns: int) -> list[str]:
    """Return the texts that make features of spans unless others are given.

    Column 0 is the word in lower case; column 1 its tag. Words without tags have their shape there, and their last
    three letters in column 2.

    Parameters
    ----------
    n_columns : int
        Columns of tokens: 1 for words alone.

    Returns
    -------
    list of str
        Texts with macros.

    Examples
    --------
    >>> from dualfield.structures.parse_trees.span_features import default_texts
    >>> default_texts(2)[:3]
    ['bias', '%n', '%x[first]']
    """
    return [*_ENDS, *(_SUFFIXES if n_columns == 1 else ())]


def read_features(owner: str, features: Any) -> AnchoredTexts | RowFunction | None:
    """Return what users pass as texts or as a function; None stands for the default."""
    if isinstance(features, str) and features == DEFAULT:
        return None
    if features is None:
        raise ValueError(f"The 'span_features' parameter of {owner} must be 'default', texts or a function. Got None.")
    return read_row_features(features, SEGMENT, f"The 'span_features' parameter of {owner}")


def width_of(sentences: Sequence[Any]) -> int | None:
    """Return the number of columns of tokens; None if there is no token."""
    token = next((token for sentence in sentences for token in sentence), None)
    return None if token is None else 1 if isinstance(token, str) else len(token)


def span_rows(sentences: Sequence[Any], features: Any, n_columns: int | None) -> AnchoredRows:
    """Return the rows of all spans of sentences; features of None stand for the default."""
    anchors, offsets = segment_anchors([len(one) for one in sentences])
    if features is None:
        width = n_columns or 1
        texts = AnchoredTexts(tuple(default_texts(width)), SEGMENT, "span_features")
        return AnchoredRows(expanded_tokens(sentences, width), anchors, texts, offsets=offsets)
    return AnchoredRows(sentences, anchors, features, offsets=offsets)


def expanded_tokens(sentences: Sequence[Any], width: int) -> list[list[tuple[str, ...]]]:
    """Return the columns that the default texts are about."""
    if width == 1:
        made: dict[str, tuple[str, ...]] = {}
        for sentence in sentences:
            for token in sentence:
                word = token if isinstance(token, str) else token[0]
                if word not in made:
                    made[word] = (word.lower(), word_shape(word), word.lower()[-3:])
        return [[made[token if isinstance(token, str) else token[0]] for token in one] for one in sentences]
    return [[(token[0].lower(), token[1]) for token in one] for one in sentences]


def taken_apart(X: Any, lengths: ArrayLike | None) -> tuple[list[Any] | None, Any]:
    """Return the tokens of sentences, or rows of features of their spans, or both."""
    X = unwrapped(X)  # sentences may be in an array of objects
    if lengths is not None or hasattr(X, "shape"):
        return None, X
    sentences = listed(X)
    if sentences and all(_is_matrix(one) for one in sentences):
        return None, sentences
    if sentences and all(isinstance(one, tuple) and len(one) == 2 and _is_matrix(one[1]) for one in sentences):
        return read_sentences([one[0] for one in sentences]), [one[1] for one in sentences]
    return read_sentences(sentences), None


def _is_matrix(one: Any) -> bool:
    return len(getattr(one, "shape", ())) == 2
