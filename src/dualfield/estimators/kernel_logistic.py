"""Kernel logistic regression: calibrated kernel classification with a proof of optimality."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from dualfield.data.arrays import Floats
from dualfield.data.checks import (
    check_flag,
    check_integer,
    check_kernel_values,
    check_label_kernel,
    check_number,
    fixed_random_state,
)
from dualfield.data.point_parts import PointPart, client_of_parts, point_parts
from dualfield.data.records import Record
from dualfield.engines import engine_of
from dualfield.estimators.base import Estimator, fitted, fitting
from dualfield.estimators.calibrating import chosen
from dualfield.io.point_files import PointFile, point_paths
from dualfield.kernels import Kernel
from dualfield.kernels.gamma import check_kernel, chosen_gamma
from dualfield.kernels.mercer import check_mercer, refusals
from dualfield.models.kernel.classifier import KernelClassifier
from dualfield.models.kernel.point_training import fit_point_parts
from dualfield.models.labelling_order import LabellingOrder, labelling_order
from dualfield.models.temperature_scaling import Calibration
from dualfield.objectives import KernelSoftmax
from dualfield.objectives.counted_points import CountedPoints
from dualfield.scores import Expansion
from dualfield.solvers import KernelPoint, Solution, StopRule, prototypes
from dualfield.solvers.convergence import warn_unless_converged
from dualfield.solvers.kernel.inducing import check_inducing, solve_with_inducing_points
from dualfield.solvers.kernel.joint import JointKernelProblem
from dualfield.solvers.kernel.warm_start import solve_warm
from dualfield.solvers.progress import ProgressLine
from dualfield.solvers.registry import pick_solver, suited
from dualfield.structures.checks import n_threads

__all__ = ["KernelLogisticRegression"]

_DEFAULT_PASSES = 10_000.0


class KernelLogisticRegression(ClassifierMixin, Estimator):  # type: ignore[misc]
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
        full problem; in a fit to partitions, which needs them, that of the inducing-point problem.
    solver : str or solver object, default="auto"
        "auto", "working_set", "newton", "smo", "online", "lbfgs", an object of :mod:`dualfield.solvers`, or one of your
        own with ``name``, ``missing`` and ``solve``.
    tol : float, default=1e-3
        Stop when the duality gap is at most tol times the dual value.
    max_iter : int, default=None
        Most passes over the kernel matrix; None is 10,000.
    cache_size : float, default=4e9
        Bytes for the kernel matrix, 4 or 8 for each pair of points; beyond that rows are computed again when needed.
        In a fit to partitions, bytes of points that are kept; beyond that they are read again in each pass.
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
        A bound on its distance from the minimum of the problem that ``certified_problem_`` names, computed from the
        returned point.
    certified_problem_ : {"full", "inducing_points"}
        Which problem the gap is about: that of all functions of the kernel, or, in a fit to partitions, that of those
        in the span of the inducing points. The distance between the two is not known then.
    n_partitions_, n_rounds_ : int
        Partitions of the data, and how often all of them were asked for something, in a fit to partitions.
    n_iter_ : int
        Iterations of the solver.
    solver_ : str
        The solver that finished.
    status_ : dualfield.solvers.Status
        How it ended.
    trace_ : dualfield.solvers.Trace
        Objective, dual, gap, kernel passes and seconds in the course of the fit.
    calibration_ : Calibration
        How :meth:`calibrate` chose the temperature of the probabilities, once it was called.
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
    _model_type = KernelClassifier
    _counted: ClassVar[dict[str, type]] = {"n_partitions_": int, "n_rounds_": int}
    classes_: NDArray[Any] = fitted("classes")
    points_: Any = fitted("points")
    dual_coef_: Floats = fitted("dual_coef")
    intercept_: Floats = fitted("bias")
    calibration_: Calibration = fitted("calibration", is_optional=True)

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
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        client: Any = None,
    ) -> Self:
        """Fit the model, to points in memory or in partitions.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features), or (n, n) for a precomputed kernel
            Training points. With ``kernel_approx`` also a list of partitions, or a glob of files: pairs (X, y) or
            triples (X, y, sample_weight) of arrays, functions without arguments that return one, paths of ``.npz``
            files with these arrays or of SVMlight's text, Dask's delayed values or futures; or a Dask array.
        y : array of shape (n,)
            Their labels; None where they are in the partitions; a Dask array with the blocks of X.
        sample_weight : array of shape (n,), default=None
            Weights v_i ≥ 0; points of weight zero do not count.
        client : distributed.Client or str, default=None
            A Dask cluster, or the address of its scheduler, on which the partitions are worked on; None: one after
            another in this process, or on the cluster that futures are on. The model has the same bits.

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
        parts = point_parts(point_paths(X) if y is None else X, y, PointFile)
        if parts is not None:
            return self._fit_parts(parts, sample_weight, client)
        if client is not None:
            raise ValueError("client is for partitions: X must be a list of pairs (X, y), of paths, or the like.")
        checked: tuple[Any, NDArray[Any]] = validate_data(
            self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32]
        )
        X, labels = checked
        check_classification_targets(labels)
        if self.kernel == "precomputed":
            check_kernel_values(type(self).__name__, X)
        classes, codes = np.unique(labels, return_inverse=True)
        counted = CountedPoints(
            codes=codes,
            weights=self._weights(X, labels, classes, codes, sample_weight),
            n_classes=len(classes),
            pinned=len(classes) == 2 and self.label_kernel is None,
        )
        if len(counted.classes) < 2:
            only = "" if len(classes) < 2 else " with a weight above zero"
            raise ValueError(
                f"{type(self).__name__} needs points of at least 2 classes{only}. "
                f"Got one class: {classes[counted.classes]}."
            )
        old = self._start_of(classes, counted) if self.warm_start else None
        kernel, label_kernel = Kernel("linear"), cast(Any, self.label_kernel)
        with ProgressLine(type(self).__name__, int(self.verbose)) as line:
            if callable(label_kernel):  # which takes the place of the kernel
                points, solution = self._solve_joint(X, classes, counted, solver, line)
            else:
                kernel = self._kernel(X, counted.weights)
                if label_kernel is not None:
                    label_kernel = check_label_kernel(type(self).__name__, label_kernel, len(classes)).copy()
                points, solution = self._solve(X, kernel, label_kernel, counted, old, solver, line)
            line.end(f"{solution.status.value}, relative gap {solution.relative_gap:.1e}.")
        self._model = KernelClassifier(
            expansion=Expansion(
                kernel,
                None if kernel.is_precomputed else points,
                np.ascontiguousarray(solution.parameters.coefficients),
            ),
            bias=solution.parameters.bias,
            classes=classes,
            label_kernel=label_kernel,
            point_weights=counted.weights,
        )
        self._keep_solution(solution)
        for name in sorted(self._counted):
            self.__dict__.pop(name, None)
        warn_unless_converged(solution, float(self.tol), "passes over the kernel matrix")
        return self

    def _fit_parts(self, parts: list[PointPart], sample_weight: Any, client: Any) -> Self:
        """Fit to partitions."""
        if self.kernel_approx is None:
            raise ValueError(
                "Partitions need kernel_approx, a number of inducing points: without them the model has a coefficient "
                "for every row, and needs all kernel values between rows."
            )
        if callable(self.label_kernel):
            raise ValueError("Partitions need a label_kernel that is None or a matrix. Got a function.")
        if self.solver != "auto":
            raise ValueError(f"Partitions have a solver of their own: solver must be 'auto'. Got {self.solver!r}.")
        if sample_weight is not None:
            raise ValueError("sample_weight must be in the partitions, as triples (X, y, sample_weight).")
        seed = int(fixed_random_state(self.random_state).randint(2**31 - 1))
        chosen = client_of_parts(parts) if client is None else client
        with (
            engine_of(chosen, float(self.cache_size)) as engine,
            ProgressLine(type(self).__name__, int(self.verbose)) as line,
        ):
            found = fit_point_parts(self, parts, engine, self._rule(), seed, line)
            line.end(f"{found.solution.status.value}, relative gap {found.solution.relative_gap:.1e}.")
        self._model = found.model
        self._keep_solution(found.solution)
        self.n_features_in_, self.n_partitions_, self.n_rounds_ = found.n_features, len(parts), found.n_rounds
        self.__dict__.pop("feature_names_in_", None)
        warn_unless_converged(found.solution, float(self.tol), "passes over the rows")
        return self

    @property
    def certified_problem_(self) -> str:
        """Which problem the gap is about."""
        check_is_fitted(self)
        return "inducing_points" if "n_partitions_" in vars(self) else "full"

    def _solve(
        self,
        X: Any,
        kernel: Kernel,
        label_kernel: Floats | None,
        counted: CountedPoints,
        old: KernelClassifier | None,
        solver: Any,
        line: ProgressLine,
    ) -> tuple[Any, Solution[KernelPoint]]:
        """Bind kernel, points and weights to an objective, solve it, and put back what was left out."""
        threads, present = n_threads(self.n_jobs), counted.classes
        points = counted.rows(X, square=kernel.is_precomputed)
        check_mercer(kernel, points, threads)
        problem = KernelSoftmax(
            kernel,
            points,
            counted.codes_among_counted().astype(np.int32),
            weights=counted.weights[counted.points],
            n_classes=len(present),
            with_bias=bool(self.fit_intercept),
            pinned=counted.pinned,
            label_kernel=None if label_kernel is None else np.ascontiguousarray(label_kernel[np.ix_(present, present)]),
            cache_bytes=int(self.cache_size),
            n_threads=threads,
        )
        random, rule = fixed_random_state(self.random_state), self._rule()
        with refusals(kernel):
            if self.kernel_approx is not None:
                points, solution = solve_with_inducing_points(problem, self.kernel_approx, rule, line, random)
                return points, counted.embedded(solution, len(solution.parameters.coefficients))
            suited(solver, problem)
            seed = int(random.randint(2**31 - 1))
            if old is None:
                solution = solver.solve(problem, rule, None, line, random_state=seed)
            else:
                start = KernelPoint(*counted.start(old.expansion.coefficients, old.bias, old.point_weights))
                solution = solve_warm(solver, problem, rule, start, line, seed, self.objective_)
        return X, counted.embedded(solution)

    def _solve_joint(
        self, X: Any, classes: NDArray[Any], counted: CountedPoints, solver: Any, line: ProgressLine
    ) -> tuple[Any, Solution[KernelPoint]]:
        if self.fit_intercept:
            raise ValueError(
                "A label_kernel on pairs of point and label contains the bias if it wants one: set fit_intercept=False."
            )
        if sparse.issparse(X):
            raise ValueError("A label_kernel on pairs of point and label needs a dense X. Got a sparse matrix.")
        problem = JointKernelProblem(
            cast(Callable[..., float], self.label_kernel),
            counted.rows(X, square=False),
            classes[counted.classes],
            codes=counted.codes_among_counted(),
            weights=counted.weights[counted.points],
            cache_bytes=int(self.cache_size),
        )
        suited(solver, problem)
        return X, counted.embedded(solver.solve(problem, self._rule(), None, line))

    def _rule(self) -> StopRule:
        return StopRule(float(self.tol), _DEFAULT_PASSES if self.max_iter is None else float(self.max_iter))

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
        gamma = chosen_gamma(self.kernel, self.gamma, X, weights)
        return Kernel(self.kernel, gamma, float(self.coef0), float(self.degree), dict(self.kernel_params or {}))

    def _start_of(self, classes: NDArray[Any], counted: CountedPoints) -> KernelClassifier | None:
        """Return the model of an earlier fit, if it was one to as many points of the same classes."""
        if "_model" not in vars(self) or callable(self.label_kernel) or self.kernel_approx is not None:
            return None
        old: KernelClassifier = self.model_
        shape = (len(counted.codes), counted.n_outputs)
        same = old.expansion.coefficients.shape == shape and len(old.point_weights) == len(counted.codes)
        return old if same and np.array_equal(old.classes, classes) else None

    def _check_restored(self) -> None:
        self._check_parameters()

    def _restore_model(self, record: Record) -> None:
        super()._restore_model(record)
        n_columns = self._model.expansion.n_columns
        record.check(n_columns == self.n_features_in_, f"it has {n_columns} columns, not {self.n_features_in_}.")

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)

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
        model: KernelClassifier = self.model_
        return model.decision_function(self._checked(X), n_threads(self.n_jobs))

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
        model: KernelClassifier = self.model_
        return model.predict_log_proba(self._checked(X), n_threads(self.n_jobs))

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
        model: KernelClassifier = self.model_
        return model.predict(self._checked(X), n_threads(self.n_jobs))

    def calibrate(self, X: Any, y: Any, *, cv: Any = None) -> Self:
        """Choose the temperature of the probabilities by data that the model was not trained on.

        Scores are divided by T before they become probabilities, with T such that their log-loss is smallest on these
        points; predictions do not change. ``calibration_`` tells T, the log-loss there, and that at T = 1.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            Points.
        y : array of shape (n,)
            Labels.
        cv : int, splitter or iterable, default=None
            Where there are no held-out data: folds as in scikit-learn, of the training data.

        Returns
        -------
        KernelLogisticRegression
            The model itself.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import KernelLogisticRegression
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 2))
        >>> y = X[:, 0] + rng.normal(size=200) > 0
        >>> model = KernelLogisticRegression(C=100.0, gamma=3.0).fit(X[:100], y[:100]).calibrate(X[100:], y[100:])
        >>> model.calibration_.temperature > 2.0                # it was much too sure
        True
        """
        model: KernelClassifier = self.model_
        found = chosen(self, X, y, None, cv, lambda fold, inputs, labels, _: fold._held_out(inputs, labels))
        self._model = model.calibrated(found)
        return self

    def _held_out(self, X: Any, y: Any) -> Any:
        return self.model_.held_out(self._checked(X), y, n_threads(self.n_jobs))

    def rank_for_labelling(self, X: Any, by: str = "entropy", per: str = "token") -> LabellingOrder:
        """Say which points to label next: those that the model knows least about, first.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            Points without labels.
        by : {"entropy", "least_confidence"}, default="entropy"
            The entropy of the class, or minus the logarithm of the largest probability.
        per : {"token", "sentence"}, default="token"
            A point is both.

        Returns
        -------
        LabellingOrder
            ``order``, the places of the points, and ``values``, how uncertain each is.

        Examples
        --------
        >>> from dualfield import KernelLogisticRegression
        >>> model = KernelLogisticRegression(kernel="linear").fit([[-1.0], [1.0]], [0, 1])
        >>> model.rank_for_labelling([[3.0], [0.1], [-1.0]]).order
        array([1, 2, 0])
        """
        return labelling_order(type(self).__name__, by, per, self.predict_proba(X)[:, None, :])
