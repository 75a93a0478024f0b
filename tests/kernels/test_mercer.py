"""Kernels that are none are refused by every estimator, in the same words; Gram matrices of any kind never are."""

import numpy as np
import pytest
import scipy.sparse

from dualfield import CRF, ConditionalGraphicalModel, KernelLogisticRegression, StructuredSVM
from dualfield.kernels import Kernel
from dualfield.kernels.mercer import NotPositiveError, check_mercer
from dualfield.objectives import KernelMargin, KernelObjective
from dualfield.solvers import KernelAscent, LabellingSMO, StopRule
from dualfield.structures import Chain

RANDOM = np.random.default_rng(1)
X = [RANDOM.normal(size=(4, 3)) for _ in range(10)]
Y = [(x[:, 0] > 0).astype(int).tolist() for x in X]
ROWS, LABELS = np.concatenate(X), np.concatenate(Y)


def not_a_number(a, b):
    return np.full((a.shape[0], b.shape[0]), np.nan)


def negative(a, b):
    return -(a @ b.T)


def lopsided(a, b):
    return np.exp(a[:, :1] - b[:, :1].T)


KERNELS = {
    "sigmoid": {"kernel": "sigmoid", "gamma": 1 / 3},
    "sigmoid below zero": {"kernel": "sigmoid", "gamma": 1.0, "coef0": -0.5},
    "poly": {"kernel": "poly", "gamma": 1.0, "coef0": -5.0},
    "poly of a broken degree": {"kernel": "poly", "gamma": 1.0, "degree": 2.5},
    "NaN": {"kernel": not_a_number},
    "-K": {"kernel": negative},
    "not symmetric": {"kernel": lopsided},
}
MODELS = {
    "KernelLogisticRegression": lambda kernel: KernelLogisticRegression(**kernel).fit(ROWS, LABELS),
    "KernelLogisticRegression of landmarks": lambda kernel: KernelLogisticRegression(kernel_approx=9, **kernel).fit(
        ROWS, LABELS
    ),
    "CRF": lambda kernel: CRF(**kernel).fit(X, Y),
    "CRF by SMO": lambda kernel: CRF(solver="labelling_smo", **kernel).fit(X, Y),
    "CRF of landmarks": lambda kernel: CRF(kernel_approx=9, **kernel).fit(X, Y),
    "StructuredSVM": lambda kernel: StructuredSVM(**kernel).fit(X, Y),
    "StructuredSVM of nodes": lambda kernel: StructuredSVM("single", **kernel).fit(ROWS, LABELS),
    "StructuredSVM of landmarks": lambda kernel: StructuredSVM(kernel_approx=9, **kernel).fit(X, Y),
    "hinge": lambda kernel: ConditionalGraphicalModel(0, **kernel).fit(X, Y),
    "tied": lambda kernel: ConditionalGraphicalModel(1, features="tied", unseen=-1.0, **kernel).fit(X, Y),
    "log": lambda kernel: ConditionalGraphicalModel(0, loss="log", **kernel).fit(X, Y),
    "squared": lambda kernel: ConditionalGraphicalModel(0, loss="squared", **kernel).fit(X, Y),
    "sums": lambda kernel: ConditionalGraphicalModel(1, features="tied_printed", unseen=-1.0, **kernel).fit(X, Y),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("fit", MODELS.values(), ids=MODELS)
def test_every_estimator_refuses_what_is_no_kernel(fit, kernel):
    name = kernel["kernel"]
    words = f"kernel={name!r} \\(gamma=" if isinstance(name, str) else f"'kernel' function {name.__name__}"
    expected = rf"(?s){words}.*(Use |use |another kernel)"
    if name is not_a_number:
        expected += "|'kernel' function must return a dense array of finite numbers of shape .* Got nan at"
    with pytest.raises(ValueError, match=expected):
        fit(kernel)


def test_no_sigmoid_with_a_negative_eigenvalue_is_accepted():
    refused = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        points = random.normal(size=(30, 3))
        gamma, coef0 = 10.0 ** random.uniform(-2, 0.5), random.uniform(-0.5, 1.0)
        low, high = np.linalg.eigvalsh(np.tanh(gamma * points @ points.T + coef0))[[0, -1]]
        if low > -1e-6 * high:
            continue
        refused += 1
        with pytest.raises(NotPositiveError, match=r"eigenvalue|with itself"):
            check_mercer(Kernel("sigmoid", gamma, coef0), points)
    assert refused > 40


def gram_matrices():
    random = np.random.default_rng(3)
    for n, width in ((5, 2), (60, 3), (320, 400)):
        for offset in (0.0, 1e3, 1e6):
            points = random.normal(size=(n, width)) + offset
            points[n // 2 :: 3] = points[: len(points[n // 2 :: 3])]  # some twice
            points *= np.where(np.arange(n) % 7 == 0, 100.0, 1.0)[:, None]
            yield points @ points.T
            single = points.astype(np.float32)
            yield single @ single.T
            yield (single @ single.T).astype(np.float64)
            yield ((points @ points.T) / points.shape[1] + 1.0) ** 3
        distance = np.square(points[:, None] - points[None]).sum(axis=-1) if n < 100 else np.zeros((n, n))
        yield np.exp(-0.1 * distance)
        yield np.exp(-0.1 * distance).astype(np.float32)
    yield np.zeros((4, 4))
    yield np.array([[2.0]])
    yield 1e-200 * np.eye(3)
    yield 1e200 * np.ones((3, 3))


def test_gram_matrices_are_never_refused():
    for gram in gram_matrices():
        check_mercer(Kernel("precomputed"), gram)
        given = np.asarray(gram, dtype=np.float64)
        check_mercer(Kernel(lambda a, b, given=given: given[np.ix_(a[:, 0], b[:, 0])]), np.arange(len(gram))[:, None])


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_named_kernels_that_are_kernels_pass(offset):
    points = np.random.default_rng(0).normal(size=(500, 3)) + offset
    for kernel in (Kernel("linear"), Kernel("rbf"), Kernel("laplacian"), Kernel("poly", coef0=1.0, degree=2.0)):
        assert kernel.is_mercer
        check_mercer(kernel, points)
    assert not Kernel("sigmoid").is_mercer
    check_mercer(Kernel("sigmoid", gamma=0.2), scipy.sparse.csr_array(2.0 * np.eye(8)))


def test_of_many_points_a_sample_is_enough_for_what_is_common():
    points = np.random.default_rng(0).normal(size=(2000, 3))
    asked = []

    def sigmoid(a, b):
        asked.append(len(a) * len(b))
        return np.tanh(a @ b.T - 0.2)

    with pytest.raises(NotPositiveError, match="'kernel' function sigmoid is not positive semidefinite"):
        check_mercer(Kernel(sigmoid), points)
    assert asked == [300 * 300]


def rare(spoil, n=2):
    """Return 400 points whose kernel is one but for a few of them, which the sample does not have."""
    sample = np.random.default_rng(0).permutation(400)[:300]
    few = np.setdiff1d(np.arange(400), sample)[:n]
    gram = 2.0 * np.eye(400)
    gram[np.ix_(few, few)] += spoil * (1.0 - np.eye(n))
    return few, gram


# Of three points with -1.8 between them and 2 with themselves every pair is in order.
RARE = [(np.nan, 2, "not numbers"), (1e3, 2, "determinant"), (-3.0, 2, "determinant"), (-1.8, 3, "negative curvature")]


@pytest.mark.parametrize(("spoil", "n", "words"), RARE)
@pytest.mark.parametrize("form", ["hinge chains", "soft chains", "table"])
def test_what_the_sample_misses_the_ascent_meets(form, spoil, n, words):
    few, gram = rare(spoil, n)
    labels = np.zeros(400, dtype=np.int32)
    labels[few[1:] if n == 2 else few] = 1
    kernel, weights = Kernel("precomputed"), np.full(400, 0.01)
    weights[few] = 5.0
    check_mercer(kernel, gram)
    if form == "table":
        one, outputs = np.arange(400, dtype=np.int32)[:, None], np.arange(2, dtype=np.int32)[:, None]
        problem = KernelMargin(kernel, gram, one, outputs=outputs, truth=labels, weights=weights, n_labels=2)
    else:
        cost, heat = (None, 1.0) if form == "soft chains" else (1.0 - np.eye(2), 0.0)
        problem = KernelObjective(
            Chain(2), kernel, gram, offsets=np.arange(401), labels=labels, weights=weights, cost=cost, temperature=heat
        )
    with pytest.raises(NotPositiveError, match=words):
        KernelAscent().solve(problem, StopRule(1e-6, 200))


def test_smo_over_labellings_looks_at_all_values():
    _, gram = rare(1e3)
    problem = KernelObjective(
        Chain(2),
        Kernel("precomputed"),
        gram,
        offsets=np.arange(401),
        labels=np.zeros(400, np.int32),
        weights=np.ones(400),
    )
    with pytest.raises(NotPositiveError, match="eigenvalue"):
        LabellingSMO().solve(problem, StopRule(1e-3, 10))


def test_an_empty_model_of_an_honest_kernel_is_fine():
    """Zeros are a Gram matrix: nothing can be learned, and that is proven."""
    model = StructuredSVM("single", kernel=lambda a, b: np.zeros((len(a), len(b)))).fit(ROWS, LABELS)
    assert model.objective_ == pytest.approx(40.0)
    assert model.dual_gap_ < 1e-12
