"""Bayesian conditional random fields, tried out beside simpler ways to honest probabilities."""

from reproductions.bayesian_intervals import INTERVALS
from reproductions.bayesian_labelling import LABELLING
from reproductions.bayesian_losses import LETTERS, LOSSES
from reproductions.records import Paper

BAYESIAN_CRF = Paper(
    name="bayesian-crf",
    title="Qi, Szummer and Minka 2005, Bayesian Conditional Random Fields, tried out with dualfield",
    citation="Y. Qi, M. Szummer, T. P. Minka: Bayesian Conditional Random Fields. AISTATS 2005.",
    machine="No times of the paper are compared.",
    parts=(LOSSES, LETTERS, LABELLING, INTERVALS),
)
