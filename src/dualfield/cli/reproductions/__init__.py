"""Reproductions of papers: what to compute, how to show it, and one writer for all of them."""

from dualfield.cli.reproductions.keerthi2005 import KEERTHI2005
from dualfield.cli.reproductions.memisevic2006 import MEMISEVIC2006
from dualfield.cli.reproductions.perezcruz2007 import PEREZCRUZ2007
from dualfield.cli.reproductions.yu_hmm import YU_HMM

PAPERS = {paper.name: paper for paper in (KEERTHI2005, MEMISEVIC2006, PEREZCRUZ2007, YU_HMM)}
