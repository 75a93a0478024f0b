"""The interface of all structures: their queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data.arrays import Codes, Floats
from dualfield.data.shapes import Shape
from dualfield.structures.bounds import BestPoints, BoundedLabels, Bounds
from dualfield.structures.checks import (
    add_cost,
    check_codes,
    check_count,
    check_end,
    check_temperature,
    draw_seed,
    n_threads,
)
from dualfield.structures.parts import Parts
from dualfield.structures.scores import KBest, Marginals, Scores


class Structure(Parts):
    r"""A set of labellings with exact inference on their scores.

    With score(y) the score of a labelling and T the temperature, the smoothed maximum of the score is

    .. math::
        M_T = T \log \sum_y \exp(\mathrm{score}(y) / T), \qquad M_0 = \max_y \mathrm{score}(y),

    and its gradient, the marginals, is the probability of each part under p(y) proportional to exp(score(y) / T); at
    T = 0 it is the indicator of the best labelling.

    Every query takes the scores as :class:`Scores` or as the array of node scores alone; ``cost``, an array of the
    shape of the node scores that is added to them (loss-augmented inference); and ``n_jobs``, the number of threads:
    None is 1 unless a joblib context says otherwise, -1 is all cores. Answers do not depend on the number of threads.

    Examples
    --------
    >>> from dualfield.structures import Single, Structure
    >>> def confidence(structure: Structure, node):
    ...     return structure.marginals(node).node.max(axis=1)
    >>> confidence(Single(2), [[0.0, 0.0], [0.0, 9.0]]).round(3)
    array([0.5, 1. ])
    """

    @property
    def is_native(self) -> bool:
        """Whether native code answers every question about it."""
        return True

    @property
    def leaves_out(self) -> bool:
        """Whether some examples with labels are left out of what models are trained and calibrated on."""
        return False

    @property
    def no_sums(self) -> str | None:
        """Why there are no sums over labellings, which log-losses and probabilities need; None if there are."""
        return None

    def relaxation(self, shape: Shape) -> str | None:
        """Return the name of the relaxation that answers questions about examples of given shapes; None: exact answers.

        Parameters
        ----------
        shape : Shape
            The shapes of the examples.

        Returns
        -------
        str or None
            "trw" for graphs that are too wide; "max_flow" where maxima over fractional points take their place.

        Examples
        --------
        >>> from dualfield.data.shapes import Shape
        >>> from dualfield.structures import Chain
        >>> Chain(2).relaxation(Shape.of([0, 3])) is None
        True
        """
        return None

    def _parts(self, scores: Scores) -> tuple[Floats | None, Floats | None]:
        """Check what edges score: return scores that all cliques share, and those of each edge; None: zeros."""
        if scores.transition is not None:
            raise ValueError(f"{type(self).__name__} takes no transition scores.")
        return None, None

    def scores_of(
        self,
        node: Floats,
        cliques: Floats,
        edges: Floats | None,
        ends: tuple[Floats | None, Floats | None],
        shape: Shape,
    ) -> Scores:
        """Return scores of all parts as one record.

        Parameters
        ----------
        node : array of shape (n_nodes, n_labels)
            Of labels.
        cliques : array of shape (n_cliques,)
            That all edges share.
        edges : array of shape (n_edges, edge_width) or None
            That edges have of their own.
        ends : pair of array of shape (n_labels,) or None
            Of the first and of the last label.
        shape : Shape
            The shapes of the examples.

        Returns
        -------
        Scores
            What the structure is asked about.
        """
        transition = cliques if edges is None else edges + self.edge_scores(cliques, shape)
        return Scores(node, None, transition, start=ends[0], stop=ends[1], shape=shape)

    def _shape_cliques(self, rows: Floats) -> Floats:
        """Bring rows of clique values into the shape that users see."""
        return rows

    def _read_scores(self, scores: Scores | ArrayLike) -> Scores:
        """Check scores as far as all structures do."""
        if not self.n_labels:
            raise ValueError(f"This {type(self).__name__.lower()} has no number of labels: pass n_labels.")
        batch = scores if isinstance(scores, Scores) else Scores(scores)
        if batch.n_labels != self.n_labels:
            raise ValueError(
                f"node must have {self.n_labels} columns, one for each label. Got shape {batch.node.shape} instead."
            )
        return batch

    def _ends(self, scores: Scores) -> list[Floats | None]:
        """Check the scores of the first and of the last label; None: there are none."""
        ends = [check_end(name, getattr(scores, name), self.n_labels) for name in ("start", "stop")]
        for name, end in list(zip(("start", "stop"), ends, strict=True))[self.n_ends :]:
            if end is not None:
                raise ValueError(f"{type(self).__name__} takes no {name} scores.")
        return ends

    def _bind(
        self,
        scores: Scores | ArrayLike,
        cost: ArrayLike | None,
        temperature: float,
        n_jobs: int | None,
        with_edges: bool = False,
    ) -> _native.Oracle:
        """Check the scores and hand out the native oracle for them, divided by the temperature.

        ``with_edges``: its marginals are asked edge by edge.
        """
        batch = self._read_scores(scores)
        parts = self._parts(batch)
        with_edges = self.has_edges and (with_edges or parts[1] is not None)
        with_ends = any(end is not None for end in self._ends(batch))
        native = self.native(batch.shape, with_edges=with_edges, with_ends=with_ends)
        own, shared = self._arrays(batch, cost, with_edges, with_ends, parts)
        oracle = _native.Oracle(native, own, shared, 1.0 / temperature, n_threads(n_jobs))
        found: _native.Oracle = self._improved(oracle, native, batch, own)
        return found

    def _uses(self, batch: Scores) -> tuple[bool, bool]:
        """Return whether edges have scores of their own, and whether ends have some."""
        per_edge = self._parts(batch)[1]
        return per_edge is not None, any(end is not None for end in self._ends(batch))

    def _arrays(
        self,
        batch: Scores,
        cost: ArrayLike | None,
        with_edges: bool,
        with_ends: bool,
        parts: tuple[Floats | None, Floats | None] | None = None,
    ) -> tuple[list[Floats | None], Floats | None]:
        """Return the scores of own and of shared parts as a native structure lays them out."""
        shared, per_edge = self._parts(batch) if parts is None else parts
        if with_ends:
            cliques = np.zeros(self.n_cliques) if shared is None else shared
            labels = (np.zeros(self.n_labels) if end is None else end for end in self._ends(batch)[: self.n_ends])
            shared = np.concatenate([cliques, *labels])
        node = add_cost(batch.node, cost)
        return [node, per_edge] if with_edges else [node], shared

    def _improved(
        self, oracle: _native.Oracle, native: _native.Structure, scores: Scores, own: list[Floats | None]
    ) -> Any:
        """Return an oracle that answers some questions better than the native one; `own` scores have the costs."""
        return oracle

    def tags_natively(self, shape: Shape) -> bool:
        """Return whether native code finds the best labellings of examples of given shapes.

        Parameters
        ----------
        shape : Shape
            The shapes of the examples.

        Returns
        -------
        bool
            False where :meth:`argmax` knows better.

        Examples
        --------
        >>> from dualfield.data.shapes import Shape
        >>> from dualfield.structures import Chain
        >>> Chain(2).tags_natively(Shape.of([0, 3]))
        True
        """
        return self.is_native

    def _indicator(
        self, scores: Scores | ArrayLike, labels: Codes, cliques: str | None
    ) -> tuple[Floats, Floats | None]:
        """Return node and clique indicators of a labelling."""
        node = np.zeros((len(labels), self.n_labels))
        node[np.arange(len(labels)), labels] = 1.0
        if cliques is None:
            return node, None
        shape = self._read_scores(scores).shape
        parts = self.parts_of(labels, shape)
        if cliques == "sum":
            rows = np.zeros((shape.n_examples, self.n_cliques))
            inside = parts.shared < self.n_cliques
            np.add.at(rows, (parts.owner[inside], parts.shared[inside]), 1.0)
        else:
            rows = np.zeros((len(parts.edges), self.edge_width))
            found = np.flatnonzero(parts.edges >= 0)
            rows[found, parts.edges[found]] = 1.0
        return node, self._shape_cliques(rows)

    def argmax(self, scores: Scores | ArrayLike, *, cost: ArrayLike | None = None, n_jobs: int | None = None) -> Codes:
        """Return the best labelling of each example.

        Ties go to the labelling with the lowest last label, then the lowest label before it, and so on.

        Parameters
        ----------
        scores : Scores, or array of shape (n_nodes, n_labels)
            The scores.
        cost : array of shape (n_nodes, n_labels), default=None
            Added to the node scores.
        n_jobs : int, default=None
            Number of threads.

        Returns
        -------
        int array of shape (n_nodes,)
            Label codes.

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> stay = [[1.0, 0.0], [0.0, 1.0]]
        >>> Chain(2).argmax(Scores([[2.0, 0.0], [0.0, 0.5], [0.0, 0.1]], transition=stay))
        array([0, 0, 0], dtype=int32)
        """
        return self._bind(scores, cost, 1.0, n_jobs).argmax()

    def bounded_argmax(
        self, scores: Scores | ArrayLike, *, cost: ArrayLike | None = None, n_jobs: int | None = None
    ) -> BoundedLabels:
        """Return the best labelling of each example that was found, its score, and a bound for all labellings.

        Where answers are exact the two are the same.

        Parameters
        ----------
        scores, cost, n_jobs
            As in :meth:`argmax`.

        Returns
        -------
        BoundedLabels
            Labels of shape (n_nodes,), score and bound of shape (n_examples,).

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> found = Chain(2).bounded_argmax(Scores([[1.0, 0.0], [0.0, 0.5]]))
        >>> found.labels, found.bounds.score, found.bounds.bound
        (array([0, 1], dtype=int32), array([1.5]), array([1.5]))
        """
        oracle = self._bind(scores, cost, 1.0, n_jobs)
        labels, bound = oracle.bounded_argmax()
        score = oracle.score(labels)
        return BoundedLabels(labels, Bounds(score, np.maximum(bound, score)))  # but for rounding it is above

    def best_point(
        self, scores: Scores | ArrayLike, *, cost: ArrayLike | None = None, n_jobs: int | None = None
    ) -> BestPoints:
        """Return a point with the highest score for each example: what hinge losses are trained on.

        Where answers are exact it is the indicator of the best labelling. A relaxation has a point of its larger
        polytope, which may be fractional, and says how far from the highest score it may be.

        Parameters
        ----------
        scores, cost, n_jobs
            As in :meth:`argmax`.

        Returns
        -------
        BestPoints
            The points, bounds and slacks.

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> found = Chain(2).best_point(Scores([[1.0, 0.0], [0.0, 0.5]]))
        >>> found.node, found.slack
        (array([[1., 0.],
               [0., 1.]]), array([0.]))
        """
        return BestPoints(*self._bind(scores, cost, 1.0, n_jobs).best_point())

    def is_possible(
        self, scores: Scores | ArrayLike, *, cost: ArrayLike | None = None, n_jobs: int | None = None
    ) -> NDArray[np.bool_]:
        """Return whether each example has a labelling at all: one without a score of -inf.

        Parameters
        ----------
        scores, cost, n_jobs
            As in :meth:`argmax`.

        Returns
        -------
        bool array of shape (n_examples,)
            Whether other queries on the example have an answer.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Chain, Scores
        >>> Chain(2).is_possible(Scores([[0.0, 1.0], [-np.inf, -np.inf], [0.0, 1.0]], offsets=[0, 2, 3]))
        array([False,  True])
        """
        return np.asarray(self._bind(scores, cost, 1.0, n_jobs).possible())

    def why_impossible(self, scores: Scores | ArrayLike, *, n_jobs: int | None = None) -> dict[int, str]:
        """Return which examples have no labelling, and why.

        Parameters
        ----------
        scores, n_jobs
            As in :meth:`argmax`.

        Returns
        -------
        dict from int to str
            The reason for each example that :meth:`is_possible` says has none, in order.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import Grammar, Scores
        >>> grammar = Grammar.from_rules(["S -> A A", "A -> 'a'"])
        >>> shape = grammar.shape([["a", "a"], ["a", "b"], ["a"]])
        >>> scores = Scores(np.zeros((shape.n_nodes, grammar.n_labels)), shape=shape)
        >>> grammar.why_impossible(scores)[1]
        "no rule of the grammar has 'b', the terminal of word 1."
        """
        oracle = self._bind(scores, None, 1.0, n_jobs)
        return {i: oracle.no_labelling(i) for i in np.flatnonzero(~oracle.possible()).tolist()}

    def log_partition(
        self,
        scores: Scores | ArrayLike,
        *,
        temperature: float = 1.0,
        cost: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Floats:
        """Return the smoothed maximum of the score of each example.

        Parameters
        ----------
        scores, cost, n_jobs
            As in :meth:`argmax`.
        temperature : float, default=1.0
            T of the formula; 0 gives the maximum.

        Returns
        -------
        array of shape (n_examples,)
            T log sum_y exp(score(y) / T).

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> Chain(3).log_partition(Scores([[0.0, 0.0, 0.0]] * 2)).round(4)  # log of 3 ** 2 labellings
        array([2.1972])
        """
        temperature = check_temperature("log_partition", temperature)
        if temperature == 0.0:
            return self._bind(scores, cost, 1.0, n_jobs).maximum()
        return np.multiply(temperature, self._bind(scores, cost, temperature, n_jobs).log_partition())

    def marginals(
        self,
        scores: Scores | ArrayLike,
        *,
        temperature: float = 1.0,
        cliques: str | None = None,
        cost: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Marginals:
        """Return the probability of each label at each node, and of each clique if asked for.

        Memory beyond the result: two rows of numbers over the states of the structure for each node of the four longest
        examples, for each thread; linear in the batch.

        Parameters
        ----------
        scores, temperature, cost, n_jobs
            As in :meth:`log_partition`.
        cliques : {"each", "sum"}, default=None
            Also return clique marginals: of each edge, or summed over the edges of each example.

        Returns
        -------
        Marginals
            Node and clique marginals, and the log-partition.

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> Chain(2).marginals(Scores([[0.0, 1.0], [0.0, 0.0]], transition=[[0.0, 0.0], [0.0, 2.0]])).node.round(3)
        array([[0.081, 0.919],
               [0.15 , 0.85 ]])
        """
        temperature = check_temperature("marginals", temperature)
        if cliques not in (None, "each", "sum"):
            raise ValueError(
                f"The 'cliques' parameter of marginals must be 'each', 'sum' or None. Got {cliques!r} instead."
            )
        if temperature == 0.0:
            labels, highest = self._bind(scores, cost, 1.0, n_jobs).bounded_argmax()
            return Marginals(*self._indicator(scores, labels, cliques), highest)
        each = cliques == "each"
        oracle = self._bind(scores, cost, temperature, n_jobs, with_edges=each)
        node, edges, shared, log_partition = oracle.marginals(cliques == "sum", each and self.has_edges)
        rows = edges if each else shared
        return Marginals(node, self._shape_cliques(rows) if cliques else None, np.multiply(temperature, log_partition))

    def has_directional(self, shape: Shape) -> bool:
        """Return whether :meth:`directional` has an answer for examples of given shapes.

        Parameters
        ----------
        shape : Shape
            The shapes of the examples.

        Returns
        -------
        bool
            False for relaxations, for structures without sums over labellings, and for user-defined ones.

        Examples
        --------
        >>> from dualfield.data.shapes import Shape
        >>> from dualfield.structures import Chain
        >>> Chain(2).has_directional(Shape.of([0, 3]))
        True
        """
        return self.is_native and self.no_sums is None and bool(self.native(shape).has_slopes)

    def directional(
        self,
        scores: Scores | ArrayLike,
        direction: Scores | ArrayLike,
        *,
        temperature: float = 1.0,
        cliques: str | None = None,
        cost: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Marginals:
        r"""Return how the marginals change as the scores move along a direction: covariances of parts.

        With u(y) the indicators of the parts of a labelling and v the direction,

        .. math::
            \frac{d}{d\epsilon} \mu(\mathrm{scores} + \epsilon v) = \mathrm{Cov}(u)\, v / T,

        exactly, and without overflow for scores of any size. Two to three times the work of :meth:`marginals`.

        Parameters
        ----------
        scores, temperature, cost, n_jobs
            As in :meth:`log_partition`; the temperature must be positive.
        direction : Scores, or array of shape (n_nodes, n_labels)
            Finite, with the same shapes as the scores.
        cliques : {"each", "sum"}, default=None
            As in :meth:`marginals`.

        Returns
        -------
        Marginals
            The changes of node and clique marginals, and of the log-partition.

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> scores = Scores([[0.0, 0.0], [0.0, 0.0]], transition=[[2.0, 0.0], [0.0, 2.0]])
        >>> Chain(2).directional(scores, [[0.0, 1.0], [0.0, 0.0]]).node.round(3)  # labels tend to agree
        array([[-0.25,  0.25],
               [-0.19,  0.19]])
        """
        temperature = check_temperature("directional", temperature)
        if temperature == 0.0:
            raise ValueError("The 'temperature' parameter of directional must be a float in (0, inf). Got 0 instead.")
        if cliques not in (None, "each", "sum"):
            raise ValueError(
                f"The 'cliques' parameter of directional must be 'each', 'sum' or None. Got {cliques!r} instead."
            )
        batch = self._read_scores(scores)
        if isinstance(direction, Scores):
            moved = self._read_scores(direction)
        else:
            moved = self._read_scores(Scores(direction, shape=batch.shape))
        if not np.array_equal(moved.offsets, batch.offsets):
            raise ValueError("The direction must have the offsets of the scores.")
        used = [self._uses(batch), self._uses(moved)]
        with_edges = self.has_edges and (cliques == "each" or any(edges for edges, _ in used))
        with_ends = any(ends for _, ends in used)
        native = self.native(batch.shape, with_edges=with_edges, with_ends=with_ends)
        at, along = (
            _native.Oracle(
                native, *self._arrays(one, given, with_edges, with_ends), 1.0 / temperature, n_threads(n_jobs)
            )
            for one, given in ((batch, cost), (moved, None))
        )
        node, edges, shared, values = at.directional(along)
        rows = edges if cliques == "each" else shared[:, : self.n_cliques]
        return Marginals(node, self._shape_cliques(rows) if cliques else None, np.multiply(temperature, values))

    def covariance(self, scores: Scores | ArrayLike, *, temperature: float = 1.0) -> list[Floats]:
        r"""Return the covariances of the indicators of all parts of each example, Cov(u).

        These are the second derivatives of its log-partition at T = 1 by the scores. For chains of order 1 all are
        found together, in time that grows with T² K³ + T K⁴; elsewhere by :meth:`directional`, part by part.

        Parameters
        ----------
        scores : Scores, or array of shape (n_nodes, n_labels)
            As in :meth:`log_partition`.
        temperature : float, default=1.0
            Positive.

        Returns
        -------
        list of arrays of shape (n_parts, n_parts)
            One for each example. Parts are the labels of each node, those of each edge where edges have scores of their
            own, then those that are shared: cliques, as often as they occur, and ends.

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> scores = Scores([[0.0, 0.0], [0.0, 0.0]], transition=[[2.0, 0.0], [0.0, 2.0]])
        >>> Chain(2).covariance(scores)[0][:2, :4].round(3)
        array([[ 0.25, -0.25,  0.19, -0.19],
               [-0.25,  0.25, -0.19,  0.19]])
        """
        temperature = check_temperature("covariance", temperature)
        if temperature == 0.0:
            raise ValueError("The 'temperature' parameter of covariance must be a float in (0, inf). Got 0 instead.")
        batch = self._read_scores(scores)
        with_edges, with_ends = self._uses(batch)
        native = self.native(batch.shape, with_edges=with_edges, with_ends=with_ends)
        arrays = self._arrays(batch, None, with_edges, with_ends)
        oracle = _native.Oracle(native, *arrays, 1.0 / temperature, 1)
        found = []
        for i in range(len(batch.offsets) - 1):
            matrix, is_possible = oracle.covariance(i)
            if not is_possible:
                raise ValueError(f"Example {i} has no allowed labelling, or scores that are no numbers.")
            found.append(matrix)
        return found

    def max_marginals(
        self, scores: Scores | ArrayLike, *, cost: ArrayLike | None = None, n_jobs: int | None = None
    ) -> Floats:
        """Return, for each node and label, the best score of a labelling that has this label there.

        Parameters
        ----------
        scores, cost, n_jobs
            As in :meth:`argmax`.

        Returns
        -------
        array of shape (n_nodes, n_labels)
            Best scores; -inf where no allowed labelling has the label.

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> Chain(2).max_marginals(Scores([[1.0, 0.0], [0.0, 0.5]]))
        array([[1.5, 0.5],
               [1. , 1.5]])
        """
        return self._bind(scores, cost, 1.0, n_jobs).max_marginals()

    def entropy(
        self,
        scores: Scores | ArrayLike,
        *,
        temperature: float = 1.0,
        cost: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Floats:
        """Return the entropy of each example's distribution over labellings, in nats; 0 at temperature 0.

        Parameters
        ----------
        scores, temperature, cost, n_jobs
            As in :meth:`log_partition`.

        Returns
        -------
        array of shape (n_examples,)
            - sum_y p(y) log p(y).

        Examples
        --------
        >>> from dualfield.structures import Single
        >>> Single(4).entropy([[0.0, 0.0, 0.0, 0.0]]).round(4)
        array([1.3863])
        """
        temperature = check_temperature("entropy", temperature)
        entropies = self._bind(scores, cost, temperature or 1.0, n_jobs).entropy()
        return entropies if temperature else np.zeros_like(entropies)

    def sample(
        self,
        scores: Scores | ArrayLike,
        n_samples: int = 1,
        *,
        temperature: float = 1.0,
        random_state: Any = None,
        cost: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Codes:
        """Draw labellings exactly from each example's distribution.

        Parameters
        ----------
        scores, temperature, cost, n_jobs
            As in :meth:`log_partition`.
        n_samples : int, default=1
            Draws for each example.
        random_state : int, RandomState or None, default=None
            Seed. Each example has its own random stream: its draws do not depend on the other examples.

        Returns
        -------
        int array of shape (n_samples, n_nodes)
            Label codes.

        Examples
        --------
        >>> from dualfield.structures import Single
        >>> Single(2).sample([[0.0, -100.0]], 3, random_state=0).ravel()
        array([0, 0, 0], dtype=int32)
        """
        temperature = check_temperature("sample", temperature)
        count = check_count("sample", "n_samples", n_samples, 0, _answer_size(scores))
        if temperature == 0.0:
            return np.tile(self.argmax(scores, cost=cost, n_jobs=n_jobs), (count, 1))
        return self._bind(scores, cost, temperature, n_jobs).sample(count, draw_seed(random_state))

    def k_best(
        self, scores: Scores | ArrayLike, k: int, *, cost: ArrayLike | None = None, n_jobs: int | None = None
    ) -> KBest:
        """Return the k best labellings of each example, best first; the first is :meth:`argmax`.

        Parameters
        ----------
        scores, cost, n_jobs
            As in :meth:`argmax`.
        k : int
            How many.

        Returns
        -------
        KBest
            Labels of shape (k, n_nodes) and scores of shape (n_examples, k).

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> best = Chain(2).k_best(Scores([[1.0, 0.0], [0.0, 0.5]]), 3)
        >>> best.labels
        array([[0, 1],
               [0, 0],
               [1, 1]], dtype=int32)
        >>> best.scores
        array([[1.5, 1. , 0.5]])
        """
        count = check_count("k_best", "k", k, 1, _answer_size(scores))
        return KBest(*self._bind(scores, cost, 1.0, n_jobs).k_best(count))

    def score(
        self,
        scores: Scores | ArrayLike,
        labels: ArrayLike,
        *,
        cost: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> Floats:
        """Return the score of a given labelling of each example.

        ``score(scores, y) - log_partition(scores)`` is the log-probability of the labelling.

        Parameters
        ----------
        scores, cost, n_jobs
            As in :meth:`argmax`.
        labels : int array of shape (n_nodes,)
            Label codes.

        Returns
        -------
        array of shape (n_examples,)
            Scores; -inf where the labelling is forbidden.

        Examples
        --------
        >>> from dualfield.structures import Chain, Scores
        >>> Chain(2).score(Scores([[1.0, 0.0], [0.0, 0.5]]), [0, 1])
        array([1.5])
        """
        node = scores.node if isinstance(scores, Scores) else np.asarray(scores)
        return self._bind(scores, cost, 1.0, n_jobs).score(check_codes(labels, len(node), self.n_labels))


def _answer_size(scores: Scores | ArrayLike) -> int:
    """Return how many labels, or scores, one labelling of each example has."""
    if isinstance(scores, Scores):
        return max(scores.n_nodes, scores.n_examples)
    return int(max((1, *np.shape(scores)[:1])))
