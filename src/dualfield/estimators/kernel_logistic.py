"""Kernel logistic regression: calibrated kernel classification with a proof of optimality."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import log_expit, log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from dualfield.data.checks import (
    check_flag,
    check_integer,
    check_kernel_values,
    check_label_kernel,
    check_number,
    fixed_random_state,
)
from dualfield.estimators.fitting import fitting
from dualfield.estimators.saved import Savable, from_file
from dualfield.estimators.saved_kernel import KernelPoints, restored_parts, saved_parts
from dualfield.kernels import Kernel
from dualfield.kernels.gamma import check_kernel, chosen_gamma
from dualfield.kernels.mercer import check_mercer, refusals
from dualfield.objectives import KernelSoftmax
from dualfield.persistence.file import ModelFile
from dualfield.persistence.parameters import ParameterWriter
from dualfield.solvers import KernelPoint, Solution, StopRule, prototypes
from dualfield.solvers.convergence import warn_unless_converged
from dualfield.solvers.kernel.inducing import check_inducing, solve_with_inducing_points
from dualfield.solvers.kernel.joint import JointKernelProblem, joint_scores
from dualfield.solvers.kernel.warm_start import solve_warm
from dualfield.solvers.progress import ProgressLine
from dualfield.solvers.registry import pick_solver, suited
from dualfield.structures.checks import n_threads

__all__ = ["KernelLogisticRegression"]

Floats = NDArray[np.float64]
_DEFAULT_PASSES = 10_000.0


class KernelLogisticRegression(Savable, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Logistic regression with a kernel: one softmax over all classes, trained to a certified duality gap.

    With two classes, labels y_i = ±1 and score s(x) = ⟨w, φ(x)⟩ + b, it minimises (Keerthi et al. 2005)::

        ½ ‖w‖² + C Σ_i v_i log(1 + exp(−y_i s(x_i)))

    and with more classes, scores s_c(x) = ⟨w_c, φ(x)⟩ + b_c (Memisevic 2006, C = 1/λ)::

        ½ Σ_c ‖w_c‖² + C Σ_i v_i [ log Σ_c exp s_c(x_i) − s_{y_i}(x_i) ]

    v_i is the weight of the point. The bias is not penalised. A softmax over two classes at C is the same problem as
    the binary one at 2C. ``predict`` is the argmax of ``decision_function`` and of ``predict_proba``.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "laplacian", "sigmoid", "precomputed"} or callable, default="rbf"
        Functions as in :mod:`sklearn.metrics.pairwise`. "precomputed": X is the matrix of kernel values, (n, n) in fit,
        (n_test, n) in predict. A callable gets (X, Y) and returns the matrix. It must be positive semidefinite.
    gamma : {"scale", "auto"} or float, default="scale"
        γ of poly, rbf, laplacian and sigmoid: "scale" is 1 / (n_features · X.var()), rows counted by their weights;
        "auto" is 1 / n_features.
    degree : float, default=3
        Exponent of poly.
    coef0 : float, default=0.0
        Constant of poly and sigmoid.
    kernel_params : dict, default=None
        Keyword arguments for a callable kernel.
    C : float, default=1.0
        Weight of the loss against the penalty. Useful values range from 1e-2 to 1e5.
    fit_intercept : bool, default=True
        Whether there is a bias.
    class_weight : dict or "balanced", default=None
        Weights of classes, as in scikit-learn.
    label_kernel : array of shape (n_classes, n_classes) or callable, default=None
        A positive semidefinite matrix T that lets similar classes share strength, in the order of ``classes_``; scores
        are K B T. A callable ``k((x, y), (x2, y2))`` is a kernel on pairs of point and label, and takes the place of
        ``kernel``; it needs ``solver="joint_online"`` or "auto" and ``fit_intercept=False``, for small data.
    kernel_approx : int or array of shape (n_points, n_features), default=None
        Inducing points: w lies in the span of so many training points, or of the given ones. The gap is that to the
        full problem.
    solver : str or solver object, default="auto"
        "auto", "working_set", "newton", "smo", "online", "lbfgs", an object of :mod:`dualfield.solvers`, or one of your
        own with ``name``, ``missing`` and ``solve``.
    tol : float, default=1e-3
        Stop when the duality gap is at most tol times the dual value.
    max_iter : int, default=None
        Most passes over the kernel matrix; None is 10,000.
    cache_size : float, default=4e9
        Bytes for the kernel matrix, 4 or 8 for each pair of points; beyond that rows are computed again when needed.
    n_jobs : int, default=None
        Number of threads, as in scikit-learn; the model does not depend on it.
    warm_start : bool, default=False
        Begin at the previous model if the number of points and the classes are the same. Where that does not lead to
        the goal, the fit begins anew without it.
    random_state : int or RandomState, default=None
        For the sweeps of "smo" and the choice of inducing points; None is 0.
    verbose : int, default=0
        1: a live line of progress; 2: every look at the gap.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    dual_coef_ : ndarray of shape (n_outputs, n_points)
        Coefficients; one row with two classes, else one for each class.
    intercept_ : ndarray of shape (n_outputs,)
        Biases; −inf for a class whose points all have weight zero.
    points_ : array or sparse matrix of shape (n_points, n_features)
        The points of the expansion; None for a precomputed kernel.
    objective_ : float
        The minimised value.
    dual_gap_ : float
        A bound on its distance from the minimum, computed from the returned point.
    n_iter_ : int
        Iterations of the solver.
    solver_ : str
        The solver that finished.
    status_ : dualfield.solvers.Status
        How it ended.
    trace_ : dualfield.solvers.Trace
        Objective, dual, gap, kernel passes and seconds in the course of the fit.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if X had names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dualfield import KernelLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelLogisticRegression(C=10.0).fit(X, y)
    >>> model.predict_proba(X[:1]).round(2)
    array([[0.99, 0.01, 0.  ]])
    >>> model.dual_gap_ <= 1e-3 * model.objective_
    True
    """

    _saved_as = "KernelLogisticRegression"
    _asked_with = ("kernel", "degree", "coef0", "kernel_params", "label_kernel")
    points_: Any = from_file()
    dual_coef_: Floats = from_file()
    _fit_weights: Floats = from_file()

    def __init__(
        self,
        kernel: str | Callable[..., Any] = "rbf",
        *,
        gamma: float | Literal["scale", "auto"] = "scale",
        degree: float = 3,
        coef0: float = 0.0,
        kernel_params: Mapping[str, Any] | None = None,
        C: float = 1.0,
        fit_intercept: bool = True,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        label_kernel: ArrayLike | Callable[..., float] | None = None,
        kernel_approx: int | ArrayLike | None = None,
        solver: str | Any = "auto",
        tol: float = 1e-3,
        max_iter: int | None = None,
        cache_size: float = 4e9,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.label_kernel = label_kernel
        self.kernel_approx = kernel_approx
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @fitting
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or (n, n) for a precomputed kernel
            Training points.
        y : array of shape (n,)
            Their labels.
        sample_weight : array of shape (n,), default=None
            Weights v_i ≥ 0; points of weight zero do not count.

        Returns
        -------
        KernelLogisticRegression
            The fitted model.

        Examples
        --------
        >>> from dualfield import KernelLogisticRegression
        >>> KernelLogisticRegression(kernel="linear").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[2.5]])
        array([1])
        """
        solver = self._check_parameters()
        checked: tuple[Any, NDArray[Any]] = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32]
        )
        X, labels = checked
        check_classification_targets(labels)
        if self.kernel == "precomputed":
            check_kernel_values(type(self).__name__, X)
        classes, codes = np.unique(labels, return_inverse=True)
        weights = self._weights(X, labels, classes, codes, sample_weight)
        counted = np.flatnonzero(weights > 0)
        present = np.unique(codes[counted])
        if len(present) < 2:
            only = "" if len(classes) < 2 else " with a weight above zero"
            raise ValueError(
                f"{type(self).__name__} needs points of at least 2 classes{only}. Got one class: {classes[present]}."
            )
        old = self._previous(classes, len(codes)) if self.warm_start else None
        threads = n_threads(self.n_jobs)
        with ProgressLine(type(self).__name__, int(self.verbose)) as line:
            if callable(self.label_kernel):
                points, solution = self._fit_joint(self.label_kernel, X, classes, codes, weights, present, solver, line)
            else:
                points, solution = self._fit(X, classes, codes, weights, counted, present, old, solver, threads, line)
        self._keep(points, classes, weights, solution, line)
        return self

    def _fit(
        self,
        X: Any,
        classes: NDArray[Any],
        codes: NDArray[np.intp],
        weights: Floats,
        counted: NDArray[np.intp],
        present: NDArray[np.intp],
        old: tuple[Floats, Floats, Floats] | None,
        solver: Any,
        threads: int,
        line: ProgressLine,
    ) -> tuple[Any, Solution[KernelPoint]]:
        """Bind kernel, points and weights to an objective, solve it, and put back what was left out."""
        kernel = self._kernel(X, weights)
        everything = len(counted) == len(codes)
        points = X if everything else X[counted][:, counted] if kernel.is_precomputed else X[counted]
        check_mercer(kernel, points, threads)
        label_kernel = None
        if self.label_kernel is not None:
            label_kernel = check_label_kernel(type(self).__name__, cast(ArrayLike, self.label_kernel), len(classes))
            label_kernel = np.ascontiguousarray(label_kernel[np.ix_(present, present)])
        pinned = len(classes) == 2 and label_kernel is None
        problem = KernelSoftmax(
            kernel,
            points,
            np.searchsorted(present, codes[counted]).astype(np.int32),
            weights[counted],
            len(present),
            bool(self.fit_intercept),
            pinned,
            label_kernel,
            int(self.cache_size),
            threads,
        )
        # A class without points is not part of the problem.
        rows, n_rows = (np.zeros(1, np.intp), 1) if pinned else (present, len(classes))
        start = None
        if old is not None:
            # The same dual point at the new weights.
            before = old[2][counted]
            scale = np.divide(weights[counted], before, out=np.zeros(len(counted)), where=before > 0)
            bias = np.where(np.isfinite(old[1][rows]), old[1][rows], 0.0)
            start = KernelPoint(old[0][np.ix_(counted, rows)] * scale[:, None], bias)
        rule = StopRule(float(self.tol), _DEFAULT_PASSES if self.max_iter is None else float(self.max_iter))
        if self.kernel_approx is not None:
            random = fixed_random_state(self.random_state)
            with refusals(kernel):
                points, solution = solve_with_inducing_points(problem, self.kernel_approx, rule, line, random)
            n = len(solution.parameters.coefficients)
            return points, _embed(solution, n, n_rows, np.arange(n), rows)
        seed = int(fixed_random_state(self.random_state).randint(2**31 - 1))
        suited(solver, problem)
        with refusals(kernel):
            if start is None:
                solution = solver.solve(problem, rule, None, line, random_state=seed)
            else:
                solution = solve_warm(solver, problem, rule, start, line, seed, self.objective_)
        return X, _embed(solution, len(codes), n_rows, counted, rows)

    def _fit_joint(
        self,
        kernel: Callable[..., float],
        X: Any,
        classes: NDArray[Any],
        codes: NDArray[np.intp],
        weights: Floats,
        present: NDArray[np.intp],
        solver: Any,
        line: ProgressLine,
    ) -> tuple[Any, Solution[KernelPoint]]:
        if self.fit_intercept:
            raise ValueError(
                "A label_kernel on pairs of point and label contains the bias if it wants one: set fit_intercept=False."
            )
        if sparse.issparse(X):
            raise ValueError("A label_kernel on pairs of point and label needs a dense X. Got a sparse matrix.")
        keep = np.flatnonzero(weights > 0)
        known = np.searchsorted(present, codes[keep])
        problem = JointKernelProblem(kernel, X[keep], classes[present], known, weights[keep], int(self.cache_size))
        rule = StopRule(float(self.tol), _DEFAULT_PASSES if self.max_iter is None else float(self.max_iter))
        suited(solver, problem)
        solution = solver.solve(problem, rule, None, line)
        return X, _embed(solution, len(codes), len(classes), keep, present)

    def _keep(
        self, points: Any, classes: NDArray[Any], weights: Floats, solution: Solution[KernelPoint], line: ProgressLine
    ) -> None:
        self.classes_ = classes
        self.points_ = None if self.kernel == "precomputed" else points
        self.dual_coef_ = np.ascontiguousarray(solution.parameters.coefficients.T)
        self.intercept_ = solution.parameters.bias
        self.objective_ = solution.objective
        self.dual_gap_ = solution.gap
        self.n_iter_ = solution.n_iter
        self.solver_ = solution.solver
        self.status_ = solution.status
        self.trace_ = solution.trace
        self._fit_weights = weights
        line.end(f"{solution.status.value}, relative gap {solution.relative_gap:.1e}.")
        warn_unless_converged(solution, float(self.tol), "passes over the kernel matrix")

    def _check_parameters(self) -> Any:
        owner = type(self).__name__
        check_kernel(owner, self)
        check_number(owner, "C", self.C, 0.0, open_low=True)
        check_number(owner, "tol", self.tol, 0.0, open_low=True)
        check_number(owner, "cache_size", self.cache_size, 0.0)
        check_integer(owner, "max_iter", self.max_iter, 1, or_none=True)
        check_integer(owner, "verbose", self.verbose, 0)
        check_flag(owner, "fit_intercept", self.fit_intercept)
        check_flag(owner, "warm_start", self.warm_start)
        if self.kernel_params is not None and not callable(self.kernel):
            raise ValueError(f"The 'kernel_params' parameter of {owner} needs a callable kernel. Got {self.kernel!r}.")
        if callable(self.label_kernel):
            which = f"{owner} with a function as label_kernel"
            chosen = pick_solver(which, self.solver, prototypes.joint_kernel())
        else:
            chosen = pick_solver(owner, self.solver, prototypes.kernel_softmax())
        check_inducing(owner, self.kernel_approx)
        if self.kernel_approx is not None and self.kernel == "precomputed":
            raise ValueError("kernel_approx needs points: it cannot be used with kernel='precomputed'.")
        return chosen

    def _weights(
        self, X: Any, y: NDArray[Any], classes: NDArray[Any], codes: NDArray[np.intp], sample_weight: ArrayLike | None
    ) -> Floats:
        """c_i = C · class weight · sample weight."""
        each = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not each.any():
            raise ValueError("sample_weight must have an entry above zero. Got zeros only.")
        if self.class_weight is not None:
            factors = compute_class_weight(self.class_weight, classes=classes, y=y)
            if not (factors >= 0).all():
                raise ValueError(
                    f"The 'class_weight' parameter of {type(self).__name__} must be weights of at least 0. "
                    f"Got {self.class_weight!r} instead."
                )
            each = each * factors[codes]
        return np.asarray(float(self.C) * each, dtype=np.float64)

    def _kernel(self, X: Any, weights: Floats) -> Kernel:
        self._fit_gamma = chosen_gamma(self.kernel, self.gamma, X, weights)
        return self._fitted_kernel()

    def _fitted_kernel(self) -> Kernel:
        kernel, coef0, degree, params = map(self._of_fit, ("kernel", "coef0", "degree", "kernel_params"))
        return Kernel(kernel, self._fit_gamma, float(coef0), float(degree), dict(params or {}))

    def _previous(self, classes: NDArray[Any], n: int) -> tuple[Floats, Floats, Floats] | None:
        """Coefficients (n, n_outputs), bias and weights of an earlier fit to as many points of the same classes."""
        if not hasattr(self, "dual_coef_") or self.dual_coef_.shape[1] != n or len(self._fit_weights) != n:
            return None
        if not np.array_equal(self.classes_, classes) or callable(self.label_kernel) or self.kernel_approx is not None:
            return None
        rows = 1 if len(classes) == 2 and self.label_kernel is None else len(classes)
        if self.dual_coef_.shape[0] != rows:
            return None
        return self.dual_coef_.T, self.intercept_, self._fit_weights

    def _check_restored(self) -> None:
        self._check_parameters()

    def _saved(self, writer: ParameterWriter) -> dict[str, Any]:
        return saved_parts(self, writer)

    def _restore(self, file: ModelFile) -> None:
        self.__dict__.update(restored_parts(file, self))
        self._waiting = KernelPoints(file, len(self.intercept_), self.kernel == "precomputed")
        if not file.is_mapped:
            self._finish()

    def decision_function(self, X: Any) -> Floats:
        """Return scores: of the second class against the first with two classes, else of every class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or (n, n_points) for a precomputed kernel
            Points.

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            Scores, the logarithms of odds or of unnormalised probabilities.

        Examples
        --------
        >>> from dualfield import KernelLogisticRegression
        >>> model = KernelLogisticRegression(kernel="linear").fit([[-1.0], [1.0]], [0, 1])
        >>> bool(model.decision_function([[0.5]])[0] > 0)
        True
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        threads = n_threads(self.n_jobs)
        label_kernel = self._of_fit("label_kernel")
        if callable(label_kernel):
            scores = joint_scores(label_kernel, X, np.asarray(self.points_), self.classes_, self.dual_coef_.T)
        else:
            scores = self._fitted_kernel().scores(X, self.points_, np.ascontiguousarray(self.dual_coef_.T), threads)
            if label_kernel is not None:
                scores = scores @ np.asarray(label_kernel, dtype=np.float64)
        scores = scores + self.intercept_
        if len(self.classes_) > 2:
            return np.asarray(scores)
        return np.asarray(scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0])

    def predict_log_proba(self, X: Any) -> Floats:
        """Return logarithms of probabilities.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n, n_classes)
            log P(class | x).

        Examples
        --------
        >>> from dualfield import KernelLogisticRegression
        >>> model = KernelLogisticRegression(kernel="linear").fit([[-1.0], [1.0]], [0, 1])
        >>> model.predict_log_proba([[0.0]]).round(4)
        array([[-0.6931, -0.6931]])
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return np.asarray(log_softmax(scores, axis=1))

    def predict_proba(self, X: Any) -> Floats:
        """Return probabilities.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n, n_classes)
            P(class | x), classes in the order of ``classes_``.

        Examples
        --------
        >>> from dualfield import KernelLogisticRegression
        >>> model = KernelLogisticRegression(kernel="linear").fit([[-1.0], [1.0]], [0, 1])
        >>> model.predict_proba([[0.0]]).round(4)
        array([[0.5, 0.5]])
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each point.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n,)
            Labels.

        Examples
        --------
        >>> from dualfield import KernelLogisticRegression
        >>> KernelLogisticRegression(kernel="linear").fit([[-1.0], [1.0]], ["no", "yes"]).predict([[0.5]])
        array(['yes'], dtype='<U3')
        """
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])


def _embed(
    solution: Solution[KernelPoint], n: int, n_outputs: int, counted: NDArray[np.intp], rows: Any
) -> Solution[KernelPoint]:
    """Points of weight zero get coefficients zero; a class without points gets the score minus infinity."""
    point, coefficients = solution.parameters, np.zeros((n, n_outputs))
    coefficients[np.ix_(counted, rows)] = point.coefficients
    bias = np.full(n_outputs, -np.inf)
    # Only differences of biases matter where every class has one: their mean is zero.
    bias[rows] = point.bias - (point.bias.mean() if n_outputs > 1 else 0.0)
    return replace(solution, parameters=KernelPoint(coefficients, bias))
