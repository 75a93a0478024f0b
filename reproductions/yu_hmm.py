"""Yu, Bertsekas and Rousu: what is computed for their method, which they present without experiments."""

from reproductions.records import Paper
from reproductions.yu_networks import NETWORKS
from reproductions.yu_tagging import OCR, POS

YU_HMM = Paper(
    name="yu-hmm",
    title="Yu, Bertsekas and Rousu, Efficient Discriminative Training Method for Structured Predictions, tried out "
    "with dualfield",
    citation="H. Yu, D. P. Bertsekas, J. Rousu: Efficient Discriminative Training Method for Structured Predictions. "
    "Extended abstract.",
    machine="The paper gives no times.",
    parts=(POS, OCR, NETWORKS),
)
