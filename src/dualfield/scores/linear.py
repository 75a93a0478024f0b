"""Score maps that are linear in features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data import Batch
from dualfield.data.arrays import Floats
from dualfield.data.shapes import Shape
from dualfield.scores.feature_table import FeatureTable, native_rows
from dualfield.structures import Scores, Structure

__all__ = ["LinearScores", "Weights"]


@dataclass(frozen=True, eq=False)
class Weights:
    """The parameters of a linear chain, by kind.

    Parameters
    ----------
    node : array of shape (n_features,)
        One for each feature of the node table.
    cliques : array of shape (n_cliques,)
        One for each window of labels.
    start, stop : array of shape (n_labels,)
        For the first and the last label; zeros if the model has none.
    pair : array of shape (n_pair_features,)
        One for each feature of the pair table.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.scores import Weights
    >>> Weights(np.ones(3), np.zeros(4), np.zeros(2), np.zeros(2), np.zeros(0)).node.sum()
    np.float64(3.0)
    """

    node: Floats
    cliques: Floats
    start: Floats
    stop: Floats
    pair: Floats


class LinearScores:
    r"""Scores that are linear in features of nodes and edges.

    With :math:`x_t` the features of node t,

    .. math::
        \mathrm{node}[t, k] = \sum_j x_{tj} w_{jk}, \qquad
        \mathrm{transition}[t, c] = w_c + \sum_j z_{tj} w_{jc},

    and start and stop scores are further weights. The sums run over the features in the tables.

    Parameters
    ----------
    structure : Structure
        The structure.
    node : FeatureTable
        Columns to labels.
    pair : FeatureTable, default=None
        Columns of a second batch, z, to cliques.
    clique_mask : bool array of shape (n_cliques,), default=None
        Which cliques have a weight; the others score 0. None: all.
    with_ends : bool, default=False
        Whether the first and the last label have weights.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.data import Batch
    >>> from dualfield.scores import FeatureTable, LinearScores
    >>> from dualfield.structures import Chain
    >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
    >>> w = score_map.pack(node=np.array([1.0, -1.0]), cliques=np.zeros(4))
    >>> score_map.scores(w, Batch.build([np.array([[2.0], [3.0]])])).node
    array([[ 2., -2.],
           [ 3., -3.]])
    """

    def __init__(
        self,
        structure: Structure,
        node: FeatureTable,
        pair: FeatureTable | None = None,
        clique_mask: NDArray[np.bool_] | None = None,
        with_ends: bool = False,
    ) -> None:
        self.structure, self.node, self.pair, self.with_ends = structure, node, pair, with_ends
        mask = np.ones(structure.n_cliques) if clique_mask is None else np.asarray(clique_mask, dtype=np.float64)
        self.clique_mask = mask * structure.clique_allowed

    @property
    def _n_ends(self) -> int:
        return self.structure.n_ends if self.with_ends else 0

    @property
    def n_features(self) -> int:
        """Number of parameters that can differ from zero."""
        pairs = 0 if self.pair is None else self.pair.outputs.size
        return int(self.node.outputs.size + pairs + self.clique_mask.sum() + self._n_ends * self.structure.n_labels)

    @property
    def n_parameters(self) -> int:
        """Length of the vector of parameters, which holds some zeros for alignment."""
        return self.shared_begin + self.structure.n_cliques + self._n_ends * self.structure.n_labels

    @property
    def node_places(self) -> NDArray[np.int64]:
        """Where the weight of each feature of the node table is."""
        return self.node._native_map.feature_places()

    @property
    def pair_places(self) -> NDArray[np.int64]:
        """Where the weight of each feature of the pair table is; of none, if there is no such table."""
        if self.pair is None:
            return np.zeros(0, dtype=np.int64)
        return self.pair_begin + self.pair._native_map.feature_places()

    @property
    def pair_begin(self) -> int:
        """Where the weights of the pair table begin."""
        return int(self.node._native_map.size)

    @property
    def shared_begin(self) -> int:
        """Where the weights of the cliques begin; behind them are those of the first and of the last label."""
        return self.pair_begin + (0 if self.pair is None else int(self.pair._native_map.size))

    @property
    def used(self) -> NDArray[np.bool_]:
        """Which parameters can differ from zero."""
        used = np.zeros(self.n_parameters, dtype=bool)
        used[self.used_places] = True
        return used

    @property
    def used_places(self) -> NDArray[np.int64]:
        """Where those are: weights of the features of nodes and pairs, of cliques, of the first and the last label."""
        shared = self.shared_begin + np.flatnonzero(self.shared_mask)
        return np.concatenate([self.node_places, self.pair_places, shared])

    @property
    def shared_mask(self) -> Floats:
        """1 for cliques and ends that have a weight, 0 for those that score nothing."""
        return np.concatenate([self.clique_mask, np.ones(self._n_ends * self.structure.n_labels)])

    def unpack(self, w: Floats) -> Weights:
        """Split a vector of parameters into its parts.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            The vector.

        Returns
        -------
        Weights
            Copies of the parts.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> score_map.unpack(score_map.pack(node=np.array([1.0, 2.0]), cliques=np.zeros(4))).node
        array([1., 2.])
        """
        n, (cliques, start, stop) = self.structure.n_labels, self.unpack_shared(w)
        pair = np.zeros(0)
        if self.pair is not None:
            pair = w[self.pair_places]
        return Weights(
            w[self.node_places],
            cliques,
            np.zeros(n) if start is None else start,
            np.zeros(n) if stop is None else stop,
            pair,
        )

    def pack(
        self,
        node: Floats,
        cliques: Floats,
        start: Floats | None = None,
        stop: Floats | None = None,
        pair: Floats | None = None,
    ) -> Floats:
        """Concatenate parts to a vector of parameters.

        Parameters
        ----------
        node, cliques, start, stop, pair : array
            The parts, as in :class:`Weights`; None: zeros.

        Returns
        -------
        array of shape (n_parameters,)
            The vector.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Chain
        >>> LinearScores(Chain(2), FeatureTable.all(1, 2)).pack(np.ones(2), np.zeros(4)).sum()
        np.float64(2.0)
        """
        w, n = np.zeros(self.n_parameters), self.structure.n_labels
        w[self.node_places] = node
        ends = [np.zeros(n) if end is None else end for end in (start, stop)[: self._n_ends]]
        w[self.shared_begin :] = np.concatenate([cliques * self.clique_mask, *ends])
        if self.pair is not None and pair is not None:
            w[self.pair_places] = pair
        return w

    def bind(
        self,
        batch: Batch,
        pair_batch: Batch | None = None,
        labels: NDArray[np.int32] | None = None,
        weights: Floats | None = None,
        cost: Floats | None = None,
        allowed: NDArray[np.bool_] | None = None,
        temperature: float = 1.0,
    ) -> _native.Problem:
        """Create the native twin of examples under this map.

        Parameters
        ----------
        batch : Batch
            Features of the nodes.
        pair_batch : Batch, default=None
            Features for the pair table, a row for each node.
        labels : int32 array of shape (n_nodes,), default=None
            True labels.
        weights : array of shape (n_examples,), default=None
            c_i of the formula.
        cost : array of shape (n_labels, n_labels), default=None
            Cost of a label (column) where another one is true (row).
        allowed : bool array of shape (n_nodes, n_labels), default=None
            For partly labelled examples: which labels each node may have.
        temperature : float, default=1.0
            T of the formula.

        Returns
        -------
        Problem
            For native calls.

        Examples
        --------
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> type(score_map.bind(Batch.build([np.array([[2.0]])]))).__name__
        'Problem'
        """
        has_pairs = self.pair is not None
        return _native.Problem(
            self.structure.native(batch.shape, with_edges=has_pairs, with_ends=self.with_ends),
            self.node._native_map,
            native_rows(batch),
            None if self.pair is None else self.pair._native_map,
            native_rows(pair_batch) if has_pairs and pair_batch is not None else None,
            self.shared_mask,
            labels,
            weights,
            cost,
            allowed,
            temperature,
        )

    def scores(self, w: Floats, batch: Batch, pair_batch: Batch | None = None, n_threads: int = 1) -> Scores:
        """Compute the scores of examples.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.
        batch, pair_batch : Batch
            As in :meth:`bind`.
        n_threads : int, default=1
            Number of threads.

        Returns
        -------
        Scores
            What the structure is asked about.

        Examples
        --------
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> score_map.scores(np.zeros(score_map.n_parameters), Batch.build([np.array([[2.0]])])).node
        array([[0., 0.]])
        """
        return self.scores_of(self.bind(batch, pair_batch), w, batch.shape, n_threads)

    def scores_of(self, problem: _native.Problem, w: Floats, shape: Shape, n_threads: int = 1) -> Scores:
        """Compute the scores of examples that were bound before.

        Parameters
        ----------
        problem : Problem
            What :meth:`bind` gave.
        w : array of shape (n_parameters,)
            Parameters.
        shape : Shape
            The shapes of the examples.
        n_threads : int, default=1
            Number of threads.

        Returns
        -------
        Scores
            What the structure is asked about.

        Examples
        --------
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> batch = Batch.build([np.array([[2.0]])])
        >>> score_map.scores_of(score_map.bind(batch), np.zeros(score_map.n_parameters), batch.shape).node
        array([[0., 0.]])
        """
        node, edges = _native.score_own(problem, np.ascontiguousarray(w), n_threads)
        cliques, start, stop = self.unpack_shared(w)
        if not self.structure.n_cliques:
            return Scores(node, shape=shape)
        return self.structure.scores_of(node, cliques, None if self.pair is None else edges, (start, stop), shape)

    def unpack_shared(self, w: Floats) -> tuple[Floats, Floats | None, Floats | None]:
        """Return the scores that all edges share, and those of the two ends.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        cliques : array of shape (n_cliques,)
            Weights of the cliques.
        start, stop : array of shape (n_labels,) or None
            Weights of the ends; None if there are none.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Chain
        >>> LinearScores(Chain(2), FeatureTable.all(1, 2)).unpack_shared(np.zeros(10))[0]
        array([0., 0., 0., 0.])
        """
        begin, n = self.shared_begin, self.structure.n_labels
        end = begin + self.structure.n_cliques
        ends = [w[end + at * n : end + (at + 1) * n].copy() for at in range(self._n_ends)] + [None, None]
        return w[begin:end].copy(), ends[0], ends[1]

    def state_weights(self, w: Floats) -> scipy.sparse.csr_array:
        """Return the weights of the node table as a sparse matrix.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        scipy.sparse.csr_array of shape (n_labels, n_columns)
            Weights; entries that are not features are not stored.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> score_map.state_weights(score_map.pack(np.array([1.0, 2.0]), np.zeros(4))).toarray()
        array([[1.],
               [2.]])
        """
        by_column = scipy.sparse.csr_array(
            (self.unpack(w).node, self.node.outputs, self.node.indptr),
            shape=(self.node.n_columns, self.structure.n_labels),
        )
        return by_column.T.tocsr()
