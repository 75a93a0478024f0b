"""User-defined latent models: their contract, its check, and the problem that they pose."""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.objectives.latent import Completion
from dualfield.structures.custom import CustomProblem, joint_feature_row
from dualfield.structures.custom_answers import EarlierAnswers, read_only

__all__ = ["LatentModel", "check_latent_model"]

_METHODS = ("joint_feature", "loss", "infer", "loss_augmented", "complete")


@runtime_checkable
class LatentModel(Protocol):
    r"""What a latent model of a user's own must answer. The score of (y, h) is ⟨w, joint_feature(x, y, h)⟩.

    Inputs x, outputs y and latent variables h are objects of any kind. Optional: an attribute ``n_parameters``, the
    length of w, and a method ``init_latent(x, y, rng)`` that draws latent variables, without which the fit needs
    ``init``.

    Examples
    --------
    A number of a list is meant, and the label says whether it is positive. Which one is meant is hidden:

    >>> import numpy as np
    >>> from dualfield.objectives.latent_custom import LatentModel, check_latent_model
    >>> class Meant:
    ...     def joint_feature(self, x, y, h):
    ...         return np.array([0.5 * y * x[h]])
    ...     def loss(self, y_true, y, h):
    ...         return float(y != y_true)
    ...     def _best(self, w, x, outputs, y_true=None):
    ...         pairs = [(y, h) for y in outputs for h in range(len(x))]
    ...         cost = lambda y: 0.0 if y_true is None else self.loss(y_true, y, None)
    ...         return max(pairs, key=lambda p: float(w @ self.joint_feature(x, *p)) + cost(p[0]))
    ...     def infer(self, w, x):
    ...         return self._best(w, x, (-1, 1))
    ...     def loss_augmented(self, w, x, y_true):
    ...         return self._best(w, x, (-1, 1), y_true)
    ...     def complete(self, w, x, y):
    ...         return self._best(w, x, (y,))[1]
    ...     def init_latent(self, x, y, rng):
    ...         return int(rng.randint(len(x)))
    >>> isinstance(Meant(), LatentModel), check_latent_model(Meant(), [[1.0, -2.0]], [1])
    (True, 1)
    """

    @abstractmethod
    def joint_feature(self, x: Any, y: Any, h: Any) -> Any:
        """Return the features of an input, an output and latent variables: a 1-d array, or a sparse matrix of one row.

        Parameters
        ----------
        x, y, h : object
            Input, output, latent variables.

        Returns
        -------
        array of shape (n_parameters,) or sparse matrix of shape (1, n_parameters)
            Finite numbers.
        """

    @abstractmethod
    def loss(self, y_true: Any, y: Any, h: Any) -> float:
        """Return what it costs to predict (y, h) where y_true is right; 0 for y_true itself with any h.

        It may not depend on the true latent variables, which are not observed.

        Parameters
        ----------
        y_true : object
            The right output.
        y, h : object
            Predicted output and latent variables.

        Returns
        -------
        float
            At least 0.
        """

    @abstractmethod
    def infer(self, w: Floats, x: Any) -> tuple[Any, Any]:
        """Return the output and latent variables with the best score.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Weights, which cannot be written to.
        x : object
            Input.

        Returns
        -------
        y, h : object
            The best pair.
        """

    @abstractmethod
    def loss_augmented(self, w: Floats, x: Any, y_true: Any) -> tuple[Any, Any]:
        """Return the output and latent variables with the best score plus loss.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Weights, which cannot be written to.
        x, y_true : object
            Input and its right output.

        Returns
        -------
        y, h : object
            The best pair.
        """

    @abstractmethod
    def complete(self, w: Floats, x: Any, y: Any) -> Any:
        """Return the latent variables with the best score for a given output.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Weights, which cannot be written to.
        x, y : object
            Input and output.

        Returns
        -------
        object
            Latent variables.
        """


class _Joined:
    """Outputs and latent variables as one output: features are read and checked as those of plain problems are."""

    def __init__(self, model: LatentModel) -> None:
        self._model = model

    def joint_feature(self, x: Any, y: tuple[Any, Any]) -> Any:
        return self._model.joint_feature(x, *y)


def _joined(model: LatentModel) -> CustomProblem:
    # Errors call it by the name of the user's class.
    return cast(CustomProblem, type(type(model).__name__, (_Joined,), {})(model))


def check_latent_model(model: LatentModel, X: Sequence[Any], y: Sequence[Any], n_checked: int = 3) -> int:
    """Hold a model against its contract on a few examples, at zero weights and at random ones.

    Parameters
    ----------
    model : LatentModel
        The model.
    X, y : sequence
        Inputs and their right outputs.
    n_checked : int, default=3
        How many examples are tried.

    Returns
    -------
    int
        The number of parameters.

    Raises
    ------
    TypeError, ValueError
        If it breaks the contract; the message says how.

    Examples
    --------
    >>> from dualfield.objectives.latent_custom import check_latent_model
    >>> check_latent_model(object(), [1], [1])
    Traceback (most recent call last):
        ...
    TypeError: The 'latent' parameter of LatentStructuredSVM must have a method 'joint_feature'. Got <object object ...
    """
    for method in _METHODS:
        if not callable(getattr(model, method, None)):
            raise TypeError(
                f"The 'latent' parameter of LatentStructuredSVM must have a method {method!r}. Got {model!r}, "
                "which has none."
            )
    given, joined, rng = getattr(model, "n_parameters", None), _joined(model), np.random.default_rng(0)
    n, draw = None if given is None else int(given), getattr(model, "init_latent", None)
    if callable(draw):  # the one way to latent variables that needs no weights, whose number may not be known
        n = int(joint_feature_row(joined, X[0], (y[0], draw(X[0], y[0], np.random.RandomState(0))), n).shape[1])
    if n is None:
        raise TypeError(f"{type(model).__name__} must have an attribute 'n_parameters' or a method 'init_latent'.")
    for i in range(min(n_checked, len(y))):
        for w in (read_only(np.zeros(n)), read_only(rng.standard_normal(n))):
            _check_example(model, joined, w, X[i], y[i], i)
    return n


def _check_example(model: LatentModel, joined: CustomProblem, w: Floats, x: Any, true: Any, i: int) -> None:
    name = type(model).__name__

    def score(y: Any, h: Any) -> float:
        return float((joint_feature_row(joined, x, (y, h), len(w)) @ w)[0])

    def at_least(value: float, other: float, what: str) -> None:
        if value < other - 1e-9 * max(1.0, abs(other)):
            raise ValueError(f"{name}.{what} For X[{i}] it has {value:.6g}; the other has {other:.6g}.")

    completed = model.complete(w, x, true)
    itself = float(model.loss(true, true, completed))
    if itself != 0.0:
        raise ValueError(f"{name}.loss(y, y, h) must be 0 for all h. Got {itself!r} for y[{i}].")
    plain, found = model.infer(w, x), model.loss_augmented(w, x, true)
    for answer in (plain, found):
        cost = float(model.loss(true, *answer))
        if not 0.0 <= cost < np.inf:
            raise ValueError(f"{name}.loss must return a finite number of at least 0. Got {cost!r} for y[{i}].")
    best, truth = score(*found) + model.loss(true, *found), score(true, completed)
    beats = "must return the largest score plus loss, at least that of"
    at_least(best, truth, f"loss_augmented(w, x, y_true) {beats} the completed truth.")
    at_least(best, score(*plain) + model.loss(true, *plain), f"loss_augmented(w, x, y_true) {beats} infer(w, x).")
    at_least(score(*plain), truth, "infer(w, x) must return the largest score, at least that of the completed truth.")
    rivals = [plain[1]] if bool(np.all(plain[0] == true)) else []
    if callable(draw := getattr(model, "init_latent", None)):
        rivals.append(draw(x, true, np.random.RandomState(0)))
    for h in rivals:
        at_least(truth, score(true, h), "complete(w, x, y) must return the best latent variables of y.")


class CustomLatentProblem:
    """Examples with a user's model, as the concave-convex procedure sees them."""

    def __init__(
        self, model: LatentModel, X: Sequence[Any], y: Sequence[Any], weights: Floats, n_parameters: int
    ) -> None:
        self.model, self.X, self.y, self.weights, self.n_parameters = model, X, y, weights, n_parameters
        self._joined = _joined(model)
        # Outputs with latent variables that were met at any weights: an oracle that is below one of them is wrong.
        self._answers, self._completions = EarlierAnswers(), EarlierAnswers()
        self._looked: tuple[Floats, Floats] | None = None  # weights, and score plus loss of the best answers there
        # Latent variables need not be comparable: they are numbered by what they are when written out.
        self._numbers: dict[bytes, int] = {}
        self._hidden: list[Any] = []

    def loss_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return the first term, and a subgradient.

        Raises
        ------
        ValueError
            If an answer is beaten by an earlier one, or by the completed truth: no bound would be true.
        """
        values, rows = np.zeros(len(self.y)), []
        for i, (x, true) in enumerate(zip(self.X, self.y, strict=True)):
            y, h = self.model.loss_augmented(read_only(w), x, true)
            row, cost = joint_feature_row(self._joined, x, (y, h), self.n_parameters), self.model.loss(true, y, h)
            values[i] = float((row @ w)[0]) + cost
            self._refuse(i, "loss_augmented(w, x, y_true)", "score plus loss", self._answers.beat(i, values[i], w))
            self._answers.add(i, float(cost), row)
            if bool(np.all(y == true)):
                self._completions.add(i, 0.0, row)
            rows.append(row)
        self._looked = w.copy(), values
        return float(self.weights @ values), self._sum(rows)

    def loss(self, w: Floats) -> float:
        """Return the first term."""
        return self.loss_and_gradient(w)[0]

    def complete(self, w: Floats, temperature: float = 0.0) -> Completion:
        """Return the best latent variables of the truth.

        Raises
        ------
        ValueError
            If latent variables that were met earlier are better, or if the best answer there is worse than the truth.
        """
        hidden = [self.model.complete(read_only(w), x, y) for x, y in zip(self.X, self.y, strict=True)]
        rows = self._rows(hidden)
        at_hand = self._looked is not None and np.array_equal(self._looked[0], w)
        for i, (x, true, row) in enumerate(zip(self.X, self.y, rows, strict=True)):
            score = float((row @ w)[0])
            self._refuse(i, "complete(w, x, y)", "score", self._completions.beat(i, score, w))
            self._hold(i, row)
            y, h = self.model.infer(read_only(w), x)
            plain = joint_feature_row(self._joined, x, (y, h), self.n_parameters)
            self._refuse(i, "infer(w, x)", "score", self._completions.beat(i, float((plain @ w)[0]), w))
            self._answers.add(i, float(self.model.loss(true, y, h)), plain)
            if self._looked is not None and at_hand:
                beaten = self._answers.beat(i, float(self._looked[1][i]), w)
                self._refuse(i, "loss_augmented(w, x, y_true)", "score plus loss", beaten)
        return self._completion(hidden, rows)

    def given(self, hidden: Sequence[Any]) -> Completion:
        """Return the completion with these latent variables."""
        rows = self._rows(hidden)
        for i, row in enumerate(rows):
            self._hold(i, row)
        return self._completion(hidden, rows)

    def _rows(self, hidden: Sequence[Any]) -> list[scipy.sparse.csr_array]:
        parts = zip(self.X, self.y, hidden, strict=True)
        return [joint_feature_row(self._joined, x, (y, h), self.n_parameters) for x, y, h in parts]

    def _completion(self, hidden: Sequence[Any], rows: list[scipy.sparse.csr_array]) -> Completion:
        return Completion(np.array([self._number(h) for h in hidden], dtype=np.int64), self._sum(rows))

    def _hold(self, i: int, row: scipy.sparse.csr_array) -> None:
        """Keep the truth with latent variables as a rival of all answers to come; it costs nothing."""
        self._completions.add(i, 0.0, row)
        self._answers.add(i, 0.0, row)

    def _refuse(self, i: int, method: str, what: str, beaten: float) -> None:
        if beaten > 0.0:
            raise ValueError(
                f"{type(self.model).__name__}.{method} returned an answer for X[{i}] whose {what} is {beaten:.3g} "
                "below that of the completed truth or of an earlier answer: it is not the largest, and no bound would "
                "be true."
            )

    def hidden(self, states: NDArray[Any]) -> list[Any]:
        """Return the latent variables that numbers stand for."""
        return [self._hidden[at] for at in states.tolist()]

    def _sum(self, rows: list[scipy.sparse.csr_array]) -> Floats:
        return np.asarray(self.weights @ scipy.sparse.vstack(rows, format="csr"))

    def _number(self, h: Any) -> int:
        key = pickle.dumps(h)
        if key not in self._numbers:
            self._numbers[key] = len(self._hidden)
            self._hidden.append(h)
        return self._numbers[key]
