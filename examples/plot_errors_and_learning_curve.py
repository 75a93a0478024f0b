"""
Named entities: errors, learning curve and calibration
======================================================

A score says how good a tagger is, not what goes wrong or what would help. This example
looks at both: it sorts the errors of a CRF, draws the sentences behind them, and asks
whether more training data would improve it. The last part compares the probabilities of
a structural SVM before and after calibration.
"""

from collections import Counter

import matplotlib.pyplot as plt

from dualfield import CRF, StructuredSVM
from dualfield.datasets import load_town_news
from dualfield.metrics import span_errors, span_scores
from dualfield.plotting import (
    CalibrationChangeDisplay,
    LearningCurveDisplay,
    MarginalsDisplay,
)

# %%
# The corpus is generated from a grammar and comes with the library. The names of the
# test sentences are partly new, so the words alone do not tell everything: the default
# template adds neighbours, prefixes, suffixes and shapes.

news = load_town_news()
X_train, X_test = (
    [[(word,) for word in sentence] for sentence in part]
    for part in (news.X_train, news.X_test)
)
model = CRF(template="default", constraints="BIO").fit(X_train, news.y_train)
y_pred = model.predict(X_test)
print(span_scores(news.y_test, y_pred))

# %%
# What goes wrong
# ---------------
# Each wrong span is held against the true span that it overlaps. A *boundary* error has
# the right type, a *type* error overlaps a span of another type; a *missed* or
# *spurious* span has no counterpart.

errors = span_errors(news.y_test, y_pred)
for kind, count in Counter(error.kind for error in errors).most_common():
    print(f"{kind:<9} {count}")

# %%
# The first sentence with an error. Every type has its hue, and the stronger the colour,
# the more probable the span; the probability is exact, that of all labellings with this
# span. Frames mark errors.

at = errors[0].sequence
sentence = MarginalsDisplay.from_estimator(model, X_test[at], news.y_test[at])
print(sentence)
sentence.plot()
plt.show()

# %%
# ``model.report("report.html", X_test, news.y_test)`` writes a page with all of this.
#
# More data?
# ----------
# Copies of the model are fitted to growing parts of the training data. Where the curve
# of the held-out data still rises, more sentences help.

curve = LearningCurveDisplay.from_estimator(
    model, X_train, news.y_train, X_test, news.y_test, warm=True
)
print(curve.to_frame().to_string(index=False, float_format="{:.3f}".format))
# sphinx_gallery_thumbnail_number = 2
curve.plot()
plt.show()

# %%
# Margins as probabilities
# ------------------------
# A structural SVM has margins. ``calibrate`` chooses the temperature by which they are
# divided, on sentences that the model was not trained on; without it (T = 1), margins
# are taken for log-odds.

svm = StructuredSVM(template="default", constraints="BIO", random_state=0)
svm.fit(X_train[:300], news.y_train[:300])
svm.calibrate(X_train[300:], news.y_train[300:])
change = CalibrationChangeDisplay.from_estimator(svm, X_test, news.y_test)
print(change)
change.plot()
plt.show()
