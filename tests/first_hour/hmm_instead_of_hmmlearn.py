"""A hidden Markov model of labelled states, which hmmlearn does not learn."""

from dualfield import DiscriminativeHMM

X = [["walk", "shop", "clean"], ["walk", "walk", "clean", "clean"], ["shop", "walk"]]
y = [["sun", "rain", "rain"], ["sun", "sun", "rain", "rain"], ["sun", "sun"]]
model = DiscriminativeHMM(eta=0.0).fit(X, y)
print(model.predict([["walk", "clean"]]), model.transmat_)

# Checks: hmmlearn with the same tables finds the same states.
import numpy as np
from hmmlearn.hmm import CategoricalHMM

peer = CategoricalHMM(n_components=2)
peer.startprob_, peer.transmat_, peer.emissionprob_ = model.startprob_, model.transmat_, model.emissionprob_
peer.n_features = len(model.symbols_)
codes = [[list(model.symbols_).index(word)] for sequence in X for word in sequence]
lengths = [len(sequence) for sequence in X]
states = model.classes_[peer.predict(codes, lengths)]
assert states.tolist() == [label for labels in model.predict(X) for label in labels]
assert np.isclose(peer.score(codes, lengths), model.score_samples(X).sum())
