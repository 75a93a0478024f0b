"""Memisevic (2006): the parts of the paper that are reproduced."""

from reproductions.memisevic_curves import FIGURE1
from reproductions.memisevic_letter import LETTER
from reproductions.memisevic_times import TABLE2
from reproductions.records import Paper

MEMISEVIC2006 = Paper(
    name="memisevic2006",
    title="Memisevic (2006), Dual Optimization of Conditional Probability Models, reproduced with dualfield",
    citation="R. Memisevic: Dual Optimization of Conditional Probability Models. University of Toronto, 2006.",
    machine="The paper's times are CPU seconds of Matlab code on a machine with four Pentium 4 processors: ratios and "
    "trends can be compared, seconds cannot.",
    parts=(FIGURE1, TABLE2, LETTER),
)
