"""
Inspect a CRF: weights, transitions, explanations
=================================================

A linear model can be read. This example trains a CRF that understands commands to a
house, then looks at its weights, at its transitions, and at the reasons for one of its
predictions.
"""

import random

import matplotlib.pyplot as plt

from dualfield import CRF
from dualfield.plotting import TopFeaturesDisplay, TransitionDisplay

# %%
# The commands are made up from patterns. In braces is what has to be found: things,
# rooms and times.

PATTERNS = [
    "turn on the {thing} in the {room}",
    "please switch off the {thing} at {time}",
    "is the {thing} in the {room} still on",
    "{room} {thing} off",
    "wake me at {time} with the {thing}",
    "dim the {thing} in {room} until {time}",
    "turn the {thing} off",
    "make it warmer in the {room} before {time}",
]
FILLERS = {
    "thing": [
        "light",
        "lamp",
        "radio",
        "heating",
        "reading lamp",
        "coffee machine",
        "ceiling light",
        "fan",
    ],
    "room": [
        "kitchen",
        "bath room",
        "living room",
        "hall",
        "bed room",
        "garage",
        "study",
    ],
    "time": [
        "seven",
        "half past six",
        "noon",
        "ten o'clock",
        "quarter to nine",
        "midnight",
        "sunset",
    ],
}


def command(rng):
    rows = []
    for piece in rng.choice(PATTERNS).split():
        kind = piece.strip("{}")
        if kind in FILLERS:
            words = rng.choice(FILLERS[kind]).split()
            rows += [
                (word, f"{'I' if at else 'B'}-{kind.upper()}")
                for at, word in enumerate(words)
            ]
        else:
            rows.append((piece, "O"))
    return rows


def describe(words):
    before, after = ["(start)", *words[:-1]], [*words[1:], "(end)"]
    return [
        {"word": word, "before": left, "after": right}
        for word, left, right in zip(words, before, after, strict=True)
    ]


rng = random.Random(0)
commands = [command(rng) for _ in range(150)]
X = [describe([word for word, _ in rows]) for rows in commands]
y = [[label for _, label in rows] for rows in commands]
model = CRF(C=2.0, constraints="BIO", tol=1e-6, random_state=0).fit(X, y)

# %%
# ``top_features`` ranks the weights, of the whole model or of one label. A positive
# weight is evidence for a label. The problem is convex and solved to a known gap, so
# the weights do not depend on the start.

print(model.top_features(4))

# %%
print(model.top_features(5, label="B-TIME"))

# %%
# The weights are also there as plain data: dicts as sklearn-crfsuite has them, and
# arrays.

print(round(model.state_features_["before:at", "B-TIME"], 3))
print(round(model.transition_features_["B-ROOM", "I-ROOM"], 3))
print(model.coef_.shape, model.transitions_.shape)

# %%
# **One prediction.** ``explain`` compares the predicted labels with the best labelling
# that has another label at a word. The listed contributions add up to the difference of
# their scores, exactly.

words = ["switch", "on", "the", "reading", "lamp", "in", "the", "guest", "room"]
explanation = model.explain(describe(words))
print(*zip(words, explanation.labels, strict=True), sep="\n")

# %%
# Why is the unknown word *guest* the beginning of a room?

print(explanation[words.index("guest")])

# %%
# **Pictures.** The attributes of each label with the largest weights, for it and
# against it:

# sphinx_gallery_thumbnail_number = 2
TopFeaturesDisplay.from_estimator(model, n=4).plot(n_columns=2)
plt.show()

# %%
# And the transitions. Rows are the label on the left; what ``constraints="BIO"``
# forbids is marked.

TransitionDisplay.from_estimator(model).plot()
plt.show()
