"""Kernels on pairs of nodes: the optimum by enumeration with an explicit Gram matrix, gaps that hold, and files."""

import itertools

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

import dualfield
from dualfield import CRF, StructuredSVM
from dualfield.structures import Chain, Graph

N_LABELS, N_COLUMNS, GAMMA, PAIR_GAMMA = 3, 2, 0.4, 0.3
KINDS = ["chain", "tree", "graph", "edge features"]


class Drawn:
    """A few small examples: as users pass them, and as lists of nodes, edges (from, to) and inputs of edges."""

    def __init__(self, kind, seed, n=6):
        rng = np.random.default_rng(seed)
        self.kind, self.structure = kind, "graph" if kind == "edge features" else kind
        self.X, self.y, self.nodes, self.edges, self.inputs = [], [], [], [], []
        for i in range(n):
            length = 3 if i == 0 else int(rng.integers(1, 5))  # the first graph is a circle
            x = rng.normal(size=(length, N_COLUMNS))
            self.nodes.append(x)
            self.y.append([0, 1, 2] if i == 0 else rng.integers(N_LABELS, size=length).tolist())
            own = self.connect(rng, x)
            ends = np.array(self.edges[-1], dtype=int).reshape(-1, 2)
            self.inputs.append(np.hstack([x[ends[:, 0]], x[ends[:, 1]]]) if own is None else own)

    def connect(self, rng, x):
        """Draw edges; return their features if they have some."""
        n, features = len(x), None
        if self.kind == "chain":
            edges = [(t - 1, t) for t in range(1, n)]
            self.X.append(x)
        elif self.kind == "tree":
            parents = [int(rng.integers(-1, t)) if t else -1 for t in range(n)]
            edges = [(parent, t) for t, parent in enumerate(parents) if parent >= 0]
            self.X.append((x, parents))
        else:
            edges = [pair[:: 1 if rng.random() < 0.5 else -1] for pair in itertools.combinations(range(n), 2)]
            features = rng.normal(size=(len(edges), 3)) if self.kind == "edge features" else None
            rest = () if features is None else (features,)
            self.X.append((x, np.array(edges, dtype=int).reshape(-1, 2), *rest))
        self.edges.append(edges)
        return features

    def labellings(self, i):
        return list(itertools.product(range(N_LABELS), repeat=len(self.nodes[i])))

    def differences(self, on, scale):
        """For each example, the features of all labellings minus those of the truth, and their costs.

        Features of nodes and edges are rows of roots of their Gram matrices; transitions that occur have weights.
        """
        roots = [root(np.vstack(self.nodes), GAMMA), scale * root(np.vstack(self.inputs), PAIR_GAMMA)]
        seen = np.zeros((N_LABELS, N_LABELS))
        for labels, edges in zip(self.y, self.edges, strict=True):
            for a, b in edges:
                seen[labels[a], labels[b]] = 1.0
        found, node, edge = [], 0, 0
        for i, truth in enumerate(self.y):
            every = self.labellings(i)
            rows = []
            for labels in every:
                own = np.zeros((len(roots[0]), N_LABELS))
                pairs = np.zeros((len(roots[1]), N_LABELS, N_LABELS))
                shared = np.zeros((N_LABELS, N_LABELS))
                for t, label in enumerate(labels):
                    own[:, label] += roots[0][node + t]
                for e, (a, b) in enumerate(self.edges[i]):
                    pairs[:, labels[a], labels[b]] += roots[1][edge + e]
                    shared[labels[a], labels[b]] += scale * seen[labels[a], labels[b]]
                rows.append(
                    np.concatenate([own.ravel() * (on != "pairs"), pairs.ravel() * (on != "nodes"), shared.ravel()])
                )
            cost = np.array([sum(a != b for a, b in zip(labels, truth, strict=True)) for labels in every], float)
            found.append((np.array(rows) - rows[every.index(tuple(truth))], cost))
            node, edge = node + len(truth), edge + len(self.edges[i])
        return found

    def optimum(self, on, C, *, hinge, scale=1.0):
        terms = self.differences(on, scale)
        size = terms[0][0].shape[1]
        if hinge:
            w = cp.Variable(size)
            problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + C * sum(cp.max(A @ w + d) for A, d in terms)))
            return float(problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10))

        def value(w):
            total, slope = 0.5 * w @ w, w.copy()
            for rows, _ in terms:
                scores = rows @ w
                log_sum = logsumexp(scores)
                total, slope = total + C * log_sum, slope + C * (np.exp(scores - log_sum) @ rows)
            return total, slope

        settings = {"maxiter": 10_000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-9}
        return float(minimize(value, np.zeros(size), jac=True, method="L-BFGS-B", options=settings).fun)


def root(points, gamma):
    values, vectors = np.linalg.eigh(rbf_kernel(points, points, gamma))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def fitted(drawn, estimator=CRF, **settings):
    given = {"kernel": "rbf", "kernel_on": "both", "gamma": GAMMA, "pair_gamma": PAIR_GAMMA, "tol": 1e-7}
    given.update(settings)
    return estimator(drawn.structure, **given).fit(drawn.X, drawn.y)


@pytest.mark.parametrize("hinge", [False, True])
@pytest.mark.parametrize(("on", "scale"), [("pairs", 1.0), ("both", 1.0), ("both", 0.3)])
@pytest.mark.parametrize("kind", KINDS)
def test_optimum(kind, on, scale, hinge):
    drawn = Drawn(kind, seed=1)
    tol = 1e-5 if hinge else 1e-7
    model = fitted(drawn, StructuredSVM if hinge else CRF, kernel_on=on, C=1.5, tol=tol, transition_scale=scale)
    best = drawn.optimum(on, 1.5, hinge=hinge, scale=scale)
    assert model.status_.value == "converged"
    assert -1e-8 * best <= model.objective_ - best <= model.dual_gap_ + 1e-8 * best
    assert model.dual_gap_ <= tol * best
    assert (model.expansion_ is None) == (on == "pairs")
    assert model.pair_expansion_.coefficients.shape[1] == N_LABELS**2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(12))
def test_the_gap_bounds_the_distance_wherever_the_fit_ends(seed):
    rng = np.random.default_rng(seed)
    drawn = Drawn(KINDS[seed % 4], seed=seed + 10)
    hinge, on, C = bool(seed // 4 % 2), ["pairs", "both"][seed % 2], float(10.0 ** rng.uniform(-2, 2))
    best = drawn.optimum(on, C, hinge=hinge)
    for most in (1, 3, 1000):
        model = fitted(drawn, StructuredSVM if hinge else CRF, kernel_on=on, C=C, max_iter=most, tol=1e-4)
        assert -1e-7 * best <= model.objective_ - best <= model.dual_gap_ + 1e-7 * best


def scores_of(model, drawn, i):
    """What all labellings score, by hand."""
    nodes, edges = np.zeros((len(drawn.nodes[i]), N_LABELS)), np.zeros((len(drawn.edges[i]), N_LABELS, N_LABELS))
    if model.expansion_ is not None:
        found = model.expansion_
        nodes = rbf_kernel(drawn.nodes[i], found.points, found.kernel.gamma) @ found.coefficients
    if len(edges):
        found = model.pair_expansion_
        edges = rbf_kernel(drawn.inputs[i], found.points, found.kernel.gamma) @ found.coefficients
        edges = edges.reshape(-1, N_LABELS, N_LABELS) + model.transitions_
    return [
        sum(nodes[t, k] for t, k in enumerate(y)) + sum(edges[e, y[a], y[b]] for e, (a, b) in enumerate(drawn.edges[i]))
        for y in drawn.labellings(i)
    ]


@pytest.mark.parametrize("on", ["pairs", "both"])
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_those_of_the_expansions(kind, on):
    train, test = Drawn(kind, seed=2), Drawn(kind, seed=3)
    model = fitted(train, kernel_on=on, gamma="scale", pair_gamma=None, C=5.0, transition_scale=0.5)
    predicted, nodes = model.predict(test.X), model.predict_proba(test.X)
    for i in range(len(test.X)):
        every, scores = test.labellings(i), np.array(scores_of(model, test, i))
        p = np.exp(scores - logsumexp(scores))
        mean = sum(share * np.eye(N_LABELS)[list(labels)] for share, labels in zip(p, every, strict=True))
        np.testing.assert_allclose(nodes[i], mean, atol=1e-9)
        assert scores[every.index(tuple(predicted[i]))] == pytest.approx(scores.max())


@pytest.mark.parametrize("estimator", [CRF, StructuredSVM])
@pytest.mark.parametrize("kind", KINDS)
def test_files_keep_the_pairs_that_count(kind, estimator, tmp_path):
    drawn = Drawn(kind, seed=4)
    model = fitted(drawn, estimator, kernel_on="both" if kind == "chain" else "pairs", tol=1e-4)
    assert (model.pair_expansion_.coefficients != 0.0).any(axis=1).all()
    model.save(tmp_path / "model")
    for mmap in (False, True):
        again = dualfield.load(tmp_path / "model", mmap=mmap)
        assert again.predict(drawn.X) == model.predict(drawn.X)
        assert again.get_params()["kernel_on"] == model.kernel_on
        np.testing.assert_array_equal(again.pair_expansion_.coefficients, model.pair_expansion_.coefficients)
    assert again.n_features_ == model.n_features_
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize("kind", ["chain", "tree", "graph"])
def test_warm_start_and_clone(kind):
    drawn = Drawn(kind, seed=5)
    cold = fitted(drawn, C=2.0, transition_scale=0.7)
    warm = clone(cold).set_params(warm_start=True, C=1.9).fit(drawn.X, drawn.y)
    assert warm.set_params(C=2.0).fit(drawn.X, drawn.y).n_iter_ < cold.n_iter_
    assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-6)


def large(estimator, n_jobs=1, **settings):
    """Words of bits, more than what is solved in double precision at once."""
    rng = np.random.default_rng(6)
    X = [(rng.random(size=(rng.integers(1, 8), 12)) < 0.5).astype(float) for _ in range(300)]
    y = [(x[:, 0] + (x[:, 1] * np.roll(x[:, 2], 1))).astype(int).tolist() for x in X]
    given = {"kernel": "rbf", "kernel_on": "both", "gamma": 0.1, "tol": 0.02, "C": 0.3}
    return estimator(**given, n_jobs=n_jobs, **settings).fit(X, y)


@pytest.mark.parametrize("estimator", [CRF, StructuredSVM])
def test_threads_give_the_same_bits_and_small_caches_the_same_model(estimator):
    one, two = large(estimator), large(estimator, n_jobs=2)
    np.testing.assert_array_equal(one.pair_expansion_.coefficients, two.pair_expansion_.coefficients)
    np.testing.assert_array_equal(one.expansion_.coefficients, two.expansion_.coefficients)
    assert (one.objective_, one.dual_gap_) == (two.objective_, two.dual_gap_)
    assert one.dual_gap_ <= 0.02 * one.objective_
    small = large(estimator, cache_size=2e6)  # of 10 MB
    assert abs(small.objective_ - one.objective_) <= small.dual_gap_ + one.dual_gap_


@pytest.mark.parametrize("on", ["pairs", "both"])
def test_tree_reweighted_bounds(on):
    drawn = Drawn("graph", seed=7, n=3)
    model = fitted(drawn, kernel_on=on, tol=1e-5).set_params(structure=Graph(inference="trw")).fit(drawn.X, drawn.y)
    assert model.relaxation_ == "trw"
    best = drawn.optimum(on, 1.0, hinge=False)
    assert best - 1e-6 * best <= model.objective_  # an upper bound of the exact problem
    assert model.dual_gap_ <= 1e-4 * model.objective_


def test_sparse_rows_attributes_and_functions():
    drawn = Drawn("chain", seed=8)
    dense = fitted(drawn, C=3.0)
    compressed = dense.set_params(tol=1e-7).fit([sparse.csr_array(x) for x in drawn.X], drawn.y)
    assert compressed.objective_ == pytest.approx(dense.objective_, rel=1e-6)
    function = fitted(drawn, C=3.0, kernel=lambda a, b: rbf_kernel(a, b, GAMMA if a.shape[1] == 2 else PAIR_GAMMA))
    assert function.objective_ == pytest.approx(dense.objective_, rel=1e-6)
    words = [[{"a": 1.0}, {"b": 1.0}], [{"b": 1.0}, {"a": 1.0, "c": 1.0}, {"c": 1.0}]]
    model = CRF(kernel="linear", kernel_on="pairs", C=10.0).fit(words, [["x", "y"], ["y", "x", "x"]])
    assert model.pair_expansion_.points.shape == (3, 6)
    assert model.predict(words) == [["x", "y"], ["y", "x", "x"]]


def test_attributes_of_pairs_that_a_template_makes():
    template = "U00:%x[0,0]\nB00:%x[-1,0]/%x[0,0]"
    X, y = [[["a"], ["b"], ["a"]], [["b"], ["a"]]], [["x", "y", "x"], ["y", "x"]]
    model = CRF(kernel="rbf", kernel_on="pairs", template=template, C=10.0).fit(X, y)
    assert model.pair_expansion_.points.shape[1] == len(model.pair_vocabulary_)
    assert model.predict(X) == y
    with pytest.raises(ValueError, match="must be 'pairs' or 'both' where edges have features, or a template makes"):
        model.set_params(kernel_on="nodes").fit(X, y)


def test_what_columns_cannot_tell():
    drawn = Drawn("chain", seed=9)
    model = fitted(drawn, kernel_on="pairs")
    with pytest.raises(AttributeError, match="coef_ needs weights of columns"):
        _ = model.coef_
    with pytest.raises(AttributeError, match="explain needs weights of columns"):
        model.explain(drawn.X[0])
    assert model.top_features(3).positive == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": None, "kernel_on": "pairs"}, "'kernel_on' parameter of CRF needs a kernel"),
        ({"pair_gamma": 1.0}, "'pair_gamma' parameter of CRF needs kernel_on='pairs' or 'both'"),
        ({"kernel_on": "both", "pair_gamma": -1.0}, "'pair_gamma' parameter of CRF must be a float in"),
        ({"kernel_on": "edges"}, "'kernel_on' parameter of CRF must be one of"),
        ({"kernel_on": "both", "kernel_approx": 2}, "'kernel_approx' parameter of CRF must be None with kernel_on='bo"),
        ({"kernel_on": "both", "structure": Chain(order=2)}, "kernel_on='both' needs a chain of order 1. This one has"),
        ({"kernel_on": "pairs", "solver": "labelling_smo"}, r"scores pairs of nodes \(kernel_on\)"),
    ],
)
def test_refused(settings, message):
    drawn = Drawn("chain", seed=1)
    with pytest.raises(ValueError, match=message):
        CRF(**{"kernel": "rbf", **settings}).fit(drawn.X, drawn.y)


def test_refused_without_pairs():
    with pytest.raises(ValueError, match="kernel_on='pairs' needs edges; a Single has none"):
        CRF("single", kernel="rbf", kernel_on="pairs").fit(np.eye(3), [0, 1, 0])
    with pytest.raises(ValueError, match="kernel_on='both' needs edges between nodes"):
        CRF("tree", kernel="rbf", kernel_on="both").fit([(np.eye(2), [-1, -1])], [[0, 1]])
