"""Dependency parsing by sums and maxima over projective trees, tried out."""

from reproductions.dependency_treebank import TREEBANK
from reproductions.records import Paper

DEPENDENCY = Paper(
    name="dependency",
    title="McDonald, Crammer and Pereira 2005, Online Large-Margin Training of Dependency Parsers, tried out with "
    "dualfield",
    citation="R. McDonald, K. Crammer, F. Pereira: Online Large-Margin Training of Dependency Parsers. ACL 2005.",
    machine="No times of the paper are compared.",
    parts=(TREEBANK,),
)
