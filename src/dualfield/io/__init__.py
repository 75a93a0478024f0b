"""Files of other tools: CoNLL columns, CRFsuite's items and CRFsuite's models."""

from dualfield.io.conll import iter_conll, read_conll, write_conll
from dualfield.io.crfsuite_items import read_crfsuite_items, write_crfsuite_items
from dualfield.io.crfsuite_model import CrfsuiteModel, StateWeights, TransitionWeights, read_crfsuite_model

__all__ = [
    "CrfsuiteModel",
    "StateWeights",
    "TransitionWeights",
    "iter_conll",
    "read_conll",
    "read_crfsuite_items",
    "read_crfsuite_model",
    "write_conll",
    "write_crfsuite_items",
]
