"""Files of other tools: CoNLL columns, CoNLL-U, JSON, graphs, trees, CRFsuite's files, svmlight."""

from dualfield.io.annotated_text import AnnotatedText
from dualfield.io.atomic import atomic_write
from dualfield.io.bracket_files import read_trees, write_trees
from dualfield.io.compiling import CompileProgress, compile_corpus
from dualfield.io.conll import iter_conll, read_conll, write_conll
from dualfield.io.conllu import iter_conllu, read_conllu, write_conllu
from dualfield.io.crfsuite_items import read_crfsuite_items, write_crfsuite_items
from dualfield.io.crfsuite_model import CrfsuiteModel, StateWeights, TransitionWeights, read_crfsuite_model
from dualfield.io.crfsuite_model_writer import write_crfsuite_model
from dualfield.io.file_columns import FileColumns
from dualfield.io.json_graphs import read_json_graphs, write_json_graphs
from dualfield.io.json_spans import read_json_spans, write_json_spans
from dualfield.io.json_tokens import read_json_tokens, write_json_tokens
from dualfield.io.plain_text import split_tokens
from dualfield.io.svmlight import read_svmlight, write_svmlight

__all__ = [
    "AnnotatedText",
    "CompileProgress",
    "CrfsuiteModel",
    "FileColumns",
    "StateWeights",
    "TransitionWeights",
    "atomic_write",
    "compile_corpus",
    "iter_conll",
    "iter_conllu",
    "read_conll",
    "read_conllu",
    "read_crfsuite_items",
    "read_crfsuite_model",
    "read_json_graphs",
    "read_json_spans",
    "read_json_tokens",
    "read_svmlight",
    "read_trees",
    "split_tokens",
    "write_conll",
    "write_conllu",
    "write_crfsuite_items",
    "write_crfsuite_model",
    "write_json_graphs",
    "write_json_spans",
    "write_json_tokens",
    "write_svmlight",
    "write_trees",
]
