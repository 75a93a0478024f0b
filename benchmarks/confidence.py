"""How sure is it? Probabilities of labels and of names beside how often they are right

Errors and not times. Names in CoNLL-2002 Spanish with the features of sklearn-crfsuite's tutorial: trained on the
training part, the structural SVM calibrated on testa, everything measured on testb. The log-loss is that of the true
label of each token, in nats; the calibration error is that of the most probable label in 15 bins. The probability of a
name is that of exactly this span with this type; "least label" puts the smallest probability among its labels in its
place, which is what one does without the exact one, and "product" their product. The error of names is the mean
distance, over ten bins, between these and the share of names that are right.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.crf_data import conll2002, entity_items
from benchmarks.interning import read_conll
from benchmarks.kernel_logistic_data import markdown
from dualfield import CRF, StructuredSVM
from dualfield.metrics import calibration_error, span_f1_score, spans, token_log_loss

NEEDS_DATA = True
BOUNDS = (0.0, 0.5, 0.7, 0.9, 0.97, 1.0)
Labels = Sequence[Sequence[str]]


def bins_error(chances: NDArray[np.float64], right: NDArray[np.bool_], n_bins: int = 10) -> float:
    """The expected calibration error of one event: mean distance of chance and frequency over equal bins."""
    places = np.minimum((chances * n_bins).astype(int), n_bins - 1)
    masses = np.bincount(places, minlength=n_bins)
    sums = np.bincount(places, weights=chances - right, minlength=n_bins)
    return float(np.abs(sums[masses > 0]).sum() / masses.sum())


def names_of(model: Any, X: Any, y: Labels, marginals: Sequence[NDArray[np.float64]]) -> dict[str, NDArray[Any]]:
    """Every predicted name: is it right, its exact probability, and two stand-ins made of its labels'."""
    code = {label: at for at, label in enumerate(model.classes_)}
    found: dict[str, list[float]] = {"right": [], "exact": [], "least": [], "product": []}
    for truth, labels, named, node in zip(y, model.predict(X), model.predict_spans(X), marginals, strict=True):
        true = set(spans(truth))
        for span in named:
            own = [node[at, code[labels[at]]] for at in range(span.start, span.stop)]
            found["right"].append((span.type, span.start, span.stop) in true)
            found["exact"].append(span.probability)
            found["least"].append(min(own))
            found["product"].append(float(np.prod(own)))
    return {key: np.array(values) for key, values in found.items()}


def measured(name: str, model: Any, X: Any, y: Labels) -> dict[str, Any]:
    marginals = model.predict_proba(X)
    found = names_of(model, X, y, marginals)
    right = found["right"].astype(bool)
    places = np.searchsorted(BOUNDS[1:-1], found["exact"], side="right")
    return {
        "name": name,
        "f1": span_f1_score(y, model.predict(X)),
        "log_loss": token_log_loss(y, marginals, classes=model.classes_),
        "calibration": calibration_error(y, marginals, classes=model.classes_),
        "names": {key: bins_error(found[key], right) for key in ("exact", "least", "product")},
        "bins": [[int((places == at).sum()), float(right[places == at].mean())] for at in range(len(BOUNDS) - 1)],
    }


def run(size: int | None = None) -> dict[str, Any]:
    corpus = conll2002(size)
    held_out = read_conll(Path(os.environ["DUALFIELD_DATA"]) / "conll2002_esp_testa.txt.gz")[:size]
    X_held, y_held = [entity_items(one) for one in held_out], [[row[2] for row in one] for one in held_out]
    data, test = (corpus.X, corpus.y), (corpus.X_test, corpus.y_test)
    results = []
    for C in (1.0, 10.0, 100.0):
        results.append(measured(f"CRF, C = {C:g}", CRF(C=C, random_state=0).fit(*data), *test))
    svm = StructuredSVM(C=1.0, random_state=0).fit(*data)
    scores = svm.decision_scores(test[0])
    node = svm.structure_.marginals(scores).node
    raw = np.split(node, scores.offsets[1:-1])
    svm = svm.calibrate(X_held, y_held)
    results.append(measured("StructuredSVM, C = 1, calibrated", svm, *test))
    uncalibrated = {
        "log_loss": token_log_loss(test[1], raw, classes=svm.classes_),
        "calibration": calibration_error(test[1], raw, classes=svm.classes_),
        "temperature": svm.calibration_.temperature,
    }
    return {"models": results, "uncalibrated": uncalibrated}


def table(result: dict[str, Any]) -> str:
    before = result["uncalibrated"]
    rows = [
        [one["name"], f"{100 * one['f1']:.2f}", f"{one['log_loss']:.4f}", f"{one['calibration']:.4f}"]
        + [f"{one['names'][key]:.3f}" for key in ("exact", "least", "product")]
        for one in result["models"]
    ]
    head = "model | F1 | log-loss | calibration error | error of names: exact | least label | product"
    ranges = [f"{low:g} to {high:g}" for low, high in itertools.pairwise(BOUNDS)]
    bins = [
        [one["name"], *(f"{100 * share:.1f} % of {count:,}" for count, share in one["bins"])]
        for one in result["models"]
    ]
    return "\n\n".join(
        [
            markdown(head, rows),
            f"The structural SVM before calibration, scores taken for log-probabilities: log-loss "
            f"{before['log_loss']:.4f}, calibration error {before['calibration']:.4f}; the temperature found is "
            f"{before['temperature']:.3f}.",
            "Names that are right, by their probability:",
            markdown(" | ".join(["model", *ranges]), bins),
        ]
    )
