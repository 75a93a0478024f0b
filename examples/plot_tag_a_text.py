"""
Named entity recognition with a CRF
===================================

A conditional random field learns from sentences with annotated names of people and
places. Then it finds names in new sentences, with a probability for every label.

The labels follow the usual scheme: ``B-PER`` begins the name of a person, ``I-PER``
goes on with it, ``B-LOC`` and ``I-LOC`` do the same for places, and ``O`` is everything
else.
"""

import matplotlib.pyplot as plt
import numpy as np

from dualfield import CRF
from dualfield.plotting import MarginalsDisplay

# %%
# Twenty sentences to learn from. A real project has some thousands, in a file: see
# :ref:`sphx_glr_gallery_plot_conll_file.py`.

MARKED = """
Mira/B-PER Holm/I-PER lives/O in/O Bergen/B-LOC ./O
Last/O week/O Tomas/B-PER Vance/I-PER moved/O to/O Leeds/B-LOC ./O
The/O train/O from/O Leeds/B-LOC to/O York/B-LOC was/O late/O ./O
Holm/B-PER wrote/O to/O Mrs/O Vance/B-PER again/O ./O
Nobody/O in/O York/B-LOC had/O heard/O of/O Ines/B-PER Duarte/I-PER ./O
Mr/O Duarte/B-PER opened/O a/O shop/O in/O New/B-LOC Haven/I-LOC ./O
Tomas/B-PER sold/O the/O house/O near/O Bergen/B-LOC ./O
We/O met/O Ines/B-PER at/O the/O station/O ./O
Her/O brother/O Pavel/B-PER studied/O in/O Graz/B-LOC ./O
Pavel/B-PER Duarte/I-PER left/O Graz/B-LOC in/O May/O ./O
The/O old/O harbour/O of/O Bergen/B-LOC is/O quiet/O now/O ./O
In/O New/B-LOC Haven/I-LOC it/O rained/O ./O
Mrs/O Holm/B-PER asked/O Tomas/B-PER about/O Graz/B-LOC ./O
He/O said/O that/O Mira/B-PER would/O come/O ./O
They/O travelled/O from/O Porto/B-LOC to/O New/B-LOC Haven/I-LOC ./O
A/O letter/O from/O Ruth/B-PER Adler/I-PER arrived/O ./O
Ruth/B-PER lives/O near/O Porto/B-LOC ./O
Mr/O Adler/B-PER never/O left/O York/B-LOC ./O
The/O shop/O in/O Leeds/B-LOC belongs/O to/O Ruth/B-PER ./O
Mira/B-PER Holm/I-PER met/O Pavel/B-PER in/O May/O ./O
"""
pairs = [
    [token.rsplit("/", 1) for token in line.split()]
    for line in MARKED.strip().splitlines()
]
sentences = [[word for word, _ in sentence] for sentence in pairs]
y = [[label for _, label in sentence] for sentence in pairs]
print(sentences[0], y[0], sep="\n")

# %%
# Each word is described by a dict: the word itself, its end, whether it has a capital,
# and its neighbours. These are the features of the model. An unknown word still has a
# suffix and neighbours.


def describe(words):
    items = []
    for at, word in enumerate(words):
        item = {"word": word.lower(), "end": word[-2:], "capital": word[0].isupper()}
        item["before"] = words[at - 1].lower() if at > 0 else "(start)"
        item["after"] = words[at + 1].lower() if at + 1 < len(words) else "(end)"
        items.append(item)
    return items


X = [describe(words) for words in sentences]
print(X[0][1])

# %%
# ``constraints="BIO"`` forbids invalid spans, such as ``I-LOC`` after ``O``. The fit
# ends with a certificate: no other weights have an objective that is lower by more than
# ``dual_gap_``.

model = CRF(C=3.0, constraints="BIO", random_state=0).fit(X, y)
print(f"objective {model.objective_:.3f}")
print(f"at most {model.dual_gap_:.4f} above the best possible")

# %%
# A new sentence. *Anders*, *Lund*, *Malmo* and *lived* never occurred above.

words = [
    "Mr",
    "Anders",
    "Lund",
    "lived",
    "in",
    "Malmo",
    "before",
    "he",
    "met",
    "Ruth",
    ".",
]
for word, label in zip(words, model.predict_single(describe(words)), strict=True):
    print(f"{label:6} {word}")

# %%
# Spans, that is whole names, have the probability of exactly this span:

for span in model.predict_spans([describe(words)])[0]:
    name = " ".join(words[span.start : span.stop])
    print(f"{span.type}  {name:12}  {span.probability:.2f}")

# %%
# The sentence with the labels of the prediction, shaded by how sure the model is of
# each:

# sphinx_gallery_thumbnail_number = 2
MarginalsDisplay.from_estimator(model, describe(words), tokens=words).plot()
plt.show()

# %%
# *Malmo* is pale. What else might it be? The figure shows the probability of every
# label at every word. All of it comes from the same model that made the prediction,
# exactly; nothing was fitted afterwards.

marginals = model.predict_proba([describe(words)])[0]
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
image = ax.imshow(marginals.T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
ax.set_xticks(range(len(words)), words)
ax.set_yticks(range(len(model.classes_)), model.classes_)
for at, label in np.argwhere(marginals >= 0.05):
    share = marginals[at, label]
    ax.text(
        at,
        label,
        f"{share:.2f}",
        ha="center",
        va="center",
        size=8,
        color="white" if share > 0.6 else "black",
    )
fig.colorbar(image)
plt.show()
