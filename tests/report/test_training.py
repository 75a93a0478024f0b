"""The report of a training: its numbers are those of the model, its sentences are chosen by the rule it states."""

import itertools
import re

import numpy as np
import pytest

from dualfield import CRF
from dualfield.metrics import calibration_error, sequence_accuracy_score, span_scores
from dualfield.report import DevData, training_page
from dualfield.report.training_dev import chosen_sentences, evaluated
from dualfield.report.training_facts import changed_parameters, gap_sentences, rounded
from dualfield.solvers import LBFGS
from tests.report.pages import number, read, shown_sentences

# Numbers


def test_facts_are_those_of_the_model(tagger):
    page = read(training_page(tagger, title="Some & title", facts=[("file", "a<b.txt"), ("size", 40)]))
    assert page.texts["h1"] == ["Some & title"]
    assert page.facts["file"] == "a<b.txt"
    assert page.facts["size"] == "40"
    assert page.facts["labels"] == "4: B-NP, B-VP, I-NP, O"
    assert number(page.facts["weights"]) == tagger.n_features_
    assert number(page.facts["attributes"]) == len(tagger.vocabulary_)
    assert page.facts["solver"] == tagger.solver_
    assert number(page.facts["objective"]) == pytest.approx(tagger.objective_, rel=1e-5)
    assert number(page.facts["duality gap"]) == pytest.approx(tagger.dual_gap_, rel=1e-2)
    assert number(page.facts["passes over the data"]) == pytest.approx(tagger.trace_.passes[-1], rel=1e-5)
    assert (page.facts["C"], page.facts["min_freq"], page.facts["random_state"]) == ("3.0", "1", "0")
    assert "tol" not in page.facts
    assert page.texts["p"][0].startswith(
        f"The duality gap is within the tolerance. The objective is {tagger.objective_:,.6g}"
    )


def test_the_gap_in_words(tagger):
    found = re.fullmatch(
        r"The objective is ([\d.,]+)\. No weights can be better than this by more than ([\d.e-]+) "
        r"\(relative gap ([\d.e-]+)\)\.",
        gap_sentences(tagger),
    )
    objective, gap, relative = map(number, found.groups())
    assert objective == pytest.approx(tagger.objective_, rel=1e-5)
    assert gap == pytest.approx(tagger.dual_gap_, rel=1e-2)
    assert relative == pytest.approx(tagger.dual_gap_ / (tagger.objective_ - tagger.dual_gap_), rel=0.05)


def test_dev_scores_are_those_of_the_metrics(tagger, dev):
    page = read(training_page(tagger, title="t", facts=[], dev=dev))
    predicted = tagger.predict(dev.X)
    scores = span_scores(dev.y, predicted)
    summary = next(text for text in page.texts["p"] if "sentences with" in text)
    n, size, labels, whole = re.match(
        r"(\d+) sentences with ([\d,]+) tokens; ([\d.]+) % of the labels are right, and ([\d.]+) % of", summary
    ).groups()
    assert (int(n), int(size)) == (30, scores.n_tokens)
    assert float(labels) == pytest.approx(100 * scores.accuracy, abs=0.005)
    assert float(whole) == pytest.approx(100 * sequence_accuracy_score(dev.y, predicted), abs=0.005)
    rows = page.table("all", 6)
    assert [row[0] for row in rows] == ["all", *scores.types]
    for row, score in zip(rows, [scores.overall, *scores.types.values()], strict=True):
        expected = [100 * score.precision, 100 * score.recall, 100 * score.f1, score.found, score.support]
        assert [float(cell) for cell in row[1:]] == pytest.approx(expected, abs=0.005)


def test_confusion_and_reliability_are_those_of_the_model(tagger, dev):
    document = training_page(tagger, title="t", facts=[], dev=dev)
    true, predicted = itertools.chain(*dev.y), itertools.chain(*tagger.predict(dev.X))
    pairs = list(zip(true, predicted, strict=True))
    tips = re.findall(r"<title>true (\S+), predicted (\S+): (\d+) of (\d+)</title>", document)
    assert {(a, b): int(count) for a, b, count, _ in tips} == {pair: pairs.count(pair) for pair in set(pairs)}
    error = float(re.search(r"Expected calibration error: ([\d.]+)", document)[1])
    assert error == pytest.approx(calibration_error(dev.y, tagger.predict_proba(dev.X), tagger.classes_), abs=5e-5)


def test_weights_are_those_of_the_model(tagger):
    document = training_page(tagger, title="t", facts=[])
    found = {(a, b): float(weight) for a, b, weight in re.findall(r"<title>(\S+) → (\S+): (\S+)</title>", document)}
    assert found == pytest.approx(tagger.transition_features_, rel=1e-3)
    for label, card in re.findall(r"<section><h4>(\S+)</h4>(.*?)</section>", document):
        rows = re.findall(r"<td>([^<]*)</td><td class=\"number\">([-+.\d]+)</td>", card)
        assert rows
        for attribute, weight in rows:
            assert float(weight) == pytest.approx(tagger.state_features_[attribute, label], abs=5e-4)


def test_scores_in_the_course_of_training_are_drawn(tagger):
    history = [(1.0, 0.1, "span F1", 0.5), (2.0, 0.2, "span F1", 0.8), (2.0, 0.2, "accuracy", 0.9)]
    document = training_page(tagger, title="t", facts=[], history=iter(history))
    read(document)
    assert re.findall(r'<svg role="img" [^>]*aria-label="([^"]*)"', document)[:3] == [
        "Objective",
        "Relative duality gap",
        "Scores on other data",
    ]
    assert ">span F1</text>" in document
    assert ">accuracy</text>" in document


def test_parameters_that_differ():
    model = CRF(
        C=1.0, tol=1e-4, solver=LBFGS(5), constraints=np.ones((2, 2), dtype=bool), class_weight={"a": 2.0}, n_jobs=True
    )
    changed = dict(changed_parameters(model))
    assert changed == {
        "solver": repr(LBFGS(5)),
        "constraints": "array of shape (2, 2)",
        "class_weight": "{'a': 2.0}",
        "n_jobs": "True",
    }
    assert changed_parameters(CRF()) == []
    assert len(dict(changed_parameters(CRF(template="u:%x[0,0]\n" * 100)))["template"]) == 200


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(3077.4, 3, "3,080"), (0.36123, 3, "0.361"), (8.64e-5, 2, "8.6e-05"), (1234567.8, 6, "1,234,570"), (0.0, 3, "0")],
)
def test_numbers_are_rounded_to_digits(value, digits, text):
    assert rounded(value, digits) == text


def test_all_defaults_are_said():
    page = read(training_page(CRF().fit([[["a"], ["b"]]], [["x", "y"]]), title="t", facts=[]))
    assert "All parameters have their default values." in page.texts["p"]


# Sentences


def test_sentences_are_chosen_by_the_rule(tagger, dev):
    result = evaluated(tagger, dev)
    groups = [windows for _, windows in chosen_sentences(result)]
    assert [len(windows) for windows in groups] == [4, 4, 4]
    chosen = [at for windows in groups for at, *_ in windows]
    assert len(set(chosen)) == 12
    predicted, marginals = tagger.predict(dev.X), tagger.predict_proba(dev.X)
    code = {label: at for at, label in enumerate(tagger.classes_)}
    chance = [
        [row[code[label]] for row, label in zip(*pair, strict=True)] for pair in zip(marginals, predicted, strict=True)
    ]
    wrong_chance = {
        i: max(p for p, a, b in zip(chance[i], predicted[i], dev.y[i], strict=True) if a != b)
        for i in range(30)
        if predicted[i] != dev.y[i]
    }
    sure = [at for at, *_ in groups[0]]
    assert sorted((wrong_chance[i] for i in sure), reverse=True) == sorted(wrong_chance.values(), reverse=True)[:4]
    others = sorted(min(chance[i]) for i in range(30) if dev.y[i] and i not in sure)
    assert [min(chance[at]) for at, *_ in groups[1]] == pytest.approx(others[:4])
    assert all(predicted[at] == dev.y[at] for at, *_ in groups[2])
    shown = shown_sentences(training_page(tagger, title="t", facts=[], dev=dev))
    assert shown == [" ".join(x[0].removeprefix("w=") for x in dev.X[at]) for at in chosen]


def test_tokens_can_be_given_in_two_places(tagger, dev):
    words = [[f"word{i}.{t}" for t in range(len(labels))] for i, labels in enumerate(dev.y)]
    by_dev = training_page(tagger, title="t", facts=[], dev=dev._replace(tokens=words))
    by_name = training_page(tagger, title="t", facts=[], dev=dev, sentences=words)
    assert by_dev == by_name
    assert all(token.startswith("word") for sentence in shown_sentences(by_dev) for token in sentence.split())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda words: words[:-1], r"tokens has 29 sentences; y has 30"),
        (
            lambda words: [*words[:3], ["one", "too", "many"] * 9, *words[4:]],
            r"tokens\[3\] has 27 entries; y\[3\] has \d labels",
        ),
    ],
    ids=["fewer", "longer"],
)
def test_tokens_that_do_not_fit_are_named(tagger, dev, change, message):
    words = change([["w"] * len(labels) for labels in dev.y])
    with pytest.raises(ValueError, match=message):
        training_page(tagger, title="t", facts=[], dev=dev, sentences=words)


def test_long_sentences_are_shown_in_part(tagger):
    X, y = [[["w=1"]] * 200], [["I-NP"] * 199 + ["O"]]
    document = training_page(tagger, title="t", facts=[], dev=DevData(X, y))
    (part,) = re.findall(r"Sentence 1, tokens (\d+) to (\d+) of 200", document)
    assert int(part[1]) - int(part[0]) == 59
    assert [len(sentence.split()) for sentence in shown_sentences(document)] == [60]
