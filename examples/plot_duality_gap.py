"""
Duality gap: when has training converged?
=========================================

When has training converged? Most programs stop when the objective changes little.
dualfield computes two numbers: the objective, an upper bound on the optimum, and the
*dual value*, a lower bound. Their difference, the duality gap, certifies the distance
from the optimum.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dualfield import CRF
from dualfield.datasets import load_digit_words
from dualfield.plotting import ConvergenceDisplay

data = load_digit_words(n_words=300, language="dates", random_state=0)
images, labels = data.images, data.labels
X, y = [images[i] for i in data.train], [labels[i] for i in data.train]
X_test, y_test = [images[i] for i in data.test], [labels[i] for i in data.test]

# %%
# A CRF for handwritten dates, with the default tolerance of ``tol=1e-4``: stop when the
# gap is below a ten-thousandth of the dual value. ``trace_`` records both after each
# pass.

model = CRF(random_state=0).fit(X, y)
trace = model.trace_
print(f"{model.solver_}, {trace.passes[-1]:.0f} passes over the data")
lowest = model.objective_ - model.dual_gap_
print(f"objective {model.objective_:.4f}, and no weights reach below {lowest:.4f}")

# %%
# Check: a fit to a far smaller tolerance finds the optimum to many more digits. It lies
# between the bounds.

exact = CRF(random_state=0, tol=1e-9).fit(X, y)
print(f"the optimum is {exact.objective_:.6f}")
print(bool(model.objective_ - model.dual_gap_ <= exact.objective_ <= model.objective_))

# %%
# As curves: the objective decreases, the dual value increases, and the optimum lies
# between them.

close = CRF(random_state=0, tol=1e-6).fit(X, y)
# sphinx_gallery_thumbnail_number = 2
ConvergenceDisplay.from_estimator(close).plot(against="passes")
plt.show()

# %%
# Afterwards we can compare the gap with the true distance from the optimum, which is
# unknown during training. The gap is always above it, and not by much.

trace = close.trace_
fig, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
ax.semilogy(
    trace.passes,
    trace.gap / exact.objective_,
    marker="o",
    markersize=3,
    label="duality gap",
)
ax.semilogy(
    trace.passes,
    trace.objective / exact.objective_ - 1,
    marker="s",
    markersize=3,
    label="true distance",
)
ax.set(xlabel="passes over the data", ylabel="relative to the optimum")
ax.legend()
plt.show()

# %%
# **How small should it be?** Small enough that it does not matter beside other sources
# of error. Here the test error no longer changes after the first digits. A grid search
# may use ``tol=1e-2``; comparing two models weight by weight needs a smaller one.

for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6):
    fitted = CRF(random_state=0, tol=tol).fit(X, y)
    distance = np.linalg.norm(fitted.parameters_ - exact.parameters_) / np.linalg.norm(
        exact.parameters_
    )
    error = 1 - fitted.score(X_test, y_test)
    print(f"tol={tol:g}: weights off by {distance:.1e}, {error:.3f} of digits wrong")

# %%
# **When a fit has to stop early**, the gap bounds what is lost. There is a warning, the
# model works, and its certificate is valid.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always", ConvergenceWarning)
    short = CRF(random_state=0, solver="lbfgs", max_iter=40).fit(X, y)
print(caught[0].message)
bound = short.objective_ / (short.objective_ - short.dual_gap_) - 1
truth = short.objective_ / exact.objective_ - 1
print(f"at most {bound:.1%} above the optimum; truly {truth:.1%}")
