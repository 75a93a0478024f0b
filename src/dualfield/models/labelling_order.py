"""Which examples to label next: those that a model knows least about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.data.checks import check_choice

__all__ = ["LabellingOrder", "labelling_order", "row_entropies"]

BY = ("entropy", "least_confidence", "bald")
PER = ("token", "sentence")
NO_DRAWS = (
    "by='bald' compares several models, which this {owner} does not have. Fit a BaggedTagger, or a BayesianCRF with "
    "prediction='draws', or rank by 'entropy', which was as good in our measurements."
)


class LabellingOrder(NamedTuple):
    """Examples in the order in which their labels would teach a model most, by its own account.

    Attributes
    ----------
    order : int array of shape (n_examples,)
        Places of the examples, the one that it knows least about first; of equal ones the first. Those without any
        labelling, such as sentences that a grammar cannot parse, are last.
    values : array of shape (n_examples,)
        By which they are ordered, in the order of the input; larger is less certain. NaN: it has no labelling.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.models.labelling_order import LabellingOrder
    >>> LabellingOrder(np.array([1, 0]), np.array([0.1, 0.7])).order
    array([1, 0])
    """

    order: NDArray[np.int64]
    values: Floats


def row_entropies(rows: Floats) -> Floats:
    """Return the entropy of each row of probabilities, in nats.

    Parameters
    ----------
    rows : array of shape (n, n_labels)
        Rows sum to 1.

    Returns
    -------
    array of shape (n,)
        - sum p log p.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.models.labelling_order import row_entropies
    >>> row_entropies(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4)
    array([0.6931, 0.    ])
    """
    return np.asarray(-(rows * np.log(np.where(rows > 0.0, rows, 1.0))).sum(axis=1) + 0.0)


def labelling_order(
    owner: str,
    by: str,
    per: str,
    rows: Any,
    log_best: Floats | None = None,
    draws: Sequence[Sequence[Any]] | None = None,
    n_tokens: NDArray[np.int64] | None = None,
) -> LabellingOrder:
    """Order examples by how little a model knows about their labels.

    Parameters
    ----------
    owner : str
        Who was asked, for errors.
    by : {"entropy", "least_confidence", "bald"}
        The sum of the entropies of the labels; minus the log-probability of the best labelling; or the entropies of the
        mean minus the mean of the entropies over several models.
    per : {"token", "sentence"}
        Divided by the number of tokens, or not.
    rows : sequence of arrays of shape (T_i, n_labels)
        Probabilities of labels.
    log_best : array of shape (n_examples,), default=None
        Log-probability of the best labelling; None: the sum of those of the best labels.
    draws : sequence of the like of rows, default=None
        Those of several models.
    n_tokens : int array of shape (n_examples,), default=None
        Number of tokens; None: there is a row for each.

    Returns
    -------
    LabellingOrder
        The order and the values.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.models.labelling_order import labelling_order
    >>> rows = [np.array([[0.9, 0.1], [0.9, 0.1]]), np.array([[0.6, 0.4]])]
    >>> labelling_order("CRF", "entropy", "token", rows).order
    array([1, 0])
    """
    check_choice(owner + ".rank_for_labelling", "by", by, BY)
    check_choice(owner + ".rank_for_labelling", "per", per, PER)
    if by == "bald" and draws is None:
        raise ValueError(NO_DRAWS.format(owner=owner))
    lengths = np.array([int(np.prod(np.shape(one)[:-1])) for one in rows], dtype=np.int64)  # images have two axes
    flat = _in_a_row(rows)
    if by == "least_confidence":
        totals = -(_summed(np.log(flat.max(axis=1, initial=1e-300)), lengths) if log_best is None else log_best)
    else:
        known = row_entropies(flat)
        if by == "bald":
            assert draws is not None
            known = known - sum(row_entropies(_in_a_row(one)) for one in draws) / len(draws)
        totals = _summed(known, lengths)
    values = totals / np.maximum(lengths if n_tokens is None else n_tokens, 1) if per == "token" else totals
    return LabellingOrder(np.argsort(-values, kind="stable"), np.asarray(values))


def _in_a_row(rows: Any) -> Floats:
    tables = [np.reshape(one, (-1, np.shape(one)[-1])) for one in rows]
    return np.concatenate(tables) if tables else np.zeros((0, 1))


def _summed(values: Floats, lengths: NDArray[np.int64]) -> Floats:
    owner = np.repeat(np.arange(len(lengths)), lengths)
    return np.bincount(owner, values, minlength=len(lengths)).astype(np.float64)
