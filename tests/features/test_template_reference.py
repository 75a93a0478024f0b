"""Templates give the columns that composing every string in plain Python gives."""

import gzip
import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualfield.data import Batch, Vocabulary
from dualfield.data.input_forms import opened_tokens
from dualfield.features import Template
from tests.features.reference import Form, Line, Macro

DATA = os.environ.get("DUALFIELD_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="DUALFIELD_DATA does not name the folder with conll2000_train.txt.gz")

# Letters with and without case, also one whose small form is two characters; digits, other numbers, signs, spaces.
CHARACTERS = st.sampled_from("aAbB19-.|_ \t\x1f\xa0äÄßİΣǅ中²٣½€😀")
VALUE = st.text(CHARACTERS, max_size=5) | st.sampled_from(["_B-1", "_x+1", "-", "The", "U.S.", "a|b"])
FIXED = st.text(st.sampled_from("ab:|/=]ä"), max_size=3)
ATOM = st.sampled_from(["a", "B", ".", "1", "ä", "+", "$", "^", *(f"\\{letter}" for letter in 'adlpsuwADLPSUW."*?\\-')])


def patterns():
    item = st.tuples(ATOM, st.sampled_from(["", "", "?", "*"]))
    # A '^' in front and a '$' at the end are anchors there, not characters.
    fit = st.lists(item, max_size=4).filter(lambda items: not items or (items[0][0] != "^" and items[-1] != ("$", "")))
    return fit.map(tuple)


@st.composite
def macros(draw, n_columns):
    letter = draw(st.sampled_from("xxxxtmpqsc"))
    return Macro(
        letter,
        draw(st.integers(-6, 6)),
        draw(st.integers(0, n_columns - 1)),
        lowered=letter in "xtmpq" and draw(st.booleans()),
        absolute=draw(st.sampled_from([False, False, False, True])),
        pattern=draw(patterns()),
        from_start=draw(st.booleans()),
        to_end=draw(st.booleans()),
        length=draw(st.integers(1, 4)),
    )


@st.composite
def forms(draw, n_columns):
    wapiti = draw(st.booleans())
    bare_names = draw(st.booleans())
    lines = []
    for number in range(draw(st.integers(1, 5))):
        prefix = draw(st.sampled_from(["u", "b", "*", "U", "B"] if wapiti else ["U", "B"]))
        prefix += draw(st.sampled_from(["", str(number)])) + ":" * (bare_names or draw(st.booleans()))
        some = tuple(draw(st.lists(macros(n_columns), max_size=4)))
        lines.append(Line(prefix, tuple(draw(FIXED) for _ in range(len(some) + 1)), some))
    return Form(tuple(lines), wapiti, draw(st.booleans()), draw(st.booleans()), bare_names)


@st.composite
def problems(draw):
    n_columns = draw(st.integers(1, 3))
    sentences = st.lists(st.lists(st.tuples(*[VALUE] * n_columns), max_size=5), max_size=4)
    return draw(forms(n_columns)), draw(sentences)


def template_of(form):
    return Template(form.text(), "wapiti" if form.wapiti else "crf++")


def check_same(batch, expected):
    assert batch.vocabulary == expected.vocabulary
    assert batch.n_columns == expected.n_columns
    assert batch.n_unknown == expected.n_unknown
    for name in ("offsets", "indptr", "indices"):
        ours, theirs = getattr(batch, name), getattr(expected, name)
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)


@given(problems())
def test_same_columns_as_strings_give(problem):
    form, sentences = problem
    template = template_of(form)
    rows = template.read(sentences)
    check_same(rows.nodes, Batch.build([form.nodes(sentence) for sentence in sentences]))
    assert template.has_pairs == any(line.prefix[0] in "Bb*" and line.macros for line in form.lines)
    assert template.has_transitions == any(line.prefix[0] in "Bb*" and not line.macros for line in form.lines)
    assert template.n_columns == max((macro.column + 1 for line in form.lines for macro in line.macros), default=0)
    if template.has_pairs:
        check_same(rows.pairs, Batch.build([form.pairs(sentence) for sentence in sentences]))
    else:
        assert rows.pairs is None


@given(problems(), st.data())
def test_same_columns_of_a_vocabulary_that_does_not_grow(problem, data):
    form, sentences = problem
    template = template_of(form)
    vocabularies = []
    for items in (form.nodes, form.pairs):
        strings = sorted({text for sentence in sentences for item in items(sentence) for text in item})
        chosen = data.draw(st.lists(st.sampled_from(strings), unique=True) if strings else st.just([]))
        vocabularies.append(Vocabulary.from_attributes([*chosen, "never asked"]))
    before = [vocabulary.copy() for vocabulary in vocabularies]
    rows = template.read(sentences, *vocabularies)
    check_same(rows.nodes, Batch.build([form.nodes(sentence) for sentence in sentences], vocabulary=vocabularies[0]))
    if template.has_pairs:
        check_same(
            rows.pairs, Batch.build([form.pairs(sentence) for sentence in sentences], vocabulary=vocabularies[1])
        )
    assert vocabularies == before


@given(problems(), st.integers(1, 6), st.integers(0, 6))
def test_blocks_and_forgetting_leave_no_trace(problem, block, most_keys):
    form, sentences = problem
    template = template_of(form)
    results = []
    for settings in ({}, {"block": block, "most_keys": most_keys}):
        nodes, pairs = Vocabulary(), Vocabulary()
        result = template._compiled.read(
            iter(sentences), opened_tokens, nodes._native, pairs._native, grow=True, name="X", **settings
        )
        results.append((nodes, pairs, [array.tolist() for array in (result[0], *result[1][:2], *result[2][:2])]))
    assert results[0] == results[1]


@pytest.mark.parametrize("letter", "adlpsuwADLPSUW")
def test_classes_of_ascii_are_those_of_c(letter):
    signs = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    small, capital, digits = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
    members = {
        "a": small + capital,
        "d": digits,
        "l": small,
        "p": signs,
        "s": " \t\n\v\f\r",
        "u": capital,
        "w": small + capital + digits,
    }[letter.lower()]
    characters = [chr(code) for code in range(1, 128)]
    rows = Template(f'!bare-names\nu:%t[0,0,"\\{letter}"]').read([characters]).nodes
    strings = list(rows.vocabulary)
    found = [strings[column] == "true" for column in rows.indices]
    assert found == [(character in members) == letter.islower() for character in characters]


def read_conll(name):
    with gzip.open(Path(DATA) / name, "rt", encoding="utf-8") as file:
        blocks = file.read().strip().split("\n\n")
    return [[tuple(line.split()) for line in block.split("\n")] for block in blocks]


def tutorial_items(sentence):
    """Attributes as CRFsuite's chunking tutorial names them."""
    windows = {"w": [*zip(range(-2, 3)), (-1, 0), (0, 1)], "pos": [*zip(range(-2, 3))]}
    windows["pos"] += [(-2, -1), (-1, 0), (0, 1), (1, 2), (-2, -1, 0), (-1, 0, 1), (0, 1, 2)]
    items = []
    for at in range(len(sentence)):
        item = []
        for column, (name, places) in enumerate(windows.items()):
            for window in places:
                if at + window[0] >= 0 and at + window[-1] < len(sentence):
                    names = "|".join(f"{name}[{offset}]" for offset in window)
                    item.append(names + "=" + "|".join(sentence[at + offset][column] for offset in window))
        items.append(item + ["__BOS__"] * (at == 0) + ["__EOS__"] * (at == len(sentence) - 1))
    return items


def test_chunking_template_is_that_of_the_tutorial():
    sentences = [[(f"w{i}", f"T{i % 3}") for i in range(length)] for length in range(7)]
    expected = Batch.build([tutorial_items(sentence) for sentence in sentences])
    check_same(Template.chunking().read(sentences).nodes, expected)


@needs_data
def test_chunking_template_on_conll2000():
    train, test = (read_conll(f"conll2000_{part}.txt.gz") for part in ("train", "test"))
    batch = Template.chunking().read(train).nodes
    assert len(batch.vocabulary) == 335_674
    assert batch.indices.size == 3_808_439
    assert batch.n_nodes == 211_727
    check_same(batch, Batch.build([tutorial_items(sentence) for sentence in train]))
    again = Vocabulary.from_buffers(batch.vocabulary.arena(), batch.vocabulary.offsets())
    items = [tutorial_items(sentence) for sentence in test]
    check_same(Template.chunking().read(test, again).nodes, Batch.build(items, vocabulary=again))


@needs_data
def test_default_template_on_conll2000():
    train = read_conll("conll2000_test.txt.gz")[:300]
    batch = Template.default(2).read(train).nodes
    strings = list(batch.vocabulary)
    words = itertools.chain.from_iterable(train)
    for row, (word, *_) in enumerate(words):
        found = {strings[column] for column in batch.indices[batch.indptr[row] : batch.indptr[row + 1]]}
        assert {f"w[0]={word}", f"lower[0]={word.lower()}", f"prefix3={word[:3]}", f"suffix4={word[-4:]}"} <= found
