"""
Word segmentation: constraints and n-best labellings
====================================================

How should ``nowhere`` be split: *no where* or *now here*? This example trains a CRF to
split words that were written together, letter by letter. It uses constraints on
transitions, and the exact list of the k best labellings with their probabilities.
"""

import random

import matplotlib.pyplot as plt
import numpy as np

from dualfield import CRF
from dualfield.metrics import sequence_accuracy_score

WORDS = """
a about again all am an and any are at away back be bed been best big bird blue book
box boy but by cake car cat come cup day dog door down each eat end even every eye far
fast find fish five for free from game gave girl go good great green had hand has he
head hear her here him his hold home hot house how if in is it its just keep kind king
know last late left let light like line little live long look love made make man many
may me men mind moon more most much must my name near need never new next night no
none not now of off old on one only open or other our out over own part past place
play put rain ran rat read red rest ride right ring road room run said same sand saw
say sea see set she ship show side sing sit six sky so some son star stay step still
stop sun take talk tall ten that the their them then there these they thing think this
those three time to too top town tree try two under until up us use very wake walk
wall want war warm was water way we well went were what when where while white who why
will wind wish with wood word work world year yes you your
""".split()

# %%
# Four labels say what a letter does: ``B-W`` begins a word, ``I-W`` is inside, ``E-W``
# ends it, and ``S-W`` is a word of a single letter. The data are made of words drawn at
# random, two to four of them without spaces.


def label(word):
    return ["S-W"] if len(word) == 1 else ["B-W", *["I-W"] * (len(word) - 2), "E-W"]


def describe(text):
    padded = f"<<<{text}>>>"
    return [
        [
            f"{start}:{padded[at + 3 + start : at + 3 + stop]}"
            for start in range(-3, 1)
            for stop in range(1, 4)
        ]
        for at in range(len(text))
    ]


def draw(n, seed):
    rng = random.Random(seed)
    groups = [rng.choices(WORDS, k=rng.randint(2, 4)) for _ in range(n)]
    return ["".join(words) for words in groups], [
        [one for word in words for one in label(word)] for words in groups
    ]


texts, y = draw(100, seed=1)
X = [describe(text) for text in texts]
print(texts[0], y[0], sep="\n")
print(X[0][1])

# %%
# Two models on the same hundred examples. One has the constraints of the scheme,
# ``constraints="BIOES"``: after ``B-W`` comes ``I-W`` or ``E-W``, a word that begins
# has an end, and so on. The other one has to learn them.

free = CRF(C=1.0, random_state=0).fit(X, y)
ruled = CRF(C=1.0, constraints="BIOES", random_state=0).fit(X, y)


def breaks_rules(labels):
    ends, starts = ("E-W", "S-W"), ("B-W", "S-W")
    return any(
        (one in ends) != (other in starts)
        for one, other in zip(["E-W", *labels], [*labels, "B-W"], strict=True)
    )


test_texts, truth = draw(1000, seed=2)
X_test = [describe(text) for text in test_texts]
for name, model in (("without rules", free), ("with rules", ruled)):
    predicted = model.predict(X_test)
    print(f"{name:14} all words right: {sequence_accuracy_score(truth, predicted):.1%}")
    broken = sum(map(breaks_rules, predicted))
    print(f"{'':14} answers that are no splitting: {broken} of {len(predicted)}")

# %%
# The constraints hold in training, too, so only valid labellings have probability, and
# the right one gets more of it.

for name, model in (("without rules", free), ("with rules", ruled)):
    probability = np.exp(model.score_sequences(X_test, truth))
    print(f"{name:14} mean probability of the right answer: {probability.mean():.2f}")

# %%
# With more examples a model learns most constraints from the data: with ``draw(400,
# seed=1)`` the unconstrained model is at least as accurate. Constraints help with few
# examples, and guarantee valid labellings.

# %%
# Now the ambiguous ones, with a model that has seen more. ``k_best`` returns the most
# probable labellings in order, exactly: no answer is missed, and the probabilities are
# those of the model.


def split(text, labels):
    return "".join(
        letter + " " * (one in ("E-W", "S-W"))
        for letter, one in zip(text, labels, strict=True)
    ).strip()


texts, y = draw(400, seed=1)
ruled.set_params(C=0.5).fit([describe(text) for text in texts], y)
QUESTIONS = ["nowhere", "theyear", "goodbyes", "notable"]
answers = ruled.k_best([describe(text) for text in QUESTIONS], 3)
for text, best in zip(QUESTIONS, answers, strict=True):
    print(
        f"{text:10}",
        "   ".join(
            f"{split(text, labels)} ({probability:.2f})" for labels, probability in best
        ),
    )

# %%
# An application can use this: accept the first answer if its probability is high, and
# ask a person otherwise.

fig, axes = plt.subplots(2, 2, figsize=(6.4, 4.4), sharex=True, layout="constrained")
for ax, text, best in zip(axes.flat, QUESTIONS, answers, strict=True):
    ax.barh(
        [split(text, labels) for labels, _ in best],
        [probability for _, probability in best],
        color="tab:blue",
    )
    ax.set(title=text, xlim=(0, 1))
    ax.invert_yaxis()
fig.supxlabel("probability")
plt.show()
