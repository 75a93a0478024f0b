"""Files: models of this library; of other tools CoNLL columns, CRFsuite's items and models, svmlight."""

from dualfield.io.aside import written_aside
from dualfield.io.conll import iter_conll, read_conll, write_conll
from dualfield.io.crfsuite_items import read_crfsuite_items, write_crfsuite_items
from dualfield.io.crfsuite_model import CrfsuiteModel, StateWeights, TransitionWeights, read_crfsuite_model
from dualfield.io.model_file import ModelFileError, read_model_header
from dualfield.io.svmlight import read_svmlight, write_svmlight

__all__ = [
    "CrfsuiteModel",
    "ModelFileError",
    "StateWeights",
    "TransitionWeights",
    "iter_conll",
    "read_conll",
    "read_crfsuite_items",
    "read_crfsuite_model",
    "read_model_header",
    "read_svmlight",
    "write_conll",
    "write_crfsuite_items",
    "write_svmlight",
    "written_aside",
]
