"""
Train a CRF on partly labelled data
===================================

In many corpora some names are annotated and others are missing, or annotations come
from an incomplete list. Training on such data as they are teaches the model that
missing names are not names.

A CRF can use partial labels instead: ``None`` in ``y`` is an unknown label, and a set
of labels means *one of these*. Training then maximises the marginal likelihood of the
known labels, summed over the unknown ones.
"""

import random

import matplotlib.pyplot as plt

from dualfield import CRF
from dualfield.metrics import span_scores

# %%
# The texts are short messages with names of people and places, all in small letters.
# The names are made of syllables, so the model cannot memorise them and has to use
# their context.

PATTERNS = """
    {per} is in {loc} with {per} | meet {per} at the station in {loc} |
    the train to {loc} is late | call {per} before you leave {loc} |
    {per} said that {loc} was nice | from {loc} we went to {loc} by car |
    ask {per} or {per} about the keys | nothing new in {loc} |
    tell {per} that the shop is closed | i think {per} lives near {loc} now
""".split("|")
SYLLABLES = "ba den ka lo mi na or pe ra sel to van wi zu".split()


def message(rng):
    words, labels = [], []
    for piece in rng.choice(PATTERNS).split():
        if piece in ("{per}", "{loc}"):
            kind = piece.strip("{}").upper()
            name = [
                "".join(rng.choices(SYLLABLES, k=rng.randint(2, 3)))
                for _ in range(rng.choice([1, 1, 2]))
            ]
            words += name
            labels += [f"{'I' if at else 'B'}-{kind}" for at in range(len(name))]
        else:
            words.append(piece)
            labels.append("O")
    return words, labels


def describe(words):
    before, after = ["(start)", *words[:-1]], [*words[1:], "(end)"]
    return [
        {"word": word, "end": word[-2:], "before": left, "after": right}
        for word, left, right in zip(words, before, after, strict=True)
    ]


rng = random.Random(0)
train, test = [message(rng) for _ in range(200)], [message(rng) for _ in range(300)]
X_train, X_test = ([describe(words) for words, _ in part] for part in (train, test))
y_test = [labels for _, labels in test]
print(*train[0], sep="\n")

# %%
# Now remove annotations: only a fraction ``share`` of the names stays marked. An
# unmarked word that is one of a few dozen known non-names is ``O``. Any other is
# unknown: ``None``.

PLAIN = {word for pattern in PATTERNS for word in pattern.split()}


def overlook(words, labels, share, rng):
    as_marked, as_known, seen = [], [], True
    for word, label in zip(words, labels, strict=True):
        seen = seen if label.startswith("I-") else rng.random() < share
        mark = label if seen and label != "O" else "O"
        as_marked.append(mark)
        as_known.append("O" if word in PLAIN else mark if mark != "O" else None)
    return as_marked, as_known


print(overlook(*train[0], 0.5, random.Random(1)))

# %%
# Both readings of the same marks, from nearly complete to very incomplete. Partly
# labelled problems are not convex, so these fits have no duality gap; they stop where
# the gradient is small.

shares = [1.0, 0.8, 0.6, 0.4, 0.2, 0.1]
scores = {"overlooked names read as O": [], "overlooked names read as unknown": []}
for share in shares:
    rng = random.Random(2)
    readings = zip(
        *(overlook(words, labels, share, rng) for words, labels in train), strict=True
    )
    for results, y in zip(scores.values(), readings, strict=True):
        model = CRF(C=1.0, random_state=0).fit(X_train, list(y))
        results.append(span_scores(y_test, model.predict(X_test)).overall)

for share, one, other in zip(shares, *scores.values(), strict=True):
    print(f"{share:4.0%} marked: recall {one.recall:.2f} and {other.recall:.2f}")

# %%
# With complete marks the task is easy, and both readings are the same. As annotations
# disappear, the usual reading loses names, because the model learns that many names are
# not names. With partial labels it holds until more than half of the annotations are
# gone. Below that there is too little data for either.

fig, axes = plt.subplots(2, 1, figsize=(6, 5), sharex=True, layout="constrained")
for ax, measure in zip(axes, ("precision", "recall"), strict=True):
    for (name, results), marker in zip(scores.items(), "os", strict=True):
        ax.plot(
            shares,
            [getattr(result, measure) for result in results],
            marker=marker,
            label=name,
        )
    ax.set(ylabel=f"{measure} of whole names", ylim=(-0.03, 1.03))
axes[0].legend(loc="lower left")
axes[1].set(xlabel="share of names that are marked")
axes[1].invert_xaxis()
plt.show()
