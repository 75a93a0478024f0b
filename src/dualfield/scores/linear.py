"""The score map of linear chains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dualfield import _native
from dualfield.data import Batch
from dualfield.scores.feature_table import FeatureTable, native_rows
from dualfield.scores.limits import end_limits
from dualfield.structures import Chain, Scores

__all__ = ["LinearScores", "Weights"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Weights:
    """The parameters of a linear chain by what they weigh.

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
    r"""The score map of a linear chain.

    With :math:`x_t` the features of node t,

    .. math::
        \mathrm{node}[t, k] = \sum_j x_{tj} w_{jk}, \qquad
        \mathrm{transition}[t, c] = w_c + \sum_j z_{tj} w_{jc},

    and start and stop scores are weights of their own. The sums run over the features that the tables list.

    Parameters
    ----------
    chain : Chain
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
        chain: Chain,
        node: FeatureTable,
        pair: FeatureTable | None = None,
        clique_mask: NDArray[np.bool_] | None = None,
        with_ends: bool = False,
    ) -> None:
        self.chain, self.node, self.pair, self.with_ends = chain, node, pair, with_ends
        mask = np.ones(chain.n_cliques) if clique_mask is None else np.asarray(clique_mask, dtype=np.float64)
        self.clique_mask = mask * chain.clique_allowed

    @property
    def n_features(self) -> int:
        """Number of parameters that can differ from zero."""
        pairs = 0 if self.pair is None else self.pair.outputs.size
        return int(self.node.outputs.size + pairs + self.clique_mask.sum() + 2 * self.with_ends * self.chain.n_labels)

    @property
    def n_parameters(self) -> int:
        """Length of the vector of parameters, which holds some zeros for alignment."""
        return int(self._model.size)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Which parameters can differ from zero."""
        pair = None if self.pair is None else np.ones(self.pair.outputs.size)
        ends, cliques = np.ones(self.chain.n_labels), np.ones(self.chain.n_cliques)
        return np.asarray(self.pack(np.ones(self.node.outputs.size), cliques, ends, ends, pair) != 0.0)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_model"}

    @cached_property
    def _model(self) -> _native.ChainModel:
        return _native.ChainModel(
            self.chain._topology,
            self.node._native_map,
            None if self.pair is None else self.pair._native_map,
            self.clique_mask,
            self.with_ends,
            *end_limits(self.chain),
        )

    def unpack(self, w: Floats) -> Weights:
        """Cut a vector of parameters into its parts.

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
        model, n = self._model, self.chain.n_labels
        ends = w[model.start_begin :].copy() if self.with_ends else np.zeros(2 * n)
        pair = np.zeros(0)
        if self.pair is not None:
            pair = w[model.pair_begin + self.pair._native_map.feature_places()]
        return Weights(
            w[self.node._native_map.feature_places()],
            w[model.clique_begin : model.start_begin].copy(),
            ends[:n],
            ends[n:],
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
        """Make a vector of parameters of its parts.

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
        model, w = self._model, np.zeros(self.n_parameters)
        w[self.node._native_map.feature_places()] = node
        w[model.clique_begin : model.start_begin] = cliques * self.clique_mask
        if self.with_ends:
            n = self.chain.n_labels
            w[model.start_begin :] = np.concatenate([np.zeros(n) if end is None else end for end in (start, stop)])
        if self.pair is not None and pair is not None:
            w[model.pair_begin + self.pair._native_map.feature_places()] = pair
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
    ) -> _native.ChainData:
        """Hand out the native twin of examples under this map.

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
        ChainData
            For native calls.

        Examples
        --------
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> type(score_map.bind(Batch.build([np.array([[2.0]])]))).__name__
        'ChainData'
        """
        pair_rows = None if pair_batch is None or self.pair is None else native_rows(pair_batch)
        return _native.ChainData(
            self._model, batch.offsets, native_rows(batch), pair_rows, labels, weights, cost, allowed, temperature
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
            What the chain is asked about.

        Examples
        --------
        >>> from dualfield.structures import Chain
        >>> score_map = LinearScores(Chain(2), FeatureTable.all(1, 2))
        >>> score_map.scores(np.zeros(score_map.n_parameters), Batch.build([np.array([[2.0]])])).node
        array([[0., 0.]])
        """
        node, edges = _native.score_nodes(self.bind(batch, pair_batch), w, n_threads)
        parts = self.unpack_shared(w)
        return Scores(node, batch.offsets, edges if self.pair is not None else parts[0], parts[1], parts[2])

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
        model, n = self._model, self.chain.n_labels
        cliques = w[model.clique_begin : model.start_begin].copy()
        if not self.with_ends:
            return cliques, None, None
        ends = w[model.start_begin :]
        return cliques, ends[:n].copy(), ends[n:].copy()

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
            shape=(self.node.n_columns, self.chain.n_labels),
        )
        return by_column.T.tocsr()
