"""Cross-validated predictions of sequences."""

from __future__ import annotations

from typing import Any


def cross_val_predict(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    method: str = "predict",
    groups: Any = None,
    n_jobs: int | None = None,
) -> list[Any]:
    """Predict every sequence by a model that was trained on the others.

    scikit-learn's function of the same name puts predictions into one array, which sequences of different lengths do
    not fit.

    Parameters
    ----------
    estimator : estimator of sequences, such as :class:`dualfield.CRF`
        Cloned for every fold.
    X, y : list of sequences, and of their labels
        The data.
    cv : int, splitter or iterable, default=None
        Folds as in scikit-learn; None: five, without shuffling. Every sequence must be in exactly one test fold.
    method : str, default="predict"
        What is asked: "predict", "predict_proba", "predict_marginals", "predict_spans", and so on.
    groups : sequence, default=None
        For splitters by groups, such as documents.
    n_jobs : int, default=None
        Folds at the same time, as in scikit-learn.

    Returns
    -------
    list
        An answer for each sequence, in the order of `X`.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.metrics import cross_val_predict
    >>> X, y = [[["a"], ["b"]], [["b"]]] * 5, [["x", "y"], ["y"]] * 5
    >>> cross_val_predict(CRF(C=10.0), X, y) == y
    True
    >>> [one.shape for one in cross_val_predict(CRF(), X, y, method="predict_proba")][:2]
    [(2, 2), (1, 2)]
    """
    from joblib import Parallel, delayed  # slow to import, and the other scores do without
    from sklearn.base import clone
    from sklearn.model_selection import check_cv

    inputs, labels = list(X), list(y)
    if len(inputs) != len(labels):
        raise ValueError(f"X and y must have as many sequences. Got {len(inputs)} and {len(labels)}.")
    if not hasattr(estimator, method) and not hasattr(type(estimator), method):
        raise ValueError(f"The 'method' parameter must be a method of {type(estimator).__name__}. Got {method!r}.")
    folds = list(check_cv(cv).split(inputs, None, groups))
    owners = sorted(int(at) for _, test in folds for at in test)
    if owners != list(range(len(inputs))):
        raise ValueError("cv must put every sequence into exactly one test fold.")

    def answers(train: Any, test: Any) -> list[Any]:
        model = clone(estimator).fit([inputs[at] for at in train], [labels[at] for at in train])
        return list(getattr(model, method)([inputs[at] for at in test]))

    found: list[Any] = [None] * len(inputs)
    every = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(answers)(*fold) for fold in folds)
    for (_, test), answer in zip(folds, every, strict=True):
        for at, one in zip(test, answer, strict=True):
            found[int(at)] = one
    return found
