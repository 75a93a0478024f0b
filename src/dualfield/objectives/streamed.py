"""The formula for linear scores on a compiled corpus, whose sentences are read from disk block by block."""

from __future__ import annotations

import os
import tempfile
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dualfield import _native
from dualfield.data import CompiledCorpus, CorpusFileError
from dualfield.data.arrays import Floats
from dualfield.losses import Loss
from dualfield.regularisers import Regulariser, SquaredNorm
from dualfield.scores import LinearScores
from dualfield.structures import Chain

__all__ = ["CorpusWeights", "StreamedObjective", "StreamedStorage"]

# Vectors beside those of the solver: the result, and what the model and its certificate hold.
_MORE_VECTORS = 3


class CorpusWeights(NamedTuple):
    """How much sentences count: C times the mean factor of their labels.

    Attributes
    ----------
    C : float
        Of the formula.
    of_labels : array of shape (n_labels,) or None
        A factor for each label; None: 1.
    """

    C: float
    of_labels: Floats | None = None


class StreamedStorage(NamedTuple):
    """Where the state of a solver lies.

    Attributes
    ----------
    memory : float
        Bytes for weights, tables of features, blocks and their states.
    folder : str or None
        Where files without a name are made; None: as :func:`tempfile.gettempdir` says.
    path : str or None
        A file that stays, for a checkpoint; None: one without a name.
    """

    memory: float = 4e9
    folder: str | None = None
    path: str | None = None


class StreamedObjective:
    r"""What conditional random fields and structural support vector machines minimise on a compiled corpus.

    .. math::
        P(w) = R(w) + \sum_i c_i [ M_T(A_i w + \Delta_i) - \langle A_i w, u_i \rangle ]

    It is that of :class:`Objective`, but sentences are in memory only while a solver looks at them. Solvers that can
    work so take it, the others say that they cannot.

    Parameters
    ----------
    score_map : LinearScores
        A of the formula, for a chain.
    corpus : CompiledCorpus
        Labelled sentences.
    loss : Loss
        T and Δ.
    weights : CorpusWeights
        c_i of the formula.
    regulariser : Regulariser, default=None
        R of the formula; None: half the squared norm.
    n_threads : int, default=1
        Number of threads.
    storage : StreamedStorage, default=StreamedStorage()
        Memory and files.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from dualfield.io import compile_corpus
    >>> from dualfield.losses import Loss
    >>> from dualfield.objectives import CorpusWeights, StreamedObjective
    >>> from dualfield.scores import FeatureTable, LinearScores
    >>> from dualfield.structures import Chain
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     corpus = compile_corpus([([[["a"], ["b"]]], [["x", "y"]])], folder + "/corpus", parts=1)
    ...     score_map = LinearScores(Chain(2), FeatureTable.all(2, 2))
    ...     objective = StreamedObjective(score_map, corpus, Loss(), CorpusWeights(1.0))
    ...     round(objective.value(np.zeros(score_map.n_parameters)), 4)      # two nodes, each log 2
    1.3863
    """

    def __init__(
        self,
        score_map: LinearScores,
        corpus: CompiledCorpus,
        loss: Loss,
        weights: CorpusWeights,
        regulariser: Regulariser | None = None,
        n_threads: int = 1,
        storage: StreamedStorage | None = None,
    ) -> None:
        self.score_map, self.corpus, self.loss, self.n_threads = score_map, corpus, loss, n_threads
        self.corpus_weights, self.storage = weights, StreamedStorage() if storage is None else storage
        self.regulariser = SquaredNorm(score_map.n_parameters) if regulariser is None else regulariser

    @property
    def n_parameters(self) -> int:
        """Length of w."""
        return self.score_map.n_parameters

    @property
    def n_examples(self) -> int:
        """Number of losses."""
        return self.corpus.n_examples

    @property
    def temperature(self) -> float:
        """T of the formula."""
        return self.loss.temperature

    @property
    def convex(self) -> bool:
        """True: compiled corpora have all labels."""
        return True

    @property
    def relaxation_met(self) -> None:
        """None: chains have exact answers."""
        return

    @cached_property
    def native(self) -> _native.CorpusBlocks:
        """The native reader of blocks."""
        structure, score_map = self.score_map.structure, self.score_map
        assert isinstance(structure, Chain)
        paths, file_of, ranges = _places(self.corpus)
        start, stop = (
            None if flags is None else np.where(flags, 0.0, -np.inf)
            for flags in (structure.allowed_start, structure.allowed_stop)
        )
        return _native.CorpusBlocks(
            structure._topology,
            start,
            stop,
            score_map.with_ends,
            score_map.node._native_map,
            None if score_map.pair is None else score_map.pair._native_map,
            score_map.shared_mask,
            self.corpus_weights.of_labels,
            self.corpus_weights.C,
            self.loss.cost,
            self.loss.temperature,
            paths,
            file_of,
            ranges,
        )

    def value(self, w: Floats) -> float:
        """Return P(w), by reading all sentences once.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        float
            Losses and penalty.
        """
        with refused_blocks():
            loss = self.native.loss(np.ascontiguousarray(w, dtype=np.float64), self.n_threads)
        return float(loss + self.regulariser.value(w))

    def certify(self, w: Floats) -> tuple[float, float]:
        """Return P(w) and a bound on its distance from the minimum: all of it, as no loss and no penalty is below 0.

        Parameters
        ----------
        w : array of shape (n_parameters,)
            Parameters.

        Returns
        -------
        objective, gap : float
            Twice the same number. Solvers have better bounds, by the dual points that they keep.
        """
        value = self.value(w)
        return value, value

    def fixed_bytes(self, n_vectors: int) -> int:
        """Return the memory that is taken whatever is read: vectors of weights and the tables of features.

        Parameters
        ----------
        n_vectors : int
            As long as w, that the solver holds.

        Returns
        -------
        int
            Bytes.
        """
        tables = [table for table in (self.score_map.node, self.score_map.pair) if table is not None]
        of_tables = sum(16 * table.n_columns + 9 * table.outputs.size for table in tables)
        return 8 * self.n_parameters * (n_vectors + _MORE_VECTORS) + of_tables

    @property
    def folder(self) -> str:
        """Where files without a name are made."""
        return os.fspath(self.storage.folder or tempfile.gettempdir())


class refused_blocks:  # noqa: N801
    """A context that says of damaged blocks which file is at fault."""

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Turn the error of native code into that of corpora."""
        if isinstance(error, _native.DamagedBlock):
            raise CorpusFileError(str(error)) from None


def _places(corpus: CompiledCorpus) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the files of a corpus, the file of each block, and where its arrays lie."""
    paths: dict[str, int] = {}
    file_of = np.zeros(corpus.n_blocks, dtype=np.int64)
    ranges = np.zeros((corpus.n_blocks, 7, 2), dtype=np.int64)
    for block in range(corpus.n_blocks):
        path, *arrays = corpus.ranges(block)
        file_of[block] = paths.setdefault(os.fspath(path), len(paths))
        for at, one in enumerate(arrays):
            if one is not None:
                ranges[block, at] = one
    return list(paths), file_of, ranges
