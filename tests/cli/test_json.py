"""JSON of annotation tools on the command line: trained on, evaluated, tagged and converted, without a loss."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys

import pytest

import dualfield
from dualfield.io import read_conll, read_json_spans, read_json_tokens
from dualfield.metrics import spans


@pytest.fixture
def files(shell, trained):
    """words.txt: token and chunk; the same as spans.jsonl, doccano.jsonl, tokens.jsonl and, as a list, studio.json."""
    for name in ("train", "dev"):
        rows = [line.split() for line in trained.path(f"{name}.txt").read_text().splitlines()]
        shell.write(f"{name}.txt", "".join(f"{row[0]} {row[2]}\n" if row else "\n" for row in rows))
        for form in ("spans", "doccano", "tokens"):
            shell("convert", f"{name}.txt", f"{name}.{form}.jsonl", "--to", form)
    texts = read_json_spans("train.spans.jsonl")
    tasks = [
        {
            "data": {"text": text.text},
            "annotations": [
                {"result": [{"value": {"start": a, "end": b, "labels": [c]}} for a, b, c in text.character_spans]}
            ],
        }
        for text in texts
    ]
    shell.write("train.studio.json", json.dumps(tasks, indent=1))
    return shell


def test_every_form_trains_the_same_model(files):
    files("train", "train.txt", "--model", "columns", "-q")
    expected = files.path("columns").read_bytes()
    for name in ("train.spans.jsonl", "train.doccano.jsonl", "train.tokens.jsonl", "train.studio.json"):
        said = files("train", name, "--model", "m").stderr
        kind = "JSON with tokens and tags" if "tokens" in name else "JSON with character spans"
        assert said.startswith(f"{name}: {kind}: 40 sentences")
        assert files.path("m").read_bytes() == expected
    files("train", "train.spans.jsonl", "--format", "spans", "--dev", "dev.txt", "--model", "m", "-q")
    assert files.path("m").read_bytes() == expected


def test_compressed_and_from_a_pipe(files):
    content = files.path("train.spans.jsonl").read_bytes()
    files.path("train.jsonl.gz").write_bytes(gzip.compress(content))
    files("train", "train.jsonl.gz", "--model", "a", "-q")
    files("train", "-", "--model", "b", "-q", stdin=content)
    assert files.path("a").read_bytes() == files.path("b").read_bytes()


@pytest.mark.parametrize("form", ["spans", "doccano", "tokens"])
def test_evaluate(files, form):
    files("train", "train.txt", "--model", "m", "-q")
    expected = files("evaluate", "--model", "m", "dev.txt").stdout
    assert files("evaluate", "--model", "m", f"dev.{form}.jsonl").stdout == expected


def test_evaluate_takes_the_scheme_of_the_model(files):
    files("convert", "train.txt", "train.bioes", "--to", "conll", "--scheme", "bioes")
    files("train", "train.bioes", "--model", "m", "-q")
    assert json.loads(files("evaluate", "--model", "m", "train.spans.jsonl", "--json").stdout)["accuracy"] > 0.9


@pytest.mark.parametrize("form", ["spans", "doccano", "tokens"])
def test_tag_writes_the_form_that_it_reads(files, form):
    files("train", "train.txt", "--model", "m", "-q")
    lines = files("tag", "--model", "m", "dev.txt").stdout.split("\n\n")
    expected = [[line.split()[-1] for line in sentence.split("\n")] for sentence in lines if sentence]
    out = files("tag", "--model", "m", f"dev.{form}.jsonl").stdout.splitlines()
    if form == "tokens":
        assert read_json_tokens(out)[1] == expected
    else:
        assert [text.spans for text in read_json_spans(out)] == [spans(labels) for labels in expected]
        assert all(("label" in json.loads(line)) == (form == "doccano") for line in out)
    assert files("tag", "--model", "m", "dev.txt", "--to", form).stdout.splitlines() == out


def test_plain_text_is_annotated_beforehand(files):
    files("train", "train.txt", "--model", "m", "-q")
    text = "The old dog sees a cat.\n\n  a river...\n"
    out = files("tag", "--model", "m", "--text", "--to", "spans", stdin=text).stdout.splitlines()
    found = read_json_spans(out)
    assert [one.text for one in found] == ["The old dog sees a cat.", "  a river..."]
    columns = files("tag", "--model", "m", "--text", stdin=text).stdout.split("\n\n")
    rows = [[line.split() for line in block.strip().split("\n")] for block in columns if block.strip()]
    for one, sentence in zip(found, rows, strict=True):
        assert [(token, str(start), str(end)) for token, start, end in one.tokens] == [
            tuple(row[:3]) for row in sentence
        ]
        assert one.spans == spans([row[3] for row in sentence])


def test_probabilities(files):
    files("train", "train.txt", "--model", "m", "-q")
    model = dualfield.load("m")
    X = [[row[:1] for row in sentence] for sentence in read_conll("dev.txt")]
    expected = [[round(span.probability, 6) for span in one] for one in model.predict_spans(X)]
    out = [
        json.loads(line) for line in files("tag", "--model", "m", "dev.spans.jsonl", "--marginals").stdout.splitlines()
    ]
    assert [[span["score"] for span in record["spans"]] for record in out] == expected
    out = [
        json.loads(line)
        for line in files("tag", "--model", "m", "dev.doccano.jsonl", "--marginals").stdout.splitlines()
    ]
    assert [record["scores"] for record in out] == expected
    tagged = files("tag", "--model", "m", "dev.tokens.jsonl", "--marginals").stdout.splitlines()
    best = [row.max(axis=1) for row in model.predict_proba(X)]
    for record, rows in zip(map(json.loads, tagged), best, strict=True):
        assert len(record["probabilities"]) == len(rows)
        assert all(p <= q + 1e-6 for p, q in zip(record["probabilities"], rows, strict=True))


def test_other_fields_stay(files):
    files("train", "train.txt", "--model", "m", "-q")
    record = {"id": 7, "meta": {"source": "é"}, "text": "the dog", "answer": "reject", "spans": [{"start": 99}]}
    (line,) = files("tag", "--model", "m", stdin=json.dumps(record)).stdout.splitlines()
    found = json.loads(line)
    assert (found["id"], found["meta"], found["text"]) == (7, {"source": "é"}, "the dog")
    assert "answer" not in found
    assert found["spans"][0]["label"] == "NP"


def test_lists_and_empty_texts(files):
    files("train", "train.txt", "--model", "m", "-q")
    text = '[\n {"text": ""},\n {"text": "the dog"}\n]\n'
    empty, full = map(json.loads, files("tag", "--model", "m", stdin=text).stdout.splitlines())
    assert empty == {"text": "", "tokens": [], "spans": []}
    assert len(full["tokens"]) == 2
    container = json.dumps({"label_names": ["O"], "data": [{"tokens": ["the", "dog"]}]}, indent=2)
    assert len(read_json_tokens(files("tag", "--model", "m", stdin=container).stdout.splitlines())[0]) == 1


def test_lines_are_tagged_as_they_come(files):
    files("train", "train.txt", "--model", "m", "-q")
    command = [sys.executable, "-m", "dualfield", "tag", "--model", "m"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for word in ("dog", "cat", "river"):
            process.stdin.write(json.dumps({"text": f"the {word}"}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["text"] == f"the {word}"
        process.stdin.close()
        assert process.wait() == 0


def test_what_was_rejected_is_told(files):
    lines = files.path("train.spans.jsonl").read_text().splitlines()
    lines[3] = json.dumps({**json.loads(lines[3]), "answer": "reject"})
    files.write("some.jsonl", "\n".join(lines) + "\n")
    said = files("train", "some.jsonl", "--model", "m").stderr
    assert "some.jsonl: 1 of 40 texts are left out: their annotation was not accepted." in said
    assert "39 sentences" in said
    assert files("convert", "some.jsonl", "a.txt").stderr.count("left out") == 1


def test_integer_tags(files):
    files.write("n.jsonl", '{"tokens": ["the", "dog"], "ner_tags": [1, 2]}\n{"tokens": ["ran"], "ner_tags": [0]}\n')
    said = files("train", "n.jsonl", "--model", "m", code=1).stderr
    assert said == 'Error: n.jsonl:1: "ner_tags"[0] is 1, a tag without a name. Name the tags by --label-names.\n'
    info = {"features": {"ner_tags": {"feature": {"names": ["O", "B-NP", "I-NP"]}, "_type": "Sequence"}}}
    for content in ("O\nB-NP\nI-NP\n", '["O", "B-NP", "I-NP"]', json.dumps(info)):
        files.write("names", content)
        text = files("convert", "n.jsonl", "-", "--to", "conll", "--label-names", "names").stdout
        assert text == "the B-NP\ndog I-NP\n\nran O\n\n"
    assert files("convert", "n.jsonl", "-", "--to", "conll", "--label-names", "O, B-NP,I-NP").stdout == text
    files.write("n.txt", text)
    files("convert", "n.txt", "again.jsonl", "--to", "tokens", "--label-names", "O,B-NP,I-NP")
    assert files.path("again.jsonl").read_text() == files.path("n.jsonl").read_text()
    assert "is not a list of names" in files("train", "n.jsonl", "--model", "m", "--label-names", "O", code=2).stderr


def test_errors_name_file_line_and_remedy(files):
    files.write("bad.jsonl", '{"text": "the dog", "label": []}\n\n{"text": "the dog", "label": [[1, 3, "X"]]}\n')
    said = files("train", "bad.jsonl", "--model", "m", code=1).stderr
    assert said.startswith("Error: bad.jsonl:3: the span 1-3 'he' (X) begins inside a token; nearest: 'the' 0-3.")
    assert said.endswith("or take whole tokens by --alignment expand.\n")
    text = files("convert", "bad.jsonl", "-", "--to", "doccano", "--alignment", "expand").stdout
    assert text.splitlines()[1] == '{"text": "the dog", "label": [[0, 3, "X"]]}'
    files.write("bad.jsonl", '{"text": "the dog", "label": []}\n{"text": "the d\n')
    assert "Error: bad.jsonl:2: is not JSON" in files("train", "bad.jsonl", "--model", "m", code=1).stderr
    files("train", "train.txt", "--model", "m", "-q")
    assert "Error: bad.jsonl:2: is not JSON" in files("tag", "--model", "m", "bad.jsonl", code=1).stderr
    files.write(
        "c.jsonl", '{"text": "the dog", "label": [[0, 3, "NP"]]}\n{"text": "the dog", "label": [[0, 3, "NEW"]]}\n'
    )
    said = files("train", "train.txt", "--dev", "c.jsonl", "--model", "m").stderr
    assert "c.jsonl:2: the label 'B-NEW' has no training example" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tag", "dev.spans.jsonl", "--k-best", "2"], "--k-best is for columns; dev.spans.jsonl is JSON"),
        (["tag", "dev.spans.jsonl", "--marginals", "all"], "--marginals all is for columns"),
        (["tag", "dev.spans.jsonl", "--to", "conll"], "`dualfield convert` writes columns"),
        (["tag", "dev.spans.jsonl", "--columns", "0"], "are for files of columns; dev.spans.jsonl is JSON"),
        (["tag", "dev.txt", "--to", "spans", "--k-best", "2"], "--k-best is for columns. With --to spans"),
    ],
)
def test_wrong_usage(files, arguments, said):
    files("train", "train.txt", "--model", "m", "-q")
    assert said in files(*arguments, "--model", "m", code=2).stderr


def test_models_that_do_not_fit(files, trained):
    chunks = trained.path("chunks")  # reads two columns
    for command in ("tag", "evaluate"):
        said = files(command, "--model", chunks, "dev.spans.jsonl", code=1).stderr
        assert f"dev.spans.jsonl: has tokens only, one column; the template of {chunks} reads 2." in said
    files.write("pos.txt", "the DT\ndog NN\n\n" * 3)
    files("train", "pos.txt", "--model", "pos", "-q")
    assert "those of pos are DT, NN. Use --to tokens." in files("tag", "--model", "pos", "--to", "spans", code=2).stderr
    files("convert", "train.txt", "train.items")
    files("train", "train.items", "--model", "items", "-q")
    assert "--to is not for items" in files("tag", "--model", "items", "--to", "spans", code=2, stdin="").stderr


# Schemes of labels.


def test_schemes(files):
    for scheme in ("iob1", "bioes", "IOBES"):
        files("convert", "train.txt", "there.txt", "--scheme", scheme)
        assert files.path("there.txt").read_text() != files.path("train.txt").read_text()
        files("convert", "there.txt", "back.txt", "--scheme", "iob2")
        assert files.path("back.txt").read_text() == files.path("train.txt").read_text()
        files("convert", "train.spans.jsonl", "made.txt", "--scheme", scheme)
        assert files.path("made.txt").read_text() == files.path("there.txt").read_text()
    files.write("a.items", "B-X\tw=a\nI-X\tw=b\n\n")
    assert files("convert", "a.items", "-", "--to", "crfsuite", "--scheme", "bioes").stdout == "B-X\tw=a\nE-X\tw=b\n\n"


def test_labels_that_break_their_scheme_are_named(files):
    files.write("bad.txt", "-DOCSTART- O\n\na B-X\n\nb O\nc I-Y\nd B-Y\n")
    said = files("convert", "bad.txt", "a.txt", "--scheme", "bioes", code=1).stderr
    assert "Error: bad.txt:6: 'I-Y' may not follow 'O' in BIO. No other scheme fits; --from-scheme any" in said
    assert "Error: bad.txt:6:" in files("convert", "bad.txt", "a.jsonl", code=1).stderr
    assert not files.path("a.txt").exists()
    text = files("convert", "bad.txt", "-", "--to", "conll", "--scheme", "bioes", "--from-scheme", "any").stdout
    assert text == "a S-X\n\nb O\nc S-Y\nd S-Y\n\n"
    said = files("convert", "bad.txt", "a.txt", "--scheme", "bio", "--from-scheme", "iob1", code=1).stderr
    assert "Error: bad.txt:3: 'B-X' may not stand first in IOB1.\n" in said
    files.write("pos.txt", "a B-X\nb NN\n")
    assert "pos.txt:2: the label 'NN' marks no span" in files("convert", "pos.txt", "a.jsonl", code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train.txt", "a.jsonl", "--scheme", "bio"], "--scheme is for labels of tokens; spans has spans."),
        (
            ["train.spans.jsonl", "a.txt", "--from-scheme", "bio"],
            "--from-scheme is for labels of tokens; IN has spans.",
        ),
        (["train.txt", "a.svm", "--scheme", "bio"], "--scheme is for labels of sequences."),
    ],
)
def test_schemes_are_for_labels(files, arguments, said):
    assert said in files("convert", *arguments, code=2).stderr


def test_choices_are_those_of_the_library():
    from dualfield.cli.convert import _SCHEMES
    from dualfield.data.span_labels import SCHEMES

    assert {name.upper() for name in _SCHEMES} == set(SCHEMES)


def test_columns_that_are_lost_are_told(files, trained):
    said = files("convert", trained.path("train.txt"), "a.jsonl").stderr
    assert "Only the first column is written" in said


# Plain text that looks like columns.


def test_text_with_as_many_words_as_columns_is_suspected(files, trained):
    files("train", "train.txt", "--model", "m", "-q")
    said = files("tag", "--model", "m", stdin="Hello world\nGood morning\n").stderr
    assert "column 1, that of the label in training, has no label that m knows. --text reads plain text" in said
    chunks = trained.path("chunks")
    said = files("tag", "--model", chunks, stdin="Hello world\nGood morning\n").stderr
    assert "knows nothing of what is in column 1. Plain text is to be split into columns first" in said


@pytest.mark.parametrize(
    ("model", "options", "text"),
    [
        ("m", [], "the O\ndog B-NP\n"),
        ("m", [], "the\ndog\n"),
        ("m", ["--labelled"], "Hello world\nGood morning\n"),
        ("m", [], "the _\ndog _\n\n"),  # a blank line: these are columns
        ("chunks", [], "xyz DT\nabc NN\n"),
        ("chunks", ["--no-label"], "Hello world\n"),
        ("chunks", [], "the DT O\nHello NN B-NP\n"),
    ],
)
def test_columns_are_not_suspected(files, trained, model, options, text):
    if model == "m":
        files("train", "train.txt", "--model", "m", "-q")
    path = trained.path("chunks") if model == "chunks" else model
    assert files("tag", "--model", path, *options, stdin=text).stderr == ""
