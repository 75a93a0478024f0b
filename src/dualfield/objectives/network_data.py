"""What a network is trained on: from a table and perhaps a class to codes, hidden cells, weights and costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from dualfield.data.arrays import Codes, Flags, Floats
from dualfield.data.columns import ValueTable, encode, found_categories, given_categories
from dualfield.data.costs import cost_table
from dualfield.structures import Network
from dualfield.structures.network.naming import (
    CLASS,
    Names,
    common_values,
    hidden_cells,
    naive_bayes,
    read_shared,
    read_structure,
    tree_augmented,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkTask:
    """What a user says about the network: its structure, its values, and what is to be predicted at which cost."""

    owner: str
    structure: Any
    shared: Any
    hidden: Any
    loss: Any
    categories: Any
    unknown: str
    max_table: int


@dataclass(frozen=True, eq=False, kw_only=True)
class NetworkData:
    """Everything that a fit needs, read and checked; rows without a weight are left out."""

    network: Network
    codes: Codes  # (n, n_variables); below 0: missing, or not among the categories
    hidden: Flags  # (n, n_variables)
    weights: Floats  # (n,)
    costs: list[Floats] | None
    categories: list[NDArray[Any]]
    classes: NDArray[Any] | None


def read_data(
    task: NetworkTask, table: ValueTable, labels: NDArray[Any] | None, sample_weight: ArrayLike | None, hidden: Any
) -> NetworkData:
    """Read and check everything, and lay out the network."""
    weights = _check_sample_weight(
        sample_weight, np.zeros((table.n_rows, 1)), dtype=np.float64, ensure_non_negative=True
    )
    used = weights > 0.0  # rows without a weight do not count at all, nor do their values
    if not used.any():
        raise ValueError("sample_weight must have an entry above zero. Got zeros only.")
    kept, classes, class_codes = table.keep(used), None, None
    if labels is not None:
        check_classification_targets(labels)
        check_consistent_length(table.missing, labels)
        classes, class_codes = np.unique(labels[used], return_inverse=True)
    names = Names(task.owner, table.names, has_class=labels is not None)
    cells = _read_hidden(task, names, hidden, used)
    network, codes, categories = _lay_out(task, kept, names, classes, class_codes, weights[used])
    lost = cells & (codes < 0)
    if lost.any():
        row, j = (int(at) for at in np.unravel_index(int(lost.argmax()), lost.shape))
        found = "none" if kept.missing[row, j] else f"{kept.columns[j][row]!r:.100}"
        raise ValueError(
            f"Hidden cells must have values among the categories in fit: their truth is what is learnt. "
            f"Got {found} in row {np.flatnonzero(used)[row]} of column {table.names[j]!r}."
        )
    costs = _read_costs(task, network, classes)
    return NetworkData(
        network=network,
        codes=codes,
        hidden=cells,
        weights=weights[used],
        costs=costs,
        categories=categories,
        classes=classes,
    )


def _lay_out(
    task: NetworkTask,
    table: ValueTable,
    names: Names,
    classes: NDArray[Any] | None,
    class_codes: NDArray[Any] | None,
    weights: Floats,
) -> tuple[Network, Codes, list[NDArray[Any]]]:
    """Return the network, the codes of all variables, and the values of the columns."""
    tables, is_named = read_shared(task.shared, names), isinstance(task.structure, str)
    if is_named and classes is None:
        raise ValueError(
            f"{names.owner} with structure={task.structure!r} requires y to be passed, but the target y is None. "
            f"Without a class, structure must list children and parents."
        )
    parents = naive_bayes(names.n_columns) if is_named else read_structure(task.structure, names)
    categories = _read_categories(task, table, names, common_values(parents, tables, names.n_columns))
    codes = encode(table, categories, task.unknown)
    sizes = [len(values) for values in categories]
    if classes is not None and class_codes is not None:
        codes, sizes = np.column_stack([codes, class_codes.astype(np.int32)]), [*sizes, len(classes)]
    if is_named and task.structure == "tan":
        parents = tree_augmented(codes, weights, sizes[:-1], int(task.max_table))
    return Network(sizes, parents, tables, names.all, max_table=int(task.max_table)), codes, categories


def _read_categories(task: NetworkTask, table: ValueTable, names: Names, common: list[list[int]]) -> list[NDArray[Any]]:
    if isinstance(task.categories, str):
        found: dict[int, NDArray[Any]] = {}
        for group in common:
            columns = [table.columns[j][~table.missing[:, j]] for j in group]
            values = found_categories(columns, [table.names[j] for j in group])
            found |= dict.fromkeys(group, values)
        return [found[j] for j in range(names.n_columns)]
    if len(task.categories) != names.n_columns:
        raise ValueError(
            f"The 'categories' parameter of {names.owner} must have a list for each of {names.n_columns} columns. "
            f"Got {len(task.categories)} instead."
        )
    pairs = zip(task.categories, table.names, strict=True)
    return [given_categories(names.owner, values, name) for values, name in pairs]


def _read_hidden(task: NetworkTask, names: Names, hidden: Any, used: Flags) -> Flags:
    """Return which variables of each row with a weight are hidden."""
    if not names.has_class:
        chosen = task.hidden if hidden is None else hidden
        return hidden_cells(names, chosen, (len(used), len(names)))[used]
    listed = [CLASS] if task.hidden is None else list(task.hidden)
    if hidden is not None or listed != [CLASS]:
        raise ValueError(
            f"hidden is for tables: with y, the class is hidden and the columns are known. To predict columns too, add "
            f"the class to X as one of them, and fit {names.owner} without y."
        )
    cells = np.zeros((np.count_nonzero(used), len(names)), dtype=bool)
    cells[:, -1] = True
    return cells


def _read_costs(task: NetworkTask, network: Network, classes: NDArray[Any] | None) -> list[Floats] | None:
    """Return what each value of each variable costs; None: 1 for a wrong one."""
    if isinstance(task.loss, str):
        return None
    owner = task.owner
    if classes is None:
        raise ValueError(f"The 'loss' parameter of {owner} must be 'hamming' without a class. Got an array.")
    table = cost_table(owner, "loss", task.loss, classes.tolist())
    return [*(np.zeros((size, size)) for size in network.n_values[:-1]), table]
