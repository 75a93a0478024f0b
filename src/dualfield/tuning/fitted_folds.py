"""Models of folds, each trained on the others: for what is asked about examples that a model has not seen."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Any

import numpy as np

from dualfield.data.impossible import warn_impossible
from dualfield.tuning.search import Examples, read_once

__all__ = ["fitted_folds"]


def fitted_folds(estimator: Any, X: Any, y: Any, cv: Any) -> Iterator[tuple[Any, Any, list[Any]]]:
    """Yield for each fold a model that was trained on the others, and the examples of the fold with their labels.

    Examples are sequences, trees, or rows of a matrix; they are read once. Those with a label that the others do not
    have are left out, as are those that training leaves out, and with a warning sentences that the grammar of the
    others cannot parse. Of a precomputed kernel matrix, columns are those of the examples that the model was trained
    on.

    Parameters
    ----------
    estimator : estimator
        Cloned.
    X, y : sequence
        Examples and their labels.
    cv : int, splitter or iterable
        Folds as in scikit-learn: of examples with one label each, an int makes folds with equal shares of labels.

    Yields
    ------
    tuple
        The model, and `X` and `y` of the fold.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.tuning.fitted_folds import fitted_folds
    >>> X, y = [[["a"], ["b"]], [["b"]]] * 3, [["x", "y"], ["y"]] * 3
    >>> [labels for _, _, labels in fitted_folds(CRF(), X, y, 3)][0]
    [['x', 'y'], ['y']]
    """
    from sklearn.base import clone
    from sklearn.model_selection import check_cv
    from sklearn.utils import get_tags

    X, y = (values if hasattr(values, "__len__") else list(values) for values in (X, y))
    base = clone(estimator)
    is_kernel_matrix = get_tags(base).input_tags.pairwise
    data = Examples(given=X, read=X, y=y, weights=None)
    if hasattr(base, "_fit_data"):
        data, base = read_once(base.set_params(warm_start=False), X, y)
    places = np.zeros(len(y))  # of which scikit-learn wants the number; it is slow with what is no array
    targets = np.asarray(y) if _has_one_label_each(estimator) else None
    for train, test in check_cv(cv, targets, classifier=targets is not None).split(places, targets):
        train, test = np.asarray(train), np.asarray(test)  # splits of one's own may be lists
        part = data.take(train)
        points = np.asarray(part.read)[:, train] if is_kernel_matrix else part.read
        model = copy(base).fit(points, part.y)
        rest, known = data.take(test), set(model.classes_)
        each, impossible = _labels_of_trees(model, rest.read, rest.y) or ([_labels(one) for one in rest.y], {})
        warn_impossible({int(test[i]): reason for i, reason in impossible.items()}, len(test))
        fits = [own is not None and known.issuperset(own) and i not in impossible for i, own in enumerate(each)]
        at = test[fits].tolist()
        if at:
            kept = data.take(np.array(at, dtype=np.intp))
            yield model, np.asarray(kept.read)[:, train] if is_kernel_matrix else kept.read, kept.y


def _has_one_label_each(estimator: Any) -> bool:
    """Whether examples are single nodes, as of classifiers; it takes a fitted model to tell by its structure."""
    from sklearn.base import is_classifier

    model = getattr(estimator, "model_", None)
    own = (model, getattr(model, "structure", None))
    return is_classifier(estimator) or any(getattr(one, "is_flat", False) for one in own)


def _labels_of_trees(model: Any, X: Any, y: Any) -> tuple[list[Any], dict[int, str]] | None:
    """Return the labels of the candidates of each example, and why some have no tree; None where y labels nodes.

    Examples that training leaves out have None for their labels.
    """
    structure: Any = getattr(model, "structure_", None)
    if getattr(structure, "empty_label", None) is None:
        return None
    scores = model.decision_scores(X)
    read = scores.shape.read_training(y)
    names, rows = read.labels.classes, np.split(read.codes, scores.shape.offsets[1:-1])
    left_out = np.zeros(len(rows), dtype=bool) if read.left_out is None else read.left_out
    reasons = structure.why_impossible(scores, n_jobs=model.n_jobs) if structure.counts_impossible else {}
    each = (names[np.unique(own[own >= 0])].tolist() for own in rows)
    return [None if out else own for own, out in zip(each, left_out, strict=True)], reasons


def _labels(one: Any) -> Any:
    """Return the labels of an example: a sequence, those of an image, or one label."""
    if isinstance(one, np.ndarray):
        return one.ravel().tolist()
    return one if isinstance(one, list | tuple) else [one]
