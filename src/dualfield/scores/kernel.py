"""Scores of nodes and of pairs of nodes that come from a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from dualfield.data import Batch
from dualfield.data.arrays import Floats
from dualfield.data.records import FLOATS, Fields, Record, matrix_record
from dualfield.kernels import Kernel
from dualfield.scores.feature_table import FeatureTable
from dualfield.structures import Structure

__all__ = ["Expansion"]


@dataclass(frozen=True, eq=False)
class Expansion:
    """Scores as an expansion in kernel functions: label k scores Σ_j coefficients[j, k] k(points[j], x).

    Of a node x is its row, and k its label; of an edge x is what :func:`inputs_of_pairs` makes of it, and k the pair of
    labels at its ends. A structure takes the scores as columns, one for each label: :attr:`table` says that each column
    scores its own label.

    Parameters
    ----------
    kernel : Kernel
        The kernel function.
    points : array or sparse matrix of shape (n_points, n_columns), or None
        Where the kernel functions stand; None for a precomputed kernel.
    coefficients : array of shape (n_points, n_labels)
        Their coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.data import Batch
    >>> from dualfield.kernels import Kernel
    >>> from dualfield.scores import Expansion
    >>> expansion = Expansion(Kernel("linear"), np.array([[1.0]]), np.array([[2.0, -2.0]]))
    >>> expansion.columns(Batch.build([np.array([[3.0], [0.0]])])).dense
    array([[ 6., -6.],
           [ 0.,  0.]])
    """

    kernel: Kernel
    points: Any
    coefficients: Floats

    @property
    def n_columns(self) -> int:
        """Columns of the input."""
        return len(self.coefficients) if self.points is None else int(self.points.shape[1])

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.coefficients.shape[1])

    def record(self) -> Fields:
        """Return the record of the expansion."""
        if not np.isfinite(self.coefficients).all():
            raise ValueError("The model cannot be saved: it has coefficients that are not finite.")
        points = None if self.points is None else matrix_record(self.points)
        return {"kernel": self.kernel.record(), "points": points, "coefficients": self.coefficients}

    @classmethod
    def from_record(cls, record: Record, n_labels: int, n_columns: int | None = None) -> Expansion:
        """Make an expansion of its record, which is checked; in a mapped file numbers are at their first use."""
        kernel = Kernel.from_record(record.child("kernel"))
        coefficients = record.array("coefficients", np.float64, (None, n_labels), finite=True, check="later")
        n, points = len(coefficients), None
        record.check(n > 0, f"its {record.place('coefficients')!r} must have a row for each point.")
        if record.has("points") == kernel.is_precomputed:
            raise record.fault(f"its kernel is {kernel.function!r}, which its points do not fit.")
        if not kernel.is_precomputed:
            points = record.matrix("points", (n, n_columns), FLOATS, finite=True, check="later")
            record.check(points.shape[1] > 0, f"its {record.place('points')!r} must have columns.")
        return cls(kernel, points, coefficients)

    @staticmethod
    def table(n_labels: int) -> FeatureTable:
        """Return the table in which each column scores its own label.

        Parameters
        ----------
        n_labels : int
            Number of labels.

        Returns
        -------
        FeatureTable
            One feature for each label.

        Examples
        --------
        >>> from dualfield.scores import Expansion
        >>> Expansion.table(2).outputs
        array([0, 1], dtype=int32)
        """
        return FeatureTable(np.arange(n_labels + 1), np.arange(n_labels, dtype=np.int32), n_labels)

    def columns(self, batch: Batch, n_threads: int = 1) -> Batch:
        """Return the node scores of examples as a batch with a column for each label.

        Parameters
        ----------
        batch : Batch
            The examples.
        n_threads : int, default=1
            Number of threads.

        Returns
        -------
        Batch
            Dense, of the same lengths.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Batch
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.scores import Expansion
        >>> Expansion(Kernel(), np.array([[1.0]]), np.ones((1, 1))).columns(Batch.build([np.array([[1.0]])])).dense
        array([[1.]])
        """
        node = self.kernel.scores(rows_of(batch), self.points, self.coefficients, n_threads)
        return Batch(batch.offsets, self.n_labels, np.ascontiguousarray(node), connected=batch.connected)

    def pair_columns(self, structure: Structure, nodes: Batch, pairs: Batch | None, n_threads: int = 1) -> Batch:
        """Return the scores of edges as a batch with a column for each pair of labels.

        Parameters
        ----------
        structure : Structure
            How nodes are joined.
        nodes, pairs : Batch
            Rows of nodes, and of edges where these have features of their own; else None.
        n_threads : int, default=1
            Number of threads.

        Returns
        -------
        Batch
            Dense, with the rows that the structure expects of :meth:`dualfield.structures.Structure.pair_batch`.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Batch
        >>> from dualfield.kernels import Kernel
        >>> from dualfield.scores import Expansion
        >>> from dualfield.structures import Chain
        >>> nodes = Batch.build([np.array([[1.0], [2.0]])])
        >>> Expansion(Kernel("linear"), np.array([[1.0, 1.0]]), np.eye(1)).pair_columns(Chain(1), nodes, None).dense
        array([[0.],
               [3.]])
        """
        rows, at = inputs_of_pairs(structure, nodes, pairs), structure.edge_rows(nodes.shape)
        like = structure.pair_batch(nodes) if pairs is None else pairs
        columns = np.zeros((like.n_nodes, self.n_labels))
        if len(at):
            columns[at] = self.kernel.scores(rows, self.points, self.coefficients, n_threads)
        return Batch(like.offsets, self.n_labels, columns)


class Expansions(NamedTuple):
    """Scores of nodes and of edges that come from kernels; None where they do not."""

    nodes: Expansion | None
    pairs: Expansion | None


def inputs_of_pairs(structure: Structure, nodes: Batch, pairs: Batch | None) -> Any:
    """Return what a kernel on pairs of nodes sees of each edge.

    That is the features of the edge where edges have some, else the rows of its two nodes side by side, that of the
    node it comes from first (x_t of Memisevic 2006, section 4.2).
    """
    if pairs is not None:
        return rows_of(pairs)[structure.edge_rows(nodes.shape)]
    rows, ends = rows_of(nodes), structure.edge_ends(nodes.shape)
    if isinstance(rows, np.ndarray):
        return np.hstack([rows[ends[:, 0]], rows[ends[:, 1]]])
    return sparse.csr_array(sparse.hstack([rows[ends[:, 0]], rows[ends[:, 1]]]))


def rows_of(batch: Batch) -> Any:
    """Return the rows of all nodes: a dense matrix, or compressed rows."""
    return batch.dense if batch.dense is not None else batch.to_csr()
