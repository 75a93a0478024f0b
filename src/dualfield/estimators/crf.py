"""Conditional random fields on sequences."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from dualfield.data import CompiledCorpus
from dualfield.data.arrays import Floats
from dualfield.data.checks import check_number
from dualfield.data.partial_labels import read_labels
from dualfield.estimators.base import Estimator, fitting
from dualfield.estimators.checks import check_structured, check_structured_kernel, matrix_rows
from dualfield.estimators.partitioned import (
    PARTITION_ATTRIBUTES,
    fit_kernel_partitions,
    fit_partitions,
    kernel_partitions,
    refuse_client,
    refuse_weights,
)
from dualfield.estimators.prediction import StructuredPredictor
from dualfield.estimators.running import check_memory, is_streamed, run, run_on_corpus, run_with_kernel
from dualfield.features import Template
from dualfield.losses import Loss
from dualfield.models.bayes.evidence import EvidenceTable
from dualfield.models.carry_over import carry_over
from dualfield.models.part_sources import is_partitioned
from dualfield.models.structured import StructuredModel
from dualfield.models.training_data import TrainingData, read_training_data, template_of
from dualfield.objectives import Objective
from dualfield.persistence.checkpoint import Checkpoint
from dualfield.persistence.crfsuite_export import write_crfsuite
from dualfield.persistence.crfsuite_import import UNTRAINED, read_crfsuite
from dualfield.regularisers import ElasticNet
from dualfield.solvers import SGD, Moment, Solution, StopRule, prototypes
from dualfield.solvers.callbacks import FitCallbacks
from dualfield.solvers.convergence import warn_unless_converged
from dualfield.solvers.primal.relay import solve_in_turn
from dualfield.solvers.registry import pick_solver, suited
from dualfield.structures import Structure
from dualfield.structures.checks import n_threads
from dualfield.structures.registry import structure_of
from dualfield.tuning.evidence import evidence_search

__all__ = ["CRF"]


class CRF(StructuredPredictor, Estimator):
    r"""Linear-chain conditional random field, trained to a certified duality gap.

    For a sequence x with labels y, score(y) = Σ_t ⟨w_{y_t}, x_t⟩ + Σ_t w_{y_{t-1}, y_t} and p(y | x) is proportional
    to exp(score(y) / T). The weights minimise

    .. math::
        \tfrac{1 - \rho}{2} \|w\|^2 + \rho \|w\|_1 + C \sum_i v_i
        \bigl[ T \log \sum_y \exp \frac{\mathrm{score}(y) + \Delta(y_i, y)}{T} - \mathrm{score}(y_i) \bigr]

    with ρ = ``l1_ratio``, v_i the weight of a sequence and Δ the cost of its wrong labels, 0 unless ``cost`` is given.
    C is the C of CRF++; CRFsuite's c1 and c2 are C = 1 / (c1 + 2 c2), l1_ratio = c1 C; Wapiti's rho1 and rho2 are
    C = 1 / (rho1 + rho2), l1_ratio = rho1 C.

    Parameters
    ----------
    structure : str or Structure, default="chain"
        "chain": label sequences; ``Chain(order=2)`` looks two labels back, and so on. "single": one label for each row
        of a matrix, which is multinomial logistic regression without intercept. "tree": rooted trees. Or a structure of
        your own, see :class:`dualfield.structures.Structure`.
    C : float or "evidence", default=1.0
        Weight of the losses against the penalty: smaller values penalise more. "evidence": the value between 0.1 and
        1000 under which the labels of the training data are most probable whatever the weights, see :meth:`evidence`;
        ``C_`` tells it.
    l1_ratio : float, default=0.0
        Share of the penalty on absolute values, which sets weights to zero.
    features : {"observed", "all"}, default="observed"
        'observed': weights only for (attribute, label) and (label, label) pairs seen in training; 'all': for every one.
        A transition that has no weight scores 0 and is allowed.
    min_freq : int, default=0
        How often an attribute must occur with a label to get a weight; 0 with ``features="all"``.
    pair_features : bool or list of str or int, default=False
        Attributes that also score pairs of labels, the one before and their own: all of them, those that begin with one
        of these strings, or these columns of numeric input.
    start_stop : bool, default=False
        Whether the first and the last label of chains and of sequences of segments have weights of their own, and the
        labels of roots of "tree".
    template : Template or str, default=None
        Makes attributes of raw columns; items of X are then rows of strings. A template, its text, or a built-in one:
        "default", which suits most tables whose first column are words, or "chunking". See
        :class:`dualfield.features.Template`.
    constraints : {"BIO", "BIOES"} or bool array of shape (n_labels, n_labels), default=None
        Labels that may follow each other, in training and in prediction; rows are the label on the left, in the order
        of ``classes_``.
    class_weight : dict or "balanced", default=None
        Weights of labels; a sequence counts as the mean weight of its labels.
    cost : "hamming" or array of shape (n_labels, n_labels), default=None
        Δ for each node: 1 for a wrong label, or by true label (row) and label (column), with zeros on the diagonal.
    temperature : float, default=1.0
        T of the formula, above 0.
    kernel : {"linear", "poly", "rbf", "laplacian", "sigmoid"} or callable, default=None
        Node scores are expansions in a kernel on the rows of the nodes, as in
        :class:`dualfield.KernelLogisticRegression`, instead of weights of columns; transitions keep their weights.
    kernel_on : {"nodes", "pairs", "both"}, default="nodes"
        What the kernel scores. "pairs": the labels of neighbours, for every edge e of a chain of order 1, a tree or a
        graph, Σ_e' κ(x_e, x_e') B_e'[a, b], where x_e are the rows of its two nodes side by side, or the features of
        the edge where edges have some; nodes then have no scores of their own. "both": pairs and nodes. Memory beside
        ``cache_size``: some ten numbers of 8 bytes for each edge and pair of labels.
    gamma : {"scale", "auto"} or float, default="scale"
        γ of "poly", "rbf", "laplacian" and "sigmoid": given, 1 / n_columns, or that divided by the variance of X.
    pair_gamma : {"scale", "auto"} or float, default=None
        The same for the kernel on pairs; None: as gamma. Pairs are further apart than nodes, so that a number which is
        good for nodes is too large for them.
    degree, coef0 : float, default=3, 0.0
        Of "poly" and "sigmoid".
    kernel_approx : int, (int, str) or array of points, default=None
        Seek node scores in the span of so many landmarks only: fits and predictions then cost the same however many
        nodes there are, and ``dual_gap_`` says what that may have lost. The str says how they are chosen: "k-means++",
        "greedy", "leverage" or "random".
    transition_scale : float, default=1.0
        With a kernel: transitions, ends and the kernel on pairs score this times their weights, which are penalised as
        those of nodes are. Below 1 they count for less, as where sequences to come have other transitions than those in
        training.
    cache_size : float, default=4e9
        Bytes for kernel values; beyond that they are computed again.
    solver : str or solver object, default="auto"
        "auto", "block_dual", "lbfgs" (OWL-QN where l1_ratio > 0, Newton's method where that crawls), "sgd" (averaged
        stochastic gradients), "perceptron" (averaged), "passive_aggressive", "arow", an object of
        :mod:`dualfield.solvers`, or a user-defined one with ``name``, ``missing`` and ``solve``. With a kernel: "auto",
        "kernel_ascent", or "labelling_smo", which lists all labellings and is for short sequences.
    tol : float, default=1e-4
        Stop when duality gap / dual value is at most this. No aim for "sgd" and those that learn from mistakes.
    max_iter : int, default=None
        Most passes over the data; None: 10,000, and for those that make epochs 30.
    n_jobs : int, default=None
        Threads; None is 1 unless a joblib context says otherwise, -1 is all cores. Results do not depend on it.
    warm_start : bool, default=False
        Begin at the weights of the last fit, unless they are worse than zero; attributes and labels are matched by
        name, columns of numbers by place.
    random_state : int, RandomState or None, default=None
        Seed of the order of examples; None is 0, so that the same data give the same model.
    verbose : int, default=0
        1: a live line; 2: a line for every look at the gap.

    Attributes
    ----------
    classes_, labels_, structure_, vocabulary_, score_map_, parameters_
        See :class:`dualfield.estimators.prediction.StructuredPredictor`.
    coef_ : sparse matrix or array of shape (n_labels, n_columns)
        Weights of attributes.
    transitions_ : array of shape (n_labels, n_labels)
        Weights of transitions, the label on the left first.
    start_, stop_ : array of shape (n_labels,)
        Weights of the first and the last label.
    expansion_ : Expansion or None
        Points, coefficients and kernel of the node scores, where there is a kernel.
    pair_expansion_ : Expansion or None
        The same for the scores of pairs of neighbours, see ``kernel_on``.
    n_features_ : int
        Number of weights, and of coefficients of a kernel.
    feature_names_in_ : array of shape (n_columns,)
        Names of columns, if `X` was data frames.
    objective_ : float
        The minimised value; where it is minimised never more than at weights of zero, to within the gap.
    dual_gap_ : float
        A proven bound on its distance from the minimum, computed from the returned weights. NaN for partly labelled
        sequences, where the problem is not convex.
    certified_problem_ : {"full", "inducing_points"}
        Which problem the gap is about: "inducing_points" after a fit with a kernel to partitions, where the distance of
        that problem from the one without landmarks is not known.
    relaxation_ : str or None
        "trw" where graphs were too wide for exact answers: then `objective_` is an upper bound of the exact one, and
        `dual_gap_` that of the relaxed problem. See :class:`dualfield.structures.Graph`.
    C_ : float
        The C of the fit: that of ``C="evidence"``, or the given one.
    evidence_ : EvidenceTable
        What ``C="evidence"`` was chosen by; not in files.
    n_partitions_, n_rounds_, bytes_moved_ : int
        After a fit to partitions: how many there were, exchanges with all of them, and bytes of values and their places
        that they have sent.
    n_iter_ : int
        Iterations of the solver.
    solver_, status_, trace_
        Name of the solver that ran, how it ended, and its course.

    See Also
    --------
    dualfield.KernelLogisticRegression : One label for each example, with a kernel.

    Examples
    --------
    >>> from dualfield import CRF
    >>> X = [[{"word": "Rex"}, {"word": "barks"}], [{"word": "Tom"}, {"word": "and"}, {"word": "Rex"}]]
    >>> y = [["name", "other"], ["name", "other", "name"]]
    >>> model = CRF(C=10.0).fit(X, y)
    >>> model.predict([[{"word": "Tom"}, {"word": "barks"}]])
    [['name', 'other']]
    >>> model.dual_gap_ <= 1e-4 * model.objective_
    True
    """

    _saved_as = "CRF"
    _asked_with = ("temperature", "template")
    _model_type = StructuredModel
    _counted: ClassVar[dict[str, type]] = {
        "n_seen_": int,
        "C_": float,
        **dict.fromkeys(PARTITION_ATTRIBUTES, int),
    }
    n_seen_: int
    n_partitions_: int
    n_rounds_: int
    bytes_moved_: int
    C_: float
    evidence_: EvidenceTable

    def __init__(
        self,
        structure: str | Structure = "chain",
        C: float | Literal["evidence"] = 1.0,
        *,
        l1_ratio: float = 0.0,
        features: Literal["observed", "all"] = "observed",
        min_freq: int = 0,
        pair_features: bool | Sequence[str] | Sequence[int] = False,
        start_stop: bool = False,
        template: Template | str | None = None,
        constraints: str | ArrayLike | None = None,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        cost: Literal["hamming"] | ArrayLike | None = None,
        temperature: float = 1.0,
        kernel: str | Callable[..., Any] | None = None,
        kernel_on: Literal["nodes", "pairs", "both"] = "nodes",
        gamma: float | Literal["scale", "auto"] = "scale",
        pair_gamma: float | Literal["scale", "auto"] | None = None,
        degree: float = 3,
        coef0: float = 0.0,
        kernel_approx: int | tuple[int, str] | ArrayLike | None = None,
        transition_scale: float = 1.0,
        cache_size: float = 4e9,
        solver: str | Any = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.structure = structure
        self.C = C
        self.l1_ratio = l1_ratio
        self.features = features
        self.min_freq = min_freq
        self.pair_features = pair_features
        self.start_stop = start_stop
        self.template = template
        self.constraints = constraints
        self.class_weight = class_weight
        self.cost = cost
        self.temperature = temperature
        self.kernel = kernel
        self.kernel_on = kernel_on
        self.gamma = gamma
        self.pair_gamma = pair_gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_approx = kernel_approx
        self.transition_scale = transition_scale
        self.cache_size = cache_size
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        monitor: Callable[[Moment, CRF], Any] | None = None,
        checkpoint: Checkpoint | str | os.PathLike[str] | None = None,
        client: Any = None,
        memory: float | None = None,
    ) -> Self:
        """Train on labelled sequences, or on partitions of them, here or on a cluster.

        Partitions are read where they are worked on, and trained on by L-BFGS (see "Training on a cluster" in the
        guide). The same partitions give the same bits with any number of workers, and without a client, where they are
        worked on one after another. They can have chains of order 1, and no `pair_features`; with a kernel,
        `kernel_approx` and sequences of numbers. A compiled corpus without a client is trained on by block dual ascent
        within `memory` bytes, unless ``solver="lbfgs"``.

        Parameters
        ----------
        X : list, generator, array or sparse matrix
            Sequences: lists of dicts, of lists of attribute strings, matrices of numbers, or one matrix and `lengths`;
            see :meth:`dualfield.data.Batch.build`. With a template, lists of rows of strings. Or partitions, without
            `y`: a path, a glob such as ``"corpus/*.gz"`` or a list of paths (columns with the label last where there
            is a template, CRFsuite's items otherwise); a :class:`dualfield.data.CompiledCorpus`; a Dask bag of pairs
            (items, labels); a list of delayed values or futures that are pairs (X, y) or
            :class:`dualfield.data.Partition`. With a kernel: a list of pairs (X, y), of functions without arguments
            that return one, of delayed values or of futures.
        y : list of lists of labels, default=None
            str, int or bool. None, or a set of labels, at a node means that its label is not known, or only in part;
            the likelihood is then that of what is known, and the problem is no longer convex.
        sample_weight : array of shape (n_sequences,), default=None
            Weights v_i of at least 0.
        lengths : array of int, default=None
            How many rows of a flat `X` each sequence has.
        monitor : callable, default=None
            Called at the end of each pass with a :class:`dualfield.solvers.Moment` and the model of that moment, which
            can predict. A true value that it returns ends the fit. It does not change the course of the fit.
        checkpoint : Checkpoint or path, default=None
            Keeps the state of the fit in a file, now and then. If that file exists, the fit goes on from it, to the
            result that it would have had without a break. See :class:`dualfield.estimators.Checkpoint`.
        client : distributed.Client or str, default=None
            For partitions: the Dask cluster that works on them, or the address of its scheduler, such as
            "tcp://host:8786". None: this process, or the cluster that futures are on.
        memory : float, default=None
            With a :class:`dualfield.data.CompiledCorpus`: bytes for weights, tables of features, sentences and dual
            points; None is 4e9. What does not fit is in a file in the temporary folder. See
            :doc:`/guide/out_of_core`. None with other input.

        Returns
        -------
        CRF
            The fitted model.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import CRF
        >>> X = [np.array([[1.0], [-1.0]]), np.array([[-2.0], [2.0], [1.0]])]
        >>> CRF().fit(X, [["up", "down"], ["down", "up", "up"]]).predict([np.array([[3.0]])])
        [['up']]
        """
        solver = self._check_parameters()
        old = self._previous() if self.warm_start else None
        for name in ("evidence_", *PARTITION_ATTRIBUTES):
            self.__dict__.pop(name, None)
        owner = type(self).__name__
        if is_streamed(X, self.solver, client):
            given = {"y": y, "sample_weight": sample_weight, "lengths": lengths, "monitor": monitor}
            solution = self._fit_corpus(X, solver, old, checkpoint, memory, given)
            warn_unless_converged(solution, float(self.tol))
            return self
        check_memory(memory)
        if (parts := kernel_partitions(self, X, y)) is not None:
            refuse_weights(owner, sample_weight=sample_weight, lengths=lengths)
            looking_on = {"monitor": monitor, "checkpoint": checkpoint}
            solution = fit_kernel_partitions(self, parts, client, float(self.temperature), **looking_on)
            self.C_ = float(self.C)
        elif is_partitioned(X, y):
            refuse_weights(owner, sample_weight=sample_weight, lengths=lengths)
            solution = fit_partitions(self, X, solver, client, monitor, Checkpoint.of(checkpoint))
            self.C_ = float(self.C)
        else:
            refuse_client(owner, client)
            data = self._read(X, y, sample_weight, lengths)
            self._fit_read(data, solver, old, monitor, Checkpoint.of(checkpoint))
            return self
        warn_unless_converged(solution, float(self.tol))
        return self

    def _fit_corpus(
        self, corpus: CompiledCorpus, solver: Any, old: Any, checkpoint: Any, memory: float | None, given: Any
    ) -> Solution[Floats]:
        if isinstance(self.C, str):
            raise ValueError("The 'C' parameter of CRF must be a number with a CompiledCorpus. Got 'evidence' instead.")
        self.C_, temperature = float(self.C), float(self.temperature)
        penalty = ElasticNet(float(self.l1_ratio)) if self.l1_ratio > 0.0 else None
        solution, data = run_on_corpus(
            self, corpus, solver, penalty, temperature, old=old, checkpoint=checkpoint, memory=memory, **given
        )
        self._keep(data.model(solution.parameters, temperature), solution)
        return solution

    def evidence(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        Cs: int | Iterable[float] | None = None,
        method: Literal["grid", "fixed_point"] = "grid",
        lengths: ArrayLike | None = None,
    ) -> EvidenceTable:
        r"""Return how probable the labels are for several C, whatever the weights; nothing is held out.

        The penalty says that weights are Gaussian with variance C before the labels are seen. Their evidence is

        .. math::
            p(y \mid X, C) = \int N(w; 0, C I) \, p(y \mid X, w) \, dw,

        by Laplace's approximation at the fitted weights. Its log-determinant is exact for up to 2,000 weights, and by
        random probes with a standard error for more. With many labels and few weights the exact one takes long: 26
        labels need about 25 times the fit, and :class:`dualfield.CRFCV` less.

        Parameters
        ----------
        X, y, sample_weight, lengths
            As in :meth:`fit`. All labels must be known.
        Cs : int or list of float, default=None
            Values of C; an int: so many between 0.1 and 100. None: decades from 0.1 to 1000, and half decades beside
            the best.
        method : {"grid", "fixed_point"}, default="grid"
            "fixed_point" begins at C = 1 and moves to ‖w‖² divided by the number of weights that the data determine,
            until it stays where it is; `Cs` is not used.

        Returns
        -------
        EvidenceTable
            A row for each C, and ``best``; print it to read it.

        Examples
        --------
        >>> from dualfield import CRF
        >>> from dualfield.datasets import load_town_news
        >>> news = load_town_news()
        >>> template = "U:%x[0,0]"
        >>> print(CRF(template=template).evidence(news.X_train[:40], news.y_train[:40], Cs=[0.1, 1.0, 10.0]))
                 C  log-evidence  weights informed
               0.1     -1248.541               9.7
                 1      -954.848              84.9
                10      -668.254             259.3  best
        """
        self._check_parameters()
        base = clone(self).set_params(C=1.0, warm_start=False, verbose=0)
        return evidence_search(base, base._read(X, y, sample_weight, lengths), Cs, method)[0]

    @classmethod
    def from_crfsuite(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that CRFsuite, python-crfsuite or sklearn-crfsuite has trained.

        It has the features and weights of the file, and tags as CRFsuite does. Attributes that it does not know are
        ignored. `objective_` and `dual_gap_`, which the file does not tell, are NaN.

        Parameters
        ----------
        path : str or path-like
            The model file.

        Returns
        -------
        CRF
            A fitted model.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from dualfield import CRF
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "cut_off.crfsuite")
        ...     _ = path.write_bytes(b"lCRF")
        ...     CRF.from_crfsuite(path)
        Traceback (most recent call last):
            ...
        ValueError: ...cut_off.crfsuite is cut off: it has 4 bytes, fewer than the header of a model.
        """
        model = cls()
        model._remember()
        model._keep(read_crfsuite(path), UNTRAINED)
        return model

    def to_crfsuite(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model as a file that CRFsuite, python-crfsuite and sklearn-crfsuite can tag with.

        They then give the same labels and probabilities. Only chains of order 1 can be written, with attributes but
        without features of label pairs, weights of the ends, constraints or a kernel. A template is not in the file:
        CRFsuite must get the attributes that it makes.

        Parameters
        ----------
        path : str or path-like
            The file; one that exists is replaced when the new one is complete.

        Raises
        ------
        ValueError
            If CRFsuite cannot have such a model; the message says why.

        See Also
        --------
        from_crfsuite : The way back.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from dualfield import CRF
        >>> model = CRF().fit([[["a"], ["b"]]], [["x", "y"]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "model.crfsuite")
        ...     model.to_crfsuite(path)
        ...     CRF.from_crfsuite(path).state_features_ == model.state_features_
        True
        """
        write_crfsuite(self._ask(), path)

    @fitting
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
    ) -> Self:
        """Go once over more sequences with stochastic gradients.

        New attributes get weights; labels must be known at the first call. The penalty is that of C and the number of
        sequences seen so far.

        Parameters
        ----------
        X, y, sample_weight, lengths
            As in :meth:`fit`.
        classes : array, default=None
            All labels there will ever be; needed at the first call if `y` does not have them all.

        Returns
        -------
        CRF
            The model, a little better.

        Examples
        --------
        >>> from dualfield import CRF
        >>> model = CRF(random_state=0).partial_fit([[["a"], ["b"]]] * 20, [["x", "y"]] * 20)
        >>> model.partial_fit([[["c"], ["a"]]] * 20, [["y", "x"]] * 20).predict([[["c"], ["a"]]])
        [['y', 'x']]
        """
        self._check_parameters()
        if self.kernel is not None:
            raise ValueError("partial_fit must have kernel=None: it moves weights of columns.")
        if isinstance(self.C, str):
            raise ValueError("partial_fit must have a number as C: the evidence is that of all data.")
        old: StructuredModel | None = self._previous()
        if old is not None and old.has_kernel:
            raise ValueError("partial_fit goes on from weights of columns; this model was fitted with a kernel.")
        known = None if old is None else old.labels
        if old is None and classes is not None:
            known = read_labels([list(np.asarray(classes).tolist())], np.array([0, np.size(classes)])).labels
        data = self._read(X, y, sample_weight, lengths, known=known, grown_from=old)
        start = None if old is None else carry_over(old, data)
        seen = getattr(self, "n_seen_", 0)
        solution = self._solve(SGD(average=False, n_seen=seen, n_epochs=1), data, start, is_stream=True)
        self._keep(data.model(solution.parameters, float(self.temperature)), solution)
        self.n_seen_ = seen + data.nodes.n_examples
        return self

    def _fit_read(
        self,
        data: TrainingData,
        solver: Any,
        old: Any = None,
        monitor: Callable[[Moment, CRF], Any] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> TrainingData:
        """Choose C where evidence does, fit to data that have been read, and return them with C in their weights."""
        if isinstance(self.C, str):
            table, best = evidence_search(clone(self).set_params(C=1.0, warm_start=False, verbose=0), data)
            self.evidence_, self.C_ = table, table.best.C
            data, old = replace(data, weights=self.C_ * data.weights), best.model_
        else:
            self.C_ = float(self.C)
        if self.kernel is not None:
            solution, expansions = run_with_kernel(
                self, data, float(self.temperature), solver, old, monitor=monitor, checkpoint=checkpoint
            )
            self._keep(data.model(solution.parameters, float(self.temperature), expansions), solution)
        else:
            start = None if old is None else carry_over(old, data)
            solution = self._fit_data(data, start, solver, monitor, checkpoint)
        warn_unless_converged(solution, float(self.tol))
        return data

    @fitting
    def _fit_data(
        self,
        data: TrainingData,
        start: Floats | None,
        solver: Any = None,
        monitor: Callable[[Moment, CRF], Any] | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Solution[Floats]:
        """Fit to data that have been read; without a solver, with that of the parameters."""
        solver = self._check_parameters() if solver is None else solver
        solution = self._solve(solver, data, start, monitor, checkpoint)
        self._keep(data.model(solution.parameters, float(self.temperature)), solution)
        return solution

    def _objective(self, data: TrainingData) -> Objective:
        penalty = ElasticNet(float(self.l1_ratio)) if self.l1_ratio > 0.0 else None
        loss = Loss(float(self.temperature), data.cost)
        return Objective(data.score_map, data.examples, loss, penalty, n_threads(self.n_jobs))

    def _read(self, X: Any, y: Any, sample_weight: Any, lengths: Any, **before: Any) -> TrainingData:
        if structure_of(type(self).__name__, self.structure).is_flat:
            X = matrix_rows(self, X, reset=not before.get("grown_from"))
        settings = clone(self).set_params(C=1.0) if isinstance(self.C, str) else self
        return read_training_data(settings, X, y, sample_weight, lengths, hinge=False, **before)

    def _solve(
        self,
        solver: Any,
        data: TrainingData,
        start: NDArray[np.float64] | None,
        monitor: Callable[[Moment, CRF], Any] | None = None,
        checkpoint: Checkpoint | None = None,
        is_stream: bool = False,
    ) -> Solution[Floats]:
        objective = self._objective(data)
        suited(solver, objective)
        rule = StopRule.of(solver, self.tol, self.max_iter)
        # A stream goes on from its weights whatever they are for this part of it.
        is_left_alone = is_stream or getattr(solver, "safeguarded", False)

        def solve(callbacks: FitCallbacks, seed: int) -> Solution[Floats]:
            if not is_left_alone:
                return solve_in_turn([solver], objective, rule, start, callbacks, seed)
            found: Solution[Floats] = solver.solve(objective, rule, start, callbacks, seed)
            return found

        return run(
            self,
            solve,
            data=data,
            start=start,
            monitor=monitor,
            checkpoint=checkpoint,
            model_at=lambda w: data.model(w, float(self.temperature)),
        )

    def _check_restored(self) -> None:
        self._check_parameters()
        template_of(self.template)

    def _check_parameters(self) -> Any:
        owner = type(self).__name__
        structure_of(owner, self.structure)
        check_number(owner, "C", self.C, 0.0, open_low=True, word="evidence")
        check_number(owner, "l1_ratio", self.l1_ratio, 0.0)
        if self.l1_ratio > 1:
            raise ValueError(
                f"The 'l1_ratio' parameter of {owner} must be a float in [0, 1]. Got {self.l1_ratio!r} instead."
            )
        check_number(owner, "temperature", self.temperature, 0.0, open_low=True)
        check_structured(self)
        if self.kernel is not None:
            return check_structured_kernel(self, float(self.temperature))
        return pick_solver(owner, self.solver, prototypes.objective(1.0))
