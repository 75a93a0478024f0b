"""Outputs of fixed size: a graph whose nodes have different label sets, with exact inference by elimination."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from dualfield.data.arrays import Codes, Floats
from dualfield.structures.checks import check_int, check_temperature
from dualfield.structures.factor_graph.elimination import Step, plan_elimination
from dualfield.structures.factor_graph.passes import choose, eliminate, label, soften, spread_down, sum_out
from dualfield.structures.factor_graph.tables import GraphTables, check_label_rows, check_tables

# Examples are taken in chunks whose tables have about this many numbers: enough to hide what Python costs, few enough
# to stay in a processor's cache.
NUMBERS_OF_A_CHUNK = 2**18


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
    beyond the scores and the answer is a few times that sum for one example, or for more of them while they are small.

    Parameters
    ----------
    n_labels : sequence of int
        Number of labels of each node.
    cliques : sequence of tuples of int
        The nodes of each clique; one node or several distinct ones. Cliques may overlap and repeat. A node in no clique
        is free: all its labels are equally good.
    max_table : int, default=2**22
        The largest table, in numbers, that elimination may need for one example. A graph that needs more is refused.

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
    _steps: tuple[Step, ...] = field(repr=False, compare=False)

    def __init__(self, n_labels: Sequence[int], cliques: Sequence[tuple[int, ...]], *, max_table: int = 2**22) -> None:
        sizes = tuple(check_int("FactorGraph", f"n_labels[{node}]", size, 1) for node, size in enumerate(n_labels))
        if not sizes:
            raise ValueError("The 'n_labels' parameter of FactorGraph must have an entry for each node. Got none.")
        checked = tuple(_check_clique(c, clique, len(sizes)) for c, clique in enumerate(cliques))
        limit = check_int("FactorGraph", "max_table", max_table, 1)
        object.__setattr__(self, "n_labels", sizes)
        object.__setattr__(self, "cliques", checked)
        object.__setattr__(self, "max_table", limit)
        object.__setattr__(self, "_steps", plan_elimination(sizes, checked, limit))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.n_labels)

    @property
    def width(self) -> int:
        """Neighbours of a node when it is eliminated, at most: 1 for a tree, order for a chain."""
        return max(len(step.separator) for step in self._steps)

    @property
    def elimination_order(self) -> tuple[int, ...]:
        """The nodes in the order of their elimination."""
        return tuple(step.node for step in self._steps)

    def argmax(self, tables: Sequence[ArrayLike], *, evidence: ArrayLike | None = None) -> Codes:
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
        return self._argmax(check_tables(self.n_labels, self.cliques, tables, evidence))

    def maximum(self, tables: Sequence[ArrayLike], *, evidence: ArrayLike | None = None) -> Floats:
        """Return the score of the best labelling of each example.

        Parameters
        ----------
        tables, evidence
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
        return self._totals(tables, evidence, lambda table: np.asarray(table.max(axis=0)))

    def log_partition(
        self, tables: Sequence[ArrayLike], *, temperature: float = 1.0, evidence: ArrayLike | None = None
    ) -> Floats:
        """Return the smoothed maximum of the score of each example.

        With logarithms of probabilities as scores this is the log-probability of the evidence.

        Parameters
        ----------
        tables, evidence
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
            return self.maximum(tables, evidence=evidence)
        return self._totals(tables, evidence, soften(temperature))

    def marginals(
        self, tables: Sequence[ArrayLike], *, temperature: float = 1.0, evidence: ArrayLike | None = None
    ) -> list[Floats]:
        """Return the probability of all labels of each clique: the gradient of :meth:`log_partition`.

        Parameters
        ----------
        tables, temperature, evidence
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
        return self._marginals(tables, temperature, evidence, self.cliques)

    def node_marginals(
        self, tables: Sequence[ArrayLike], *, temperature: float = 1.0, evidence: ArrayLike | None = None
    ) -> list[Floats]:
        """Return the probability of each label of each node.

        Parameters
        ----------
        tables, temperature, evidence
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
        return self._marginals(tables, temperature, evidence, [(node,) for node in range(self.n_nodes)])

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
        total = np.zeros(batch.n_examples)
        for clique, table in zip(self.cliques, batch.tables, strict=True):
            total += table[(np.arange(len(codes)) % len(table), *codes[:, clique].T)]
        return total

    def _argmax(self, batch: GraphTables) -> Codes:
        labels = np.zeros((batch.n_examples, self.n_nodes), dtype=np.int32)
        choices: list[Codes] = []
        for rows, _ in self._eliminated(batch, choose(choices)):
            labels[rows] = label(self._steps, choices, rows.stop - rows.start).T
            choices.clear()
        return labels

    def _totals(
        self, tables: Sequence[ArrayLike], evidence: ArrayLike | None, reduce: Callable[[Floats], Floats]
    ) -> Floats:
        batch = check_tables(self.n_labels, self.cliques, tables, evidence)
        totals = np.zeros(batch.n_examples)
        for rows, total in self._eliminated(batch, reduce):
            totals[rows] = total
        return totals

    def _marginals(
        self,
        tables: Sequence[ArrayLike],
        temperature: float,
        evidence: ArrayLike | None,
        asked: Sequence[tuple[int, ...]],
    ) -> list[Floats]:
        """Return the probabilities of sets of nodes, each of which is part of a step's table."""
        batch = check_tables(self.n_labels, self.cliques, tables, evidence)
        shapes = [tuple(self.n_labels[node] for node in nodes) for nodes in asked]
        answers = [np.zeros((batch.n_examples, *shape)) for shape in shapes]
        if temperature == 0.0:
            labels = self._argmax(batch)
            for nodes, answer in zip(asked, answers, strict=True):
                answer[(np.arange(len(answer)), *labels[:, nodes].T)] = 1.0
            return answers
        members = {step.node: step.members for step in self._steps}
        place = {node: at for at, node in enumerate(self.elimination_order)}
        homes = [min(nodes, key=place.__getitem__) for nodes in asked]
        conditionals: list[Floats] = []
        for rows, _ in self._eliminated(batch, soften(temperature, conditionals)):
            found = spread_down(self._steps, conditionals)
            for nodes, home, answer in zip(asked, homes, answers, strict=True):
                answer[rows] = np.moveaxis(sum_out(found[home], members[home], nodes), -1, 0)
        return answers

    def _eliminated(self, batch: GraphTables, reduce: Callable[[Floats], Floats]) -> Iterator[tuple[slice, Floats]]:
        """Return chunks of examples, each with what is left of its scores when all nodes are eliminated."""
        numbers = sum(prod(self.n_labels[node] for node in step.members) for step in self._steps)
        for rows in batch.chunks(max(1, NUMBERS_OF_A_CHUNK // numbers)):
            total = eliminate(self._steps, self.n_labels, batch.parts(self._steps, rows), reduce)
            lost = np.flatnonzero(total == -np.inf)
            if lost.size:
                raise ValueError(
                    f"Example {rows.start + int(lost[0])} has no allowed labelling: its -inf scores and its evidence "
                    f"leave none."
                )
            yield rows, total


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
