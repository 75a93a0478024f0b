"""Every form of input gives the same model; labels come out as they went in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import dualfield
from dualfield import CRF
from dualfield.data import Batch
from dualfield.features import Template
from tests.estimators.tagging import matrices, sentences, vocabulary

X, Y = sentences(20)
NAMES = vocabulary(X)
LENGTHS = [len(xs) for xs in X]
DENSE = matrices(X, NAMES)
STACKED = np.concatenate(DENSE)
FORMS = {
    "dicts": ([[dict.fromkeys(item, 1.0) for item in xs] for xs in X], {}),
    "booleans": ([[dict.fromkeys(item, True) for item in xs] for xs in X], {}),
    "tuples": (tuple(tuple(map(tuple, xs)) for xs in X), {}),
    "generator": (lambda: iter(X), {}),
    "batch": (lambda: Batch.build(X), {}),
    "flat": ([item for xs in X for item in xs], {"lengths": LENGTHS}),
    "dense": (DENSE, {}),
    "single precision": ([x.astype(np.float32) for x in DENSE], {}),
    "integers": ([x.astype(int) for x in DENSE], {}),
    "nested lists": ([x.tolist() for x in DENSE], {}),
    "stacked": (STACKED, {"lengths": LENGTHS}),
    "csr": (scipy.sparse.csr_matrix(STACKED), {"lengths": LENGTHS}),
    "csc": (scipy.sparse.csc_array(STACKED), {"lengths": np.array(LENGTHS)}),
    "list of csr": ([scipy.sparse.csr_array(x) for x in DENSE], {}),
    "batch of numbers": (lambda: Batch.build(STACKED, lengths=LENGTHS), {}),
}


@pytest.fixture(scope="module")
def plain():
    return CRF(tol=1e-6, random_state=0).fit(X, Y)


def given(form):
    data, options = FORMS[form]
    return data() if callable(data) else data, options


@pytest.mark.parametrize("form", FORMS)
def test_forms(form, plain):
    model = CRF(tol=1e-6, random_state=0).fit(given(form)[0], Y, **given(form)[1])
    assert model.n_features_ == plain.n_features_
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    coef = model.coef_.toarray() if scipy.sparse.issparse(model.coef_) else model.coef_
    np.testing.assert_allclose(coef, plain.coef_.toarray(), atol=1e-8)
    np.testing.assert_allclose(model.transitions_, plain.transitions_, atol=1e-8)
    assert (model.vocabulary_ is None) == (form not in ("dicts", "booleans", "tuples", "generator", "batch", "flat"))
    assert scipy.sparse.issparse(model.coef_) == (model.vocabulary_ is not None)
    assert model.coef_.shape == (3, len(NAMES))
    # A batch of attributes must come with the vocabulary of training.
    test = Batch.build(X, vocabulary=model.vocabulary_) if form == "batch" else given(form)[0]
    assert model.predict(test, **given(form)[1]) == plain.predict(X)


def test_predict_in_another_form(plain):
    dicts = FORMS["dicts"][0]
    assert plain.predict(dicts) == plain.predict(X) == plain.predict(iter(X))
    numbers = CRF(random_state=0).fit(DENSE, Y)
    want = numbers.predict(DENSE)
    for form in ("stacked", "csr", "batch of numbers"):
        assert numbers.predict(given(form)[0], **given(form)[1]) == want


def test_real_numbers_against_sums_of_attributes():
    """A weight of 2 counts twice; weights of 0 do not make a feature."""
    weighted = CRF(tol=1e-8).fit([[{"a": 2.0, "b": 0.0}, {"b": 1.0}]], [["x", "y"]])
    repeated = CRF(tol=1e-8).fit([[["a", "a"], ["b"]]], [["x", "y"]])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-7)
    assert weighted.n_features_ == repeated.n_features_


@pytest.mark.parametrize(
    ("labels", "kind"), [({"B-N": 5, "I-N": -3, "O": 0}, int), ({"B-N": True, "I-N": True, "O": False}, bool)]
)
@pytest.mark.parametrize("arrays", [False, True])
def test_labels_of_other_kinds(labels, kind, arrays):
    y = [[labels[label] for label in ys] for ys in Y]
    model = CRF().fit(X, [np.array(ys) for ys in y] if arrays else y)
    got = model.predict(X)
    assert model.classes_.tolist() == sorted(set(labels.values()))
    if arrays:
        assert all(isinstance(row, np.ndarray) and row.dtype == np.array(y[0]).dtype for row in got)
        got = [row.tolist() for row in got]
    assert all(type(label) is kind for row in got for label in row)
    assert model.score(X, y) == np.mean(
        [a == b for r, s in zip(got, y, strict=True) for a, b in zip(r, s, strict=True)]
    )
    assert all(type(label) is kind for label in model.predict_marginals(X[:1])[0][0])
    best = model.k_best(X[:1], 1)[0][0][0]
    assert list(best) == list(got[0])


def test_strings_in_arrays(plain):
    model = CRF(tol=1e-6, random_state=0).fit(X, [np.array(ys) for ys in Y])
    got = model.predict(X)
    assert all(isinstance(row, np.ndarray) for row in got)
    assert [row.tolist() for row in got] == plain.predict(X)
    flat = CRF(tol=1e-6, random_state=0).fit(STACKED, np.concatenate([np.array(ys) for ys in Y]), lengths=LENGTHS)
    assert flat.objective_ == pytest.approx(plain.objective_, rel=1e-9)


def test_unknown_attributes_have_no_weight(plain):
    known = [[["w=dog"], ["w=runs"]]]
    unknown = [[["w=dog", "w=?", "new"], ["other", "w=runs"]]]
    np.testing.assert_array_equal(plain.predict_proba(known)[0], plain.predict_proba(unknown)[0])
    nothing = plain.predict_proba([[["new"], []]])[0]
    np.testing.assert_array_equal(nothing, plain.predict_proba([[[], []]])[0])


def test_empty_sequences(plain):
    with_empty = CRF(tol=1e-6, random_state=0).fit([[], *X[:5], [], *X[5:], []], [[], *Y[:5], [], *Y[5:], []])
    assert with_empty.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    for model in (plain, with_empty):
        assert model.predict([[], X[0], []]) == [[], model.predict(X[:1])[0], []]
        assert [rows.shape for rows in model.predict_proba([[], X[0]])] == [(0, 3), (len(X[0]), 3)]
        nodes, pairs = model.predict_proba([[], X[0], []], pairwise=True)
        assert [len(rows) for rows in pairs] == [0, len(X[0]) - 1, 0]
        assert len(nodes) == 3
        assert model.score_sequences([[], X[0]], [[], Y[0]])[0] == 0.0
        assert model.k_best([[], X[0]], 2)[0] == [([], pytest.approx(1.0))]
        assert model.sample([[]], 2) == [[[], []]]
        assert model.predict([]) == []


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "sgd", "perceptron"])
def test_a_single_node(solver):
    model = CRF(solver=solver, C=5.0).fit([[["a"]], [["b"]]], [["x"], ["y"]])
    assert model.predict([[["a"]], [["b"]]]) == [["x"], ["y"]]
    assert model.transitions_.shape == (2, 2)
    assert model.n_features_ == 2  # no transition occurs


def test_template_as_text_and_as_object():
    rows = [[(name.removeprefix("w="), "tag") for name, *_ in xs] for xs in X]
    text = "U0:%x[0,0]\nU1:%x[-1,0]/%x[0,0]\nB\n"
    by_text = CRF(template=text, random_state=0).fit(rows, Y)
    by_object = CRF(template=Template(text), random_state=0).fit(rows, Y)
    np.testing.assert_array_equal(by_text.parameters_, by_object.parameters_)
    words = [[row[0] for row in xs] for xs in rows]
    by_hand = [[[f"U0:{w}", f"U1:{'_B-1' if t == 0 else xs[t - 1]}/{w}"] for t, w in enumerate(xs)] for xs in words]
    plain = CRF(random_state=0).fit(by_hand, Y)
    assert by_text.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    assert by_text.predict(rows) == plain.predict(by_hand)
    assert sorted(by_text.vocabulary_) == sorted(plain.vocabulary_)
    assert (
        by_text.predict([[("unseen", "x"), ("dog", "x")]])[0][1] == plain.predict([[["U0:unseen"], ["U0:dog"]]])[0][1]
    )
    one_column = CRF(template="U0:%x[0,0]\nB", random_state=0).fit(words, Y)
    assert one_column.predict(words[:2]) == one_column.predict([[(w,) for w in xs] for xs in words[:2]])


def test_template_says_which_transitions_there_are():
    words = [[name.removeprefix("w=") for name, *_ in xs] for xs in X]
    without = CRF(template="U0:%x[0,0]").fit(words, Y)
    np.testing.assert_array_equal(without.transitions_, 0.0)
    with_pairs = CRF(template="U0:%x[0,0]\nB\nB1:%x[0,0]").fit(words, Y)
    assert with_pairs.solver_ == "lbfgs"
    assert with_pairs.n_features_ > CRF(template="U0:%x[0,0]\nB").fit(words, Y).n_features_
    by_hand = [[[f"U0:{w}"] for w in xs] for xs in words]
    plain = CRF(pair_features=True, tol=1e-7).fit(by_hand, Y)
    assert with_pairs.set_params(tol=1e-7).fit(words, Y).objective_ == pytest.approx(plain.objective_, rel=1e-6)
    assert with_pairs.predict(words) == plain.predict(by_hand)


def test_pair_features_by_column(plain):
    columns = [i for i, name in enumerate(NAMES) if name.startswith("w=")]
    numbers = CRF(pair_features=columns, tol=1e-7).fit(DENSE, Y)
    names = CRF(pair_features=["w="], tol=1e-7).fit(X, Y)
    one_string = CRF(pair_features="w=", tol=1e-7).fit(X, Y)
    assert numbers.objective_ == pytest.approx(names.objective_, rel=1e-6)
    assert one_string.objective_ == pytest.approx(names.objective_, rel=1e-6)
    assert numbers.n_features_ == names.n_features_ > plain.n_features_
    assert numbers.objective_ < plain.objective_
    assert numbers.predict(DENSE) == names.predict(X)


# Data frames


def frames(n=20, seed=0):
    rng = np.random.default_rng(seed)
    X = [pd.DataFrame(rng.normal(size=(4, 2)), columns=["size", "weight"]) for _ in range(n)]
    return X, [["up" if v > 0 else "down" for v in x["size"]] for x in X]


@pytest.mark.parametrize("flat", [False, True])
def test_names_of_columns_are_kept_and_checked(flat, tmp_path):
    X, y = frames()

    def form(frames):
        return {"X": pd.concat(frames), "lengths": [len(x) for x in frames]} if flat else {"X": frames}

    model = CRF(solver="lbfgs", warm_start=True).fit(y=y, **form(X))
    assert model.feature_names_in_.tolist() == ["size", "weight"]
    model.save(tmp_path / "model")
    restored = dualfield.load(tmp_path / "model")
    assert restored.feature_names_in_.tolist() == ["size", "weight"]
    stream = CRF(random_state=0).partial_fit(y=y, **form(X))
    for others in ([x[["weight", "size"]] for x in X], [x.rename(columns={"size": "height"}) for x in X]):
        want = r"X has the columns \[.*\]; expected \['size', 'weight'\], as in .*: the same names in the same order"
        for ask in (model.predict, model.predict_proba, restored.predict, model.decision_scores):
            with pytest.raises(ValueError, match=want):
                ask(**form(others))
        for fit in (model.fit, stream.partial_fit):
            with pytest.raises(ValueError, match=want):
                fit(y=y, **form(others))
    assert restored.predict(**form(X)) == model.predict(**form(X)) == model.predict([x.to_numpy() for x in X])
    model.set_params(warm_start=False).fit(y=y, **form([x[["weight", "size"]] for x in X]))
    assert model.feature_names_in_.tolist() == ["weight", "size"]
    model.fit([x.to_numpy() for x in X], y)
    assert not hasattr(model, "feature_names_in_")


def test_frames_of_one_input_have_the_same_columns():
    X, y = frames()
    X[3] = X[3][["weight", "size"]]
    with pytest.raises(ValueError, match=r"X\[3\] has the columns \['weight', 'size'\]; expected \['size', 'weight'\]"):
        CRF().fit(X, y)
    X[3].columns = [0, 1]  # numbers are no names
    assert CRF().fit(X, y).feature_names_in_.tolist() == ["size", "weight"]


@pytest.mark.parametrize("name", ["default", "chunking"])
def test_built_in_templates_have_names(name):
    X, y = [[["Rex", "NN"], ["barks", "VB"]], [["Tom", "NN"]]], [["a", "b"], ["a"]]
    template = Template.default(2) if name == "default" else Template.chunking()
    model, wanted = CRF(template=name).fit(iter(X), y), CRF(template=template).fit(X, y)
    np.testing.assert_array_equal(model.parameters_, wanted.parameters_)
    assert model.template_.text == template.text
    assert model.predict(X) == wanted.predict(X)
