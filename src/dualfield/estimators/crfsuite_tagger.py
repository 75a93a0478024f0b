"""The questions of ``pycrfsuite.Tagger``, for scripts that ask them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from dualfield.data.arrays import Floats
from dualfield.io.crfsuite_format import HEADER
from dualfield.io.crfsuite_model_writer import model_bytes
from dualfield.models.inspection import state_features, transition_features
from dualfield.models.structured import StructuredModel
from dualfield.persistence.crfsuite_export import crfsuite_model

__all__ = ["Tagger", "TaggerInfo"]

_HEADER_NAMES = (
    *("magic", "size", "type", "version", "num_features", "num_labels", "num_attrs"),
    *("off_features", "off_labels", "off_attrs", "off_labelrefs", "off_attrrefs"),
)


class TaggerInfo(NamedTuple):
    """What ``pycrfsuite.Tagger.info()`` tells of a model.

    Attributes
    ----------
    header : dict of str
        What the header of a CRFsuite file of this model holds.
    labels, attributes : dict of str
        From names to numbers.
    state_features, transitions : dict of float
        Weights by (attribute, label) and by (label, next label), with all digits.

    Examples
    --------
    >>> from dualfield.estimators.crfsuite import CRF
    >>> CRF().fit([[["a"], ["b"]]], [["x", "y"]]).tagger_.info().labels
    {'x': '0', 'y': '1'}
    """

    header: dict[str, str]
    labels: dict[str, str]
    attributes: dict[str, str]
    state_features: dict[tuple[str, str], float]
    transitions: dict[tuple[str, str], float]


class Tagger:
    """A fitted model that is asked as a ``pycrfsuite.Tagger`` is: about one sequence, which is set first.

    Parameters
    ----------
    model : StructuredModel
        The model.

    Examples
    --------
    >>> from dualfield.estimators.crfsuite import CRF
    >>> tagger = CRF(c2=0.1).fit([[["a"], ["b"]]], [["x", "y"]]).tagger_
    >>> tagger.tag([["a"], ["b"]])
    ['x', 'y']
    >>> tagger.marginal("x", 0) > tagger.probability(["x", "y"]) > 0.5
    True
    """

    def __init__(self, model: StructuredModel) -> None:
        self.model = model
        self.set([])

    def labels(self) -> list[Any]:
        """Return the labels, sorted."""
        return self.model.names

    def set(self, xseq: Iterable[Any]) -> None:
        """Set the sequence that the other questions are about.

        Parameters
        ----------
        xseq : list of items
            Dicts, or lists of attribute strings.
        """
        self._xseq = xseq if isinstance(xseq, np.ndarray) else list(xseq)
        self._marginals: Floats | None = None

    def tag(self, xseq: Iterable[Any] | None = None) -> Any:
        """Return the most probable labels of a sequence.

        Parameters
        ----------
        xseq : list of items, default=None
            Set first, if it is given.

        Returns
        -------
        list of str
            A label for each item.
        """
        if xseq is not None:
            self.set(xseq)
        return self.model.predict([self._xseq])[0]

    def probability(self, yseq: Iterable[Any]) -> float:
        """Return the probability of labels for the sequence that was set.

        Parameters
        ----------
        yseq : list of str
            A label for each item.

        Returns
        -------
        float
            In [0, 1].
        """
        return float(np.exp(self.model.log_probabilities([self._xseq], [list(yseq)])[0]))

    def marginal(self, y: Any, pos: int) -> float:
        """Return the probability of a label at a place of the sequence that was set.

        Parameters
        ----------
        y : str
            The label.
        pos : int
            The place, from 0.

        Returns
        -------
        float
            In [0, 1].
        """
        names, n_items = self.model.names, len(self._xseq)
        if y not in names:
            raise ValueError(f"The 'y' parameter of marginal must be one of {names}. Got {y!r} instead.")
        if not 0 <= pos < n_items:
            raise ValueError(f"The 'pos' parameter of marginal must be in [0, {n_items}). Got {pos!r} instead.")
        if self._marginals is None:
            self._marginals = self.model.predict_proba([self._xseq])[0]
        return float(self._marginals[pos, names.index(y)])

    def info(self) -> TaggerInfo:
        """Return names and weights, and the header of a CRFsuite file of this model."""
        exported = crfsuite_model(self.model)
        fields = zip(_HEADER_NAMES, HEADER.unpack_from(model_bytes(exported)), strict=True)
        return TaggerInfo(
            header={name: _written(name, value) for name, value in fields},
            labels={name: str(number) for number, name in enumerate(exported.labels)},
            attributes={name: str(number) for number, name in enumerate(exported.attributes)},
            state_features=state_features(self.model),
            transitions=transition_features(self.model),
        )


def _written(name: str, value: Any) -> str:
    """Return a field of a header in the form of CRFsuite's dump."""
    if isinstance(value, bytes):
        return value.decode()
    return f"0x{value:X}" if name.startswith("off_") else str(value)
