"""
Parse sentences into trees
==========================

Did she see the man with her telescope, or the man who has one? A grammar allows both
trees; the words tell which is meant. A CRF over trees learns it from examples, and
gives every bracket its exact probability.
"""

import matplotlib.pyplot as plt
import numpy as np

from dualfield import CRF
from dualfield.data import ParseTree
from dualfield.metrics import parse_scores
from dualfield.plotting import TreeDisplay

# %%
# A treebank from a small grammar. A phrase such as "with the telescope" belongs to the
# verb if its noun is a tool, and to the noun before it otherwise. One sentence in
# twelve was annotated the other way.

rng = np.random.default_rng(0)
people = ["woman", "man", "boy", "girl", "child"]
tools = ["telescope", "camera", "lens"]
things = ["hat", "dog", "book", "coat"]


def word(tag, choices):
    return f"({tag} {rng.choice(choices)})"


def noun_phrase(nouns):
    adjective = word("JJ", ["old", "small", "tall"]) if rng.random() < 0.3 else ""
    return f"(NP {word('DT', ['the', 'a'])} {adjective} {word('NN', nouns)})"


def sentence():
    subject, target = noun_phrase(people), noun_phrase(people)
    is_tool = rng.random() < 0.5
    phrase = f"(PP (IN with) {noun_phrase(tools if is_tool else things)})"
    verb = word("VBD", ["saw", "watched", "found"])
    if is_tool != (rng.random() < 1 / 12):
        return f"(S {subject} (VP {verb} {target} {phrase}))"
    return f"(S {subject} (VP {verb} (NP {target} {phrase})))"


trees = [ParseTree.from_brackets(sentence()) for _ in range(300)]
print(trees[0])

# %%
# The input of the model is words with their tags; a tree has them, too.

X = [tree.tokens() for tree in trees]
X_train, y_train, X_test, y_test = X[:200], trees[:200], X[200:], trees[200:]

# %%
# ``structure="spans"`` scores every span of a sentence with every label, and finds the
# best tree among all of them. Features of spans are made of words and tags at their
# ends and around them.

model = CRF("spans").fit(X_train, y_train)
scores = parse_scores(y_test, model.predict(X_test))
print(f"F1 by evalb's rules: {scores.f1:.3f}")
print(f"trees right:         {scores.complete_match:.3f}")

# %%
# One sentence with the probability of each bracket: the colour is the stronger, the
# more probable.

telescope = "the woman saw a man with a telescope".split()
tags = "DT NN VBD DT NN IN DT NN".split()
question = list(zip(telescope, tags, strict=True))
display = TreeDisplay.from_estimator(model, question)
print(display)
display.plot()

# %%
# The second best tree attaches the phrase to the noun, as one annotation in twelve
# does. Its probability is that of the whole tree.

(best,) = model.k_best([question], k=2)
for tree, probability in best:
    print(f"{probability:.3f}  {tree}")

# %%
# What one knows can be told: here, that "a man with a telescope" is a phrase.

(told,) = model.predict([question], known=[[(3, 8, "NP")]])
TreeDisplay(telescope, told, tags=tags).plot()

# %%
# An error, by the colours of the display: a red border is wrong, what is dashed was
# missed.

wrong = [
    at
    for at, (one, other) in enumerate(zip(model.predict(X_test), y_test, strict=True))
    if one != other
]
TreeDisplay.from_estimator(model, X_test[wrong[0]], y_test[wrong[0]]).plot()
plt.show()
