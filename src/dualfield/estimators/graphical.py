"""Conditional graphical models: one kernel classifier for each type of clique, put together again to predict."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight

from dualfield.data import Labels
from dualfield.data.fixed_size import read_fixed, read_fixed_labels, read_sequences
from dualfield.estimators.fitting import fitting
from dualfield.estimators.graphical_graph import put_together, seen_tuples
from dualfield.estimators.graphical_parameters import (
    chain_order,
    check_combined,
    check_covered,
    check_graph,
    check_padding,
    check_parameters,
    unseen_score,
)
from dualfield.estimators.graphical_training import (
    LabelledExamples,
    needed_sizes,
    padded_codes,
    summary,
    train_cliques,
)
from dualfield.estimators.saved_graphical import SavableCliques
from dualfield.scores.cliques import ChainLayout, GraphLayout, with_blank_row
from dualfield.solvers import Status
from dualfield.solvers.convergence import warn_of_convergence
from dualfield.solvers.progress import ProgressLine
from dualfield.solvers.trace import relative_gap
from dualfield.structures import Chain, mutual_information, spanning_tree

__all__ = ["ConditionalGraphicalModel"]

Floats = NDArray[np.float64]


class ConditionalGraphicalModel(SavableCliques):
    r"""Conditional graphical model: cut into cliques to train, whole again to predict (Pérez-Cruz et al. 2007).

    The score of a labelling is the sum over the cliques c of the graph of the score of its label tuple y_c. In
    training every *type* of clique is a multiclass problem of its own, over the label tuples that were seen for it:

    .. math::
        \tfrac{1}{2} \|w\|^2 + C \sum_c v_c \, \ell_c , \qquad s_c(y) = \langle w, \phi(x_c, y) \rangle

    where v_c is the weight of the example and the loss :math:`\ell_c` is, with y_c the true tuple,

    - "hinge": :math:`\max_y [ 1(y \ne y_c) + s_c(y) ] - s_c(y_c)`, as Crammer and Singer have it;
    - "log": :math:`\log \sum_y \exp s_c(y) - s_c(y_c)`; the scores that are added up are log-probabilities;
    - "squared": :math:`\tfrac{1}{2} \sum_y (1(y = y_c) - s_c(y))^2`, kernel ridge regression with penalty 1/C.

    There is no bias. A sequence that is shorter than a clique is one clique of its own size, and so of its own type.

    Parameters
    ----------
    graph : int, Chain, list of tuples or "tree", default=1
        Sequences: the order of the chain; a clique is order + 1 neighbours (0, 1, 2 are the paper's Graph1 to Graph3).
        Outputs of fixed size, `y` of shape (n, n_nodes): cliques as tuples of columns, or the maximum spanning tree of
        the mutual information of the columns of `y`. Columns are given labels that they had in training, no others.
    loss : {"hinge", "log", "squared"}, default="hinge"
        See above.
    base_estimator : classifier of scikit-learn, default=None
        Takes the place of loss, kernel and C: a clone is fitted for each type of clique, with its tuples as classes.
    kernel : {"rbf", "linear", "poly", "laplacian", "sigmoid"} or callable, default="rbf"
        As in :class:`dualfield.KernelLogisticRegression`, between the inputs of two cliques.
    gamma : {"clique", "scale", "auto"} or float, default="clique"
        γ of the kernel: "clique" is 8 / n_features, n_features of the input of the clique; others as in scikit-learn.
    coef0, degree : float, default=0.0, 3.0
        Of the kernel.
    C : float, default=None
        Weight of the loss; None: 5 for "hinge", 100 for "log", 50 for "squared".
    tying : {"shared", "position"} or callable, default=None
        Which cliques of a size are of one type: all; those whose first node has the same position; or those with the
        same ``tying(position, length)``, both with blank nodes counted. In fixed graphs a position is a tuple of nodes.
        None: "shared" for sequences, "position" for fixed graphs.
    padding : (int, int), default=(0, 0)
        Blank nodes before and behind each sequence: rows of zeros with a label of their own.
    unseen : {"backoff", "-inf"} or float, default="backoff"
        Score of label tuples that were never seen for a type. "-inf" forbids them; where that leaves no labelling,
        one with as few of them as can be is predicted. "backoff" trains smaller cliques too, down to nodes, takes
        scores r relative to the best seen tuple, and sets r(ab) = r(a) + r(b) - cost for pairs,
        r(abc) = r(ab) + r(bc) - max(r(b), r(ab), r(bc)) - cost for triples, and so on; for a node the lowest seen
        score minus 1 and the cost. A type that training did not have gives 0 to all tuples of its size that other types
        have seen, and with "backoff" is built from smaller cliques.
    backoff_cost : float, default=0.0
        The cost in these formulas: by how much an unseen tuple is worse than its parts say. Scores of kernel machines
        lie close together on new inputs, so that already a small part of the margin nearly forbids unseen tuples.
    features : {"joint", "tied", "tied_separately", "tied_printed"}, default="joint"
        "joint": rows of the nodes side by side, weights for each tuple. "tied": the score is a sum over the nodes, with
        weights for node and label, trained over the seen tuples ("hinge" only). "tied_separately": models of single
        nodes, summed over cliques; larger ones only say what was seen. "tied_printed": weights for each tuple and the
        sum of the kernels of its nodes, as the formula in the paper has it, which ties nothing.
    combine : "sum" or dict, default="sum"
        Weights by order, such as {0: 1.0, 1: 0.5}: cliques of all these orders are trained, and their weighted scores
        added; no order above that of the graph. In fixed graphs the cliques of lower order are parts of those given.
    response_method : {"auto", "decision_function", "predict_proba"}, default="auto"
        Scores from `base_estimator`; "predict_proba" takes logarithms. "auto" is the first that it has. A decision
        value of two classes is the difference of their scores.
    tol : float, default=1e-2
        Stop when duality gap / dual value is at most this, for each type.
    max_iter : int, default=None
        Most passes over the cliques of a type; None is 10,000.
    cache_size : float, default=2e9
        Bytes for the kernel matrix of one type.
    n_jobs : int, default=None
        Types that are trained at a time, through joblib; threads where there is one type, and to predict. Results do
        not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the order of cliques, None is 0; if given, also of `base_estimator`.
    verbose : int, default=0
        1: how each type ended.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    clique_models_ : dict
        From (size, key) to :class:`dualfield.estimators.graphical_problems.CliqueModel`, one for each type.
    graph_ : int or list of tuples
        The order of the chain, or the cliques of a fixed graph.
    objective_, dual_gap_ : float
        Sums over all types; NaN with `base_estimator`.
    n_iter_ : int
        Largest number of iterations.
    status_ : Status or None
        The first that is not "converged", if there is one; None with `base_estimator`.
    n_features_in_ : int
        Columns of the input.

    See Also
    --------
    dualfield.CRF : Trains all cliques of a sequence together.

    Notes
    -----
    A model of larger cliques learns which tuples exist. If test sequences repeat those of training it is a lexicon;
    "position" and "-inf" are right only then. On new ones it can be worse than single nodes.

    Probabilities multiply those of cliques that overlap, so nothing makes them calibrated. Choose C by their log-loss
    on held-out data, and do not trust them on examples unlike those of training.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield import ConditionalGraphicalModel
    >>> X = [np.array([[0.0], [1.0], [0.1]]), np.array([[0.9], [0.1]])]
    >>> y = [["a", "b", "a"], ["b", "a"]]
    >>> model = ConditionalGraphicalModel(1, loss="log").fit(X, y)
    >>> model.predict([np.array([[0.2], [0.8], [0.0], [1.0]])])
    [['a', 'b', 'a', 'b']]
    >>> sorted(model.clique_models_)
    [(1, 'shared'), (2, 'shared')]
    """

    _saved_as = "ConditionalGraphicalModel"

    def __init__(
        self,
        graph: int | Chain | Sequence[tuple[int, ...]] | Literal["tree"] = 1,
        *,
        loss: Literal["hinge", "log", "squared"] = "hinge",
        base_estimator: Any = None,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: float | Literal["clique", "scale", "auto"] = "clique",
        coef0: float = 0.0,
        degree: float = 3.0,
        C: float | None = None,
        tying: Literal["shared", "position"] | Callable[[Any, int], Hashable] | None = None,
        padding: tuple[int, int] = (0, 0),
        unseen: Literal["backoff", "-inf"] | float = "backoff",
        backoff_cost: float = 0.0,
        features: Literal["joint", "tied", "tied_separately", "tied_printed"] = "joint",
        combine: Literal["sum"] | Mapping[int, float] = "sum",
        response_method: Literal["auto", "decision_function", "predict_proba"] = "auto",
        tol: float = 1e-2,
        max_iter: int | None = None,
        cache_size: float = 2e9,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.graph = graph
        self.loss = loss
        self.base_estimator = base_estimator
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.C = C
        self.tying = tying
        self.padding = padding
        self.unseen = unseen
        self.backoff_cost = backoff_cost
        self.features = features
        self.combine = combine
        self.response_method = response_method
        self.tol = tol
        self.max_iter = max_iter
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> Self:
        """Train a model for each type of clique.

        Parameters
        ----------
        X : list of arrays of shape (length_i, d), or array
            Sequences, in any form with numbers that :meth:`dualfield.data.Batch.build` takes. For a fixed graph an
            array of shape (n, n_nodes, d), a row for each node, or (n, d), rows that all cliques share.
        y : list of lists of labels, or array of shape (n, n_nodes)
            A label for each node.
        sample_weight : array of shape (n_examples,), default=None
            Weights v of at least 0.
        lengths : array of int, default=None
            How many rows of a flat `X` each sequence has.

        Returns
        -------
        ConditionalGraphicalModel
            The fitted model.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import ConditionalGraphicalModel
        >>> X, y = np.array([[0.0], [1.0], [2.0]]), np.array([[0, 0], [0, 1], [1, 1]])
        >>> ConditionalGraphicalModel([(0, 1)], loss="squared", gamma=1.0).fit(X, y).predict([[1.1]])
        array([[0, 1]])
        """
        check_parameters(self)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        read = self._read_sequences if self._is_chain else self._read_fixed
        data, sizes = read(X, y, sample_weight, lengths)
        self.clique_models_ = train_cliques(self, data, sizes, max(sizes, default=1))
        self._keep()
        return self

    def _read_sequences(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, lengths: ArrayLike | None
    ) -> tuple[LabelledExamples, set[int]]:
        matrix, counts = read_sequences(X, lengths, None)
        if not counts.sum():
            raise ValueError("X must have at least one node. Got none.")
        offsets = np.concatenate([[0], np.cumsum(counts)])
        self.labels_ = Labels.fit(y, offsets)
        codes = self.labels_.encode(y, offsets)
        weights = _example_weights(sample_weight, len(counts))
        self.graph_ = chain_order(self.graph)
        check_combined(self.combine, self.graph_)
        self.n_features_in_ = int(matrix.shape[1])
        padding, n_labels = check_padding(self.padding), len(self.labels_)
        layout = ChainLayout(counts[counts > 0], padding, self._tying)
        data = LabelledExamples(
            layout,
            with_blank_row(matrix, padding),
            padded_codes(layout, codes, n_labels),
            weights[counts > 0],
            n_labels + int(any(padding)),
            sample_weight is not None,
        )
        return data, needed_sizes(
            self._order_weights, unseen_score(self.unseen) is None, self.features == "tied_separately"
        )

    def _read_fixed(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, lengths: ArrayLike | None
    ) -> tuple[LabelledExamples, set[int]]:
        if any(check_padding(self.padding)):
            raise ValueError("padding is for sequences: it must be (0, 0) with a graph of fixed size.")
        matrix, n, n_rows = read_fixed(self, X, lengths, reset=True)
        self.labels_, codes = read_fixed_labels(y)
        if n != len(codes):
            raise ValueError(f"y has {len(codes)} examples; X has {n}.")
        self.n_nodes_, self._is_shared_input = codes.shape[1], n_rows is None
        if n_rows not in (None, self.n_nodes_):
            wanted = f"(n, d), or (n, {self.n_nodes_}, d) with a row for each node"
            raise ValueError(f"X must have shape {wanted}. Got {np.shape(X)} instead.")
        weights = _example_weights(sample_weight, n)
        if isinstance(self.graph, str):
            edges = spanning_tree(mutual_information(codes, weights=weights))
            self.graph_ = edges or [(0,)]
        else:
            self.graph_ = check_graph(self.graph, self.n_nodes_)
        check_combined(self.combine, max((len(clique) for clique in self.graph_), default=1) - 1)
        scored, by_size = self._fixed_cliques()
        check_covered(scored, self.n_nodes_)
        layout = GraphLayout(n, self.n_nodes_, by_size, self._tying, self._is_shared_input)
        keys = [layout.key(clique) for clique in scored]
        seen = seen_tuples(codes[weights > 0], list(scored), keys)
        put_together(self.n_nodes_, len(self.labels_), seen, with_lists=unseen_score(self.unseen) == -np.inf)
        data = LabelledExamples(layout, matrix, codes.ravel(), weights, len(self.labels_), sample_weight is not None)
        return data, set(by_size)

    def _keep(self) -> None:
        models = list(self.clique_models_.values())
        self.classes_ = self.labels_.classes
        self.objective_, self.dual_gap_, self.n_iter_, self.status_ = summary(models)
        if self.base_estimator is not None:
            self.status_ = None
        late = [model for model in models if model.status not in (Status.CONVERGED, None)]
        line = ProgressLine(type(self).__name__, int(self.verbose))
        for model in models:
            ended = "fitted" if model.status is None else model.status.value
            line.end(
                f"{model.size} nodes, {model.key!r}: {model.n_cliques} cliques, {len(model.tuples)} tuples, {ended}, "
                f"relative gap {relative_gap(model.objective, model.dual_gap):.1e}."
            )
        if late:
            first = late[0]
            assert first.status is not None
            warn_of_convergence(
                f"{len(late)} of {len(models)} clique types did not converge. The first is {first.key!r} with "
                f"{first.size} nodes: {first.status.sentence} Relative duality gap "
                f"{relative_gap(first.objective, first.dual_gap):.3g}, tolerance {self.tol:g}. {first.status.remedy}"
            )


def _example_weights(sample_weight: ArrayLike | None, n: int) -> Floats:
    weights: Floats = _check_sample_weight(sample_weight, np.empty((n, 1)), dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight must have an entry above zero. Got zeros only.")
    return weights
