"""Models of graphs whose nodes have types: optimum, label sets, names, files, and what is refused."""

import pickle
import warnings
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from sklearn.base import clone

import dualfield
from dualfield import CRF, LatentCRF, LatentStructuredSVM, StructuredSVM
from dualfield.metrics import sequence_accuracy_score, token_log_loss
from dualfield.models.carry_over import carry_over
from dualfield.models.training_data import read_training_data
from dualfield.objectives.latent_states import LatentChain
from dualfield.plotting import GraphDisplay
from dualfield.report.training_dev import DevData, evaluated
from dualfield.structures import FlatGraphs, Graph
from tests.structures.test_graph import grid

SETS = {"text": ["politics", "sports"], "word": ["O", "P", "S"]}
WORDS = ["goal", "vote", "the"]


def texts(n, seed=0):
    """Words with labels, and the topic of their text."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for at in range(n):
        topic, k = at % 2, int(rng.integers(2, 5))
        words = [WORDS[topic] if rng.random() < 0.6 else "the" for _ in range(k)]
        edges = {
            ("word", "text"): [(i, 0) for i in range(k)],
            ("word", "word"): [(i, i + 1) for i in range(k - 1)],
        }
        X.append(({"word": [[word] for word in words], "text": rng.normal(size=(1, 2)) + topic}, edges))
        labels = {"goal": "S", "vote": "P", "the": "O"}
        y.append({"word": [labels[word] for word in words], "text": [["sports", "politics"][topic]]})
    return X, y


X, Y = texts(12)


def every_labelling(example):
    sizes = {kind: len(rows) for kind, rows in example[0].items()}
    for words in product(SETS["word"], repeat=sizes["word"]):
        for text in SETS["text"]:
            yield {"word": list(words), "text": [text]}


def test_only_labels_of_the_type_are_possible():
    model = CRF("graph", features="all").fit(X, Y)
    assert model.structure_.label_sets.by_type == SETS
    assert model.structure_.tables == ("word-text", "word-word")
    total = sum(np.exp(model.score_sequences([X[1]], [labels])[0]) for labels in every_labelling(X[1]))
    assert total == pytest.approx(1.0)
    rows = model.predict_proba(X)
    is_text = np.isin(model.classes_, SETS["text"])
    for one in rows:
        assert (one["text"][:, ~is_text] == 0.0).all()
        assert (one["word"][:, is_text] == 0.0).all()
        np.testing.assert_allclose(one["word"].sum(axis=1), 1.0)
    for one in (model.predict(X), [found[0] for found in model.sample(X, 1, random_state=0)]):
        assert all(set(labels[kind]) <= set(SETS[kind]) for labels in one for kind in SETS)
    (best, *_), *_ = model.k_best(X[:1], 3)
    assert best[0] == model.predict(X[:1])[0]
    assert model.score(X, Y) == 1.0
    wrong = [{"word": ["S"] * len(labels["word"]), "text": labels["text"]} for labels in Y]
    right = sum(labels["word"].count("S") + 1 for labels in Y) / sum(len(labels["word"]) + 1 for labels in Y)
    assert model.score(X, wrong) == pytest.approx(right)
    assert set(model.predict_marginals(X[:1])[0]) == {"text", "word"}


def test_weights_of_other_types_are_never_made():
    model = CRF("graph", features="all").fit(X, Y)
    is_text = np.array([name.startswith("text:") for name in model.vocabulary_])
    labels_of_texts = np.isin(model.classes_, SETS["text"])
    used = model.score_map_.state_weights(model.score_map_.used.astype(float)).toarray()
    np.testing.assert_array_equal(used > 0, is_text[None, :] == labels_of_texts[:, None])
    n_words = len(model.vocabulary_) - 2
    assert model.n_features_ == 2 * 2 + 3 * n_words + 3 * 2 + 3 * 3
    assert {key[0] for key in model.transition_features_} == {"word-text", "word-word"}
    assert {key[0].split(":")[0] for key in model.state_features_} == {"word", "text"}


def test_words_in_explanations_name_the_types():
    model = CRF("graph").fit(X, Y)
    said = str(model.explain(X[0]))
    assert said.startswith("0 (text): sports with probability")
    assert "1 (word " in said
    assert "1 > 0 of word-text: " in said
    assert "word-text: S -> sports" in str(model.top_features(5))


@pytest.mark.parametrize("estimator", [CRF, StructuredSVM])
def test_names_are_numbers_behind_the_scenes(estimator):
    """The same graphs as flat arrays, with numbers for edge types, give the same problem."""
    named = estimator("graph", features="all", tol=1e-7).fit(X, Y)
    kinds, edges, types = [], [], []
    for nodes, joined in X:
        n = len(nodes["word"])
        kinds += ["word"] * n + ["text"]
        edges.append([(a, n) for a, _ in joined["word", "text"]] + joined["word", "word"])
        types.append([0] * len(joined["word", "text"]) + [1] * len(joined["word", "word"]))
    flat = FlatGraphs(
        nodes={kind: [row for nodes, _ in X for row in np.asarray(nodes[kind]).tolist()] for kind in SETS},
        lengths=[len(nodes["word"]) + 1 for nodes, _ in X],
        edges=np.concatenate(edges),
        edge_lengths=[len(one) for one in edges],
        types=np.concatenate(types),
        node_types=kinds,
    )
    numbered = estimator("graph", features="all", tol=1e-7).fit(flat, [one["word"] + one["text"] for one in Y])
    assert numbered.objective_ == pytest.approx(named.objective_, rel=1e-6)
    assert numbered.n_features_ == named.n_features_
    assert numbered.predict(flat) == [one["word"] + one["text"] for one in named.predict(X)]


def test_tables_are_tied_by_name():
    """Where two types have the same labels, a name makes their edges share a table."""
    rng = np.random.default_rng(1)
    graphs, labels = [], []
    for _ in range(6):
        nodes = {"a": rng.normal(size=(2, 1)), "b": rng.normal(size=(2, 1))}
        graphs.append((nodes, {("a", "a"): [(0, 1)], ("b", "b"): [(0, 1)]}))
        labels.append({kind: ["no", "yes"] if rng.random() < 0.5 else ["yes", "no"] for kind in nodes})
    tied = [(nodes, {(a, "same", b): pairs for (a, b), pairs in edges.items()}) for nodes, edges in graphs]
    apart, together = (CRF("graph", features="all", tol=1e-9).fit(one, labels) for one in (graphs, tied))
    assert apart.structure_.tables == ("a-a", "b-b")
    assert together.structure_.tables == ("same",)
    assert apart.n_features_ == together.n_features_ + 4
    flat = FlatGraphs(
        nodes=np.concatenate([np.concatenate(list(nodes.values())) for nodes, _ in graphs]),
        lengths=[4] * 6,
        edges=[(0, 1), (2, 3)] * 6,
        edge_lengths=[2] * 6,
        types=[0] * 12,
        node_types=["a", "a", "b", "b"] * 6,
    )
    one_table = CRF("graph", features="all", tol=1e-9).fit(flat, [one["a"] + one["b"] for one in labels])
    assert together.objective_ == pytest.approx(one_table.objective_, rel=1e-8)
    assert together.objective_ != pytest.approx(apart.objective_, rel=1e-4)
    assert together.transitions_.shape == (2, 2)


def relaxed_optimum(nodes, edges, kinds, codes, flags, C, hinge=False):
    """The dual of the relaxed problem of one grid, by a solver for cones (see test_relaxed_crf)."""
    k = flags.shape[1]
    wide = np.hstack([nodes * (kinds == kind)[:, None] for kind in range(len(flags))])
    mu = cp.Variable((len(nodes), k), nonneg=True)
    pairs = [cp.Variable((k, k), nonneg=True) for _ in edges]
    constraints = [cp.sum(mu, axis=1) == 1, cp.multiply(~flags[kinds], mu) == 0]
    into = np.bincount(edges[:, 1], minlength=len(nodes))
    entropy = cp.sum(cp.multiply((1.0 - into / 2.0)[:, None], cp.entr(mu)))
    seen = np.zeros((k, k))
    for (s, t), pair in zip(edges.tolist(), pairs, strict=True):
        constraints += [cp.sum(pair, axis=1) == mu[s], cp.sum(pair, axis=0) == mu[t]]
        before = cp.reshape(mu[s], (k, 1), order="C") @ np.ones((1, k))
        entropy -= 0.5 * cp.sum(cp.rel_entr(pair, before))
        seen[codes[s], codes[t]] += 1.0
    node_weights = C * ((np.eye(k)[codes] - mu).T @ wide)
    pair_weights = C * (seen - sum(pairs))
    penalty = 0.5 * (cp.sum_squares(node_weights) + cp.sum_squares(pair_weights))
    gain = cp.sum(cp.multiply(1.0 - np.eye(k)[codes], mu)) if hinge else entropy
    return cp.Problem(cp.Maximize(C * gain - penalty), constraints).solve(solver=cp.CLARABEL)


def typed_grid(seed=2):
    rng = np.random.default_rng(seed)
    edges, kinds = grid(3, 4), rng.integers(2, size=12)
    flags = np.array([[True, True, False], [False, True, True]])
    codes = np.array([rng.choice(np.flatnonzero(flags[kind])) for kind in kinds])
    nodes = rng.normal(size=(12, 2)) + codes[:, None]
    flat = FlatGraphs(
        nodes=nodes, lengths=[12], edges=edges, edge_lengths=[len(edges)], types=[0] * len(edges), node_types=kinds
    )
    sets = {kind: np.flatnonzero(row).tolist() for kind, row in enumerate(flags)}
    return (nodes, edges, kinds, codes, flags), flat, sets


@pytest.mark.parametrize("solver", ["auto", "cutting_plane"])
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_relaxed_margins(solver, seed):
    """Bounds, and not the best labellings that were found, make the gap."""
    drawn, flat, sets = typed_grid(seed)
    best = relaxed_optimum(*drawn, 2.0, hinge=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cutting planes of points that are not the best may end early
        model = StructuredSVM(Graph(inference="trw", label_sets=sets), 2.0, features="all", solver=solver, tol=1e-6)
        model.fit(flat, [drawn[3].tolist()])
    assert model.objective_ >= best * (1.0 - 1e-6)
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-6)
    with pytest.raises(ValueError, match="Its node types have label sets of their own"):
        StructuredSVM(Graph(inference="trw", label_sets=sets), solver="local_blocks").fit(flat, [drawn[3].tolist()])


@pytest.mark.parametrize("solver", ["block_dual", "lbfgs"])
def test_relaxed_optimum(solver):
    drawn, flat, sets = typed_grid()
    best, (_, _, kinds, codes, flags) = relaxed_optimum(*drawn, 2.0), drawn
    graph = Graph(inference="trw", label_sets=sets)
    model = CRF(graph, 2.0, features="all", solver=solver, tol=1e-7).fit(flat, [codes.tolist()])
    assert model.relaxation_ == "trw"
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-6)
    exact = CRF(Graph(label_sets=sets), 2.0, features="all", tol=1e-7).fit(flat, [codes.tolist()])
    assert exact.objective_ < model.objective_
    labels, bounds = model.predict(flat, return_bound=True)
    assert flags[kinds, labels[0]].all()
    assert bounds.bound[0] >= bounds.score[0]
    assert (model.beliefs(flat)[0][~flags[kinds]] == 0.0).all()


def test_edges_have_features_by_type():
    def with_features(graph):
        nodes, edges = graph
        return nodes, edges, {("word", "word"): [{"gap": float(b - a)} for a, b in edges["word", "word"]]}

    wide = [with_features(graph) for graph in X]
    model = CRF("graph", features="all", tol=1e-8).fit(wide, Y)
    assert list(model.pair_vocabulary_) == ["word-word:gap"]
    assert model.score_map_.pair.outputs.size == 9  # pairs of labels of words
    assert model.score(wide, Y) == 1.0
    # A feature that is always 1 is one more table: its weights are those of the table.
    pairs = model.score_map_.unpack(model.parameters_).pair.reshape(3, 3)
    at = np.flatnonzero(np.isin(model.classes_, SETS["word"]))
    np.testing.assert_allclose(pairs, model.transitions_[1][np.ix_(at, at)], atol=1e-4)


@pytest.mark.parametrize("mmap", [False, True])
def test_files_and_copies(mmap, tmp_path):
    structure = Graph(label_sets=SETS)
    for estimator in (CRF, StructuredSVM):
        model = clone(estimator(structure)).fit(X, Y)
        model.save(tmp_path / "model")
        for again in (dualfield.load(tmp_path / "model", mmap=mmap), pickle.loads(pickle.dumps(model))):
            assert again.predict(X) == model.predict(X)
            assert again.structure_ == model.structure_
            assert again.structure_.tables == ("word-text", "word-word")
            assert again.structure == structure
            with pytest.raises(ValueError, match="text nodes have 1 columns; the training data had more"):
                again.predict([({"word": [["the"]], "text": np.ones((1, 1))}, {("word", "text"): [(0, 0)]})])


@pytest.mark.parametrize("latent", [LatentCRF(CRF("graph")), LatentStructuredSVM(StructuredSVM("graph"))])
@pytest.mark.filterwarnings("ignore:The latent variables do not improve")
def test_latent_models(latent, tmp_path):
    model = clone(latent).set_params(latent=LatentChain({"O": 2}), random_state=0).fit(X[:2], Y[:2])
    assert model.score(X[:2], Y[:2]) == 1.0
    assert all(set(labels[kind]) <= set(SETS[kind]) for labels in model.predict(X) for kind in SETS)
    assert model.states_.structure_.label_sets.flags.sum(axis=1).tolist() == [2, 4]
    model.save(tmp_path / "latent")
    assert dualfield.load(tmp_path / "latent").predict(X) == model.predict(X)


def test_labels_that_are_known_in_part():
    hidden = [{"word": [None, *one["word"][1:]], "text": one["text"]} for one in Y[:4]]
    hidden[1]["word"][0] = {"O", "P"}
    model = CRF("graph", C=0.5).fit(X[:4], hidden)
    loss = 0.0
    for example, known in zip(X, hidden, strict=False):
        fits = [
            labels
            for labels in every_labelling(example)
            if labels["text"] == known["text"]
            and all(
                want is None or one == want or (isinstance(want, set) and one in want)
                for one, want in zip(labels["word"], known["word"], strict=True)
            )
        ]
        loss -= np.logaddexp.reduce(model.score_sequences([example] * len(fits), fits))
    value = 0.5 * loss + 0.5 * np.sum(model.parameters_**2)
    assert model.objective_ == pytest.approx(value, rel=1e-9)


def test_parts_of_the_data_may_lack_a_type():
    model = CRF("graph", random_state=0).partial_fit(X, Y)
    before = model.structure_
    only_text = [({"text": np.ones((1, 2))}, {})]
    model.partial_fit(only_text, [{"text": ["sports"]}])
    assert model.structure_ == before
    assert model.predict(only_text)[0].keys() == {"text"}
    with pytest.raises(ValueError, match=r"y\[0\]\['text'\]\[0\] is 'O'; the labels of nodes of type 'text' are"):
        model.partial_fit(only_text, [{"text": ["O"]}])


def test_warm_starts_find_tables_by_name():
    old = CRF("graph").fit(X, Y)
    wider = [({**nodes, "author": [["a"]]}, {**edges, ("author", "text"): [(0, 0)]}) for nodes, edges in X]
    labels = [{**one, "author": ["S" if one["text"] == ["sports"] else "P"]} for one in Y]
    data = read_training_data(CRF("graph"), wider, labels, None, None, hinge=False)
    tables = data.structure.table_of(data.score_map.unpack(carry_over(old.model_, data)).cliques)
    assert data.structure.tables == ("author-text", "word-text", "word-word")
    np.testing.assert_array_equal(tables[0], 0.0)
    np.testing.assert_array_equal(tables[1:], old.transitions_)


def test_one_type_is_a_plain_graph():
    rng = np.random.default_rng(0)
    plain = [(rng.normal(size=(4, 2)), [(0, 1), (1, 2), (2, 3), (3, 0)]) for _ in range(5)]
    labels = [rng.integers(3, size=4).tolist() for _ in plain]
    typed = [({"a": nodes}, {("a", "a"): edges}) for nodes, edges in plain]
    one = CRF("graph", features="all", tol=1e-9).fit(plain, labels)
    two = CRF("graph", features="all", tol=1e-9).fit(typed, [{"a": row} for row in labels])
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-8)
    assert [{"a": row} for row in one.predict(plain)] == two.predict(typed)
    np.testing.assert_allclose(one.transitions_, two.transitions_, atol=1e-3)


def test_kernels_compare_nodes_of_all_types():
    numbers = [
        ({"word": np.array([[float(WORDS.index(row[0]))] for row in nodes["word"]]), "text": nodes["text"]}, edges)
        for nodes, edges in X
    ]
    model = CRF("graph", kernel="rbf").fit(numbers, Y)
    assert model.score(numbers, Y) == 1.0
    assert all(set(labels[kind]) <= set(SETS[kind]) for labels in model.predict(numbers) for kind in SETS)


@pytest.mark.parametrize(
    ("structure", "labels", "message"),
    [
        ("graph", [["O"]] * 12, r"y\[0\] must be a dict with the labels of each node type, \['text', 'word'\]"),
        ("graph", [{"word": ["O"], "text": ["sports"]}] * 12, r"y\[0\] has 1 labels for \d nodes of type 'word'"),
        (Graph(label_sets={"word": SETS["word"]}), Y, r"X\[0\] has nodes of type 'text'; the types of this model are"),
        (Graph(label_sets={**SETS, "word": ["O", "S"]}), Y, r"y\[1\]\['word'\]\[\d\] is 'P'; the labels of nodes of"),
        (Graph(label_sets={**SETS, "text": ["x"]}), Y, "has .'x'. for nodes of type 'text', none of which is among"),
        (Graph(n_types=3), Y, "n_types of Graph must be 2, as edges have the types"),
    ],
)
def test_training_data_that_do_not_fit(structure, labels, message):
    with pytest.raises(ValueError, match=message):
        CRF(structure).fit(X, labels)


@pytest.mark.parametrize(
    ("example", "message"),
    [
        (({"page": [["a"]]}, {}), r"X\[0\] has nodes of type 'page'; the types of this model are \['text', 'word'\]"),
        (
            ({"word": [["a"]] * 2}, {("word", "far", "word"): [(0, 1)]}),
            r"X\[0\] has edges of type 'far'; the edge types",
        ),
        (([["a"]], []), "X must have node types, as label_sets of the graph says"),
        (({"word": np.ones((1, 3))}, {}), r"word nodes have the column 'word:x\[0\]', which the training data did not"),
        (({"text": [["a"]]}, {}), "text nodes must be numbers, as in training. Got attributes instead"),
        (({"text": np.ones((1, 3))}, {}), r"text nodes have the column 'text:x\[2\]', which the training data did not"),
    ],
)
def test_predictions_that_do_not_fit(example, message):
    with pytest.raises((ValueError, TypeError), match=message):
        CRF("graph").fit(X, Y).predict([example])


def test_graphs_with_little_in_them():
    model = CRF("graph").fit(X, Y)
    assert model.predict([]) == []
    assert model.predict([({}, {}), ({"word": [["the"]], "text": []}, {})]) == [{}, {"word": ["O"]}]
    no_edges = CRF("graph").fit([(nodes, {}) for nodes, _ in X], Y)
    assert no_edges.structure_.tables is None
    assert no_edges.score([(nodes, {}) for nodes, _ in X], Y) > 0.5
    arrays = [{kind: np.array(labels) for kind, labels in one.items()} for one in Y]
    found = CRF("graph").fit(X, arrays).predict(X[:1])[0]
    assert {kind: labels.tolist() for kind, labels in found.items()} == Y[0]


def test_data_frames_name_the_columns():
    pandas = pytest.importorskip("pandas")
    frames = [
        ({"word": nodes["word"], "text": pandas.DataFrame(nodes["text"], columns=["p", "q"])}, edges)
        for nodes, edges in X
    ]
    frames.append(({"word": [["the"]]}, {}))
    model = CRF("graph").fit(frames, [*Y, {"word": ["O"]}])
    assert list(model.vocabulary_)[:2] == ["text:p", "text:q"]
    other = ({"text": pandas.DataFrame({"p": [1.0], "r": [1.0]})}, {})
    with pytest.raises(ValueError, match="text nodes have the column 'text:r', which the training data did not have"):
        model.predict([other])


def test_numbers_are_no_names():
    model = CRF("graph").fit(X, Y)
    given = {"nodes": {"word": [["the"]], "text": np.ones((1, 2))}, "lengths": [2], "edges": [(0, 1)]}
    flat = FlatGraphs(**given, edge_lengths=[1], node_types=["word", "text"])
    assert model.predict(flat)[0][0] == "O"
    with pytest.raises(ValueError, match="Edges must have no numbers as types: those of this graph are called"):
        model.predict(FlatGraphs(**given, edge_lengths=[1], node_types=["word", "text"], types=[0]))
    with pytest.raises(ValueError, match="FlatGraphs, graph 0 has nodes of type 'page'"):
        model.predict(FlatGraphs(**given, edge_lengths=[1], node_types=["word", "page"]))
    numbered = CRF("graph").fit(
        FlatGraphs(**given, edge_lengths=[1], node_types=["word", "text"], types=[0]), [["a", "b"]]
    )
    with pytest.raises(ValueError, match="Edges must have numbers as types: this graph has no names for them"):
        numbered.predict(X)


def test_plain_models_have_no_types():
    plain = CRF("graph").fit([([["a"], ["b"]], [(0, 1)])], [["x", "y"]])
    with pytest.raises(ValueError, match="X has node types, but this graph has no label_sets"):
        plain.predict(X)
    with pytest.raises(ValueError, match="X must have node types, as label_sets of the graph says"):
        CRF(Graph(label_sets=SETS)).fit([([["a"], ["b"]], [(0, 1)])], [["O", "P"]])
    with pytest.raises(ValueError, match="No node of type 'text' has a known label"):
        CRF("graph").fit(X[:1], [{"word": Y[0]["word"], "text": [None]}])
    with pytest.raises(ValueError, match="template must be None where nodes have types"):
        CRF("graph", template="default").fit(X, Y)


def test_reports_and_metrics_take_labels_by_type():
    model = CRF("graph").fit(X, Y)
    other_order = [{"text": one["text"], "word": one["word"]} for one in Y]
    assert sequence_accuracy_score(other_order, model.predict(X)) == 1.0
    assert token_log_loss(other_order, model.predict_proba(X), model.classes_) < 1.0
    shown = evaluated(model, DevData(X, other_order, None))
    assert shown.accuracy == 1.0
    assert shown.truth[0] == Y[0]["text"] + Y[0]["word"]
    assert shown.marginals[0].shape == (len(shown.truth[0]), 5)
    flat = FlatGraphs(
        nodes={"word": [["the"]], "text": np.ones((1, 2))},
        lengths=[2],
        edges=[(0, 1)],
        edge_lengths=[1],
        node_types=["word", "text"],
    )
    assert evaluated(model, DevData(flat, [["O", "pets"]], None)).graphs is None


def test_pictures_of_graphs_by_type():
    """Nodes are drawn in the order of their types, each with its type and its word."""
    model = CRF("graph").fit(X, Y)
    shown = evaluated(model, DevData(X, Y, None))
    n_text, words = len(Y[0]["text"]), [name.removeprefix("word ") for name in shown.graphs.names[0]]
    assert words[n_text:] == [word[0] for word in X[0][0]["word"]]
    display, alone = shown.graph(0), GraphDisplay.from_estimator(model, X[0], Y[0])
    shape = model.decision_scores(X[:1]).shape
    for one in (display, alone):
        assert one.labels == one.truth == Y[0]["text"] + Y[0]["word"]
        np.testing.assert_array_equal(one.edges, shape.edges)
        assert one.names == shown.graphs.names[0]
        np.testing.assert_allclose(one.probabilities, shown.chances[0])
        assert "word the" in one.svg()
    assert shown.whole == "graph"
