"""Write a report of a model on held-out data, and read where it is wrong."""

import dualfield
from dualfield.io import read_conll
from dualfield.metrics import span_errors

model = dualfield.load("names.model")
rows = read_conll("dev.conll")
X, y = [[[row[i] for row in one] for one in rows] for i in (0, 1)]
model.report("report.html", X, y)
print(span_errors(y, model.predict(X)))

# Checks
from collections import Counter
from pathlib import Path

page = Path("report.html").read_text(encoding="utf-8")
assert "<svg" in page
assert "calibration" in page.lower()
kinds = Counter(error.kind for error in span_errors(y, model.predict(X)))
assert sum(kinds.values()) > 0
assert set(kinds) <= {"missed", "spurious", "boundary", "type"}
