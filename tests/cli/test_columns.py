"""Which columns are read: those of the training, or those that options name; and plain text, which has none."""

from __future__ import annotations

import json
import re

import pytest

import dualfield
from dualfield.data.records import Record
from dualfield.features import Template
from dualfield.io import FileColumns, read_conll, split_tokens
from dualfield.persistence import ModelFileError, read_model_header
from dualfield.persistence.file import open_model, write_model

from .conftest import corpus


def swapped(text, *order):
    """Return a file with its columns in another order; a word stands for a column of that word."""
    rows = [line.split() for line in text.splitlines()]
    lines = [" ".join(row[at] if isinstance(at, int) else at for at in order) if row else "" for row in rows]
    return "\n".join(lines) + "\n"


@pytest.fixture
def dev(trained):
    return trained.path("dev.txt").read_text()


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A folder with a model of words and labels alone."""
    from .conftest import Shell

    made = Shell(tmp_path_factory.mktemp("words"))
    made("train", made.write("words.txt", swapped(corpus(40, 0), 0, 2)), "--model", made.path("m"), "-q")
    return made


@pytest.fixture
def from_python(trained, shell):
    """The model as Python saves it: it does not know which columns it was trained on."""
    rows = read_conll(trained.path("train.txt"))
    X, y = [[row[:2] for row in s] for s in rows], [[row[2] for row in s] for s in rows]
    dualfield.CRF(template=Template.default(2)).fit(X, y).save(shell.path("python"))
    return shell.path("python")


# What a model file keeps


def test_a_trained_model_knows_its_columns_also_when_it_is_saved_again(trained, shell):
    model = dualfield.load(trained.path("chunks"))
    assert model.file_columns_ == FileColumns(3, (0, 1), 2)
    model.save(shell.path("again"))
    assert shell.path("again").read_bytes() == trained.path("chunks").read_bytes()


def test_inspect_shows_them(trained, from_python):
    assert (
        "trained on   3 columns, tokens in 0,1 and the label in 2\n"
        in trained("inspect", trained.path("chunks")).stdout
    )
    record = json.loads(trained("inspect", "--json", trained.path("chunks")).stdout)
    assert record["file_columns"] == {"n_columns": 3, "features": [0, 1], "label": 2}
    assert "trained on" not in trained("inspect", from_python).stdout
    assert "file_columns" not in json.loads(trained("inspect", "--json", from_python).stdout)


def test_another_fit_forgets_them(trained):
    model = dualfield.load(trained.path("chunks"))
    model.fit([[("a", "b")]], [["x"]])
    assert model.file_columns_ is None


def test_python_saves_none(from_python):
    assert "file_columns" not in read_model_header(from_python)
    assert dualfield.load(from_python).file_columns_ is None


@pytest.mark.parametrize(
    "change",
    [{"label": 1}, {"label": -1}, {"n_columns": 2}, {"features": []}, {"features": [0, 0]}, {"features": [True, 1]}],
    ids=str,
)
def test_altered_columns_are_refused(trained, shell, change):
    file = open_model(trained.path("chunks"))
    record = {name: value for name, value in file.metadata.items() if name not in ("format", "format_version")}
    del record["tensors"]
    for name, array in file.arrays.items():
        inner = record
        *path, last = name.split(".")
        for part in path:
            inner = inner[part]
        inner[last] = array.values
    record["file_columns"] = {**record["file_columns"], **change}
    write_model(shell.path("altered"), record)
    with pytest.raises(ModelFileError, match=r"altered.*file_columns"):
        dualfield.load(shell.path("altered"))
    assert "file_columns" in shell("tag", "--model", "altered", stdin="the DT\n", code=1).stderr


def test_columns_as_a_record():
    columns = FileColumns(5, (3, 0), 1)
    assert FileColumns.from_record(Record(columns.record())) == columns
    assert columns.split("abcde") == (("d", "a"), "b")
    assert columns.without_label == (2, 0)


# train --columns --label


def test_other_columns_give_the_same_weights(trained, shell):
    text = trained.path("train.txt").read_text()
    shell.write("other.txt", swapped(text, 2, "x", 0, 1))
    shell("train", "other.txt", "--columns", "2,3", "--label", "0", "--model", "other", "-q")
    other, model = dualfield.load("other"), dualfield.load(trained.path("chunks"))
    assert other.state_features_ == model.state_features_
    assert other.file_columns_ == FileColumns(4, (2, 3), 0)


def test_the_label_alone_leaves_the_other_columns_to_the_tokens(shell):
    shell.write("a.txt", "B-X a b\nO c d\n")
    shell("train", "a.txt", "--label", "0", "--model", "m", "-q")
    assert dualfield.load("m").file_columns_ == FileColumns(3, (1, 2), 0)


def test_dev_data_are_read_the_same_way(shell):
    text = swapped(corpus(10, 0), 2, 0)
    shell.write("a.txt", text)
    result = shell("train", "a.txt", "--label", "0", "--dev", "a.txt", "--model", "m")
    assert "100.00" in result.stderr
    shell.write("b.txt", swapped(corpus(2, 0), 2, 0, 1))
    said = shell("train", "a.txt", "--label", "0", "--dev", "b.txt", "--model", "m", code=1).stderr
    assert said.splitlines()[-1] == "Error: b.txt:1: has 3 columns; expected 2, as in a.txt."


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--columns", "0,x"], 2, "'0,x' is not a list of columns, counted from 0, such as 0,1."),
        (["--columns", "1,1"], 2, "'1,1' names a column twice."),
        (["--columns", "0,5"], 1, "Error: a.txt:1: has 3 columns, which do not fit --columns 0,5 --label 2: "),
        (["--columns", "0,1", "--label", "1"], 1, "column 1 is listed twice"),
        (["--label", "3"], 1, "there is no column 3: columns are counted from 0 to 2."),
    ],
    ids=["no list", "twice", "absent", "both", "no label"],
)
def test_bad_choices(shell, options, code, said):
    shell.write("a.txt", "a b X\n")
    assert said in shell("train", "a.txt", *options, "--model", "m", code=code).stderr


def test_other_formats_have_no_columns(shell):
    shell.write("a.svm", "1 1:1\n-1 1:2\n")
    said = shell("train", "a.svm", "--label", "0", "--model", "m", code=2).stderr
    assert "--label is for files of columns; the data are svmlight." in said
    shell("train", "a.svm", "--model", "m", "-q")
    assert (
        "--columns is for files of columns" in shell("evaluate", "--model", "m", "--columns", 0, "a.svm", code=2).stderr
    )
    assert "--text is not for m" in shell("tag", "--model", "m", "--text", "a.svm", code=2).stderr


# evaluate


def test_a_prediction_is_not_taken_for_the_truth(trained, shell, dev):
    model = trained.path("chunks")
    wrong = re.sub(r" B-VP\b", " O", dev)
    shell.write("wrong.txt", wrong)
    shell.write("tagged.txt", shell("tag", "--model", model, "wrong.txt").stdout)
    said = shell("evaluate", "--model", model, "tagged.txt", code=1).stderr
    assert said == (
        f"Error: tagged.txt:1: has 4 columns; {model} was trained on 3 columns, tokens in 0,1 and the label in 2. "
        "Name them, such as --columns 0,1 --label 2; or leave out --model, to compare a prediction in the last column "
        "with the label before it.\n"
    )
    expected = shell("evaluate", "--model", model, "wrong.txt").stdout
    assert "accuracy: 100.00%" not in expected
    for options in (["--label", 2], ["--columns", "0,1", "--label", 2]):
        assert shell("evaluate", "--model", model, *options, "tagged.txt").stdout == expected
    assert "has 4 columns" in shell("evaluate", "--model", model, "--columns", "0,1", "tagged.txt", code=1).stderr


def test_a_model_of_python_warns_about_more_columns_than_its_template_reads(from_python, trained, shell, dev):
    expected = shell("evaluate", "--model", from_python, trained.path("dev.txt"))
    assert expected.stderr == ""
    shell.write("more.txt", swapped(dev, 0, 1, 2, "O"))
    result = shell("evaluate", "--model", from_python, "more.txt")
    assert result.stderr.startswith("Warning: more.txt: has 4 columns; the template of")
    right = shell("evaluate", "--model", from_python, "--label", 2, "more.txt")
    assert (right.stdout, right.stderr) == (expected.stdout, "")


def test_columns_need_a_model(shell):
    assert "--label needs --model" in shell("evaluate", "--label", 1, stdin="a b c\n", code=2).stderr


def test_json_has_the_same_choice(trained, shell, dev):
    shell.write("moved.txt", swapped(dev, 2, 1, 0))
    record = json.loads(
        shell(
            "evaluate", "--json", "--model", trained.path("chunks"), "--columns", "2,1", "--label", 0, "moved.txt"
        ).stdout
    )
    assert record["accuracy"] == 1.0


# tag


def test_tag_names_what_the_training_had(words):
    said = words("tag", "--model", words.path("m"), stdin="the dog sees a cat .\n", code=1).stderr
    assert said == (
        f"Error: <stdin>:1: has 6 columns; {words.path('m')} was trained on 2 columns, tokens in 0 and the label in 1. "
        "Name the columns to read, such as --columns 0; --text reads plain text.\n"
    )


def test_tag_reads_named_columns(trained, dev):
    def labels(text, *options):
        lines = trained("tag", "--model", trained.path("chunks"), *options, stdin=text).stdout.splitlines()
        return [line.split()[-1:] for line in lines]

    assert labels(swapped(dev, 1, "x", "y", "z", 0), "--columns", "4,0") == labels(dev)


def test_tag_with_the_label_first(trained, shell):
    text = trained.path("train.txt").read_text()
    shell.write("a.txt", swapped(text, 2, 0, 1))
    shell("train", "a.txt", "--label", 0, "--model", "m", "-q")
    with_label = shell("tag", "--model", "m", "a.txt").stdout.splitlines()
    without = shell("tag", "--model", "m", stdin=swapped(text, 0, 1)).stdout.splitlines()
    assert [line.split()[-1:] for line in with_label] == [line.split()[-1:] for line in without]


def test_a_model_of_python_warns_where_most_columns_are_not_read(from_python, shell):
    said = shell("tag", "--model", from_python, stdin="the DT O O\n").stderr
    assert said.startswith("Warning: <stdin>: has 4 columns; the template of")
    assert shell("tag", "--model", from_python, "--columns", "0,1", stdin="the DT O O\n").stderr == ""
    assert shell("tag", "--model", from_python, stdin="the DT B-NP\n").stderr == ""


# tag --text


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Gent ligt aan de Leie.", "Gent ligt aan de Leie ."),
        ("It's 12:30, 1,000.50 euro!", "It's 12:30 , 1,000.50 euro !"),
        ("a state-of-the-art (3rd) test...", "a state-of-the-art ( 3rd ) test ..."),
        ("\tcafe\u0301 -- «Zoë»?!", "cafe\u0301 -- « Zoë » ? !"),
        ("end of 2020.", "end of 2020 ."),
        ("", ""),
        (" \u00a0 ", ""),
    ],
    ids=["words", "numbers", "hyphens", "accents", "number last", "empty", "blank"],
)
def test_tokens(text, tokens):
    found = split_tokens(text)
    assert [token for token, _, _ in found] == tokens.split()
    assert [text[begin:end] for _, begin, end in found] == tokens.split()


def test_text_has_the_labels_of_its_tokens(words):
    text = "the big dog sees a cat.\n\nno cat likes\tthe river ."
    lines = words("tag", "--model", words.path("m"), "--text", stdin=text).stdout.split("\n")
    one, other = ["the", "big", "dog", "sees", "a", "cat", "."], ["no", "cat", "likes", "the", "river", "."]
    labels = dualfield.load(words.path("m")).predict([one, other])
    rows = [line.split() for line in lines]
    assert [row[0] for row in rows[:7]] == one
    assert [row[3] for row in rows[:7]] == labels[0]
    assert rows[7:9] == [[], []]
    assert [row[3] for row in rows[9:15]] == labels[1]
    assert rows[5] == ["cat", "19", "22", labels[0][5]]
    assert rows[15:] == [[], []]


def test_text_with_probabilities(words):
    model = dualfield.load(words.path("m"))
    lines = words("tag", "--model", words.path("m"), "--text", "--marginals", stdin="the dog").stdout.splitlines()
    assert float(lines[0].split()[4]) == pytest.approx(model.predict_proba([["the", "dog"]])[0][0].max(), abs=1e-6)
    lines = words("tag", "--model", words.path("m"), "--text", "--k-best", 2, stdin="the dog").stdout.splitlines()
    assert [line.split(",")[0] for line in lines if line.startswith("#")] == ["# rank 1", "# rank 2"]
    assert lines[1].startswith("the 0 3 ")


def test_text_needs_a_model_of_words(trained, words):
    said = trained("tag", "--model", trained.path("chunks"), "--text", stdin="the dog", code=2).stderr
    assert "--text gives tokens only, one column; the template of" in said
    for option in (["--columns", "0"], ["--labelled"]):
        said = words("tag", "--model", words.path("m"), "--text", *option, stdin="the dog", code=2).stderr
        assert f"{option[0]} is for files of columns; --text has none." in said
