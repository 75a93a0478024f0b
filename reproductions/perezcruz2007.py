"""Pérez-Cruz, Ghahramani and Pontil (2007): the parts of the paper that are reproduced."""

from reproductions.perezcruz_disjoint import DISJOINT
from reproductions.perezcruz_pairs import PAIRS
from reproductions.perezcruz_setup import LOSSES, SETUPS
from reproductions.perezcruz_tables import TABLES
from reproductions.perezcruz_words import WORDS
from reproductions.records import Paper

PEREZCRUZ2007 = Paper(
    name="perezcruz2007",
    title="Pérez-Cruz, Ghahramani and Pontil (2007), Conditional Graphical Models, reproduced with dualfield",
    citation="F. Pérez-Cruz, Z. Ghahramani, M. Pontil: Conditional Graphical Models. In: Predicting Structured Data, "
    "MIT Press, 2007.",
    machine="The paper gives no times.",
    parts=(TABLES, WORDS, DISJOINT, SETUPS, LOSSES, PAIRS),
)
