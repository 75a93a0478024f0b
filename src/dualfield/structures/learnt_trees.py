"""Trees learnt from data: mutual information between columns of labels, and the spanning tree of the largest."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from dualfield.data.arrays import Floats
from dualfield.structures.checks import as_floats

# Rows are counted in chunks of about this many numbers.
NUMBERS_OF_A_CHUNK = 2**22


def mutual_information(
    columns: ArrayLike, *, given: ArrayLike | None = None, weights: ArrayLike | None = None
) -> Floats:
    r"""Return the mutual information between all pairs of columns of a table of labels, in nats.

    With p the relative frequencies in the table, in which a row counts as much as its weight,

    .. math::
        I(a; b) = \sum_{x, y} p(a{=}x, b{=}y) \log \frac{p(a{=}x, b{=}y)}{p(a{=}x) \, p(b{=}y)}
        \qquad \text{or} \qquad I(a; b \mid g) = \sum_z p(g{=}z) \, I(a; b) \text{ of the rows with } g = z.

    The maximum :func:`spanning_tree` of the first is the tree of largest likelihood (Chow and Liu); of the second, with
    the class as g, it is the tree-augmented naive Bayes network (TAN). Memory: the square of the number of distinct
    codes, over all columns.

    Parameters
    ----------
    columns : int or bool array of shape (n_examples, n_columns)
        Label codes of at least 0.
    given : int or bool array of shape (n_examples,), default=None
        Another column, whose value is known.
    weights : array of shape (n_examples,), default=None
        How much each row counts, finite and at least 0: a whole number is that many equal rows. None: 1.

    Returns
    -------
    array of shape (n_columns, n_columns)
        Symmetric, at least 0; the diagonal is the entropy of each column.

    Examples
    --------
    The second column repeats the first, the third has nothing to do with them:

    >>> from dualfield.structures import mutual_information
    >>> columns = [[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]]
    >>> mutual_information(columns).round(3)
    array([[0.693, 0.693, 0.   ],
           [0.693, 0.693, 0.   ],
           [0.   , 0.   , 0.693]])
    >>> float(mutual_information(columns, given=[0, 0, 1, 1])[0, 1])  # once the first is known, nothing is left
    0.0
    """
    codes = _check_codes("columns", columns, 2)
    if not len(codes):
        raise ValueError(f"columns must have at least one row. Got shape {codes.shape} instead.")
    groups = np.zeros(len(codes), dtype=np.int64) if given is None else _check_codes("given", given, 1)
    if len(groups) != len(codes):
        raise ValueError(f"given must have one entry for each row of columns, {len(codes)}. Got {len(groups)} instead.")
    each = _check_weights(weights, len(codes))
    used = each > 0.0
    codes, groups, each = codes[used], groups[used], each[used]
    mass = each.sum()
    total = np.zeros((codes.shape[1], codes.shape[1]))
    for value in np.unique(groups):
        here = groups == value
        total += each[here].sum() / mass * _information(codes[here], each[here])
    return total


def _check_weights(weights: ArrayLike | None, n_rows: int) -> Floats:
    if weights is None:
        return np.ones(n_rows)
    each = as_floats("weights", weights, 1)
    if len(each) != n_rows:
        raise ValueError(f"weights must have one entry for each row of columns, {n_rows}. Got {len(each)} instead.")
    wrong = ~(np.isfinite(each) & (each >= 0.0))
    if wrong.any():
        at = int(wrong.argmax())
        raise ValueError(f"weights must be finite and at least 0. Got weights[{at}] = {each[at]} instead.")
    if not each.any():
        raise ValueError("weights must have an entry above 0. Got zeros only.")
    return np.ldexp(each, -int(np.frexp(each.max())[1]))  # sums neither overflow nor round: a power of 2


def _information(codes: NDArray[Any], weights: Floats) -> Floats:
    n_columns, mass = codes.shape[1], weights.sum()
    if not n_columns:
        return np.zeros((0, 0))
    coded = [np.unique(column, return_inverse=True) for column in codes.T]
    first = np.concatenate([[0], np.cumsum([len(values) for values, _ in coded])])
    places = np.stack([start + inverse for start, (_, inverse) in zip(first, coded, strict=False)], axis=1)
    counts = np.zeros((first[-1], first[-1]))  # weight of rows that have a code in one column and a code in another
    step = max(1, NUMBERS_OF_A_CHUNK // int(first[-1]))
    for start in range(0, len(codes), step):
        chunk, each = places[start : start + step], weights[start : start + step, None]
        shown = np.zeros((len(chunk), first[-1]))
        np.put_along_axis(shown, chunk, 1.0, axis=1)
        counts += shown.T @ (shown * each)
    alone = counts.diagonal()
    together = counts > 0.0
    ratio = np.where(together, counts / alone[:, None] * (mass / alone), 1.0)
    terms = counts / mass * np.log(ratio)
    sums = np.add.reduceat(np.add.reduceat(terms, first[:-1], axis=0), first[:-1], axis=1)
    return np.maximum(0.5 * (sums + sums.T), 0.0)  # rounding may leave a little below 0


def _check_codes(name: str, values: ArrayLike, ndim: int) -> NDArray[Any]:
    codes: NDArray[Any] = np.asarray(values)
    whole = codes.dtype == np.bool_ or np.issubdtype(codes.dtype, np.integer)
    if codes.ndim != ndim or not whole:
        raise ValueError(
            f"{name} must be integer codes in an array of {ndim} dimension{'s' if ndim > 1 else ''}. "
            f"Got shape {codes.shape} and dtype {codes.dtype} instead."
        )
    if codes.size and codes.min() < 0:
        at = tuple(int(index) for index in np.unravel_index(int(codes.argmin()), codes.shape))
        place = ", ".join(map(str, at))
        raise ValueError(f"{name} must hold codes of at least 0. Got {name}[{place}] = {codes[at]} instead.")
    return codes


def spanning_tree(weights: ArrayLike) -> list[tuple[int, int]]:
    """Return the edges of the spanning tree with the largest sum of weights.

    Among equals the tree is the one that the greedy method finds which takes the heaviest edge that closes no circle,
    and of edges of equal weight the one with the lowest nodes.

    Parameters
    ----------
    weights : array of shape (n_nodes, n_nodes)
        Symmetric and finite: of any sign, 0 is a weight as any other. The diagonal is not used.

    Returns
    -------
    list of (int, int)
        n_nodes - 1 edges, each with its lower node first, in lexicographic order.

    Examples
    --------
    >>> from dualfield.structures import spanning_tree
    >>> spanning_tree([[0.0, 3.0, 1.0], [3.0, 0.0, 2.0], [1.0, 2.0, 0.0]])
    [(0, 1), (1, 2)]

    As cliques of a graph, with one clique for each node:

    >>> from dualfield.structures import FactorGraph, mutual_information
    >>> columns = [[0, 0, 1], [0, 0, 1], [1, 1, 0], [1, 1, 1]]
    >>> edges = spanning_tree(mutual_information(columns))
    >>> FactorGraph([2, 2, 2], [(0,), (1,), (2,), *edges]).cliques
    ((0,), (1,), (2,), (0, 1), (0, 2))
    """
    matrix = as_floats("weights", weights, 2)
    n_nodes = len(matrix)
    if matrix.shape != (n_nodes, n_nodes):
        raise ValueError(f"weights must be a square matrix. Got shape {matrix.shape} instead.")
    rows, columns = np.triu_indices(n_nodes, 1)
    upper, lower = matrix[rows, columns], matrix[columns, rows]
    _refuse(~(np.isfinite(upper) & np.isfinite(lower)), "finite", matrix)
    _refuse(~np.isclose(upper, lower, rtol=1e-8, atol=1e-12), "symmetric", matrix)
    if n_nodes < 2:
        return []
    # Only the order of the weights counts. Ranks from 1 on keep edges of weight 0, which a sparse matrix would lose,
    # and are all different, so that there is one answer.
    ranks = np.empty(len(upper))
    ranks[np.argsort(-upper, kind="stable")] = np.arange(1, len(upper) + 1)
    from scipy.sparse.csgraph import minimum_spanning_tree  # brings SciPy's linear algebra with it

    tree = minimum_spanning_tree(scipy.sparse.csr_array((ranks, (rows, columns)), shape=matrix.shape)).tocoo()
    return sorted((int(min(edge)), int(max(edge))) for edge in zip(tree.row, tree.col, strict=True))


def _refuse(wrong: NDArray[np.bool_], what: str, matrix: Floats) -> None:
    """Raise an error that names the first of the pairs that are wrong; they come in the order of triu_indices."""
    if wrong.any():
        a, b = (int(index[wrong.argmax()]) for index in np.triu_indices(len(matrix), 1))
        raise ValueError(
            f"weights must be {what}. Got weights[{a}, {b}] = {matrix[a, b]} and weights[{b}, {a}] = {matrix[b, a]}."
        )
