"""Planes of user-defined output spaces."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.objectives.planes import Planes
from dualfield.regularisers import PlaneRegulariser
from dualfield.structures.custom import CustomProblem, joint_feature_row
from dualfield.structures.custom_answers import EarlierAnswers, read_only

__all__ = ["CustomPlanes"]

_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False)
class CustomPlanes:
    r"""The structural hinge loss over outputs of any kind, with an oracle in Python.

    .. math::
        P(w) = R(w)
        + \sum_i c_i \max_y \, [ \Delta(y_i, y) + \langle w, F(x_i, y) - F(x_i, y_i) \rangle ]

    with Δ the ``loss`` and F the ``joint_feature`` of the problem; its ``argmax`` finds the maximum.

    Parameters
    ----------
    problem : CustomProblem
        The output space.
    X, y : sequence
        Inputs and their right outputs.
    weights : array of shape (n_examples,)
        c_i of the formula.
    regulariser : PlaneRegulariser
        R of the formula; it knows the length of w.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.objectives import CustomPlanes
    >>> from dualfield.regularisers import SquaredNorm
    >>> class Sign:                                  # an output is -1 or 1, a binary support vector machine
    ...     def joint_feature(self, x, y):
    ...         return 0.5 * y * x
    ...     def loss(self, y_true, y):
    ...         return float(y != y_true)
    ...     def argmax(self, w, x, y_true=None):
    ...         return max((-1, 1), key=lambda y: 0.5 * y * w @ x + (y_true is not None and y != y_true))
    >>> problem = CustomPlanes(Sign(), np.eye(2), [1, -1], np.ones(2), SquaredNorm(2))
    >>> problem.planes(np.array([0.5, 0.5])).values(np.array([0.5, 0.5]))       # 1 - 0.5, 1 + 0.5
    array([0.5, 1.5])
    """

    problem: CustomProblem
    X: Sequence[Any]
    y: Sequence[Any]
    weights: Floats
    regulariser: PlaneRegulariser

    @property
    def n_parameters(self) -> int:
        """Length of w."""
        return self.regulariser.n_parameters

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.weights)

    @cached_property
    def _truth(self) -> list[scipy.sparse.csr_array]:
        return [self._features(i, self.y[i]) for i in range(self.n_examples)]

    @cached_property
    def _earlier(self) -> EarlierAnswers:
        return EarlierAnswers()

    def _features(self, i: int, y: Any) -> scipy.sparse.csr_array:
        return joint_feature_row(self.problem, self.X[i], y, self.n_parameters)

    def planes(self, w: Floats, examples: NDArray[np.int64] | None = None) -> Planes:
        """Return the highest plane of each example at w, or of those listed.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.
        examples : int array of shape (m,), default=None
            Which examples; None: all.

        Returns
        -------
        Planes
            One plane for each.

        Raises
        ------
        ValueError
            If the problem's ``argmax`` returns an output that the truth beats, or an output that it returned earlier:
            then it is no maximum, and no gap would be true.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.objectives import CustomPlanes
        >>> from dualfield.regularisers import SquaredNorm
        >>> class Choice:
        ...     def joint_feature(self, x, y):
        ...         return x[y]
        ...     def loss(self, y_true, y):
        ...         return float(y != y_true)
        ...     def argmax(self, w, x, y_true=None):
        ...         return int((x @ w + (0.0 if y_true is None else np.arange(len(x)) != y_true)).argmax())
        >>> CustomPlanes(Choice(), [np.eye(3)], [2], np.ones(1), SquaredNorm(3)).planes(np.zeros(3)).slopes.toarray()
        array([[ 1.,  0., -1.]])
        """
        chosen = np.arange(self.n_examples) if examples is None else np.asarray(examples, dtype=np.int64)
        offsets, rows, keys = np.zeros(len(chosen)), [], list[Hashable]()
        for at, i in enumerate(chosen.tolist()):
            found = self.problem.argmax(read_only(w), self.X[i], self.y[i])
            offsets[at] = self.problem.loss(self.y[i], found)
            slope = (self._features(i, found) - self._truth[i]).tocsr()
            slope.eliminate_zeros()
            value = offsets[at] + float((slope @ w)[0])
            if not value >= -_ROUNDING * (1.0 + float((abs(slope) @ np.abs(w))[0])):
                raise ValueError(
                    f"{type(self.problem).__name__}.argmax(w, x, y_true) returned an output for X[{i}] whose score "
                    f"plus loss is {-value:.3g} below that of the truth: it is not the largest."
                )
            beaten = self._earlier.beat(i, value, w)
            if beaten > 0.0:
                raise ValueError(
                    f"{type(self.problem).__name__}.argmax(w, x, y_true) returned an output for X[{i}] whose score "
                    f"plus loss is {beaten:.3g} below that of an output it returned at other weights: it is not the "
                    "largest. It must add loss(y_true, y) to the scores, and look at all outputs."
                )
            self._earlier.add(i, float(offsets[at]), slope)
            rows.append(slope)
            # Outputs need not be hashable: planes are told apart by their numbers.
            keys.append((float(offsets[at]), slope.indices.tobytes(), slope.data.tobytes()))
        empty = scipy.sparse.csr_array((0, self.n_parameters))
        return Planes(chosen, offsets, scipy.sparse.vstack(rows, format="csr") if rows else empty, keys)
