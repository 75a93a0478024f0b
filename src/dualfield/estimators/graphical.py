"""Conditional graphical models: one kernel classifier for each type of clique, put together again to predict."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags

from dualfield.data import Labels
from dualfield.data.records import Fields, Record, Source
from dualfield.estimators.base import Estimator, fitted, fitting
from dualfield.estimators.graphical_data import read_training
from dualfield.estimators.graphical_parameters import DEFAULT_C, check_combined, check_parameters, score_kinds
from dualfield.estimators.graphical_prediction import GraphicalPredictor
from dualfield.kernels import Kernel
from dualfield.models.graphical.model import GraphicalModel
from dualfield.objectives.clique_problems import CliqueTask, clique_problems
from dualfield.solvers import Status, StopRule
from dualfield.solvers.convergence import warn_of_convergence
from dualfield.solvers.kernel.cliques import CliqueModel, solve_cliques, summary
from dualfield.solvers.progress import ProgressLine
from dualfield.solvers.trace import relative_gap
from dualfield.structures import Chain
from dualfield.structures.pairwise import Pairwise

__all__ = ["ConditionalGraphicalModel"]

_DEFAULT_PASSES = 10_000.0


class ConditionalGraphicalModel(GraphicalPredictor, Estimator):
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
    graph : int, Chain, list of tuples, "tree", Tree or Graph, default=1
        Sequences: the order of the chain; a clique is order + 1 neighbours (0, 1, 2 are the paper's Graph1 to Graph3).
        Outputs of fixed size, `y` of shape (n, n_nodes): cliques as tuples of columns, or with "tree" the maximum
        spanning tree of the mutual information of the columns of `y`. Columns are given labels that they had in
        training, no others. Examples of any shape: :class:`dualfield.structures.Tree` or
        :class:`dualfield.structures.Graph`, an object, whose edges are the cliques, with the label of the node that an
        edge comes from first; a node without an edge is a clique of its own. Edges are put together again as the object
        says: exactly, or by bounds.
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
    tying : {"shared", "position", "type"} or callable, default=None
        Which cliques of a size are of one type: all; those whose first node has the same position; or those with the
        same ``tying(position, length)``, both with blank nodes counted. In fixed graphs a position is a tuple of nodes.
        None: "shared" for sequences, "position" for fixed graphs, and "type", edges of one type, for trees and graphs,
        which take "shared" else.
    padding : (int, int), default=(0, 0)
        Blank nodes before and behind each sequence: rows of zeros with a label of their own. For sequences only.
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
        "joint": rows of the nodes side by side, behind them those of the edge, if it has features; weights for each
        tuple. "tied": the score is a sum over the nodes, with weights for node and label, trained over the seen tuples
        ("hinge" only). "tied_separately": models of single nodes, summed over cliques; larger ones only say what was
        seen. "tied_printed": weights for each tuple and the sum of the kernels of its nodes, as the formula in the
        paper has it, which ties nothing.
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
        From (size, key) to :class:`dualfield.solvers.kernel.cliques.CliqueModel`, one for each type. With "type" the
        key is the type of an edge, and 0 for nodes.
    graph_ : int, list of tuples, Tree or Graph
        The order of the chain, the cliques of a fixed graph, or the tree or graph with its number of labels.
    objective_, dual_gap_ : float
        Sums over all types; NaN with `base_estimator`.
    n_iter_ : int
        Largest number of iterations.
    calibration_ : Calibration
        What :meth:`calibrate` chose, if it was called.
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

    Probabilities multiply those of cliques that overlap, so nothing makes them calibrated but :meth:`calibrate`, which
    divides scores by one temperature. Choose C by their log-loss on held-out data, and do not trust them on examples
    unlike those of training.

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

    Graphs, with the edges that join their nodes:

    >>> from dualfield.structures import Graph
    >>> circle, star = (X[0], [(0, 1), (1, 2), (2, 0)]), (X[1][[0, 0, 1]], [(0, 1), (0, 2)])
    >>> graphs = ConditionalGraphicalModel(Graph(), loss="log").fit([circle, star], [["a", "b", "a"], ["b", "b", "a"]])
    >>> graphs.predict([(X[1], [(0, 1)])])
    [['b', 'a']]
    >>> sorted(graphs.clique_models_)
    [(1, 0), (2, 0)]
    """

    _saved_as = "ConditionalGraphicalModel"
    # The cost of backing off and the weights of the orders are settings of the prediction.
    _asked_with = ("graph", "loss", "base_estimator", "tying", "padding", "unseen", "features", "response_method")
    _model_type = GraphicalModel
    classes_: NDArray[Any] = fitted("classes")
    labels_: Labels = fitted("labels")
    clique_models_: dict[tuple[int, Hashable], CliqueModel] = fitted("models")
    graph_: Any = fitted("graph")
    n_nodes_: int = fitted("n_nodes", is_optional=True)
    status_: Any

    def __init__(
        self,
        graph: int | Chain | Sequence[tuple[int, ...]] | Literal["tree"] | Pairwise = 1,
        *,
        loss: Literal["hinge", "log", "squared"] = "hinge",
        base_estimator: Any = None,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: float | Literal["clique", "scale", "auto"] = "clique",
        coef0: float = 0.0,
        degree: float = 3.0,
        C: float | None = None,
        tying: Literal["shared", "position", "type"] | Callable[[Any, int], Hashable] | None = None,
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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if isinstance(self.graph, (list, tuple, str)):  # outputs of fixed size: a column for each node
            tags.input_tags.sparse = tags.input_tags.three_d_array = True
            tags.target_tags.two_d_labels = tags.target_tags.multi_output = True
            tags.target_tags.single_output = False
        return tags

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, lengths: ArrayLike | None = None) -> Self:
        """Train a model for each type of clique.

        Parameters
        ----------
        X : list of arrays of shape (length_i, d), or array, or list of trees or graphs
            Sequences, in any form with numbers that :meth:`dualfield.data.Batch.build` takes. For a fixed graph an
            array of shape (n, n_nodes, d), a row for each node, or (n, d), rows that all cliques share. For trees and
            graphs what :meth:`dualfield.structures.Tree.open` and :meth:`dualfield.structures.Graph.open` take, with
            numbers as features of nodes and edges.
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
        model, data, sizes = read_training(self, X, y, sample_weight, lengths)
        task = CliqueTask(
            loss=self.loss,
            features=self.features,
            kernel=Kernel(self.kernel, 1.0, float(self.coef0), float(self.degree)),
            gamma=self.gamma,
            C=float(DEFAULT_C[self.loss] if self.C is None else self.C),
            estimator=self.base_estimator,
            random_state=self.random_state,
            cache_bytes=int(self.cache_size),
        )
        rule = StopRule(float(self.tol), _DEFAULT_PASSES if self.max_iter is None else float(self.max_iter))
        models = solve_cliques(list(clique_problems(task, data, sizes)), rule, self.n_jobs, int(self.verbose))
        kind, kind_of_probability = score_kinds(self, models)
        self._model = replace(model, models=models, kind=kind, kind_of_probability=kind_of_probability)
        self._keep(list(models.values()))
        return self

    def _keep(self, models: list[CliqueModel]) -> None:
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

    def _check_restored(self) -> None:
        check_parameters(self)
        graph = self._of_fit("graph")
        if isinstance(graph, Chain) and (graph.n_labels or 0) ** (graph.order + 1) > Source.most_entries:
            raise ValueError(
                f"The model cannot be saved: graph={graph!r} lists more windows of labels than a file takes; "
                f"use {graph.order}."
            )

    def _model_record(self) -> Fields:
        check_combined(self.combine, self.model_.order)
        return super()._model_record()

    def _restore_model(self, record: Record) -> None:
        super()._restore_model(record)
        model: GraphicalModel = self._model
        check_combined(self.combine, model.order)
        record.check(model.n_features == self.n_features_in_, f"it has {model.n_features} columns in its cliques.")
        if summary(list(model.models.values())) != (self.objective_, self.dual_gap_, self.n_iter_, self.status_):
            raise record.fault("its 'training' must be the sum of that of all types of cliques.")

    def _training_record(self) -> Fields:
        return {
            "objective": float(self.objective_),
            "gap": float(self.dual_gap_),
            "relative_gap": float(relative_gap(self.objective_, self.dual_gap_)),
            "n_iter": int(self.n_iter_),
            "status": None if self.status_ is None else self.status_.value,
        }

    def _restore_training(self, record: Record) -> None:
        self.objective_, self.dual_gap_ = record.number("objective"), record.number("gap")
        record.number("relative_gap")  # follows from these
        self.n_iter_ = record.integer("n_iter")
        self.status_ = Status(record.text("status", [known.value for known in Status]))
