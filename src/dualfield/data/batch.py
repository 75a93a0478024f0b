"""Examples of unequal size as flat arrays: the only shape that native code sees."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, SupportsIndex

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from dualfield.data.attributes import Vocabulary
from dualfield.data.input_forms import ColumnNames, form_of_example, form_of_examples, opened, unwrapped
from dualfield.data.matrices import Dense, NumberRows, check_width, offsets_from_lengths, read_matrices, read_matrix
from dualfield.data.shapes import Shape, rows_of_examples

__all__ = ["Batch"]


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Examples of unequal size as flat arrays and offsets.

    Example ``i`` is the rows ``offsets[i]:offsets[i + 1]`` of one matrix that has a row for every node (token, pixel,
    letter) of every example. Rows are dense, or sparse in CSR form: the entries of row ``r`` are
    ``indices[indptr[r]:indptr[r + 1]]`` with the weights at the same places of ``values``. In a sparse row the indices
    may come in any order, and the weights of a repeated index add up.

    Most users never build a batch: estimators call :meth:`build` on the input of ``fit`` and ``predict``.

    Parameters
    ----------
    offsets : array of int64, shape (n_examples + 1,)
        Where each example starts, and the number of rows N.
    n_columns : int
        Width d of the matrix.
    dense : array of float64 or float32, shape (N, d), C-contiguous, or None
        The rows, if they are dense.
    indptr : array of int64, shape (N + 1,), or None
        Where each row starts in `indices`, if rows are sparse.
    indices : array of int32, shape (nnz,), or None
        Columns of the entries.
    values : array of float64, shape (nnz,), or None
        Weights of the entries; None if all are 1.
    vocabulary : Vocabulary or None
        The attributes that the columns stand for, if the input had attributes.
    n_unknown : int
        Number of attributes of the input that are not in the vocabulary, and were ignored. A part of a batch does not
        keep this count.
    column_names : tuple of str or None
        Names of the columns, if the input was data frames of numbers.
    connected : Shape or None
        How the nodes of each example are connected, for structures that need it; None: one after another.

    See Also
    --------
    dualfield.data.Vocabulary : Attribute strings and their columns.
    dualfield.data.Labels : The same service for the labels.

    Examples
    --------
    >>> from dualfield.data.batch import Batch
    >>> batch = Batch.build([[{"w": "the"}, {"w": "dog", "len": 3.0}], [{"w": "dog", "cap": True}]])
    >>> batch
    <Batch of 2 examples, 3 nodes, 4 columns, sparse>
    >>> list(batch.vocabulary)
    ['w:the', 'w:dog', 'len', 'cap']
    >>> batch.to_csr().toarray()
    array([[1., 0., 0., 0.],
           [0., 1., 3., 0.],
           [0., 1., 0., 1.]])
    """

    offsets: NDArray[np.int64]
    n_columns: int
    dense: Dense | None = None
    _: KW_ONLY
    indptr: NDArray[np.int64] | None = None
    indices: NDArray[np.int32] | None = None
    values: NDArray[np.float64] | None = None
    vocabulary: Vocabulary | None = None
    n_unknown: int = 0
    column_names: tuple[str, ...] | None = None
    connected: Shape | None = None

    def __post_init__(self) -> None:
        _check_offsets("offsets", self.offsets)
        if (self.dense is None) == (self.indptr is None) or (self.indptr is None) != (self.indices is None):
            raise ValueError("Batch must have either 'dense', or 'indptr' and 'indices'.")
        n_rows = int(self.offsets[-1])
        if self.dense is not None:
            _check_array("dense", self.dense, (n_rows, self.n_columns), (np.float64, np.float32))
            return
        assert self.indptr is not None
        assert self.indices is not None
        _check_offsets("indptr", self.indptr)
        _check_array("indptr", self.indptr, (n_rows + 1,), (np.int64,))
        _check_array("indices", self.indices, (int(self.indptr[-1]),), (np.int32,))
        if self.indices.size and not (self.indices.min() >= 0 and self.indices.max() < self.n_columns):
            raise ValueError(f"'indices' of Batch must be in [0, {self.n_columns}), the range of its columns.")
        if self.values is not None:
            _check_array("values", self.values, self.indices.shape, (np.float64,))
        if self.vocabulary is not None and len(self.vocabulary) != self.n_columns:
            raise ValueError(
                f"'vocabulary' of Batch has {len(self.vocabulary)} attributes for {self.n_columns} columns."
            )

    @classmethod
    def build(
        cls,
        X: Any,
        *,
        lengths: ArrayLike | None = None,
        vocabulary: Vocabulary | None = None,
        grow: bool = False,
        n_columns: int | None = None,
        name: str = "X",
    ) -> Batch:
        """Recognise the form of the input, check it, and lay it out.

        Parameters
        ----------
        X : list, generator, array or sparse matrix
            One of

            - a list of matrices of shape (T_i, d): arrays, nested lists of numbers, data frames, or sparse matrices;
            - one matrix of shape (N, d), dense or sparse, together with `lengths`; one array of shape (n, T, d);
            - a list of sequences of items, where an item is a dict ``{attribute: weight}`` or a list, tuple or set of
              attribute strings; or one flat list of N items together with `lengths`;
            - a generator in place of a list above. Sequences of items are read one at a time;
            - a batch, which is checked against the other arguments and returned.
        lengths : array of int, shape (n_examples,), or None
            How many rows, or items, of a flat `X` each example has.
        vocabulary : Vocabulary or None
            The attributes to use; others are ignored and counted in `n_unknown`. If None and `X` has attributes, the
            batch gets a new vocabulary of all of them.
        grow : bool
            Whether attributes that are not in `vocabulary` are added to it instead of being ignored.
        n_columns : int or None
            The width that numeric input must have. If None, any.
        name : str
            What errors call `X`.

        Returns
        -------
        Batch
            The examples. A C-contiguous matrix of float64 or float32 is not copied.

        Raises
        ------
        TypeError
            If a part of `X` is of the wrong type; the message names its place.
        ValueError
            If sizes do not match, or a number is NaN or infinite; the message names the place.

        Examples
        --------
        >>> import numpy as np
        >>> Batch.build([np.ones((2, 3)), np.zeros((4, 3))])
        <Batch of 2 examples, 6 nodes, 3 columns, dense>
        >>> Batch.build(np.ones((6, 3)), lengths=[2, 4]).lengths
        array([2, 4])
        >>> train = Batch.build([[["a", "b"], ["b"]]])
        >>> test = Batch.build([[["b", "c"]]], vocabulary=train.vocabulary)
        >>> test.indices, test.n_unknown
        (array([1], dtype=int32), 1)
        """
        if isinstance(X, Batch):
            return _check_batch(X, lengths, vocabulary, n_columns, name)
        names = ColumnNames(X, name)
        X = unwrapped(X)
        rows: NumberRows | None = None
        if isinstance(X, np.ndarray) or scipy.sparse.issparse(X):
            rows = read_matrix(X, lengths, n_columns, name)
        elif isinstance(X, (str, bytes, dict, set, frozenset)) or not isinstance(X, Iterable):
            raise TypeError(f"{name} must be a list of examples, or a matrix. Got {type(X).__name__} instead.")
        elif lengths is not None:
            X = list(X)
            if form_of_example(X) == "numbers":
                rows = read_matrix(X, lengths, n_columns, name)
        else:
            form, X = form_of_examples(names.watch(X))
            if form == "numbers" or (form is None and n_columns is not None):
                rows = read_matrices([opened(example) for example in X], n_columns, name)
        if rows is None:
            return cls._from_attributes(X, lengths, vocabulary, grow, n_columns, name)
        if vocabulary is not None:
            raise TypeError(f"{name} must have attributes, as 'vocabulary' is given. Got numbers instead.")
        return cls(
            rows.offsets,
            rows.n_columns,
            rows.dense,
            indptr=rows.indptr,
            indices=rows.indices,
            values=rows.values,
            column_names=names.checked(),
        )

    @classmethod
    def _from_attributes(
        cls,
        X: Any,
        lengths: ArrayLike | None,
        vocabulary: Vocabulary | None,
        grow: bool,
        n_columns: int | None,
        name: str,
    ) -> Batch:
        if n_columns is not None:
            raise TypeError(f"{name} must be numbers in {n_columns} columns. Got attributes instead.")
        grow = grow or vocabulary is None
        words = Vocabulary() if vocabulary is None else vocabulary
        if lengths is None:
            rows = words._read_sequences(map(opened, X), grow, name)
        else:
            rows = words._read_items(X, grow, name)
            rows = rows._replace(offsets=offsets_from_lengths(lengths, rows.indptr.size - 1, name))
        return cls(
            rows.offsets,
            len(words),
            indptr=rows.indptr,
            indices=rows.indices,
            values=rows.values,
            vocabulary=words,
            n_unknown=rows.n_unknown,
        )

    @property
    def shape(self) -> Shape:
        """The shapes of the examples."""
        return Shape(self.offsets) if self.connected is None else self.connected

    def connect(self, connect: Callable[[NDArray[np.int64]], Shape | None]) -> Batch:
        """Return the same examples with nodes that are connected.

        Parameters
        ----------
        connect : callable
            From the offsets of the nodes to their shape, or None: one after another.

        Returns
        -------
        Batch
            It shares its arrays with this one.
        """
        shape = connect(self.offsets)
        return self if shape is None else replace(self, connected=shape)

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return self.offsets.size - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all examples together, N."""
        return int(self.offsets[-1])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of nodes of each example, shape (n_examples,)."""
        return np.diff(self.offsets)

    @property
    def is_sparse(self) -> bool:
        """Whether rows are sparse."""
        return self.dense is None

    def to_csr(self) -> scipy.sparse.csr_array:
        """Return the rows as one SciPy matrix.

        Returns
        -------
        scipy.sparse.csr_array, shape (N, d)
            In canonical form: indices sorted, weights of repeated indices added up. Changing it does not change the
            batch.

        Examples
        --------
        >>> Batch.build([[["a", "a", "b"]]]).to_csr().toarray()
        array([[2., 1.]])
        """
        if self.dense is not None:
            return scipy.sparse.csr_array(self.dense)
        assert self.indptr is not None
        assert self.indices is not None
        values = np.ones(self.indices.size) if self.values is None else self.values.copy()
        matrix = scipy.sparse.csr_array(
            (values, self.indices.copy(), self.indptr.copy()), shape=(self.n_nodes, self.n_columns)
        )
        matrix.sum_duplicates()
        return matrix

    def split(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Cut an array with one row per node into one array per example.

        Parameters
        ----------
        rows : array, shape (N, ...)
            Anything that has a row for each node: labels, scores, marginals.

        Returns
        -------
        list of n_examples arrays, shapes (T_i, ...)
            Views of `rows`.

        Examples
        --------
        >>> batch = Batch.build([[["a"], ["b"]], [["a"]]])
        >>> batch.split(np.array([5, 6, 7]))
        [array([5, 6]), array([7])]
        """
        if len(rows) != self.n_nodes:
            raise ValueError(f"'rows' must have {self.n_nodes} rows, one per node. Got {len(rows)} instead.")
        bounds = self.offsets.tolist()
        return [rows[start:stop] for start, stop in itertools.pairwise(bounds)]

    def __len__(self) -> int:
        return self.n_examples

    def __repr__(self) -> str:
        kind = "sparse" if self.is_sparse else "dense"
        return f"<Batch of {self.n_examples} examples, {self.n_nodes} nodes, {self.n_columns} columns, {kind}>"

    def __getitem__(self, key: SupportsIndex | slice | NDArray[Any]) -> Batch:
        if isinstance(key, slice):
            start, stop, step = key.indices(self.n_examples)
            if step == 1:
                return self._between(start, max(start, stop))
            return self._take(np.array(range(start, stop, step), np.intp))
        if isinstance(key, (np.ndarray, list)):
            return self._take(np.arange(self.n_examples)[key])
        at = operator.index(key)
        if not -self.n_examples <= at < self.n_examples:
            raise IndexError(f"A batch of {self.n_examples} examples has no example {at}.")
        return self._between(at % self.n_examples, at % self.n_examples + 1)

    def _between(self, start: int, stop: int) -> Batch:
        """Share the memory of the examples start:stop."""
        offsets = self.offsets[start : stop + 1]
        low, high = int(offsets[0]), int(offsets[-1])
        part = None if self.connected is None else self.connected.take(np.arange(start, stop))
        if self.dense is not None:
            return replace(self, offsets=offsets - low, dense=self.dense[low:high], n_unknown=0, connected=part)
        assert self.indptr is not None
        assert self.indices is not None
        indptr = self.indptr[low : high + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        values = None if self.values is None else self.values[entries]
        return replace(
            self,
            offsets=offsets - low,
            indptr=indptr - indptr[0],
            indices=self.indices[entries],
            values=values,
            n_unknown=0,
            column_names=None,
            connected=part,
        )

    def _take(self, examples: NDArray[np.intp]) -> Batch:
        """Copy the examples in the given order."""
        offsets, rows = rows_of_examples(self.offsets, examples)
        return self.rows(offsets, rows, None if self.connected is None else self.connected.take(examples))

    def rows(self, offsets: NDArray[np.int64], rows: NDArray[np.int64], connected: Shape | None = None) -> Batch:
        """Return examples made of some rows.

        Parameters
        ----------
        offsets : int64 array of shape (n_examples + 1,)
            Where each example begins.
        rows : int array of shape (n_nodes,)
            The row of each of their nodes; rows may be used several times.
        connected : Shape, default=None
            How these nodes are connected.

        Returns
        -------
        Batch
            With the same columns.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Batch
        >>> batch = Batch.build([np.array([[1.0], [2.0]])])
        >>> batch.rows(np.array([0, 3]), np.array([1, 0, 1])).dense.ravel()
        array([2., 1., 2.])
        """
        part = connected
        if self.dense is not None:
            return replace(self, offsets=offsets, dense=self.dense[rows], n_unknown=0, connected=part)
        assert self.indptr is not None
        assert self.indices is not None
        indptr, entries = rows_of_examples(self.indptr, rows)
        values = None if self.values is None else self.values[entries]
        indices = self.indices[entries]
        return Batch(
            offsets,
            self.n_columns,
            indptr=indptr,
            indices=indices,
            values=values,
            vocabulary=self.vocabulary,
            connected=part,
        )


def _check_offsets(name: str, offsets: NDArray[np.int64]) -> None:
    _check_array(name, offsets, (max(np.size(offsets), 1),), (np.int64,))
    if offsets[0] != 0 or np.any(np.diff(offsets) < 0):
        raise ValueError(f"{name!r} of Batch must start with 0 and not decrease.")


def _check_array(name: str, array: Any, shape: tuple[int, ...], dtypes: tuple[type[np.generic], ...]) -> None:
    kinds = " or ".join(str(np.dtype(dtype)) for dtype in dtypes)
    if not isinstance(array, np.ndarray) or array.dtype not in [np.dtype(dtype) for dtype in dtypes]:
        found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise TypeError(f"{name!r} of Batch must be an array of {kinds}. Got {found} instead.")
    if array.shape != shape:
        raise ValueError(f"{name!r} of Batch must have shape {shape}. Got {array.shape} instead.")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name!r} of Batch must be C-contiguous.")


def _check_batch(
    batch: Batch, lengths: ArrayLike | None, vocabulary: Vocabulary | None, n_columns: int | None, name: str
) -> Batch:
    if lengths is not None:
        raise ValueError(f"'lengths' must be None, as {name} is a Batch, which has its own.")
    check_width(name, batch.n_columns, n_columns, "as in training")
    if vocabulary is not None and batch.vocabulary is not vocabulary and batch.vocabulary != vocabulary:
        raise ValueError(
            f"{name} is a Batch with another vocabulary. Build it with the vocabulary of the training data."
        )
    return batch
