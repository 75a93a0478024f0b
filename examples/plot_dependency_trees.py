"""
Find the heads of words
=======================

A dependency tree joins every word to its head. A CRF over all such trees learns them
from annotated sentences, gives every arc its exact probability, and finds the best tree
that agrees with what one knows.
"""

import matplotlib.pyplot as plt
import numpy as np

from dualfield import CRF
from dualfield.metrics import attachment_scores
from dualfield.plotting import ArcDisplay
from dualfield.structures import Dependency

# %%
# Sentences of a small language, with the head of each word, counted from 1 (0 is the
# root), and a label. Adverbs stand before or behind the verb that they belong to; of
# two verbs, the second is the complement of the first.

rng = np.random.default_rng(1)
nouns = ["dog", "cat", "bird", "child", "fish"]
verbs = ["sees", "hears", "likes", "says"]


def phrase(label):
    """Words, and for each how far its head is: None is the head of the phrase."""
    words = [("the", "DT", 1, "det"), (rng.choice(nouns), "NN", None, label)]
    if rng.random() < 0.4:
        words[1:1] = [(rng.choice(["old", "red", "shy"]), "JJ", 1, "amod")]
        words[0] = ("the", "DT", 2, "det")
    return words


def clause(label, depth=0):
    parts = [phrase("nsubj"), [(rng.choice(verbs), "VB", None, label)]]
    verb = 1
    if rng.random() < 0.4:
        parts.insert(rng.integers(1, 3), [("often", "RB", None, "advmod")])
        verb = next(at for at, part in enumerate(parts) if part[0][1] == "VB")
    is_nested = depth < 2 and rng.random() < 0.4
    parts.append(clause("ccomp", depth + 1) if is_nested else phrase("obj"))
    sizes = np.cumsum([0, *map(len, parts)])
    place = int(sizes[verb])  # of the verb
    found = []
    for at, part in enumerate(parts):
        for offset, (word, tag, far, name) in enumerate(part):
            is_top = far is None and at != verb
            own = int(sizes[at]) + offset
            found.append((word, tag, place - own if is_top else far, name))
    return found


def sentence():
    words = clause("root")
    heads = [
        (0 if far is None else at + far, name)
        for at, (*_, far, name) in enumerate(words, start=1)
    ]
    return [(str(word), tag) for word, tag, *_ in words], heads


data = [sentence() for _ in range(120)]
X, y = [tokens for tokens, _ in data], [heads for _, heads in data]
X_train, y_train, X_test, y_test = X[:20], y[:20], X[20:], y[20:]

# %%
# ``Dependency`` has a row for every arc that a sentence may have, and finds the best
# tree among all that are projective. Features of arcs are texts with macros: words and
# tags of head and child, direction and distance, and the tags in between.

texts = [
    "%x[head]/%x[child]",
    "%x[head,1]/%x[child,1]/%n",
    "%x[head,1]/%b[1]/%x[child,1]",
]
model = CRF(Dependency(arc_features=texts)).fit(X_train, y_train)
scores = attachment_scores(y_test, model.predict(X_test))
print(f"right heads (UAS):            {scores.uas:.3f}")
print(f"right heads and labels (LAS): {scores.las:.3f}")
print(f"sentences right:              {scores.exact_match:.3f}")

# %%
# A sentence with the probability of each arc. Arcs lead from heads to dependents, the
# thicker, the more probable.

longest = max(range(len(X_test)), key=lambda at: len(X_test[at]))
display = ArcDisplay.from_estimator(model, X_test[longest], y_test[longest])
print(display)
display.plot()

# %%
# The sentence with the arc of which the model is least sure. Wrong arcs are red, and
# the true ones are dashed below the words.

arcs = [
    ArcDisplay.from_estimator(model, tokens, heads, direction="down")
    for tokens, heads in zip(X_test, y_test, strict=True)
]
least = min(range(len(arcs)), key=lambda at: min(arcs[at].probabilities))
arcs[least].plot()

# %%
# What is known of a tree can be told: here, that the last word hangs from the first
# verb.

tokens = X_test[least]
verb = 1 + next(at for at, (_, tag) in enumerate(tokens) if tag == "VB")
known = [None] * (len(tokens) - 1) + [verb]
(told,) = model.predict([tokens], known=[known])
print(told)

# %%
# Training sentences need not be annotated throughout: heads that are not known are
# None, and the likelihood adds up all trees that agree with the others.

partly = [[arc if rng.random() < 0.7 else None for arc in heads] for heads in y_train]
half = CRF(Dependency(arc_features=texts)).fit(X_train, partly)
print(f"LAS with seven heads of ten: {half.score(X_test, y_test):.3f}")
plt.show()
