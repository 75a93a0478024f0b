"""Outputs of fixed size: a graph whose nodes have different label sets, with exact inference by elimination."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dualfield import _native
from dualfield.data.arrays import Codes, Floats
from dualfield.structures.checks import check_count, check_int, check_temperature, n_threads
from dualfield.structures.factor_graph.tables import GraphTables, check_label_rows, check_tables
from dualfield.structures.scores import KBest

_BUDGET = 10**9
_MOST_LABELS = 2**31 - 1
_MOST = 2**62  # larger limits are none
_BAD_NUMBER = 2  # status of an example


@dataclass(frozen=True)
class FactorGraph:
    r"""Nodes with numbers of labels of their own, and cliques of nodes that have a score together.

    Every example has the same nodes, as the rows of a multi-label problem or of a table of variables have. The score of
    a labelling y is the sum of one number from the table of each clique, and its smoothed maximum at temperature T is

    .. math::
        \mathrm{score}(y) = \sum_c \mathrm{tables}[c][y_{c_1}, y_{c_2}, \dots], \qquad
        M_T = T \log \sum_y \exp(\mathrm{score}(y) / T), \qquad M_0 = \max_y \mathrm{score}(y).

    Answers are exact. Nodes are eliminated one after another: the next one is the node that joins the fewest of its
    neighbours that were not joined yet (min-fill), then the one with the smallest table, then the lowest. The tables
    of the steps are a junction tree, on which one pass up and one pass down give all marginals. Time is proportional
    to the sum of their sizes, the product of the numbers of labels of a node and of its neighbours at that time; memory
    beyond the scores and the answer is that sum for one example, or for four of them where it is small. Four examples
    are computed side by side; that and the number of threads do not change a bit of the answers.

    Parameters
    ----------
    n_labels : sequence of int
        Number of labels of each node.
    cliques : sequence of tuples of int
        The nodes of each clique; one node or several distinct ones. Cliques may overlap and repeat. A node in no clique
        is free: all its labels are equally good.
    max_table : int, default=2**22
        The largest table, in numbers, that elimination may need for one example. A graph that needs more is refused
        before anything is allocated.
    budget : int, default=10**9
        Bytes that all tables of one example may take together.

    Examples
    --------
    Three binary labels. The first two like to be equal, the last two like to differ; each has a score of its own:

    >>> import numpy as np
    >>> from dualfield.structures import FactorGraph
    >>> graph = FactorGraph([2, 2, 2], [(0,), (1,), (2,), (0, 1), (1, 2)])
    >>> first = np.array([[0.0, 1.0], [0.0, -1.0]])  # two examples
    >>> rest = [[0.0, 0.0], [0.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]]  # shared by all examples
    >>> graph.argmax([first, *rest])
    array([[1, 1, 0],
           [0, 0, 1]], dtype=int32)
    >>> graph.width
    1
    """

    n_labels: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]
    max_table: int
    budget: int
    _twin: _native.FactorGraph = field(repr=False, compare=False)

    def __init__(
        self,
        n_labels: Sequence[int],
        cliques: Sequence[tuple[int, ...]],
        *,
        max_table: int = 2**22,
        budget: int = _BUDGET,
    ) -> None:
        sizes = tuple(check_int("FactorGraph", f"n_labels[{node}]", size, 1) for node, size in enumerate(n_labels))
        if not sizes:
            raise ValueError("The 'n_labels' parameter of FactorGraph must have an entry for each node. Got none.")
        checked = tuple(_check_clique(c, clique, len(sizes)) for c, clique in enumerate(cliques))
        object.__setattr__(self, "n_labels", sizes)
        object.__setattr__(self, "cliques", checked)
        object.__setattr__(self, "max_table", check_int("FactorGraph", "max_table", max_table, 1))
        object.__setattr__(self, "budget", check_int("FactorGraph", "budget", budget, 1))
        object.__setattr__(self, "_twin", self._planned())

    def _planned(self) -> _native.FactorGraph:
        """Return the native twin, or raise an error if its tables would be too large: none is made for that."""
        planned = _native.FactorGraph(
            np.array([min(size, _MOST_LABELS) for size in self.n_labels], dtype=np.int32),
            np.array([node for clique in self.cliques for node in clique], dtype=np.int32),
            np.cumsum([0, *map(len, self.cliques)], dtype=np.int64),
            min(self.budget // 8, _MOST),
            min(self.max_table, _MOST_LABELS - 1 if max(self.n_labels) > _MOST_LABELS else _MOST),
        )
        if planned.is_too_large:
            nodes = planned.last_table
            numbers = prod(self.n_labels[node] for node in nodes)
            if numbers > self.max_table:
                needs = f"a table of {len(nodes)} nodes and {numbers} numbers, more than max_table={self.max_table}"
                instead = f"raise max_table where memory holds several tables of {8 * numbers} bytes"
            else:
                needs = f"tables of {8 * (planned.n_cells + numbers)} bytes or more, beyond budget={self.budget}"
                instead = "raise the budget where memory holds them"
            raise ValueError(
                f"FactorGraph is too wide for exact answers: its elimination has width {len(nodes) - 1} and needs "
                f"{needs}. Its nodes have up to {max(self.n_labels)} labels: use fewer or smaller cliques, such as the "
                f"edges of a spanning tree (dualfield.structures.spanning_tree), or {instead}."
            )
        return planned

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.n_labels, self.cliques, self.max_table, self.budget)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.n_labels)

    @property
    def width(self) -> int:
        """Neighbours of a node when it is eliminated, at most: 1 for a tree, order for a chain."""
        return int(self._twin.width)

    @property
    def elimination_order(self) -> tuple[int, ...]:
        """The nodes in the order of their elimination."""
        return tuple(self._twin.order)

    def argmax(
        self, tables: Sequence[ArrayLike], *, evidence: ArrayLike | None = None, n_jobs: int | None = None
    ) -> Codes:
        """Return the best labelling of each example.

        Among equals: the node that is eliminated last has the lowest label that one of them has, then the node before
        it in :attr:`elimination_order`, and so on.

        Parameters
        ----------
        tables : sequence of arrays
            Scores of each clique, of shape (n_examples, labels of its first node, labels of its second node, ...), or
            without the first axis if all examples share them. -inf forbids; NaN and +inf are refused. If no array
            has an axis for examples there is one example.
        evidence : int array of shape (n_examples, n_nodes), default=None
            Labels that are known, -1 where they are not. Only labellings that have the known labels count.
        n_jobs : int, default=None
            Number of threads; answers do not depend on it.

        Returns
        -------
        int array of shape (n_examples, n_nodes)
            Label codes.

        Examples
        --------
        >>> from dualfield.structures import FactorGraph
        >>> graph = FactorGraph([2, 3], [(0,), (0, 1)])
        >>> tables = [[0.0, 0.5], [[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]]
        >>> graph.argmax(tables)
        array([[0, 1]], dtype=int32)
        >>> graph.argmax(tables, evidence=[[1, -1], [-1, 2]])
        array([[1, 0],
               [1, 2]], dtype=int32)
        """
        return self._argmax(self._read(tables, evidence), n_jobs)

    def maximum(
        self, tables: Sequence[ArrayLike], *, evidence: ArrayLike | None = None, n_jobs: int | None = None
    ) -> Floats:
        """Return the score of the best labelling of each example.

        Parameters
        ----------
        tables, evidence, n_jobs
            As in :meth:`argmax`.

        Returns
        -------
        array of shape (n_examples,)
            max_y score(y).

        Examples
        --------
        >>> from dualfield.structures import FactorGraph
        >>> FactorGraph([2, 2], [(0, 1)]).maximum([[[0.0, 1.0], [3.0, 2.0]]])
        array([3.])
        """
        return self._totals(self._twin.maximum, tables, evidence, 1.0, n_jobs)

    def k_best(
        self, tables: Sequence[ArrayLike], k: int, *, evidence: ArrayLike | None = None, n_jobs: int | None = None
    ) -> KBest:
        """Return the k best labellings of each example, best first; the first is :meth:`argmax`.

        What is left after the best one is cut into sets that each have a best one (Lawler 1972): up to n_nodes
        eliminations for each of the k.

        Parameters
        ----------
        tables, evidence, n_jobs
            As in :meth:`argmax`.
        k : int
            How many.

        Returns
        -------
        KBest
            Labels of shape (k, n_examples, n_nodes) and scores of shape (n_examples, k); -1 and -inf where an example
            has fewer labellings.

        Examples
        --------
        >>> from dualfield.structures import FactorGraph
        >>> best = FactorGraph([2, 2], [(0, 1)]).k_best([[[0.0, 1.0], [3.0, 2.0]]], 3)
        >>> best.labels[:, 0], best.scores
        (array([[1, 0],
               [1, 1],
               [0, 1]], dtype=int32), array([[3., 2., 1.]]))
        """
        batch = self._read(tables, evidence)
        count = check_count("k_best", "k", k, 1, max(batch.n_examples * self.n_nodes, 1))
        # Sets forbid labels of single nodes: each node needs a table for that.
        alone = [(node,) for node in range(self.n_nodes)]
        wide = FactorGraph(self.n_labels, [*self.cliques, *alone], max_table=self.max_table, budget=self.budget)
        zeros = [np.zeros(size) for size in self.n_labels]
        batch = replace(
            batch,
            cliques=wide.cliques,
            tables=[*batch.tables, *zeros],
            is_shared=[*batch.is_shared, *[True] * self.n_nodes],
        )
        labels = np.full((count, batch.n_examples, self.n_nodes), -1, dtype=np.int32)
        scores = np.full((batch.n_examples, count), -np.inf)
        wide._ask(wide._twin.k_best, batch, scores, n_jobs=n_jobs, first=(labels,))
        return KBest(labels, scores)

    def log_partition(
        self,
        tables: Sequence[ArrayLike],
        *,
        temperature: float = 1.0,
        evidence: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Floats:
        """Return the smoothed maximum of the score of each example.

        With logarithms of probabilities as scores this is the log-probability of the evidence.

        Parameters
        ----------
        tables, evidence, n_jobs
            As in :meth:`argmax`.
        temperature : float, default=1.0
            T of the formula; 0 gives the maximum.

        Returns
        -------
        array of shape (n_examples,)
            T log sum_y exp(score(y) / T).

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import FactorGraph
        >>> graph = FactorGraph([2, 3, 2], [(0, 1)])
        >>> graph.log_partition([np.zeros((2, 3))]).round(4)  # log of 2 * 3 * 2 labellings
        array([2.4849])
        """
        temperature = check_temperature("log_partition", temperature)
        if temperature == 0.0:
            return self.maximum(tables, evidence=evidence, n_jobs=n_jobs)
        return self._totals(self._twin.log_partition, tables, evidence, temperature, n_jobs)

    def marginals(
        self,
        tables: Sequence[ArrayLike],
        *,
        temperature: float = 1.0,
        evidence: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> list[Floats]:
        """Return the probability of all labels of each clique: the gradient of :meth:`log_partition`.

        Parameters
        ----------
        tables, temperature, evidence, n_jobs
            As in :meth:`log_partition`. At temperature 0 the answer is the indicator of :meth:`argmax`.

        Returns
        -------
        list of arrays
            For each clique one of shape (n_examples, labels of its first node, labels of its second node, ...).

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import FactorGraph
        >>> [pair] = FactorGraph([2, 2], [(0, 1)]).marginals([np.log([[0.1, 0.2], [0.3, 0.4]])])
        >>> pair.round(3)
        array([[[0.1, 0.2],
                [0.3, 0.4]]])
        """
        temperature = check_temperature("marginals", temperature)
        return self._marginals(self._twin.marginals, self.cliques, tables, temperature, evidence, n_jobs)

    def node_marginals(
        self,
        tables: Sequence[ArrayLike],
        *,
        temperature: float = 1.0,
        evidence: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> list[Floats]:
        """Return the probability of each label of each node.

        Parameters
        ----------
        tables, temperature, evidence, n_jobs
            As in :meth:`marginals`.

        Returns
        -------
        list of arrays
            For each node one of shape (n_examples, labels of the node).

        Examples
        --------
        A burglar or an earthquake may set off an alarm; it rings:

        >>> import numpy as np
        >>> from dualfield.structures import FactorGraph
        >>> network = FactorGraph([2, 2, 2], [(0,), (1,), (0, 1, 2)])
        >>> rings = np.array([[0.01, 0.3], [0.9, 0.95]])  # given burglar, earthquake
        >>> tables = [np.log([0.99, 0.01]), np.log([0.98, 0.02]), np.log(np.stack([1 - rings, rings], axis=-1))]
        >>> burglar, earthquake, _ = network.node_marginals(tables, evidence=[[-1, -1, 1], [-1, 1, 1]])
        >>> burglar.round(3)  # less likely if there was an earthquake as well
        array([[0.635, 0.365],
               [0.969, 0.031]])
        """
        temperature = check_temperature("node_marginals", temperature)
        nodes = [(node,) for node in range(self.n_nodes)]
        return self._marginals(self._twin.node_marginals, nodes, tables, temperature, evidence, n_jobs)

    def score(self, tables: Sequence[ArrayLike], labels: ArrayLike) -> Floats:
        """Return the score of a given labelling of each example.

        Parameters
        ----------
        tables : sequence of arrays
            As in :meth:`argmax`.
        labels : int array of shape (n_examples, n_nodes)
            Label codes.

        Returns
        -------
        array of shape (n_examples,)
            Scores; -inf where the labelling is forbidden.

        Examples
        --------
        >>> from dualfield.structures import FactorGraph
        >>> FactorGraph([2, 2], [(0, 1)]).score([[[0.0, 1.0], [3.0, 2.0]]], [[0, 1], [1, 1]])
        array([1., 2.])
        """
        codes = check_label_rows("labels", labels, self.n_labels)
        batch = check_tables(self.n_labels, self.cliques, tables, labels=codes)
        batch.check_values()
        total, examples = np.zeros(batch.n_examples), np.arange(batch.n_examples)
        for clique, table, shared in zip(self.cliques, batch.tables, batch.is_shared, strict=True):
            at = tuple(codes[:, clique].T)
            total += table[at] if shared else table[(examples, *at)]
        return total

    def _read(self, tables: Sequence[ArrayLike], evidence: ArrayLike | None) -> GraphTables:
        return check_tables(self.n_labels, self.cliques, tables, evidence)

    def _ask(
        self,
        question: Callable[..., tuple[Any, bool]],
        batch: GraphTables,
        out: Any,
        temperature: float = 1.0,
        n_jobs: int | None = None,
        *,
        first: tuple[Any, ...] = (),
    ) -> None:
        """Have a question answered in `out`, or raise an error that says why an example has no answer."""
        scores = self._twin.batch(
            batch.tables, batch.is_shared, batch.n_examples, batch.evidence, temperature, n_threads(n_jobs)
        )
        statuses, is_huge = question(scores, *first, out)
        if is_huge or (statuses == _BAD_NUMBER).any():
            batch.check_values()
        if statuses.any():
            raise ValueError(
                f"Example {int(statuses.argmax())} has no allowed labelling: its -inf scores and its evidence "
                f"leave none."
            )

    def _argmax(self, batch: GraphTables, n_jobs: int | None) -> Codes:
        labels = np.zeros((batch.n_examples, self.n_nodes), dtype=np.int32)
        self._ask(self._twin.argmax, batch, labels, n_jobs=n_jobs)
        return labels

    def _totals(
        self,
        question: Callable[..., tuple[Any, bool]],
        tables: Sequence[ArrayLike],
        evidence: ArrayLike | None,
        temperature: float,
        n_jobs: int | None,
    ) -> Floats:
        batch = self._read(tables, evidence)
        totals = np.empty(batch.n_examples)
        self._ask(question, batch, totals, temperature, n_jobs)
        return totals

    def _marginals(
        self,
        question: Callable[..., tuple[Any, bool]],
        asked: Sequence[tuple[int, ...]],
        tables: Sequence[ArrayLike],
        temperature: float,
        evidence: ArrayLike | None,
        n_jobs: int | None,
    ) -> list[Floats]:
        """Return what a question says of the labels of some nodes together."""
        batch = self._read(tables, evidence)
        n, sizes = batch.n_examples, self.n_labels
        answers = [np.empty((n, *[sizes[node] for node in nodes])) for nodes in asked]
        if temperature > 0.0:
            self._ask(question, batch, answers, temperature, n_jobs)
            return answers
        labels = self._argmax(batch, n_jobs)
        for nodes, answer in zip(asked, answers, strict=True):
            answer[...] = 0.0
            answer[(np.arange(n), *labels[:, nodes].T)] = 1.0
        return answers


def _rebuilt(
    n_labels: tuple[int, ...], cliques: tuple[tuple[int, ...], ...], max_table: int, budget: int
) -> FactorGraph:
    return FactorGraph(n_labels, cliques, max_table=max_table, budget=budget)


def _check_clique(index: int, clique: Sequence[int], n_nodes: int) -> tuple[int, ...]:
    name = f"cliques[{index}]"
    try:
        nodes = tuple(clique)
    except TypeError:
        raise ValueError(f"{name} must be a tuple of nodes. Got {clique!r} instead.") from None
    if not nodes:
        raise ValueError(f"{name} must name at least one node. Got an empty tuple instead.")
    for node in nodes:
        if isinstance(node, bool | np.bool_) or not isinstance(node, int | np.integer) or not 0 <= node < n_nodes:
            raise ValueError(f"{name} must hold nodes in [0, {n_nodes}), as n_labels has. Got {node!r} instead.")
    if len(set(nodes)) < len(nodes):
        raise ValueError(f"{name} must hold distinct nodes. Got {tuple(int(node) for node in nodes)} instead.")
    return tuple(int(node) for node in nodes)
