"""Dependency trees in estimators: sentences in, trees out."""

import numpy as np
import pytest
from sklearn.base import clone

import dualfield
from dualfield import CRF, StructuredSVM
from dualfield.data import DependencySentence
from dualfield.structures import Dependency, head_probabilities
from tests.reference.parts import projective_trees

LABELS = {"V": "root", "N": "subj", "D": "det", "A": "mod"}


def treebank(n_sentences=60, seed=0):
    """Sentences of a small grammar: determiners and adjectives before nouns, one verb that nouns depend on."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_sentences):
        tags, noun_places = [], []
        for _ in range(rng.integers(1, 4)):
            tags += ["D"] * int(rng.random() < 0.6) + ["A"] * int(rng.integers(0, 3)) + ["N"]
            noun_places.append(len(tags))
        verb = int(rng.choice([0, *noun_places]))
        tags.insert(verb, "V")
        words = [(f"{tag.lower()}{rng.integers(4)}", tag) for tag in tags]
        heads = []
        for at, tag in enumerate(tags):
            nouns = [t + 1 for t in range(at + 1, len(tags)) if tags[t] == "N"]
            heads.append(0 if tag == "V" else verb + 1 if tag == "N" else nouns[0])
        X.append(words)
        y.append(list(zip(heads, (LABELS[tag] for tag in tags), strict=True)))
    return X, y


def heads_of(y):
    return [[head for head, _ in tree] for tree in y]


@pytest.mark.parametrize(
    "model",
    [
        CRF("dependency", C=10.0),
        CRF("dependency", C=10.0, solver="lbfgs"),
        CRF("dependency", solver="perceptron"),
        StructuredSVM("dependency", C=10.0),
    ],
    ids=["crf", "lbfgs", "perceptron", "svm"],
)
@pytest.mark.parametrize("labelled", [False, True])
def test_trees_are_learnt(model, labelled):
    X, y = treebank()
    y = y if labelled else heads_of(y)
    new, truth = treebank(30, seed=1)
    truth = truth if labelled else heads_of(truth)
    fitted = clone(model).fit(X, y)
    found = fitted.predict(new)
    assert type(found[0][0]) is (tuple if labelled else int)
    assert fitted.score(new, truth) > 0.97
    assert fitted.score(new, found) == 1.0
    assert fitted.classes_.tolist() == (["", "det", "mod", "root", "subj"] if labelled else ["", "arc"])


def test_sentences_of_conllu_give_sentences():
    X, y = treebank(20)
    sentences = [
        DependencySentence.from_tokens(words, *zip(*tree, strict=True)) for words, tree in zip(X, y, strict=True)
    ]
    model = CRF("dependency").fit(sentences, sentences)
    found = model.predict(sentences)
    assert all(isinstance(one, DependencySentence) for one in found)
    assert [one.labels for one in found] == [one.labels for one in sentences]
    assert model.score(sentences, sentences) == 1.0
    assert model.score(sentences, y) == 1.0
    best = model.k_best(sentences[:2], 3)
    assert best[0][0][0] == found[0]


def test_probabilities_of_arcs_and_trees():
    X, y = treebank(20)
    short = next(i for i, words in enumerate(X) if len(words) == 3)
    model = CRF("dependency").fit(X, heads_of(y))
    every = list(projective_trees(3))
    logs = np.concatenate([model.score_sequences([X[short]], [list(heads)]) for heads in every])
    assert np.exp(logs).sum() == pytest.approx(1.0)
    heads = head_probabilities(model.predict_proba([X[short]])[0])
    for word in range(3):
        for head in range(4):
            wanted = sum(np.exp(log) for log, tree in zip(logs, every, strict=True) if tree[word] == head)
            assert heads[word, head] == pytest.approx(wanted, abs=1e-9)
    ranked = model.k_best([X[short]], 10)[0]
    assert [probability for _, probability in ranked] == pytest.approx(sorted(np.exp(logs), reverse=True))
    draws = model.sample([X[short]], 200, random_state=0)[0]
    assert {tuple(tree) for tree in draws} <= set(every)
    with pytest.raises(ValueError, match="y must have the label of every node"):
        model.score_sequences([X[short]], [[0, None, 1]])
    with pytest.raises(ValueError, match="pairwise needs edges"):
        model.predict_proba(X, pairwise=True)


def test_known_arcs():
    X, y = treebank(30)
    model = CRF("dependency").fit(X, y)
    i = next(i for i, words in enumerate(X) if len(words) >= 5)
    n, free = len(X[i]), model.predict([X[i]])[0]
    for head in range(n + 1):
        if head == 1:
            continue
        tree = model.predict([X[i]], known=[[head] + [None] * (n - 1)])[0]
        assert tree[0][0] == head
        pair = model.predict([X[i]], known=[[(head, "mod")] + [None] * (n - 1)])[0]
        assert pair[0] == (head, "mod")
        rows = model.predict_proba([X[i]], known=[[head] + [None] * (n - 1)])[0]
        assert head_probabilities(rows)[0, head] == pytest.approx(1.0)
    assert model.predict([X[i]], known=[None])[0] == free
    assert model.predict([X[i]], known=[[{0, 2}] + [None] * (n - 1)])[0][0][0] in (0, 2)
    assert model.predict([X[i]], known=[[(None, "mod")] + [None] * (n - 1)])[0][0][1] == "mod"
    with pytest.raises(ValueError, match=r"known\[0\] must have \d+ heads"):
        model.predict([X[i]], known=[[0]])
    with pytest.raises(ValueError, match=r"known\[0\]\[0\] has the label 'x', which was not seen in training"):
        model.predict([X[i]], known=[[(0, "x")] + [None] * (n - 1)])


def agrees(known, heads):
    choices = [None if one is None else one if isinstance(one, set) else {one} for one in known]
    return all(one is None or head in one for one, head in zip(choices, heads, strict=True))


def test_probabilities_given_known_heads_are_those_of_the_trees_that_agree():
    X, y = treebank(30)
    i = next(i for i, words in enumerate(X) if len(words) == 4)
    model = CRF("dependency").fit(X, heads_of(y))
    every = list(projective_trees(4))
    logs = model.score_sequences([X[i]] * len(every), [list(heads) for heads in every])
    for known in ([None, 0, None, None], [None, None, {1, 2}, None], [4, None, None, None]):
        p = np.exp(logs) * [agrees(known, heads) for heads in every]
        rows = head_probabilities(model.predict_proba([X[i]], known=[known])[0])
        for word in range(4):
            for head in range(5):
                wanted = sum(share for share, heads in zip(p, every, strict=True) if heads[word] == head) / p.sum()
                assert rows[word, head] == pytest.approx(wanted, abs=1e-9)
        assert tuple(model.predict([X[i]], known=[known])[0]) == every[int(np.argmax(p))]


def test_partly_labelled_heads():
    """Half of the heads teach nearly as much as all of them, and more than the sentences that are whole."""
    X, y = treebank(60)
    rng = np.random.default_rng(0)
    partly = [[head if rng.random() < 0.5 else None for head in tree] for tree in heads_of(y)]
    model = CRF("dependency", C=10.0, random_state=0).fit(X, partly)
    new, truth = treebank(30, seed=1)
    assert model.score(new, heads_of(truth)) > 0.95
    labels = [[(head, None if rng.random() < 0.5 else label) for head, label in tree] for tree in y]
    model = CRF("dependency", C=10.0, random_state=0).fit(X, labels)
    assert model.score(new, truth) > 0.95
    with pytest.raises(ValueError, match=r"partly labelled|label of every node|known"):
        StructuredSVM("dependency").fit(X, partly)


def test_the_likelihood_of_partly_labelled_heads_is_that_of_all_trees_that_agree():
    X, y = treebank(15)
    short = [i for i, words in enumerate(X) if len(words) <= 4]
    X, heads = [X[i] for i in short], [heads_of(y)[i] for i in short]
    partly = [[None, *tree[1:]] for tree in heads]
    model = CRF("dependency", solver="lbfgs", tol=1e-8, random_state=0).fit(X, partly)
    total = 0.0
    for words, tree in zip(X, partly, strict=True):
        agreeing = [list(one) for one in projective_trees(len(words)) if list(one[1:]) == tree[1:]]
        logs = model.score_sequences([words] * len(agreeing), agreeing)
        total -= np.logaddexp.reduce(logs)
    weights = np.asarray(model.parameters_)
    assert model.objective_ == pytest.approx(0.5 * weights @ weights + total, rel=1e-8)


def test_crossing_trees():
    X, y = treebank(12)
    heads, words = heads_of(y), [("n1", "N"), ("d1", "D"), ("v1", "V"), ("n2", "N")]
    X, heads = [*X, words], [*heads, [3, 4, 0, 3]]
    with pytest.raises(ValueError, match=r"1 of 13 trees is not projective, the first is y\[12\]"):
        CRF("dependency").fit(X, heads)
    skipped = CRF(Dependency(non_projective="skip"), tol=1e-7, features="all").fit(X, heads)
    without = CRF("dependency", tol=1e-7, features="all").fit(X[:-1], heads[:-1])
    assert skipped.objective_ == pytest.approx(without.objective_, rel=1e-5)
    lifted = CRF(Dependency(non_projective="lift"), tol=1e-7).fit(X, heads)
    by_hand = CRF("dependency", tol=1e-7).fit(X, [*heads[:-1], [3, 3, 0, 3]])
    assert lifted.objective_ == pytest.approx(by_hand.objective_, rel=1e-5)
    with pytest.raises(ValueError, match=r"1 of 1 tree is not projective"):
        lifted.score_sequences([words], [[3, 4, 0, 3]])  # a model changes no tree that it is asked about
    with pytest.raises(ValueError, match=r"y must have an example that the structure, Dep.*, does not leave out"):
        CRF(Dependency(non_projective="skip")).fit(X[-1:], heads[-1:])


@pytest.mark.parametrize("estimator", [CRF, StructuredSVM])
@pytest.mark.parametrize(("mode", "as_if"), [("skip", []), ("lift", [[3, 3, 0, 3]])])
def test_crossing_trees_are_calibrated_on_as_they_are_trained_on(mode, as_if, estimator, tmp_path):
    X, y = treebank(29)
    X, heads = [*X, [("n1", "N"), ("v1", "V")]], [*heads_of(y), [0, 1]]  # the last one is got wrong
    words, crossing = [("n1", "N"), ("d1", "D"), ("v1", "V"), ("n2", "N")], [3, 4, 0, 3]
    X_dev, y_dev = X[20:], heads[20:]
    structure = Dependency(non_projective=mode)
    model = estimator(structure).fit(X[:20], heads[:20])
    found = model.calibrate([words, *X_dev], [crossing, *y_dev]).calibration_
    assert found == model.calibrate([words] * len(as_if) + X_dev, as_if + y_dev).calibration_
    model.save(tmp_path / "model")
    assert dualfield.load(tmp_path / "model").calibrate([words, *X_dev], [crossing, *y_dev]).calibration_ == found
    folds = [(range(20), range(20, 31)), (range(20, 31), range(20))]
    by_folds = model.calibrate([*X, words], [*heads, crossing], cv=folds).calibration_
    n_rows = sum(len(words) ** 2 for words in X) + 16 * len(as_if)
    assert by_folds.n_nodes == n_rows
    if mode == "skip":
        with pytest.raises(ValueError, match=r"y must have an example that the structure, Dep.*, does not leave out"):
            model.calibrate([words], [crossing])
    with pytest.raises(ValueError, match="1 of 1 tree is not projective"):
        CRF("dependency").fit(X, heads).calibrate([words], [crossing])


def test_several_roots():
    X = [["a", "b"], ["a"]]
    with pytest.raises(ValueError, match=r"y\[0\] is no tree: word 1 and word 2 .* Use Dependency\(root='any'\)"):
        CRF("dependency").fit(X, [[0, 0], [0]])
    assert CRF(Dependency(root="any"), C=100.0).fit(X, [[0, 0], [0]]).predict(X) == [[0, 0], [0]]


@pytest.mark.parametrize("mmap", [False, True])
def test_files(tmp_path, mmap):
    X, y = treebank(20)
    for structure in (Dependency(), Dependency(arc_features=["%x[head,1]/%x[child,1]/%d"], non_projective="lift")):
        model = CRF(structure).fit(X, y)
        model.save(tmp_path / "model")
        again = dualfield.load(tmp_path / "model", mmap=mmap)
        assert again.structure_ == model.structure_
        assert again.get_params()["structure"] == structure
        assert again.predict(X) == model.predict(X)
    with pytest.raises(ValueError, match="arc_features is a function cannot be saved"):
        CRF(Dependency(arc_features=lambda x, head, child: [f"{head}"])).fit(X, y).save(tmp_path / "model")


def test_tokens_must_have_the_columns_of_training():
    X, y = treebank(5)
    model = CRF("dependency").fit(X, heads_of(y))
    with pytest.raises(ValueError, match=r"X\[0\]\[0\] has 1 column; .* reads 2"):
        model.predict([["a", "b"]])
    CRF("dependency").fit([[word for word, _ in words] for words in X], heads_of(y))


def test_tags_are_taken_from_the_first_column_that_has_some(tmp_path):
    X, y = treebank(20)
    new, _ = treebank(10, seed=1)
    without = [[(word, "_", tag, "_", "_") for word, tag in words] for words in (*X, *new)]
    usual, model = CRF("dependency").fit(X, y), CRF("dependency").fit(without[: len(X)], y)
    assert np.array_equal(model.parameters_, usual.parameters_)
    model.save(tmp_path / "model")
    again = dualfield.load(tmp_path / "model")
    assert again.structure_ == model.structure_ != usual.structure_
    # The column is that of training: new sentences do not choose another one.
    tagged = [[(word, "X", tag, "_", "_") for word, tag in words] for words in new]
    assert usual.predict(new) == model.predict(without[len(X) :]) == again.predict(tagged)
    nothing = [[(word, "_") for word, _ in words] for words in X]
    assert CRF("dependency").fit(nothing, y).predict(nothing)  # no column has any


def test_features_by_functions_and_by_arrays():
    X, y = treebank(20)

    def features(sentence, head, child):
        return [f"{sentence[head][1] if head >= 0 else 'ROOT'}/{sentence[child][1]}/{head < child}"]

    named = CRF(Dependency(arc_features=features), tol=1e-7).fit(X, heads_of(y))
    texts = CRF(Dependency(arc_features=["%x[head,1]/%x[child,1]/%d"]), tol=1e-7).fit(X, heads_of(y))
    assert named.objective_ == pytest.approx(texts.objective_, rel=1e-5)
    rows = [
        np.array(
            [
                [float(head == child), float(head < 0 and words[child][1] == "V"), 1.0 / (1 + abs(head - child))]
                for child in range(len(words))
                for head in range(-1, len(words))
                if head != child
            ]
        )
        for words in X
    ]
    numeric = CRF("dependency", features="all").fit(rows, heads_of(y))
    assert numeric.predict(rows[:1])[0].count(0) == 1
    with pytest.raises(ValueError, match=r"X\[0\] must have n \* n rows, one for each arc of its n words. Got 3"):
        CRF("dependency").fit([np.zeros((3, 2))], [[0]])


def test_warm_start_and_explanations():
    X, y = treebank(20)
    model = CRF("dependency", C=3.0).fit(X, y)
    again = model.set_params(warm_start=True).fit(X, y)
    assert again.n_iter_ <= 3
    more, trees = treebank(10, seed=5)
    grown = again.fit([*X, *more], [*y, *trees])
    assert grown.score(more, trees) == 1.0
    explained = grown.explain(X[0])
    assert len(explained.tokens) == len(X[0]) ** 2
    for token in explained.tokens:
        assert sum(value for _, value in token.contributions) == pytest.approx(token.difference)


def test_explanations_name_head_and_child():
    model = CRF("dependency", C=10.0).fit([[("dogs", "N"), ("bark", "V")]], [[2, 0]])
    shown = str(model.explain([("dogs", "N"), ("bark", "V")]))
    for at, arc in enumerate(("ROOT → dogs", "bark → dogs", "ROOT → bark", "dogs → bark")):
        assert f"{at} ({arc}): " in shown


def test_clones_and_texts():
    structure = Dependency(root="any", non_projective="skip", arc_features=["%n"])
    assert repr(structure) == "Dependency(root='any', non_projective='skip', arc_features=['%n'])"
    assert structure == Dependency(root="any", non_projective="skip", arc_features=["%n"])
    assert structure != Dependency(root="any")
    assert hash(structure) == hash(Dependency(root="any", non_projective="skip", arc_features="%n"))
    with pytest.raises(ValueError, match="'constraints' parameter of CRF must be None"):
        CRF("dependency", constraints="BIO").fit([["a"]], [[0]])
    with pytest.raises(ValueError, match=r"structure has the labels \['', 'x'\]; y has \['', 'arc'\]"):
        CRF(Dependency(["", "x"])).fit([["a"]], [[0]])
