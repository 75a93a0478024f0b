"""
Count and train a grammar
=========================

A grammar knows which trees a sentence can have; probabilities of its rules say which of
them is meant. They can be counted in a treebank, or trained for their predictions. A
grammar also says how likely a sentence is, and makes use of trees known in part.
"""

import numpy as np

from dualfield import CRF, DiscriminativePCFG
from dualfield.data import ParseTree, PartialTree
from dualfield.metrics import parse_f1_score
from dualfield.plotting import TreeDisplay
from dualfield.structures import Grammar, Scores

# %%
# A grammar as one writes it, with probabilities. "cooks fish with forks" has two trees:
# the forks belong to the cooking or to the fish.

source = Grammar.from_rules(
    """
    S  -> NP VP [1.0]
    NP -> 'cooks' [0.3] | 'fish' [0.3] | 'forks' [0.2] | NP PP [0.2]
    VP -> V NP [0.6] | V NP PP [0.4]
    PP -> P NP [1.0]
    V  -> 'eat' [0.5] | 'buy' [0.5]
    P  -> 'with' [0.7] | 'near' [0.3]
    """
)
words = ["cooks", "eat", "fish", "with", "forks"]
shape = source.shape([words])
scores = Scores(
    np.zeros((shape.n_nodes, source.n_labels)),
    transition=source.log_probabilities,
    shape=shape,
)
best = source.k_best(scores, 2)
for labels, logarithm in zip(best.labels, best.scores[0], strict=True):
    print(f"{np.exp(logarithm):.6f}  {source.trees(shape, labels)[0]}")

# %%
# A treebank: the trees of random sentences, drawn with these probabilities, except that
# "near" never belongs to the verb. No grammar of this shape can say so.

rng = np.random.default_rng(0)


def noun_phrase():
    if rng.random() < 0.2:
        preposition = rng.choice(["with", "near"])
        return f"(NP {noun_phrase()} (PP (P {preposition}) {noun_phrase()}))"
    return f"(NP {rng.choice(['cooks', 'fish', 'forks'])})"


def sentence():
    verb = f"(V {rng.choice(['eat', 'buy'])})"
    phrase = f"(PP (P with) {noun_phrase()})" if rng.random() < 0.4 else ""
    return f"(S {noun_phrase()} (VP {verb} {noun_phrase()} {phrase}))"


trees = [ParseTree.from_brackets(sentence()) for _ in range(300)]
X = [tree.words() for tree in trees]
X_train, y_train, X_test, y_test = X[:200], trees[:200], X[200:], trees[200:]

# %%
# Rules are read off the trees. ``tags="predicted"``: the words are the input, and the
# tags above them are part of the trees. The same rules with counted probabilities, with
# probabilities trained for their predictions, and with weights of a CRF; last a CRF
# that also sees the words inside of brackets.

grammar = Grammar(tags="predicted", lexicon="seen")
counted = DiscriminativePCFG(eta=0.0, structure=grammar).fit(X_train, y_train)
trained = DiscriminativePCFG(eta=0.01, structure=grammar).fit(X_train, y_train)
field = CRF(grammar).fit(X_train, y_train)
more = Grammar(tags="predicted", lexicon="seen", span_features=["%b[0]", "%n"])
wider = CRF(more).fit(X_train, y_train)
models = {"counted": counted, "trained": trained, "CRF": field, "words in spans": wider}
for name, model in models.items():
    print(f"{name:>15}: F1 {parse_f1_score(y_test, model.predict(X_test)):.3f}")
print(f"gap of the trained probabilities: {trained.dual_gap_:.1e}")

# %%
# The probability of a sentence is the sum over its trees.

print(np.exp(counted.score_samples([["cooks", "eat", "fish"], words])).round(5))

# %%
# One sentence with the probability of each bracket, and the same one if it is known
# that the fish has the forks.

TreeDisplay.from_estimator(counted, words).plot()
print(counted.predict([words], known=[PartialTree([(2, 5, "NP")])])[0])
