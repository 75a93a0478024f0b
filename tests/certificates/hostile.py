"""Hostile problems, drawn by a seed: scales, offsets, weights and starts that people have and solvers dislike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from dualfield import CRF, ConditionalGraphicalModel, DiscriminativeHMM, KernelLogisticRegression, StructuredSVM
from tests.certificates.exact import Exact, Kernel, Point
from tests.certificates.exact_tables import ExactTables
from tests.estimators.hmm_reference import reference, theta_of

Data = tuple[Any, Any]
_FEW = {"labelling_set": 2, "frank_wolfe": 12}  # passes of solvers in Python, whose claims must hold wherever they stop
MISTAKES = ("perceptron", "passive_aggressive", "arow")  # learn from mistakes, and minimise nothing in particular


@dataclass
class Case:
    """An estimator with its data, and the same problem for exact arithmetic. ``path``: settings of warm fits before."""

    model: Any
    data: Data
    exact: Exact | ExactTables
    tol: float
    path: list[dict[str, Any]] = field(default_factory=list)
    indefinite: bool = False
    falls_back: bool = True  # whether a fit that ends early promises to be no worse than zero weights
    reduced: bool = False  # solved on landmarks: "converged" is said of that problem, the gap of the full one

    def point(self) -> Any:
        """The fitted model as predictions use it."""
        point = _POINTS[type(self.model)](self.model)
        if self.exact.kernel is not None and self.exact.kernel.name == "linear" and self.exact.bias:
            # A number that all scores share is what predictions make of it: terms of 1e14 cancel there.
            asked = self.model.decision_function(self.data[0]).reshape(len(self.exact.X), -1)
            found = self.exact.scores(point)[:, -asked.shape[1] :]
            point.bias[-asked.shape[1] :] += (asked - found).mean(axis=0).astype(float)
        return point


def _of_kernel_logistic(model: KernelLogisticRegression) -> Point:
    A, bias = model.dual_coef_.T, model.intercept_
    if A.shape[1] == 1:
        A, bias = np.column_stack([np.zeros(len(A)), A]), np.concatenate([[0.0], bias])
    return Point(A, bias=bias, points=np.asarray(_dense(model.points_), float))


def _of_sequences(model: CRF | StructuredSVM) -> Point:
    if model.expansion_ is None:
        coef = _dense(model.coef_).T
        return Point(coef, getattr(model, "transitions_", None))
    expansion = model.expansion_
    return Point(expansion.coefficients, getattr(model, "transitions_", None), points=_dense(expansion.points))


def _of_cliques(model: ConditionalGraphicalModel) -> Point:
    (clique,) = model.clique_models_.values()
    return Point(clique.coefficients, points=_dense(clique.points))


def _dense(matrix: Any) -> np.ndarray:
    return np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)


_POINTS = {
    KernelLogisticRegression: _of_kernel_logistic,
    CRF: _of_sequences,
    StructuredSVM: _of_sequences,
    ConditionalGraphicalModel: _of_cliques,
    DiscriminativeHMM: theta_of,
}


@dataclass
class Rows:
    """Nodes with labels 0 ... K - 1, all of which occur."""

    X: np.ndarray
    y: np.ndarray
    lengths: np.ndarray
    n_labels: int

    @property
    def sequences(self) -> Data:
        cuts = np.cumsum(self.lengths)[:-1]
        return np.split(self.X, cuts), [part.tolist() for part in np.split(self.y, cuts)]


def draw_rows(rng: np.random.Generator, longest: int, most: int) -> Rows:
    """Points of noisy classes: offset up to 1e6, columns of any scale, repeated rows, a class with one point."""
    n_labels = int(rng.integers(2, 4))
    lengths = rng.integers(1, longest + 1, int(rng.integers(max(2, n_labels), most + 1)))
    n, d = int(max(lengths.sum(), n_labels)), int(rng.integers(1, 5))
    lengths[-1] += n - lengths.sum()
    X = rng.normal(size=(n, d))
    signal = X @ rng.normal(size=(d, n_labels)) + rng.uniform(0, 2) * rng.normal(size=(n, n_labels))
    y = signal.argmax(1)
    if rng.random() < 0.3:
        y[:] = 0  # all but one point of each other class
    y[rng.permutation(n)[:n_labels]] = np.arange(n_labels)
    if rng.random() < 0.2:
        X[n // 2 :] = X[: n - n // 2]
    scale = 10.0 ** (rng.uniform(-6, 6) if rng.random() < 0.4 else rng.uniform(-1, 1, d) * rng.choice([0, 1, 3]))
    X = scale * (X + rng.choice([0.0, 0.0, 1.0, 10.0, 100.0, 1e3, 1e6]))
    if rng.random() < 0.3:
        X = X.astype(np.float32).astype(float)
    return Rows(X, y, lengths, n_labels)


def draw_kernel(rng: np.random.Generator, X: np.ndarray) -> tuple[Kernel, dict[str, Any]]:
    """A positive semidefinite kernel whose values stay within reach of double precision, and the settings for it."""
    spread = max(float(X.var()), 1e-300)
    name = str(rng.choice(["rbf", "rbf", "linear", "poly", "laplacian"]))
    gamma = float(10.0 ** rng.uniform(-1, 1) / (X.shape[1] * (np.sqrt(spread) if name == "laplacian" else spread)))
    if name == "poly":
        gamma = float(1 / (X.shape[1] * max(float((X**2).mean()), 1e-300)))
    kernel = Kernel(name, gamma, float(rng.choice([0.0, 1.0])), int(rng.integers(1, 4)))
    settings = {"kernel": name, "gamma": gamma, "coef0": kernel.coef0, "degree": kernel.degree}
    return kernel, settings


def draw_strength(rng: np.random.Generator) -> float:
    return float(10.0 ** rng.uniform(-6, 6))


def draw_path(rng: np.random.Generator, flags: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Settings of the fits that a warm start comes from; none at all in most cases."""
    if rng.random() < 0.7:
        return []
    path: list[dict[str, Any]] = [{"C": draw_strength(rng)} for _ in range(int(rng.integers(1, 3)))]
    for step in path:
        for flag in flags:
            step[flag] = bool(rng.random() < 0.5)
    return path


def given(rng: np.random.Generator, X: np.ndarray) -> Any:
    """The same numbers as an array or a sparse matrix."""
    return scipy.sparse.csr_array(X) if rng.random() < 0.25 else X


def kernel_logistic(solver: str, seed: int, approx: bool = False) -> Case:
    rng = np.random.default_rng([1, seed])
    rows = draw_rows(rng, 1, 24)
    kernel, settings = draw_kernel(rng, rows.X)
    C, tol, bias = draw_strength(rng), float(rng.choice([1e-2, 1e-3, 1e-6])), bool(rng.random() < 0.7)
    weights = C * np.ones(len(rows.y))
    model = KernelLogisticRegression(
        **settings, C=C, solver=solver, tol=tol, fit_intercept=bias, max_iter=300, random_state=0
    )
    path = [] if approx else draw_path(rng, ("fit_intercept",))
    if approx:
        model.set_params(kernel_approx=int(rng.integers(1, len(rows.y) + 1)))
    exact = Exact(
        rows.X, rows.lengths, rows.y, weights, rows.n_labels, 1, False, kernel, bias, pinned=rows.n_labels == 2
    )
    return Case(model, (given(rng, rows.X), rows.y), exact, tol, path, reduced=approx)


def chains(solver: str, seed: int, margin: bool = False, l1: bool = False) -> Case:
    rng = np.random.default_rng([2, seed])
    rows = draw_rows(rng, 3, 6)
    C, tol = draw_strength(rng), float(rng.choice([1e-2, 1e-4, 1e-6]))
    passes = _FEW.get(solver, 300) if margin else 300
    settings = {"C": C, "tol": tol, "features": "all", "max_iter": passes, "solver": solver, "random_state": 0}
    exact = Exact(rows.X, rows.lengths, rows.y, np.full(len(rows.lengths), C), rows.n_labels, 0 if margin else 1, True)
    model = StructuredSVM(**settings) if margin else CRF(**settings)
    if l1:
        exact.l1_ratio = float(rng.choice([0.1, 0.5, 1.0]))
        model.set_params(l1_ratio=exact.l1_ratio)
    # What those that learn from mistakes say of where they end must be true all the same.
    return Case(model, rows.sequences, exact, tol, draw_path(rng), falls_back=solver not in MISTAKES)


def single_margin(solver: str, seed: int) -> Case:
    rng = np.random.default_rng([3, seed])
    rows = draw_rows(rng, 1, 24)
    C, tol = draw_strength(rng), float(rng.choice([1e-2, 1e-3, 1e-6]))
    model = StructuredSVM("single", C, solver=solver, tol=tol, max_iter=300, random_state=0)
    exact = Exact(rows.X, rows.lengths, rows.y, np.full(len(rows.y), C), rows.n_labels, 0, False)
    return Case(model, (given(rng, rows.X), rows.y), exact, tol, draw_path(rng))


def kernel_chains(solver: str, seed: int, margin: bool = False) -> Case:
    rng = np.random.default_rng([4, seed])
    rows = draw_rows(rng, 3, 5)
    kernel, settings = draw_kernel(rng, rows.X)
    C, tol = draw_strength(rng), float(rng.choice([1e-2, 1e-3]))
    settings |= {"C": C, "tol": tol, "max_iter": 300, "solver": solver, "random_state": 0, "features": "all"}
    model = StructuredSVM(**settings) if margin else CRF(**settings)
    weights = np.full(len(rows.lengths), C)
    exact = Exact(rows.X, rows.lengths, rows.y, weights, rows.n_labels, 0 if margin else 1, True, kernel)
    return Case(model, rows.sequences, exact, tol, falls_back=False)


def cliques(loss: str, seed: int) -> Case:
    rng = np.random.default_rng([5, seed])
    rows = draw_rows(rng, 1, 24)
    kernel, settings = draw_kernel(rng, rows.X)
    C, tol = draw_strength(rng), float(rng.choice([1e-2, 1e-3]))
    model = ConditionalGraphicalModel(0, loss=loss, C=C, tol=tol, max_iter=300, random_state=0, **settings)
    temperature = 0 if loss == "hinge" else 1
    exact = Exact(rows.X, rows.lengths, rows.y, np.full(len(rows.y), C), rows.n_labels, temperature, False, kernel)
    return Case(model, rows.sequences, exact, tol, falls_back=False)


def tables(seed: int) -> Case:
    """Hidden Markov models: any weight of the margins, from nothing to a million."""
    rng = np.random.default_rng([7, seed])
    n_states, n_symbols, n = int(rng.integers(2, 4)), int(rng.integers(2, 4)), int(rng.integers(2, 6))
    lengths = rng.integers(1, 4, n)
    lengths[0] = max(n_states, n_symbols)
    X = [rng.integers(0, n_symbols, k) for k in lengths]
    y = [rng.integers(0, n_states, k) for k in lengths]
    X[0][:n_symbols], y[0][:n_states] = np.arange(n_symbols), np.arange(n_states)
    eta, tol, prior = (
        float(10.0 ** rng.uniform(-6, 6)),
        float(rng.choice([1e-2, 1e-4])),
        str(rng.choice(["prob", "count"])),
    )
    smoothing = float(10.0 ** rng.uniform(-4, 1))
    model = DiscriminativeHMM(eta, prior=prior, smoothing=smoothing, tol=tol, max_iter=300)
    counts, probabilities = reference(X, y, n_states, n_symbols, smoothing)
    c = counts if prior == "count" else probabilities
    return Case(model, (X, y), ExactTables(X, y, c, n_states, n_symbols, eta), tol)


def indefinite(family: str, seed: int) -> Case:
    """Kernels that are none: hyperbolic tangents, polynomials below zero, negative and undefined values."""
    rng = np.random.default_rng([6, seed])
    case = FAMILIES[family](seed)
    assert case.exact.kernel is not None
    X = rng.normal(size=case.exact.X.shape)
    kind = str(rng.choice(["sigmoid", "poly", "negative", "nan"]))
    gamma, coef0 = float(10.0 ** rng.uniform(-1, 0.5)), float(-rng.uniform(0.2, 3.0))
    settings: dict[str, Any] = {"kernel": kind, "gamma": gamma, "coef0": coef0, "degree": 1}
    if kind == "negative":
        settings["kernel"] = _negative
    elif kind == "nan":
        settings["kernel"] = _undefined
    case.model.set_params(**settings)
    case.data = _with_rows(case.data, X)
    case.exact.X, case.path = X, []
    case.exact.kernel = Kernel(kind, gamma, coef0, 1) if kind in ("sigmoid", "poly") else None
    case.indefinite = case.exact.kernel is None or _is_indefinite(case.exact.kernel(X, X))
    return case


def _with_rows(data: Data, X: np.ndarray) -> Data:
    if isinstance(data[0], list):
        return np.split(X, np.cumsum([len(part) for part in data[0]])[:-1]), data[1]
    return X, data[1]


def _is_indefinite(K: np.ndarray) -> bool:
    values = np.linalg.eigvalsh(K.astype(float))
    return bool(values[0] < -1e-9 * np.linalg.norm(values))


def _negative(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return -(a @ b.T)


def _undefined(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.full((len(a), len(b)), np.nan)


FAMILIES = {
    **{
        f"KernelLogisticRegression-{solver}": (lambda seed, s=solver: kernel_logistic(s, seed))
        for solver in ("auto", "newton", "working_set", "smo", "online", "lbfgs")
    },
    "KernelLogisticRegression-approx": lambda seed: kernel_logistic("auto", seed, approx=True),
    **{
        f"CRF-{solver}": (lambda seed, s=solver: chains(s, seed))
        for solver in ("auto", "block_dual", "lbfgs", "sgd", *MISTAKES)
    },
    **{
        f"CRF-{name}": (lambda seed, s=solver: chains(s, seed, l1=True))
        for name, solver in {"l1": "auto", "l1-block_dual": "block_dual"}.items()
    },
    "CRF-kernel": lambda seed: kernel_chains("auto", seed),
    **{
        f"StructuredSVM-{solver}": (lambda seed, s=solver: chains(s, seed, margin=True))
        for solver in (
            "auto",
            "flow_swap",
            "path_blocks",
            "cutting_plane",
            "simplicial",
            "labelling_set",
            "marginal",
            "frank_wolfe",
            "sgd",
        )
    },
    "StructuredSVM-single": lambda seed: single_margin("auto", seed),
    "StructuredSVM-kernel": lambda seed: kernel_chains("auto", seed, margin=True),
    **{f"ConditionalGraphicalModel-{loss}": (lambda seed, v=loss: cliques(v, seed)) for loss in ("hinge", "log")},
    "DiscriminativeHMM": tables,
}
WITH_KERNEL = [name for name in FAMILIES if FAMILIES[name](0).exact.kernel is not None]
