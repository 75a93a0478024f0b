"""The questions that a conditional graphical model answers: each is passed on to the model inside."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from dualfield.data.shapes import Shape
from dualfield.data.user_warnings import warn_user
from dualfield.estimators.base import fitted
from dualfield.estimators.calibrating import chosen
from dualfield.estimators.graphical_data import read_input
from dualfield.estimators.graphical_parameters import combined_weights
from dualfield.metrics.accuracy import share_right
from dualfield.models.graphical.clique_readers import Answer
from dualfield.models.graphical.clique_scores import CliqueTable
from dualfield.models.graphical.model import GraphicalModel, HeldOutCliques
from dualfield.models.labelling_order import LabellingOrder, labelling_order
from dualfield.models.temperature_scaling import Calibration


def _has_probabilities(model: Any) -> bool:
    if "_model" in vars(model):
        return model._model.kind_of_probability is not None
    base = model.base_estimator
    return hasattr(base, "predict_proba") if base is not None else bool(model.loss == "log")


def _held_out(estimator: Any, X: Any, y: Any, lengths: ArrayLike | None) -> HeldOutCliques:
    """Return the scores of examples, and their labels."""
    model: GraphicalModel = estimator.model_
    matrix, where, edges = read_input(estimator, model, X, lengths)
    if model.n_nodes is not None:
        codes = model.labels.encode(np.asarray(y).ravel())
    elif isinstance(where, Shape):
        codes = model.labels.encode(where.flat_labels(y), where.offsets)
    else:
        codes = model.labels.encode(y, np.concatenate([[0], np.cumsum(where)]))
    return model.held_out(matrix, where, edges, codes, **estimator._settings())


class GraphicalPredictor:
    """Labels, probabilities and scores, for sequences, outputs of fixed size, trees and graphs.

    Examples
    --------
    >>> from dualfield import ConditionalGraphicalModel
    >>> from dualfield.estimators.graphical_prediction import GraphicalPredictor
    >>> issubclass(ConditionalGraphicalModel, GraphicalPredictor)
    True
    """

    model_: Any
    calibration_: Calibration = fitted("calibration", is_optional=True)
    combine: Literal["sum"] | Mapping[int, float]
    backoff_cost: float
    n_jobs: int | None

    def predict(self, X: Any, *, lengths: ArrayLike | None = None, return_bound: bool = False) -> Any:
        """Return the labelling with the largest score of each example.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.
        return_bound : bool, default=False
            Also return the scores of the labellings, and what a better one could score at most.

        Returns
        -------
        list of lists of labels, or of arrays if the training labels were arrays; for a fixed graph array (n, n_nodes)
            Labels; of images arrays of shape (height, width). With `return_bound`, a
            :class:`dualfield.structures.Bounds` follows: ``score``, ``bound`` and ``exact`` for each example. Only
            graphs that are too wide have labellings that may not be the best. Where ``unseen="-inf"`` leaves no
            labelling, a forbidden tuple counts as a number below all other differences of scores.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import ConditionalGraphicalModel
        >>> X, y = np.array([[0.0], [1.0], [1.0]]), ["a", "b", "b"]
        >>> ConditionalGraphicalModel(0, loss="log").fit(X, y, lengths=[2, 1]).predict(X, lengths=[1, 2])
        [['a'], ['b', 'b']]
        """
        model: GraphicalModel = self.model_
        answer, shape = self._answer(X, lengths, "bounds" if return_bound else "labels")
        if shape is None:
            assert model.n_nodes is not None
            labels = model.classes[answer.labels].reshape(-1, model.n_nodes)
        else:
            labels = shape.decode(model.labels, answer.labels)
        return (labels, answer.bounds) if return_bound else labels

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, *, lengths: ArrayLike | None = None) -> Any:
        """Return the probability of each label at each node, from the product of the probabilities of all cliques.

        Nothing makes these calibrated but :meth:`calibrate`, see the notes of the class. A warning tells of examples
        with cliques that the model does not know. Graphs that are too wide for exact answers are refused: bounds have
        no probabilities.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.

        Returns
        -------
        list of arrays of shape (length_i, n_classes); for a fixed graph array of shape (n, n_nodes, n_classes)
            Exact marginals; the last axis follows ``classes_``. Of images (height, width, n_classes).

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import ConditionalGraphicalModel
        >>> X, y = [np.array([[0.0], [1.0]]), np.array([[1.0], [0.0]])], [["a", "b"], ["b", "a"]]
        >>> ConditionalGraphicalModel(1, loss="log", unseen="-inf").fit(X, y).predict_proba(X)[0].round(2)
        array([[0.98, 0.02],
               [0.02, 0.98]])
        """
        model: GraphicalModel = self.model_
        answer, shape = self._answer(X, lengths, "probabilities")
        assert answer.probabilities is not None
        odd = int(np.sum(answer.is_without | answer.is_unknown))
        if odd:
            warn_user(
                f"{odd} of {len(answer.is_without)} examples have a type of clique that training did not have, or no "
                f"labelling of seen tuples. Their probabilities say little."
            )
        if shape is None:
            assert model.n_nodes is not None
            return answer.probabilities.reshape(-1, model.n_nodes, len(model.labels))
        return shape.arranged([answer.probabilities[a:b] for a, b in itertools.pairwise(shape.offsets)])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def calibrate(self, X: Any, y: Any, *, lengths: ArrayLike | None = None, cv: Any = None) -> Self:
        """Choose the temperature of all probabilities by data that the model was not trained on.

        As :meth:`dualfield.CRF.calibrate`: the sum over the cliques is divided by the T with which the log-loss of the
        labels of nodes is smallest. Cliques that overlap count what they share twice, so that T is mostly above 1.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.
        y : list of lists of labels, or array of shape (n, n_nodes)
            True labels.
        cv : int, splitter or iterable, default=None
            Where there are no held-out data: folds as in scikit-learn, of the training data.

        Returns
        -------
        ConditionalGraphicalModel
            The model itself.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import ConditionalGraphicalModel
        >>> X, y = [np.array([[0.0], [1.0]]), np.array([[1.0], [0.0]])], [["a", "b"], ["b", "a"]]
        >>> model = ConditionalGraphicalModel(1, loss="log").fit(X, y)
        >>> model.calibrate([np.array([[0.0], [1.0], [0.0]])], [["a", "b", "b"]]).calibration_.temperature > 1.0
        True
        """
        found = chosen(self, X, y, lengths, cv, _held_out)
        self._model = self.model_.calibrated(found)
        return self

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def rank_for_labelling(
        self, X: Any, by: str = "entropy", per: str = "token", *, lengths: ArrayLike | None = None
    ) -> LabellingOrder:
        """Say which examples to label next, as :meth:`dualfield.CRF.rank_for_labelling` does.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`: examples without labels.
        by : {"entropy", "least_confidence"}, default="entropy"
            The entropies of the labels of all nodes, or minus the logarithms of the largest probabilities.
        per : {"token", "sentence"}, default="token"
            Divided by the number of nodes, or not.

        Returns
        -------
        LabellingOrder
            ``order``, the places of the examples, and ``values``, how uncertain each is.
        """
        return labelling_order(type(self).__name__, by, per, self.predict_proba(X, lengths=lengths))

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
        names = self.model_.classes.tolist()
        each = [np.reshape(one, (-1, len(names))).tolist() for one in self.predict_proba(X, lengths=lengths)]
        return [[dict(zip(names, row, strict=True)) for row in rows] for rows in each]

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
            :class:`dualfield.models.graphical.clique_scores.CliqueTable`.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import ConditionalGraphicalModel
        >>> X, y = [np.array([[0.0], [1.0], [0.0]])], [["a", "b", "a"]]
        >>> ConditionalGraphicalModel(1, loss="squared").fit(X, y).clique_scores(X)[1].scores.shape
        (2, 2)
        """
        model: GraphicalModel = self.model_
        return model.tables(*read_input(self, model, X, lengths), **self._settings())

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
        return share_right(self.predict(X, lengths=lengths), y)

    def _answer(self, X: Any, lengths: ArrayLike | None, question: str) -> tuple[Answer, Shape | None]:
        """Ask about all nodes; the second answer is the shape of the examples, None for a fixed graph."""
        model: GraphicalModel = self.model_
        matrix, where, edges = read_input(self, model, X, lengths)
        answer = model.answer(matrix, where, edges, question=question, **self._settings())
        if model.is_chain:
            return answer, Shape.of(np.concatenate([[0], np.cumsum(where)]))
        return answer, where if isinstance(where, Shape) else None

    def _settings(self) -> dict[str, Any]:
        """Return the settings of the prediction."""
        combine = combined_weights(self.combine)
        return {"combine": combine, "backoff_cost": float(self.backoff_cost), "n_jobs": self.n_jobs}
