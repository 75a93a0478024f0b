"""
Numeric features: sequences of handwritten digits
=================================================

Attributes need not be strings. Here every item is a row of 64 numbers, the pixels of a
handwritten digit, and a sequence is a code of eight digits. The CRF learns the shapes
of digits *and* the transitions between them jointly.

In these codes three digits rise by small steps, and the fourth is a check digit, the
last digit of their sum. Noise is added to the images.
"""

import matplotlib.pyplot as plt
import numpy as np

from dualfield import CRF
from dualfield.datasets import load_digit_words
from dualfield.metrics import sequence_accuracy_score
from dualfield.plotting import TransitionDisplay
from dualfield.structures import Chain

data = load_digit_words(n_words=500, language="codes", random_state=0)
images, labels = data.images, data.labels
X_train, y_train = [images[i] for i in data.train], [labels[i] for i in data.train]
X_test, y_test = [images[i] for i in data.test], [labels[i] for i in data.test]
print(data.words[0], X_train[0].shape, y_train[0])

# %%
# Numbers are not scaled. There is no intercept: add a column of ones if you need one.
# Scale columns to similar ranges, since all weights are penalised alike. Pixels between
# 0 and 1 are fine.
#
# First without neighbours: every picture is a sequence of length one, and the CRF is
# ordinary logistic regression.

pixels, digits = np.vstack(X_train), np.concatenate(y_train)
singles = CRF(C=1.0, features="all", random_state=0)
singles.fit(pixels, digits, lengths=np.ones_like(digits))

# %%
# Then chains of order one, two and three. Only the last one can model that the check
# digit depends on the three digits before it.

readers = {"one by one": singles}
for order in (1, 2, 3):
    reader = CRF(Chain(10, order=order), C=1.0, tol=1e-3, random_state=0)
    readers[f"chain of order {order}"] = reader.fit(X_train, y_train)


def read(model):
    if model is not singles:
        return model.predict(X_test)
    return [np.concatenate(model.predict(word, lengths=[1] * 8)) for word in X_test]


readings = {name: read(model) for name, model in readers.items()}
for name, predicted in readings.items():
    wrong = np.mean(np.concatenate(predicted) != np.concatenate(y_test))
    codes = sequence_accuracy_score(y_test, predicted)
    print(f"{name:17} {wrong:.3f} of the digits wrong, {codes:.0%} of the codes right")

# %%
# **What a digit looks like.** The weights of the pixels, as images: blue is positive,
# red negative.

# sphinx_gallery_thumbnail_number = 3
chain = readers["chain of order 1"]
limit = np.abs(chain.coef_).max()
fig, axes = plt.subplots(1, 10, figsize=(10, 1.6), layout="constrained")
for digit, ax in enumerate(axes):
    ax.imshow(chain.coef_[digit].reshape(8, 8), cmap="RdBu", vmin=-limit, vmax=limit)
    ax.set(title=digit, xticks=[], yticks=[])
plt.show()

# %%
# **Which digit follows which.** Digits rise by one to three, which is likely; check
# digits are the rest.

TransitionDisplay.from_estimator(chain).plot()
plt.show()

# %%
# **A code that only the chain reads.** Pictures on top, below them the probability of
# every digit, one by one and in the chain.

at = next(
    at
    for at, truth in enumerate(y_test)
    if (readings["chain of order 3"][at] == truth).all()
    and (readings["one by one"][at] != truth).sum() >= 3
)
truth = y_test[at]
single = np.vstack(singles.predict_proba(X_test[at], lengths=[1] * 8))
together = readers["chain of order 3"].predict_proba([X_test[at]])[0]
fig, axes = plt.subplots(
    3,
    8,
    figsize=(10, 4.6),
    sharey="row",
    layout="constrained",
    height_ratios=[1.3, 1, 1],
)
for place in range(8):
    axes[0, place].imshow(X_test[at][place].reshape(8, 8), cmap="gray_r")
    axes[0, place].set(title=f"truth: {truth[place]}", xticks=[], yticks=[])
    for row, (name, proba) in enumerate(
        (("one by one", single), ("in the chain", together)), start=1
    ):
        colors = [
            "tab:green" if digit == truth[place] else "tab:grey" for digit in range(10)
        ]
        axes[row, place].bar(range(10), proba[place], color=colors)
        axes[row, place].set(ylim=(0, 1), xticks=range(0, 10, 3))
        axes[row, 0].set_ylabel(name)
plt.show()
