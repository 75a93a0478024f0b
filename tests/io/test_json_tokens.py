"""Tokens and tags in JSON: Hugging Face's forms are read, with names for the numbers of tags."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualfield.io import read_json_tokens, write_json_tokens

NAMES = ["O", "B-LOC", "I-LOC"]
RECORD = {"id": "0", "tokens": ["in", "New", "York"], "pos_tags": [1, 2, 3], "ner_tags": [0, 1, 2]}
EXPECTED = ([["in", "New", "York"]], [["O", "B-LOC", "I-LOC"]])
FEATURES = {
    "id": {"dtype": "string"},
    "pos_tags": {"feature": {"names": ["IN", "NNP"], "_type": "ClassLabel"}, "_type": "Sequence"},
    "ner_tags": {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "Sequence"},
}


@pytest.mark.parametrize(
    "content",
    [
        {**RECORD, "label_names": NAMES},
        {**RECORD, "features": FEATURES},
        {**RECORD, "features": {"ner_tags": [{"names": NAMES}]}},
        {"tokens": RECORD["tokens"], "tags": EXPECTED[1][0]},
        {"label_names": NAMES, "data": [RECORD]},
        {"version": "1", "features": FEATURES, "data": [RECORD]},
        [{**RECORD, "label_names": NAMES}],
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_forms(content, indent):
    text = json.dumps(content, indent=indent)
    if indent and isinstance(content, dict) and "data" not in content:
        with pytest.raises(ValueError, match="line 1: is not JSON"):  # an object on many lines is no JSON Lines
            read_json_tokens(text.split("\n"))
    else:
        assert read_json_tokens(text.split("\n")) == EXPECTED


def test_names_and_fields_of_the_caller():
    line = json.dumps(RECORD)
    assert read_json_tokens([line], label_names=NAMES) == EXPECTED
    assert read_json_tokens([line], label_names=["-", "IN", "NNP", "X"], tags="pos_tags")[1] == [["IN", "NNP", "X"]]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (RECORD, '"ner_tags".0. is 0, a tag without a name. Name the tags by label_names'),
        ({**RECORD, "label_names": ["O"]}, r'"ner_tags".1. must be in .0, 1., the number of names. Got 1 instead'),
        ({**RECORD, "label_names": NAMES, "ner_tags": [-100, 1, 2]}, "Got -100 instead"),
        ({**RECORD, "ner_tags": ["O"]}, 'has 3 tokens and 1 "ner_tags"; expected equally many'),
        ({**RECORD, "ner_tags": [None, "O", "O"]}, '"ner_tags".0. must be a string or an integer. Got None'),
        ({**RECORD, "ner_tags": [True, "O", "O"]}, "Got True instead"),
        ({**RECORD, "ner_tags": ["", "O", "O"]}, "Got '' instead"),
        ({"tokens": ["a"]}, '"ner_tags" must be a list of tags. Got None instead'),
        ({"ner_tags": ["O"]}, '"tokens" must be a list of strings. Got None instead'),
        ({"tokens": "abc", "ner_tags": ["O"]}, '"tokens" must be a list of strings'),
        ({"tokens": [1], "ner_tags": ["O"]}, '"tokens".0. must be a string. Got 1 instead'),
    ],
)
def test_what_does_not_fit_is_named(record, said):
    good = json.dumps({"tokens": ["a"], "ner_tags": ["O"]})
    with pytest.raises(ValueError, match=f"^lines, line 2: .*{said}"):
        read_json_tokens([good, json.dumps(record)])


@given(
    st.lists(st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.sampled_from(NAMES)))),
    st.booleans(),
)
def test_round_trip(drawn, with_names):
    X, y = ([[pair[at] for pair in one] for one in drawn] for at in (0, 1))
    names = NAMES if with_names else None
    written = io.StringIO()
    write_json_tokens(X, y, written, label_names=names)
    assert read_json_tokens(written.getvalue().split("\n"), label_names=names) == (X, y)


def test_what_cannot_be_written():
    with pytest.raises(ValueError, match=r"labels\[0\] has 'B-X', which is not among the label_names \['O'\]"):
        write_json_tokens([["a"]], [["B-X"]], io.StringIO(), label_names=["O"])
    with pytest.raises(ValueError, match=r"tokens\[0\] has 1 tokens; labels\[0\] has 0 labels"):
        write_json_tokens([["a"]], [[]], io.StringIO())
