"""The questions that estimators of dependent labels answer: each is passed on to the model inside."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data import Labels, Vocabulary
from dualfield.data.arrays import Floats
from dualfield.data.checks import check_choice, check_integer, check_number
from dualfield.data.impossible import warn_impossible
from dualfield.data.records import Record
from dualfield.estimators.base import fitted
from dualfield.estimators.calibrating import calibrated
from dualfield.estimators.checks import matrix_rows
from dualfield.features import Template
from dualfield.metrics.accuracy import share_right
from dualfield.models.explanation import Explanation, explain
from dualfield.models.inspection import TopFeatures, state_features, top_features, transition_features
from dualfield.models.labelling_order import LabellingOrder
from dualfield.models.possible import ranked_where_possible
from dualfield.models.spans import PredictedSpan
from dualfield.models.structured import StructuredModel
from dualfield.models.temperature_scaling import Calibration
from dualfield.scores import Expansion, LinearScores
from dualfield.structures import Scores, Structure
from dualfield.structures.checks import n_threads

__all__ = ["StructuredPredictor"]


class StructuredPredictor:
    """Prediction, probabilities and a look inside, whatever the model was trained with.

    Columns of numeric input are called ``x[0]``, ``x[1]``, and so on.

    Attributes
    ----------
    classes_ : array of shape (n_labels,)
        The labels, sorted; the order of all columns of probabilities.
    labels_ : Labels
        Their codes.
    structure_ : Structure
        How they depend on each other.
    vocabulary_, pair_vocabulary_ : Vocabulary or None
        The attributes that the columns stand for, and those that score pairs of labels; None for numeric input.
    score_map_ : LinearScores
        Which features there are.
    parameters_ : array
        Their weights, in the order of the score map.
    n_features_ : int
        Number of weights.
    expansion_ : Expansion or None
        Points, coefficients and kernel of the node scores, where there is a kernel.
    pair_expansion_ : Expansion or None
        The same for the scores of pairs of neighbours.
    template_ : Template or None
        What makes attributes of columns.
    coef_ : sparse matrix or array of shape (n_labels, n_columns)
        Weights of the columns: sparse for attributes, dense for numeric input.
    transitions_ : array of shape (n_labels, n_labels), or (n_cliques,) above order 1
        Weights of transitions, label on the left first.
    start_, stop_ : array of shape (n_labels,)
        Weights of the first and of the last label.
    calibration_ : Calibration
        How :meth:`calibrate` chose the temperature, once it was called.
    relaxation_ : str or None
        "trw" where the model was trained with tree-reweighted bounds, "max_flow" where it was with maximum flow, and
        not every answer was a labelling; see :class:`dualfield.structures.Graph`.

    Examples
    --------
    >>> from dualfield import CRF
    >>> model = CRF().fit([[["a"], ["b"]]], [["x", "y"]])
    >>> sorted(model.state_features_), sorted(model.transition_features_)
    ([('a', 'x'), ('b', 'y')], [('x', 'y')])
    """

    model_: Any
    n_jobs: int | None
    classes_: NDArray[Any] = fitted("classes")
    labels_: Labels = fitted("labels")
    structure_: Structure = fitted("structure")
    vocabulary_: Vocabulary | None = fitted("vocabulary")
    pair_vocabulary_: Vocabulary | None = fitted("pair_vocabulary")
    score_map_: LinearScores = fitted("score_map")
    parameters_: Floats = fitted("parameters")
    expansion_: Expansion | None = fitted("expansion")
    pair_expansion_: Expansion | None = fitted("pair_expansion")
    n_features_: int = fitted("n_features")
    template_: Template | None = fitted("template")
    coef_: Any = fitted("coef")
    transitions_: Floats = fitted("transitions")
    start_: Floats = fitted("start")
    stop_: Floats = fitted("stop")
    relaxation_: str | None = fitted("relaxation")
    calibration_: Calibration = fitted("calibration", is_optional=True)

    def _ask(self) -> StructuredModel:
        """Return the model that answers."""
        model: StructuredModel = self.model_
        return model

    def _input(self, X: Any) -> Any:
        """Check input before the model reads it: single nodes as scikit-learn does."""
        return matrix_rows(self, X, reset=False) if hasattr(self, "n_features_in_") else X

    @property
    def certified_problem_(self) -> str:
        """Which problem the gap of the fit is about, with a kernel: that of the landmarks, or the full one."""
        has_kernel: bool = self.model_.expansion is not None
        return "inducing_points" if has_kernel and "n_partitions_" in vars(self) else "full"

    def _keep(self, model: Any, solution: Any) -> None:
        """Set what was found, and how the fit ended."""
        self._model = model
        self._name_columns()
        self._keep_solution(solution)  # type: ignore[attr-defined]

    def _name_columns(self) -> None:
        """Set what scikit-learn's users expect of models that read matrices or data frames."""
        if self._model.is_matrix:  # scikit-learn has set it
            return
        names, own = self._model.column_names, vars(self)
        own.pop("n_features_in_", None)
        own.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _restore_model(self, record: Record) -> None:
        super()._restore_model(record)  # type: ignore[misc]
        width, found = self._model.n_columns, vars(self).get("n_features_in_")
        wanted = width if self._model.is_matrix else None
        record.check(found == wanted, f"it has {width} columns, not {found}.")
        self._name_columns()

    def decision_scores(self, X: Any, *, lengths: ArrayLike | None = None) -> Scores:
        """Return the scores of all labels and transitions: what ``structure_`` can be asked about.

        Those of :class:`dualfield.BaggedTagger` and :class:`dualfield.BayesianCRF` are by ``parameters_``, one of their
        models; what they predict are averages.

        Parameters
        ----------
        X : list, generator, array or sparse matrix
            Sequences, in any form that :meth:`dualfield.data.Batch.build` takes.
        lengths : array of int, default=None
            How many rows of a flat `X` each sequence has.

        Returns
        -------
        Scores
            Node scores of shape (n_nodes, n_labels), transitions, and those of the ends.

        Examples
        --------
        >>> from dualfield import CRF
        >>> model = CRF().fit([[["a"], ["b"]]], [["x", "y"]])
        >>> model.decision_scores([[["a"]]]).node.shape
        (1, 2)
        """
        return self._ask().scores(self._input(X), lengths, n_threads(self.n_jobs))

    def predict(
        self,
        X: Any,
        *,
        lengths: ArrayLike | None = None,
        return_bound: bool = False,
        known: Any = None,
        impossible: Literal["raise", "none"] = "raise",
    ) -> Any:
        """Return the most probable labelling of each sequence.

        Parameters
        ----------
        X, lengths
            As in :meth:`decision_scores`.
        return_bound : bool, default=False
            Also return the scores of the labellings, and what a better one could score at most.
        known : list of lists, default=None
            What is known of the labels, in the form of y: at a node its label, a set of labels that it may have, or
            None where nothing is known, also in the place of a whole example. Only labellings that agree are looked at.
        impossible : {"raise", "none"}, default="raise"
            What is done with examples that have no labelling at all, such as sentences that a grammar cannot parse: an
            error that says which and why, or None in their place and a warning that says the same.

        Returns
        -------
        list of lists, or of arrays if the training labels were arrays
            Labels. With `return_bound`, a :class:`dualfield.structures.Bounds` follows: ``score``, ``bound`` and
            ``exact`` for each example. Only graphs that are too wide have labellings that may not be the best.

        Examples
        --------
        >>> from dualfield import CRF
        >>> model = CRF().fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]])
        >>> model.predict([[["a"], ["a"], ["b"]]])
        [['x', 'x', 'y']]
        >>> labels, bounds = model.predict([[["a"], ["b"]]], return_bound=True)
        >>> bounds.exact
        array([ True])
        >>> model.predict([[["a"], ["a"], ["b"]]], known=[["y", None, {"x", "y"}]])
        [['y', 'x', 'y']]
        """
        check_choice("predict", "impossible", impossible, ("raise", "none"))
        if impossible == "none":
            if lengths is not None or return_bound or self._ask().is_matrix:
                raise ValueError("impossible='none' is for lists of examples, without lengths and return_bound.")
            found, reasons = self._ask().predict_possible(X, n_threads(self.n_jobs), known=known)
            warn_impossible(reasons, len(found))
            return found
        ask = self._ask().bounded_predict if return_bound else self._ask().predict
        return ask(self._input(X), lengths, n_threads(self.n_jobs), known=known)

    def predict_single(self, xseq: Any) -> Any:
        """Return the most probable labelling of one sequence.

        Parameters
        ----------
        xseq : list of items, or matrix of shape (n_nodes, n_columns)
            One sequence.

        Returns
        -------
        list or array
            Its labels.

        Examples
        --------
        >>> from dualfield import CRF
        >>> CRF().fit([[["a"], ["b"]]], [["x", "y"]]).predict_single([["b"]])
        ['y']
        """
        return self.predict([xseq])[0]

    def predict_proba(
        self, X: Any, *, pairwise: bool = False, lengths: ArrayLike | None = None, known: Any = None
    ) -> Any:
        """Return the probability of each label at each node.

        Parameters
        ----------
        X, lengths
            As in :meth:`decision_scores`.
        pairwise : bool, default=False
            Also return the probability of each pair of neighbouring labels; chains of order 1 only.
        known : list of lists, default=None
            As in :meth:`predict`: probabilities are those given what is known.

        Returns
        -------
        list of arrays of shape (T_i, n_labels)
            Rows sum to 1; columns follow ``classes_``. With `pairwise`, a second list of arrays of shape
            (T_i - 1, n_labels, n_labels), label on the left first.

        Examples
        --------
        >>> from dualfield import CRF
        >>> model = CRF().fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]])
        >>> model.predict_proba([[["a"], ["b"]]])[0].round(2)
        array([[0.68, 0.32],
               [0.32, 0.68]])
        """
        model, threads = self._ask(), n_threads(self.n_jobs)
        return model.predict_proba(self._input(X), lengths, threads, pairwise=pairwise, known=known)

    def beliefs(self, X: Any, *, pairwise: bool = False, lengths: ArrayLike | None = None, known: Any = None) -> Any:
        """Return the beliefs of tree-reweighted bounds where a graph is too wide for probabilities.

        They are rows that sum to 1, and agree between edges and their nodes; but they are those of a relaxation, which
        can be far from the probabilities: do not show them as confidence. Elsewhere they are the probabilities.

        Parameters
        ----------
        X, pairwise, lengths, known
            As in :meth:`predict_proba`.

        Returns
        -------
        list of arrays of shape (T_i, n_labels)
            As of :meth:`predict_proba`.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import CRF
        >>> from dualfield.structures import Graph
        >>> circle = (np.eye(3), [(0, 1), (1, 2), (2, 0)])
        >>> model = CRF(Graph(inference="trw")).fit([circle], [["x", "y", "y"]])
        >>> model.beliefs([circle])[0].sum(axis=1)
        array([1., 1., 1.])
        """
        return self._ask().beliefs(self._input(X), lengths, n_threads(self.n_jobs), pairwise=pairwise, known=known)

    def predict_marginals(self, X: Any, *, lengths: ArrayLike | None = None) -> Any:
        """Return probabilities as sklearn-crfsuite does: a dict for each node.

        Parameters
        ----------
        X, lengths
            As in :meth:`decision_scores`.

        Returns
        -------
        list of lists of dicts
            From label to probability. :meth:`predict_proba` gives arrays, which are smaller and faster.

        Examples
        --------
        >>> from dualfield import CRF
        >>> sorted(CRF().fit([[["a"], ["b"]]], [["x", "y"]]).predict_marginals([[["a"]]])[0][0])
        ['x', 'y']
        """
        names, rows = self._ask().names, self.predict_proba(X, lengths=lengths)

        def named(table: Any) -> list[dict[Any, float]]:
            in_a_row = np.reshape(table, (-1, len(names)))  # images have rows and columns of nodes
            return [dict(zip(names, row, strict=True)) for row in in_a_row.tolist()]

        if self.structure_.is_flat:
            return named(rows)
        return [
            {kind: named(table) for kind, table in one.items()} if isinstance(one, dict) else named(one) for one in rows
        ]

    def predict_marginals_single(self, xseq: Any) -> Any:
        """Return the probabilities of one sequence as dicts.

        Parameters
        ----------
        xseq : list of items, or matrix of shape (n_nodes, n_columns)
            One sequence.

        Returns
        -------
        list of dicts
            From label to probability.

        Examples
        --------
        >>> from dualfield import CRF
        >>> len(CRF().fit([[["a"], ["b"]]], [["x", "y"]]).predict_marginals_single([["a"], ["b"]]))
        2
        """
        return self.predict_marginals([xseq])[0]

    def score_sequences(self, X: Any, y: Any, *, lengths: ArrayLike | None = None) -> Floats:
        """Return the log-probability of given labellings.

        Parameters
        ----------
        X, lengths
            As in :meth:`decision_scores`.
        y : list of lists of labels
            One labelling for each sequence.

        Returns
        -------
        array of shape (n_sequences,)
            log p(y | x); minus infinity for a labelling that is not allowed.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import CRF
        >>> model = CRF().fit([[["a"], ["b"]]], [["x", "y"]])
        >>> labellings = [["x", "x"], ["x", "y"], ["y", "x"], ["y", "y"]]
        >>> np.exp(model.score_sequences([[["a"], ["b"]]] * 4, labellings)).sum().round(6)
        np.float64(1.0)
        """
        return self._ask().log_probabilities(self._input(X), y, lengths, n_threads(self.n_jobs))

    def k_best(
        self, X: Any, k: int, *, lengths: ArrayLike | None = None, known: Any = None
    ) -> list[list[tuple[Any, float]]]:
        """Return the k most probable labellings of each sequence, best first.

        Parameters
        ----------
        X, lengths
            As in :meth:`decision_scores`.
        k : int
            How many; a sequence that has fewer gets fewer.
        known : list of lists, default=None
            As in :meth:`predict_proba`.

        Returns
        -------
        list of lists of (labels, probability)
            The first labels are those of :meth:`predict`.

        Examples
        --------
        >>> from dualfield import CRF
        >>> model = CRF().fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]])
        >>> [(labels, round(p, 2)) for labels, p in model.k_best([[["a"]]], 2)[0]]
        [(['x'], 0.65), (['y'], 0.35)]
        """
        check_integer(type(self).__name__ + ".k_best", "k", k, 1)
        return self._ask().k_best(self._input(X), int(k), lengths, n_threads(self.n_jobs), known=known)

    def sample(
        self,
        X: Any,
        n_samples: int = 1,
        *,
        random_state: Any = None,
        lengths: ArrayLike | None = None,
        known: Any = None,
    ) -> list[list[Any]]:
        """Draw labellings from the model's distribution.

        Parameters
        ----------
        X, lengths
            As in :meth:`decision_scores`.
        n_samples : int, default=1
            Draws for each sequence.
        random_state : int, RandomState or None, default=None
            Seed.
        known : list of lists, default=None
            As in :meth:`predict_proba`.

        Returns
        -------
        list of lists of labellings
            ``n_samples`` for each sequence.

        Examples
        --------
        >>> from dualfield import CRF
        >>> draws = CRF().fit([[["a"], ["b"]]], [["x", "y"]]).sample([[["a"]]], 5, random_state=0)
        >>> len(draws[0]), len(draws[0][0])
        (5, 1)
        """
        model, threads = self._ask(), n_threads(self.n_jobs)
        return model.sample(self._input(X), n_samples, random_state, lengths, threads, known=known)

    def calibrate(self, X: Any, y: Any, *, lengths: ArrayLike | None = None, cv: Any = None) -> Self:
        r"""Choose the temperature of all probabilities by data that the model was not trained on.

        p(y | x) is proportional to exp(score(y) / T), with T such that the log-loss of the labels is smallest on these
        examples. Every question about probabilities is then answered at this T, also after ``save`` and ``load``.
        ``calibration_`` tells T, the log-loss there, and that at T = 1. Predictions do not change, but for those of
        :class:`dualfield.BaggedTagger` and :class:`dualfield.BayesianCRF`: which labels are most probable on average
        depends on T.

        Parameters
        ----------
        X, lengths
            As in ``predict``.
        y : list of lists of labels, or array of shape (n,) for single nodes
            True labels.
        cv : int, splitter or iterable, default=None
            Where there are no held-out data: folds as in scikit-learn. `X` and `y` are then those of the training. Each
            fold is scored by a copy of the model that is trained on the others, and one temperature is chosen for all.
            Examples with a label that the others do not have are left out.

        Returns
        -------
        object
            The model itself.

        Examples
        --------
        >>> from dualfield import CRF
        >>> from dualfield.datasets import load_town_news
        >>> news = load_town_news()
        >>> model = CRF(template="default", C=100.0).fit(news.X_train[:50], news.y_train[:50])
        >>> found = model.calibrate(news.X_train[50:100], news.y_train[50:100]).calibration_
        >>> found.temperature > 1.0, found.log_loss < found.log_loss_at_one     # it was too sure
        (True, True)
        """
        self._model = calibrated(self, X, y, lengths, cv)
        return self

    def rank_for_labelling(
        self, X: Any, by: str = "entropy", per: str = "token", *, lengths: ArrayLike | None = None
    ) -> LabellingOrder:
        """Say which examples to label next: those that the model knows least about, first.

        Tokens are what labelling costs; per sentence, long ones come first. Sentences that a grammar cannot parse come
        last, with a value of nan, and a warning says which they are and why.

        Parameters
        ----------
        X, lengths
            As in ``predict``: examples without labels.
        by : {"entropy", "least_confidence", "bald"}, default="entropy"
            The entropies of the labels of all tokens, or of all brackets or arcs that a tree may have; minus the
            log-probability of the best labelling; "bald", what several models disagree about, is for
            :class:`dualfield.BaggedTagger` and :class:`dualfield.BayesianCRF`.
        per : {"token", "sentence"}, default="token"
            Divided by the number of tokens, or not.

        Returns
        -------
        LabellingOrder
            ``order``, the places of the examples, and ``values``, how uncertain each is.

        Examples
        --------
        >>> from dualfield import CRF
        >>> model = CRF().fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]])
        >>> model.rank_for_labelling([[["a"], ["b"]], [["new"], ["words"]]]).order
        array([1, 0])
        """
        model, owner, threads = self._ask(), type(self).__name__, n_threads(self.n_jobs)

        def rank(some: Any) -> LabellingOrder:
            return model.labelling_order(owner, some, by, per, lengths, threads)

        return ranked_where_possible(model, self._input(X), lengths, threads, rank)

    def score(self, X: Any, y: Any, *, lengths: ArrayLike | None = None) -> float:
        """Return the share of nodes whose label is predicted right; for trees what their structure says of agreement.

        Sentences that a grammar cannot parse count as trees without brackets, and a warning says which they are.

        Parameters
        ----------
        X, lengths
            As in :meth:`decision_scores`.
        y : list of lists of labels
            True labels; those not seen in training count as errors.

        Returns
        -------
        float
            In [0, 1].

        Examples
        --------
        >>> from dualfield import CRF
        >>> CRF().fit([[["a"], ["b"]]], [["x", "y"]]).score([[["a"], ["b"]]], [["x", "z"]])
        0.5
        """
        structure = self.structure_
        if structure.counts_impossible and lengths is None:
            predicted = self.predict(X, impossible="none")
        else:
            predicted = self.predict(X, lengths=lengths)
        found = structure.agreement(predicted, y)
        if found is not None:
            return found
        if not structure.is_flat:
            y = structure.as_labels(y, [len(one) for one in predicted])
        return share_right(predicted, y, flat=structure.is_flat)

    def predict_spans(
        self,
        X: Any,
        *,
        outside: str = "O",
        min_proba: float = 0.0,
        lengths: ArrayLike | None = None,
        return_std: bool = False,
    ) -> list[list[PredictedSpan]]:
        """Return the spans that the best labelling marks, each with the probability of exactly that span.

        The probability is that of all labellings together in which :func:`dualfield.metrics.spans` finds the same type,
        start and stop; it is exact. A span may be probable though no single labelling is. Where the model may break the
        rules of its scheme (``constraints=None``), ``I-x`` that follows neither ``B-x`` nor ``I-x`` begins a span, in
        the best labelling and in all others alike.

        Parameters
        ----------
        X, lengths
            As in ``predict``.
        outside : str, default="O"
            The label outside of all spans.
        min_proba : float, default=0.0
            Spans that are less probable are left out.
        return_std : bool, default=False
            For models that consist of several, :class:`dualfield.BaggedTagger` and :class:`dualfield.BayesianCRF`: also
            the standard deviation of their probabilities.

        Returns
        -------
        list of lists of PredictedSpan
            (type, start, stop, probability), for each sequence from left to right; with `return_std` SpanInterval,
            which has ``std``, too.

        Examples
        --------
        >>> from dualfield import CRF
        >>> X = [[["the"], ["big"], ["dog"], ["ran"]], [["a"], ["dog"], ["ran"]]]
        >>> model = CRF(C=10.0, tol=1e-9).fit(X, [["B-NP", "I-NP", "I-NP", "O"], ["B-NP", "I-NP", "O"]])
        >>> (span,) = model.predict_spans([[["the"], ["dog"], ["ran"]]])[0]
        >>> span.type, span.start, span.stop, round(span.probability, 2)
        ('NP', 0, 2, 0.9)
        """
        check_number("predict_spans", "min_proba", min_proba, 0.0)
        model, threads = self._ask(), n_threads(self.n_jobs)
        return model.spans(self._input(X), outside, min_proba, lengths, threads, return_std=return_std)

    def explain(self, xseq: Any, top: int = 10, *, tokens: Any = None) -> Explanation:
        """Say why each token of a sequence has its label.

        For each token the predicted labelling is held against the best one that has another label there. Their scores
        differ by a sum over attributes and transitions at all places where the labellings differ, which is given in
        full: nothing is approximated. Of :class:`dualfield.BaggedTagger` and :class:`dualfield.BayesianCRF` one model,
        that of ``parameters_``, is explained: an average has no such sum, and may predict other labels.

        Parameters
        ----------
        xseq : list of items, or matrix of shape (n_nodes, n_columns)
            One sequence.
        top : int, default=10
            How many contributions are printed for a token; the record has them all.
        tokens : sequence of str, default=None
            What is written at each node; None: its word, where its attributes tell it.

        Returns
        -------
        Explanation
            A record for each token; print it to read it.

        Examples
        --------
        >>> from dualfield import CRF
        >>> X = [[["the"], ["dog"]], [["dogs"], ["run"]], [["the"], ["run"]]]
        >>> model = CRF(tol=1e-12).fit(X, [["DT", "NN"], ["NN", "VB"], ["DT", "NN"]])
        >>> print(model.explain([["the"], ["run"]])[1])
        1 (run): NN with probability 0.47, not VB; the scores differ by 0.90
            +1.025  transition: DT > NN, not DT > VB
            -0.128  run: NN, not VB
        """
        check_integer("explain", "top", top, 1)
        return explain(self._ask(), xseq, int(top), tokens)

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """Weights of attributes that are not zero, by (attribute, label), as sklearn-crfsuite has them."""
        return state_features(self._ask())

    @property
    def transition_features_(self) -> dict[tuple[Any, ...], float]:
        """Weights of transitions that are not zero, by (label, next label) or all labels of a longer window.

        Where edges have several types, by (type, label from, label to).
        """
        return transition_features(self._ask())

    def top_features(self, n: int = 10, label: Any = None) -> TopFeatures:
        """Return the attributes and transitions with the largest weights.

        Parameters
        ----------
        n : int, default=10
            How many of each kind, at most.
        label : str, int or bool, default=None
            Only weights of this label, and of transitions to it or from it. None: all.

        Returns
        -------
        TopFeatures
            The largest first; print it to read it.

        Examples
        --------
        >>> from dualfield import CRF
        >>> X = [[["the"], ["dog"]], [["dogs"], ["run"]], [["the"], ["run"]]]
        >>> model = CRF(C=3.0, tol=1e-12).fit(X, [["DT", "NN"], ["NN", "VB"], ["DT", "NN"]])
        >>> print(model.top_features(2, label="DT"))
        Attributes for a label
            +1.281  the -> DT
        Transitions, likely
            +1.715  DT -> NN
        """
        check_integer("top_features", "n", n, 1)
        return top_features(self._ask(), int(n), label)


class FittedTagger(StructuredPredictor):
    """A model that is a part of another one, with all its questions.

    Parameters
    ----------
    model : StructuredModel
        The model.
    n_jobs : int, default=None
        Threads.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.estimators.prediction import FittedTagger
    >>> FittedTagger(CRF().fit([[["a"], ["b"]]], [["x", "y"]]).model_).predict([[["b"]]])
    [['y']]
    """

    def __init__(self, model: StructuredModel, n_jobs: int | None = None) -> None:
        self.model_, self.n_jobs = model, n_jobs

    def __sklearn_is_fitted__(self) -> bool:
        return True
