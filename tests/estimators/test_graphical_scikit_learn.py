"""scikit-learn's own checks of conditional graphical models of outputs of fixed size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from dualfield import ConditionalGraphicalModel
from tests.estimators.test_graphical_fixed import data

# Sequences are lists of matrices, which none of the checks has: they are left to tests of our own. With a graph of
# fixed size X is a matrix, and y has a column for each node; the checks hand over one column.
MODELS = [
    ConditionalGraphicalModel("tree"),
    ConditionalGraphicalModel("tree", loss="squared"),
    ConditionalGraphicalModel("tree", loss="log"),
    ConditionalGraphicalModel([(0,)], base_estimator=LogisticRegression(), response_method="decision_function"),
]


def exceptions(model: Any) -> dict[str, str]:
    """Checks that must fail, with the reason."""
    found = {
        "check_estimators_nan_inf": "Its labels are 0.0 and 1.0; labels of nodes are str, int or bool. See below for "
        "what the check is about."
    }
    if hasattr(model, "predict_proba"):
        for kind in ("array", "matrix"):
            found[f"check_estimator_sparse_{kind}"] = (
                "It takes what has predict_proba for a classifier of single points, with a row of probabilities for "
                "each; here there is one for each node. Sparse input is compared with dense elsewhere."
            )
    return found


@parametrize_with_checks(MODELS, expected_failed_checks=exceptions)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_must_be_finite(value: float, shared: bool) -> None:
    X, y = data(shared=shared)
    model = ConditionalGraphicalModel("tree", loss="squared").fit(X, y)
    X.flat[1] = value
    for ask in (model.predict, lambda X: model.fit(X, y)):
        with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
            ask(X)


def test_columns_keep_their_names() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas, which gives features names, is not installed")
    X, y = data()
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = ConditionalGraphicalModel("tree", loss="squared").fit(frame, pandas.DataFrame(y))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c"]])
    model.fit(data(shared=False)[0], y)
    assert not hasattr(model, "feature_names_in_")
    model.set_params(graph=0).fit([X], [y[:, 0]])
    assert not hasattr(model, "feature_names_in_")
