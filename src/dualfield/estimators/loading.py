"""From a model file to the estimator in it."""

from __future__ import annotations

import os
from typing import Any

import dualfield.estimators.crfsuite as crfsuite
from dualfield.estimators.bagged import BaggedTagger
from dualfield.estimators.base import Estimator
from dualfield.estimators.bayes_net import DiscriminativeBayesNet
from dualfield.estimators.bayesian import BayesianCRF
from dualfield.estimators.crf import CRF
from dualfield.estimators.graphical import ConditionalGraphicalModel
from dualfield.estimators.hmm import DiscriminativeHMM
from dualfield.estimators.kernel_logistic import KernelLogisticRegression
from dualfield.estimators.latent import LatentStructuredSVM
from dualfield.estimators.latent_crf import LatentCRF
from dualfield.estimators.pcfg import DiscriminativePCFG
from dualfield.estimators.structured_svm import StructuredSVM
from dualfield.persistence.file import ModelFileError, open_model

__all__ = ["load"]

# A file names its class; these are the only ones that it can name.
ESTIMATORS: dict[str, type[Estimator]] = {
    found._saved_as: found
    for found in (
        CRF,
        StructuredSVM,
        LatentStructuredSVM,
        LatentCRF,
        KernelLogisticRegression,
        ConditionalGraphicalModel,
        DiscriminativeHMM,
        DiscriminativeBayesNet,
        DiscriminativePCFG,
        BaggedTagger,
        BayesianCRF,
        crfsuite.CRF,
    )
}


def load(path: str | os.PathLike[str], *, mmap: bool = False) -> Any:
    """Load the model that ``save`` has written.

    The file is checked before anything is made of it, and nothing in it is executed: a file from an unknown source can
    be refused, but do no harm. See the guide on model files.

    Parameters
    ----------
    path : str or path-like
        The file.
    mmap : bool, default=False
        False: read and check the whole file. True: map it. Opening then takes the same short time for every size, and
        predictions look up in the file what they need, each piece checked where it is used. The file must not be
        changed as long as the model is in use; replacing it, as ``save`` does, is safe.

    Returns
    -------
    estimator
        A fitted model, whose parameters, predictions and probabilities are those of the one that was saved.

    Raises
    ------
    dualfield.persistence.ModelFileError
        If the file is not a model, cut off, altered, or written by another version. The message begins with its name.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import dualfield
    >>> model = dualfield.KernelLogisticRegression(C=10.0).fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "classifier.model")
    ...     model.save(path)
    ...     again = dualfield.load(path)
    >>> again.predict([[2.5]]), again.C
    (array(['b'], dtype='<U1'), 10.0)
    """
    file = open_model(path, mmap=bool(mmap))
    record = file.record
    name = record.text("estimator")
    if name not in ESTIMATORS:
        raise ModelFileError(f"{file.path} holds a {name!r:.100}; this version knows {', '.join(ESTIMATORS)}.")
    with file.at_fault():
        return ESTIMATORS[name]._load(record)
