"""
Segments that have typical lengths
==================================

A noisy signal switches between three states, each of which lasts for a typical
time. A chain knows which state follows which; that a state lasts eight steps, or
twenty, it cannot say: its states last for geometric times. A semi-Markov model has
a weight for each length, and finds the boundaries where the signal alone is too
noisy.
"""

# %%
# The signal: states a, b and c have levels that overlap, and lengths that hardly do.
import matplotlib.pyplot as plt
import numpy as np

from dualfield import CRF
from dualfield.structures import SemiMarkov

LEVEL, LENGTH = {"a": 0.0, "b": 1.0, "c": 2.0}, {"a": 8, "b": 14, "c": 20}


def draw(rng, n_segments=8, noise=2.0):
    """One signal and its states."""
    states, state = [], rng.choice(list("abc"))
    for _ in range(n_segments):
        states += [state] * max(1, round(rng.normal(LENGTH[state], 1.5)))
        state = rng.choice([other for other in "abc" if other != state])
    signal = np.array([LEVEL[one] for one in states]) + noise * rng.normal(
        size=len(states)
    )
    return np.column_stack([signal, signal**2, np.ones(len(signal))]), states


rng = np.random.default_rng(0)
train = [draw(rng) for _ in range(80)]
test = [draw(rng) for _ in range(80)]
X, y = [rows for rows, _ in train], [states for _, states in train]
X_test, y_test = [rows for rows, _ in test], [states for _, states in test]

# %%
# Both models see the same signal; the second one has lengths of at most thirty steps.
chain = CRF("chain", features="all").fit(X, y)
segments = CRF(SemiMarkov(max_length=30), features="all").fit(X, y)


def found_boundaries(model, slack=1):
    """The share of true boundaries that are found, and of found ones that are true."""
    hits = found = true = right = 0
    for labels, states in zip(model.predict(X_test), y_test, strict=True):
        ours, theirs = (
            {t for t in range(1, len(one)) if one[t] != one[t - 1]}
            for one in (labels, states)
        )
        hits += sum(any(abs(t - u) <= slack for u in ours) for t in theirs)
        right += sum(any(abs(t - u) <= slack for u in theirs) for t in ours)
        found, true = found + len(ours), true + len(theirs)
    return hits / true, right / max(found, 1)


for name, model in (("chain", chain), ("segments", segments)):
    recall, precision = found_boundaries(model)
    share = model.score(X_test, y_test)
    print(f"{name:9} states right {share:.1%}, boundaries found {recall:.1%},", end=" ")
    print(f"of those found right {precision:.1%}")

# %%
# One test signal with its true states and those of both models, and the weights of
# the lengths, which show what was put in.
fig, (top, bottom) = plt.subplots(2, 1, figsize=(8, 5.5), layout="constrained")
colours = {"a": "#0072b2", "b": "#e69f00", "c": "#009e73"}
example = 0
top.plot(X_test[example][:, 0], color="0.6", linewidth=0.8)
rows = {"truth": y_test[example]}
rows |= {"chain": chain.predict(X_test)[example]}
rows |= {"segments": segments.predict(X_test)[example]}
for row, (name, labels) in enumerate(rows.items()):
    heights, hues = [-7 - 1.5 * row] * len(labels), [colours[one] for one in labels]
    top.scatter(range(len(labels)), heights, c=hues, marker="s", s=9)
    top.text(-2, heights[0], name, ha="right", va="center", fontsize=9)
top.set(
    yticks=[],
    xlabel="step",
    title="A noisy signal, its states, and what the models say",
    xlim=(-18, None),
)
kinds = segments.structure_.kinds.names
for kind, weights in zip(kinds, segments.transitions_[:, len(kinds) :], strict=True):
    bottom.plot(
        range(1, 31),
        weights,
        color=colours[kind],
        label=f"{kind} (mean length {LENGTH[kind]})",
    )
bottom.set(xlabel="length of a segment", ylabel="weight", title="Weights of lengths")
bottom.legend()
plt.show()
