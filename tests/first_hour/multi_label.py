"""Several labels for each row, predicted together."""

from sklearn.datasets import make_multilabel_classification

from dualfield import ConditionalGraphicalModel

X, Y = make_multilabel_classification(n_samples=300, n_classes=4, random_state=0)
X = X / X.std(axis=0)
model = ConditionalGraphicalModel("tree", C=1.0, gamma=0.05, random_state=0).fit(X[:200], Y[:200])
print(model.graph_, model.predict(X[200:203]))

# Checks
import numpy as np

found = model.predict(X[200:])
assert found.shape == (100, 4)
often = (Y[:200].mean(axis=0) > 0.5).astype(int)
assert (found != Y[200:]).mean() < 0.8 * (often != Y[200:]).mean()
assert len(np.unique(np.concatenate(model.graph_))) == 4
