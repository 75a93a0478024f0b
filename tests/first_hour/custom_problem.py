"""A structural SVM for an output space of your own: rank items, of which some are relevant."""

from itertools import permutations

import numpy as np

from dualfield import StructuredSVM


class Ranking:
    """y: the items, best first; features: differences between items and those that stand behind them."""

    def joint_feature(self, x, y):
        places = np.arange(len(y) - 1, -len(y), -2)
        return places @ x[y]

    def loss(self, y_true, y):
        return float(np.mean(y_true != y))

    def argmax(self, w, x, y_true=None):
        orders = [np.array(order) for order in permutations(range(len(x)))]
        scores = [w @ self.joint_feature(x, y) for y in orders]
        if y_true is not None:
            scores = [score + self.loss(y_true, y) for score, y in zip(scores, orders, strict=True)]
        return orders[int(np.argmax(scores))]


rng = np.random.default_rng(0)
X = [rng.normal(size=(4, 3)) for _ in range(40)]
y = [np.argsort(-x @ [2.0, -1.0, 0.0]) for x in X]
model = StructuredSVM(Ranking(), C=10.0).fit(X[:30], y[:30])
print(model.score(X[30:], y[30:]), model.coef_)

# Checks
assert model.score(X[30:], y[30:]) > -0.2
assert model.dual_gap_ <= 1e-3 * model.objective_
direction = model.coef_ / np.linalg.norm(model.coef_)
assert direction @ np.array([2.0, -1.0, 0.0]) / np.sqrt(5.0) > 0.97
