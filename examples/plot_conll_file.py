"""
Train, evaluate and save a CRF on a CoNLL file
==============================================

Corpora for sequence labelling mostly come as text files in columns: a line for each
word, a blank line between sentences, the label last. This example goes the whole way
with such a file: read, train, evaluate, save, load, tag. The task is to take lists of
ingredients apart: amounts, units, foods, and what is done to them.
"""

import random
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import dualfield
from dualfield import CRF
from dualfield.features import Template
from dualfield.io import read_conll, write_conll
from dualfield.metrics import sequence_accuracy_score, span_scores
from dualfield.plotting import ConfusionDisplay

# %%
# The file is generated from a few words at random, so the scores below are not those of
# real recipes.

AMOUNTS = "1 2 3 4 6 12 200 250 500 1/2 3/4 half two three".split()
UNITS = "g kg ml cup cups tbsp tsp cans slices pinch litre".split()
FOODS = """
    plain flour | caster sugar | butter | eggs | olive oil | red onions | tomatoes |
    tomato paste | salt | garlic | black pepper | spring onions | chicken stock |
    double cream | brown rice | lemon juice | parsley | smoked salmon | white wine |
    red wine vinegar | coconut milk | ground cumin | fresh ginger | sea salt |
    baking powder | dark chocolate
""".split("|")
ADVICE = """
    finely chopped | peeled and sliced | crushed | at room temperature | drained |
    melted | to taste | washed | lightly beaten | for frying | plus extra to serve |
    roughly torn | sifted | cut into cubes
""".split("|")


def spans_of(text, kind):
    words = text.split()
    return [(word, f"{'I' if at else 'B'}-{kind}") for at, word in enumerate(words)]


def ingredient(rng):
    rows = spans_of(rng.choice(AMOUNTS), "AMOUNT") if rng.random() < 0.9 else []
    rows += spans_of(rng.choice(UNITS), "UNIT") if rows and rng.random() < 0.7 else []
    rows += [("of", "O")] if rows and rng.random() < 0.2 else []
    rows += spans_of(rng.choice(ADVICE), "ADVICE") if rng.random() < 0.15 else []
    rows += spans_of(rng.choice(FOODS), "FOOD")
    rows += (
        [(",", "O"), *spans_of(rng.choice(ADVICE), "ADVICE")]
        if rng.random() < 0.5
        else []
    )
    rows += (
        [("or", "O"), *spans_of(rng.choice(FOODS), "FOOD")]
        if rng.random() < 0.15
        else []
    )
    return rows


rng = random.Random(0)
folder = tempfile.TemporaryDirectory()
train_file, test_file, model_file, tagged_file = (
    Path(folder.name, name)
    for name in ("train.conll", "test.conll", "ingredients.dualfield", "tagged.conll")
)
write_conll([ingredient(rng) for _ in range(60)], train_file)
write_conll([ingredient(rng) for _ in range(200)], test_file)
print(train_file.read_text()[:120])

# %%
# **Read.** A sentence is a list of rows, and a row is a tuple of its columns. Here the
# last one is the label.


def columns_and_labels(path):
    sentences = read_conll(path)
    X = [[row[:-1] for row in rows] for rows in sentences]
    y = [[row[-1] for row in rows] for rows in sentences]
    return X, y


X_train, y_train = columns_and_labels(train_file)
X_test, y_test = columns_and_labels(test_file)
print(X_train[0], y_train[0], sep="\n")

# %%
# **Train.** A template defines the attributes of a word. The default uses the word, its
# prefix, suffix and shape, and its neighbours. Print its text and edit it; templates of
# CRF++ and patterns of Wapiti work, too.

model = CRF(C=1.0, template=Template.default(), constraints="BIO", random_state=0).fit(
    X_train, y_train
)
gap = model.dual_gap_ / model.objective_
print(f"{model.n_features_} weights, relative gap {gap:.1e}")

# %%
# **Evaluate.** Whole spans count, as in conlleval: a food of which one word is missing
# is wrong.

predicted = model.predict(X_test)
scores = span_scores(y_test, predicted)
print(scores)
print(f"lines without any mistake: {sequence_accuracy_score(y_test, predicted):.0%}")

# %%
# **Save and load.** A model is one file. Template, labels and vocabulary are inside,
# and opening it executes nothing.

model.save(model_file)
loaded = dualfield.load(model_file)
print(loaded.predict(X_test) == predicted)

# %%
# **Tag.** The predicted label goes into one more column, which is what conlleval and
# its relatives read.

tagged = [
    [(*row, guess) for row, guess in zip(rows, guesses, strict=True)]
    for rows, guesses in zip(read_conll(test_file), predicted, strict=True)
]
write_conll(tagged, tagged_file)
print(tagged_file.read_text()[:180])

new = ["three", "cups", "of", "roasted", "hazelnuts", ",", "roughly", "torn"]
for span in loaded.predict_spans([new])[0]:
    found = " ".join(new[span.start : span.stop])
    print(f"{span.type:7} {found:18} {span.probability:.2f}")
folder.cleanup()

# %%
# The confusion matrix. Rows are the true labels; dark cells are the most frequent
# predictions.

ConfusionDisplay.from_predictions(y_test, predicted).plot()
plt.show()
