"""
Callbacks, early stopping and checkpoints
=========================================

``fit(monitor=...)`` takes a callback that is called after each pass over the data, with
a model that can already predict. The callback may record, plot, or end the fit.
``checkpoint=`` saves the state to a file, so that an interrupted fit can be resumed
with the same result.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from dualfield import CRF
from dualfield.datasets import load_digit_words
from dualfield.estimators import Checkpoint, EarlyStopping
from dualfield.plotting import ConvergenceDisplay

data = load_digit_words(n_words=400, language="dates", random_state=0)
images, labels = data.images, data.labels
X, y = [images[i] for i in data.train], [labels[i] for i in data.train]
X_dev, y_dev = [images[i] for i in data.test], [labels[i] for i in data.test]

# %%
# **Monitor.** The callback gets the current numbers and the current model. It does not
# influence the iterates.

history = []


def watch(moment, model):
    right = model.score(X_dev, y_dev)
    history.append((moment.passes, moment.seconds, "right digits", right))
    print(
        f"pass {moment.passes:4.1f}: gap {moment.relative_gap:8.1e}, {right:.1%} right"
    )


model = CRF(random_state=0).fit(X, y, monitor=watch)

# %%
# With such a history, ``ConvergenceDisplay`` draws the score beside objective and gap.
# The score has settled long before the gap is small: the certificate is about the
# objective, and the score on other data has no certificate.

# sphinx_gallery_thumbnail_number = 2
ConvergenceDisplay.from_estimator(model, history=history).plot(against="passes")
plt.show()

# %%
# **Stop.** A true return value ends the fit. ``EarlyStopping`` is such a monitor: it
# ends the fit when the score on held-out data has not risen for some passes, and keeps
# the best model. ``status_`` says how the fit ended, and the gap bounds what was lost.

stopping = EarlyStopping(X_dev, y_dev, patience=5)
stopped = CRF(random_state=0).fit(X, y, monitor=stopping)
print(f"{stopped.status_.value} after {stopped.trace_.passes[-1]:.0f} passes")
print(f"at most {stopped.dual_gap_ / stopped.objective_:.1%} above the best objective")

fig, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
ax.plot(
    [row[0] for row in history], [row[3] for row in history], marker="o", markersize=3
)
ax.axvline(stopped.trace_.passes[-1], color="C3", linestyle="--", label="stopped early")
ax.set(xlabel="passes over the data", ylabel="share of digits that are right")
ax.legend(loc="lower right")
plt.show()

# %%
# Stopping by a score means choosing by it: the data that were watched are no longer
# unseen. Keep others for the final figure.
#
# **Resume.** The first fit below is interrupted, as if the machine had been switched
# off. The second one resumes from the file. Its weights are the same, bit for bit, as
# those of a fit that was never interrupted.

with tempfile.TemporaryDirectory() as folder:
    state = Checkpoint(Path(folder, "dates.checkpoint"), every=0.0)
    CRF(random_state=0).fit(
        X, y, checkpoint=state, monitor=lambda moment, model: moment.passes > 10
    )
    print("a file is left:", state.path.exists())
    resumed = CRF(random_state=0).fit(X, y, checkpoint=state)
    print("a file is left:", state.path.exists())
print("the same weights:", np.array_equal(resumed.parameters_, model.parameters_))
