"""How good the probabilities of labels are: log-loss and Brier score."""

from __future__ import annotations

from typing import Any

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.metrics.calibration import checked_marginals
from dualfield.metrics.sequences import as_lists

_LEAST = float(np.finfo(np.float64).tiny)  # of a probability, so that one mistake does not make the loss infinite


def token_log_loss(y_true: Any, marginals: Any, classes: Any) -> float:
    r"""Return the mean of :math:`-\log p(y_t \mid x)` over all tokens.

    Parameters
    ----------
    y_true : list of label sequences, or labels in a row
        The true labels, all of them among the classes.
    marginals : list of arrays of shape (T_i, n_classes), or array of shape (n, n_classes)
        The probability of each label at each token.
    classes : sequence of length n_classes
        The labels of the columns.

    Returns
    -------
    float
        The loss, at least 0; lower is better.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.metrics import token_log_loss
    >>> round(token_log_loss([["a", "b"]], [np.array([[0.9, 0.1], [0.2, 0.8]])], ["a", "b"]), 4)
    0.1643
    """
    rows, codes = _rows(y_true, marginals, classes)
    return float(-np.log(np.maximum(rows[np.arange(len(codes)), codes], _LEAST)).mean())


def token_brier_score(y_true: Any, marginals: Any, classes: Any) -> float:
    r"""Return the mean over all tokens of :math:`\sum_k (p_k - [y_t = k])^2`.

    Parameters
    ----------
    y_true, marginals, classes
        As in :func:`token_log_loss`.

    Returns
    -------
    float
        Between 0 and 2; lower is better.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.metrics import token_brier_score
    >>> round(token_brier_score([["a", "b"]], [np.array([[0.9, 0.1], [0.2, 0.8]])], ["a", "b"]), 4)
    0.05
    """
    rows, codes = _rows(y_true, marginals, classes)
    wanted = np.zeros_like(rows)
    wanted[np.arange(len(codes)), codes] = 1.0
    return float(((rows - wanted) ** 2).sum(axis=1).mean())


def _rows(y_true: Any, marginals: Any, classes: Any) -> tuple[Floats, Any]:
    """Return probabilities and codes of the true labels of all tokens, one after another."""
    if isinstance(marginals, np.ndarray) and marginals.ndim == 2:  # single nodes
        y_true, marginals = [list(y_true)], [marginals]
    true, names = as_lists(y_true, "y_true"), list(np.asarray(classes).tolist())
    if len(true) != len(marginals):
        raise ValueError(f"y_true has {len(true)} sequences; marginals has {len(marginals)}.")
    code = {name: at for at, name in enumerate(names)}
    for i, labels in enumerate(true):
        for t, label in enumerate(labels):
            if label not in code:
                raise ValueError(f"y_true[{i}][{t}] is {label!r}, which is not among the classes: {names}.")
    parts = [checked_marginals(marginals[i], labels, len(names), i) for i, labels in enumerate(true)]
    rows = np.concatenate([np.zeros((0, len(names))), *parts])
    if not len(rows):
        raise ValueError("y_true must have at least one label. Got none.")
    return rows, np.array([code[label] for labels in true for label in labels])
