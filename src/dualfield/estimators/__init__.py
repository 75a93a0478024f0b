"""The models, with scikit-learn's manners."""

from dualfield.data.impossible import ImpossibleWarning
from dualfield.estimators.bagged import BaggedTagger
from dualfield.estimators.bayes_net import DiscriminativeBayesNet
from dualfield.estimators.bayesian import BayesianCRF
from dualfield.estimators.crf import CRF
from dualfield.estimators.early_stopping import EarlyStopping
from dualfield.estimators.graphical import ConditionalGraphicalModel
from dualfield.estimators.hmm import DiscriminativeHMM
from dualfield.estimators.kernel_logistic import KernelLogisticRegression
from dualfield.estimators.latent import LatentStructuredSVM
from dualfield.estimators.latent_crf import LatentCRF
from dualfield.estimators.loading import load
from dualfield.estimators.pcfg import DiscriminativePCFG
from dualfield.estimators.structured_svm import StructuredSVM
from dualfield.estimators.tuned import CRFCV, StructuredSVMCV
from dualfield.objectives.latent_bags import LatentPosition
from dualfield.objectives.latent_states import LatentChain, LatentMulticlass
from dualfield.persistence.checkpoint import Checkpoint, CheckpointWarning

__all__ = [
    "CRF",
    "CRFCV",
    "BaggedTagger",
    "BayesianCRF",
    "Checkpoint",
    "CheckpointWarning",
    "ConditionalGraphicalModel",
    "DiscriminativeBayesNet",
    "DiscriminativeHMM",
    "DiscriminativePCFG",
    "EarlyStopping",
    "ImpossibleWarning",
    "KernelLogisticRegression",
    "LatentCRF",
    "LatentChain",
    "LatentMulticlass",
    "LatentPosition",
    "LatentStructuredSVM",
    "StructuredSVM",
    "StructuredSVMCV",
    "load",
]
