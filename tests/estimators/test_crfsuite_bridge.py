"""From CRFsuite to dualfield: its model files, and scripts written for sklearn-crfsuite."""

import os
import pickle
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from threadpoolctl import threadpool_limits

import dualfield
from dualfield import metrics
from dualfield.estimators.crfsuite import CRF
from dualfield.features import Template
from dualfield.io import read_conll
from dualfield.solvers import Status

pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite, the reference of these tests, is not installed")

DATA = os.environ.get("DUALFIELD_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="DUALFIELD_DATA does not name the folder with the CoNLL files")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Products of vectors on several threads wait for each other where the cores are busy, as in a run of all tests."""
    with threadpool_limits(1):
        yield


# What python-crfsuite calls the arguments of sklearn-crfsuite.
NAMES = {
    "min_freq": "feature.minfreq",
    "all_possible_states": "feature.possible_states",
    "all_possible_transitions": "feature.possible_transitions",
    "pa_type": "type",
}


def make_problem(seed=0, n_sequences=60, n_words=30):
    generator = random.Random(seed)
    X, y = [], []
    for _ in range(n_sequences):
        words = [generator.randrange(n_words) for _ in range(generator.randint(1, 8))]
        X.append([{"word": f"w{word}", "size": generator.random(), "cap": generator.random() < 0.3} for word in words])
        labels = [["VB", "NN", "DT", "JJ"][(word + (generator.random() < 0.2)) % 4] for word in words]
        # DT is never last, and never twice in a row.
        for t, label in enumerate(labels):
            if label == "DT" and (t + 1 == len(labels) or labels[t + 1] == "DT"):
                labels[t] = "NN"
        y.append(labels)
    return X, y


X, Y = make_problem()


def train(path, X, y, **params):
    trainer = pycrfsuite.Trainer(params.pop("algorithm", "lbfgs"), verbose=False)
    trainer.set_params({NAMES.get(name, name): value for name, value in params.items()})
    for items, labels in zip(X, y, strict=True):
        trainer.append(items, labels)
    trainer.train(str(path))
    return trainer, open_tagger(path)


def open_tagger(path):
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


def check_same(model, tagger, X):
    """All labels, all marginals and the probability of every predicted labelling."""
    predicted, marginals = model.predict(X), model.predict_marginals(X)
    log_probability = model.score_sequences(X, predicted)
    for items, labels, rows, value in zip(X, predicted, marginals, log_probability, strict=True):
        assert tagger.tag(items) == labels
        tagger.set(items)
        assert np.exp(value) == pytest.approx(tagger.probability(labels), abs=1e-9)
        for t, row in enumerate(rows):
            assert row == pytest.approx({label: tagger.marginal(label, t) for label in row}, abs=1e-9)


# Model files.


@pytest.mark.parametrize(
    "params",
    [
        {"c2": 0.1},
        {"c1": 1.0, "c2": 0.01},
        {"algorithm": "ap"},
        {"algorithm": "l2sgd", "all_possible_states": True},
        {"all_possible_transitions": True, "min_freq": 3},
    ],
    ids=str,
)
def test_file_tags_as_crfsuite(tmp_path, params):
    path = tmp_path / "model.crfsuite"
    _, tagger = train(path, X, Y, max_iterations=20, **params)
    model = dualfield.CRF.from_crfsuite(path)
    unknown = [[{"word": "never seen", "size": 0.5}, {"word": "w3", "other": True}]]
    check_same(model, tagger, X + make_problem(seed=5, n_sequences=20)[0] + unknown)
    assert model.classes_.tolist() == sorted(tagger.labels())
    # Its text has six digits behind the point.
    for mine, theirs in (
        (model.state_features_, tagger.info().state_features),
        (model.transition_features_, tagger.info().transitions),
    ):
        assert {key: round(value, 6) for key, value in mine.items()} == theirs


def test_attributes_of_a_restored_model(tmp_path):
    train(tmp_path / "model.crfsuite", X, Y, max_iterations=5)
    model = dualfield.CRF.from_crfsuite(str(tmp_path / "model.crfsuite"))
    assert model.solver_ == "crfsuite"
    assert model.status_ is Status.FINISHED
    assert np.isnan([model.objective_, model.dual_gap_]).all()
    assert len(model.trace_) == 0
    assert model.n_features_ == len(model.state_features_) + len(model.transition_features_)
    assert model.coef_.shape == (4, len(model.vocabulary_))
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(X) == model.predict(X)


def test_training_goes_on_from_a_restored_model(tmp_path):
    train(tmp_path / "model.crfsuite", X, Y, c2=0.5)
    restored = dualfield.CRF.from_crfsuite(tmp_path / "model.crfsuite").set_params(warm_start=True, solver="lbfgs")
    assert restored.fit(X, Y).n_iter_ < dualfield.CRF(solver="lbfgs").fit(X, Y).n_iter_
    assert restored.objective_ == pytest.approx(dualfield.CRF(tol=1e-9).fit(X, Y).objective_, rel=1e-4)


def test_file_that_is_no_model(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("nothing")
    with pytest.raises(ValueError, match=r"notes\.txt is not a model of CRFsuite"):
        dualfield.CRF.from_crfsuite(path)


# Files written.


@pytest.mark.parametrize(
    "params",
    [{}, {"l1_ratio": 0.5, "C": 2.0}, {"features": "all"}, {"temperature": 2.0}, {"solver": "perceptron"}],
    ids=str,
)
def test_crfsuite_tags_with_our_file(tmp_path, params):
    path = tmp_path / "model.crfsuite"
    model = dualfield.CRF(tol=1e-3, **params).fit(X, Y)
    model.to_crfsuite(path)
    tagger = open_tagger(path)
    unknown = [[{"word": "never seen", "size": 0.5}, {"word": "w3", "other": True}]]
    check_same(model, tagger, X + make_problem(seed=5, n_sequences=20)[0] + unknown)
    assert tagger.labels() == model.classes_.tolist()
    again = dualfield.CRF.from_crfsuite(path)
    if params.get("temperature", 1.0) == 1.0:  # to the last bit
        assert again.state_features_ == model.state_features_
        assert again.transition_features_ == model.transition_features_


def test_file_of_a_file(tmp_path):
    train(tmp_path / "one", X, Y)
    dualfield.CRF.from_crfsuite(tmp_path / "one").to_crfsuite(tmp_path / "two")
    dualfield.CRF.from_crfsuite(tmp_path / "two").to_crfsuite(tmp_path / "three")
    assert (tmp_path / "two").read_bytes() == (tmp_path / "three").read_bytes()


def test_attributes_of_a_template(tmp_path):
    rows = [[["the"], ["dog"], ["ran"]], [["dogs"], ["ran"]]]
    model = dualfield.CRF(template="U00:%x[0,0]\nU01:%x[-1,0]\nB").fit(rows, [["D", "N", "V"], ["N", "V"]])
    model.to_crfsuite(tmp_path / "model")
    nodes = model.template_.read(rows).nodes
    names, bounds = list(nodes.vocabulary), zip(nodes.indptr, nodes.indptr[1:], strict=False)
    items = [[names[column] for column in nodes.indices[a:b]] for a, b in bounds]
    assert open_tagger(tmp_path / "model").tag(items[:3]) == model.predict(rows)[0]


NUMBERS = [np.array([[1.0], [-1.0]]), np.array([[-2.0], [2.0], [1.0]])]


@pytest.mark.parametrize(
    ("params", "x", "message"),
    [
        ({"structure": dualfield.structures.Chain(order=2)}, X, r"are chains of order 1\. Got a Chain of order 2"),
        ({"structure": "single"}, None, r"are chains of order 1\. Got a Single instead"),
        ({"kernel": "rbf"}, NUMBERS, "have weights of attributes. This model has a kernel"),
        ({}, NUMBERS, "have weights of attributes. This model was fitted to numbers"),
        ({"pair_features": True}, X, "have no attributes that score pairs of labels"),
        ({"start_stop": True}, X, "have no weights of the first and the last label"),
    ],
    ids=str,
)
def test_models_that_crfsuite_cannot_have(tmp_path, params, x, message):
    if x is None:
        model = dualfield.CRF(**params).fit([["a"], ["b"]], ["x", "y"])
    else:
        y = [["up", "down"], ["down", "up", "up"]] if x is NUMBERS else Y
        model = dualfield.CRF(**params).fit(x, y)
    with pytest.raises(ValueError, match=f"^CRFsuite's models {message}"):
        model.to_crfsuite(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_constraints_and_numbers_as_labels_are_refused(tmp_path):
    x, y = [[["a"], ["b"]], [["b"]]], [["B-x", "I-x"], ["O"]]
    with pytest.raises(ValueError, match=r"^CRFsuite's models cannot forbid labels. Use constraints=None"):
        dualfield.CRF(constraints="BIO").fit(x, y).to_crfsuite(tmp_path / "model")
    with pytest.raises(ValueError, match=r"^CRFsuite's models have labels of type str. Got int instead"):
        dualfield.CRF().fit(x, [[0, 1], [2]]).to_crfsuite(tmp_path / "model")


@needs_data
def test_chunking_model_tags_as_crfsuite(tmp_path):
    sentences = read_conll(Path(DATA) / "conll2000_train.txt.gz")[:800]
    rows = Template.chunking().read([[row[:2] for row in sentence] for sentence in sentences]).nodes
    names = list(rows.vocabulary)
    items = [
        [names[column] for column in rows.indices[a:b]] for a, b in zip(rows.indptr, rows.indptr[1:], strict=False)
    ]
    X = [items[a:b] for a, b in zip(rows.offsets, rows.offsets[1:], strict=False)]
    y = [[row[2] for row in sentence] for sentence in sentences]
    path = tmp_path / "chunking.crfsuite"
    _, tagger = train(path, X[:500], y[:500], max_iterations=10)
    check_same(dualfield.CRF.from_crfsuite(path), tagger, X[500:])


# The drop-in: CRFsuite's optimum.


def by_key(mine, theirs):
    keys = sorted({*mine, *theirs})
    return [np.array([weights.get(key, 0.0) for key in keys]) for weights in (mine, theirs)]


@pytest.mark.parametrize(
    "params",
    [
        {"c2": 0.5},
        {},
        {"c1": 0, "c2": 0.1, "all_possible_transitions": True},
        {"c2": 0.1, "all_possible_states": True},
        {"c2": 0.1, "all_possible_states": True, "all_possible_transitions": True},
        {"c2": 0.3, "min_freq": 2},
        {"c2": 0.3, "min_freq": 2.5, "all_possible_states": True, "all_possible_transitions": True},
    ],
    ids=str,
)
def test_same_weights_as_crfsuite(tmp_path, params):
    trainer, tagger = train(tmp_path / "model", X, Y, epsilon=1e-12, delta=1e-14, **params)
    crf = CRF(delta=1e-9, **params).fit(X, Y)
    assert crf.n_features_ == trainer.logparser.featgen_num_features
    assert crf.objective_ == pytest.approx(trainer.logparser.last_iteration["loss"], rel=1e-7)
    assert crf.dual_gap_ <= 1e-9 * crf.objective_
    info = tagger.info()
    for mine, theirs in (
        by_key(crf.state_features_, info.state_features),
        by_key(crf.transition_features_, info.transitions),
    ):
        assert np.linalg.norm(mine - theirs) <= 1e-3 * np.linalg.norm(theirs)


def test_attributes_with_value_zero_occur(tmp_path):
    x, y = [[{"a": True}, {"a": False}], [{"a": False}, {"b": True}]], [["x", "y"], ["z", "x"]]
    trainer, _ = train(tmp_path / "model", x, y)
    assert CRF().fit(x, y).n_features_ == trainer.logparser.featgen_num_features == 6


def test_attributes_with_negative_values_keep_their_weights(tmp_path):
    # CRFsuite drops an attribute whose values add up to less than 0 where it occurs with a label.
    x, y = [[{"a": -1.0}, {"b": 1.0}], [{"a": -2.0}, {"b": 3.0}]], [["x", "y"], ["x", "y"]]
    trainer, _ = train(tmp_path / "model", x, y)
    crf = CRF().fit(x, y)
    assert (crf.n_features_, trainer.logparser.featgen_num_features) == (3, 2)
    assert crf.state_features_["a", "x"] < 0


@pytest.mark.parametrize("params", [{"c1": 0.3, "c2": 0.1}, {"c1": 1.0, "c2": 0.0}, {"c1": 0.1, "c2": 0.01}], ids=str)
def test_same_objective_as_crfsuite_with_absolute_values(tmp_path, params):
    trainer, tagger = train(tmp_path / "model", X, Y, epsilon=1e-12, delta=1e-14, **params)
    crf = CRF(delta=1e-5, **params).fit(X, Y)
    assert crf.objective_ == pytest.approx(trainer.logparser.last_iteration["loss"], rel=1e-4)
    assert len(crf.state_features_) == pytest.approx(len(tagger.info().state_features), rel=0.1)
    assert len(crf.state_features_) < trainer.logparser.featgen_num_features


def test_absolute_values_are_certified_within_the_iterations_of_the_tutorial(tmp_path):
    params = {"c1": 0.1, "c2": 0.1, "max_iterations": 100, "all_possible_transitions": True}
    trainer, _ = train(tmp_path / "model", X, Y, **params)
    crf = CRF(**params).fit(X, Y)
    assert (crf.solver_, crf.status_) == ("block_dual", Status.CONVERGED)
    assert crf.dual_gap_ <= 1e-4 * crf.objective_
    # CRFsuite's objective is never below the bound, and ours is as good up to the gap.
    theirs = trainer.logparser.last_iteration["loss"]
    assert crf.objective_ - crf.dual_gap_ <= theirs + 1e-6
    assert crf.objective_ <= theirs + crf.dual_gap_
    assert min(map(abs, crf.state_features_.values())) > 0.0


def test_memory_of_lbfgs():
    assert CRF(num_memories=4).fit(X, Y).solver_ == "lbfgs"
    assert CRF().fit(X, Y).solver_ == "block_dual"


ONLINE = [
    {"algorithm": "ap"},
    *({"algorithm": "pa", "pa_type": kind} for kind in (0, 1, 2)),
    {"algorithm": "pa", "c": 0.05, "max_iterations": 7},
    {"algorithm": "pa", "pa_type": 2, "c": 0.05, "averaging": False, "max_iterations": 7},
    {"algorithm": "pa", "error_sensitive": False, "averaging": False, "max_iterations": 3},
    {"algorithm": "pa", "epsilon": 0.5},
    {"algorithm": "arow"},
    {"algorithm": "arow", "variance": 0.3, "gamma": 4.0, "max_iterations": 5},
    {"algorithm": "arow", "epsilon": 0.5, "all_possible_states": True, "all_possible_transitions": True},
]


@pytest.mark.parametrize("n_copies", [1, 4])
@pytest.mark.parametrize("params", ONLINE, ids=str)
def test_same_moves_as_crfsuite(tmp_path, params, n_copies):
    """Of equal sequences the order does not matter, so the weights are CRFsuite's."""
    generator = random.Random(3)
    items = [{"word": f"w{generator.randrange(6)}", "size": generator.random()} for _ in range(25)]
    labels = ["A", "B", "C", *generator.choices("ABC", k=22)]  # numbered alike: both take the first of equals
    _, tagger = train(tmp_path / "model", [items] * n_copies, [labels] * n_copies, **params)
    crf = CRF(**params).fit([items] * n_copies, [labels] * n_copies)
    info = tagger.info()
    for mine, theirs in (
        by_key(crf.state_features_, info.state_features),
        by_key(crf.transition_features_, info.transitions),
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=2e-6)  # its text has six digits behind the point


@pytest.mark.parametrize("params", ONLINE, ids=str)
def test_online_learners_are_as_good_as_those_of_crfsuite(tmp_path, params):
    """The order of the sequences differs, and so do the weights; labels that follow from words are learnt by both."""
    labels = [["ABCD"[int(item["word"][1:]) % 4] for item in items] for items in X]
    _, tagger = train(tmp_path / "model", X, labels, **params)
    assert metrics.flat_accuracy_score(labels, [tagger.tag(items) for items in X]) > 0.9
    assert CRF(**params).fit(X, labels).score(X, labels) > 0.9


def test_a_small_loss_ends_the_epochs():
    for algorithm in ("pa", "arow"):
        assert CRF(algorithm=algorithm).fit(X, Y).n_iter_ == 100
        assert CRF(algorithm=algorithm, epsilon=1e6).fit(X, Y).n_iter_ == 1


@pytest.mark.parametrize(
    ("algorithm", "solver"),
    [("l2sgd", "sgd"), ("ap", "perceptron"), ("pa", "passive_aggressive"), ("arow", "arow")],
)
def test_other_algorithms(algorithm, solver):
    crf = CRF(algorithm=algorithm, max_iterations=20).fit(X, Y)
    assert crf.solver_ == solver
    assert crf.score(X, Y) > 0.7


def test_limit_on_iterations_is_not_warned_of():
    crf = CRF(max_iterations=2, delta=1e-12).fit(X, Y)
    assert crf.status_ is Status.ITERATION_LIMIT


# The drop-in: manners.


def test_answers():
    crf = CRF(c2=0.1).fit(X, Y)
    assert crf.classes_ == ["DT", "JJ", "NN", "VB"]
    assert crf.predict_single(X[0]) == crf.predict(X)[0]
    for one, two in zip(crf.predict_marginals_single(X[0]), crf.predict_marginals(X)[0], strict=True):
        assert one == pytest.approx(two)
    assert sum(crf.predict_marginals(X)[0][0].values()) == pytest.approx(1.0)
    assert crf.score(X, Y) == metrics.flat_accuracy_score(Y, crf.predict(X))
    assert crf.explain(X[0]).labels == crf.predict(X)[0]


PUBLIC = (
    *("classes_", "tagger_", "size_", "num_attributes_", "attributes_", "state_features_", "transition_features_"),
    "training_log_",
)


@pytest.mark.parametrize("name", PUBLIC)
def test_attributes_are_none_before_a_fit(tmp_path, name):
    assert getattr(CRF(), name) is None
    assert getattr(CRF(model_filename=str(tmp_path / "new")), name) is None
    with pytest.raises(AttributeError):
        setattr(CRF(), name, 1)


@pytest.mark.parametrize("params", [{}, {"c1": 1.0}], ids=str)
def test_attributes_as_in_the_file(tmp_path, params):
    path = str(tmp_path / "model.crfsuite")
    crf, theirs = CRF(model_filename=path, **params).fit(X, Y), open_tagger(path)
    info, mine = theirs.info(), crf.tagger_.info()
    assert crf.size_ == Path(path).stat().st_size
    assert crf.num_attributes_ == len(crf.attributes_) == int(info.header["num_attrs"])
    assert {name: str(number) for number, name in enumerate(crf.attributes_)} == info.attributes
    assert (mine.header, mine.labels, mine.attributes) == (info.header, info.labels, info.attributes)
    assert {key: round(weight, 6) for key, weight in mine.state_features.items()} == info.state_features
    assert {key: round(weight, 6) for key, weight in mine.transitions.items()} == info.transitions


def test_tagger(tmp_path):
    path = str(tmp_path / "model.crfsuite")
    crf = CRF(c2=0.1, model_filename=path).fit(X, Y)
    theirs = open_tagger(path)
    assert crf.modelfile.name == path
    assert crf.tagger_.tag() == theirs.tag() == []
    assert crf.tagger_.labels() == theirs.labels() == crf.classes_
    for items, labels in zip(X[:10], Y, strict=False):
        assert crf.tagger_.tag(iter(items)) == theirs.tag(items)
        assert crf.tagger_.probability(labels) == pytest.approx(theirs.probability(labels), abs=1e-12)
        for at in range(len(items)):
            found = {label: crf.tagger_.marginal(label, at) for label in crf.classes_}
            assert found == pytest.approx({label: theirs.marginal(label, at) for label in found}, abs=1e-12)
    crf.tagger_.set(X[0])
    assert crf.tagger_.tag() == crf.predict_single(X[0])
    with pytest.raises(ValueError, match=r"^The 'pos' parameter of marginal must be in \[0, \d\). Got -1 instead"):
        crf.tagger_.marginal("NN", -1)
    with pytest.raises(ValueError, match=r"^The 'y' parameter of marginal must be one of \['DT', .* Got 'XX' instead"):
        crf.tagger_.marginal("XX", 0)
    with pytest.raises(ValueError, match="labels"):
        crf.tagger_.probability(["NN"] * 20)
    old = crf.tagger_
    assert pickle.loads(pickle.dumps(crf)).tagger_.tag(X[1]) == old.tag(X[1])
    assert crf.set_params(c2=100.0).fit(X, Y).tagger_ is not old


def test_temporary_files_are_warned_of():
    with pytest.warns(UserWarning, match="keep_tempfiles has no effect"):
        CRF(keep_tempfiles=True).fit(X, Y)


def test_development_data():
    crf = CRF().fit(X[:40], Y[:40], X[40:], Y[40:])
    assert crf.dev_score_ == crf.score(X[40:], Y[40:])
    assert not hasattr(crf.fit(X, Y), "dev_score_")
    with pytest.raises(ValueError, match="X_dev and y_dev must be given together"):
        crf.fit(X, Y, X)


@pytest.mark.parametrize("params", [{}, {"c1": 1.0}, {"algorithm": "ap"}], ids=str)
def test_training_log(tmp_path, params):
    """Counts and the last loss are those that python-crfsuite reads from CRFsuite's log."""
    tight = {"epsilon": 1e-12, "delta": 1e-14} if "algorithm" not in params else {}
    theirs = train(tmp_path / "model", X, Y, **tight, **params)[0].logparser
    crf = CRF(**({"delta": 1e-9} if tight else {}), **params).fit(X[:40], Y[:40], X[40:], Y[40:])
    assert crf.training_log_.last_iteration["item_accuracy_float"] == crf.dev_score_
    crf.fit(X, Y)
    log = crf.training_log_
    assert log.featgen_num_features == theirs.featgen_num_features
    assert [one["num"] for one in log.iterations] == list(range(1, len(crf.trace_) + 1))
    assert [one["loss"] for one in log.iterations] == pytest.approx(crf.trace_.objective.tolist(), nan_ok=True)
    assert sum(one["time"] for one in log.iterations) == pytest.approx(log.training_seconds)
    assert log.last_iteration is log.iterations[-1]
    assert "item_accuracy_float" not in log.last_iteration
    n_active = len(crf.state_features_) + len(crf.transition_features_)
    assert log.last_iteration["active_features"] == n_active
    if tight:
        assert log.last_iteration["loss"] == pytest.approx(theirs.last_iteration["loss"], rel=1e-7)
        assert log.last_iteration["feature_norm"] == pytest.approx(theirs.last_iteration["feature_norm"], rel=1e-3)
    if "c1" in params:
        assert n_active == pytest.approx(theirs.last_iteration["active_features"], rel=0.1)
    assert pickle.loads(pickle.dumps(crf)).training_log_ == log


def test_models_from_files_have_no_log(tmp_path):
    path = str(tmp_path / "model.crfsuite")
    CRF(model_filename=path).fit(X, Y)
    assert CRF(model_filename=path).training_log_ is None


def test_every_documented_name_is_there():
    """The methods and arguments of sklearn_crfsuite.CRF, as its documentation lists them."""
    crf = CRF().fit(X, Y, X_dev=X, y_dev=Y)
    assert crf.predict_single(X[0]) == crf.predict(X)[0]
    for one, other in zip(crf.predict_marginals_single(X[0]), crf.predict_marginals(X)[0], strict=True):
        assert one == pytest.approx(other, rel=1e-12)
    assert 0.0 < crf.score(X, Y) <= 1.0
    assert all(getattr(crf, name) is not None for name in PUBLIC)
    assert crf.modelfile.name is None


def test_parameters_survive_cloning():
    crf = CRF(algorithm="lbfgs", c1=0.1, c2=0.2, max_iterations=10, keep_tempfiles=True, verbose=False)
    assert clone(crf).get_params() == crf.get_params()
    assert clone(crf).set_params(c2=0.5).c2 == 0.5
    assert repr(CRF(c1=0.1)) == "CRF(c1=0.1)"


def test_fitted_model_survives_pickling():
    crf = CRF(c2=0.1).fit(X, Y)
    assert pickle.loads(pickle.dumps(crf)).predict_marginals(X) == crf.predict_marginals(X)


def test_grid_search():
    search = GridSearchCV(CRF(max_iterations=50), {"c2": [0.1, 100.0], "all_possible_states": [False, True]}, cv=2)
    search.fit(X, Y)
    assert search.best_params_["c2"] == 0.1


def test_existing_model_file(tmp_path):
    path = tmp_path / "model.crfsuite"
    _, tagger = train(path, X, Y, c2=0.1)
    check_same(CRF(model_filename=str(path)), tagger, X)
    assert CRF(model_filename=str(path)).classes_ == sorted(tagger.labels())
    assert len(CRF(model_filename=str(path)).state_features_) == len(tagger.info().state_features)


@pytest.mark.parametrize("kind", [str, Path])
def test_training_writes_the_model_file(tmp_path, kind):
    path = tmp_path / "model.crfsuite"
    crf = CRF(c2=0.1, model_filename=kind(path)).fit(X, Y)
    check_same(crf, open_tagger(path), X)
    again = CRF(model_filename=kind(path))
    assert again.predict_marginals(X) == crf.predict_marginals(X)
    assert again.state_features_ == crf.state_features_
    crf.set_params(c2=10.0).fit(X, Y)  # the file is replaced
    check_same(crf, open_tagger(path), X)


def test_model_file_that_cannot_be_written(tmp_path):
    path = str(tmp_path / "none" / "model.crfsuite")
    with pytest.raises(
        ValueError, match=r"^The 'model_filename' parameter of CRF must be a file in a folder that exist"
    ):
        CRF(model_filename=path).fit(X, Y)
    path = tmp_path / "model.crfsuite"
    with pytest.raises(ValueError, match=r"^CRFsuite's models have labels of type str. Got int instead"):
        CRF(model_filename=str(path)).fit([[["a"]], [["b"]]], [[1], [2]])
    assert not path.exists()


def test_not_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        CRF().predict(X)
    with pytest.raises(NotFittedError, match=r"its model_filename '.*new\.crfsuite' is no file"):
        CRF(model_filename=str(tmp_path / "new.crfsuite")).predict(X)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"algorithm": "newton"}, r"must be None or one of \['lbfgs', 'l2sgd', 'ap', 'pa', 'arow'\]\. Got 'newton'"),
        ({"algorithm": "pa", "pa_type": 3}, r"^The 'pa_type' parameter of CRF must be None, 0, 1 or 2\. Got 3 instead"),
        ({"algorithm": "pa", "c": 0.0}, r"^The 'c' parameter of CRF must be a float in \(0, inf\)\. Got 0\.0 instead"),
        ({"algorithm": "pa", "gamma": 1.0}, r"^The 'gamma' parameter of CRF does not belong to algorithm='pa'"),
        ({"algorithm": "arow", "gamma": -1.0}, r"^The 'gamma' parameter of CRF must be a float in \(0, inf\)"),
        ({"algorithm": "arow", "epsilon": -1.0}, r"^The 'epsilon' parameter of CRF must be a float in \[0, inf\)"),
        ({"algorithm": "l2sgd", "c1": 0.1}, r"^The 'c1' parameter of CRF does not belong to algorithm='l2sgd'"),
        ({"pa_type": 1}, r"^The 'pa_type' parameter of CRF does not belong to algorithm='lbfgs'"),
        ({"c1": 0, "c2": 0}, r"^The 'c1' and 'c2' parameters of CRF must not both be 0"),
        ({"c2": -1.0}, r"^The 'c2' parameter of CRF must be a float in \[0, inf\)\. Got -1\.0 instead\.$"),
        ({"max_iterations": 0}, r"^The 'max_iterations' parameter of CRF must be None or an int in \[1, inf\)"),
        ({"delta": 0.0}, r"^The 'delta' parameter of CRF must be a float in \(0, inf\)"),
        ({"min_freq": "2"}, r"^The 'min_freq' parameter of CRF must be a float"),
        ({"trainer_cls": object}, r"^The 'trainer_cls' parameter of CRF must be None"),
    ],
    ids=str,
)
def test_refused(params, message):
    with pytest.raises(ValueError, match=message):
        CRF(**params).fit(X, Y)


def test_tolerance_out_of_reach_is_warned_of():
    with pytest.warns(ConvergenceWarning, match="raise delta"):
        CRF(delta=1e-300, num_memories=5).fit(X, Y)


# The walk-through on CoNLL-2002 that sklearn-crfsuite has published, on fewer sentences.


def word2features(sentence, at):
    word, tag = sentence[at][:2]
    features = {
        "bias": 1.0,
        "word.lower()": word.lower(),
        "word[-3:]": word[-3:],
        "word[-2:]": word[-2:],
        "word.isupper()": word.isupper(),
        "word.istitle()": word.istitle(),
        "word.isdigit()": word.isdigit(),
        "postag": tag,
        "postag[:2]": tag[:2],
    }
    for step, end in ((-1, "BOS"), (1, "EOS")):
        if not 0 <= at + step < len(sentence):
            features[end] = True
            continue
        word, tag = sentence[at + step][:2]
        features |= {
            f"{step:+d}:word.lower()": word.lower(),
            f"{step:+d}:word.istitle()": word.istitle(),
            f"{step:+d}:word.isupper()": word.isupper(),
            f"{step:+d}:postag": tag,
            f"{step:+d}:postag[:2]": tag[:2],
        }
    return features


def read_spanish(name, n_sentences=None):
    sentences = read_conll(Path(DATA) / f"conll2002_esp_{name}.txt.gz")[:n_sentences]
    X = [[word2features(sentence, at) for at in range(len(sentence))] for sentence in sentences]
    return X, [[row[2] for row in sentence] for sentence in sentences]


@needs_data
def test_walk_through():
    X_train, y_train = read_spanish("train", 1500)
    X_test, y_test = read_spanish("testb")
    crf = CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)
    crf.fit(X_train, y_train)

    labels = list(crf.classes_)
    labels.remove("O")
    y_pred = crf.predict(X_test)
    f1 = metrics.flat_f1_score(y_test, y_pred, average="weighted", labels=labels)
    assert f1 > 0.65

    sorted_labels = sorted(labels, key=lambda name: (name[1:], name[0]))
    report = metrics.flat_classification_report(y_test, y_pred, labels=sorted_labels, digits=3)
    assert [line.split()[0] for line in report.splitlines()[2 : 2 + len(labels)]] == sorted_labels

    likely = Counter(crf.transition_features_).most_common(20)
    assert ("B-ORG", "I-ORG") in [pair for pair, _ in likely[:8]]
    unlikely = Counter(crf.transition_features_).most_common()[-20:]
    assert ("O", "I-ORG") in [pair for pair, _ in unlikely]
    assert len(Counter(crf.state_features_).most_common(30)) == 30


@needs_data
def test_walk_through_search():
    X_train, y_train = read_spanish("train", 300)
    labels = sorted({label for sentence in y_train for label in sentence} - {"O"})
    scorer = make_scorer(metrics.flat_f1_score, average="weighted", labels=labels, zero_division=0)
    search = RandomizedSearchCV(
        CRF(algorithm="lbfgs", max_iterations=100, all_possible_transitions=True),
        {"c1": scipy.stats.expon(scale=0.5), "c2": scipy.stats.expon(scale=0.05)},
        cv=2,
        n_iter=2,
        scoring=scorer,
        random_state=0,
    )
    search.fit(X_train, y_train)
    assert set(search.best_params_) == {"c1", "c2"}
    assert 0.2 < search.best_score_ < 1.0
    assert search.best_estimator_.predict(X_train[:1])[0]
