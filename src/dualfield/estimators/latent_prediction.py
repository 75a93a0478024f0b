"""What a trained latent structural SVM can be asked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from dualfield.estimators.latent_data import StateDecoder, StateTagger
from dualfield.estimators.latent_tasks import BagDecoder, CustomDecoder

__all__ = ["LatentPrediction"]

Floats = NDArray[np.float64]


class LatentPrediction:
    """Predictions of :class:`dualfield.LatentStructuredSVM`, whatever is hidden.

    Examples
    --------
    >>> from dualfield import LatentStructuredSVM
    >>> from dualfield.estimators.latent_prediction import LatentPrediction
    >>> isinstance(LatentStructuredSVM(), LatentPrediction)
    True
    """

    parameters_: Floats
    _decoder: StateDecoder | BagDecoder | CustomDecoder

    def predict(self, X: Any, *, lengths: ArrayLike | None = None) -> Any:
        """Return the output of the best pair of output and hidden parts.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.

        Returns
        -------
        list or array
            Outputs, in the form of those of training.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import LatentMulticlass, LatentStructuredSVM, StructuredSVM
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]] * 5)
        >>> y = ["up or down", "left or right"] * 10
        >>> model = LatentStructuredSVM(StructuredSVM(C=10.0), LatentMulticlass(2), random_state=0).fit(X, y)
        >>> model.predict([[0.0, 3.0], [-2.0, 0.0]])
        ['up or down', 'left or right']
        """
        check_is_fitted(self)
        return self._decoder.best(X, lengths)[0]

    def predict_latent(self, X: Any, y: Any = None, *, lengths: ArrayLike | None = None) -> Any:
        """Return the hidden parts: those of the best pair, or with `y` the best ones of these outputs.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.
        y : list or array, default=None
            Outputs to complete.

        Returns
        -------
        list or array
            Sub-states of each node, components of each row, places in each bag (-1 for the background label), or what a
            model of your own calls hidden. Which number a sub-state or component has is an accident of the start.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import LatentMulticlass, LatentStructuredSVM, StructuredSVM
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]] * 5)
        >>> y = ["up or down", "left or right"] * 10
        >>> model = LatentStructuredSVM(StructuredSVM(C=10.0), LatentMulticlass(2), random_state=0).fit(X, y)
        >>> above, below = model.predict_latent([[0.0, 3.0], [0.0, -3.0]])
        >>> bool(above != below)
        True
        """
        check_is_fitted(self)
        return self._decoder.best(X, lengths)[1] if y is None else self._decoder.completed(X, y, lengths)

    def decision_function(self, X: Any, *, lengths: ArrayLike | None = None) -> Floats:
        """Return the scores of the labels of bags or rows: of each label the maximum over what is hidden.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`, with LatentPosition or LatentMulticlass.

        Returns
        -------
        array of shape (n_examples, n_classes)
            Scores, no probabilities.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import LatentPosition, LatentStructuredSVM
        >>> model = LatentStructuredSVM(latent=LatentPosition(), random_state=0)
        >>> model = model.fit([np.array([[1.0]]), np.array([[-1.0]])], [1, 0])
        >>> model.decision_function([np.array([[2.0], [0.0]])]).shape
        (1, 2)
        """
        check_is_fitted(self)
        if isinstance(self._decoder, BagDecoder):
            return self._decoder.decision(X, lengths)
        if isinstance(self._decoder, StateDecoder) and self._decoder.single:
            decoder = self._decoder
            node = decoder.scores(*decoder.read(X, lengths)).node
            return np.asarray(np.maximum.reduceat(node, decoder.space.first, axis=1))
        raise AttributeError("decision_function needs LatentPosition or LatentMulticlass.")

    def score(self, X: Any, y: Any, *, lengths: ArrayLike | None = None) -> float:
        """Return the share of right labels; with a model of your own, minus the mean loss.

        Parameters
        ----------
        X, lengths
            As in :meth:`fit`.
        y : list or array
            True outputs.

        Returns
        -------
        float
            In [0, 1] for labels.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield import LatentMulticlass, LatentStructuredSVM, StructuredSVM
        >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]] * 5)
        >>> y = ["up or down", "left or right"] * 10
        >>> model = LatentStructuredSVM(StructuredSVM(C=10.0), LatentMulticlass(2), random_state=0).fit(X, y)
        >>> model.score([[0.0, 3.0], [0.0, -3.0]], ["up or down", "left or right"])
        0.5
        """
        check_is_fitted(self)
        found, hidden = self._decoder.best(X, lengths)
        if len(found) != len(y):
            raise ValueError(f"y must have an entry for each of the {len(found)} examples. Got {len(y)}.")
        if isinstance(self._decoder, StateDecoder):
            return self._decoder.accuracy(found, y)
        if isinstance(self._decoder, BagDecoder):
            return float(np.mean([a == b for a, b in zip(found, y, strict=True)]))
        loss = self._decoder.latent.loss
        return 0.0 - float(np.mean([loss(true, *pair) for true, *pair in zip(y, found, hidden, strict=True)]))

    @property
    def states_(self) -> StateTagger:
        """With sub-states or components: a tagger whose labels are the states, written label/sub-state.

        It has their weights (``coef_``, ``transitions_``, ``top_features``) and answers questions about paths of
        states.
        """
        check_is_fitted(self)
        if not isinstance(self._decoder, StateDecoder):
            raise AttributeError("states_ needs LatentChain or LatentMulticlass.")
        return self._decoder.tagger

    @property
    def coef_(self) -> Any:
        """Weights of columns: shape (n_states, n_columns), or for bags (n_labels that have weights, n_columns)."""
        check_is_fitted(self)
        if isinstance(self._decoder, BagDecoder):
            return self._decoder.scores.coefficients(self.parameters_)[0]
        return self.states_.coef_

    @property
    def intercept_(self) -> Floats:
        """Weights of the constant feature of instances, one for each row of ``coef_``."""
        check_is_fitted(self)
        if not isinstance(self._decoder, BagDecoder):
            raise AttributeError("intercept_ needs LatentPosition.")
        return self._decoder.scores.coefficients(self.parameters_)[1]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parameters_")
