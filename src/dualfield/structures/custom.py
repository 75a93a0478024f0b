"""User-defined output spaces."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse

from dualfield.data.arrays import Floats
from dualfield.structures.custom_answers import read_only

__all__ = ["CustomProblem", "check_custom_problem", "joint_feature_row"]


@runtime_checkable
class CustomProblem(Protocol):
    r"""The interface of user-defined output spaces: rankings, matchings, sets, trees.

    The score of an output y for an input x is ⟨w, joint_feature(x, y)⟩. An attribute ``n_parameters``, the length of w,
    is optional.

    Examples
    --------
    Which of three boxes is meant:

    >>> import numpy as np
    >>> from dualfield.structures import CustomProblem
    >>> class Choice:
    ...     def joint_feature(self, x, y):
    ...         return x[y]
    ...     def loss(self, y_true, y):
    ...         return float(y != y_true)
    ...     def argmax(self, w, x, y_true=None):
    ...         scores = x @ w
    ...         if y_true is not None:
    ...             scores = scores + (np.arange(len(x)) != y_true)
    ...         return int(scores.argmax())
    >>> isinstance(Choice(), CustomProblem)
    True
    """

    @abstractmethod
    def joint_feature(self, x: Any, y: Any) -> Any:
        """Return the features of an input with an output: a 1-d array, or a sparse matrix of one row.

        Parameters
        ----------
        x, y : object
            Input and output.

        Returns
        -------
        array of shape (n_parameters,) or sparse matrix of shape (1, n_parameters)
            Finite numbers.
        """

    @abstractmethod
    def loss(self, y_true: Any, y: Any) -> float:
        """Return the cost of y if y_true is right; at least 0, and 0 for the truth itself.

        Parameters
        ----------
        y_true, y : object
            The right output, and another one.

        Returns
        -------
        float
            The cost.
        """

    @abstractmethod
    def argmax(self, w: Floats, x: Any, y_true: Any = None) -> Any:
        """Return the output with the best score; where y_true is given, with the best score plus loss.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters, which cannot be written to.
        x : object
            Input.
        y_true : object, default=None
            The right output.

        Returns
        -------
        object
            An output that no other one beats.
        """


def joint_feature_row(
    problem: CustomProblem, x: Any, y: Any, n_parameters: int | None, place: str = ""
) -> scipy.sparse.csr_array:
    """Ask a problem for features, and check them.

    Parameters
    ----------
    problem : CustomProblem
        The problem.
    x, y : object
        Input and output.
    n_parameters : int or None
        How many there must be; None: any number.
    place : str, default=""
        Where x and y come from, for error messages.

    Returns
    -------
    scipy.sparse.csr_array of shape (1, n_parameters)
        The features.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.structures.custom import joint_feature_row
    >>> class Product:
    ...     def joint_feature(self, x, y):
    ...         return x * y
    >>> joint_feature_row(Product(), np.array([1.0, 0.0]), 3.0, 2).toarray()
    array([[3., 0.]])
    """
    features: Any = problem.joint_feature(x, y)
    name = f"{type(problem).__name__}.joint_feature"
    row: Any = features
    if scipy.sparse.issparse(features):
        row = row.tocsr() if row.ndim == 2 else row.reshape(1, -1).tocsr()
        row = scipy.sparse.csr_array(row).astype(np.float64)
    else:
        array = np.asarray(features, dtype=np.float64)
        if array.ndim != 1:
            raise ValueError(f"{name} must return a 1-d array or a sparse row. Got shape {array.shape}.")
        row = scipy.sparse.csr_array(array[None])
    if row.shape[0] != 1 or (n_parameters is not None and row.shape[1] != n_parameters):
        as_before = ", as for X[0]" if place else ""
        raise ValueError(f"{name} must return {n_parameters} features{as_before}. Got {row.shape[1]}{place}.")
    if not np.isfinite(row.data).all():
        raise ValueError(f"{name} must return finite numbers. Got NaN or infinity.")
    checked: scipy.sparse.csr_array = row
    return checked


def check_custom_problem(problem: CustomProblem, X: Sequence[Any], y: Sequence[Any], n_checked: int = 3) -> int:
    """Check the methods of a problem on a few examples, at zero weights and at random ones.

    Parameters
    ----------
    problem : CustomProblem
        The problem.
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
    >>> import numpy as np
    >>> from dualfield.structures import check_custom_problem
    >>> class Lazy:
    ...     def joint_feature(self, x, y):
    ...         return x[y]
    ...     def loss(self, y_true, y):
    ...         return float(y != y_true)
    ...     def argmax(self, w, x, y_true=None):
    ...         return 0
    >>> check_custom_problem(Lazy(), [np.eye(2)], [1])
    Traceback (most recent call last):
        ...
    ValueError: Lazy.argmax(w, x) must maximise the score. For X[0] its output has...
    """
    name = type(problem).__name__
    for method in ("joint_feature", "loss", "argmax"):
        if not callable(getattr(problem, method, None)):
            raise TypeError(f"structure must have a method {method!r}. Got {problem!r}, which has none.")
    given = getattr(problem, "n_parameters", None)
    first = joint_feature_row(problem, X[0], y[0], None if given is None else int(given))
    n_parameters, rng = int(first.shape[1]), np.random.default_rng(0)
    for i in range(len(y)):
        joint_feature_row(problem, X[i], y[i], n_parameters, f" for X[{i}]")
    for i in range(min(n_checked, len(y))):
        itself = float(problem.loss(y[i], y[i]))
        if itself != 0.0:
            raise ValueError(f"{name}.loss(y, y) must be 0. Got {itself!r} for y[{i}].")
        random = 3.0 * rng.standard_normal(n_parameters)
        tried = [read_only(w) for w in (np.zeros(n_parameters), random, -random)]
        # Outputs that are the best ones at some weights are rivals at all others.
        known = [problem.argmax(w, X[i], truth) for w in tried for truth in (y[i], None)]
        for w in tried:
            _check_argmax(problem, w, X[i], y[i], i, known)
    return n_parameters


def _check_argmax(problem: CustomProblem, w: Floats, x: Any, true: Any, i: int, known: list[Any]) -> None:
    name = type(problem).__name__
    found, plain = problem.argmax(w, x, true), problem.argmax(w, x)
    for answer in (found, plain, *known):
        cost = float(problem.loss(true, answer))
        if not 0.0 <= cost < np.inf:
            raise ValueError(f"{name}.loss must return a finite number of at least 0. Got {cost!r} for y[{i}].")

    def score(y: Any) -> float:
        return float((joint_feature_row(problem, x, y, len(w)) @ w)[0])

    value, rivals = score(found) + problem.loss(true, found), [("the truth", true), ("argmax(w, x)", plain)]
    rivals += [("an output that it returned at other weights", y) for y in known]
    for rival, y in rivals:
        other = score(y) + problem.loss(true, y)
        if value < other - 1e-9 * max(1.0, abs(other)):
            raise ValueError(
                f"{name}.argmax(w, x, y_true) must maximise score plus loss. For X[{i}] its output has {value:.6g}; "
                f"{rival} has {other:.6g}."
            )
    best = score(plain)
    for rival, y in rivals:
        other = score(y)
        if best < other - 1e-9 * max(1.0, abs(other)):
            raise ValueError(
                f"{name}.argmax(w, x) must maximise the score. For X[{i}] its output has {best:.6g}; "
                f"{rival} has {other:.6g}."
            )
