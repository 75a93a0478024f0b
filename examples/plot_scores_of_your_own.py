"""
Viterbi and marginals on the scores of any classifier
=====================================================

A classifier uses one time step at a time. Often we know more: states last for a while,
and some never follow others. The structures of dualfield take scores from any source,
such as a classifier of another library, a neural network or a table, and compute the
best sequence, exact probabilities, and the best sequence under constraints.

Here a machine goes through four states, observed by a noisy sensor.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.naive_bayes import GaussianNB

from dualfield.structures import Chain, Scores

STATES = ["idle", "heating", "running", "cooling"]
rng = np.random.default_rng(0)


def record(n_rounds):
    lengths = rng.integers(8, 30, size=4 * n_rounds)
    states = np.repeat(np.arange(4 * n_rounds) % 4, lengths)
    temperature = np.array([20.0, 50.0, 80.0, 50.0])[states] + rng.normal(
        0, 14, states.size
    )
    noise = np.array([1.0, 1.3, 3.0, 1.0])[states] + rng.normal(0, 1.0, states.size)
    return np.column_stack([temperature, noise]), states


X_train, y_train = record(20)
X_test, y_test = record(20)
print(X_train.shape, [STATES[state] for state in y_train[[0, 20, 50]]])

# %%
# Any classifier with ``predict_log_proba`` works. Heating and cooling look the same at
# any single time step, so it cannot distinguish them.

classifier = GaussianNB().fit(X_train, y_train)
alone = classifier.predict(X_test)
print(f"moment by moment: {np.mean(alone != y_test):.1%} wrong")

# %%
# Transitions can be counted. Only four of them can happen beside staying: idle to
# heating, and so on around. ``allowed`` forbids the rest, so no sequence with such a
# step is ever returned, and its probability is exactly 0.

allowed = np.eye(4, dtype=bool) | np.roll(np.eye(4, dtype=bool), 1, axis=1)
counts = np.zeros((4, 4))
np.add.at(counts, (y_train[:-1], y_train[1:]), 1)
transition = np.where(
    allowed, np.log(np.maximum(counts, 1) / counts.sum(axis=1, keepdims=True)), 0.0
)
chain = Chain(4, allowed=allowed)

# %%
# Logarithms of probabilities are scores. A classifier's already contain how frequent
# each state is, and so do transitions; that is counted once, so it is taken out of the
# former.

node = classifier.predict_joint_log_proba(X_test) - np.log(classifier.class_prior_)
scores = Scores(node, transition=transition)
together = chain.argmax(scores)
print(f"as a sequence:    {np.mean(together != y_test):.1%} wrong")

# %%
# Other queries on the same scores: the marginals of each time step, the probability of
# the best sequence, and the alternatives to it.

answer = chain.marginals(scores)
best = chain.k_best(scores, 3)
of_truth = answer.node[np.arange(y_test.size), y_test]
print(f"mean probability of the true state: {of_truth.mean():.3f}")
print("the three best sequences:", np.exp(best.scores[0] - answer.log_partition[0]))
for other in best.labels.reshape(3, -1)[1:]:
    print("differs from the best at", np.flatnonzero(other != together))

# %%
# The first 300 moments. Alone, the states flicker. As a sequence they do not, and where
# they change, the probabilities say that the moment is not quite certain.

shown = slice(0, 300)
fig, axes = plt.subplots(
    4,
    1,
    figsize=(9, 5),
    sharex=True,
    layout="constrained",
    height_ratios=[1.4, 1, 1, 1.4],
)
axes[0].plot(X_test[shown, 0], color="grey", linewidth=0.8)
axes[0].set_ylabel("temperature")
for ax, states, name in (
    (axes[1], alone, "moment by moment"),
    (axes[2], together, "as a sequence"),
):
    ax.step(
        np.arange(300),
        y_test[shown],
        where="mid",
        color="black",
        linewidth=3,
        alpha=0.2,
    )
    ax.step(np.arange(300), states[shown], where="mid", color="tab:blue", linewidth=1)
    ax.set(yticks=range(4), yticklabels=STATES, title=name)
axes[3].stackplot(np.arange(300), answer.node[shown].T, labels=STATES, alpha=0.8)
axes[3].set(ylim=(0, 1), title="probability of each state", xlabel="time")
axes[3].legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
plt.show()
