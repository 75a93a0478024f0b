"""What a structural SVM keeps in its file beside labels, chain and weights: its temperature, and names of columns."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from dualfield.estimators.saved import field
from dualfield.estimators.saved_expansion import expansion_record
from dualfield.estimators.saved_labels import restored_feature_names, save_feature_names
from dualfield.models.temperature_scaling import Calibration
from dualfield.persistence.file import ModelFile
from dualfield.persistence.parameters import ParameterWriter
from dualfield.structures import Chain


def saved_margins(model: Any, writer: ParameterWriter, *, single: bool) -> dict[str, Any]:
    """Return the metadata."""
    found: Calibration | None = getattr(model, "calibration_", None)
    kept = {"calibration": None if found is None else dataclasses.asdict(found)}
    return kept | ({"feature_names": save_feature_names(model, writer.arrays)} if single else {})


def restored_margins(file: ModelFile, chain: Chain, *, single: bool) -> dict[str, Any]:
    """Return the fitted attributes, checked."""
    parts = _restored_calibration(file)
    if not single:
        return parts
    features, kernel = field(file, "features", dict), expansion_record(file)
    n_features = field(file, "n_columns", int, features if kernel is None else kernel)
    plain = not field(file, "attributes", bool, features) and not field(file, "ends", bool, features)
    if not plain or chain.order != 1 or field(file, "pair_columns", (int, type(None)), features) is not None:
        raise file.fault("is altered: single nodes have columns of numbers, and neither transitions nor ends.")
    parts["n_features_in_"] = n_features
    if field(file, "feature_names", bool):
        parts["feature_names_in_"] = restored_feature_names(file, n_features)
    return parts


def _restored_calibration(file: ModelFile) -> dict[str, Any]:
    record = field(file, "calibration", (dict, type(None)))
    if record is None:
        return {}
    names = ("temperature", "log_loss", "log_loss_at_one")
    temperature, log_loss, at_one = (field(file, name, float, record) for name in names)
    n_nodes = field(file, "n_nodes", int, record)
    if not (math.isfinite(temperature) and temperature > 0.0):
        raise file.fault(f"is altered: its temperature must be a float in (0, inf). Got {temperature!r}.")
    return {"calibration_": Calibration(temperature, log_loss, at_one, n_nodes)}
