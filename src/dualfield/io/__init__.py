"""Files of other tools: CoNLL columns, CRFsuite's items and models, svmlight."""

from dualfield.io.atomic import atomic_write
from dualfield.io.conll import iter_conll, read_conll, write_conll
from dualfield.io.crfsuite_items import read_crfsuite_items, write_crfsuite_items
from dualfield.io.crfsuite_model import CrfsuiteModel, StateWeights, TransitionWeights, read_crfsuite_model
from dualfield.io.crfsuite_model_writer import write_crfsuite_model
from dualfield.io.file_columns import FileColumns
from dualfield.io.svmlight import read_svmlight, write_svmlight

__all__ = [
    "CrfsuiteModel",
    "FileColumns",
    "StateWeights",
    "TransitionWeights",
    "atomic_write",
    "iter_conll",
    "read_conll",
    "read_crfsuite_items",
    "read_crfsuite_model",
    "read_svmlight",
    "write_conll",
    "write_crfsuite_items",
    "write_crfsuite_model",
    "write_svmlight",
]
