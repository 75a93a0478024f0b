"""An HMM in a model file: labels, symbols, and tables, whose zeros are minus infinities."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Labels
from dualfield.data.observations import Observations
from dualfield.data.symbols import Rare, SymbolTable
from dualfield.estimators.saved import field
from dualfield.estimators.saved_labels import label_record, restored_labels
from dualfield.persistence.file import ModelFile
from dualfield.persistence.parameters import ParameterWriter
from dualfield.scores.tables import Tables

Floats = NDArray[np.float64]
_ROUNDING = 1e-9  # of sums of rows


def saved_hmm(model: Any, writer: ParameterWriter) -> dict[str, Any]:
    """Return the metadata of a fitted HMM; arrays go to the writer."""
    tables = model._tables()
    if not all(map(_is_table, tables.every())):
        raise ValueError(
            "The model cannot be saved: its tables must have probabilities, whose rows sum to one at most."
        )
    writer.arrays |= {"tables.start": tables.start, "tables.transition": tables.transition}
    streams = []
    for k, (symbols, emission) in enumerate(zip(model.observations_.tables, tables.emission, strict=True)):
        writer.arrays[f"tables.emission.{k}"] = emission
        if symbols.is_text:
            text = json.dumps(symbols.symbols.tolist())  # too many for the header, perhaps
            writer.arrays[f"symbols.{k}"] = np.frombuffer(text.encode("ascii"), np.uint8)
        else:
            writer.arrays[f"symbols.{k}"] = symbols.symbols
        streams.append({"text": symbols.is_text, "classes": list(symbols.classes)})
    return {"labels": label_record(model.labels_), "streams": streams, "n_completions": int(model.n_completions_)}


def restored_hmm(file: ModelFile, rare: Rare) -> tuple[int, Labels, Observations, Tables]:
    """Return the completions of the fit, labels, symbols and tables, all of them checked."""
    labels, streams = restored_labels(file), field(file, "streams", list)
    if not streams or not all(isinstance(one, dict) for one in streams):
        raise file.fault("is altered: it must have records of streams of symbols, at least one.")
    found = [_restored_symbols(file, k, record, rare) for k, record in enumerate(streams)]
    n = len(labels)
    emission = [_restored_table(file, f"tables.emission.{k}", (n, one.unknown)) for k, one in enumerate(found)]
    tables = Tables(
        _restored_table(file, "tables.start", (n,)), _restored_table(file, "tables.transition", (n, n)), emission
    )
    return field(file, "n_completions", int), labels, Observations(found), tables


def _restored_symbols(file: ModelFile, k: int, record: dict[str, Any], rare: Rare) -> SymbolTable:
    name, classes = f"symbols.{k}", field(file, "classes", list, record)
    if not all(type(one) is str for one in classes) or classes != sorted(set(classes)):
        raise file.fault(f"is altered: the classes of stream {k} must be distinct str, in order.")
    if not field(file, "text", bool, record):
        numbers = np.array(file.array(name, np.int64, (None,)))
        if (numbers[1:] <= numbers[:-1]).any():
            raise file.fault(f"is altered: array {name!r} must have distinct numbers, in order.")
        return SymbolTable(numbers, tuple(classes), rare)
    try:
        words = json.loads(file.array(name, np.uint8, (None,)).tobytes().decode("ascii"))
    except (ValueError, RecursionError):
        words = None
    if not isinstance(words, list) or not all(type(word) is str for word in words) or words != sorted(set(words)):
        raise file.fault(f"is altered: array {name!r} must have distinct str, in order.")
    symbols = np.empty(len(words), dtype=object)
    symbols[:] = words
    return SymbolTable(symbols, tuple(classes), rare)


def _is_table(table: Floats) -> bool:
    """Whether rows are logarithms of probabilities that sum to one at most: what a file must have, and a model has."""
    # Rounding may leave the logarithm of a probability of one a little above 0.
    return bool(table.size and (table <= _ROUNDING).all() and (np.exp(table).sum(axis=-1) <= 1.0 + _ROUNDING).all())


def _restored_table(file: ModelFile, name: str, shape: tuple[int, ...]) -> Floats:
    table = np.array(file.array(name, np.float64, shape))
    if not _is_table(table):
        raise file.fault(f"is altered: array {name!r} must have logarithms of probabilities in rows that sum to one.")
    return table
