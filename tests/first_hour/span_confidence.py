"""The names in a sentence, with the probability that each is exactly right."""

import dualfield

model = dualfield.load("names.model")
words = ["Piers", "Marsh", "of", "Kendal", "met", "Greta", "on", "3", "May", "."]
for span in model.predict_spans([words])[0]:
    print(f"{span.probability:.2f}", span.type, *words[span.start : span.stop])

# Checks: against the share of sampled labellings that have the span.
from dualfield.metrics import spans

draws = model.sample([words], 4000, random_state=0)[0]
for span in model.predict_spans([words])[0]:
    share = sum((span.type, span.start, span.stop) in spans(labels) for labels in draws) / len(draws)
    assert abs(share - span.probability) < 0.04
