"""
Label the nodes of a graph
==========================

People in a network have an opinion, of which their words say little. Most people agree
with those whom they follow. A model of nodes alone must guess; a model of the graph
lets neighbours help each other, with exact probabilities.
"""

import matplotlib.pyplot as plt
import numpy as np

from dualfield import CRF
from dualfield.plotting import ConfusionDisplay, GraphDisplay, TransitionDisplay

# %%
# Every graph is a small network. An edge leads from a person to one whom this person
# follows: ``(nodes, edges)``, attributes for each node, and pairs of nodes. Newcomers
# agree with the first person they follow nine times out of ten, and two of three words
# that they use are those of their opinion.

rng = np.random.default_rng(0)
opinions = np.array(["cats", "dogs", "fish"])


def network(n_people):
    edges, labels = [], [rng.integers(3)]
    for person in range(1, n_people):
        followed = rng.choice(
            person, size=min(person, rng.integers(1, 3)), replace=False
        )
        edges += [(person, int(one)) for one in followed]
        agrees = rng.random() < 0.9
        labels.append(labels[followed[0]] if agrees else rng.integers(3))
    said = [label if rng.random() < 2 / 3 else rng.integers(3) for label in labels]
    return ([[f"word={opinions[one]}"] for one in said], edges), opinions[
        labels
    ].tolist()


networks = [network(rng.integers(8, 15)) for _ in range(120)]
X, y = [graph for graph, _ in networks], [labels for _, labels in networks]
X_train, y_train, X_test, y_test = X[:80], y[:80], X[80:], y[80:]

# %%
# The same model with and without edges.

model = CRF("graph").fit(X_train, y_train)
alone = CRF("graph").fit([(nodes, []) for nodes, _ in X_train], y_train)
print(f"with edges:    {model.score(X_test, y_test):.3f}")
print(f"without edges: {alone.score([(nodes, []) for nodes, _ in X_test], y_test):.3f}")
print(f"relative gap:  {model.dual_gap_ / model.objective_:.0e}")

# %%
# One network: each node in the colour of its label, the larger, the more probable.
# Wrong ones have a red ring.

predicted = model.predict(X_test)
errors = [
    np.sum(np.array(one) != other) for one, other in zip(predicted, y_test, strict=True)
]
worst = int(np.argmax(errors))
GraphDisplay.from_estimator(model, X_test[worst], y_test[worst]).plot()

# %%
# The table of the edges: the label of the person who follows on the left. Opinions are
# shared along edges.

TransitionDisplay.from_estimator(model).plot()
ConfusionDisplay.from_estimator(model, X_test, y_test).plot()

# %%
# Images are graphs, too: their pixels are joined to their neighbours. Here the right
# half of a noisy picture is darker.


def picture():
    truth = np.tile(np.arange(12) >= rng.integers(3, 10), (8, 1)).astype(int)
    grey = truth + rng.normal(scale=0.8, size=truth.shape)
    return np.dstack([grey, np.ones_like(grey)]), truth


pictures = [picture() for _ in range(12)]
images, truths = [one for one, _ in pictures], [one for _, one in pictures]
painter = CRF("graph").fit(images[:10], truths[:10])
GraphDisplay.from_estimator(painter, images[-1], truths[-1]).plot()
plt.show()
