"""Texts with character spans: what annotation tools write is read; what does not fit is refused by file and line."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualfield.io import AnnotatedText, read_json_spans, split_tokens, write_json_spans
from dualfield.metrics import spans

TEXT = "Anna lives in New York."
LABELS = ["B-PER", "O", "O", "B-LOC", "I-LOC", "O"]

PRODIGY = {
    "text": TEXT,
    "_input_hash": 1,
    "tokens": [
        {"text": token, "start": start, "end": end, "id": at, "ws": True}
        for at, (token, start, end) in enumerate(split_tokens(TEXT))
    ],
    "spans": [
        {"start": 14, "end": 22, "token_start": 3, "token_end": 4, "label": "LOC", "text": "New York"},
        {"start": 0, "end": 4, "token_start": 0, "token_end": 0, "label": "PER"},
    ],
    "answer": "accept",
}
DOCCANO = {"id": 7, "text": TEXT, "label": [[0, 4, "PER"], [14, 22, "LOC"]], "Comments": []}
DOCCANO_RELATIONS = {
    "id": 7,
    "text": TEXT,
    "relations": [],
    "entities": [
        {"id": 1, "label": "PER", "start_offset": 0, "end_offset": 4},
        {"id": 2, "label": "LOC", "start_offset": 14, "end_offset": 22},
    ],
}


def task(*results, data=None, **more):
    """Return a task of Label Studio."""
    return {"id": 3, "data": data or {"text": TEXT}, "annotations": [{"id": 9, "result": list(results), **more}]}


def result(start, end, label, text=None):
    value = {"start": start, "end": end, "labels": [label], **({} if text is None else {"text": text})}
    return {"id": "x", "from_name": "label", "to_name": "text", "type": "labels", "value": value}


LABEL_STUDIO = task(
    result(0, 4, "PER", "Anna"),
    {"type": "relation", "from_id": "x", "to_id": "y"},
    {"type": "choices", "value": {"choices": ["news"]}},
    result(14, 22, "LOC", "New York"),
)
LABEL_STUDIO_MIN = {"id": 3, "text": TEXT, "label": [{"start": 0, "end": 4, "text": "Anna", "labels": ["PER"]}]}


def lines(*records):
    return [json.dumps(record) for record in records]


@pytest.mark.parametrize(
    "record",
    [PRODIGY, DOCCANO, DOCCANO_RELATIONS, LABEL_STUDIO, {"data": TEXT, "labels": DOCCANO["label"]}],
    ids=["prodigy", "doccano", "doccano relations", "label studio", "doccano of old"],
)
def test_every_tool(record):
    (text,) = read_json_spans(lines(record))
    assert text.text == TEXT
    assert text.labels() == LABELS
    assert text.character_spans == [(0, 4, "PER"), (14, 22, "LOC")]
    assert [TEXT[a:b] for _, a, b in text.tokens] == [token for token, _, _ in text.tokens]


def test_forms_of_files(tmp_path):
    """JSON Lines, a list on one line and on many, and what Label Studio's short form writes."""
    expected = read_json_spans(lines(DOCCANO, DOCCANO))
    for form in (json.dumps([DOCCANO, DOCCANO]), json.dumps([DOCCANO, DOCCANO], indent=2)):
        assert read_json_spans(form.split("\n")) == expected
        path = tmp_path / "a.json"
        path.write_text(f"\n  {form}\n", encoding="utf-8")
        assert read_json_spans(path) == expected
    assert read_json_spans(["", *lines(DOCCANO), " ", *lines(DOCCANO)]) == expected
    assert read_json_spans([]) == read_json_spans(["[", "]"]) == []
    (text,) = read_json_spans([json.dumps([LABEL_STUDIO_MIN])])
    assert text.labels() == ["B-PER", "O", "O", "O", "O", "O"]


def test_what_was_rejected_is_left_out():
    answers = [{**PRODIGY, "answer": answer} for answer in ("accept", "reject", "ignore")]
    assert len(read_json_spans(lines(*answers))) == 1
    cancelled = task(result(0, 4, "PER"), was_cancelled=True)
    assert len(read_json_spans(lines(LABEL_STUDIO, cancelled))) == 1
    (accepted,) = read_json_spans(lines({"text": TEXT, "answer": "accept"}))
    assert accepted.labels() == ["O"] * 6


def test_one_of_several_annotations():
    both = {**LABEL_STUDIO, "annotations": [*LABEL_STUDIO["annotations"], {"result": []}]}
    with pytest.raises(ValueError, match=r"lines, line 1: has 2 annotations; expected one. Mark"):
        read_json_spans(lines(both))
    both["annotations"][0] = {**both["annotations"][0], "ground_truth": True}
    assert read_json_spans(lines(both))[0].labels() == LABELS


def test_tokens_of_the_record_are_used_but_for_white_space():
    text = "New  York\nGent"
    tokens = [("New", 0, 3), (" ", 4, 5), ("York", 5, 9), ("\n", 9, 10), ("Ge", 10, 12), ("nt", 12, 14)]
    record = {
        "text": text,
        "tokens": [{"text": token, "start": start, "end": end} for token, start, end in tokens],
        "spans": [{"start": 0, "end": 9, "label": "LOC"}, {"start": 12, "end": 14, "label": "X"}],
    }
    (found,) = read_json_spans(lines(record))
    assert [token for token, _, _ in found.tokens] == ["New", "York", "Ge", "nt"]
    assert found.labels() == ["B-LOC", "I-LOC", "O", "B-X"]


def test_places_in_units_of_16_bits():
    """Browsers count characters such as 😀 twice; what a span says to be its text decides."""
    text = "😀 Anna 😀"
    (found,) = read_json_spans(lines(task(result(3, 7, "PER", "Anna"), data={"review": text})))
    assert found.character_spans == [(2, 6, "PER")]
    (found,) = read_json_spans(lines(task(result(2, 6, "PER", "Anna"), data={"review": text})))
    assert found.character_spans == [(2, 6, "PER")]


def test_misaligned_spans_are_named_or_expanded():
    record = {"text": TEXT, "label": [[15, 20, "LOC"]]}
    with pytest.raises(ValueError, match="begins inside a token and ends inside a token") as caught:
        read_json_spans(["", *lines(DOCCANO, record)])
    assert str(caught.value) == (
        "lines, line 3: the span 15-20 'ew Yo' (LOC) begins inside a token and ends inside a token; nearest: 'New' "
        "14-17, 'York' 18-22. Correct the span, give the tokens of the text in \"tokens\", or take whole tokens by "
        "alignment='expand'."
    )
    (found,) = read_json_spans(lines(record), alignment="expand")
    assert found.character_spans == [(14, 22, "LOC")]
    with pytest.raises(ValueError, match=r"14-18 'New ' .* ends between tokens; nearest: 'New' 14-17. Correct"):
        read_json_spans(lines({"text": TEXT, "label": [[14, 18, "LOC"]]}))


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            {"text": TEXT, "label": [[0, 10, "A"], [5, 13, "B"]]},
            r"0-10 'Anna lives' \(A\) and 5-13 .* overlap; a token",
        ),
        ({"text": TEXT, "label": [[0, 4, "A"], [0, 4, "A"]]}, "overlap"),
        ({"text": TEXT, "label": [[14, 50, "A"]]}, "14-50 .A. must have a character, and lie within the 23 characters"),
        ({"text": TEXT, "label": [[4, 4, "A"]]}, "must have a character"),
        ({"text": TEXT, "label": [[4, 5, "A"]]}, "covers no token; nearest: 'Anna' 0-4, 'lives' 5-10"),
        ({"text": "", "label": []}, None),
        ({"text": "\u200b", "label": [[0, 1, "A"]]}, None),
        ({"text": TEXT, "label": ["PER"]}, "a span must be .start, end, label., or an object .* Got 'PER' instead"),
        ({"text": TEXT, "label": [[0, 4]]}, "a span must be"),
        ({"text": TEXT, "label": [[0.0, 4, "A"]]}, "a span must be"),
        ({"text": TEXT, "label": [[False, 4, "A"]]}, "a span must be"),
        ({"text": TEXT, "label": [[-4, 4, "A"]]}, "a span must be"),
        ({"text": TEXT, "label": [[0, 4, ""]]}, "a span must be"),
        ({"text": TEXT, "label": [{"start": 0, "end": 4, "labels": ["A", "B"]}]}, "a span must be"),
        ({"text": TEXT, "label": [{"start": 0, "end": 4, "label": "A", "text": "Anno"}]}, "is 'Anna' in the text"),
        ({"text": TEXT, "label": "PER"}, "\"label\" must be a list. Got 'PER' instead"),
        ({"text": TEXT}, 'has no spans; expected "text" and "spans"'),
        ({"label": []}, 'has no text; expected "text" and "spans"'),
        ({"text": 3, "label": []}, "the text must be a string. Got 3 instead"),
        ({"text": "\ud800", "label": []}, "the text has half of a surrogate pair at character 0"),
        ({"data": {"text": TEXT}}, "has no annotation"),
        ({"data": {"a": "x", "b": "y"}, "annotations": []}, "has no text"),
        (task({"value": {"start": "/div[1]", "end": 4, "labels": ["A"]}}), "a span must be"),
        ({"text": TEXT, "tokens": {}, "spans": []}, '"tokens" must be a list'),
        ({"text": TEXT, "tokens": [{"start": 0, "end": 99}], "spans": []}, '"tokens" must have "start" and "end"'),
        ({"text": TEXT, "tokens": [{"start": 2, "end": 4}, {"start": 3, "end": 5}], "spans": []}, "from left to right"),
        ({"text": TEXT, "tokens": [{"start": 0, "end": 4, "text": "Anno"}], "spans": []}, "is 'Anna' in the text"),
        ([], "must be a JSON object. Got .. instead"),
    ],
)
def test_what_does_not_fit_is_named(record, said):
    if said is None:
        assert len(read_json_spans(lines(record))) == 1
        return
    with pytest.raises(ValueError, match=f"^lines, line 2: .*{said}"):
        read_json_spans(lines(DOCCANO, record))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 1: is not JSON: Expecting property name enclosed in double quotes at character 2"),
        ('{"text": "a", "label": []}\n{"text"', "line 2: is not JSON: Expecting ':' delimiter at character 8"),
        ('[\n{"text": "a", "label": []}\n{}]', "line 3: is not JSON: expected ',' or ']'"),
        ('[\n{"text": "a", "label": []},\n]', "line 3: is not JSON: expected an object behind ','"),
        ('[\n{"text": "a", "label": []},\n\n{"text"}]', "line 4: is not JSON: Expecting ':' delimiter at character 8"),
        ('[{"text": "a", "label": []}]\nx', "line 2: is not JSON: there is text behind the list"),
        ('[{"text": "a", "label": []},\n\n\n{"text": "b"}]', "line 4: has no spans"),
        ("[", "line 1: is not JSON"),
        ("[" * 100_000, "line 1: cannot be read as JSON"),
        ('{"a":' + "[" * 100_000, "line 1: cannot be read as JSON"),
        ('{"text": ' + "1" * 5000 + "}", "line 1: cannot be read as JSON: Exceeds the limit"),
    ],
)
def test_broken_json_is_named_by_line(text, said):
    with pytest.raises(ValueError, match=f"^lines, {said}"):
        read_json_spans(text.split("\n"))


WORDS = st.lists(st.sampled_from(["Anna", "it's", "...", "é", "9:30", "😀", "-", "a\u0301"]), min_size=1, max_size=6)


@st.composite
def texts(draw):
    """Draw texts whose tokens stand close together or apart, with spans."""
    text, tokens = draw(st.sampled_from(["", " "])), []
    for word in draw(WORDS):
        tokens.append((word, len(text), len(text) + len(word)))
        text += word + draw(st.sampled_from([" ", "", "\n", "  "]))
    labels = draw(st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y"]), min_size=len(tokens), max_size=len(tokens)))
    return AnnotatedText(text, tokens, spans(labels))


@given(st.lists(texts(), max_size=3))
def test_tokens_and_spans_come_back(drawn):
    written = io.StringIO()
    write_json_spans(drawn, written)
    assert read_json_spans(written.getvalue().splitlines()) == drawn


@given(st.lists(texts(), max_size=3))
def test_character_spans_come_back(drawn):
    """Without tokens in the file, tokens are made anew; spans on their borders are the same characters."""
    written = io.StringIO()
    write_json_spans(drawn, written, style="doccano")
    records = [json.loads(line) for line in written.getvalue().split("\n") if line]
    assert [[tuple(span) for span in record["label"]] for record in records] == [one.character_spans for one in drawn]
    joined = [AnnotatedText.from_tokens([token for token, _, _ in one.tokens], one.labels()) for one in drawn]
    again = io.StringIO()
    write_json_spans(joined, again, style="doccano")
    found = read_json_spans(again.getvalue().split("\n"))
    assert [one.character_spans for one in found] == [one.character_spans for one in joined]


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"'style' parameter of write_json_spans must be one of .* Got 'brat'"):
        write_json_spans([], io.StringIO(), style="brat")
    with pytest.raises(ValueError, match=r"'alignment' parameter must be one of .* Got 'loose'"):
        AnnotatedText.align("a", [], alignment="loose")
