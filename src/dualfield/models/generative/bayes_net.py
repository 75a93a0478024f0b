"""A Bayesian network with its tables, and the values that its variables have."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.special import log_softmax

from dualfield.data.arrays import Codes, Floats
from dualfield.data.columns import MISSING
from dualfield.data.records import Fields, Record, packed
from dualfield.data.value_records import read_values, values_record
from dualfield.models.temperature_scaling import Calibration, HeldOut, held_out_rows
from dualfield.structures import Network
from dualfield.structures.network.groups import condition
from dualfield.structures.network.naming import Names

_ROUNDING = 1e-6  # by which a row of a table may exceed 1


@dataclass(frozen=True, eq=False, kw_only=True)
class BayesNet:
    """Tables of log-probabilities over the columns of a table, and perhaps a class, which is the last variable.

    Rows of codes, (n, n_variables), have ``MISSING`` for cells that are missing and for a class that is asked for.
    `max_table` is the most numbers that a table may have where cells are summed out.

    Parameters
    ----------
    network : Network
        Variables, and who depends on whom.
    parameters : array of shape (n_parameters,)
        The tables, as logarithms.
    categories : list of arrays
        The values of each column.
    classes : array or None
        Those of the class; None: all variables are columns.
    calibration : Calibration, default=None
        The temperature by which log-probabilities are divided before those of the classes are normalised.

    Examples
    --------
    >>> from dualfield import DiscriminativeBayesNet
    >>> model = DiscriminativeBayesNet(eta=0.0).fit([["a"], ["a"], ["b"], ["b"]], [0, 0, 1, 1]).model_
    >>> model.conditional(0, {"class": 1})
    array([0.25, 0.75])
    """

    network: Network
    parameters: Floats
    categories: list[NDArray[Any]]
    classes: NDArray[Any] | None
    calibration: Calibration | None = None

    @property
    def is_table(self) -> bool:
        """Whether there is no class."""
        return self.classes is None

    @property
    def structure(self) -> list[tuple[Hashable, list[Hashable]]]:
        """Every variable with its parents, by name."""
        names = self.network.names
        return [(names[v], [names[one] for one in of]) for v, of in enumerate(self.network.parents)]

    @cached_property
    def tables(self) -> dict[Hashable, Floats]:
        """The tables of probabilities, by child."""
        names = self.network.names
        return {name: np.exp(self.network.table(self.parameters, v)) for v, name in enumerate(names)}

    @cached_property
    def missing_mass(self) -> dict[Hashable, Floats]:
        """What the rows of each table lack to one."""
        return {name: np.maximum(1.0 - table.sum(axis=-1), 0.0) for name, table in self.tables.items()}

    def names(self, owner: str) -> Names:
        """Return the variables by name."""
        names = list(self.network.names)
        return Names(owner, names if self.is_table else names[:-1], has_class=not self.is_table)

    def joint_log_proba(self, codes: Codes, max_table: int) -> Floats:
        """Return the log-probability of each class together with the row."""
        assert self.classes is not None
        target, n_classes = self.network.n_variables - 1, len(self.classes)
        joint = np.empty((len(codes), n_classes))
        for rows, part in condition(self.network, codes, codes == MISSING, max_table=max_table):
            if list(part.hidden) == [target]:
                for at, [table] in part.tables(self.parameters):
                    joint[rows[at]] = table
            else:
                place = list(part.hidden).index(target)
                for code in range(n_classes):
                    joint[rows, code] = part.log_partition(self.parameters, (place, code))
            joint[rows] += part.rest(self.parameters)[:, None]
        return joint

    def class_log_proba(self, codes: Codes, max_table: int) -> Floats:
        """Return the log-probability of each class, given the row."""
        joint = self.joint_log_proba(codes, max_table)
        return np.asarray(
            log_softmax(joint if self.calibration is None else joint / self.calibration.temperature, axis=1)
        )

    def calibrated(self, calibration: Calibration | None) -> Self:
        """Return the same model with another temperature of its probabilities; None: that of the fit."""
        return replace(self, calibration=calibration)

    def held_out(self, codes: Codes, y: Any, max_table: int) -> HeldOut:
        """Return the log-probabilities of the classes of rows that it was not fitted to, and their classes."""
        assert self.classes is not None
        return held_out_rows(self.classes, self.calibrated(None).class_log_proba(codes, max_table), y)

    def completed(self, codes: Codes, max_table: int) -> Codes:
        """Return rows in which missing cells have the values that are jointly most probable."""
        full = codes.copy()
        for rows, part in condition(self.network, codes, codes == MISSING, max_table=max_table):
            full[rows[:, None], list(part.hidden)] = part.argmax(self.parameters)
        return full

    def marginals(self, codes: Codes, max_table: int) -> dict[Hashable, Floats]:
        """Return the probabilities of the values of columns with missing cells."""
        found: dict[Hashable, Floats] = {}
        for v in np.flatnonzero((codes == MISSING).any(axis=0)).tolist():
            known = np.zeros((len(codes), self.network.n_values[v]))
            seen = np.flatnonzero(codes[:, v] >= 0)
            known[seen, codes[seen, v]] = 1.0
            found[self.network.names[v]] = known
        for rows, part in condition(self.network, codes, codes == MISSING, max_table=max_table):
            for v, answer in zip(part.hidden, part.marginals(self.parameters), strict=True):
                found[self.network.names[v]][rows] = answer
        return found

    def log_proba(self, codes: Codes, max_table: int) -> Floats:
        """Return the log-probability of each row, missing cells summed out."""
        total = np.zeros(len(codes))
        places = self.network.indices(codes)
        whole = ~(codes == MISSING).any(axis=1)
        total[whole] = np.append(self.parameters, 0.0)[places[whole]].sum(axis=1)
        for rows, part in condition(self.network, codes, codes == MISSING, max_table=max_table):
            total[rows] = part.log_partition(self.parameters) + part.rest(self.parameters)
        return total

    def sample(self, n_samples: int, random: RandomState) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Draw rows, parents before children."""
        codes = self.network.sample(self.parameters, n_samples, random)
        kinds = {values.dtype.kind for values in self.categories}
        same = len(kinds) == 1 or kinds <= set("biuf")
        dtype = np.result_type(*(values.dtype for values in self.categories)) if same else np.dtype(object)
        X = np.empty((n_samples, len(self.categories)), dtype=dtype)
        for j, values in enumerate(self.categories):
            X[:, j] = values[codes[:, j]]
        return X, None if self.classes is None else self.classes[codes[:, -1]]

    def conditional(self, child: Hashable, given: Mapping[Any, Any], owner: str = "BayesNet") -> Floats:
        """Return P(child | parents) for values of the parents."""
        names, values = self.names(owner), dict(given)
        v, place = names.find("child", child), {names.find("given", name): value for name, value in values.items()}
        parents = self.network.parents[v]
        if set(place) != set(parents):
            wanted = [names.all[one] for one in parents]
            raise ValueError(f"given must have a value for each parent of {child!r}, {wanted}. Got {list(values)}.")
        at = []
        for one in parents:
            of_class = self.classes if one == names.n_columns else None
            known = (self.categories[one] if of_class is None else of_class).tolist()
            if place[one] not in known:
                raise ValueError(f"given[{names.all[one]!r}] must be one of {known!r:.200}. Got {place[one]!r:.100}.")
            at.append(known.index(place[one]))
        return np.asarray(np.exp(self.network.table(self.parameters, v)[tuple(at)]))

    def record(self) -> Fields:
        """Return what the network consists of, but the names of its columns."""
        if not _are_tables(self.parameters, self.network):
            raise ValueError(
                "The model cannot be saved: its tables must have probabilities, whose rows sum to 1 at most."
            )
        columns = [values_record(values, mixed=True) for values in self.categories]
        classes = None if self.classes is None else values_record(self.classes, mixed=True)
        return {
            "values": packed({"columns": columns, "class": classes}),  # too many for the header, perhaps
            "parents": [list(of) for of in self.network.parents],
            "tables": list(self.network.tables),
            "parameters": self.parameters,
            "calibration": None if self.calibration is None else self.calibration.record(),
        }

    @classmethod
    def from_record(cls, record: Record, columns: Sequence[Hashable], max_table: int) -> BayesNet:
        """Make a network of its record, which is checked."""
        categories, classes = _read_values(record, len(columns))
        names = list(columns)
        sizes = [len(values) for values in categories]
        if classes is not None:
            sizes, names = [*sizes, len(classes)], [*names, "class"]
        parents, tables = record.items("parents", list), record.items("tables", int)
        for of in [*parents, tables]:
            good = all(type(value) is int and 0 <= value < len(sizes) for value in of)
            record.check(good, "its network must have variables by number.")
        network = Network(sizes, parents, tables, names, max_table=max_table)
        parameters = np.array(record.array("parameters", np.float64, (network.n_parameters,)))
        what = f"array {record.place('parameters')!r} must have log-probabilities, whose rows sum to 1 at most."
        record.check(_are_tables(parameters, network), what)
        found = Calibration.from_record(record.child("calibration")) if record.has("calibration") else None
        return cls(network=network, parameters=parameters, categories=categories, classes=classes, calibration=found)


def _are_tables(parameters: Floats, network: Network) -> bool:
    """Whether parameters are log-probabilities whose rows sum to 1 at most: what a file must have, and a model has."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.bincount(network.rows, np.exp(parameters))
    return bool(np.isfinite(parameters).all() and (sums <= 1.0 + _ROUNDING).all() and parameters.min() > -1e6)


def _read_values(record: Record, n_columns: int) -> tuple[list[NDArray[Any]], NDArray[Any] | None]:
    found = record.unpacked("values")
    if not isinstance(found, dict):
        raise record.fault("the values of its variables cannot be read.")
    values = Record(found, record.source, record.place("values"))
    columns = [read_values(one, mixed=True) for one in values.children("columns")]
    record.check(len(columns) == n_columns, f"it must have values of {n_columns} columns.")
    return columns, read_values(values.child("class"), mixed=True) if values.has("class") else None
