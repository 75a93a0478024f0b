"""Kernel logistic regression in the place of SVC(probability=True)."""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualfield import KernelLogisticRegression

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = make_pipeline(StandardScaler(), KernelLogisticRegression(C=10.0)).fit(X_train, y_train)
print(model.score(X_test, y_test), model.predict_proba(X_test[:3]))

# Checks
from sklearn.metrics import log_loss

proba = model.predict_proba(X_test)
assert (proba.argmax(axis=1) == model.predict(X_test)).all()
assert log_loss(y_test, proba) < 0.15
assert model[-1].dual_gap_ <= 1e-3 * model[-1].objective_
