"""The losses of one partition in columns of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats, Ints
from dualfield.losses import Loss
from dualfield.objectives.examples import Examples
from dualfield.objectives.objective import Objective
from dualfield.objectives.touched import TouchedValues, touched_bytes
from dualfield.scores import FeatureTable, LinearScores


@dataclass(frozen=True, eq=False, kw_only=True)
class PartProblem:
    """The losses of one partition in columns of its own: what a worker holds.

    Parameters
    ----------
    examples : Examples
        Its examples.
    score_map : LinearScores
        The features that its columns have in the model.
    loss : Loss
        T and Δ.
    places : int32 array of shape (m,)
        Which of the weights of the model they have, in the order of `LinearScores.used_places` of both.
    size : int
        How many weights the model has that can differ from zero: these travel.
    n_threads : int, default=1
        Number of threads; results do not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.objectives.part_problem import PartProblem
    >>> from dualfield.solvers import prototypes
    >>> whole = prototypes.objective(temperature=1.0)
    >>> n = whole.score_map.used_places.size
    >>> part = PartProblem(
    ...     examples=whole.examples,
    ...     score_map=whole.score_map,
    ...     loss=whole.loss,
    ...     places=np.arange(n, dtype=np.int32),
    ...     size=n,
    ... )
    >>> round(part.evaluate(np.zeros(n))[0], 4)          # log 2
    0.6931
    """

    examples: Examples
    score_map: LinearScores
    loss: Loss
    places: NDArray[np.int32]
    size: int
    n_threads: int = 1

    @cached_property
    def objective(self) -> Objective:
        """The same as an objective, with a penalty of its own; it is made where it is used, and not sent."""
        return Objective(self.score_map, self.examples, self.loss, None, self.n_threads)

    @cached_property
    def own(self) -> Ints:
        """Places of its weights among the parameters of its own score map."""
        return self.score_map.used_places

    @property
    def is_empty(self) -> bool:
        """Whether there are no examples."""
        return self.examples.nodes.n_nodes == 0

    @property
    def bytes_up(self) -> int:
        """Bytes of the vector that it sends in an exchange."""
        return touched_bytes(self.places.size, self.size)

    def evaluate(self, w: Floats) -> tuple[float, float, float, TouchedValues]:
        """Return losses, their magnitude and slack, and their gradient at the weights that it touches.

        Parameters
        ----------
        w : array of shape (size,)
            Weights of the model.

        Returns
        -------
        tuple
            What :func:`~dualfield.objectives.touched.add_values` adds up.
        """
        if self.is_empty:
            return 0.0, 0.0, 0.0, self.at_model(np.zeros(self.score_map.n_parameters))
        loss, gradient, magnitude, slack = self.objective.evaluate(self.at_home(w))
        return loss, magnitude, slack, self.at_model(gradient)

    def value(self, w: Floats) -> float:
        """Return the losses alone.

        Parameters
        ----------
        w : array of shape (size,)
            Weights of the model.

        Returns
        -------
        float
            Without a penalty.
        """
        at_home = self.at_home(w)
        return 0.0 if self.is_empty else self.objective.value(at_home) - self.objective.regulariser.value(at_home)

    def at_home(self, w: Floats) -> Floats:
        """Return the weights that it touches, at their places here.

        Parameters
        ----------
        w : array of shape (size,)
            Weights of the model.

        Returns
        -------
        array
            Parameters of its own score map.
        """
        here = np.zeros(self.score_map.n_parameters)
        here[self.own] = w[self.places]
        return here

    def at_model(self, here: Floats) -> TouchedValues:
        """Return parameters of its own score map at their places among the weights of the model.

        Parameters
        ----------
        here : array
            Parameters of its own score map.

        Returns
        -------
        TouchedValues
            12 bytes for each, or 8 for every weight of the model where that is less.
        """
        return TouchedValues(self.places, here[self.own], self.size).shortest()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("objective", "own")}

    def __sizeof__(self) -> int:
        """Return the bytes of its arrays, by which Dask plans."""
        rows = [one for one in (self.examples.nodes, self.examples.pairs) if one is not None]
        arrays: list[NDArray[Any]] = [self.places, self.examples.labels, self.examples.weights]
        arrays += [one for row in rows for one in (row.indptr, row.indices, row.values, row.dense) if one is not None]
        return int(sum(array.nbytes for array in arrays))


class PartScores:
    """Score maps of some columns of a model, and which weights of it they have.

    Parameters
    ----------
    whole : LinearScores
        That of the model.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.objectives.part_problem import PartScores
    >>> from dualfield.scores import FeatureTable, LinearScores
    >>> from dualfield.structures import Chain
    >>> whole = LinearScores(Chain(2), FeatureTable.all(3, 2))
    >>> part, places = PartScores(whole).of(np.array([2]))
    >>> part.n_features, places                   # two labels and four transitions
    (6, array([4, 5, 6, 7, 8, 9], dtype=int32))
    """

    def __init__(self, whole: LinearScores) -> None:
        self._whole = whole

    def of(
        self, columns: NDArray[Any], pair_columns: NDArray[Any] | None = None
    ) -> tuple[LinearScores, NDArray[np.int32]]:
        """Return the score map of a part.

        Parameters
        ----------
        columns : int array of shape (n_columns of the part,)
            What the columns of the part are called in the model.
        pair_columns : int array, default=None
            The same for features of pairs.

        Returns
        -------
        score_map : LinearScores
            For the columns of the part.
        places : int32 array of shape (m,)
            Which of the used weights of the model its used weights are.
        """
        whole, begin = self._whole, self._whole.node.outputs.size
        node, features = _rows_of(whole.node, columns)
        pair, pair_features = None, np.zeros(0, dtype=np.int64)
        if whole.pair is not None:
            pair, pair_features = _rows_of(whole.pair, np.zeros(0, int) if pair_columns is None else pair_columns)
            pair_features = begin + pair_features
            begin += whole.pair.outputs.size
        part = LinearScores(whole.structure, node, pair, whole.clique_mask > 0, whole.with_ends)
        shared = begin + np.arange(np.count_nonzero(whole.shared_mask))
        return part, np.concatenate([features, pair_features, shared]).astype(np.int32)


def _rows_of(table: FeatureTable, columns: NDArray[Any]) -> tuple[FeatureTable, Ints]:
    """Return the features of some columns as a table, and which features of the whole one they are."""
    sizes = np.diff(table.indptr)[columns]
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    features = np.arange(indptr[-1]) + np.repeat(table.indptr[columns] - indptr[:-1], sizes)
    return FeatureTable(indptr, table.outputs[features], table.n_outputs), features
