"""What all estimators share: few own classes, one way into files, a frozen model inside."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dualfield import (
    CRF,
    BaggedTagger,
    BayesianCRF,
    ConditionalGraphicalModel,
    DiscriminativeBayesNet,
    DiscriminativeHMM,
    DiscriminativePCFG,
    KernelLogisticRegression,
    LatentCRF,
    LatentMulticlass,
    LatentStructuredSVM,
    StructuredSVM,
)
from dualfield.data import Labels, Vocabulary
from dualfield.data.records import Record
from dualfield.estimators import crfsuite
from dualfield.estimators.base import Estimator
from dualfield.estimators.loading import ESTIMATORS
from dualfield.features import Template
from dualfield.kernels import Kernel
from dualfield.models.generative.bayes_net import BayesNet
from dualfield.models.generative.hmm import HiddenMarkovModel
from dualfield.models.graphical.model import GraphicalModel
from dualfield.models.kernel.classifier import KernelClassifier
from dualfield.models.latent.model import SubstateModel
from dualfield.models.structured import StructuredModel
from dualfield.models.temperature_scaling import Calibration
from dualfield.scores import Expansion
from dualfield.solvers.kernel.cliques import CliqueModel
from dualfield.structures import Chain
from tests.estimators.saved_models import equal

MOST_OWN_CLASSES = 3
SEQUENCES, LABELS = [[["a"], ["b"]], [["b"], ["a"], ["a"]]], [["x", "y"], ["y", "x", "x"]]
X, Y = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 0, 1])
FITTED = {
    "KernelLogisticRegression": lambda: KernelLogisticRegression().fit(X, Y),
    "ConditionalGraphicalModel": lambda: ConditionalGraphicalModel([(0,)], loss="log").fit(X, Y[:, None]),
    "DiscriminativeBayesNet": lambda: DiscriminativeBayesNet().fit(X, Y),
    "CRF": lambda: CRF().fit(SEQUENCES, LABELS),
    "crfsuite.CRF": lambda: crfsuite.CRF().fit(SEQUENCES, LABELS),
    "StructuredSVM": lambda: StructuredSVM().fit(SEQUENCES, LABELS),
    "DiscriminativeHMM": lambda: DiscriminativeHMM(0.0).fit([["a", "b"], ["b", "a", "a"]], LABELS),
    "LatentStructuredSVM": lambda: LatentStructuredSVM(latent=LatentMulticlass(1), random_state=0).fit(X, Y),
    "DiscriminativePCFG": lambda: DiscriminativePCFG(0.0).fit([[("a", "D"), ("dog", "N")]], ["(NP (D a) (N dog))"]),
    "BaggedTagger": lambda: BaggedTagger(CRF(), n_estimators=2, random_state=0).fit(SEQUENCES, LABELS),
    "BayesianCRF": lambda: BayesianCRF(C=1.0, n_draws=2, random_state=0).fit(SEQUENCES, LABELS),
    "LatentCRF": lambda: LatentCRF(latent=LatentMulticlass(1), random_state=0).fit(X, Y),
}


def own_classes(owner: type) -> list[str]:
    return [one.__name__ for one in owner.__mro__ if one.__module__.startswith("dualfield.")]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_few_own_classes(name):
    found = own_classes(ESTIMATORS[name])
    assert found[-1] == "Estimator"
    assert len(found) <= MOST_OWN_CLASSES


@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_reader_and_one_writer(name):
    assert ESTIMATORS[name].save is Estimator.save
    assert ESTIMATORS[name]._load.__func__ is Estimator._load.__func__


def test_every_estimator_that_holds_a_model_is_here():
    assert FITTED.keys() == ESTIMATORS.keys()


@pytest.mark.parametrize("name", FITTED)
def test_the_model_inside_is_frozen(name):
    estimator = FITTED[name]()
    field = dataclasses.fields(estimator.model_)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(estimator.model_, field, None)
    with pytest.raises(AttributeError):
        estimator.model_ = None
    with pytest.raises(AttributeError, match="classes_ is that of the fitted model"):
        estimator.classes_ = None
    assert getattr(type(estimator)(), "classes_", None) is None
    assert type(estimator)().__sklearn_is_fitted__() is False


# Each value, and how it is made of its record.
VALUES = {
    "chain": (lambda: Chain(3, 2, np.argwhere(np.ones((3, 3, 3))).astype(np.int32)), Chain.from_record),
    "flags": (lambda: Chain(2, 1, [[True, False], [True, True]], [True, False]), Chain.from_record),
    "template": (lambda: Template("U0:%x[0,0]\nB"), Template.from_record),
    "vocabulary": (lambda: Vocabulary.from_attributes(["a", "größe", ""]), Vocabulary.from_record),
    "labels": (lambda: Labels.fit([[3, 1], [3]]), Labels.from_record),
    "kernel": (lambda: Kernel("poly", 0.5, 1.0, 2.0), Kernel.from_record),
    "expansion": (
        lambda: Expansion(Kernel("linear"), np.eye(2), np.ones((2, 3))),
        lambda record: Expansion.from_record(record, 3, 2),
    ),
    "calibration": (lambda: Calibration(0.5, 0.1, 0.2, 100, "small"), Calibration.from_record),
    "classifier": (
        lambda: FITTED["KernelLogisticRegression"]().model_,
        KernelClassifier.from_record,
    ),
    "graph": (lambda: FITTED["ConditionalGraphicalModel"]().model_, GraphicalModel.from_record),
    "clique": (
        lambda: FITTED["ConditionalGraphicalModel"]().clique_models_[1, (0,)],
        lambda record: CliqueModel.from_record(record, 2),
    ),
    "tagger": (lambda: FITTED["CRF"]().model_, StructuredModel.from_record),
    "margins": (lambda: FITTED["StructuredSVM"]().model_, StructuredModel.from_record),
    "hidden Markov model": (lambda: FITTED["DiscriminativeHMM"]().model_, HiddenMarkovModel.from_record),
    "sub-states": (lambda: FITTED["LatentCRF"]().model_, SubstateModel.from_record),
    "network": (
        lambda: FITTED["DiscriminativeBayesNet"]().model_,
        lambda record: BayesNet.from_record(record, range(2), 100),
    ),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back_from_their_records(name):
    make, read = VALUES[name]
    value = make()
    written = value.record()
    record = Record(written)
    again = read(record)
    record.check_all_read()
    assert type(again) is type(value)
    assert equal(again.record(), written)
    with pytest.raises(ValueError, match=r"The record is altered|must|has no"):
        read(Record({}))
