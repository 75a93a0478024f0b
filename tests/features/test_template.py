"""Template: a value like any other, its inputs, and what it refuses."""

import copy
import dataclasses
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from dualfield.data import Vocabulary
from dualfield.features import Template, TemplateRows

WORDS = "!bare-names\nU:%x[0,0]\nB"
BOTH = "U0:%x[-1,0]/%x[0,1]\nB0:%x[0,0]"


def strings(batch):
    """The attributes of each row."""
    names = list(batch.vocabulary)
    rows = np.split(batch.indices, batch.indptr[1:-1]) if batch.n_nodes else []
    return [[names[column] for column in row] for row in rows]


def test_templates_are_values():
    template = Template(BOTH)
    assert template == Template.parse(BOTH)
    assert hash(template) == hash(Template.parse(BOTH))
    assert template.text == BOTH
    assert template != Template(WORDS)
    assert template != BOTH
    assert Template.parse("U:%x[0,0]", "wapiti") != Template.parse("U:%x[0,0]", "crf++")
    assert Template.parse("U:%x[0,0]") == Template.parse("U:%x[0,0]", "crf++")
    with pytest.raises(dataclasses.FrozenInstanceError):
        template.text = ""


@pytest.mark.parametrize(
    ("text", "syntax"), [(WORDS, "auto"), (BOTH, "auto"), ("U:%x[-1,0]", "wapiti"), ("U:%X[-1,0]", "crf++")]
)
def test_templates_survive_pickle_and_copy(text, syntax):
    template = Template(text, syntax)
    for same in (pickle.loads(pickle.dumps(template)), copy.copy(template), copy.deepcopy(template)):
        assert same == template
        assert same.syntax == template.syntax
        X = [[("a", "b"), ("c", "d")]]
        assert strings(same.read(X).nodes) == strings(template.read(X).nodes)


def test_template_as_a_parameter_of_an_estimator():
    class Estimator(BaseEstimator):
        def __init__(self, template=None):
            self.template = template

    estimator = Estimator(Template(BOTH))
    assert clone(estimator).template == estimator.template
    assert "Template of 2 lines, 2 columns, crf++" in repr(estimator)


def test_repr_counts_lines_that_make_attributes():
    assert repr(Template("# comment\n\n!omit-outside\nU:%x[0,0]")) == "<Template of 1 line, 1 column, crf++>"


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ("U:%x[0,0]\nB", "crf++"),
        ("# u\nU:u%x[0,0]", "crf++"),
        ("U:%p[0,0,2]", "crf++"),
        ("u:%x[0,0]", "wapiti"),
        ("U:%x[0,0]\nb", "wapiti"),
        ("U:%x[0,0]\n*", "wapiti"),
        ("U:%X[0,0]", "wapiti"),
        ('U:%t[0,0,"a"]', "wapiti"),
    ],
)
def test_syntax_is_recognised(text, syntax):
    assert Template.parse(text).syntax == syntax


X = [[("a", "x"), ("b", "y")], [], [("c", "z")]]


@pytest.mark.parametrize(
    "form",
    [
        X,
        tuple(X),
        iter(X),
        (sentence for sentence in X),
        [[list(row) for row in sentence] for sentence in X],
        [tuple(sentence) for sentence in X],
        [iter(sentence) for sentence in X],
        [np.array(sentence) for sentence in X],
        [np.array(sentence, dtype=object) for sentence in X],
        np.array([X[0], [], X[2]], dtype=object),
    ],
    ids=range(10),
)
def test_forms_of_input(form):
    batch = Template(BOTH).read(form).nodes
    assert batch.lengths.tolist() == [2, 0, 1]
    assert strings(batch) == [["U0:_B-1/x"], ["U0:a/y"], ["U0:_B-1/z"]]


def test_data_frames():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frames = [pandas.DataFrame(sentence, columns=["word", "tag"]) for sentence in (X[0], X[2])]
    assert strings(Template(BOTH).read(frames).nodes) == [["U0:_B-1/x"], ["U0:a/y"], ["U0:_B-1/z"]]


def test_one_column():
    assert strings(Template(WORDS).read([["a", "ß"], [np.str_("ä")]]).nodes) == [["a"], ["ß"], ["ä"]]
    assert strings(Template(WORDS).read([[("a",), ["b"]]]).nodes) == [["a"], ["b"]]
    assert strings(Template(WORDS).read([[""]]).nodes) == [[""]]
    assert strings(Template(WORDS).read([["a\0b"]]).nodes) == [["a\0b"]]


def test_columns_that_are_not_asked_for():
    template = Template("U:%x[0,1]")
    assert strings(template.read([[(None, "a", 3.5)]]).nodes) == [["U:a"]]


def test_no_sentences():
    rows = Template(BOTH).read([])
    assert isinstance(rows, TemplateRows)
    for batch in rows:
        assert (len(batch), batch.n_nodes, batch.n_columns) == (0, 0, 0)


def test_a_template_of_transitions_only():
    template = Template("B")
    rows = template.read([["a", "b"]])
    assert template.has_transitions
    assert (rows.nodes.n_nodes, rows.nodes.n_columns, rows.pairs) == (2, 0, None)


def test_pairs_have_a_vocabulary_of_their_own():
    rows = Template(BOTH).read(X)
    assert strings(rows.pairs) == [[], ["B0:b"], []]
    again = Template(BOTH).read(X, rows.nodes.vocabulary, rows.pairs.vocabulary)
    np.testing.assert_array_equal(again.pairs.indices, rows.pairs.indices)
    other = Template(BOTH).read([[("a", "x"), ("q", "x")]], rows.nodes.vocabulary, rows.pairs.vocabulary)
    assert (other.nodes.n_unknown, other.pairs.n_unknown) == (1, 1)
    assert other.pairs.indptr.tolist() == [0, 0, 0]


def test_default_template():
    (first, second) = strings(Template.default().read([["Don't", "PANIC"]]).nodes)
    assert first == [
        "w[0]=Don't", "w[1]=PANIC", "lower[0]=don't", "lower[1]=panic", "lower[0]|lower[1]=don't|panic",
        "shape[0]=Xxx'x", "outline[0]=Xx'x", "outline[1]=X", "prefix1=D", "prefix2=Do", "prefix3=Don", "prefix4=Don'",
        "suffix1=t", "suffix2='t", "suffix3=n't", "suffix4=on't", "__BOS__",
    ]  # fmt: skip
    assert "w[-1]=Don't" in second
    assert Template.default().has_transitions
    assert Template.default(3).n_columns == 3
    assert "c2[-1]|c2[0]=b|d" in strings(Template.default(3).read([[("w", "a", "b"), ("v", "c", "d")]]).nodes)[1]
    assert Template.parse(Template.default(2).text) == Template.default(2)


def test_threads_read_with_one_template():
    sentences = [[(f"w{i * 7 % 11}", f"t{i % 3}") for i in range(length % 9)] for length in range(200)]
    template = Template(BOTH)
    expected = template.read(sentences)
    vocabularies = expected.nodes.vocabulary, expected.pairs.vocabulary
    with ThreadPoolExecutor(4) as pool:
        grown = list(pool.map(lambda _: template.read(sentences), range(8)))
        known = list(pool.map(lambda _: template.read(sentences, *vocabularies), range(8)))
    for rows in grown + known:
        assert rows.nodes.vocabulary == expected.nodes.vocabulary
        np.testing.assert_array_equal(rows.nodes.indices, expected.nodes.indices)
        np.testing.assert_array_equal(rows.pairs.indices, expected.pairs.indices)


# What is refused.


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ("abc", TypeError, "X must be a list of sentences. Got str instead."),
        (3, TypeError, "X must be a list of sentences. Got int instead."),
        (["abc"], TypeError, "X[0] must be a list of rows, each a list or tuple of 2 str. Got str instead: is a level"),
        ([X[0], 3], TypeError, "X[1] must be a list of rows, each a list or tuple of 2 str. Got int instead."),
        ([[{"a": 1}]], TypeError, "X[0][0] must be a list or tuple of 2 str. Got dict instead."),
        ([[("a", "b"), 3]], TypeError, "X[0][1] must be a list or tuple of 2 str. Got int instead."),
        ([[], [("a", "b"), ("a", 3)]], TypeError, "X[1][1] has int in column 1; expected str."),
        ([[("a", b"b")]], TypeError, "X[0][0] has bytes in column 1; expected str."),
        ([[("a", "\ud800")]], ValueError, "X[0][0] has a lone surrogate in column 1, which UTF-8 cannot express."),
        ([["a"]], ValueError, "X[0][0] has 1 column; the template reads 2."),
        ([[("a", "b")], [()]], ValueError, "X[1][0] has 0 columns; the template reads 2."),
        ([[], [("a", "b")], [("a", "b", "c")]], ValueError, "X[2][0] has 3 columns; expected 2, as in X[1][0]."),
        ([[("a", "b", "c")], [("a", "b")]], ValueError, "X[1][0] has 2 columns; expected 3, as in X[0][0]."),
    ],
)
def test_refused_input(X, error, message):
    with pytest.raises(error) as caught:
        Template(BOTH).read(X)
    assert str(caught.value).startswith(message)


def test_refused_input_of_one_column():
    with pytest.raises(TypeError, match=r"^data\[0\]\[1\] must be a str, or a list or tuple of str. Got int instead.$"):
        Template(WORDS).read([["a", 3]], name="data")


def test_errors_of_a_generator_come_through():
    def sentences():
        yield X[0]
        raise RuntimeError("the file ends")

    with pytest.raises(RuntimeError, match="the file ends"):
        Template(BOTH).read(sentences())


def test_vocabularies_come_together():
    with pytest.raises(ValueError, match="'vocabulary' and 'pair_vocabulary' must be given together"):
        Template(BOTH).read(X, Vocabulary())
    with pytest.raises(ValueError, match="'vocabulary' and 'pair_vocabulary' must be given together"):
        Template(BOTH).read(X, pair_vocabulary=Vocabulary())
    assert Template(WORDS).read([["a"]], Vocabulary()).nodes.n_unknown == 1


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3,), TypeError, "The 'text' parameter of Template must be a str. Got int instead."),
        (("U", "perl"), ValueError, "The 'syntax' parameter of Template must be one of 'auto', 'crf++', 'wapiti'."),
        (("U\ud800",), ValueError, "The 'text' parameter of Template has a lone surrogate"),
        (("",), ValueError, "The template has no line that makes an attribute."),
        (("U\nV",), ValueError, "Line 2 of the template, 'V': a line of a CRF++ template must start with 'U' or 'B'"),
        (("u\nv",), ValueError, "Line 2 of the template, 'v': a line of a Wapiti pattern must start with 'u', 'b' or"),
        (("U:%z[0,0]",), ValueError, "Line 1 of the template, 'U:%z[0,0]': a '%' must start one of the macros"),
        (("U:%x[0,0,1]",), ValueError, "Line 1 of the template, 'U:%x[0,0,1]': expected ']' at the end of a macro."),
    ],
)
def test_refused_templates(arguments, error, message):
    with pytest.raises(error) as caught:
        Template.parse(*arguments)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("n_columns", [0, -1, 1.5, True, "2", 1001])
def test_refused_default(n_columns):
    with pytest.raises(
        ValueError, match=r"^The 'n_columns' parameter of Template.default must be an int in \[1, 1000\]"
    ):
        Template.default(n_columns)
