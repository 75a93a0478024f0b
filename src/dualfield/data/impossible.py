"""Examples without any labelling: what is said of them."""

from __future__ import annotations

from collections.abc import Mapping

from dualfield.data.user_warnings import warn_user

__all__ = ["ImpossibleWarning", "impossible_message", "warn_impossible"]

_MOST = 5


class ImpossibleWarning(UserWarning):
    """Some examples have no labelling at all, such as sentences that a grammar cannot parse.

    The message says how many they are, and for the first ones why.

    Examples
    --------
    >>> import warnings
    >>> from dualfield.estimators import ImpossibleWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", ImpossibleWarning)  # where None says enough
    """


def impossible_message(reasons: Mapping[int, str], n_examples: int, names: Mapping[int, str] | None = None) -> str:
    """Say which examples have no labelling, and why.

    Parameters
    ----------
    reasons : mapping from int to str
        For each of them, as :meth:`dualfield.structures.Structure.why_impossible` returns them.
    n_examples : int
        How many examples there are.
    names : mapping from int to str, default=None
        What examples are called; None: by their number.

    Returns
    -------
    str
        The first ones with their reasons, and how many there are.

    Examples
    --------
    >>> from dualfield.data.impossible import impossible_message
    >>> impossible_message({3: "the grammar has no parse."}, 9)
    '1 of 9 examples has no allowed labelling. Example 3: the grammar has no parse.'
    """
    shown = [f"{(names or {}).get(i, f'Example {i}')}: {reason}" for i, reason in list(reasons.items())[:_MOST]]
    verb = "has" if len(reasons) == 1 else "have"
    more = [f"And {len(reasons) - _MOST:,} more."] if len(reasons) > _MOST else []
    return " ".join([f"{len(reasons):,} of {n_examples:,} examples {verb} no allowed labelling.", *shown, *more])


def warn_impossible(reasons: Mapping[int, str], n_examples: int) -> None:
    """Warn of examples that have no labelling, if there are any, at the line outside this package that asked for them.

    Parameters
    ----------
    reasons, n_examples
        As in :func:`impossible_message`.

    Examples
    --------
    >>> from dualfield.data.impossible import warn_impossible
    >>> warn_impossible({}, 9)
    """
    if reasons:
        warn_user(impossible_message(reasons, n_examples), ImpossibleWarning)
