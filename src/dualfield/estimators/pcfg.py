"""Probabilistic context-free grammars trained on trees, by counting or for their predictions."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from dualfield.data.arrays import Floats
from dualfield.data.checks import check_choice, check_number
from dualfield.data.costs import cost_table
from dualfield.estimators.base import Estimator, fitting
from dualfield.estimators.checks import check_floor, table_rule, table_solver
from dualfield.estimators.prediction import StructuredPredictor
from dualfield.estimators.running import run
from dualfield.models.generative.margin_training import MarginTraining
from dualfield.models.generative.pcfg import PCFGData, RuleLayout, pcfg_model, read_pcfg_data, reference_rules
from dualfield.models.structured import StructuredModel
from dualfield.solvers import Simplicial, Solution, Status
from dualfield.solvers.convergence import warn_unless_converged
from dualfield.structures import Structure
from dualfield.structures.checks import n_threads
from dualfield.structures.registry import structure_of

__all__ = ["DiscriminativePCFG"]


class DiscriminativePCFG(StructuredPredictor, Estimator):
    r"""Probabilistic context-free grammar: counted in trees, or trained for its predictions with a certified gap.

    A tree s of a sentence o has the probability of its rules, log P(s, o) = Σ θ of the rules of its derivation, and the
    rules of one parent symbol are a row of a table. With ``eta=0`` the probabilities are counted: the
    maximum-likelihood PCFG. With ``eta > 0`` they minimise

    .. math::
        \sum_A |c_A| \, \mathrm{KL}(c_A / |c_A| \,\|\, e^{\theta_A}) + \eta \sum_k v_k \max_s \,
        [ \Delta(s_k, s) + \log P(s, o_k) - \log P(s_k, o_k) ]
        \quad \text{subject to} \quad \mathbf{1}^\top e^{\theta_A} \le 1, \; \theta \ge \log(\mathrm{floor})

    over the parent symbols A and the sentences k with weights v_k: near the counts c, and such that the true tree beats
    all others by what these cost (Yu, Bertsekas and Rousu). The problem is convex if all trees are known.

    Parameters
    ----------
    eta : float, default=0.01
        Weight of the margins; 0: count only.
    structure : "grammar" or Grammar, default="grammar"
        The grammar, or how it is read off the trees: see :class:`dualfield.structures.Grammar`.
    prior : {"prob", "count", "uniform"}, default="prob"
        c of the formula: rows of probabilities; counts, which says that a symbol often seen is trusted more; or rows
        that are uniform.
    smoothing : float, default=0.0
        Added to every count. Rules are those of the training trees, so that all have a count; rules that are given may
        have none, and with ``eta > 0`` need a smoothing.
    floor : float, default=1e-11
        The least probability that margins may lead to.
    loss : "hamming" or array of shape (n_labels, n_labels), default="hamming"
        Δ of the formula adds up 1 for each span with a wrong label, brackets that are missing and brackets too many
        among them; or the cost of a label (column) where another is true (row), the empty label first.
    solver : "simplicial" or Simplicial, default="simplicial"
        The solver for ``eta > 0``. An object has its own `max_columns` and `n_blocks`.
    tol : float, default=1e-2
        On the relative duality gap, gap / dual value.
    max_iter : int, default=None
        Limit on rounds of the solver; None: 10000.
    max_columns, n_blocks
        As in :class:`dualfield.solvers.Simplicial`.
    n_jobs : int, default=None
        Threads. Results do not depend on it.
    warm_start : bool, default=False
        Whether a fit begins at the probabilities of the one before, if it has the same rules.
    verbose : int, default=0
        1: a live line; 2: a line for every look.

    Attributes
    ----------
    structure_ : Grammar
        The grammar.
    classes_ : array of shape (n_labels,)
        The labels of spans, the empty one first.
    probabilities_ : dict from str to float
        Of rules: binary ones, lexical ones, and roots.
    missing_mass_ : dict from str to float
        What the rules of the parent of each rule lack to one; NaN unless the fit has converged.
    objective_, dual_gap_ : float
        The minimised value, and a bound on its distance from the minimum. Where trees are not known as a whole, the
        bound is that of the last convex problem.
    n_completions_ : int
        How often trees were completed, each time followed by a convex problem; 0 if all are known.
    n_iter_, solver_, status_, trace_
        Rounds and name of the solver, how it ended, and its course.

    See Also
    --------
    dualfield.CRF : With ``structure="grammar"``: weights of the same rules that are no probabilities.

    Notes
    -----
    Trees that are None, or :class:`dualfield.data.PartialTree`, are not known as a whole. Counts are then those of EM
    with what is known fixed, and with ``eta > 0`` training alternates between the best trees that agree with it and the
    convex problem for these.

    The temperature that ``calibrate`` chooses is that of probabilities of trees given their sentence. The rules keep
    theirs, and so does :meth:`score_samples`.

    Examples
    --------
    >>> from dualfield import DiscriminativePCFG
    >>> X = [[("dogs", "N"), ("bark", "V")], [("dogs", "N"), ("see", "V"), ("cats", "N")]]
    >>> y = ["(S (NP (N dogs)) (VP (V bark)))", "(S (NP (N dogs)) (VP (V see) (NP (N cats))))"]
    >>> model = DiscriminativePCFG(eta=0.0).fit(X, y)
    >>> model.predict([[("cats", "N"), ("see", "V"), ("dogs", "N")]])
    ['(S (NP (N cats)) (VP (V see) (NP (N dogs))))']
    >>> model.probabilities_["VP -> V NP"]
    0.5
    """

    _saved_as = "DiscriminativePCFG"
    _model_type = StructuredModel
    _counted: ClassVar[dict[str, type]] = {"n_completions_": int}
    n_completions_: int

    def __init__(
        self,
        eta: float = 0.01,
        *,
        structure: Literal["grammar"] | Structure = "grammar",
        prior: Literal["prob", "count", "uniform"] = "prob",
        smoothing: float = 0.0,
        floor: float = 1e-11,
        loss: Literal["hamming"] | ArrayLike = "hamming",
        solver: Literal["simplicial"] | Simplicial = "simplicial",
        tol: float = 1e-2,
        max_iter: int | None = None,
        max_columns: int = 60,
        n_blocks: int | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.eta = eta
        self.structure = structure
        self.prior = prior
        self.smoothing = smoothing
        self.floor = floor
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_columns = max_columns
        self.n_blocks = n_blocks
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    @fitting
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train on sentences with trees.

        Parameters
        ----------
        X : list of sentences
            Lists of tokens, (word, tag).
        y : list of trees
            :class:`dualfield.data.ParseTree`, brackets, trees of NLTK or spans; None or a partial tree where a tree is
            not known as a whole.
        sample_weight : array of shape (n_sentences,), default=None
            Weights v_k of at least 0, of counts and margins.

        Returns
        -------
        DiscriminativePCFG
            The fitted model.

        Examples
        --------
        >>> from dualfield import DiscriminativePCFG
        >>> X, y = [[("dogs", "N"), ("bark", "V")]], ["(S (NP (N dogs)) (VP (V bark)))"]
        >>> DiscriminativePCFG(eta=0.1).fit(X, y).dual_gap_ < 1e-6
        True
        """
        solver = self._check_parameters()
        owner = type(self).__name__
        data = read_pcfg_data(owner, structure_of(owner, self.structure), X, y, sample_weight)
        cost = cost_table(owner, "loss", self.loss, data.labels.classes.tolist())
        counts = data.counts(float(self.smoothing), n_threads(self.n_jobs)) + float(self.smoothing)
        reference = reference_rules(owner, self.prior, data.layout, counts, positive=float(self.eta) > 0.0)
        if float(self.eta) == 0.0:
            with np.errstate(divide="ignore"):
                tables = data.layout.pack(np.log(data.layout.normalised(reference)))
            solution, self.n_completions_ = Solution.exact(tables, "counting"), 0
        else:
            check_floor(self, data.layout.pack(reference), data.layout.rows())
            training = MarginTraining(data, reference, cost, float(self.eta), float(self.floor), n_threads(self.n_jobs))
            rule, start = table_rule(self), self._warm_start(data)
            solution = run(self, lambda callbacks, seed: training.solve(solver, rule, start, callbacks))
            self.n_completions_ = training.n_completions
        self._keep(pcfg_model(data, solution.parameters), solution)
        warn_unless_converged(solution, float(self.tol))
        return self

    def _warm_start(self, data: PCFGData) -> Floats | None:
        """Return the probabilities of the fit before, if they are of the same rules."""
        old: StructuredModel | None = self._previous() if self.warm_start else None
        if old is None or old.structure != data.layout.structure:
            return None
        return np.maximum(old.parameters, float(np.log(self.floor)))

    def _check_parameters(self) -> Any:
        owner = type(self).__name__
        check_choice(owner, "prior", self.prior, ("prob", "count", "uniform"))
        check_number(owner, "smoothing", self.smoothing, 0.0)
        return table_solver(self)

    def _check_restored(self) -> None:
        self._check_parameters()

    def _layout(self) -> RuleLayout:
        return RuleLayout.of(self.structure_)

    @property
    def probabilities_(self) -> dict[str, float]:
        """Probabilities of rules, by their names."""
        layout = self._layout()
        found = np.exp(layout.unpack(self.model_.parameters)).tolist()
        return dict(zip(layout.structure.rule_names, found, strict=True))

    @property
    def missing_mass_(self) -> dict[str, float]:
        """What the rules of the parent of each rule lack to one; NaN unless the fit has converged."""
        layout = self._layout()
        lacks = layout.missing_mass(np.exp(layout.unpack(self.model_.parameters)))
        if self.status_ is not Status.CONVERGED:
            lacks = np.full_like(lacks, np.nan)
        return dict(zip(layout.structure.rule_names, lacks.tolist(), strict=True))

    def score_samples(self, X: Any, y: Any = None) -> Floats:
        """Return the log-probability of sentences, or of trees and sentences together.

        Parameters
        ----------
        X : list of sentences
            As in :meth:`fit`.
        y : list of trees, default=None
            Trees, as in :meth:`fit`; what is not known of them is summed over. None: nothing is known.

        Returns
        -------
        array of shape (n_sentences,)
            log P(sentence, what is known of its tree).

        Examples
        --------
        >>> from dualfield import DiscriminativePCFG
        >>> X, y = [[("dogs", "N"), ("bark", "V")]], ["(S (NP (N dogs)) (VP (V bark)))"]
        >>> DiscriminativePCFG(eta=0.0).fit(X, y).score_samples(X, y)
        array([0.])
        """
        model, threads = self._ask(), n_threads(self.n_jobs)
        scores = model.scores(X, None, threads)
        if y is not None:
            scores = scores.only(model.possible_labels(y, scores.shape, "y"))
        return model.structure.log_partition(scores, n_jobs=threads)
