"""Graphs in JSON on the command line: trained on, tagged, evaluated, tuned, looked at and converted."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import subprocess
import sys

import numpy as np
import pytest

import dualfield
from dualfield.io import read_json_graphs
from dualfield.structures import Graph

LABELS = "abc"


def graphs(n: int, seed: int, form: str = "numbers", *, is_tree: bool = False) -> list[dict]:
    """Return graphs whose neighbours tend to have the same label; `form` says what nodes and edges have."""
    chance = random.Random(seed)
    found = []
    for number in range(n):
        size = chance.randint(2, 6)
        edges = [[chance.randrange(at), at] for at in range(1, size)]
        labels = [chance.choice(LABELS)]
        for parent, _ in edges:
            labels.append(labels[parent] if chance.random() < 0.8 else chance.choice(LABELS))
        if not is_tree and size > 3:
            edges.append([size - 1, 0])
        seen = [label if chance.random() < 0.7 else chance.choice(LABELS) for label in labels]
        nodes = {
            "numbers": [[float(one == name) for name in LABELS] for one in seen],
            "attributes": [[f"w={one}", "bias"] for one in seen],
            "dicts": [{"w": one, "bias": 1.0, "last": at == size - 1} for at, one in enumerate(seen)],
        }
        record = {"id": number, "nodes": nodes.get(form, nodes["numbers"]), "edges": edges, "labels": labels}
        if form == "edges":
            record["types"] = [at % 2 for at in range(len(edges))]
            record["edge_features"] = [[float(labels[a] == labels[b]) + chance.gauss(0, 1), 1.0] for a, b in edges]
        found.append(record)
    return found


def lines(records: list[dict]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.fixture
def files(shell):
    for name, n in (("train", 40), ("dev", 15)):
        for form in ("numbers", "attributes", "dicts", "edges"):
            shell.write(f"{form}.{name}.jsonl", lines(graphs(n, n, form)))
        shell.write(f"tree.{name}.jsonl", lines(graphs(n, n, is_tree=True)))
    return shell


def train(shell, form, *options):
    """Train a model, and return its file."""
    structure = ["--structure", "tree"] if form == "tree" else []
    shell("train", f"{form}.train.jsonl", "--model", f"{form}.model", "-q", *structure, *options)
    return shell.path(f"{form}.model")


@pytest.mark.parametrize("form", ["numbers", "attributes", "dicts", "edges", "tree"])
def test_train_tag_and_evaluate_agree_with_python(files, form):
    kind = "tree" if form == "tree" else "graph"
    saved = dualfield.load(train(files, form))
    X, y = read_json_graphs(f"{form}.train.jsonl", structure=kind)
    model = dualfield.CRF(kind, random_state=0).fit(X, y)
    assert np.array_equal(saved.parameters_, model.parameters_)
    X, y = read_json_graphs(f"{form}.dev.jsonl", structure=kind)
    before = [json.loads(line) for line in files.path(f"{form}.dev.jsonl").read_text().splitlines()]
    out = files("tag", "--model", f"{form}.model", f"{form}.dev.jsonl", "--marginals").stdout
    tagged = [json.loads(line) for line in out.splitlines()]
    assert [record["labels"] for record in tagged] == model.predict(X)
    codes = [np.searchsorted(model.classes_, record["labels"]) for record in tagged]
    for record, rows, given, code in zip(tagged, model.predict_proba(X), before, codes, strict=True):
        assert np.allclose(record.pop("probabilities"), rows[np.arange(len(rows)), code], atol=1e-6)
        assert record | {"labels": given["labels"]} == given  # all else is as it came in
    record = json.loads(files("evaluate", "--model", f"{form}.model", f"{form}.dev.jsonl", "--json").stdout)
    assert record["accuracy"] == pytest.approx(model.score(X, y))
    assert record["graphs"] == 15
    assert record["log_loss"] == pytest.approx(dualfield.metrics.token_log_loss(y, model.predict_proba(X), "abc"))


def test_probabilities_are_those_of_all_labellings(files):
    model = dualfield.load(train(files, "edges"))
    X, _ = read_json_graphs("edges.dev.jsonl")
    out = files("tag", "--model", "edges.model", "edges.dev.jsonl", "--marginals", "all").stdout.splitlines()
    weights = model.score_map_.unpack(model.parameters_)
    pairs = np.zeros((2, 9))
    pairs[model.score_map_.pair.columns, model.score_map_.pair.outputs] = weights.pair
    for (nodes, edges, types, features), line in zip(X, out, strict=True):
        score, total = nodes @ np.asarray(model.coef_).T, np.zeros((len(nodes), 3))
        for labels in itertools.product(range(3), repeat=len(nodes)):
            value = score[np.arange(len(nodes)), labels].sum()
            for (a, b), kind, row in zip(edges, types, features, strict=True):
                value += model.transitions_[kind, labels[a], labels[b]] + row @ pairs[:, 3 * labels[a] + labels[b]]
            total[np.arange(len(nodes)), labels] += np.exp(value)
        expected = total / total.sum(axis=1, keepdims=True)
        found = [[row[name] for name in LABELS] for row in json.loads(line)["probabilities"]]
        assert np.allclose(found, expected, atol=2e-6)


def test_labels_that_are_numbers_stay_numbers(shell):
    records = [record | {"labels": [LABELS.index(one) for one in record["labels"]]} for record in graphs(10, 0)]
    shell.write("train.jsonl", lines(records))
    shell("train", "train.jsonl", "--model", "m", "-q")
    out = json.loads(shell("tag", "--model", "m", "train.jsonl").stdout.splitlines()[0])
    assert set(map(type, out["labels"])) == {int}


def test_compressed_from_a_pipe_and_as_a_list(files):
    expected = train(files, "attributes").read_bytes()
    content = files.path("attributes.train.jsonl").read_bytes()
    files.path("train.jsonl.gz").write_bytes(gzip.compress(content))
    files.write("train.json", json.dumps([json.loads(line) for line in content.splitlines()], indent=1))
    for name, stdin in (("train.jsonl.gz", None), ("-", content), ("train.json", None)):
        files("train", name, "--model", "m", "-q", stdin=stdin)
        assert files.path("m").read_bytes() == expected
    tagged = files("tag", "--model", "m", "attributes.train.jsonl").stdout
    assert files("tag", "--model", "m", "train.json").stdout == tagged
    assert files("tag", "--model", "m", "train.jsonl.gz").stdout == tagged
    files("tag", "--model", "m", "train.json", "--output", "out.jsonl.gz")
    assert gzip.decompress(files.path("out.jsonl.gz").read_bytes()).decode() == tagged


def test_unlabelled_graphs_and_graphs_without_nodes_are_tagged(files):
    train(files, "numbers")
    given = [{"nodes": [[1.0, 0.0, 0.0]], "edges": []}, {"nodes": [], "edges": [], "name": "none"}]
    out = files("tag", "--model", "numbers.model", stdin=lines(given)).stdout.splitlines()
    assert json.loads(out[0])["labels"] == ["a"]
    assert json.loads(out[1]) == given[1] | {"labels": []}


def test_what_is_tagged_comes_out_before_the_input_ends(files):
    train(files, "numbers")
    process = subprocess.Popen(
        [sys.executable, "-m", "dualfield", "tag", "--model", "numbers.model"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        for record in graphs(2, 3):
            process.stdin.write(json.dumps(record) + "\n")
            process.stdin.flush()
            assert len(json.loads(process.stdout.readline())["labels"]) == len(record["nodes"])
        process.stdin.close()
    assert process.returncode == 0


NODES = '"nodes": [[1.0], [2.0], [3.0]]'
FAULTS = {
    "no JSON": ('{"nodes": [[1.0]]', "is not JSON: Expecting ',' delimiter at character 18."),
    "no nodes": ('{"edges": [], "labels": []}', 'has no "nodes"; expected a list, with a list of numbers, '),
    "no edges": ('{"nodes": [[1.0]], "labels": ["a"]}', 'has no "edges"; expected a list of pairs of nodes'),
    "no labels": ('{"nodes": [[1.0]], "edges": []}', 'has no "labels"; expected a list, with a label for each node.'),
    "no node": (f'{{{NODES}, "edges": [[0, 1], [1, 3]], "labels": ["a", "a", "a"]}}', "edge 1, [1, 3], leads to node "),
    "no pair": (f'{{{NODES}, "edges": [[0, 1, 2]], "labels": ["a", "a", "a"]}}', "edge 0 must be a pair of nodes, "),
    "loop": (f'{{{NODES}, "edges": [[1, 1]], "labels": ["a", "a", "a"]}}', "edge 0, [1, 1], joins a node with itself"),
    "half": (f'{{{NODES}, "edges": [[0, 1.5]], "labels": ["a", "a", "a"]}}', "edge 0 must be a pair of nodes, "),
    "few labels": (f'{{{NODES}, "edges": [], "labels": ["a"]}}', 'has 1 "labels"; expected 3, one for each of its nod'),
    "null": (f'{{{NODES}, "edges": [], "labels": ["a", null, "a"]}}', '"labels"[1] must be a string, a whole number'),
    "types": (f'{{{NODES}, "edges": [[0, 1]], "types": [0, 1], "labels": ["a", "a", "a"]}}', 'has 2 "types"; expected'),
    "type": (f'{{{NODES}, "edges": [[0, 1]], "types": [-1], "labels": ["a", "a", "a"]}}', "edge 0, [0, 1], has the ty"),
    "ragged": (
        '{"nodes": [[1.0], [2.0, 3.0]], "edges": [], "labels": ["a", "a"]}',
        '"nodes"[1] must be 1 number, as nod',
    ),
    "nan": (
        '{"nodes": [[1.0], [NaN]], "edges": [], "labels": ["a", "a"]}',
        '"nodes"[1] must be 1 number, as node 0 has',
    ),
    "mixed": (
        '{"nodes": [["a"], 7], "edges": [], "labels": ["a", "a"]}',
        '"nodes"[1] must be a list of numbers, a list',
    ),
    "other width": (
        '{"nodes": [[1.0, 2.0]], "edges": [], "labels": ["a"]}',
        "its nodes have 2 numbers; expected 1 num",
    ),
    "other form": (
        '{"nodes": [["a"]], "edges": [], "labels": ["a"]}',
        "its nodes have attributes; expected 1 number, ",
    ),
    "edge features": (
        f'{{{NODES}, "edges": [[0, 1]], "edge_features": [[1.0]], "labels": ["a", "a", "a"]}}',
        "its edges have 1 number; expected no features, as in bad.jsonl, line 1.",
    ),
}


@pytest.mark.parametrize(("line", "said"), FAULTS.values(), ids=FAULTS)
def test_errors_name_file_line_and_what_was_expected(shell, line, said):
    good = f'{{{NODES}, "edges": [[0, 1]], "labels": ["a", "b", "a"]}}\n'
    shell.write("bad.jsonl", f"{good}\n{line}\n")
    result = shell("train", "bad.jsonl", "--model", "m", code=1)
    assert f"Error: bad.jsonl:3: {said}" in result.stderr
    assert not shell.path("m").exists()
    if "labels" not in said:
        shell.write("good.jsonl", 3 * good)
        shell("train", "good.jsonl", "--model", "m", "-q")
        result = shell("tag", "--model", "m", "bad.jsonl", "--output", "out.jsonl", code=1)
        assert "Error: bad.jsonl:3: " in result.stderr
        assert not shell.path("out.jsonl").exists()


TREE_FAULTS = {
    "two parents": ("[[0, 2], [1, 2]]", "edge 1, [1, 2], gives node 2 a second parent after 0; a tree has one parent"),
    "circle": ("[[0, 1], [1, 0]]", "the edges lead from node 0 back to it; a tree has no circles."),
}


@pytest.mark.parametrize(("edges", "said"), TREE_FAULTS.values(), ids=TREE_FAULTS)
def test_what_is_no_tree_is_named(shell, edges, said):
    shell.write("bad.jsonl", f'{{{NODES}, "edges": {edges}, "labels": ["a", "b", "a"]}}\n')
    result = shell("train", "bad.jsonl", "--structure", "tree", "--model", "m", code=1)
    assert f"Error: bad.jsonl:1: {said}" in result.stderr


def test_graphs_that_do_not_fit_the_model_are_named(files):
    train(files, "edges")
    good = graphs(1, 5, "edges")[0]
    for change, said in (
        ({"types": [2] * len(good["edges"])}, "has the type 2; expected 0 to 1, as in training."),
        ({"types": None}, 'has no "types" of edges; expected them, as in training.'),
        ({"edge_features": None}, "its edges have no features; expected 2 numbers, as in training."),
        ({"nodes": [["a"]] * len(good["nodes"])}, "its nodes have attributes; expected 3 numbers, as in training."),
    ):
        result = files("tag", "--model", "edges.model", stdin=lines([good, good | change]), code=1)
        assert result.stderr.startswith("Error: <stdin>:2: ")
        assert said in result.stderr


def test_graphs_that_are_too_wide_have_bounds_and_no_probabilities(files):
    said = files("train", "numbers.train.jsonl", "--budget", "100", "--model", "m").stdout
    assert "bounds of a relaxation: the gap is that of the relaxed problem" in said
    out = files("tag", "--model", "m", "numbers.dev.jsonl", "--marginals").stdout.splitlines()
    X, _ = read_json_graphs("numbers.dev.jsonl")
    model = dualfield.load("m")
    for example, line in zip(X, out, strict=True):
        record = json.loads(line)
        assert ("probabilities" in record) == (len(example[1]) < 2)
        if "probabilities" in record:
            continue
        (labels,), bounds = model.predict([example], return_bound=True)
        assert record["labels"] == labels
        assert record["score"] == pytest.approx(bounds.score[0], abs=1e-6)
        assert record["bound"] == pytest.approx(bounds.bound[0], abs=1e-6)
        assert record["exact"] is bool(bounds.exact[0])
    result = files("evaluate", "--model", "m", "numbers.dev.jsonl")
    n_wide = sum(len(edges) > 1 for _, edges in X)
    assert f"{n_wide} of 15 graphs are too wide for probabilities" in result.stderr
    assert "log-loss" not in result.stdout
    assert "relaxation   trw" in files("inspect", "m").stdout


def test_an_answer_does_not_depend_on_the_other_graphs_of_a_file(files):
    """A budget that is enough for single nodes only: these keep their probabilities beside wider graphs."""
    files("train", "numbers.train.jsonl", "--budget", "100", "--model", "m", "-q")
    alone, wide = {"nodes": [[1.0, 0.0, 0.0]], "edges": []}, graphs(30, 7)
    widest = max(wide, key=lambda record: len(record["edges"]))
    out = files("tag", "--model", "m", "--marginals", stdin=lines([alone, widest])).stdout.splitlines()
    assert out[:1] == files("tag", "--model", "m", "--marginals", stdin=lines([alone])).stdout.splitlines()
    assert out[1:] == files("tag", "--model", "m", "--marginals", stdin=lines([widest])).stdout.splitlines()
    assert "probabilities" in json.loads(out[0])
    assert "bound" in json.loads(out[1])


def test_too_wide_names_the_line_and_the_options(files):
    result = files("train", "numbers.train.jsonl", "--inference", "exact", "--budget", "8", "--model", "m", code=1)
    assert result.stderr.splitlines()[-1].startswith("Error: numbers.train.jsonl:1: needs tables of more than 8 bytes")
    assert "--inference trw" in result.stderr
    assert "--budget" in result.stderr


WRONG = {
    "template": (["numbers.train.jsonl", "--template", "default"], "--template is for sequences; the data are graphs."),
    "kernel": (["numbers.train.jsonl", "--kernel", "rbf"], "--kernel is for svmlight; the data are graphs."),
    "tree budget": (["tree.train.jsonl", "--structure", "tree", "--budget", "9"], "--budget is for --structure graph"),
    "inference": (
        ["numbers.train.jsonl", "--inference", "guess"],
        "Invalid value for '--inference': 'guess' is not one of",
    ),
    "budget": (["numbers.train.jsonl", "--budget", "1.5"], "'1.5' is not a whole number of bytes."),
    "columns": (
        ["x.txt", "--structure", "graph"],
        "--structure graph is for graphs and several labels; the data are conll.",
    ),
}


@pytest.mark.parametrize(("arguments", "said"), WRONG.values(), ids=WRONG)
def test_wrong_usage(files, arguments, said):
    files.write("x.txt", "a B\n")
    assert said in files("train", *arguments, "--model", "m", code=2).stderr


def test_tag_refuses_what_it_cannot_write(files):
    train(files, "numbers", "--inference", "trw")
    for option, said in (
        (["--marginals"], "it was trained with --inference trw, which only bounds them."),
        (["--k-best", "2"], "--k-best is for sentences; numbers.model labels graphs."),
        (["--to", "spans"], "--to is not for numbers.model, a model for graphs in JSON."),
    ):
        assert said in files("tag", "--model", "numbers.model", *option, code=2).stderr


def test_hinge_warm_start_and_checkpoint(files):
    train(files, "numbers", "--loss", "hinge", "--calibrate", "numbers.dev.jsonl")
    assert "scores / " in files("inspect", "numbers.model").stdout
    train(files, "tree", "--checkpoint", "state", "--tol", "1e-3")
    files("train", "tree.train.jsonl", "--structure", "tree", "--warm-start", "tree.model", "--model", "again", "-q")
    kept = dualfield.load("again")
    assert kept.objective_ <= dualfield.load("tree.model").objective_ * (1 + 1e-3)


def test_tune(files):
    out = files(
        "tune", "edges.train.jsonl", "--dev", "edges.dev.jsonl", "--C", "0.1,1", "--model", "m", "--json"
    ).stdout
    found = json.loads(out)
    for candidate in found["candidates"]:
        files("train", "edges.train.jsonl", "--C", candidate["C"], "--model", "one", "-q")
        record = json.loads(files("evaluate", "--model", "one", "edges.dev.jsonl", "--json").stdout)
        assert record["accuracy"] == pytest.approx(candidate["mean_score"], abs=0.03)
    assert found["best"]["C"] == dualfield.load("m").C
    assert (
        "Chose C = " in files("train", "tree.train.jsonl", "--structure", "tree", "--C", "auto", "--model", "m").stderr
    )
    assert "--order is for sequences" in files("tune", "edges.train.jsonl", "--order", "2", code=2).stderr


def test_inspect_shows_a_table_for_each_type_of_edge(files):
    train(files, "edges")
    shown = files("inspect", "edges.model", "--top", "1").stdout
    assert "trained on   graphs: 3 numbers at nodes, 2 numbers at edges, 2 types of edges" in shown
    weights = dualfield.load("edges.model").transitions_
    for kind in range(2):
        _, _, table = shown.partition(f"Edges of type {kind}: ")
        rows = [[float(cell) for cell in line.split()[1:]] for line in table.splitlines()[2:5]]
        assert np.allclose(rows, weights[kind], atol=5e-4)
    record = json.loads(files("inspect", "edges.model", "--json").stdout)
    found = {tuple(key): weight for *key, weight in record["transitions"]}
    assert found["type 1", "a", "b"] == weights[1, 0, 1]


def test_convert_keeps_what_models_see(files):
    files("convert", "edges.train.jsonl", "again.jsonl.gz")
    one, two = (read_json_graphs(name) for name in ("edges.train.jsonl", "again.jsonl.gz"))
    assert one[1] == two[1]
    for a, b in zip(one[0], two[0], strict=True):
        assert all(np.array_equal(left, right) for left, right in zip(a, b, strict=True))
    assert "cannot become conll" in files("convert", "edges.train.jsonl", "x.txt", code=2).stderr


def test_options_reach_the_structure(files):
    model = dualfield.load(train(files, "numbers", "--inference", "exact", "--budget", "1e6"))
    assert model.structure_.record() == Graph(3, 1, inference="exact", budget=10**6).record()
