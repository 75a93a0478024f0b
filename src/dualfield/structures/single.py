"""One node: the structure of ordinary classification."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dualfield import _native
from dualfield.structures.base import Structure
from dualfield.structures.checks import Codes, Floats, add_cost, as_floats, check_int, n_threads
from dualfield.structures.scores import Scores


@dataclass(frozen=True)
class Single(Structure):
    r"""One node with one of ``n_labels`` labels; every row of scores is an example of its own.

    The smoothed maximum is :math:`M_T = T \log \sum_k \exp(\mathrm{node}[k] / T)` and the marginals are the softmax of
    the scores divided by T: multinomial logistic regression at T = 1, the Crammer-Singer multiclass SVM at T = 0.

    Parameters
    ----------
    n_labels : int
        Number of labels.

    Examples
    --------
    >>> from dualfield.structures import Single
    >>> single = Single(3)
    >>> single.argmax([[0.0, 2.0, 1.0], [5.0, 0.0, 0.0]])
    array([1, 0], dtype=int32)
    >>> single.marginals([[0.0, 0.0, 0.0]]).node.round(3)
    array([[0.333, 0.333, 0.333]])
    """

    n_labels: int
    _has_edges = False

    def __post_init__(self) -> None:
        check_int("Single", "n_labels", self.n_labels, 1)

    def _bind(
        self,
        scores: Scores | ArrayLike,
        cost: ArrayLike | None,
        temperature: float,
        n_jobs: int | None,
        with_edges: bool = False,
    ) -> _native.Oracle:
        if isinstance(scores, Scores):
            for name in ("transition", "start", "stop"):
                if getattr(scores, name) is not None:
                    raise ValueError(
                        f"Single takes no {name} scores: every row is an example of its own. Use Chain instead."
                    )
            if scores.n_examples != scores.n_nodes and len(scores.offsets) != 2:
                raise ValueError("Single takes examples of one node each. Use Chain for longer ones.")
        node = scores.node if isinstance(scores, Scores) else as_floats("scores", scores, 2)
        if node.shape[1] != self.n_labels:
            raise ValueError(
                f"scores must have {self.n_labels} columns, one for each label. Got shape {node.shape} instead."
            )
        native = _native.SingleStructure(self.n_labels, len(node))
        return _native.Oracle(native, [add_cost(node, cost)], None, 1.0 / temperature, n_threads(n_jobs))

    def _indicator(
        self, scores: Scores | ArrayLike, labels: Codes, cliques: str | None
    ) -> tuple[Floats, Floats | None]:
        indicator = np.zeros((len(labels), self.n_labels))
        indicator[np.arange(len(labels)), labels] = 1.0
        return indicator, None if cliques is None else np.zeros((0 if cliques == "each" else len(labels), 0))
