"""Predictions of conditional graphical models against the enumeration of all labellings."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.metrics.pairwise import rbf_kernel

from dualfield import ConditionalGraphicalModel

LETTERS = "abc"


class Enumeration:
    """The score of any labelling of a sequence, window by window, from what was learnt about each type of clique."""

    def __init__(self, model: ConditionalGraphicalModel) -> None:
        self.model, self.n_labels = model, len(model.classes_)
        self.known: dict[Any, Any] = {}

    def key(self, position: int, length: int) -> Any:
        tying = self.model.tying or "shared"
        return {"shared": "shared", "position": position}[tying] if isinstance(tying, str) else tying(position, length)

    def learnt(self, x: np.ndarray, start: int, size: int) -> dict[tuple[int, ...], float] | None:
        """Scores of the tuples seen for the type of a window; None if there is no such type."""
        place = (x.tobytes(), start, size)
        if place not in self.known:
            self.known[place] = self.learn(x, start, size)
        return self.known[place]

    def learn(self, x: np.ndarray, start: int, size: int) -> dict[tuple[int, ...], float] | None:
        model = self.model.clique_models_.get((size, self.key(start, len(x))))
        if model is None:
            return None
        if self.model.features == "tied_separately" and size > 1:
            nodes = [self.learnt(x, start + slot, 1) for slot in range(size)]
            tuples = model.tuples.tolist()
            return {tuple(one): sum(n.get(a, np.nan) for n, a in zip(nodes, zip(one), strict=True)) for one in tuples}
        values = np.zeros(len(model.tuples))
        if model.coefficients is not None:
            window = x[start : start + size]
            if self.model.features == "tied":
                kernel = rbf_kernel(window, model.points, 8.0 / x.shape[1])
                each = (kernel @ model.coefficients).reshape(size, size, -1)  # node, slot of the weights, label
                values = np.array([sum(each[slot, slot, a] for slot, a in enumerate(t)) for t in model.tuples.tolist()])
                return {tuple(one): float(v) for one, v in zip(model.tuples.tolist(), values, strict=True)}
            if self.model.features == "tied_printed" and size > 1:
                parts = np.split(model.points, size, axis=1)
                gamma = 8.0 / x.shape[1]
                kernel = sum(rbf_kernel(row[None], part, gamma) for row, part in zip(window, parts, strict=True))
            else:
                kernel = rbf_kernel(window.reshape(1, -1), model.points, 8.0 / window.size)
            values = (kernel @ model.coefficients)[0]
        if self.model.loss == "log":
            values = log_softmax(values)
        return {tuple(one): float(v) for one, v in zip(model.tuples.tolist(), values, strict=True)}

    def relative(self, x: np.ndarray, start: int, labels: tuple[int, ...]) -> float:
        """The score of a tuple with back-off."""
        seen, cost = self.learnt(x, start, len(labels)), self.model.backoff_cost
        if seen is None and len(labels) == 1:
            known = {t for (m, _), one in self.model.clique_models_.items() if m == 1 for (t,) in one.tuples.tolist()}
            seen = {(label,): 0.0 for label in known}
        if seen:
            is_log = self.model.loss == "log" and not (self.model.features == "tied_separately" and len(labels) > 1)
            best = 0.0 if is_log else max(seen.values())
            if labels in seen:
                return seen[labels] - best
            if len(labels) == 1:
                return min(seen.values()) - best - 1.0 - cost
        left, right = self.relative(x, start, labels[:-1]), self.relative(x, start + 1, labels[1:])
        middle = self.relative(x, start + 1, labels[1:-1]) if len(labels) > 2 else 0.0
        return left + right - max(left, right, middle) - cost

    def clique(self, x: np.ndarray, start: int, labels: tuple[int, ...]) -> float:
        """The score of a tuple, minus infinity if it is forbidden."""
        unseen = self.model.unseen
        if unseen == "backoff":
            return self.relative(x, start, labels)
        seen = self.learnt(x, start, len(labels))
        if seen is not None:
            return seen.get(labels, float(unseen))
        models = self.model.clique_models_.items()
        known = {tuple(t) for (m, _), one in models if m == len(labels) for t in one.tuples.tolist()}
        if not known:
            larger = [t for (m, _), one in models if m > len(labels) for t in one.tuples.tolist()]
            known = {tuple(t[a : a + len(labels)]) for t in larger for a in range(len(t) - len(labels) + 1)}
        return 0.0 if labels in known else float(unseen)

    def score(self, row: np.ndarray, labels: tuple[int, ...]) -> tuple[int, float]:
        """How many tuples are forbidden, and the weighted sum of the scores of the others."""
        before, after = self.model.padding
        x = np.pad(row, ((before, after), (0, 0)))
        y = (self.n_labels,) * before + labels + (self.n_labels,) * after
        weights = {self.model.graph: 1.0} if self.model.combine == "sum" else self.model.combine
        forbidden, total = 0, 0.0
        for order, weight in weights.items():
            size = min(order + 1, len(x))
            for start in range(len(x) - size + 1):
                value = self.clique(x, start, y[start : start + size])
                forbidden += int(value == -np.inf)
                total += weight * value if value > -np.inf else 0.0
        return forbidden, total

    def all(self, row: np.ndarray) -> dict[tuple[int, ...], tuple[int, float]]:
        """The score of every labelling."""
        return {y: self.score(row, y) for y in itertools.product(range(self.n_labels), repeat=len(row))}


def sequences(seed: int, lengths: list[int]) -> tuple[list[np.ndarray], list[list[str]]]:
    rng = np.random.default_rng(seed)
    labels = [rng.integers(0, 3, size=length) for length in lengths]
    X = [rng.normal(size=(len(y), 2)) * 0.5 + np.eye(3)[y][:, :2] for y in labels]
    return X, [[LETTERS[code] for code in y] for y in labels]


def check(model: ConditionalGraphicalModel, X: list[np.ndarray]) -> int:
    """Compare predictions and probabilities with all labellings; return how many sequences have no allowed one."""
    reference, predicted = Enumeration(model), model.predict(X)
    same, bounds = model.predict(X, return_bound=True)
    assert same == predicted
    assert bounds.exact.all()
    without = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        probabilities = model.predict_proba(X) if hasattr(model, "predict_proba") else [None] * len(X)
    for row, guess, marginals, score in zip(X, predicted, probabilities, bounds.score, strict=True):
        scores = reference.all(row)
        fewest = min(forbidden for forbidden, _ in scores.values())
        best = max(total for forbidden, total in scores.values() if forbidden == fewest)
        codes = tuple(model.classes_.tolist().index(label) for label in guess)
        assert scores[codes][0] == fewest
        assert scores[codes][1] == pytest.approx(best, abs=1e-7)
        assert score == pytest.approx(best, abs=1e-7) or fewest > 0
        without += fewest > 0
        if marginals is not None and fewest == 0:
            expected, total = np.zeros(marginals.shape), 0.0
            for y, (forbidden, value) in scores.items():
                if not forbidden:
                    total += np.exp(value - best)
                    expected[np.arange(len(y)), y] += np.exp(value - best)
            np.testing.assert_allclose(marginals, expected / total, atol=1e-6)
    return without


CASES = [
    {"graph": 0},
    {"graph": 1},
    {"graph": 2},
    {"graph": 1, "tying": "position"},
    {"graph": 2, "tying": "position"},
    {"graph": 1, "padding": (1, 1)},
    {"graph": 2, "padding": (2, 1), "tying": "position"},
    {"graph": 0, "padding": (0, 1)},
    {"graph": 1, "tying": lambda position, length: length - position},
    {"graph": 2, "tying": lambda position, length: (position == 0, position + 3 >= length)},
    {"graph": 1, "combine": {0: 1.0, 1: 0.5}},
    {"graph": 2, "combine": {0: 0.3, 2: 2.0}},
    {"graph": 2, "combine": {1: 0.7, 2: 1.0}, "tying": "position", "padding": (1, 0)},
    {"graph": 2, "features": "tied_separately"},
    {"graph": 1, "features": "tied_separately", "tying": "position"},
    {"graph": 2, "features": "tied_printed"},
]


LOSSES = [(case, loss) for case in CASES for loss in ("log", "squared")] + [
    *(({"graph": order}, "hinge") for order in range(3)),
    ({"graph": 1, "tying": "position", "padding": (1, 1)}, "hinge"),
    ({"graph": 0, "features": "tied"}, "hinge"),
    ({"graph": 1, "features": "tied", "padding": (1, 0)}, "hinge"),
    ({"graph": 2, "features": "tied", "tying": "position", "combine": {0: 0.5, 2: 1.0}}, "hinge"),
]


def named(value):
    """Return an identifier that is the same in every process: functions by their names."""
    if isinstance(value, dict):
        return str({key: getattr(one, "__name__", one) for key, one in value.items()})
    return str(value)


@pytest.mark.parametrize("unseen", ["backoff", "-inf", 0.0, -0.7])
@pytest.mark.parametrize(("case", "loss"), LOSSES, ids=named)
def test_predictions_are_the_best_of_all_labellings(case: dict[str, Any], loss: str, unseen: Any) -> None:
    X, y = sequences(0, [1, 2, 3, 4, 4, 2])
    model = ConditionalGraphicalModel(loss=loss, C=3.0, unseen=unseen, backoff_cost=0.3, tol=1e-4, **case).fit(X, y)
    check(model, sequences(1, [4, 1, 2, 5, 3, 3])[0])


def test_sequences_without_a_labelling_of_seen_tuples_have_as_few_unseen_ones_as_can_be() -> None:
    X, y = [np.eye(3)[:, :2], np.eye(3)[:2, :2]], [list("abc"), list("ab")]
    test = sequences(3, [5, 4, 3, 2])[0]
    for order in (1, 2):
        model = ConditionalGraphicalModel(order, loss="log", unseen="-inf").fit(X, y)
        assert check(model, test) == 2  # nothing follows c
        with pytest.warns(UserWarning, match="2 of 4 examples have a type of clique"):
            model.predict_proba(test)


def test_sizes_that_training_did_not_have_are_predicted() -> None:
    X, y = sequences(0, [3, 4, 5, 4])
    for unseen in ("backoff", "-inf", -1.0):
        for tying in ("shared", "position"):
            model = ConditionalGraphicalModel(2, loss="squared", unseen=unseen, tying=tying).fit(X, y)
            check(model, sequences(2, [1, 2, 6])[0])


def test_small_chunks_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = sequences(0, [1, 2, 3, 4, 4, 2])
    test = sequences(1, [4, 1, 2, 5, 3, 3, 6, 6])[0]
    models = [
        ConditionalGraphicalModel(2, loss="log", unseen=unseen, padding=(1, 0)).fit(X, y)
        for unseen in ("backoff", "-inf", 0.0)
    ]
    whole = [model.predict(test) for model in models]
    monkeypatch.setattr("dualfield.models.graphical.clique_readers._NUMBERS_OF_A_CHUNK", 50)
    assert [model.predict(test) for model in models] == whole


def test_clique_scores_are_those_of_the_enumeration() -> None:
    X, y = sequences(0, [1, 2, 3, 4, 4, 2])
    test = sequences(1, [4, 1, 2])[0]
    model = ConditionalGraphicalModel(1, loss="log", padding=(1, 0), tying="position", combine={0: 1.0, 1: 0.5})
    model.set_params(unseen=-2.0).fit(X, y)
    reference, tables = Enumeration(model), model.clique_scores(test)
    assert sorted(tables) == [0, 1]
    for order, table in tables.items():
        assert len(table.examples) == sum(len(x) + 1 - order for x in test)
        for example, nodes, scores in zip(table.examples, table.nodes, table.scores, strict=True):
            x = np.pad(test[example], ((1, 0), (0, 0)))
            np.testing.assert_array_equal(nodes, nodes[0] + np.arange(order + 1))
            expected = [reference.clique(x, nodes[0] + 1, tuple(t)) for t in table.tuples.tolist()]
            np.testing.assert_allclose(scores, expected, atol=1e-9)


def test_empty_sequences_and_flat_input() -> None:
    X, y = sequences(0, [2, 3, 4])
    flat = np.concatenate(X)
    model = ConditionalGraphicalModel(1, loss="squared", padding=(1, 1)).fit(
        flat, list(itertools.chain(*y)), lengths=[2, 0, 3, 4]
    )
    again = ConditionalGraphicalModel(1, loss="squared", padding=(1, 1)).fit(X, y)
    assert model.predict(flat, lengths=[2, 3, 0, 4]) == [*again.predict(X)[:2], [], again.predict(X)[2]]
    assert model.score(X, y) == pytest.approx(np.mean(np.concatenate(again.predict(X)) == np.concatenate(y)))
