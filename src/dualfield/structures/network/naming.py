"""The variables of a network and their dependencies: given by users, or trees from data."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.structures.learnt_trees import mutual_information, spanning_tree

CLASS = "class"
Parents = list[tuple[int, ...]]


class Names:
    """The variables of a network by name: the columns of a table, and the class if there is one."""

    def __init__(self, owner: str, columns: Sequence[Hashable], *, has_class: bool) -> None:
        self.owner, self.n_columns, self.has_class = owner, len(columns), has_class
        if has_class and CLASS in columns:
            raise ValueError(f"X has a column called {CLASS!r}, which is what the network calls y. Rename the column.")
        self.all: list[Hashable] = [*columns, CLASS] if has_class else list(columns)
        self._place = {name: v for v, name in enumerate(self.all)}

    def __len__(self) -> int:
        return len(self.all)

    def find(self, parameter: str, name: Any) -> int:
        """Return the number of a variable: by its name, or by the number of a column."""
        if isinstance(name, np.generic):
            name = name.item()
        if isinstance(name, Hashable) and not isinstance(name, bool):
            if name in self._place:
                return self._place[name]
            if isinstance(name, int) and 0 <= name < self.n_columns:
                return name
        known = f"{self.all[: self.n_columns]!r:.200}" + (f", nor {CLASS!r}" if self.has_class else "")
        raise ValueError(
            f"The {parameter!r} parameter of {self.owner} names {name!r:.100}, which is no column of X: {known}."
        )

    def listed(self, parameter: str, names: Any) -> list[int]:
        """Return the numbers of several variables, or of one."""
        if isinstance(names, str) or not isinstance(names, Iterable):
            names = [names]
        return [self.find(parameter, name) for name in names]


def check_structure(owner: str, structure: Any) -> None:
    """Raise unless a structure has one of the forms that it may have."""
    if isinstance(structure, str):
        if structure in ("naive_bayes", "tan"):
            return
    elif _is_graph(structure) or isinstance(structure, (list, tuple)):
        return
    raise ValueError(
        f"The 'structure' parameter of {owner} must be 'naive_bayes', 'tan', a list of (child, parents) or a directed "
        f"graph of networkx. Got {structure!r:.100} instead."
    )


def _is_graph(structure: Any) -> bool:
    return hasattr(structure, "nodes") and hasattr(structure, "predecessors")


def listed_structure(structure: Any) -> Any:
    """Return a structure as a name or as a list of children and parents, which a graph becomes."""
    if _is_graph(structure):
        return [(node, list(structure.predecessors(node))) for node in structure.nodes]
    return structure


def read_structure(structure: Any, names: Names) -> Parents:
    """Return the parents of each variable, as a user has listed them."""
    pairs = listed_structure(structure)
    parents: dict[int, tuple[int, ...]] = {}
    for at, pair in enumerate(pairs):
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise ValueError(
                f"The 'structure' parameter of {names.owner} must have pairs of a child and its parents. "
                f"Got structure[{at}] = {pair!r:.100} instead."
            )
        child = names.find("structure", pair[0])
        if child in parents:
            raise ValueError(
                f"The 'structure' parameter of {names.owner} must list a child once, with all its parents. "
                f"Got {names.all[child]!r} twice."
            )
        parents[child] = tuple(names.listed("structure", pair[1]))
    if names.has_class:
        target = names.n_columns
        if not parents.get(target) and not any(target in of for of in parents.values()):
            raise ValueError(
                f"The 'structure' parameter of {names.owner} must connect {CLASS!r} with a column: it is in no factor "
                f"with one, so nothing could be learnt about it."
            )
    return [parents.get(v, ()) for v in range(len(names))]


def naive_bayes(n_columns: int) -> Parents:
    """Return the network in which the class is the parent of every column."""
    return [(n_columns,)] * n_columns + [()]


def tree_augmented(
    codes: NDArray[np.int32], weights: NDArray[np.float64], sizes: Sequence[int], max_table: int
) -> Parents:
    """Return naive Bayes with a tree of the columns: the likeliest one given the class (Chow and Liu; Friedman et al.).

    The first column is the root, and every other has its neighbour towards the root as a parent beside the class.
    """
    n_columns, total = len(sizes), sum(sizes)
    if total**2 > max_table:
        raise ValueError(
            f"structure='tan' counts all pairs of values: with {total} values in all columns that is a table of "
            f"{total**2} numbers, more than max_table={max_table}. Use fewer values (KBinsDiscretizer for numbers), or "
            f"raise max_table where memory holds several times {8 * total**2} bytes."
        )
    # Codes begin at -2: what is missing, or not among the categories, is one more value here.
    shared = mutual_information(codes[:, :n_columns] + 2, given=codes[:, n_columns], weights=weights)
    edges = spanning_tree(shared)
    near: list[list[int]] = [[] for _ in range(n_columns)]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    parents, waiting = naive_bayes(n_columns), [0]
    seen = set(waiting)
    while waiting:
        column = waiting.pop(0)
        for other in sorted(set(near[column]) - seen):
            parents[other] = (n_columns, column)
            waiting.append(other)
            seen.add(other)
    return parents


def read_shared(shared: Any, names: Names) -> list[int]:
    """Return the table of each variable; children of one group share one."""
    tables = list(range(len(names)))
    if shared is None:
        return tables
    groups = list(shared.values()) if isinstance(shared, Mapping) else shared
    if not isinstance(groups, (list, tuple)) or any(isinstance(group, str) for group in groups):
        raise ValueError(
            f"The 'shared' parameter of {names.owner} must be None, a list of groups of children, or a mapping to such "
            f"groups. Got {shared!r:.100} instead."
        )
    seen: set[int] = set()
    for group in groups:
        members = names.listed("shared", group)
        for v in members:
            if v in seen:
                raise ValueError(f"The 'shared' parameter of {names.owner} must name {names.all[v]!r} once.")
            seen.add(v)
            tables[v] = members[0]
    return tables


def common_values(parents: Parents, tables: Sequence[int], n_columns: int) -> list[list[int]]:
    """Return groups of columns that must have the same categories: those with one place in a shared table."""
    leader = list(range(n_columns))

    def root(v: int) -> int:
        while leader[v] != v:
            v = leader[v]
        return v

    for v, table in enumerate(tables):
        for a, b in zip((*parents[v], v), (*parents[table], table), strict=False):
            if a < n_columns and b < n_columns and root(a) != root(b):
                leader[max(root(a), root(b))] = min(root(a), root(b))
    groups: dict[int, list[int]] = {}
    for v in range(n_columns):
        groups.setdefault(root(v), []).append(v)
    return list(groups.values())


def hidden_cells(names: Names, hidden: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return a mask of cells: given as such, or by columns."""
    cells = np.zeros(shape, dtype=bool)
    if hidden is None:
        return cells
    mask = np.asarray(hidden)
    if mask.dtype == np.bool_:
        if mask.shape != shape:
            raise ValueError(f"hidden must be columns, or a boolean array of shape {shape}. Got shape {mask.shape}.")
        return mask
    cells[:, names.listed("hidden", hidden)] = True
    return cells
