"""Values that are tables: in notebooks, as text and as data frames, and still the values that they were."""

import builtins
import copy
import json
import pickle
from html.parser import HTMLParser

import numpy as np
import pytest

from dualfield import CRF
from dualfield.data.tables import html_table, text_table, written
from dualfield.metrics import calibration_bins, span_scores
from dualfield.models.listings import RankedLabellings, SpanList
from dualfield.plotting import (
    ConfusionDisplay,
    ConvergenceDisplay,
    MarginalsDisplay,
    ReliabilityDisplay,
    TopFeaturesDisplay,
    TransitionDisplay,
)
from dualfield.plotting.display import scoped

X = [[["the"], ["dog"], ["runs"]], [["a"], ["cat"]], [["runs"]]]
Y = [["B-NP", "I-NP", "O"], ["B-NP", "I-NP"], ["O"]]


class Cells(HTMLParser):
    """Collects the rows of tables, and fails where tags are not closed."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(markup)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if set(self.open) & {"td", "th"}:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def model():
    return CRF(C=5.0, tol=1e-8).fit(X, Y)


def values(model) -> dict:
    return {
        "spans": model.predict_spans(X),
        "spans of one": model.predict_spans(X)[0],
        "k best": model.k_best(X, 3),
        "k best of one": model.k_best(X, 3)[0],
        "explanation": model.explain(X[0]),
        "token": model.explain(X[0])[1],
        "top features": model.top_features(3),
        "scores": span_scores(Y, [["B-NP", "O", "O"], ["B-NP", "I-NP"], ["O"]]),
        "bins": calibration_bins([0.9, 0.6], [1, 0]),
        "transitions": TransitionDisplay.from_estimator(model),
        "attributes": TopFeaturesDisplay.from_estimator(model),
        "convergence": ConvergenceDisplay.from_estimator(model),
        "reliability": ReliabilityDisplay.from_estimator(model, X, Y),
        "confusion": ConfusionDisplay.from_estimator(model, X, Y),
        "marginals": MarginalsDisplay.from_estimator(model, X[0], Y[0]),
    }


NAMES = (
    "spans", "spans of one", "k best", "k best of one", "explanation", "token", "top features", "scores", "bins",
    "transitions", "attributes", "convergence", "reliability", "confusion", "marginals",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_everything_shows_itself_and_has_a_frame(model, name):
    value = values(model)[name]
    markup = value._repr_html_()
    Cells(markup.replace("<style>", "").replace("</style>", ""))
    assert "<script" not in markup
    frame = value.to_frame()
    assert len(frame) > 0
    assert len(repr(value).splitlines()) <= 40
    assert " object at 0x" not in repr(value)


def test_frames_hold_the_numbers(model):
    found = values(model)
    spans = [(i, *span) for i, one in enumerate(model.predict_spans(X)) for span in one]
    assert found["spans"].to_frame().values.tolist() == [list(row) for row in spans]
    ranked = model.k_best(X, 3)
    frame = found["k best"].to_frame()
    assert frame["rank"].tolist() == [rank + 1 for one in ranked for rank in range(len(one))]
    assert frame["labels"].tolist() == [labels for one in ranked for labels, _ in one]
    assert frame["probability"].tolist() == [chance for one in ranked for _, chance in one]
    frame = found["explanation"].to_frame()
    for token in model.explain(X[0]):
        mine = frame[frame["position"] == token.position]
        assert list(zip(mine["contribution"], mine["value"], strict=True)) == token.contributions
        assert mine["value"].sum() == pytest.approx(token.difference)
    frame = found["scores"].to_frame().set_index("type")
    assert frame.loc["NP"].tolist() == pytest.approx([0.5, 0.5, 0.5, 2, 2])
    assert found["confusion"].to_frame().set_index("true").loc["O", "O"] == 2
    frame = found["transitions"].to_frame().set_index("left")
    assert frame.loc["B-NP", "I-NP"] == model.transition_features_["B-NP", "I-NP"]
    frame = found["top features"].to_frame()
    likely = frame[(frame["kind"] == "transition") & (frame["weight"] > 0)]
    assert [((a, b), weight) for _, a, b, weight in likely.values] == model.top_features(3).likely
    np.testing.assert_array_equal(found["convergence"].to_frame()["objective"], model.trace_.objective)


def test_lists_are_lists(model):
    spans, ranked = model.predict_spans(X), model.k_best(X, 2)
    for value in (spans, ranked, spans[0], ranked[0]):
        plain = list(value)
        assert isinstance(value, list)
        assert value == plain
        assert plain == value
        assert repr(value) == repr(plain)
        assert copy.deepcopy(value) == value
        assert pickle.loads(pickle.dumps(value)) == value
        assert json.dumps(value) == json.dumps(plain)
    assert spans[0][0] == tuple(spans[0][0])
    assert SpanList() == []
    assert str(RankedLabellings()) == "rank  labels  probability"


def test_values_are_equal_as_before(model):
    assert model.top_features(3) == model.top_features(3)
    assert model.explain(X[0]) == model.explain(X[0])
    assert span_scores(Y, Y) == span_scores(Y, Y) != span_scores(Y, [["O"] * len(one) for one in Y])


def test_what_is_printed_is_what_is_shown(model):
    for name in ("explanation", "token", "top features", "scores"):
        value = values(model)[name]
        assert repr(value) == str(value)
    assert repr(values(model)["confusion"]) == "ConfusionDisplay(3 labels, 6 predictions, 100.00 % right)"
    rows = Cells(model.predict_spans(X)._repr_html_()).rows
    assert rows[0] == ["sequence", "type", "start", "stop", "probability"]
    assert rows[1][:4] == ["0", "NP", "0", "2"]


def test_displays_that_were_drawn_show_no_second_picture(model):
    import matplotlib.pyplot as plt

    display = ConfusionDisplay.from_estimator(model, X, Y)
    assert "<svg" in display._repr_html_()
    assert display.plot()._repr_html_() is None
    plt.close(display.figure_)


def test_styles_stay_in_their_box(model):
    assert scoped("a { b: c; }\nd, e f { g: h; i: j; }", ".x") == ".x a { b: c; } .x d, .x e f { g: h; i: j; }"
    style = MarginalsDisplay.from_estimator(model, X[0])._repr_html_().partition("<style>")[2].partition("</style>")[0]
    selectors = [one for rule in style.split("}") for one in rule.partition("{")[0].split(",") if one.strip()]
    assert all(".dualfield-view" in one or "@media" in one for one in selectors)


def test_long_tables_are_cut():
    columns = {"n": list(range(100)), "t": ["<"] * 100}
    rows = Cells(html_table(columns)).rows
    assert len(rows) == 61
    assert rows[1] == ["0", "<"]
    assert "40 more rows" in html_table(columns)
    assert text_table(columns).splitlines()[-1] == "(40 more rows)"
    assert html_table({"a": []}, "x & y").startswith("<table><caption>x &amp; y</caption>")


@pytest.mark.parametrize(
    ("cell", "text"),
    [(np.array(["a", "b"]), "a b"), (("a", 1), "a 1"), (np.int64(3), "3"), (1.0, "1.0000"), (True, "True")],
)
def test_cells_are_written(cell, text):
    assert written(cell) == text


def test_without_pandas_the_error_says_what_to_do(monkeypatch):
    known = builtins.__import__

    def importing(name, *args, **kwargs):
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'")
        return known(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", importing)
    with pytest.raises(ImportError, match=r"to_frame needs pandas: pip install pandas\. \(No module named 'pandas'\)"):
        span_scores(Y, Y).to_frame()


def test_explanations_name_tokens(model):
    assert [token.token for token in model.explain(X[0])] == ["the", "dog", "runs"]
    explanation = model.explain(X[0], tokens=["THE", "DOG", "RUNS"])
    assert [token.token for token in explanation] == ["THE", "DOG", "RUNS"]
    assert str(explanation[1]).startswith("1 (DOG): I-NP with probability")
    with pytest.raises(ValueError, match=r"tokens has 1 entries; xseq has 3 nodes"):
        model.explain(X[0], tokens=["a"])
    numbers = CRF().fit([np.eye(2)], [["x", "y"]])
    assert str(numbers.explain(np.eye(2))[1]).startswith("1: y with")
