"""What a fitted conditional graphical model can be asked."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dualfield.data import Labels
from dualfield.data.fixed_size import read_fixed, read_sequences, share_of_nodes
from dualfield.estimators.fitting import Refittable
from dualfield.estimators.graphical_parameters import chain_order, check_padding, combined_weights, unseen_score
from dualfield.estimators.graphical_prediction import Answer, ChainReader, GraphReader
from dualfield.estimators.graphical_problems import CliqueModel
from dualfield.estimators.graphical_scores import CliqueBank, CliqueTable
from dualfield.scores.cliques import graph_cliques
from dualfield.structures.checks import n_threads

__all__ = ["GraphicalPredictor"]


def _has_probabilities(model: Any) -> bool:
    base = model._of_fit("base_estimator")
    return hasattr(base, "predict_proba") if base is not None else bool(model._of_fit("loss") == "log")


class GraphicalPredictor(Refittable, BaseEstimator):  # type: ignore[misc]
    """A fitted model of cliques: prediction, probabilities and scores.

    :class:`dualfield.ConditionalGraphicalModel` adds how it is trained.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    labels_ : Labels
        Their codes.
    clique_models_ : dict
        From (size, key) to the model of each type of clique.
    graph_ : int or list of tuples
        The order of the chain, or the cliques of a fixed graph.
    n_features_in_ : int
        Columns of the input.
    n_nodes_ : int
        Number of nodes of a fixed graph.
    feature_names_in_ : array of shape (n_features,)
        Names of the columns, where training had a data frame for a fixed graph.

    Examples
    --------
    >>> from dualfield import ConditionalGraphicalModel
    >>> from dualfield.estimators.graphical_predictor import GraphicalPredictor
    >>> isinstance(ConditionalGraphicalModel(), GraphicalPredictor)
    True
    """

    # The cost of backing off and the weights of the orders are settings of the prediction.
    _asked_with = ("graph", "loss", "base_estimator", "tying", "padding", "unseen", "features", "response_method")
    graph: Any
    loss: str
    base_estimator: Any
    tying: Any
    padding: tuple[int, int]
    unseen: Any
    backoff_cost: float
    features: str
    combine: Any
    response_method: str
    n_jobs: int | None
    classes_: NDArray[Any]
    labels_: Labels
    clique_models_: dict[tuple[int, Hashable], CliqueModel]
    graph_: Any
    n_features_in_: int
    n_nodes_: int
    _is_shared_input: bool

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if isinstance(self.graph, (list, tuple, str)):  # outputs of fixed size: a column for each node
            tags.input_tags.sparse = tags.input_tags.three_d_array = True
            tags.target_tags.two_d_labels = tags.target_tags.multi_output = True
            tags.target_tags.single_output = False
        return tags

    @property
    def _is_chain(self) -> bool:
        return chain_order(self._of_fit("graph")) is not None

    @property
    def _tying(self) -> Any:
        tying = self._of_fit("tying")
        return tying if tying is not None else ("shared" if self._is_chain else "position")

    @property
    def _order_weights(self) -> dict[int, float]:
        """Weights of the orders of a chain."""
        order = chain_order(self._of_fit("graph"))
        assert order is not None
        return combined_weights(self.combine) or {order: 1.0}

    def _fixed_cliques(self) -> tuple[dict[tuple[int, ...], float], dict[int, list[tuple[int, ...]]]]:
        backs_off, apart = unseen_score(self._of_fit("unseen")) is None, self._of_fit("features") == "tied_separately"
        return graph_cliques(self.graph_, combined_weights(self.combine), backs_off, apart)

    def predict(self, X: Any, *, lengths: ArrayLike | None = None) -> Any:
        """Return the labelling with the largest score of each example.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.

        Returns
        -------
        list of lists of labels, or of arrays if the training labels were arrays; for a fixed graph array (n, n_nodes)
            Labels.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import ConditionalGraphicalModel
        >>> X, y = np.array([[0.0], [1.0], [1.0]]), ["a", "b", "b"]
        >>> ConditionalGraphicalModel(0, loss="log").fit(X, y, lengths=[2, 1]).predict(X, lengths=[1, 2])
        [['a'], ['b', 'b']]
        """
        answer, offsets = self._answer(X, lengths, with_probabilities=False)
        if offsets is not None:
            return self.labels_.decode(answer.labels, offsets)
        return self.classes_[answer.labels].reshape(-1, self.n_nodes_)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, *, lengths: ArrayLike | None = None) -> Any:
        """Return the probability of each label at each node, from the product of the probabilities of all cliques.

        Nothing makes these calibrated, see the notes of the class. A warning tells of examples with cliques that the
        model does not know.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.

        Returns
        -------
        list of arrays of shape (length_i, n_classes); for a fixed graph array of shape (n, n_nodes, n_classes)
            Marginals, by forward-backward; columns follow ``classes_``.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import ConditionalGraphicalModel
        >>> X, y = [np.array([[0.0], [1.0]]), np.array([[1.0], [0.0]])], [["a", "b"], ["b", "a"]]
        >>> ConditionalGraphicalModel(1, loss="log", unseen="-inf").fit(X, y).predict_proba(X)[0].round(2)
        array([[0.98, 0.02],
               [0.02, 0.98]])
        """
        answer, offsets = self._answer(X, lengths, with_probabilities=True)
        assert answer.probabilities is not None
        odd = int(np.sum(answer.is_without | answer.is_unknown))
        if odd:
            warnings.warn(
                f"{odd} of {len(answer.is_without)} examples have a type of clique that training did not have, or no "
                f"labelling of seen tuples. Their probabilities say little.",
                UserWarning,
                stacklevel=2,
            )
        if offsets is not None:
            return [answer.probabilities[a:b] for a, b in itertools.pairwise(offsets)]
        return answer.probabilities.reshape(-1, self.n_nodes_, len(self.classes_))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_marginals(self, X: Any, *, lengths: ArrayLike | None = None) -> list[list[dict[Any, float]]]:
        """Return the numbers of :meth:`predict_proba` as a dict for each node.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.

        Returns
        -------
        list of lists of dicts
            From label to probability.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import ConditionalGraphicalModel
        >>> X, y = [np.array([[0.0], [1.0]])], [["a", "b"]]
        >>> sorted(ConditionalGraphicalModel(0, loss="log").fit(X, y).predict_marginals(X)[0][0])
        ['a', 'b']
        """
        names = self.classes_.tolist()
        rows = self.predict_proba(X, lengths=lengths)
        return [[dict(zip(names, row, strict=True)) for row in np.asarray(one).tolist()] for one in rows]

    def clique_scores(self, X: Any, *, lengths: ArrayLike | None = None) -> dict[int, CliqueTable]:
        """Return the scores of label tuples at all cliques: what :meth:`predict` adds up, before weights.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.

        Returns
        -------
        dict
            From order, the number of nodes minus 1, to
            :class:`dualfield.estimators.graphical_scores.CliqueTable`.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import ConditionalGraphicalModel
        >>> X, y = [np.array([[0.0], [1.0], [0.0]])], [["a", "b", "a"]]
        >>> ConditionalGraphicalModel(1, loss="squared").fit(X, y).clique_scores(X)[1].scores.shape
        (2, 2)
        """
        check_is_fitted(self)
        bank = self._bank(with_probabilities=False)
        if self._is_chain:
            return self._chain_reader(bank).tables(*read_sequences(X, lengths, self.n_features_in_))
        return self._graph_reader(bank).tables(*self._fixed_input(X, lengths))

    def score(self, X: Any, y: Any, *, lengths: ArrayLike | None = None) -> float:
        """Return the share of nodes whose label is predicted right.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.
        y : list of lists of labels, or array of shape (n, n_nodes)
            True labels.

        Returns
        -------
        float
            In [0, 1].

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import ConditionalGraphicalModel
        >>> X, y = [np.array([[0.0], [1.0]])], [["a", "b"]]
        >>> ConditionalGraphicalModel(0, loss="log").fit(X, y).score(X, y)
        1.0
        """
        return share_of_nodes(self.predict(X, lengths=lengths), y)

    def _answer(
        self, X: Any, lengths: ArrayLike | None, *, with_probabilities: bool
    ) -> tuple[Answer, NDArray[np.int64] | None]:
        """Ask about all nodes; the second answer says where sequences begin, None for a fixed graph."""
        check_is_fitted(self)
        bank = self._bank(with_probabilities)
        if not self._is_chain:
            matrix, n = self._fixed_input(X, lengths)
            return self._graph_reader(bank).answer(matrix, n, with_probabilities=with_probabilities), None
        matrix, counts = read_sequences(X, lengths, self.n_features_in_)
        answer = self._chain_reader(bank).answer(matrix, counts, with_probabilities=with_probabilities)
        return answer, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def _fixed_input(self, X: Any, lengths: ArrayLike | None) -> tuple[Any, int]:
        matrix, n, n_rows = read_fixed(self, X, lengths, reset=False)
        if n_rows != (None if self._is_shared_input else self.n_nodes_):
            shape = "(n, d)" if self._is_shared_input else f"(n, {self.n_nodes_}, d)"
            raise ValueError(f"X must have shape {shape}, as in training. Got {np.shape(X)} instead.")
        return matrix, n

    def _bank(self, with_probabilities: bool) -> CliqueBank:
        return CliqueBank(
            self.clique_models_,
            len(self.classes_),
            self._is_chain and any(check_padding(self._of_fit("padding"))),
            self._kind(with_probabilities),
            self._of_fit("features") == "tied_separately",
            unseen_score(self._of_fit("unseen")),
            float(self.backoff_cost),
            n_threads(self.n_jobs),
        )

    def _kind(self, with_probabilities: bool) -> str:
        """Return how models are asked for scores, see tuple_scores."""
        if self._of_fit("base_estimator") is None:
            is_tied, is_log = self._of_fit("features") == "tied", self._of_fit("loss") == "log"
            return "tied" if is_tied else "log" if is_log else "kernel"
        method = self._of_fit("response_method")
        if with_probabilities or method == "predict_proba":
            return "predict_proba"
        if method == "decision_function":
            return "decision_function"
        fitted = (model.estimator for model in self.clique_models_.values() if model.estimator is not None)
        return "decision_function" if hasattr(next(fitted, None), "decision_function") else "predict_proba"

    def _chain_reader(self, bank: CliqueBank) -> ChainReader:
        padding = check_padding(self._of_fit("padding"))
        return ChainReader(bank, self._order_weights, padding, self._tying, self.n_jobs)

    def _graph_reader(self, bank: CliqueBank) -> GraphReader:
        return GraphReader(bank, *self._fixed_cliques(), self.n_nodes_, self._tying, self._is_shared_input)
