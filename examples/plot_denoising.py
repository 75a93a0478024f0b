"""
Images: remove noise with exact inference
=========================================

Every pixel is black or white, and noise has covered which. A pixel alone says little,
but its neighbours have the same colour most of the time. With two labels whose pairs
attract each other the best picture of all 2 to the power of 6,400 can be found exactly,
by maximum flow, and a structural SVM learns from it how much neighbours should count.
"""

import matplotlib.pyplot as plt
import numpy as np

from dualfield import CRF, StructuredSVM
from dualfield.structures import Graph

# %%
# **The data** are pictures of discs, some of them holes, and strokes. The noise is as
# strong as the contrast. An image has the shape (height, width, n_features); the second
# feature is a constant, whose weight is an intercept.

rng = np.random.default_rng(1)
size = 80
rows, columns = np.indices((size, size))


def picture():
    truth = np.zeros((size, size), dtype=int)
    for k in range(10):
        (row, column), radius = rng.uniform(0, size, 2), rng.uniform(4, 14)
        disc = (rows - row) ** 2 + (columns - column) ** 2 <= radius**2
        truth[disc] = int(k % 3 != 2)
    for _ in range(5):
        (row, column), angle = rng.uniform(0, size, 2), rng.uniform(0, np.pi)
        along = (rows - row) * np.sin(angle) + (columns - column) * np.cos(angle)
        across = (rows - row) * np.cos(angle) - (columns - column) * np.sin(angle)
        truth[(np.abs(along) <= 30) & (np.abs(across) <= 2)] = 1
    noisy = truth + rng.normal(size=(size, size))
    return np.dstack([noisy, np.ones((size, size))]), truth


X, y = zip(*(picture() for _ in range(6)), strict=True)
X_train, y_train, X_test, y_test = X[:3], y[:3], X[3:], y[3:]

# %%
# **Training.** Pixels are joined to their neighbours on the right and below.
# ``inference="max_flow"`` finds the best labelling of every image, in training the best
# one of score plus cost. ``relaxation_`` is None: all of them were exact, and so is the
# gap of the fit.

model = StructuredSVM(Graph(inference="max_flow"), C=0.1, tol=1e-2)
model.fit(X_train, y_train)
right, down = model.transitions_
print("to the right:", right.round(2).tolist())
print("down:        ", down.round(2).tolist())
print("relaxation:  ", model.relaxation_)
print(f"relative gap: {model.dual_gap_ / model.objective_:.4f}")

# %%
# **Without neighbours** the same features make a logistic regression.


def pixels(images):
    return np.concatenate([image.reshape(size * size, -1) for image in images])


alone = CRF("single").fit(pixels(X_train), pixels(y_train).ravel())
independent = alone.predict(pixels(X_test)).reshape(-1, size, size)

# %%
# **Prediction.** ``return_bound=True`` tells that no other picture scores higher.

restored, bounds = model.predict(X_test, return_bound=True)
print("exact:", bounds.exact)
wrong = {
    "single pixels": np.mean(independent != np.array(y_test)),
    "structural SVM": np.mean(np.array(restored) != np.array(y_test)),
}
for name, share in wrong.items():
    print(f"{name:15} {share:6.1%} wrong")

# %%
# **What it looks like.** Discs and holes come back with clean borders. What is lost are
# parts that are thinner than the noise allows: the ends of strokes, and small gaps.

panels = {
    "with noise": [image[..., 0] for image in X_test],
    "truth": y_test,
    "single pixels": independent,
    "structural SVM": restored,
}
figure, axes = plt.subplots(3, 4, figsize=(8, 6.4), layout="constrained")
for column, (title, images) in zip(axes.T, panels.items(), strict=True):
    for axis, image in zip(column, images, strict=True):
        limits = (-1.5, 2.5) if title == "with noise" else (0, 1)
        axis.imshow(image, cmap="gray_r", vmin=limits[0], vmax=limits[1])
        axis.set(xticks=[], yticks=[])
    column[0].set_title(
        f"{title}\n{wrong[title]:.1%} wrong" if title in wrong else title
    )
