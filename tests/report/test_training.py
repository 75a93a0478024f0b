"""The report of a training: its numbers are those of the model, its sentences are chosen by the rule it states."""

import itertools
import re

import numpy as np
import pytest

from dualfield import CRF
from dualfield.metrics import (
    calibration_error,
    sequence_accuracy_score,
    span_errors,
    span_scores,
    token_log_loss,
)
from dualfield.report import DevData, training_page
from dualfield.report.training_dev import evaluated
from dualfield.report.training_errors import sureness
from dualfield.report.training_facts import changed_parameters, gap_sentences, rounded
from dualfield.report.training_sentences import chosen_sentences, window_around
from dualfield.solvers import LBFGS
from tests.report.pages import BIO, number, read, shown_sentences

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
    ended = f"The duality gap is within the tolerance. The objective is {tagger.objective_:,.6g}"
    assert any(text.startswith(ended) for text in page.texts["p"])


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
    assert f"On held-out data: 30 sentences with {scores.n_tokens} tokens." in page.texts["p"]
    marginals = tagger.predict_proba(dev.X)
    assert page.cards == pytest.approx(
        {
            "F1": 100 * scores.overall.f1,
            "precision": 100 * scores.overall.precision,
            "recall": 100 * scores.overall.recall,
            "accuracy": 100 * scores.accuracy,
            "sentences right": 100 * sequence_accuracy_score(dev.y, predicted),
            "log-loss": token_log_loss(dev.y, marginals, tagger.classes_),
            "calibration error": calibration_error(dev.y, marginals, tagger.classes_),
        },
        abs=0.005,
    )
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
    charts = re.findall(r'<svg role="img" [^>]*aria-label="([^"]*)"', document)
    assert charts[-3:] == ["Objective", "Relative duality gap", "Scores on held-out data"]
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
    assert all(predicted[at] == dev.y[at] and set(predicted[at]) != {"O"} for at, *_ in groups[2])
    shown = shown_sentences(training_page(tagger, title="t", facts=[], dev=dev))
    # Sentences with wrong spans have come before, by kind of error.
    assert shown[-8:] == [" ".join(x[0].removeprefix("w=") for x in dev.X[at]) for at in chosen[4:]]


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
    X, y = [[["w=3"]] * 200], [["O"] * 199 + ["B-VP"]]
    document = training_page(tagger, title="t", facts=[], dev=DevData(X, y))
    parts = re.findall(r"Sentence 1, tokens (\d+) to (\d+) of 200", document)
    assert [int(end) - int(begin) for begin, end in parts] == [59] * len(parts)
    assert [len(sentence.split()) for sentence in shown_sentences(document)] == [60]


# Order and errors


def test_scores_come_first_then_errors_the_model_the_training_and_folded_facts(tagger, dev):
    document = training_page(tagger, title="t", facts=[("file", "a.txt")], dev=dev, command="dualfield train 'a b.txt'")
    page = read(document)
    assert page.texts["h2"] == ["Errors", "Sentences", "Model", "Training"]
    parts = ('<dl class="scores">', "<h2>Errors", "<h2>Model", "<h2>Training", "<details")
    places = [document.index(part) for part in parts]
    assert places == sorted(places)
    folded = document[places[-1] :]
    assert "a.txt" in folded
    assert "<pre>dualfield train &#x27;a b.txt&#x27;</pre>" in folded
    assert "<pre>" not in training_page(tagger, title="t")


def test_errors_are_counted_by_kind_and_shown_the_surest_first(tagger, dev):
    document = training_page(tagger, title="t", facts=[], dev=dev)
    page = read(document)
    predicted = tagger.predict(dev.X)
    errors = span_errors(dev.y, predicted)
    result = evaluated(tagger, dev)
    rows = [row for row in page.rows if len(row) == 4]
    for kind in ("missed", "spurious", "boundary", "type"):
        mine = [error for error in errors if error.kind == kind]
        (row,) = (row for row in rows if row[0].startswith(kind))
        assert row[1:3] == [str(len(mine)), f"{100 * len(mine) / len(errors):.1f}"]
        assert sum(int(count) for count in re.findall(r"\d+", row[3])) == len(mine)
        (heading,) = (text for text in page.texts["h3"] if text.startswith(kind.capitalize()))
        surest = sorted({error.sequence for error in mine}, key=lambda at: -_most(result, mine, at))
        assert heading == f"{kind.capitalize()}: the surest {min(3, len(surest))} of {len(mine)}"
        shown = document.partition(f"<h3>{kind.capitalize()}")[2].partition("<h3>")[0]
        assert [int(at) - 1 for at in re.findall(r"Sentence (\d+)", shown)] == surest[:3]
        assert shown.count('class="span wrong"') + shown.count('class="span missed"') >= len(surest[:3])


def _most(result, errors, at):
    return max(sureness(result, error) for error in errors if error.sequence == at)


def test_how_sure_an_error_is(tagger, dev):
    result = evaluated(tagger, dev)
    spans = tagger.predict_spans(dev.X)
    marginals = tagger.predict_proba(dev.X)
    for error in span_errors(dev.y, tagger.predict(dev.X)):
        if error.predicted is not None:
            (expected,) = (span.probability for span in spans[error.sequence] if span[:3] == error.predicted)
        else:
            _, start, stop = error.true
            guesses = tagger.predict(dev.X)[error.sequence][start:stop]
            codes = [tagger.classes_.tolist().index(label) for label in guesses]
            expected = min(marginals[error.sequence][start + at, code] for at, code in enumerate(codes))
        assert sureness(result, error) == pytest.approx(expected)


def test_no_errors_and_labels_that_mark_no_spans():
    X, y = [[["the"], ["dog"]], [["a"], ["cat"]]], [["DT", "NN"], ["DT", "NN"]]
    page = read(training_page(CRF(C=10.0).fit(X, y), title="t", dev=DevData(X, y)))
    assert page.cards["accuracy"] == page.cards["macro F1"] == page.cards["sentences right"] == 100.0
    document = training_page(CRF(C=10.0).fit(X, y), title="t", dev=DevData(X, [["DT", "NN"], ["NN", "NN"]]))
    assert ["NN", "DT", "1", "33.3"] in read(document).rows
    assert "The most frequent of 1 wrong label" in document


def test_a_cut_divides_no_span(tagger):
    labels = (["O"] * 3 + ["B-NP"] + ["I-NP"] * 6) * 12
    X = [[[f"w={BIO.index(label)}"] for label in labels]]
    result = evaluated(tagger, DevData(X, [labels]))
    for focus in range(len(labels)):
        at, begin, end = window_around(result, 0, focus)
        assert at == 0
        assert begin <= focus < end
        assert labels[begin] in ("O", "B-NP")
        assert end == len(labels) or labels[end] in ("O", "B-NP")
        assert result.sentence((at, begin, end)).tokens == [str(BIO.index(label)) for label in labels[begin:end]]
