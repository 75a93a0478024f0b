"""
Structural SVM with a custom output space: matching
===================================================

A structural SVM learns to choose one output among very many, and the outputs need not
be label sequences. Here an input is a pair of photographs of the same dozen stars, and
the output says which star of the first is which star of the second. There are 12! of
these, half a billion, but they are never enumerated: it is enough to find the best one,
and SciPy can.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from dualfield import StructuredSVM
from dualfield.plotting import ConvergenceDisplay

# %%
# **The data.** Between the two photographs the stars have moved, each by itself, and
# the second photograph was taken through haze, which changes brightness a lot and
# colour a little. A pair of stars is described by three differences, in each case
# minus the square: how far apart they are, and how unlike in brightness and in colour.

rng = np.random.default_rng(0)
n_stars = 12


def photographs():
    first = np.column_stack(
        [rng.uniform(0, 5, (n_stars, 2)), rng.normal(size=(n_stars, 2))]
    )
    noise = np.array([0.7, 0.7, 1.0, 0.25])  # of place, brightness and colour
    second = first + noise * rng.normal(size=first.shape)
    order = rng.permutation(n_stars)
    return first, second[order], np.argsort(order)  # star a is second[y[a]]


def differences(first, second):
    square = (first[:, None] - second) ** 2
    return -np.stack(
        [square[..., 0] + square[..., 1], square[..., 2], square[..., 3]], -1
    )


skies = [photographs() for _ in range(250)]
X = [differences(first, second) for first, second, _ in skies]
y = [pairs for _, _, pairs in skies]
X_train, y_train, X_test, y_test = X[:50], y[:50], X[100:], y[100:]
print(X[0].shape, y[0])

# %%
# **The problem** is an object with three methods. ``joint_feature`` is the feature
# vector of an output: its score is the product with the weights. ``loss`` is its cost.
# ``argmax`` finds the output with the highest score; in training with the highest score
# *plus loss* (loss-augmented inference). Wrong pairs that are nearly as good as the
# right ones are what the SVM learns from.


class Matching:
    def joint_feature(self, x, y):
        return x[np.arange(n_stars), y].sum(axis=0)

    def loss(self, y_true, y):
        return float((y_true != y).sum())

    def argmax(self, w, x, y_true=None):
        gain = x @ w
        if y_true is not None:
            gain = gain + 1.0
            gain[np.arange(n_stars), y_true] -= 1.0
        return linear_sum_assignment(-gain)[1]


model = StructuredSVM(Matching(), C=1.0).fit(X_train, y_train)
print("place, brightness, colour:", model.coef_.round(2))
lowest = model.objective_ - model.dual_gap_
print(f"objective {model.objective_:.2f}, and no weights reach below {lowest:.2f}")

# %%
# It has learnt to rely on colour, which haze hardly changes, then on place, and least
# on brightness. Weights set by hand do worse. ``score`` is minus the mean loss.


def wrong(weights):
    found = [Matching().argmax(np.asarray(weights), x) for x in X_test]
    return np.mean([a != b for a, b in zip(y_test, found, strict=True)])


print(f"nearest place        {wrong([1, 0, 0]):6.1%} of the stars wrong")
print(f"all three alike      {wrong([1, 1, 1]):6.1%}")
print(f"learnt               {-model.score(X_test, y_test) / n_stars:6.1%}")

# %%
# How good could it be? The noise is Gaussian, so the best weights are known: one over
# its variances. Training did not use this, and came close.

ideal = 1 / np.array([0.7, 1.0, 0.25]) ** 2
print(f"if one knew the noise{wrong(ideal):6.1%}")

# %%
# One sky of the test data, matched by place alone and by the learnt weights. Dots are
# the first photograph, rings the second; wrong pairs are dashed.

fig, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True, layout="constrained")
first, second, truth = skies[100]
for ax, weights, title in [
    (axes[0], np.array([1.0, 0.0, 0.0]), "nearest place"),
    (axes[1], model.coef_, "learnt"),
]:
    found = Matching().argmax(weights, X[100])
    for a, b in enumerate(found):
        right = b == truth[a]
        line = np.array([first[a, :2], second[b, :2]]).T
        ax.plot(*line, "-" if right else "--", color="C0" if right else "C3")
    ax.scatter(first[:, 0], first[:, 1], c="black", s=20)
    ax.scatter(second[:, 0], second[:, 1], facecolors="none", edgecolors="black")
    ax.set(title=f"{title}: {(found != truth).sum()} wrong", xlabel="east")
axes[0].set(ylabel="north")
plt.show()

# %%
# **Certificates** work for custom output spaces, too. Each answer of ``argmax`` is a
# plane below the loss, the best mixture of planes bounds the optimum from below, and
# the fit ends when the two bounds meet.

ConvergenceDisplay.from_estimator(model).plot(against="passes")
plt.show()

# %%
# **How large should C be?** Choose it on held-out data. With three weights and fifty
# skies there is little to overfit, and C may be large.

for C in (0.001, 0.01, 0.1, 1.0, 10.0):
    fitted = StructuredSVM(Matching(), C=C).fit(X_train, y_train)
    error = -fitted.score(X[50:100], y[50:100]) / n_stars  # neither train nor test
    print(f"C={C:<6g} {error:5.1%} wrong, weights", fitted.coef_.round(2))
