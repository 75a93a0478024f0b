"""Classes of words by their looks: what an HMM sees of a word that it has met too rarely."""

from __future__ import annotations

# English endings that tell parts of speech, the longest first: the first that fits is the class.
ENDINGS = ("tion", "ment", "ness", "able", "ing", "ous", "ive", "ity", "est", "ed", "ly", "er", "al", "s")
_SHORTEST_STEM = 2


def word_shape(word: str) -> str:
    """Return the class of a word.

    Digits come first, then signs without any letter, then hyphens, then capitals, then the ending of what is written
    small.

    Parameters
    ----------
    word : str
        A word.

    Returns
    -------
    str
        One of some 20 names, such as ``number``, ``Capital`` or ``-ing``.

    Examples
    --------
    >>> from dualfield.data.word_shapes import word_shape
    >>> [word_shape(word) for word in ("1,250.5", "B-52", "--", "well-known", "NATO", "Vinken", "opening", "xu")]
    ['number', 'digits', 'signs', 'hyphen', 'CAPITALS', 'Capital', '-ing', 'small']
    """
    if any(letter.isdigit() for letter in word):
        return "digits" if any(letter.isalpha() for letter in word) else "number"
    if not any(letter.isalpha() for letter in word):
        return "signs"
    if "-" in word:
        return "hyphen"
    if word[0].isupper():
        if len(word) > 1 and word.isupper():
            return "CAPITALS"
        return "Capital-s" if word.endswith("s") else "Capital"
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) >= len(ending) + _SHORTEST_STEM:
            return f"-{ending}"
    return "small"
