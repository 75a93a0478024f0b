# Choose C by the F1 of names on held-out data, and keep the best model.
dualfield tune train.conll --dev dev.conll --model tuned.model > table.txt
# Checks: the model that was written has the C of the best score.
python - <<'END'
import dualfield
from dualfield.io import read_conll
from dualfield.metrics import span_f1_score

X, y = [[[row[i] for row in one] for one in read_conll("dev.conll")] for i in (0, 1)]
X_train, y_train = [[[row[i] for row in one] for one in read_conll("train.conll")] for i in (0, 1)]
tuned = dualfield.load("tuned.model")
assert 0.1 <= tuned.C <= 100
for C in (0.1, 1.0):
    other = dualfield.CRF(C=C, template="default", random_state=0).fit(X_train, y_train)
    assert span_f1_score(y, tuned.predict(X)) >= span_f1_score(y, other.predict(X)) - 0.005
END
