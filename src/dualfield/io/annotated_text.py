"""Text with tokens and spans: places of characters on one side, places of tokens on the other."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dualfield.data.span_labels import Span, span_labels, spans
from dualfield.io.plain_text import Token, split_tokens

__all__ = ["AnnotatedText"]

CharacterSpan = tuple[int, int, str]

ALIGNMENTS = ("strict", "expand")


@dataclass(frozen=True)
class AnnotatedText:
    """A text, its tokens, and the spans of tokens that are marked in it.

    Parameters
    ----------
    text : str
        The text.
    tokens : sequence of (token, start, end)
        The tokens from left to right, each with the places of its first character, and of the one behind its last.
    spans : sequence of (type, start, stop), default=()
        The spans, whose tokens are ``start`` to ``stop - 1``, as :func:`dualfield.metrics.spans` returns them.

    Examples
    --------
    >>> from dualfield.io import AnnotatedText
    >>> text = AnnotatedText.align("Anna lives in New York.", [(0, 4, "PER"), (14, 22, "LOC")])
    >>> text.labels()
    ['B-PER', 'O', 'O', 'B-LOC', 'I-LOC', 'O']
    >>> text.character_spans
    [(0, 4, 'PER'), (14, 22, 'LOC')]
    """

    text: str
    tokens: Sequence[Token]
    spans: Sequence[Span] = ()

    @classmethod
    def align(
        cls,
        text: str,
        spans: Iterable[CharacterSpan],
        tokens: Sequence[Token] | None = None,
        *,
        alignment: str = "strict",
    ) -> AnnotatedText:
        """Find the tokens of spans that are given by places of characters.

        Parameters
        ----------
        text : str
            The text.
        spans : iterable of (start, end, type)
            The places of the first character of a span, and of the one behind its last.
        tokens : sequence of (token, start, end), default=None
            The tokens. None: those of :func:`split_tokens`.
        alignment : {"strict", "expand"}, default="strict"
            What becomes of a span that begins or ends inside a token: it is refused, or it gets the whole token.

        Returns
        -------
        AnnotatedText
            The text.

        Raises
        ------
        ValueError
            If a span does not fit the text or its tokens, or if two spans overlap.

        Examples
        --------
        >>> from dualfield.io import AnnotatedText
        >>> AnnotatedText.align("in New York", [(3, 9, "LOC")], alignment="expand").spans
        [('LOC', 1, 3)]
        """
        if alignment not in ALIGNMENTS:
            raise ValueError(f"The 'alignment' parameter must be one of {ALIGNMENTS}. Got {alignment!r} instead.")
        given = split_tokens(text) if tokens is None else list(tokens)
        return cls(text, given, _token_spans(text, sorted(spans), given, alignment))

    @classmethod
    def from_tokens(cls, tokens: Sequence[str], labels: Sequence[str] | None = None) -> AnnotatedText:
        """Join tokens by spaces.

        Parameters
        ----------
        tokens : sequence of str
            The tokens.
        labels : sequence of str, default=None
            Their labels, in any scheme. None: there are no spans.

        Returns
        -------
        AnnotatedText
            The text.

        Examples
        --------
        >>> from dualfield.io import AnnotatedText
        >>> AnnotatedText.from_tokens(["New", "York"], ["B-LOC", "I-LOC"])
        AnnotatedText(text='New York', tokens=[('New', 0, 3), ('York', 4, 8)], spans=[('LOC', 0, 2)])
        """
        placed, at = [], 0
        for token in tokens:
            placed.append((token, at, at + len(token)))
            at += len(token) + 1
        return cls(" ".join(tokens), placed, [] if labels is None else spans(labels))

    @property
    def character_spans(self) -> list[CharacterSpan]:
        """The spans as (start, end, type), by places of characters."""
        return [(self.tokens[start][1], self.tokens[stop - 1][2], kind) for kind, start, stop in self.spans]

    def labels(self, scheme: str = "BIO") -> list[str]:
        """Return a label for each token.

        Parameters
        ----------
        scheme : {"BIO", "IOB1", "BIOES"}, default="BIO"
            How spans are marked.

        Returns
        -------
        list of str
            The labels.
        """
        return span_labels(self.spans, len(self.tokens), scheme)


def _shown(text: str, span: CharacterSpan) -> str:
    start, end, kind = span
    return f"{start}-{end} {text[start:end][:40]!r} ({kind})"


def _token_spans(text: str, spans: list[CharacterSpan], tokens: list[Token], alignment: str) -> list[Span]:
    """Return the spans, which are sorted, by places of tokens."""
    begins, ends = [begin for _, begin, _ in tokens], [end for _, _, end in tokens]
    found: list[Span] = []
    for at, span in enumerate(spans):
        start, end, kind = span
        if not 0 <= start < end <= len(text):
            raise ValueError(
                f"the span {start}-{end} ({kind}) must have a character, and lie within the {len(text)} characters of "
                "the text."
            )
        first, stop = bisect_right(ends, start), bisect_left(begins, end)
        if at and (start < spans[at - 1][1] or first < found[-1][2]):
            both = f"{_shown(text, spans[at - 1])} and {_shown(text, span)}"
            raise ValueError(f"the spans {both} overlap; a token can have one label only.")
        if first >= stop:
            raise ValueError(f"the span {_shown(text, span)} covers no token{_nearest(tokens, stop - 1, first + 1)}.")
        if alignment == "strict" and (begins[first], ends[stop - 1]) != (start, end):
            raise ValueError(_misaligned(text, span, tokens, first, stop))
        found.append((kind, first, stop))
    return found


def _misaligned(text: str, span: CharacterSpan, tokens: Sequence[Token], first: int, stop: int) -> str:
    begin, end = tokens[first][1], tokens[stop - 1][2]
    faults = []
    if begin != span[0]:
        faults.append("begins inside a token" if begin < span[0] else "begins between tokens")
    if end != span[1]:
        faults.append("ends inside a token" if end > span[1] else "ends between tokens")
    return (
        f"the span {_shown(text, span)} {' and '.join(faults)}{_nearest(tokens, first, stop)}. Correct the span, give "
        "the tokens of the text in \"tokens\", or take whole tokens by alignment='expand'."
    )


def _nearest(tokens: Sequence[Token], first: int, stop: int) -> str:
    chosen = list(dict.fromkeys([*tokens[max(first, 0) : stop][:1], *tokens[max(first, 0) : stop][-1:]]))
    return "; nearest: " * bool(chosen) + ", ".join(f"{token!r} {start}-{end}" for token, start, end in chosen)
