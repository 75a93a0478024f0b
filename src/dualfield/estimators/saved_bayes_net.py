"""Bayesian networks in model files: values, parents and tables."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.estimators.bayes_net_prediction import NetworkPredictor
from dualfield.estimators.bayes_net_structure import Names, listed_structure
from dualfield.estimators.saved import Savable, field
from dualfield.estimators.saved_labels import restored_feature_names, save_feature_names
from dualfield.persistence.file import ModelFile
from dualfield.persistence.parameters import ParameterWriter
from dualfield.structures import Network

Floats = NDArray[np.float64]
_SCALARS = {"b": bool, "i": int, "u": int, "f": float, "U": str}
_VALUES = "values"
_ROUNDING = 1e-6  # by which a row of a table may exceed 1


class SavableNetwork(Savable, NetworkPredictor):
    """A network that can be saved."""

    structure_: list[tuple[Hashable, list[Hashable]]]
    tables_: dict[Hashable, Floats]
    missing_mass_: dict[Hashable, Floats]

    def _set_network(
        self, network: Network, parameters: Floats, categories: list[NDArray[Any]], classes: NDArray[Any] | None
    ) -> None:
        """Set the network and its tables, and what follows from them."""
        self.categories_, self._is_table = categories, classes is None
        if classes is not None:
            self.classes_ = classes
        else:
            self.__dict__.pop("classes_", None)  # of an earlier fit
        names = network.names
        self.network_, self.parameters_ = network, parameters
        self.structure_ = [(names[v], [names[one] for one in of]) for v, of in enumerate(network.parents)]
        self.tables_ = {name: np.exp(network.table(parameters, v)) for v, name in enumerate(names)}
        self.missing_mass_ = {name: np.maximum(1.0 - table.sum(axis=-1), 0.0) for name, table in self.tables_.items()}

    def _saved_parameters(self) -> dict[str, Any]:
        parameters = super()._saved_parameters()
        return parameters | {"structure": listed_structure(parameters["structure"])}

    def _saved(self, writer: ParameterWriter) -> dict[str, Any]:
        if not _are_tables(self.parameters_, self.network_):
            raise ValueError(
                "The model cannot be saved: its tables must have probabilities, whose rows sum to 1 at most."
            )
        columns = [_value_record(values) for values in self.categories_]
        values = {"columns": columns, "class": None if self._is_table else _value_record(self.classes_)}
        # Too many for the header, perhaps.
        writer.arrays[_VALUES] = np.frombuffer(json.dumps(values).encode("ascii"), np.uint8)
        writer.arrays["tables"] = self.parameters_
        return {
            "network": {
                "n_columns": len(self.categories_),
                "parents": [list(of) for of in self.network_.parents],
                "tables": list(self.network_.tables),
                "names": save_feature_names(self, writer.arrays),
            }
        }

    def _restore(self, file: ModelFile) -> None:
        record = field(file, "network", dict)
        self.n_features_in_ = n_columns = field(file, "n_columns", int, record)
        categories, classes = _restored_values(file, n_columns)
        names: list[Hashable] = list(range(n_columns))
        if field(file, "names", bool, record):
            self.feature_names_in_ = restored_feature_names(file, n_columns)
            names = list(self.feature_names_in_)
        sizes = [len(values) for values in categories]
        if classes is not None:
            sizes, names = [*sizes, len(classes)], [*names, "class"]
        parents, tables = field(file, "parents", list, record), field(file, "tables", list, record)
        if not all(isinstance(of, list) and _are_numbers(of, len(sizes)) for of in parents) or not _are_numbers(
            tables, len(sizes)
        ):
            raise file.fault("is altered: its network must have variables by number.")
        try:
            network = Network(sizes, parents, tables, names, max_table=int(self.max_table))
            if classes is None and self.hidden is not None:
                Names(type(self).__name__, names, has_class=False).listed("hidden", self.hidden)
            n_parameters = network.n_parameters
        except (ValueError, OverflowError) as error:
            raise file.fault(f"is altered: {error}") from None
        parameters = np.array(file.array("tables", np.float64, (n_parameters,)))
        if not _are_tables(parameters, network):
            raise file.fault("is altered: array 'tables' must have log-probabilities, whose rows sum to 1 at most.")
        self._set_network(network, parameters, categories, classes)


def _are_tables(parameters: Floats, network: Network) -> bool:
    """Whether parameters are log-probabilities whose rows sum to 1 at most: what a file must have, and a model has."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.bincount(network.rows, np.exp(parameters))
    return bool(np.isfinite(parameters).all() and (sums <= 1.0 + _ROUNDING).all() and parameters.min() > -1e6)


def _are_numbers(values: list[Any], below: int) -> bool:
    return all(type(value) is int and 0 <= value < below for value in values)


def _value_record(values: NDArray[Any]) -> dict[str, Any]:
    """Return the JSON form of the values of a variable."""
    kind, listed = values.dtype.kind, values.tolist()
    allowed = tuple(_SCALARS.values()) if kind == "O" else _SCALARS.get(kind, ())
    if not all(isinstance(value, allowed) for value in listed):
        raise ValueError(f"The model cannot be saved: its values must be numbers or str. Got {listed!r:.200}.")
    record = {"kind": kind if kind in "UO" else values.dtype.name, "values": listed}
    try:
        _read_values(record)  # as load will
    except ValueError as error:
        raise ValueError(f"The model cannot be saved, since its values could not be read again: {error}.") from None
    return record


def _restored_values(file: ModelFile, n_columns: int) -> tuple[list[NDArray[Any]], NDArray[Any] | None]:
    try:
        found = json.loads(file.array(_VALUES, np.uint8, (None,)).tobytes().decode("ascii"))
        columns, target = found["columns"], found["class"]
        if found.keys() != {"columns", "class"} or len(columns) != n_columns or not n_columns:
            raise ValueError(f"it must have values of {n_columns} columns")
        return [_read_values(record) for record in columns], None if target is None else _read_values(target)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise file.fault(f"is altered: the values of its variables cannot be read: {error}.") from None


def _read_values(record: dict[str, Any]) -> NDArray[Any]:
    kind, listed = record["kind"], record["values"]
    dtype = np.dtype(kind)
    wanted = tuple(_SCALARS.values()) if dtype.kind == "O" else (_SCALARS[dtype.kind],)
    if not isinstance(listed, list) or not listed or not all(type(value) in wanted for value in listed):
        raise ValueError(f"they are not of type {kind!r:.100}")
    values = np.array(listed, dtype=dtype)
    if values.ndim != 1 or values.tolist() != listed or len(set(listed)) < len(listed):
        raise ValueError(f"they must be distinct values of type {kind!r:.100}")
    return values
