"""
Grid search over C by span F1
=============================

A CRF is an estimator like any other of scikit-learn, so ``GridSearchCV`` can choose its
parameters. The criterion is the F1 score of whole spans, not accuracy: a model that
finds nothing has more than half of the labels right. The task is to find dates, times
and places in short messages.
"""

import random

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV

from dualfield import CRF
from dualfield.features import Template
from dualfield.metrics import (
    flat_accuracy_score,
    span_f1_score,
    span_f1_scorer,
    span_scores,
)

# %%
# Messages are drawn from patterns, with typing errors. One annotation in eight is
# missing, as in real data.

PATTERNS = """
    see you {day} at {time} | lunch in {place} {day} ? | back in {place} by {time} |
    the {time} train from {place} is cancelled | are you free {day} {time} ? |
    {place} is lovely {day} or not | i am late , say {time} | no trains to {place} |
    what about {day} instead of {day} | party {day} , bring cake |
    may i come {day} ? | it may rain in {place}
""".split("|")
FILLERS = {
    "day": "monday|tuesday|next friday|tomorrow|on the 4 th of june|sunday|in may",
    "time": "5 pm|half past six|noon|17:30|8|nine o'clock|quarter to 4|midnight",
    "place": "york|new haven|bath|the old town|reading|leeds|porto|the hague",
}


def mistype(word, rng):
    at = rng.randrange(len(word))
    other = word[:at] + rng.choice("aeinrst") + word[at + 1 :]
    return other if rng.random() < 0.15 else word


def message(rng, missed):
    words, labels = [], []
    for piece in rng.choice(PATTERNS).split():
        kind = piece.strip("{}")
        found = [piece]
        mark = "O"
        if kind in FILLERS:
            found = rng.choice(FILLERS[kind].split("|")).split()
            mark = "O" if rng.random() < missed else kind.upper()
        words += [mistype(word, rng) for word in found]
        labels += [
            "O" if mark == "O" else f"{'I' if at else 'B'}-{mark}"
            for at in range(len(found))
        ]
    return words, labels


rng = random.Random(0)
train = [message(rng, missed=0.125) for _ in range(150)]
test = [message(rng, missed=0.0) for _ in range(500)]
X_train, y_train = (list(part) for part in zip(*train, strict=True))
X_test, y_test = (list(part) for part in zip(*test, strict=True))
print(*zip(X_train[1], y_train[1], strict=True))

# %%
# ``template=`` makes attributes of plain words, so whole sentences go in and the search
# splits them. ``span_f1_scorer`` is what ``scoring=`` wants. ``tol=1e-2`` is enough to
# rank candidates; the winner is fitted again with a smaller one. C multiplies the loss:
# a larger C fits the data more closely.

search = GridSearchCV(
    CRF(template=Template.default(), constraints="BIO", tol=1e-2, random_state=0),
    {"C": 10.0 ** np.arange(-2, 4), "features": ["observed", "all"]},
    scoring=span_f1_scorer,
    cv=4,
)
search.fit(X_train, y_train)
print(search.best_params_, f"F1 {search.best_score_:.3f} in cross-validation")

# %%
# The winner, on messages that were never used:

best = search.best_estimator_.set_params(tol=1e-4).fit(X_train, y_train)
print(span_scores(y_test, best.predict(X_test)))

# %%
# Why not accuracy? This is the accuracy of finding nothing. Most corpora have even more
# ``O``.

nothing = [["O"] * len(labels) for labels in y_test]
print(f"accuracy {flat_accuracy_score(y_test, nothing):.2f}")
print(f"F1 of spans {span_f1_score(y_test, nothing):.2f}")

# %%
# The scores of the search, with the spread over the folds. On the left the penalty is
# too strong. Beyond C = 1 the curve is flat, so a coarse grid is enough. If the best
# value ever lies on the edge of a grid, move the grid.

fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
results = search.cv_results_
for features, marker in (("observed", "o"), ("all", "s")):
    chosen = np.flatnonzero(results["param_features"] == features)
    C = results["param_C"][chosen].astype(float)
    ax.errorbar(
        C,
        results["mean_test_score"][chosen],
        results["std_test_score"][chosen],
        marker=marker,
        capsize=3,
        label=f'features="{features}"',
    )
ax.set(xscale="log", xlabel="C", ylabel="F1 of whole spans, cross-validation")
ax.legend()
plt.show()
