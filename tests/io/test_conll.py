"""CoNLL columns: read from everywhere, written back, and refused by file and line."""

import gzip
import io
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualfield.io import iter_conll, read_conll, write_conll

DATA = os.environ.get("DUALFIELD_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="DUALFIELD_DATA does not name the folder with conll2000_test.txt.gz")

TEXT = "He PRP B-NP\nran VBD B-VP\n\nStop VB B-VP\n"
SENTENCES = [[("He", "PRP", "B-NP"), ("ran", "VBD", "B-VP")], [("Stop", "VB", "B-VP")]]

# A byte order mark in front of the first word would be taken for that of the file.
SIGNS = st.characters(exclude_categories=("Cs",), exclude_characters=" \t\r\n\ufeff")
WORD = st.text(SIGNS, min_size=1, max_size=4)
PHRASE = st.text(SIGNS | st.just(" "), max_size=4)


def tables(column):
    """Sentences with the same number of columns everywhere."""
    row = st.integers(1, 4).flatmap(lambda n: st.just(st.tuples(*[column] * n)))
    return row.flatmap(lambda one: st.lists(st.lists(one, min_size=1, max_size=4), max_size=4))


@given(tables(WORD))
def test_what_is_written_is_read_back(sentences):
    target = io.StringIO()
    write_conll(sentences, target)
    assert read_conll(io.BytesIO(target.getvalue().encode())) == sentences


@given(tables(PHRASE).filter(lambda table: all("".join(row).strip(" ") for sentence in table for row in sentence)))
def test_tabs_let_columns_hold_spaces_or_nothing(sentences):
    target = io.StringIO()
    write_conll(sentences, target, separator="\t")
    assert read_conll(io.BytesIO(target.getvalue().encode()), separator="\t") == sentences


def test_every_source_gives_the_same(tmp_path):
    plain, packed = tmp_path / "a.txt", tmp_path / "a.txt.gz"
    plain.write_text(TEXT, encoding="utf-8")
    packed.write_bytes(gzip.compress(TEXT.encode()))
    misnamed = tmp_path / "b.txt"
    misnamed.write_bytes(packed.read_bytes())
    for source in (plain, str(plain), packed, misnamed, io.StringIO(TEXT), io.BytesIO(TEXT.encode())):
        assert read_conll(source) == SENTENCES
    for lines in (TEXT.split("\n"), TEXT.splitlines(keepends=True), iter(TEXT.splitlines())):
        assert read_conll(lines) == SENTENCES
    with plain.open(encoding="utf-8") as file:
        assert list(iter_conll(file)) == SENTENCES


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace(" ", "\t"),
        TEXT.replace(" ", " \t "),
        TEXT.replace("\n", "\r\n"),
        "\ufeff" + TEXT,
        "\n\n" + TEXT + "\n\n\n",
        TEXT.replace("\n\n", "\n \t\n"),
        TEXT.removesuffix("\n"),
        "-DOCSTART- -X- O O\n\n" + TEXT + "\n-DOCSTART-\n",
        TEXT.replace("\n\n", "\n-DOCSTART- -X-\n"),
    ],
    ids=itertools.count(),
)
def test_forms_of_the_same_file(text):
    assert read_conll(io.BytesIO(text.encode())) == SENTENCES


def test_comments_are_left_out_only_where_asked():
    text = "# a comment\n1 #\n\n#2 x\n"
    assert read_conll(io.StringIO(text), comments="#") == [[("1", "#")]]
    assert read_conll(["# NN", "a DT"]) == [[("#", "NN"), ("a", "DT")]]


def test_only_blanks_separate_columns():
    """Other white space of Unicode occurs inside words."""
    assert read_conll(["10\u00a0000\u2028 CD"]) == [[("10\u00a0000\u2028", "CD")]]


def test_encoding(tmp_path):
    path = tmp_path / "esp.txt"
    path.write_bytes("años NC\n".encode("latin-1"))
    assert read_conll(path, encoding="latin-1") == [[("años", "NC")]]
    with pytest.raises(ValueError, match=r"esp\.txt, line 1: cannot be read as utf-8: "):
        read_conll(path)


def test_bytes_that_cannot_be_decoded_are_found(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"a B\n" * 5 + b"\xff B\n" + b"a B\n")
    with pytest.raises(ValueError, match=r"a\.txt, line 6: "):
        read_conll(path)
    with path.open(encoding="utf-8") as file, pytest.raises(ValueError, match=r"a\.txt, after line \d: "):
        read_conll(file)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a B", "", "c"], "lines, line 3: has 1 column; the first row, in line 1, has 2."),
        (["", "a", "-DOCSTART- x", "b c d"], "lines, line 4: has 3 columns; the first row, in line 2, has 1."),
    ],
)
def test_ragged_rows_are_refused(lines, message):
    with pytest.raises(ValueError, match="line") as caught:
        read_conll(lines)
    assert str(caught.value) == message


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("a B\nc\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"train\.txt, line 2: has 1 column;"):
        read_conll(path)


@pytest.mark.parametrize("keep", [2, 10, 20, -9, -1])
def test_damaged_gzip_is_refused(tmp_path, keep):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(TEXT.encode())[:keep])
    with pytest.raises(ValueError, match=r"a\.gz, after line \d+: the compressed file is damaged or cut off"):
        read_conll(path)


def test_iteration_reads_no_more_than_it_must():
    def lines():
        yield from ["a B", "", "c D"]
        raise AssertionError("read too far")

    sentences = iter_conll(lines())
    assert next(sentences) == [("a", "B")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"separator": ","}, r"The 'separator' parameter of read_conll must be None, '\\t' or ' '. Got ',' instead."),
        ({"comments": ""}, r"The 'comments' parameter of read_conll must be a str or None. Got '' instead."),
        ({"encoding": "utf-16"}, r"The 'encoding' parameter of read_conll must be one that extends ASCII."),
    ],
)
def test_wrong_parameters_are_refused_before_reading(arguments, message):
    with pytest.raises(ValueError, match=message):
        iter_conll(["a"], **arguments)


def test_line_that_is_no_text_is_refused():
    with pytest.raises(TypeError, match=r"lines, line 2: must be a str. Got int instead."):
        read_conll(["a", 1])
    with pytest.raises(FileNotFoundError):
        read_conll("no-such-file.txt")


# Writing.


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
def test_paths_are_written(tmp_path, name):
    path = tmp_path / name
    write_conll(SENTENCES, path)
    first = path.read_bytes()
    assert (first[:2] == b"\x1f\x8b") == name.endswith(".gz")
    write_conll(iter(SENTENCES), str(path))
    assert path.read_bytes() == first, "the same sentences give the same file"
    assert read_conll(path) == SENTENCES
    assert [found.name for found in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize(
    ("sentences", "error", "message"),
    [
        ([[("a", "b")], []], ValueError, r"sentences\[1\] must have at least one row"),
        ([[("a", "b")], [("c",)]], ValueError, r"sentences\[1\]\[0\] has 1 column; the first row has 2."),
        ([[("a", "b c")]], ValueError, r"sentences\[0\]\[0\]\[1\] must not contain blanks or line breaks. Got 'b c'"),
        ([[("a\n",)]], ValueError, r"sentences\[0\]\[0\]\[0\] must not contain blanks or line breaks"),
        ([[("a", "")]], ValueError, r"sentences\[0\]\[0\]\[1\] must not be empty"),
        ([[()]], ValueError, r"sentences\[0\]\[0\] must have a column that is not blank"),
        ([[("-DOCSTART-", "O")]], ValueError, r"sentences\[0\]\[0\] would be read as the mark of a document"),
        ([["ab"]], TypeError, r"sentences\[0\]\[0\] must be a sequence of str. Got 'ab' instead."),
        ([[("a", 1)]], TypeError, r"sentences\[0\]\[0\] must be a sequence of str"),
        ([[("\ud800",)]], ValueError, r"Line 1 cannot be written as UTF-8"),
        ([[("\ufeffa", "b")]], ValueError, r"The first line begins with U\+FEFF, which is read as a byte order mark"),
    ],
    ids=itertools.count(),
)
def test_what_could_not_be_read_back_is_refused(tmp_path, sentences, error, message):
    path = tmp_path / "out.txt"
    path.write_text("before", encoding="utf-8")
    with pytest.raises(error, match=message):
        write_conll(sentences, path)
    assert path.read_text(encoding="utf-8") == "before"
    assert [found.name for found in tmp_path.iterdir()] == ["out.txt"]


@pytest.mark.parametrize("row", [("", " "), (" -DOCSTART-", "O"), ("-DOCSTART- x",)])
def test_tabs_have_their_own_faults(row):
    with pytest.raises(ValueError, match=r"sentences\[0\]\[0\] "):
        write_conll([[row]], io.StringIO(), separator="\t")


def test_wrong_targets_are_refused(tmp_path):
    with pytest.raises(ValueError, match="The 'separator' parameter of write_conll must be ' ' or '\\\\t'"):
        write_conll(SENTENCES, tmp_path / "out.txt", separator=",")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_conll(SENTENCES, tmp_path)
    with pytest.raises(FileNotFoundError):
        write_conll(SENTENCES, tmp_path / "no" / "out.txt")


@needs_data
def test_real_file():
    read = read_conll(Path(DATA) / "conll2000_test.txt.gz")
    assert (len(read), sum(map(len, read))) == (2012, 47377)
    assert {len(row) for sentence in read for row in sentence} == {3}


def test_a_byte_order_mark_inside_is_kept():
    text = io.StringIO()
    write_conll([[("a", "\ufeffb"), ("\ufeffc", "d")]], text)
    assert read_conll(io.StringIO(text.getvalue())) == [[("a", "\ufeffb"), ("\ufeffc", "d")]]


@pytest.mark.parametrize("text", [b"a b\rc d\r\re f\r", b"a b\nc d\re f\n"])
def test_lines_that_end_as_on_old_macs_are_refused(text):
    """Carriage returns alone would make one line of many."""
    with pytest.raises(ValueError, match=r"has a carriage return without a line feed. Convert line ends"):
        read_conll(io.BytesIO(text))
