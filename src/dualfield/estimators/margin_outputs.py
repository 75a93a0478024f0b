"""What a structural SVM answers: labels of sequences, of single nodes, or outputs of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dualfield.data import Batch, Labels
from dualfield.data.records import Fields, Record
from dualfield.estimators.crf_data import TrainingData, example_weights
from dualfield.estimators.margin_data import check_signs, margin_rule, solve_hinge
from dualfield.estimators.trained import TrainedTagger
from dualfield.models.temperature_scaling import Calibration, choose_temperature
from dualfield.objectives import CustomPlanes
from dualfield.regularisers import SquaredNorm
from dualfield.scores import Expansion, FeatureTable, LinearScores
from dualfield.solvers import Moment, Solution, prototypes
from dualfield.solvers.registry import pick_solver, suited
from dualfield.structures import Chain, Single, Structure, check_custom_problem
from dualfield.structures.custom_answers import read_only

__all__ = ["MarginOutputs"]

Floats = NDArray[np.float64]
_NOT_CALIBRATED = (
    "Margins are not probabilities. Call calibrate(X, y) with data that the model was not trained on; it chooses the "
    "temperature at which they are."
)


def _is_calibrated(model: Any) -> bool:
    if not hasattr(model, "calibration_"):
        raise AttributeError(_NOT_CALIBRATED)
    return True


class MarginOutputs(TrainedTagger):
    """The three kinds of outputs of :class:`dualfield.StructuredSVM`, and probabilities once it is calibrated.

    Examples
    --------
    >>> from dualfield import StructuredSVM
    >>> model = StructuredSVM().fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]])
    >>> hasattr(model, "predict_proba")
    False
    """

    _asked_with = ("structure", "template")
    solver: Any
    positive: Any
    rescaling: Any

    @property
    def _is_single(self) -> bool:
        structure = self._of_fit("structure")
        return isinstance(structure, Single) or (isinstance(structure, str) and structure == "single")

    @property
    def _is_custom(self) -> bool:
        names = ("joint_feature", "loss", "argmax")
        structure = self._of_fit("structure")
        return not isinstance(structure, (str, Structure)) and any(hasattr(structure, name) for name in names)

    @property
    def temperature(self) -> float:  # type: ignore[override]
        """Temperature of the probabilities, once the model is calibrated."""
        if not hasattr(self, "calibration_"):
            raise NotFittedError(_NOT_CALIBRATED)
        found: Calibration = self.calibration_
        return found.temperature

    def __sklearn_is_fitted__(self) -> bool:
        return "parameters_" in vars(self) if self._is_custom else super().__sklearn_is_fitted__()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._is_single:
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
            tags.input_tags.sparse = tags.target_tags.required = True
        return tags

    def calibrate(self, X: Any, y: Any, *, lengths: ArrayLike | None = None) -> Self:
        r"""Choose the temperature that turns scores into probabilities.

        p(y | x) is proportional to exp(score(y) / T), with T such that the log-loss of the marginals is smallest on
        these examples, which the model must not have seen in training: on its training data margins are too good.
        ``calibration_`` tells T and the log-loss; afterwards ``predict_proba``, ``score_sequences``, ``k_best`` and
        others answer.

        Parameters
        ----------
        X, lengths
            As in ``predict``.
        y : list of lists of labels, or array of shape (n,) for single nodes
            True labels.

        Returns
        -------
        StructuredSVM
            The model itself.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import StructuredSVM
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 2))
        >>> y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
        >>> model = StructuredSVM("single").fit(X[:100], y[:100]).calibrate(X[100:200], y[100:200])
        >>> p = model.predict_proba(X[200:])[:, 1]
        >>> bool(abs(p.mean() - y[200:].mean()) < 0.1)
        True
        """
        check_is_fitted(self)
        if self._is_custom:
            raise ValueError("Only labels of sequences and of single nodes have marginals, and can be calibrated.")
        scores = self.decision_scores(X, lengths=lengths)
        if not scores.n_nodes:
            raise ValueError("X must have at least one node. Got none.")
        codes = self._single_codes(y, scores.n_nodes) if self._is_single else self.labels_.encode(y, scores.offsets)
        self.calibration_ = choose_temperature(self.structure_, scores, codes, self.n_jobs)
        return self

    @available_if(_is_calibrated)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, *, pairwise: bool = False, lengths: ArrayLike | None = None) -> Any:
        """Return the probability of each label at each node, at the temperature of :meth:`calibrate`.

        Parameters
        ----------
        X, lengths
            As in ``predict``.
        pairwise : bool, default=False
            Also return the probability of each pair of neighbouring labels; chains of order 1 only.

        Returns
        -------
        list of arrays of shape (T_i, n_labels), or array of shape (n, n_classes) for single nodes
            Rows sum to 1; columns follow ``classes_``. With `pairwise`, a second list of arrays of shape
            (T_i - 1, n_labels, n_labels), label on the left first.

        Examples
        --------
        >>> from dualfield import StructuredSVM
        >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]]
        >>> model = StructuredSVM().fit(X, y).calibrate([[["a"], ["a"]]], [["x", "y"]])
        >>> model.predict_proba([[["a"]]])[0].sum()
        np.float64(1.0)
        """
        answer = super().predict_proba(X, pairwise=pairwise, lengths=lengths)
        return np.concatenate(answer) if self._is_single else answer

    def predict_marginals(self, X: Any, *, lengths: ArrayLike | None = None) -> Any:
        """Return probabilities as dicts, once the model is calibrated.

        Parameters
        ----------
        X, lengths
            As in ``predict``.

        Returns
        -------
        list of lists of dicts, or list of dicts for single nodes
            From label to probability, for each node. :meth:`predict_proba` gives arrays, which are smaller and faster.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import StructuredSVM
        >>> X, y = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), ["left", "right", "left"]
        >>> model = StructuredSVM("single").fit(X, y).calibrate([[1.0, 1.0]], ["left"])
        >>> [sorted(row) for row in model.predict_marginals(X[:1])]
        [['left', 'right']]
        """
        if not self._is_single:
            return super().predict_marginals(X, lengths=lengths)
        names = self._names()
        return [dict(zip(names, row, strict=True)) for row in self.predict_proba(X).tolist()]

    def predict(self, X: Any, *, lengths: ArrayLike | None = None) -> Any:
        """Return the best output for each example.

        Parameters
        ----------
        X : list, generator, array or sparse matrix
            As in ``fit``.
        lengths : array of int, default=None
            How many rows of a flat `X` each sequence has.

        Returns
        -------
        list of lists, or of arrays if the training labels were arrays
            Labels. For single nodes an array of shape (n,), for a problem of your own a list of its outputs.

        Examples
        --------
        >>> from dualfield import StructuredSVM
        >>> StructuredSVM().fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]]).predict([[["a"], ["b"]]])
        [['x', 'y']]
        """
        check_is_fitted(self)
        if self._is_custom:
            problem, w = self._of_fit("structure"), read_only(self.parameters_)
            return [problem.argmax(w, x) for x in X]
        if self._is_single:
            return self.classes_[self.decision_scores(X).node.argmax(axis=1)]
        return super().predict(X, lengths=lengths)

    @available_if(lambda model: model._is_single)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Return scores, where ``structure="single"``: of the second class over the first with two, else of each class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Examples.

        Returns
        -------
        array of shape (n,) with two classes, else (n, n_classes)
            Scores; columns follow ``classes_``.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import StructuredSVM
        >>> StructuredSVM("single").fit(np.eye(2), [3, 5]).decision_function([[2.0, 0.0]]).round(3)
        array([-2.])
        >>> StructuredSVM("single").fit(np.eye(3), [3, 5, 7]).decision_function([[2.0, 0.0, 0.0]]).shape
        (1, 3)
        """
        node = self.decision_scores(X).node
        return node[:, 1] - node[:, 0] if node.shape[1] == 2 else node

    def score(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, lengths: ArrayLike | None = None
    ) -> float:
        """Return the share of nodes whose label is right; for a problem of your own, minus the mean loss.

        Parameters
        ----------
        X, lengths
            As in :meth:`predict`.
        y : list of lists of labels
            True labels; for single nodes of shape (n,), for a problem of your own its outputs.
        sample_weight : array of shape (n,), default=None
            Weights of single nodes, or of examples of a problem of your own.

        Returns
        -------
        float
            The higher the better.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import StructuredSVM
        >>> StructuredSVM("single").fit(np.eye(2), [3, 5]).score(np.eye(2), [3, 3])
        0.5
        """
        if self._is_custom:
            problem = self._of_fit("structure")
            losses = [problem.loss(true, found) for true, found in zip(y, self.predict(X), strict=True)]
            weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
            return -float(np.average(losses, weights=weights))
        if self._is_single:
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        if sample_weight is not None:
            raise ValueError("sample_weight must be None in the score of sequences: nodes are counted.")
        return super().score(X, y, lengths=lengths)

    @property
    def coef_(self) -> Any:
        """Weights of the columns, shape (n_labels, n_columns); for a problem of your own w itself."""
        check_is_fitted(self)
        return self.parameters_ if self._is_custom else super().coef_

    def _read(self, X: Any, lengths: ArrayLike | None) -> tuple[Batch, Batch | None]:
        if not self._is_single:
            return super()._read(X, lengths)
        check_is_fitted(self)
        rows = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return _one_node_each(rows), None

    def _single_codes(self, y: Any, n: int) -> NDArray[np.int32]:
        targets = np.asarray(y)
        if targets.shape != (n,):
            raise ValueError(f"y must have shape ({n},), a label for each row of X. Got {targets.shape}.")
        unknown = sorted(set(targets.tolist()) - set(self.classes_.tolist()), key=str)
        if unknown:
            raise ValueError(f"y has labels not seen in training: {unknown}.")
        return np.searchsorted(self.classes_, targets).astype(np.int32)

    def _single_data(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> TrainingData:
        rows, targets = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(targets)
        classes, inverse = np.unique(targets, return_inverse=True)
        codes: NDArray[np.int32] = inverse.astype(np.int32)
        if len(classes) < 2:
            raise ValueError(f"y must have at least two classes. Got one class: {classes[0]!r}.")
        kind: Any = {"U": "str", "S": "str", "O": "str", "b": "bool"}.get(classes.dtype.kind, "int")
        names = getattr(self, "feature_names_in_", None)
        labels, nodes = Labels(classes, kind, True), _one_node_each(rows, None if names is None else tuple(names))
        chain = Chain(len(classes))
        no_transitions = np.zeros(chain.n_cliques, dtype=bool)
        table = FeatureTable.all(nodes.n_columns, len(classes))
        if self.kernel is not None:
            table = Expansion.table(len(classes))
        owner = type(self).__name__
        weights = float(self.C) * example_weights(nodes, labels, codes, sample_weight, self.class_weight, owner)
        if not weights.any():
            raise ValueError("sample_weight and class_weight must leave an example with a weight above zero.")
        score_map = LinearScores(chain, table, None, no_transitions)
        return TrainingData(nodes, None, labels, codes, None, chain, score_map, weights, self._cost_table(labels))

    def _model_record(self) -> Fields:
        found: Calibration | None = getattr(self, "calibration_", None)
        return {**super()._model_record(), "calibration": None if found is None else found.record()}

    def _restore_model(self, record: Record) -> None:
        super()._restore_model(record)
        if record.has("calibration"):
            self.calibration_ = Calibration.from_record(record.child("calibration"))
        if self._is_single:
            chain, weights = self.structure_, record.child("weights")
            plain = self.vocabulary_ is None and isinstance(chain, Chain) and chain.order == 1
            plain = plain and not weights.has("ends") and not weights.has("pair")
            record.check(plain, "single nodes have columns of numbers, and neither transitions nor ends.")
            expansion, node = self.expansion_, weights.child("node")
            n_columns = node.integer("n_columns") if expansion is None else expansion.n_columns
            record.check(n_columns == self.n_features_in_, f"it has {n_columns} columns, not {self.n_features_in_}.")

    def _fit_custom(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None,
        old: Any,
        monitor: Callable[[Moment, Any], Any] | None,
        checkpoint: Any,
    ) -> Solution[Floats]:
        owner, inputs, outputs = type(self).__name__, list(X), list(y)
        for name, value, default in (("cost", self.cost, "hamming"), ("class_weight", self.class_weight, None)):
            if not (value is default or (isinstance(value, str) and value == default)):
                raise ValueError(
                    f"The {name!r} parameter of {owner} cannot be combined with a custom problem; define it in the "
                    "problem's loss."
                )
        if self.rescaling != "margin":
            raise ValueError("rescaling='slack' cannot be combined with a custom problem, whose argmax adds the loss.")
        if checkpoint is not None:
            raise ValueError("checkpoint cannot be combined with a custom problem.")
        if len(inputs) != len(outputs) or not inputs:
            raise ValueError(f"X and y must have as many examples, at least one. Got {len(inputs)} and {len(outputs)}.")
        n = check_custom_problem(self.structure, inputs, outputs)
        weights = np.ones(len(inputs)) if sample_weight is None else np.array(sample_weight, dtype=np.float64)
        if weights.shape != (len(inputs),) or not (np.isfinite(weights) & (weights >= 0.0)).all() or not weights.any():
            raise ValueError(f"sample_weight must be {len(inputs)} finite numbers of at least 0, not all 0.")
        positive = check_signs(owner, self.positive, n)
        planes = CustomPlanes(self.structure, inputs, outputs, float(self.C) * weights, SquaredNorm(n, positive))
        start = None if old is None or len(old.parameters_) != n else old.parameters_
        solver = pick_solver(owner, self.solver, prototypes.custom_planes())
        suited(solver, planes)
        rule = margin_rule(solver, float(self.tol), self.max_iter)
        solution = self._run(partial(solve_hinge, solver, planes, rule, start), None, start, monitor, None)
        self.n_features_ = n
        self._keep_solution(solution)
        return solution


def _one_node_each(rows: Any, names: tuple[str, ...] | None = None) -> Batch:
    return replace(Batch.build(rows, lengths=np.ones(rows.shape[0], dtype=np.int64)), column_names=names)
