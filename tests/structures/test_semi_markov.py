"""Segments as users give them: label schemes, spans, features of segments; questions; refused input."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

import dualfield
from dualfield import CRF, StructuredSVM
from dualfield.data.shapes import Shape
from dualfield.metrics import spans
from dualfield.plotting import CalibrationChangeDisplay, ConfusionDisplay, MarginalsDisplay, ReliabilityDisplay
from dualfield.structures import Chain, Scores, SemiMarkov, span_constraints
from dualfield.structures.segments import first_segments

WORDS = ["New", "York", "is", "big", "and", "Rome", "old"]
X = [["New", "York", "is", "big"], ["Rome", "is", "old"], ["big", "Rome"], ["York", "is", "old", "and", "big"]]
Y = [["B-LOC", "I-LOC", "O", "O"], ["B-LOC", "O", "O"], ["O", "B-LOC"], ["B-LOC", "O", "O", "O", "O"]]
SPANS = [[(0, 2, "LOC")], [(0, 1, "LOC")], [(1, 2, "LOC")], [(0, 1, "LOC")]]


def items(sentences):
    return [[[word] for word in sentence] for sentence in sentences]


def test_rows_of_segments():
    for n in range(7):
        for most in range(1, 6):
            rows = [(s, stop) for s in range(n) for stop in range(s + 1, min(n, s + most) + 1)]
            structure, shape = SemiMarkov(["B-x", "I-x"], most), Shape.of([0, n])
            assert structure.edge_offsets(shape)[-1] == len(rows)
            for at, (start, stop) in enumerate(rows):
                assert structure.segment_row(shape, 0, start, stop) == at
            np.testing.assert_array_equal(structure.edge_nodes(shape), [start for start, _ in rows])
            assert first_segments(np.array([n]), np.array([n]), most) == len(rows)


def test_without_lengths_it_is_a_chain_with_rules():
    """Where nothing but labels of nodes has scores, the labellings are those of a chain that keeps to BIO."""
    labels = ["B-x", "B-y", "I-x", "I-y", "O"]
    rng = np.random.default_rng(0)
    node = rng.normal(size=(9, 5))
    chain, segments = Chain(5, **span_constraints(labels)), SemiMarkov(labels, 9)
    scores = Scores(node, [0, 4, 9])
    np.testing.assert_allclose(segments.log_partition(scores), chain.log_partition(scores), rtol=1e-12)
    np.testing.assert_allclose(segments.marginals(scores).node, chain.marginals(scores).node, atol=1e-12)
    np.testing.assert_array_equal(segments.argmax(scores), chain.argmax(scores))
    np.testing.assert_allclose(segments.entropy(scores), chain.entropy(scores), rtol=1e-10)


@pytest.mark.parametrize("estimator", [CRF, StructuredSVM])
def test_spans_are_labels(estimator):
    one = estimator("semi_markov", C=10.0).fit(items(X), Y)
    two = estimator("semi_markov", C=10.0).fit(items(X), SPANS)
    turned = estimator("semi_markov", C=10.0).fit(items(X), [[(k, a, b) for a, b, k in row] for row in SPANS])
    np.testing.assert_array_equal(one.parameters_, two.parameters_)
    np.testing.assert_array_equal(one.parameters_, turned.parameters_)
    assert one.predict(items(X)) == Y
    assert one.score(items(X), SPANS) == 1.0
    assert one.structure_.max_length == 2
    assert one.structure_.kinds.names == ["LOC", "O"]


@pytest.mark.parametrize(
    "name", ["span_f1", "token_f1", "sequence_accuracy", "neg_log_loss", "neg_brier", "neg_calibration_error"]
)
def test_scorers_take_spans(name):
    model, scorer = CRF("semi_markov").fit(items(X), Y), getattr(dualfield.metrics, f"{name}_scorer")
    assert scorer(model, items(X), SPANS) == scorer(model, items(X), Y)
    assert scorer(model, items(X), [[], *SPANS[1:]]) != scorer(model, items(X), SPANS)


@pytest.mark.parametrize("estimator", [CRF, StructuredSVM])
def test_displays_and_reports_take_spans(estimator, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the machine has all of its training data right
        model = estimator("semi_markov").fit(items(X), Y).calibrate(items(X), Y)
    plain, given = tmp_path / "labels.html", tmp_path / "spans.html"
    model.report(plain, items(X), Y)
    model.report(given, items(X), SPANS)
    assert given.read_text() == plain.read_text()
    for display in (ConfusionDisplay, ReliabilityDisplay, CalibrationChangeDisplay):
        assert str(display.from_estimator(model, items(X), SPANS)) == str(display.from_estimator(model, items(X), Y))
    one, other = (MarginalsDisplay.from_estimator(model, items(X)[0], y[0]) for y in (SPANS, Y))
    assert one.truth == other.truth == Y[0]


def test_probabilities_of_spans_are_exact():
    model = CRF("semi_markov", C=1.0, start_stop=True).fit(items(X), Y)
    for sentence, found in zip(items(X), model.predict_spans(items(X)), strict=True):
        every = model.k_best([sentence], 1000)[0]
        assert sum(p for _, p in every) == pytest.approx(1.0)
        assert [(s.type, s.start, s.stop) for s in found] == spans(model.predict([sentence])[0])
        for span in found:
            mass = sum(p for labels, p in every if (span.type, span.start, span.stop) in spans(labels))
            assert span.probability == pytest.approx(mass, abs=1e-10)
    assert model.predict_spans(items(X), min_proba=1.1) == [[], [], [], []]


def test_features_of_segments_by_text_function_and_array():
    texts = ["%x[all]", "%x[first-1]|%x[last+1]", "%n"]

    def function(tokens, start, stop):
        before = tokens[start - 1] if start else "_B"
        behind = tokens[stop] if stop < len(tokens) else "_E"
        return [f"S0:{' '.join(tokens[start:stop])}", f"S1:{before}|{behind}", f"S2:{stop - start}"]

    settings = {"C": 2.0, "template": "U00:%x[0,0]\nB", "tol": 1e-9}
    rows = [[(word,) for word in sentence] for sentence in X]
    by_text = CRF(SemiMarkov(max_length=3, segment_features=texts), **settings).fit(rows, Y)
    by_function = CRF(
        SemiMarkov(max_length=3, segment_features=lambda x, a, b: function([t[0] for t in x], a, b)), **settings
    ).fit(rows, Y)
    assert by_text.objective_ == by_function.objective_
    names = sorted({name for row in X for a in range(len(row)) for b in range(a + 1, min(a + 3, len(row)) + 1)
                    for name in function(row, a, b)})  # fmt: skip
    column = {name: at for at, name in enumerate(names)}
    arrays = []
    for row in X:
        made = [function(row, a, b) for a in range(len(row)) for b in range(a + 1, min(a + 3, len(row)) + 1)]
        arrays.append(np.array([[float(names[j] in one) for j in range(len(names))] for one in made]))
    assert column
    nodes = [np.eye(len(WORDS))[[WORDS.index(word) for word in row]] for row in X]
    numbers = list(zip(nodes, arrays, strict=True))
    by_array = CRF(SemiMarkov(max_length=3), C=2.0, tol=1e-9, features="all").fit(numbers, Y)
    everything = CRF(SemiMarkov(max_length=3, segment_features=texts), features="all", **settings).fit(rows, Y)
    assert by_array.objective_ == pytest.approx(everything.objective_, rel=1e-7)
    assert by_array.predict(numbers) == by_text.predict(rows) == Y


def test_a_model_with_segment_features_is_saved_and_explained(tmp_path):
    structure = SemiMarkov(max_length=3, segment_features=["%x[all]", "%n"])
    rows = [[(word,) for word in sentence] for sentence in X]
    model = CRF(structure, C=2.0, template="U00:%x[0,0]\nB", start_stop=True).fit(rows, Y)
    model.save(tmp_path / "model")
    for mmap in (False, True):
        again = dualfield.load(tmp_path / "model", mmap=mmap)
        assert again.structure_ == model.structure_
        for one, two in zip(again.predict_proba(rows), model.predict_proba(rows), strict=True):
            np.testing.assert_array_equal(one, two)
        assert again.predict_spans(rows) == model.predict_spans(rows)
    explained = model.explain(rows[0])
    for token in explained.tokens:
        assert sum(value for _, value in token.contributions) == pytest.approx(token.difference)
    assert any("length 2" in what for what, _ in explained.tokens[0].contributions)
    assert any("S0:New York: LOC" in what for what, _ in explained.tokens[0].contributions)
    assert ("LOC", "O") in model.transition_features_
    assert "length 1" in str(model.top_features(5))
    assert model.transitions_.shape == (2, 2 + 3)
    functional = CRF(SemiMarkov(max_length=2, segment_features=lambda x, a, b: [str(b - a)])).fit(items(X), Y)
    with pytest.raises(ValueError, match="a model file holds no code"):
        functional.save(tmp_path / "function")


def test_partly_known_labels():
    partly = [["B-LOC", None, "O", "O"], *Y[1:]]
    model = CRF(SemiMarkov(max_length=2), C=5.0).fit(items(X), partly)
    assert model.predict(items(X))[1:] == Y[1:]
    assert model.predict(items(X))[0][0] == "B-LOC"


def test_runs_with_lengths():
    """Segments of three nodes each, which only their lengths tell."""
    rng = np.random.default_rng(1)
    y, X = [], []
    for _ in range(60):
        labels = ([["a"] * 3, ["b"] * 3] * 3)[rng.integers(2) : 5]
        y.append([label for run in labels for label in run])
        X.append([np.array([(label == "a") + 0.9 * rng.normal()]) for label in y[-1]])
    X = [np.array(rows) for rows in X]
    settings = {"C": 1.0, "features": "all"}
    chain, runs = CRF("chain", **settings).fit(X[:40], y[:40]), CRF("semi_markov", **settings).fit(X[:40], y[:40])
    assert runs.structure_.kinds.are_runs
    assert runs.score(X[40:], y[40:]) > chain.score(X[40:], y[40:]) + 0.02
    lengths = runs.transitions_[:, 2:]
    assert (lengths.argmax(axis=1) == 2).all()


def test_more_labels_and_longer_segments_later():
    first = CRF(SemiMarkov(max_length=2), warm_start=True).fit(items(X[1:]), Y[1:])
    kept = first.transition_features_[("LOC", "O")]
    more = [*Y, ["B-PER", "I-PER", "I-PER", "O"]]
    again = first.set_params(structure=SemiMarkov(), max_iter=1)
    with pytest.warns(ConvergenceWarning):
        again.fit(items([*X, ["Ada", "de", "Luz", "is"]]), more)
    assert again.structure_.max_length == 3
    assert kept != 0.0
    assert set(again.classes_) == {"B-LOC", "B-PER", "I-LOC", "I-PER", "O"}


@pytest.mark.parametrize(
    ("structure", "y", "message"),
    [
        (SemiMarkov(max_length=1), Y, r"max_length=1 is too short for 1 of the 4 segments of y, .* has 2 nodes"),
        (SemiMarkov(), [["I-LOC", "I-LOC", "O", "O"], *Y[1:]], r"y\[0\]\[0\] is 'I-LOC', which may not stand first: "),
        (
            SemiMarkov(),
            [["B-LOC", "O", "I-LOC", "O"], *Y[1:]],
            r"y\[0\]\[2\] is 'I-LOC', .* follow 'O'.*IOB1",
        ),
        (SemiMarkov(outside="OUT"), Y, "The label 'O' is not that of a segment, .* has outside='OUT'"),
        (SemiMarkov(), [["O", "I-PER", "O", "O"], *Y[1:]], "The labels of 'PER' cannot make a segment"),
        (SemiMarkov(), [[(0, 9, "LOC")], *SPANS[1:]], r"y\[0\] must be spans of its 4 nodes"),
        (SemiMarkov(), [[(0, 2, "LOC"), (1, 3, "LOC")], *SPANS[1:]], "overlap"),
        (SemiMarkov(), [[(0.5, 2, "LOC")], *SPANS[1:]], r"y\[0\]\[0\] must be a span"),
        (SemiMarkov(["B-LOC", "O"], 3), Y, r"structure has the labels \['B-LOC', 'O'\]; y has"),
    ],
)
def test_what_is_no_segment(structure, y, message):
    with pytest.raises(ValueError, match=message):
        CRF(structure).fit(items(X), y)


def test_predicted_spans_are_spans_to_train_on():
    model = CRF(SemiMarkov(max_length=3), C=10.0).fit(items(X), Y)
    found = model.predict_spans(items(X))
    assert any(found)
    again = CRF(SemiMarkov(max_length=3), C=10.0).fit(items(X), found)
    alike = CRF(SemiMarkov(max_length=3), C=10.0).fit(items(X), model.predict(items(X)))
    np.testing.assert_array_equal(again.parameters_, alike.parameters_)
    assert model.score(items(X), found) == 1.0
    with pytest.raises(ValueError, match=r"y\[0\]\[0\] must be a span, .* Got \('LOC', 0, 2, 'sure'\) instead"):
        CRF("semi_markov").fit(items(X), [[("LOC", 0, 2, "sure")], *SPANS[1:]])


def test_features_of_segments_may_be_sparse():
    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(n, 2)) for n in (5, 3)]
    dense = [(np.eye(3)[:n], own) for n, own in zip((3, 2), rows, strict=True)]
    sparse = [(nodes, scipy.sparse.csr_array(own)) for nodes, own in dense]
    y = [["B-x", "I-x", "O"], ["O", "B-x"]]
    one, two = (CRF(SemiMarkov(max_length=2)).fit(X, y).predict_proba(X) for X in (dense, sparse))
    np.testing.assert_allclose(np.vstack(one), np.vstack(two), atol=1e-6)
    with pytest.raises(ValueError, match=r"X\[0\]\[1\] must have 5 rows, .* Got 3 instead"):
        CRF(SemiMarkov(max_length=2)).fit([(sparse[0][0], sparse[1][1]), sparse[1]], y)


def test_refused_settings():
    with pytest.raises(ValueError, match=r"must be texts with macros .* Got '%y\[first\]'"):
        SemiMarkov(max_length=2, segment_features=["%y[first]"])
    with pytest.raises(ValueError, match="must be a function of"):
        SemiMarkov(max_length=2, segment_features=7)
    with pytest.raises(ValueError, match="'max_length' parameter of SemiMarkov must be given where segments"):
        SemiMarkov(segment_features=["%n"])
    with pytest.raises(ValueError, match=r"X\[0\]\[0\] has 1 column; the 'segment_features' .* reads 2"):
        SemiMarkov(max_length=2, segment_features=["%x[all,1]"]).open([["a", "b"]])
    with pytest.raises(ValueError, match=r"X\[0\]\[1\] must have 3 rows, one for each segment of at most 2"):
        CRF(SemiMarkov(max_length=2)).fit([(np.zeros((2, 1)), np.zeros((4, 1)))], [["B-x", "O"]])
    with pytest.raises(ValueError, match="'constraints' parameter of CRF must be None"):
        CRF(SemiMarkov(), constraints="BIOES").fit(items(X), Y)
    with pytest.raises(ValueError, match="pairwise needs pairs of labels"):
        CRF(SemiMarkov()).fit(items(X), Y).predict_proba(items(X), pairwise=True)
    with pytest.raises(ValueError, match="Sub-states need a chain"):
        dualfield.LatentStructuredSVM(StructuredSVM("semi_markov"), dualfield.LatentChain(2)).fit(items(X), Y)
    with pytest.raises(ValueError, match=r"LatentMulticlass labels rows .* Got SemiMarkov\(max_length=None\)"):
        dualfield.LatentCRF(CRF("semi_markov"), dualfield.LatentMulticlass(2)).fit(items(X), Y)
    with pytest.raises(ValueError, match=r"'labels' .* must be a list of labels, .* is max_length\. Got 8 instead"):
        SemiMarkov(8)
    with pytest.raises(ValueError, match=r"rescaling='slack' needs a chain or single nodes\. Got SemiMarkov"):
        StructuredSVM("semi_markov", rescaling="slack").fit(items(X), Y)
    assert CRF(SemiMarkov(), C=10.0, constraints="BIO").fit(items(X), Y).predict(items(X)) == Y


def test_threads_give_the_same_bits():
    rng = np.random.default_rng(3)
    rows = [[[str(rng.integers(9))] for _ in range(n)] for n in rng.integers(1, 12, size=40)]
    y = [["B-a" if t % 3 == 0 else "I-a" if t % 3 == 1 else "O" for t in range(len(row))] for row in rows]
    one, two = (CRF("semi_markov", n_jobs=n_jobs, solver="lbfgs").fit(rows, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.parameters_, two.parameters_)


def test_known_labels_leave_features_of_segments_in_place():
    structure = SemiMarkov(max_length=3, segment_features=["%x[all]"])
    model = CRF(structure, C=10.0, tol=1e-8, template="U:%x[0,0]").fit(X, Y)
    free, nothing_known = (model.k_best(X, 2, known=known) for known in (None, [[None] * len(one) for one in X]))
    for one, other in zip(free, nothing_known, strict=True):
        assert [labels for labels, _ in one] == [labels for labels, _ in other]
        np.testing.assert_allclose([p for _, p in one], [p for _, p in other], rtol=1e-9)
