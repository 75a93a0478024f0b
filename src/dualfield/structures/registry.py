"""Structures by name."""

from __future__ import annotations

from typing import Any

from dualfield.data.records import Record
from dualfield.structures.base import Structure

__all__ = ["has_trees", "structure_names", "structure_of"]


def structure_classes() -> dict[str, type[Structure]]:
    """Return the structures of the library by their names."""
    found: dict[str, type[Structure]] = {}
    todo = list(Structure.__subclasses__())
    while todo:
        kind = todo.pop(0)
        todo += kind.__subclasses__()
        if kind.name and kind.__module__.startswith("dualfield."):
            found.setdefault(kind.name, kind)
    return found


def structure_names() -> list[str]:
    """Return the names of all structures of the library.

    Returns
    -------
    list of str
        Sorted.

    Examples
    --------
    >>> from dualfield.structures.registry import structure_names
    >>> "chain" in structure_names()
    True
    """
    return sorted(structure_classes())


def structure_of(owner: str, structure: Any) -> Structure:
    """Return the structure that a name stands for, or a structure itself.

    Parameters
    ----------
    owner : str
        The estimator, for error messages.
    structure : str or Structure
        What users pass.

    Returns
    -------
    Structure
        Its number of labels may still be unknown.

    Examples
    --------
    >>> from dualfield.structures.registry import structure_of
    >>> structure_of("CRF", "chain")
    Chain(n_labels=0, order=1)
    """
    if isinstance(structure, Structure):
        return structure
    known = structure_classes()
    if isinstance(structure, str) and structure in known:
        return known[structure]()
    raise ValueError(
        f"The 'structure' parameter of {owner} must be a Structure or one of {sorted(known)}. "
        f"Got {structure!r} instead."
    )


def has_trees(structure: Any) -> bool:
    """Tell whether outputs are trees, and not labels of nodes.

    Parameters
    ----------
    structure : str or Structure
        What users pass; other objects have no trees.

    Returns
    -------
    bool
        Whether rows stand for candidates, which are in the tree or not.

    Examples
    --------
    >>> from dualfield.structures.registry import has_trees
    >>> has_trees("dependency"), has_trees("chain")
    (True, False)
    """
    found = structure_classes().get(structure) if isinstance(structure, str) else structure
    return getattr(found, "empty_label", None) is not None


def structure_from_record(record: Record) -> Structure:
    """Build a structure from its record."""
    known = structure_classes()
    found: Structure = known[record.text("kind", tuple(sorted(known)))].from_record(record)
    return found
