"""Semi-Markov models, tried out."""

from reproductions.records import Paper
from reproductions.segments_lengths import LENGTHS
from reproductions.segments_names import NAMES

SEGMENTS = Paper(
    name="segments",
    title="Sarawagi and Cohen 2004, Semi-Markov Conditional Random Fields for Information Extraction, tried out with "
    "dualfield",
    citation="S. Sarawagi, W. W. Cohen: Semi-Markov Conditional Random Fields for Information Extraction. NIPS 2004.",
    machine="No times of the paper are compared.",
    parts=(NAMES, LENGTHS),
)
