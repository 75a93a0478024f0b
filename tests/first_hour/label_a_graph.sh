# Label the nodes of graphs from the shell: train, evaluate, and label new ones.
dualfield train graphs.jsonl --model graphs.model --dev graphs.dev.jsonl
dualfield evaluate --model graphs.model graphs.dev.jsonl > scores.txt
dualfield tag --model graphs.model graphs.dev.jsonl --marginals > tagged.jsonl
# Checks: labels that are better than those of the nodes alone, with probabilities.
grep -q "graphs with .* nodes, accuracy" scores.txt
python - <<'END'
import json

import dualfield
from dualfield.io import read_json_graphs

(X, y), (X_train, y_train) = read_json_graphs("graphs.dev.jsonl"), read_json_graphs("graphs.jsonl")
tagged = [json.loads(line) for line in open("tagged.jsonl")]
right = sum(a == b for one, labels in zip(tagged, y) for a, b in zip(one["labels"], labels))
alone = dualfield.CRF("graph").fit([(nodes, []) for nodes, _ in X_train], y_train)
assert right / sum(map(len, y)) > alone.score([(nodes, []) for nodes, _ in X], y) + 0.05
assert all(0 < p <= 1 for one in tagged for p in one["probabilities"])
END
