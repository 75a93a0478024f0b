"""The three most probable labellings of a sentence, with their probabilities."""

import dualfield

model = dualfield.load("names.model")
for labels, probability in model.k_best([["Only", "Marsh", "knew", "Old", "Kendal", "."]], 3)[0]:
    print(f"{probability:.3f}", *labels)

# Checks
import numpy as np

words = ["Only", "Marsh", "knew", "Old", "Kendal", "."]
found = model.k_best([words], 3)[0]
chances = [probability for _, probability in found]
assert chances == sorted(chances, reverse=True)
assert found[0][0] == model.predict([words])[0]
assert len({tuple(labels) for labels, _ in found}) == 3
assert np.allclose(np.exp(model.score_sequences([words] * 3, [labels for labels, _ in found])), chances)
