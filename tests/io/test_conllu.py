"""CoNLL-U, read and written."""

import gzip
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualfield.data import DependencySentence
from dualfield.io import iter_conllu, read_conllu, write_conllu

TEXT = """# sent_id = 1
# text = Vámonos al mar
1-2	Vámonos	_	_	_	_	_	_	_	_
1	Vamos	ir	VERB	_	Mood=Imp	0	root	_	_
2	nos	nosotros	PRON	_	_	1	obj	_	_
3-4	al	_	_	_	_	_	_	_	_
3	a	a	ADP	_	_	5	case	_	_
4	el	el	DET	_	_	5	det	_	_
5	mar	mar	NOUN	_	_	1	obl	_	SpaceAfter=No
5.1	_	_	_	_	_	_	_	1:conj	_

1	Stop	stop	VERB	VB	_	0	root	_	_
2	New York	New York	PROPN	NNP	_	1	obj:x	_	_

"""


def lines(text=TEXT):
    return text.split("\n")[:-1]


def test_what_is_read():
    one, two = read_conllu(lines())
    assert len(one) == 5
    assert one.heads == [0, 1, 5, 5, 1]
    assert one.labels == ["root", "obj", "case", "det", "obl"]
    assert one.tokens[0] == ("Vamos", "VERB", "_", "ir", "Mood=Imp")
    assert one.comments == ("# sent_id = 1", "# text = Vámonos al mar")
    assert two.tokens[1][0] == "New York"
    assert [len(sentence) for sentence in iter_conllu(lines())] == [5, 2]


@pytest.mark.parametrize("name", ["trees.conllu", "trees.conllu.gz"])
def test_files_come_back_as_they_were(tmp_path, name):
    sentences = read_conllu(lines())
    write_conllu(sentences, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    assert (gzip.decompress(content) if name.endswith("gz") else content).decode() == TEXT
    assert read_conllu(tmp_path / name) == sentences


def test_other_trees_keep_ranges_empty_nodes_and_comments():
    one = read_conllu(lines())[0].with_heads([2, 0, 2, None, 2], ["a", "root", "b", None, "c"])
    changed = [row for row in one.rows if row[0].isdecimal()]
    assert [row[6:8] for row in changed] == [("2", "a"), ("0", "root"), ("2", "b"), ("_", "_"), ("2", "c")]
    assert [row[0] for row in one.rows] == ["1-2", "1", "2", "3-4", "3", "4", "5", "5.1"]
    assert one.rows[-1][8] == "1:conj"
    assert one.heads[3] is None
    assert one.labels[3] is None
    with pytest.raises(ValueError, match=r"heads must have 5 entries, one for each word. Got 2"):
        one.with_heads([0, 1])
    with pytest.raises(ValueError, match="labels must have 5 entries"):
        one.with_heads([0, 1, 1, 1, 1], ["a"])


def row(number, head="0", **more):
    columns = [number, "x", "_", "_", "_", "_", head, "_", "_", "_"]
    return "\t".join(more.get(f"c{at}", column) for at, column in enumerate(columns))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([row("1"), "2 x"], r"line 2: must have 10 columns with tabs between. Got 1"),
        ([row("1"), row("3")], r"line 2: the number of the word must be 2. Got '3'"),
        ([row("x")], r"line 1: the number of the word must be 1. Got 'x'"),
        ([row("2-3")], r"line 1: the number of the word must be 1. Got '2-3'"),
        ([row("1.1")], r"line 1: the number of the word must be 1. Got '1.1'"),
        (["# a", row("1"), row("2", "7"), "", ""], r"line 3: the head must be in \[0, 2\], or an underscore. Got '7'"),
        ([row("1", "-1")], r"line 1: the head must be in \[0, 1\]"),
        ([row("1", "1")], r"line 1: word 1 is its own head"),
        ([row("1"), "# late"], r"line 2: comments must be before the words"),
        (["# alone", "", row("1")], r"line 2: the sentence that ends here has no words"),
        ([row("1", c1="")], r"line 1: column 2 is empty"),
    ],
)
def test_errors_name_the_line(given, message, tmp_path):
    with pytest.raises(ValueError, match=f"lines, {message}"):
        read_conllu(given)
    path = tmp_path / "bad.conllu"
    path.write_text("\n".join(given) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match=f"bad.conllu, {message}"):
        read_conllu(path)


def test_what_could_not_be_read_back_is_not_written(tmp_path):
    broken = DependencySentence.from_tokens([("a\tb", "N")], [0])
    with pytest.raises(ValueError, match=r"10 columns|read as another one"):
        write_conllu([broken], tmp_path / "x")
    with pytest.raises(TypeError, match=r"sentences\[0\] must be a DependencySentence. Got list"):
        write_conllu([[1]], tmp_path / "x")
    assert not (tmp_path / "x").exists()


IDS = st.sampled_from(["1", "2", "3", "1-2", "2-3", "0.1", "1.1", "2.1", "x", "\u0661", "01"])
HEADS = st.sampled_from(["0", "1", "2", "3", "_", "x", "-1", "\u0661", "01"])
FORMS = st.sampled_from(["a", "", " ", "#", "\x0b", "1\u2028", "a\tb"])
LINES = st.one_of(
    st.sampled_from(["", " ", "# c", "#"]),
    st.builds(lambda one, form, head: f"{one}\t{form}" + "\t_" * 4 + f"\t{head}" + "\t_" * 3, IDS, FORMS, HEADS),
)


@settings(max_examples=1000)
@given(st.lists(LINES, max_size=6))
def test_what_is_read_is_written_again(rows):
    """Any lines are refused by a ValueError, or come back as they were."""
    try:
        found = read_conllu(rows)
    except ValueError:
        return
    file = io.StringIO()
    write_conllu(found, file)
    assert read_conllu(file.getvalue().split("\n")) == found
    for sentence in found:
        assert len(sentence.heads) == len(sentence) > 0


def test_sentences_of_tokens():
    made = DependencySentence.from_tokens([("Stop", "VERB"), ("it", "PRON", "PRP", "it")], [0, 1], ["root", "obj"])
    assert made.heads == [0, 1]
    assert made.tokens == [("Stop", "VERB", "_", "_", "_"), ("it", "PRON", "PRP", "it", "_")]
