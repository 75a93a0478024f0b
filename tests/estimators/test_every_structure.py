"""Every structure trains a CRF and a structural SVM to the optimum that another solver finds by enumeration."""

import itertools
from itertools import pairwise, product

import cvxpy as cp
import numpy as np
import pytest

import dualfield
from dualfield import CRF, StructuredSVM
from dualfield.data.shapes import Shape
from dualfield.structures import Chain, Dependency, FlatGraphs, Grammar, Graph, SemiMarkov, Spans, Tree, UserStructure
from tests.reference.parts import Enumerator, Singles, Trees, TypedGraphs, draw_tree, enumerators

N_COLUMNS, C = 2, 0.7


def batch(name, seed):
    """Numeric examples of a structure with labels that all occur."""
    rng = np.random.default_rng(seed)
    table = enumerators(rng)[name]
    nodes = rng.normal(size=(table.shape.n_nodes, N_COLUMNS))
    codes = []
    for i in range(table.shape.n_examples):
        every = list(table.labellings(i))
        codes.append(every[rng.integers(len(every))])
    return table, nodes, codes


def features(table: Enumerator, nodes, i, labels, with_ends, with_pairs):
    """The joint features of a labelling: node weights, pair weights, cliques, ends.

    Features of an edge are those of the node that it leads to; with_pairs="both" or "pairs": those of both its nodes
    side by side, and in the second case nodes have none.
    """
    structure, k = table.structure, table.n_labels
    first = int(table.shape.offsets[i])
    nodes = table.columns(nodes)
    own = np.zeros((nodes.shape[1], k))
    for t, label in enumerate(labels):
        if label != structure.empty_label:  # which has no weights
            own[:, label] += nodes[first + t] * (with_pairs != "pairs")
    inputs = nodes[structure.edge_nodes(table.shape)]
    if with_pairs in ("both", "pairs"):
        inputs = np.hstack([nodes[end] for end in structure.edge_ends(table.shape).T])
    pairs = np.zeros((inputs.shape[1], structure.edge_width if with_pairs else 0))
    begin = structure.edge_offsets(table.shape)[i]
    for row, part in table.edges(i, labels) if with_pairs else []:
        pairs[:, part] += inputs[begin + row]
    shared = np.zeros(structure.n_cliques + structure.n_ends * k)
    for part in table.shared(i, labels):
        shared[part] += 1.0
    return np.concatenate([own.ravel(), pairs.ravel(), shared if with_ends else shared[: structure.n_cliques]])


def optimum(table, nodes, codes, *, hinge, with_ends=False, with_pairs=False, temperature=1.0, l1_ratio=0.0):
    """Minimise the enumerated objective with cvxpy."""
    terms, size = [], None
    for i, truth in enumerate(codes):
        every = list(table.labellings(i))
        rows = np.array([features(table, nodes, i, labels, with_ends, with_pairs) for labels in every])
        true = features(table, nodes, i, truth, with_ends, with_pairs)
        cost = np.array([sum(a != b for a, b in zip(labels, truth, strict=True)) for labels in every])
        terms.append((rows - true, cost.astype(float)))
        size = rows.shape[1]
    w = cp.Variable(size)
    if hinge:
        losses = [cp.max(rows @ w + cost) for rows, cost in terms]
    else:
        losses = [temperature * cp.log_sum_exp(rows @ w / temperature) for rows, _ in terms]
    penalty = 0.5 * (1.0 - l1_ratio) * cp.sum_squares(w) + l1_ratio * cp.norm1(w)
    problem = cp.Problem(cp.Minimize(penalty + C * sum(losses)))
    accuracy = 1e-7 if l1_ratio else 1e-10  # what it reaches without a complaint
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=accuracy, tol_gap_rel=accuracy)
    return float(problem.value)


def users_input(table, nodes, codes):
    offsets = table.shape.offsets
    X = [table.input(i, nodes[offsets[i] : offsets[i + 1]]) for i in range(table.shape.n_examples)]
    if isinstance(table, Singles):
        return np.array(X), np.array([labels[0] for labels in codes])
    y = [table.output(i, labels) for i, labels in enumerate(codes)]
    return (flat_graphs(table.shape, nodes) if isinstance(table, TypedGraphs) else X), y


def flat_graphs(shape, nodes):
    return FlatGraphs(
        nodes=nodes,
        lengths=shape.lengths,
        edges=shape.edges,
        edge_lengths=np.diff(shape.edge_offsets),
        types=shape.types,
        node_types=shape.node_types,
    )


def named(table):
    """The structure as users pass it: one that does not know its labels yet, or one with constraints."""
    structure = table.structure
    if isinstance(structure, Grammar):
        return structure
    if isinstance(structure, SemiMarkov):
        return SemiMarkov(max_length=structure.max_length)
    if isinstance(structure, Dependency):
        return Dependency(root=structure.root)
    if isinstance(structure, Spans):
        return Spans(root=structure.root)
    if getattr(structure, "order", 1) == 2 or getattr(structure, "allowed", None) is not None:
        return structure
    if isinstance(table, TypedGraphs):
        return Graph(n_types=structure.n_types, label_sets=structure.label_sets.by_type)
    return type(structure)(n_types=structure.n_types) if hasattr(structure, "n_types") else structure.name


def has_all_labels(table, codes):
    return {label for labels in codes for label in labels} == set(range(table.n_labels))


def drawn(name):
    return next(one for seed in range(100) if has_all_labels((one := batch(name, seed))[0], one[2]))


def stacked(model, X):
    return np.vstack([np.atleast_2d(rows) for rows in model.predict_proba(X) if len(rows)])


def check(model, best):
    assert model.objective_ >= best - 1e-6 * max(1.0, abs(best))
    assert model.objective_ - best <= model.dual_gap_ + 1e-6 * max(1.0, abs(best))


TABLES = enumerators(np.random.default_rng(0))
NAMES = list(TABLES)
WITH_EDGES = [name for name, table in TABLES.items() if table.structure.has_edges]


@pytest.mark.parametrize("solver", ["auto", "block_dual", "lbfgs"])
@pytest.mark.parametrize("name", NAMES)
def test_crf(name, solver):
    table, nodes, codes = drawn(name)
    X, y = users_input(table, nodes, codes)
    for with_ends in (False, True) if table.structure.n_ends else (False,):
        model = CRF(named(table), C, features="all", start_stop=with_ends, tol=1e-8, solver=solver).fit(X, y)
        best = optimum(table, nodes, codes, hinge=False, with_ends=with_ends)
        check(model, best)
        assert model.dual_gap_ <= 2e-8 * best
        predicted = model.predict(X)
        pairs = zip(itertools.chain(*table.listed(predicted)), itertools.chain(*table.listed(y)), strict=True)
        assert model.score(X, y) == pytest.approx(np.mean([a == b for a, b in pairs]))
        node = model.predict_proba(X)
        np.testing.assert_allclose(
            np.concatenate([np.atleast_2d(rows).sum(axis=-1).ravel() for rows in node if len(rows)]), 1.0
        )


@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize("name", NAMES)
def test_penalty_on_absolute_values(name, l1_ratio):
    table, nodes, codes = drawn(name)
    X, y = users_input(table, nodes, codes)
    best = optimum(table, nodes, codes, hinge=False, l1_ratio=l1_ratio)
    settings = {"C": C, "features": "all", "l1_ratio": l1_ratio, "tol": 1e-4, "random_state": 0}
    for solver in ("auto", "block_dual"):
        model = CRF(named(table), solver=solver, **settings).fit(X, y)
        assert model.status_.value == "converged"
        check(model, best)
    if "arcs" not in name:  # which have two weights, or four
        assert 0 < np.count_nonzero(model.parameters_) < model.n_features_


def has_swaps(name):
    others = ("arcs", "grammar", "graph node types", "hypergraph", "segments", "spans")
    return not any(other in name for other in others)


@pytest.mark.parametrize(
    "solver", ["auto", "cutting_plane", "flow_swap", "frank_wolfe", "labelling_set", "path_blocks", "simplicial"]
)
@pytest.mark.parametrize("name", NAMES)
def test_structured_svm(name, solver):
    if solver == "flow_swap" and (name == "chain order 2" or not has_swaps(name)):
        pytest.skip("swaps are for chains of order 1, trees and graphs")
    table, nodes, codes = drawn(name)
    X, y = users_input(table, nodes, codes)
    best = optimum(table, nodes, codes, hinge=True)
    tol = 5e-3 if solver == "frank_wolfe" else 1e-6  # its gap falls with the number of passes
    model = StructuredSVM(named(table), C, features="all", tol=tol, solver=solver, max_iter=2000).fit(X, y)
    check(model, best)
    assert model.dual_gap_ <= 2.0 * tol * best
    assert len(model.predict(X)) == len(y)


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if not table.structure.n_ends])
def test_start_stop_where_there_are_no_ends(name):
    table, nodes, codes = drawn(name)
    with pytest.raises(ValueError, match=r"'start_stop' parameter of CRF must be False: a \w+ has no first and last"):
        CRF(named(table), start_stop=True).fit(*users_input(table, nodes, codes))


@pytest.mark.parametrize("name", WITH_EDGES)
def test_pair_features(name):
    table, nodes, codes = drawn(name)
    X, y = users_input(table, nodes, codes)
    if not table.structure.has_edges:
        with pytest.raises(ValueError, match=r"'pair_features' parameter of CRF must be False: a .* has no edges"):
            CRF(named(table), pair_features=True).fit(X, y)
        return
    for solver in ("lbfgs", "block_dual"):
        model = CRF(named(table), C, features="all", pair_features=True, tol=1e-7, solver=solver).fit(X, y)
        check(model, optimum(table, nodes, codes, hinge=False, with_pairs=True))
    model = StructuredSVM(named(table), C, features="all", pair_features=True, tol=1e-6, solver="cutting_plane").fit(
        X, y
    )
    best = optimum(table, nodes, codes, hinge=True, with_pairs=True)
    check(model, best)
    if "chain" not in name and has_swaps(name):
        swapped = StructuredSVM(named(table), C, features="all", pair_features=True, tol=1e-6, solver="flow_swap")
        check(swapped.fit(X, y), best)
        assert swapped.dual_gap_ <= 1e-5 * best


@pytest.mark.parametrize("name", WITH_EDGES)
def test_known_labels(name):
    """Probabilities given label sets are those of the labellings that agree with them."""
    table, nodes, codes = drawn(name)
    X, y = users_input(table, nodes, codes)
    model = CRF(named(table), C, features="all", pair_features=True, start_stop=bool(table.structure.n_ends)).fit(X, y)
    rng, names, scores = np.random.default_rng(0), model.classes_.tolist(), model.decision_scores(X)
    known = [[{label, names[rng.integers(len(names))]} for label in labels] for labels in y]
    given, best, ranked = (ask(X, known=known) for ask in (model.predict_proba, model.predict, k_best(model)))
    for i, labels in enumerate(known):
        every = [one for one in table.labellings(i) if all(names[at] in labels[t] for t, at in enumerate(one))]
        flat = np.zeros(table.shape.n_nodes, dtype=np.int32)
        rest = np.concatenate([np.zeros(0, dtype=int), *codes]).astype(np.int32)
        values = []
        for one in every:
            flat[:] = rest
            flat[slice(*table.shape.offsets[i : i + 2])] = one
            values.append(model.structure_.score(scores, flat)[i])
        p = np.exp(values - np.logaddexp.reduce(values))
        for t in range(len(labels)):
            share = [sum(p[at] for at, one in enumerate(every) if one[t] == label) for label in range(len(names))]
            np.testing.assert_allclose(given[i][t], share, atol=1e-9)
        assert list(best[i]) == [names[at] for at in every[int(np.argmax(values))]]
        np.testing.assert_allclose([share for _, share in ranked[i]], np.sort(p)[::-1][:3], atol=1e-9)


def k_best(model):
    return lambda X, known: model.k_best(X, 3, known=known)


@pytest.mark.parametrize("name", NAMES)
def test_stochastic_gradients_and_perceptron_lower_the_loss(name):
    table, nodes, codes = drawn(name)
    X, y = users_input(table, nodes, codes)
    at_zero = C * sum(np.log(len(list(table.labellings(i)))) for i in range(table.shape.n_examples))
    model = CRF(named(table), C, features="all", solver="sgd", random_state=0).fit(X, y)
    assert model.objective_ < at_zero
    check(model, optimum(table, nodes, codes, hinge=False))
    for solver in ("perceptron", "passive_aggressive", "arow"):
        assert np.isfinite(CRF(named(table), C, features="all", solver=solver).fit(X, y).parameters_).all()


def refuses_kernels(table, X, y):
    """Candidates have linear scores."""
    if table.structure.empty_label is None:
        return False
    for model in (CRF, StructuredSVM):
        with pytest.raises(ValueError, match=r"'kernel' parameter of .* must be None"):
            model(named(table), kernel="linear", features="all").fit(X, y)
    return True


@pytest.mark.parametrize("name", NAMES)
def test_linear_kernels_are_linear_models(name):
    table, nodes, codes = drawn(name)
    X, y = users_input(table, nodes, codes)
    if refuses_kernels(table, X, y):
        return
    plain = CRF(named(table), C, features="all", tol=1e-8).fit(X, y)
    kernel = CRF(named(table), C, kernel="linear", features="all", tol=1e-8).fit(X, y)
    assert kernel.objective_ == pytest.approx(plain.objective_, rel=1e-6)
    one, two = (
        np.vstack([np.atleast_2d(rows) for rows in model.predict_proba(X) if len(rows)]) for model in (plain, kernel)
    )
    np.testing.assert_allclose(one, two, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_linear_kernels_are_linear_margins(name):
    table, nodes, codes = drawn(name)
    X, y = users_input(table, nodes, codes)
    if refuses_kernels(table, X, y):
        return
    best = optimum(table, nodes, codes, hinge=True)
    model = StructuredSVM(named(table), C, kernel="linear", features="all", tol=1e-5).fit(X, y)
    check(model, best)
    assert model.dual_gap_ <= 1e-4 * best


@pytest.mark.parametrize("on", ["pairs", "both"])
@pytest.mark.parametrize("name", NAMES)
def test_linear_kernels_on_pairs_are_features_of_pairs(name, on):
    table, nodes, codes = drawn(name)
    X, y = users_input(table, nodes, codes)
    settings = {"C": C, "kernel": "linear", "kernel_on": on, "features": "all"}
    if refuses_kernels(table, X, y):
        return
    if table.structure.no_pairs is not None:
        with pytest.raises(ValueError, match=f"kernel_on='{on}' needs"):
            CRF(named(table), **settings).fit(X, y)
        return
    model = CRF(named(table), tol=1e-8, **settings).fit(X, y)
    assert model.objective_ == pytest.approx(optimum(table, nodes, codes, hinge=False, with_pairs=on), rel=1e-6)
    margin = StructuredSVM(named(table), tol=1e-5, **settings).fit(X, y)
    best = optimum(table, nodes, codes, hinge=True, with_pairs=on)
    check(margin, best)
    assert margin.dual_gap_ <= 1e-4 * best


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("kernel", [None, "rbf", "rbf on pairs"])
@pytest.mark.parametrize("name", NAMES)
def test_files(name, kernel, mmap, tmp_path):
    table, nodes, codes = drawn(name)
    X, y = users_input(table, nodes, codes)
    if kernel is not None and refuses_kernels(table, X, y):
        return
    ends, has_pairs = bool(table.structure.n_ends), table.structure.no_pairs is None
    settings = {"kernel": kernel and "rbf", "pair_features": kernel is None and ends and table.structure.has_edges}
    if kernel == "rbf on pairs" and has_pairs:
        settings["kernel_on"] = "pairs"
    model = CRF(named(table), C, start_stop=ends, **settings).fit(X, y)
    model.save(tmp_path / "model")
    again = dualfield.load(tmp_path / "model", mmap=mmap)
    np.testing.assert_array_equal(stacked(model, X), stacked(again, X))
    assert again.structure_ == model.structure_
    assert again.get_params()["structure"] == model.structure
    margin = StructuredSVM(named(table), C).fit(X, y)
    margin.save(tmp_path / "margin")
    found = dualfield.load(tmp_path / "margin", mmap=mmap).predict(X)
    assert table.listed(found) == table.listed(margin.predict(X))


class Exactly(UserStructure):
    """Exactly so many nodes have the second of two labels, and pairs of equal neighbours have a score: no tree."""

    def __init__(self, count=1, n_labels=0):
        self.count, self.n_labels = count, n_labels

    @property
    def n_cliques(self):
        return 1

    def with_labels(self, n_labels):
        return type(self)(self.count, n_labels)

    def _every(self, node, shared):
        every = [y for y in product(range(2), repeat=len(node)) if sum(y) == self.count]
        score = [sum(node[t, k] for t, k in enumerate(y)) + shared[0] * len(self.parts(y, None)) for y in every]
        return every, np.array(score)

    def best(self, node, shared, shape):
        assert shape.n_nodes == len(node)
        every, scores = self._every(node, shared)
        return every[int(scores.argmax())]

    def soft(self, node, shared, shape):
        every, scores = self._every(node, shared)
        p = np.exp(scores - scores.max())
        total, p = scores.max() + np.log(p.sum()), p / p.sum()
        nodes = sum(share * np.eye(2)[list(y)] for share, y in zip(p, every, strict=True))
        return total, nodes, [sum(share * len(self.parts(y, None)) for share, y in zip(p, every, strict=True))]

    def parts(self, labels, shape):
        return [0] * sum(a == b for a, b in pairwise(labels))

    def refusal(self, labels, shape):
        return "" if sum(labels) == self.count else f"{self.count} must be 1."


class Counted(Enumerator):
    def labellings(self, i):
        return [y for y in product(range(2), repeat=self.length(i)) if sum(y) == self.structure.count]

    def shared(self, i, labels):
        return list(self.structure.parts(labels, None))


def test_a_structure_of_ones_own():
    rng = np.random.default_rng(0)
    table = Counted(Exactly(2, 2), Shape.of([0, 3, 7, 9, 13]), 2)
    nodes = rng.normal(size=(13, N_COLUMNS))
    codes = [rng.permutation([1, 1] + [0] * (n - 2)).tolist() for n in (3, 4, 2, 4)]
    X = np.split(nodes, [3, 7, 9])
    for solver in ("auto", "block_dual", "lbfgs"):
        model = CRF(Exactly(2), C, features="all", tol=1e-7, solver=solver, n_jobs=2).fit(X, codes)
        check(model, optimum(table, nodes, codes, hinge=False))
        assert all(sum(labels) == 2 for labels in model.predict(X))
    np.testing.assert_allclose([rows[:, 1].sum() for rows in model.predict_proba(X)], 2.0)
    for solver in ("auto", "path_blocks", "simplicial"):
        margin = StructuredSVM(Exactly(2), C, features="all", tol=1e-6, solver=solver).fit(X, codes)
        check(margin, optimum(table, nodes, codes, hinge=True))
    kernel = CRF(Exactly(2), C, kernel="linear", tol=1e-7).fit(X, codes)
    assert kernel.objective_ == pytest.approx(model.objective_, rel=1e-5)
    with pytest.raises(ValueError, match="The labels of example 0 are not allowed: 2 must be 1"):
        CRF(Exactly(2)).fit(X[:1], [[0, 0, 1]])
    with pytest.raises(ValueError, match=r"CRF cannot be saved: a model file holds .* no code"):
        model.save("nowhere")


def test_faults_of_a_structure_of_ones_own_reach_the_caller():
    class Broken(Exactly):
        def best(self, node, shared, shape):
            raise ZeroDivisionError("in best")

    with pytest.raises(ZeroDivisionError, match="in best"):
        StructuredSVM(Broken(1), C, n_jobs=2, solver="path_blocks").fit([np.eye(2)], [[0, 1]])

    class OneSided(Exactly):
        soft = UserStructure.soft

    with pytest.raises(NotImplementedError, match="OneSided has no method 'soft', which log-losses need"):
        CRF(OneSided(1), C).fit([np.eye(2)], [[0, 1]])


def test_questions_of_a_fitted_tree():
    rng = np.random.default_rng(5)
    shape = draw_tree(rng, [4, 3, 5])
    table = Trees(Tree(2), shape, 2)
    nodes = rng.normal(size=(shape.n_nodes, N_COLUMNS))
    X, y = users_input(table, nodes, [tuple(rng.integers(2, size=n)) for n in (4, 3, 5)])
    y = [["ab"[int(label)] for label in labels] for labels in y]
    model = CRF("tree", start_stop=True).fit(X, y)
    assert model.transitions_.shape == (2, 2)
    assert model.start_.shape == (2,)
    every, total = list(table.labellings(0)), 0.0
    for labels in every:
        total += np.exp(model.score_sequences(X[:1], [["ab"[k] for k in labels]])[0])
    assert total == pytest.approx(1.0)
    best = model.k_best(X[:1], 3)[0]
    assert best[0][0] == model.predict(X[:1])[0]
    assert [p for _, p in best] == sorted((p for _, p in best), reverse=True)
    _, edges = model.predict_proba(X, pairwise=True)
    for one, (_, parents) in zip(edges, X, strict=True):
        np.testing.assert_allclose(one.sum(axis=(1, 2)), np.array(parents) >= 0)
    assert len(model.sample(X, 3, random_state=0)[0]) == 3
    explained = model.explain(X[0])
    assert [token.label for token in explained.tokens] == model.predict(X[:1])[0]
    for token in explained.tokens:
        assert sum(value for _, value in token.contributions) == pytest.approx(token.difference)


def test_words_below_each_other():
    X = [([["root"], ["dog"], ["the"]], [-1, 0, 1]), ([["root"], ["cat"]], [-1, 0])]
    y = [["S", "N", "D"], ["S", "N"]]
    model = CRF("tree", C=10.0).fit(X, y)
    assert model.predict([([["root"], ["cat"], ["the"]], [-1, 0, 1])]) == [["S", "N", "D"]]
    again = model.set_params(warm_start=True).fit(X, y)
    assert again.predict(X) == y


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[["a"], ["b"]]], r"X\[0\] must be a tree, a tuple \(nodes, parents\)"),
        ([([["a"], ["b"]], [-1])], r"X\[0\]\[1\] has 1 entries; its tree has 2 nodes"),
        ([([["a"], ["b"]], [1, 0])], "The parents of example 0 are no tree: node 0 is below itself"),
        ([([["a"], ["b"]], [-1, 5])], r"The parents of example 0 must be in \[-1, 2\). Got 5"),
        ([([["a"], ["b"]], [-1, 0.5])], r"X\[0\]\[1\] must be integers, one for each node"),
    ],
)
def test_what_is_no_tree(X, message):
    with pytest.raises(ValueError, match=message):
        CRF("tree").fit(X, [["x", "y"]])


def test_chains_are_trees():
    rng = np.random.default_rng(1)
    lengths = [3, 5, 1, 4]
    X = [rng.normal(size=(n, 3)) for n in lengths]
    y = [list(rng.integers(3, size=n)) for n in lengths]
    below = [(rows, [t - 1 for t in range(len(rows))]) for rows in X]
    chain = CRF(Chain(), features="all", tol=1e-9).fit(X, y)
    tree = CRF("tree", features="all", tol=1e-9).fit(below, y)
    assert tree.objective_ == pytest.approx(chain.objective_, rel=1e-8)
    np.testing.assert_allclose(tree.transitions_, chain.transitions_, atol=1e-3)


def test_single_is_multinomial_logistic_regression():
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    X, y = load_iris(return_X_y=True)
    peer = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y)
    for solver in ("auto", "lbfgs"):
        model = CRF("single", features="all", tol=1e-13, solver=solver).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-6)
        np.testing.assert_array_equal(model.predict(X), peer.predict(X))
        np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-5)
        assert model.score(X, y) == peer.score(X, y)
