"""Parsing by features of spans, tried out."""

from reproductions.parsing_treebank import LONG, SHORT
from reproductions.records import Paper

PARSING = Paper(
    name="parsing",
    title="Hall, Durrett and Klein 2014, Less Grammar, More Features, tried out with dualfield",
    citation="D. Hall, G. Durrett, D. Klein: Less Grammar, More Features. ACL 2014.",
    machine="No times of the paper are compared.",
    parts=(SHORT, LONG),
)
