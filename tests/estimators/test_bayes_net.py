"""DiscriminativeBayesNet: structures, hidden cells, missing and unknown values, tables by name, forms of input."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from dualfield import DiscriminativeBayesNet
from tests.estimators.test_bayes_net_optimum import LOOPY, categorical, table

NAMES = np.array(["low", "mid", "top", "far", "end"])


def log_joint(model: DiscriminativeBayesNet, row: dict[Any, int]) -> float:
    """log P of a complete row of codes, by the public tables; a variable whose family has no value is left out."""
    total = 0.0
    for child, parents in model.structure_:
        at = tuple(row[one] for one in [*parents, child])
        if min(at) >= 0:
            total += float(np.log(model.tables_[child][at]))
    return total


def completed(model: DiscriminativeBayesNet, row: dict[Any, int], free: list[Any]) -> Any:
    """All completions of a row, with their log-probabilities."""
    sizes = {child: model.tables_[child].shape[-1] for child, _ in model.structure_}
    for values in itertools.product(*(range(sizes[one]) for one in free)):
        other = {**row, **dict(zip(free, values, strict=True))}
        yield other, log_joint(model, other)


# A class


@pytest.mark.parametrize("eta", [0.0, 0.1])
@pytest.mark.parametrize("structure", ["naive_bayes", "tan", [("class", [0]), (1, ["class", 0]), (2, [1]), (3, [])]])
def test_probabilities_of_classes_by_enumeration(structure: Any, eta: float) -> None:
    """Complete rows, rows with missing cells, and rows with values that training did not have."""
    X, y = categorical(60)
    model = DiscriminativeBayesNet(structure, eta=eta, smoothing=0.5).fit(X, y)
    fresh = categorical(40, 3)[0].astype(float)
    fresh[::3, 1], fresh[::5, 0], fresh[1::7, 2] = np.nan, np.nan, 77.0
    joint = model.predict_joint_log_proba(fresh)
    for i, values in enumerate(fresh):
        row = {j: -1 if value == 77.0 else 0 if np.isnan(value) else int(value) for j, value in enumerate(values)}
        missing = np.flatnonzero(np.isnan(values)).tolist()
        found = list(completed(model, {**row, "class": 0}, [*missing, "class"]))
        for k in range(3):
            wanted = logsumexp([score for other, score in found if other["class"] == k])
            assert joint[i, k] == pytest.approx(wanted, abs=1e-10)
    np.testing.assert_allclose(model.score_samples(fresh), logsumexp(joint, axis=1))
    np.testing.assert_array_equal(model.predict(fresh), model.predict_proba(fresh).argmax(axis=1))
    np.testing.assert_allclose(np.exp(model.predict_log_proba(fresh)), model.predict_proba(fresh))


def test_probabilities_of_all_rows_sum_to_one() -> None:
    X, y = categorical(60)
    model = DiscriminativeBayesNet("tan", eta=0.05).fit(X, y)
    every = list(itertools.product(range(3), range(4), range(2), range(5)))
    assert np.exp(model.score_samples(every)).sum() == pytest.approx(1.0)


def test_tan_is_the_best_tree_given_the_class() -> None:
    """Of all trees of the columns, TAN has the one whose counts make the training data most likely."""
    rng = np.random.default_rng(0)
    X, y = categorical(300)
    X[:, 3] = (X[:, 1] + (rng.random(300) < 0.2)) % 4
    X[:, 2] = (X[:, 3] + (rng.random(300) < 0.2)) % 2
    tan = DiscriminativeBayesNet("tan", eta=0.0, smoothing=0.0).fit(X, y)
    parents = dict(tan.structure_)
    assert parents[0] == ["class"]  # the root is the first column
    assert all(len(parents[j]) == 2 and parents[j][0] == "class" for j in (1, 2, 3))

    def likelihood(model: DiscriminativeBayesNet) -> float:
        joint = model.predict_joint_log_proba(X)
        return float(joint[np.arange(len(y)), y].sum())

    others = []
    for tree in itertools.product(range(4), repeat=3):  # the neighbour of columns 1 to 3 towards the root
        structure = [(0, ["class"])] + [(j + 1, ["class", of]) for j, of in enumerate(tree)]
        try:
            others.append(likelihood(DiscriminativeBayesNet(structure, eta=0.0, smoothing=0.0).fit(X, y)))
        except ValueError as error:
            assert "cycle" in str(error)  # noqa: PT017
    assert len(others) == 16  # trees on four nodes
    assert likelihood(tan) == pytest.approx(max(others))


def test_tables_by_name() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas, which gives columns names, is not installed")
    X, y = categorical(100)
    frame = pandas.DataFrame({"a": NAMES[X[:, 0]], "b": X[:, 1], "c": X[:, 2] == 1, "d": NAMES[X[:, 3]]})
    frame["d"] = frame["d"].astype("category")
    labels = np.array(["x", "y", "z"])[y]
    structure = [("a", ["class"]), ("b", ["a", "class"]), ("c", "class"), ("d", [])]
    model = DiscriminativeBayesNet(structure, eta=0.0).fit(frame, labels)
    assert model.structure_ == [("a", ["class"]), ("b", ["a", "class"]), ("c", ["class"]), ("d", []), ("class", [])]
    assert [list(values) for values in model.categories_][:3] == [["low", "mid", "top"], [0, 1, 2, 3], [False, True]]
    rows = frame[(frame["a"] == "mid") & (labels == "z")]
    wanted = [(np.count_nonzero(rows["b"] == value) + 1) / (len(rows) + 4) for value in range(4)]
    np.testing.assert_allclose(model.conditional_proba("b", {"class": "z", "a": "mid"}), wanted)
    np.testing.assert_allclose(model.tables_["b"][1, 2], wanted)
    np.testing.assert_allclose(model.conditional_proba("class"), (np.bincount(y) + 1) / (len(y) + 3))
    with pytest.raises(ValueError, match=r"given must have a value for each parent of 'b', \['a', 'class'\]"):
        model.conditional_proba("b", {"a": "mid"})
    with pytest.raises(ValueError, match=r"given\['a'\] must be one of \['low', 'mid', 'top'\]. Got 'high'"):
        model.conditional_proba("b", {"a": "high", "class": "z"})
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c", "d"]])
    assert (model.predict(frame) == labels).mean() > 0.4


def test_directed_graphs() -> None:
    networkx = pytest.importorskip("networkx", reason="networkx, an input form, is not installed")
    X, y = categorical(80)
    listed = [(0, ["class"]), (1, ["class", 0]), (3, ["class"])]
    graph = networkx.DiGraph([(parent, child) for child, parents in listed for parent in parents])
    graph.add_node(2)
    model = DiscriminativeBayesNet(graph, eta=0.0).fit(X, y)
    same = DiscriminativeBayesNet(listed, eta=0.0).fit(X, y)
    assert model.structure_ == same.structure_
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))
    graph.add_edge(1, "class")
    with pytest.raises(ValueError, match="cycle"):
        DiscriminativeBayesNet(graph).fit(X, y)


def test_strings_numbers_and_objects_are_the_same_to_it() -> None:
    X, y = categorical(100)
    fits = [
        DiscriminativeBayesNet(eta=0.05).fit(form, y).predict_proba(form)
        for form in (X, X.astype(np.int8), X * 0.5, NAMES[X], NAMES[X].tolist(), NAMES[X].astype(object), X.tolist())
    ]
    order = DiscriminativeBayesNet(eta=0.05, categories=[[2, 1, 0], [3, 2, 1, 0], [1, 0], [4, 3, 2, 1, 0]])
    for other in [*fits[1:], order.fit(X, y).predict_proba(X)]:
        np.testing.assert_allclose(other, fits[0], atol=1e-6)


def test_categories_that_training_lacks() -> None:
    X, y = categorical(50)
    wide = DiscriminativeBayesNet(eta=0.0, categories=[range(3), range(4), range(9), range(5)]).fit(X, y)
    assert wide.tables_[2].shape == (3, 9)
    narrow = DiscriminativeBayesNet(eta=0.1, categories=[[0, 1], range(4), range(2), range(5)]).fit(X, y)
    kept = X[:, 0] < 2
    counts = np.zeros((3, 2))
    np.add.at(counts, (y[kept], X[kept, 0]), 1.0)
    plain = DiscriminativeBayesNet(eta=0.0, categories=narrow.categories_).fit(X, y)
    np.testing.assert_allclose(plain.tables_[0], (counts + 1) / (counts + 1).sum(axis=1, keepdims=True))
    with pytest.raises(ValueError, match=r"Column 0 of X has a value not seen in training, .*2.* in row"):
        narrow.set_params(unknown="error").fit(X, y)


def test_unknown_values() -> None:
    X, y = categorical(50)
    model = DiscriminativeBayesNet(eta=0.0).fit(X, y)
    strange = X[:5].copy()
    strange[:, 1] = 99
    without = DiscriminativeBayesNet(eta=0.0).fit(np.delete(X, 1, axis=1), y)
    np.testing.assert_allclose(model.predict_proba(strange), without.predict_proba(np.delete(X[:5], 1, axis=1)))
    with pytest.raises(ValueError, match=r"Column 1 of X has a value not seen in training, .*99.* in row 0"):
        model.set_params(unknown="error").predict(strange)


def test_missing_cells_in_training_of_naive_bayes_are_left_out() -> None:
    X, y = categorical(80)
    holes = X.astype(float)
    holes[::4, 2] = np.nan
    model = DiscriminativeBayesNet(eta=0.0).fit(holes, y)
    kept = np.arange(80) % 4 != 0
    part = DiscriminativeBayesNet(eta=0.0).fit(X[kept], y[kept])
    whole = DiscriminativeBayesNet(eta=0.0).fit(X, y)
    np.testing.assert_allclose(model.tables_[2], part.tables_[2])
    np.testing.assert_allclose(model.tables_[1], whole.tables_[1])
    assert DiscriminativeBayesNet("tan", eta=0.1).fit(holes, y).score(X, y) > 0.4


def test_weights_of_rows() -> None:
    X, y = categorical(60)
    counts = np.random.default_rng(0).integers(0, 3, size=60)
    weighted = DiscriminativeBayesNet(eta=0.2, tol=1e-7).fit(X, y, sample_weight=counts)
    repeated = DiscriminativeBayesNet(eta=0.2, tol=1e-7).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-2)


@pytest.mark.parametrize("seed", range(8))
def test_weights_count_in_the_tree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y, weights = rng.integers(0, 3, (40, 5)), rng.integers(0, 2, 40), rng.integers(0, 6, 40)
    weighted = DiscriminativeBayesNet("tan", eta=0.0).fit(X, y, weights)
    again = np.repeat(np.arange(40), weights)
    repeated = DiscriminativeBayesNet("tan", eta=0.0).fit(X[again], y[again])
    assert weighted.structure_ == repeated.structure_
    np.testing.assert_allclose(weighted.parameters_, repeated.parameters_, rtol=1e-12)


# A table


@pytest.mark.parametrize("eta", [0.0, 0.3])
def test_tables_are_filled_in_with_the_most_probable_values(eta: float) -> None:
    X, hidden = table(0, 30)
    model = DiscriminativeBayesNet(LOOPY, eta=eta, smoothing=0.5).fit(X, hidden=hidden)
    rng = np.random.default_rng(1)
    holes = rng.random(X.shape) < 0.4
    masked = np.ma.masked_array(X, holes)
    as_floats, as_objects = np.where(holes, np.nan, X), np.where(holes, None, X)
    filled = model.predict(masked)
    for form in (as_floats, as_objects):
        np.testing.assert_array_equal(model.predict(form).astype(int), filled)
    np.testing.assert_array_equal(model.predict(X, hidden=holes), filled)
    marginals, chances = model.predict_marginals(masked), model.score_samples(masked)
    for i, row in enumerate(X):
        free = np.flatnonzero(holes[i]).tolist()
        found = list(completed(model, dict(enumerate(row.tolist())), free))
        scores = np.array([score for _, score in found])
        assert log_joint(model, dict(enumerate(filled[i].tolist()))) == pytest.approx(scores.max(), abs=1e-12)
        np.testing.assert_array_equal(filled[i][~holes[i]], row[~holes[i]])
        assert chances[i] == pytest.approx(logsumexp(scores), abs=1e-10)
        weights = np.exp(scores - logsumexp(scores))
        for j in marginals:
            wanted = np.bincount([other[j] for other, _ in found], weights, minlength=marginals[j].shape[1])
            np.testing.assert_allclose(marginals[j][i], wanted, atol=1e-12)
    assert set(marginals) == set(np.flatnonzero(holes.any(axis=0)))
    assert not hasattr(model, "classes_")
    assert not hasattr(model, "predict_proba")


def test_columns_that_are_always_predicted() -> None:
    X, _ = table(2, 40)
    model = DiscriminativeBayesNet(LOOPY, hidden=[1, 3], eta=0.1).fit(X)
    nonsense = X.copy()
    nonsense[:, [1, 3]] = 9  # what is in hidden columns does not matter
    filled = model.set_params(unknown="error").predict(nonsense)
    np.testing.assert_array_equal(filled, model.predict(X))
    np.testing.assert_array_equal(filled[:, [0, 2, 4]], X[:, [0, 2, 4]])
    assert model.score(X) == pytest.approx((filled[:, [1, 3]] == X[:, [1, 3]]).mean())
    one = model.predict(X, hidden=[3])
    assert model.score(X, hidden=[3]) == pytest.approx((one[:, 3] == X[:, 3]).mean())
    np.testing.assert_array_equal(one[:, :3], X[:, :3])
    weights = np.arange(40.0)
    hits = (filled[:, [1, 3]] == X[:, [1, 3]]).sum(axis=1)
    assert model.score(X, sample_weight=weights) == pytest.approx(weights @ hits / (2 * weights.sum()))


def test_frames_are_filled_in_as_frames() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas, which gives columns names, is not installed")
    X, _ = table(0, 30)
    frame = pandas.DataFrame({"a": NAMES[X[:, 0]], "b": X[:, 1], "c": X[:, 2] == 1, "d": NAMES[X[:, 3]], "e": X[:, 4]})
    frame["d"] = frame["d"].astype("category")
    structure = [("b", ["a"]), ("c", ["a", "b"]), ("d", ["b"]), ("e", ["c", "d"])]
    model = DiscriminativeBayesNet(structure, hidden=["b", "d"], eta=0.1).fit(frame)
    plain = DiscriminativeBayesNet(LOOPY, hidden=[1, 3], eta=0.1).fit(X)
    filled = model.predict(frame)
    assert (filled.dtypes == frame.dtypes).all()
    assert filled.index.equals(frame.index)
    np.testing.assert_array_equal(filled["b"], plain.predict(X)[:, 1])
    np.testing.assert_array_equal(np.asarray(filled["d"]), NAMES[plain.predict(X)[:, 3]])
    holes = frame.astype(object)
    holes.loc[3, "a"], holes.loc[4, "e"] = None, pandas.NA
    complete = model.predict(holes)
    assert not complete.isna().any().any()
    assert complete.loc[3, "a"] in NAMES
    assert set(model.predict_marginals(holes)) == {"a", "b", "d", "e"}


def test_longer_strings_are_not_cut() -> None:
    X = np.array([["a", "y"], ["a", "y"], ["longer", "n"], ["longer", "n"]])
    model = DiscriminativeBayesNet([(0, [1])], eta=0.0).fit(X)
    assert model.predict(np.array([["a", "n"]]), hidden=[0]).tolist() == [["longer", "n"]]


def test_shared_tables_have_common_values() -> None:
    """A Markov chain of columns: one table for all its steps, also for values that one column alone has."""
    X = np.array([[0, 1, 2], [1, 2, 2], [0, 0, 1], [2, 2, 0], [0, 1, 1]])
    model = DiscriminativeBayesNet([(1, [0]), (2, [1])], shared=[[1, 2]], eta=0.0, smoothing=0.5).fit(X)
    steps = np.full((3, 3), 0.5)
    for row in X:
        steps[row[0], row[1]] += 1
        steps[row[1], row[2]] += 1
    np.testing.assert_allclose(model.tables_[1], steps / steps.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(model.tables_[1], model.tables_[2])
    assert model.network_.n_parameters == 3 + 9
    assert [values.tolist() for values in model.categories_] == [[0, 1, 2]] * 3


def test_rare_and_many_hidden_sets_predict_alike() -> None:
    """Each row alone, and all rows with holes of their own together."""
    X, _ = table(3, 60)
    model = DiscriminativeBayesNet(LOOPY, eta=0.0).fit(X)
    rng = np.random.default_rng(4)
    holes = np.where(rng.random(X.shape) < 0.5, np.nan, X)
    alone = np.concatenate([model.predict(row[None]) for row in holes])
    np.testing.assert_array_equal(model.predict(holes), alone)
    np.testing.assert_allclose(model.score_samples(holes), [model.score_samples(row[None])[0] for row in holes])


def test_samples() -> None:
    X, y = categorical(300)
    model = DiscriminativeBayesNet("tan", eta=0.0).fit(NAMES[X], y)
    drawn, labels = model.sample(20_000, random_state=0)
    again = DiscriminativeBayesNet(model.structure_[:-1], eta=0.0).fit(drawn, labels)
    np.testing.assert_allclose(again.tables_["class"], model.tables_["class"], atol=0.02)
    np.testing.assert_allclose(again.tables_[0], model.tables_[0], atol=0.03)
    assert drawn.dtype.kind == "U"
    assert model.sample(3, random_state=1)[0].tolist() == model.sample(3, random_state=1)[0].tolist()


# Training


def test_warm_start_begins_where_the_last_fit_ended() -> None:
    X, y = categorical(150)
    model = DiscriminativeBayesNet(eta=0.3, tol=1e-5, warm_start=True).fit(X, y)
    again = DiscriminativeBayesNet(eta=0.3, tol=1e-5, warm_start=True).fit(X, y)
    again.fit(X, y)
    assert again.trace_.objective[0] == pytest.approx(model.objective_, rel=1e-9)
    other = again.fit(X[:, :2], y)  # another network: from its counts
    assert other.trace_.objective[0] == DiscriminativeBayesNet(eta=0.3).fit(X[:, :2], y).trace_.objective[0]


def test_the_same_result_every_time_and_with_threads() -> None:
    X, y = categorical(100)
    first = DiscriminativeBayesNet("tan", eta=0.1).fit(X, y)
    for n_jobs in (None, 2):
        other = DiscriminativeBayesNet("tan", eta=0.1, n_jobs=n_jobs).fit(X, y)
        np.testing.assert_array_equal(other.parameters_, first.parameters_)
        assert other.structure_ == first.structure_


def test_a_fit_that_stops_early_says_so() -> None:
    from sklearn.exceptions import ConvergenceWarning

    X, y = categorical(100)
    with pytest.warns(ConvergenceWarning, match=r"The limit on passes was reached. Relative duality gap .*2 passes"):
        model = DiscriminativeBayesNet(eta=1.0, tol=1e-9, max_iter=2).fit(X, y)
    assert model.dual_gap_ > 0.0


def test_progress_is_shown(capsys: Any) -> None:
    X, y = categorical(40)
    DiscriminativeBayesNet(eta=0.1, verbose=2).fit(X, y)
    assert "DiscriminativeBayesNet: pass 1.0, objective" in capsys.readouterr().out
