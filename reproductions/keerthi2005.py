"""Keerthi, Duan, Shevade and Poo (2005): the parts of the paper that are reproduced."""

from reproductions.keerthi_accuracy import TABLE3, TABLE4
from reproductions.keerthi_scaling import ADULT
from reproductions.keerthi_times import TABLE2
from reproductions.records import Paper

KEERTHI2005 = Paper(
    name="keerthi2005",
    title="Keerthi et al. (2005), A Fast Dual Algorithm for Kernel Logistic Regression, reproduced with dualfield",
    citation="S. S. Keerthi, K. B. Duan, S. K. Shevade, A. N. Poo: A Fast Dual Algorithm for Kernel Logistic "
    "Regression. Machine Learning 61, 151-165, 2005.",
    machine="The paper's times are CPU seconds of C code on a Sun Blade 100 with a 500 MHz processor: ratios and "
    "trends can be compared, seconds cannot.",
    parts=(TABLE2, TABLE3, TABLE4, ADULT),
)
