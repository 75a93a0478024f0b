"""Structured prediction with exact probabilities and a certificate of optimality."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualfield.estimators import (
        CRF,
        CRFCV,
        BaggedTagger,
        BayesianCRF,
        ConditionalGraphicalModel,
        DiscriminativeBayesNet,
        DiscriminativeHMM,
        DiscriminativePCFG,
        KernelLogisticRegression,
        LatentChain,
        LatentCRF,
        LatentMulticlass,
        LatentPosition,
        LatentStructuredSVM,
        StructuredSVM,
        StructuredSVMCV,
        load,
    )

__version__ = "0.1.0.dev0"
__all__ = [
    "CRF",
    "CRFCV",
    "BaggedTagger",
    "BayesianCRF",
    "ConditionalGraphicalModel",
    "DiscriminativeBayesNet",
    "DiscriminativeHMM",
    "DiscriminativePCFG",
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

# What is imported when it is first asked for, so that `dualfield --help` need not wait for scikit-learn.
_HOMES = dict.fromkeys(__all__, "dualfield.estimators")
_MODULES = (
    *("data", "datasets", "estimators", "features", "io", "kernels", "metrics", "models", "objectives", "persistence"),
    *("plotting", "regularisers", "report", "scores", "solvers", "structures", "tuning"),
    *("attributes", "batch", "labels"),  # other names of what is in data
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        globals()[name] = found = getattr(importlib.import_module(_HOMES[name]), name)
        return found
    if name in _MODULES:
        return importlib.import_module(f"dualfield.{name}")
    raise AttributeError(f"module 'dualfield' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
