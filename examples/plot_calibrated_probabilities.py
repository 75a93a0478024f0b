"""
Calibrated probabilities: kernel logistic regression and SVC
============================================================

A support vector machine has no probabilities: a second model must be fitted to its
scores. Kernel logistic regression has the same kernels and the same kind of boundary,
and is trained for its probabilities. This example compares the two on points whose true
probabilities are known.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.svm import SVC

from dualfield import KernelLogisticRegression
from dualfield.plotting import ReliabilityDisplay

# %%
# Two classes in the plane. On the left they mix widely, and the further to the right,
# the sharper the border. The points come from a formula, so the true probabilities are
# known.


def true_probability(X):
    sharpness = 2 * np.exp(0.8 * X[:, 0])
    return expit(sharpness * (X[:, 1] - np.sin(2 * X[:, 0]) / 2))


rng = np.random.default_rng(1)
X_train, X_test = rng.uniform(-2, 2, size=(800, 2)), rng.uniform(-2, 2, size=(4000, 2))
y_train, y_test = (rng.random(len(X)) < true_probability(X) for X in (X_train, X_test))

# %%
# Both models choose C and gamma on the same grid. The SVM is selected by accuracy,
# kernel logistic regression by log-loss, which penalises wrong probabilities.

grid = {"C": 10.0 ** np.arange(-1, 4), "gamma": [0.1, 0.3, 1.0]}
folds = ShuffleSplit(3, test_size=0.3, random_state=0)
svm = GridSearchCV(SVC(), grid, cv=folds).fit(X_train, y_train).best_estimator_
ours = GridSearchCV(
    KernelLogisticRegression(tol=1e-2), grid, cv=folds, scoring="neg_log_loss"
)
ours = ours.fit(X_train, y_train).best_estimator_
print(f"SVC: C={svm.C:g}, gamma={svm.gamma:g}")
print(f"KernelLogisticRegression: C={ours.C:g}, gamma={ours.gamma:g}")

# %%
# ``SVC(probability=True)`` used to fit Platt's sigmoid behind the scenes; scikit-learn
# has deprecated it and recommends ``CalibratedClassifierCV``. It needs five more fits,
# and its answer depends on how the data were split.

platt = CalibratedClassifierCV(svm, ensemble=False).fit(X_train, y_train)
models = {"SVC and Platt's sigmoid": platt, "KernelLogisticRegression": ours}
for name, model in models.items():
    proba = model.predict_proba(X_test)[:, 1]
    loss, right = log_loss(y_test, proba), model.score(X_test, y_test)
    print(f"{name:26} log-loss {loss:.4f}  accuracy {right:.4f}")
print(f"{'the truth':26} log-loss {log_loss(y_test, true_probability(X_test)):.4f}")

# %%
# Both have the same accuracy, but different probabilities. (Other seeds give similar
# results.)
#
# A sigmoid of the SVM's score is a function of the distance to the border, and nothing
# else. It cannot say *mixed here, sharp there*. Kernel logistic regression can, and
# comes closer on both sides:

halves = {"left half, mixed": X_test[:, 0] < 0, "right half, sharp": X_test[:, 0] >= 0}
for side, chosen in halves.items():
    truth = true_probability(X_test[chosen])
    errors = [
        np.abs(model.predict_proba(X_test[chosen])[:, 1] - truth).mean()
        for model in models.values()
    ]
    print(f"{side:17} mean distance from the truth:", *np.round(errors, 3))

# %%
# Also, the class with the higher probability need not be the class that the SVM
# predicts. For kernel logistic regression the two always agree.

disagree = np.sum((platt.predict_proba(X_test)[:, 1] > 0.5) != svm.predict(X_test))
print(
    f"the SVM and its own probabilities disagree on {disagree} of {len(X_test)} points"
)
disagree = np.sum((ours.predict_proba(X_test)[:, 1] > 0.5) != ours.predict(X_test))
print(f"kernel logistic regression: {disagree}")

# %%
# **The maps.** Lines are drawn at probabilities 0.1, 0.5 and 0.9.

side = np.linspace(-2, 2, 120)
plane = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
maps = {"the truth": true_probability(plane)}
maps |= {name: model.predict_proba(plane)[:, 1] for name, model in models.items()}
fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
for ax, (name, values) in zip(axes, maps.items(), strict=True):
    values = values.reshape(120, 120)
    image = ax.pcolormesh(
        side, side, values, cmap="RdBu_r", vmin=0, vmax=1, rasterized=True
    )
    ax.contour(
        side,
        side,
        values,
        levels=[0.1, 0.5, 0.9],
        colors="black",
        linewidths=[0.7, 1.4, 0.7],
    )
    ax.set_title(name)
fig.colorbar(image, ax=axes)
plt.show()

# %%
# **Reliability.** Of the points with a predicted probability of 80 %, about 80 % should
# be right. On the left the SVM is overconfident, on the right underconfident.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, (side, chosen) in zip(axes, halves.items(), strict=True):
    for name, model in models.items():
        display = ReliabilityDisplay.from_estimator(
            model, X_test[chosen], y_test[chosen], n_bins=8, name=name
        )
        display.plot(ax, counts=False)
    ax.set(title=side, xlim=(0.48, 1.02), ylim=(0.38, 1.02))
    ax.legend(loc="lower right", fontsize=8)
plt.show()
