"""What DiscriminativeBayesNet refuses, and what it says then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dualfield import DiscriminativeBayesNet
from dualfield.solvers import CuttingPlane
from tests.estimators.test_bayes_net_optimum import LOOPY, categorical, table

OWNER = "DiscriminativeBayesNet"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("structure", "tree", r"must be 'naive_bayes', 'tan', a list of \(child, parents\) or a directed graph"),
        ("structure", 7, f"The 'structure' parameter of {OWNER} must be"),
        ("structure", [(0, ["class"], 1)], r"must have pairs .* Got structure\[0\] = \(0, \['class'\], 1\)"),
        ("structure", [("height", ["class"])], "names 'height', which is no column of X: .* nor 'class'"),
        ("structure", [(0, ["class"]), (1, [4])], "names 4, which is no column of X"),
        ("structure", [(0, [True])], "names True, which is no column"),
        ("structure", [(0, ["class"]), (0, [1])], "must list a child once, with all its parents. Got 0 twice"),
        ("structure", [(0, [1])], "must connect 'class' with a column"),
        ("structure", [(0, ["class", 1]), (1, [2]), (2, [0])], "must have no cycle. Got 0 -> 2 -> 1 -> 0 instead"),
        ("structure", [("class", [0]), (0, ["class"])], "must have no cycle. Got 0 -> 'class' -> 0 instead"),
        ("shared", [[0, "class"]], r"The table of 0 has shape \(3, 3\), that of 'class' has \(3,\)"),
        ("shared", "ab", f"The 'shared' parameter of {OWNER} must be None, a list of groups"),
        ("shared", [[0, 1], [1, 2]], f"The 'shared' parameter of {OWNER} must name 1 once"),
        ("shared", [[0, "b"]], f"The 'shared' parameter of {OWNER} names 'b', which is no column"),
        ("hidden", [0], "hidden is for tables: with y, the class is hidden"),
        ("eta", -1.0, rf"The 'eta' parameter of {OWNER} must be a float in \[0, inf\). Got -1.0 instead."),
        ("eta", None, "The 'eta' parameter"),
        ("prior", "counts", f"The 'prior' parameter of {OWNER} must be tables by child, a list of tables or one of"),
        ("prior", 3.0, "The 'prior' parameter"),
        (
            "prior",
            {0: [[1.0] * 3] * 3},
            "must have a table for each variable. Got none for 1",
        ),
        ("prior", {0: [1.0, 2.0]}, r"must have a table of shape \(3, 3\) for 0: .* Got shape \(2,\)"),
        ("prior", {"z": [1.0, 2.0]}, "names 'z', which is no variable"),
        ("prior", {0: "ab"}, "must have numbers for 0"),
        ("prior", {0: [[-1.0] * 3] * 3}, "must have finite numbers of at least 0 for 0"),
        ("smoothing", -0.1, "The 'smoothing' parameter"),
        ("smoothing", 0.0, "With eta > 0 every entry of the reference must be above 0: .* Use smoothing > 0, or eta=0"),
        ("floor", 0.0, r"The 'floor' parameter of DiscriminativeBayesNet must be a float in \(0, inf\)"),
        ("floor", 1.5, r"must be a float in \(0, 1\). Got 1.5 instead"),
        ("loss", "zero", "The 'loss' parameter"),
        ("loss", None, "The 'loss' parameter"),
        ("loss", [[0.0, 1.0], [1.0, 0.0]], r"of shape \(3, 3\) with .* Got shape \(2, 2\)"),
        ("loss", np.ones((3, 3)), "with zeros on the diagonal"),
        ("loss", [["a", "b"]], "must be 'hamming' or an array"),
        ("categories", "all", "The 'categories' parameter"),
        ("categories", [[0, 1]], "must have a list for each of 4 columns. Got 1 instead"),
        ("categories", [[0, 0], [1], [1], [1]], "must list distinct values for column 0"),
        ("unknown", "mass", "The 'unknown' parameter"),
        ("max_table", 8, r"The table of 0 given its 1 parents would have 9 entries, more than max_table=8"),
        ("solver", "newton", "The 'solver' parameter"),
        ("solver", CuttingPlane(), "The 'solver' parameter"),
        ("tol", 0.0, "The 'tol' parameter"),
        ("max_iter", 0, "The 'max_iter' parameter"),
        ("max_columns", 0, "The 'max_columns' parameter"),
        ("n_blocks", 0, "The 'n_blocks' parameter"),
        ("n_blocks", "many", "The 'n_blocks' parameter"),
        ("warm_start", 1, "The 'warm_start' parameter"),
        ("verbose", -1, "The 'verbose' parameter"),
    ],
    ids=str,
)
def test_wrong_parameters_are_named(name: str, value: Any, message: str) -> None:
    X, y = categorical(30)
    with pytest.raises(ValueError, match=message):
        DiscriminativeBayesNet(**{"eta": 0.1, name: value}).fit(X, y)


def test_zeros_in_the_reference_are_named() -> None:
    X, y = np.array([["a", "u"], ["b", "u"], ["a", "v"]]), ["x", "x", "y"]
    with pytest.raises(ValueError, match=r"value number 1 of 0 given values \[\('class', 1\)\] is 0"):
        DiscriminativeBayesNet(smoothing=0.0).fit(X, y)
    plain = DiscriminativeBayesNet(smoothing=0.0, eta=0.0, floor=1e-6).fit(X, y)
    np.testing.assert_allclose(plain.tables_[0], [[0.5, 0.5], [1.0 - 1e-6, 1e-6]], rtol=1e-12)
    assert np.isfinite(plain.predict_log_proba(X)).all()


def test_large_trees_are_refused_before_they_are_counted() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    with pytest.raises(ValueError, match=r"counts all pairs of values: with 180 values .* Use fewer values \(KBins"):
        DiscriminativeBayesNet("tan", max_table=10**4).fit(X, np.arange(60) % 2)


def test_wrong_tables() -> None:
    X, _ = table(0)
    model = DiscriminativeBayesNet(LOOPY, eta=0.1)
    with pytest.raises(ValueError, match=r"requires y to be passed, but the target y is None\. Without a class it"):
        model.fit(X)
    with pytest.raises(ValueError, match="structure='naive_bayes' requires y to be passed"):
        DiscriminativeBayesNet(hidden=[0]).fit(X)
    with pytest.raises(ValueError, match=r"columns, or a boolean array of shape \(8, 5\)\. Got shape \(2,\)"):
        model.fit(X, hidden=[True, False])
    with pytest.raises(ValueError, match="names 9, which is no column of X"):
        DiscriminativeBayesNet(LOOPY, hidden=[9]).fit(X)
    with pytest.raises(ValueError, match="must be 'hamming' without a class"):
        DiscriminativeBayesNet(LOOPY, hidden=[1], loss=np.zeros((3, 3))).fit(X)
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        DiscriminativeBayesNet(LOOPY, hidden=[1]).fit(X[:0])


def test_hidden_cells_without_a_truth() -> None:
    X, _ = table(0)
    holes = X.astype(float)
    holes[2, 1] = np.nan
    model = DiscriminativeBayesNet(LOOPY, hidden=[1])
    with pytest.raises(ValueError, match=r"their truth is what is learnt\. Got none in row 2 of column 1"):
        model.fit(holes)
    holes[:, 0] = np.nan
    with pytest.raises(ValueError, match="Column 0 of X has no values"):
        model.fit(holes)
    model.set_params(categories=[range(2), range(2), range(2), range(3), range(2)])
    with pytest.raises(ValueError, match=r"Got .*2.* in row 2 of column 1"):
        model.fit(X)


def test_hidden_sets_that_are_too_wide() -> None:
    X = np.random.default_rng(0).integers(8, size=(40, 6))
    structure = [(5, [0, 1]), (4, [1, 2]), (0, [2]), (3, [4, 0])]
    model = DiscriminativeBayesNet(structure, hidden=[0, 1, 2, 3, 4], max_table=600)
    with pytest.raises(ValueError, match=r"The hidden variables \[0, 1, 2, 3, 4\] are too many .* max_table=600"):
        model.fit(X)
    plain = DiscriminativeBayesNet(structure, eta=0.0, max_table=600).fit(X)
    with pytest.raises(ValueError, match="are too many to be predicted exactly"):
        plain.predict(X, hidden=[0, 1, 2, 3, 4])


def test_wrong_input() -> None:
    X, y = categorical(30)
    model = DiscriminativeBayesNet()
    for method in ("predict", "predict_proba", "predict_joint_log_proba", "score_samples"):
        with pytest.raises(NotFittedError):
            getattr(model, method)(X)
    with pytest.raises(NotFittedError):
        model.sample()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, np.ones(3))
    with pytest.raises(ValueError, match="hidden is for tables"):
        model.fit(X, y, hidden=np.zeros(X.shape, dtype=bool))
    mixed = np.array([["a", 1], [2, 1]], dtype=object)
    with pytest.raises(TypeError, match="The values of column 0 must be strings or numbers that can be sorted"):
        model.fit(mixed, [0, 1])
    DiscriminativeBayesNet(categories=[["a", 2], [1]], eta=0.0).fit(mixed, [0, 1])
    model.fit(X, y)
    with pytest.raises(ValueError, match="hidden is for tables: this model was fitted with y"):
        model.predict(X, hidden=[0])
    with pytest.raises(ValueError, match="X has 3 features, but DiscriminativeBayesNet is expecting 4"):
        model.predict(X[:, :3])
    with pytest.raises(AttributeError, match="predict_marginals"):
        model.predict_marginals(X)
    with pytest.raises(ValueError, match="The 'n_samples' parameter"):
        model.sample(0)


def test_a_column_called_class() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas, which gives columns names, is not installed")
    X, y = categorical(30)
    frame = pandas.DataFrame(X, columns=["a", "class", "c", "d"])
    with pytest.raises(ValueError, match="X has a column called 'class', which is what the network calls y"):
        DiscriminativeBayesNet().fit(frame, y)
    assert DiscriminativeBayesNet([("a", ["class"])], hidden=["a"]).fit(frame).structure_[0] == ("a", ["class"])


@pytest.mark.parametrize(("eta", "floor"), [(0.0, 0.3), (0.1, 0.3), (0.0, 0.25), (0.1, 0.999)])
def test_floors_that_leave_no_room(eta: float, floor: float) -> None:
    X, y = [[0], [1], [2], [3]] * 3, [0, 1] * 6
    with pytest.raises(
        ValueError, match="The 'floor' parameter of DiscriminativeBayesNet must be below 1 / 4: a row has"
    ):
        DiscriminativeBayesNet(eta=eta, floor=floor).fit(X, y)


def test_smoothing_below_the_floor_is_named() -> None:
    X, y = [[0], [0], [1]] * 30, [0, 1, 1] * 30
    with pytest.raises(ValueError, match="The 'smoothing' parameter of DiscriminativeBayesNet must leave no entry"):
        DiscriminativeBayesNet(eta=0.1, smoothing=1e-11).fit(X, y)
    prior = {0: [[0.5, 0.5], [1e-12, 1.0]], "class": [0.5, 0.5]}
    with pytest.raises(ValueError, match=r"The 'prior' parameter of DiscriminativeBayesNet must leave .* lower floor"):
        DiscriminativeBayesNet(eta=0.1, prior=prior).fit(X, y)
