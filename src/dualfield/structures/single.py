"""One node: the structure of ordinary classification."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dualfield import _native
from dualfield.data.records import Record
from dualfield.data.shapes import Shape
from dualfield.structures.base import Structure
from dualfield.structures.checks import as_floats, check_int
from dualfield.structures.opened import Opened
from dualfield.structures.scores import Scores


@dataclass(frozen=True)
class Single(Structure):
    r"""One node with one of ``n_labels`` labels; every row of scores is one example.

    The smoothed maximum is :math:`M_T = T \log \sum_k \exp(\mathrm{node}[k] / T)` and the marginals are the softmax of
    the scores divided by T: multinomial logistic regression at T = 1, the Crammer-Singer multiclass SVM at T = 0.

    Parameters
    ----------
    n_labels : int, default=None
        Number of labels. None: not known yet, for models that find them in their training data.

    Examples
    --------
    >>> from dualfield.structures import Single
    >>> single = Single(3)
    >>> single.argmax([[0.0, 2.0, 1.0], [5.0, 0.0, 0.0]])
    array([1, 0], dtype=int32)
    >>> single.marginals([[0.0, 0.0, 0.0]]).node.round(3)
    array([[0.333, 0.333, 0.333]])
    """

    name = "single"
    is_flat = True
    n_labels: int = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        known = 0 if self.n_labels is None else check_int("Single", "n_labels", self.n_labels, 1)
        object.__setattr__(self, "n_labels", known)

    @property
    def n_cliques(self) -> int:
        """None: there are no edges."""
        return 0

    def native(self, shape: Shape, *, with_edges: bool = False, with_ends: bool = False) -> _native.SingleStructure:
        """Create the native twin for the examples."""
        if with_edges or with_ends:
            raise ValueError("Single has no edge scores and no start or stop scores.")
        if not (shape.lengths == 1).all():
            raise ValueError("Single takes examples of one node each. Use Chain for longer ones.")
        return _native.SingleStructure(self.n_labels, shape.n_examples)

    def _read_scores(self, scores: Scores | ArrayLike) -> Scores:
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
        return Scores(node, np.arange(len(node) + 1))

    @classmethod
    def from_record(cls, record: Record) -> Single:
        """Make it of its record, which is checked."""
        record.text("kind", (cls.name,))
        return cls(record.integer("n_labels", 1) if record.has("n_labels") else None)  # type: ignore[arg-type]

    def _with_labels(self, n_labels: int, shape: Shape) -> Single:
        return Single(n_labels)

    def open(self, X: Any, lengths: ArrayLike | None = None) -> Opened:
        """Take rows of a matrix, or items of a list, as one node each.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d), data frame, or list of n items
            One node for each row or item; items are dicts or lists of attributes.
        lengths : None
            Every example has one node.

        Returns
        -------
        Opened
            As in :meth:`Structure.open`.

        Examples
        --------
        >>> from dualfield.structures import Single
        >>> Single().open([{"word": "a"}, {"word": "b"}])[0]
        [[{'word': 'a'}], [{'word': 'b'}]]
        """
        if lengths is not None:
            raise ValueError("lengths must be None for single nodes: every row is an example.")
        shape = getattr(X, "shape", None)
        if shape is None:
            items = list(X)
            X = np.asarray(items, dtype=np.float64) if items and _is_numbers(items[0]) else [[item] for item in items]
            shape = getattr(X, "shape", None)
        if shape is None:
            return Opened(X)
        if len(shape) != 2:
            raise ValueError(f"X must have shape (n, d), a row for each example. Got shape {tuple(shape)} instead.")
        return Opened(X, np.ones(shape[0], dtype=np.int64))


def _is_numbers(item: Any) -> bool:
    """Whether an item of a list is a row of numbers, not of attributes."""
    if isinstance(item, np.ndarray):
        return True
    return isinstance(item, (list, tuple)) and bool(item) and isinstance(item[0], (int, float, np.number))
