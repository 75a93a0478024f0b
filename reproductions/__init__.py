"""The experiments of the papers, computed again: ``python -m reproductions keerthi2005``. Not part of the wheel."""

from reproductions.bayesian_crf import BAYESIAN_CRF
from reproductions.dependency import DEPENDENCY
from reproductions.keerthi2005 import KEERTHI2005
from reproductions.memisevic2006 import MEMISEVIC2006
from reproductions.parsing import PARSING
from reproductions.perezcruz2007 import PEREZCRUZ2007
from reproductions.segments import SEGMENTS
from reproductions.yu_hmm import YU_HMM

PAPERS = {
    paper.name: paper
    for paper in (
        *(KEERTHI2005, MEMISEVIC2006, PEREZCRUZ2007, YU_HMM, SEGMENTS, DEPENDENCY, PARSING),
        BAYESIAN_CRF,
    )
}
