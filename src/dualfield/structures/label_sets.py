"""Types of nodes, and the labels that each of them may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Labels
from dualfield.data.arrays import Codes
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape

__all__ = ["LabelSets"]


@dataclass(frozen=True, eq=False)
class LabelSets:
    """Which labels nodes of each type may have.

    Parameters
    ----------
    types : Labels
        Names of the types.
    labels : Labels
        Names of all labels.
    flags : bool array of shape (n_types, n_labels)
        Which labels each type has; one at least.

    Examples
    --------
    >>> from dualfield.structures import LabelSets
    >>> sets = LabelSets.of({"word": ["noun", "verb"], "text": ["sports"]})
    >>> sets
    LabelSets({'text': ['sports'], 'word': ['noun', 'verb']})
    >>> sets.flags
    array([[False,  True, False],
           [ True, False,  True]])
    """

    types: Labels
    labels: Labels
    flags: NDArray[np.bool_]

    @classmethod
    def of(cls, given: Any, n_labels: int | None = None) -> LabelSets:
        """Read label sets as users pass them.

        Parameters
        ----------
        given : dict, bool array of shape (n_types, n_labels), or LabelSets
            From a type to its labels; or for types and labels that are numbers which of them go together.
        n_labels : int, default=None
            How many labels there are; None: not known yet.

        Returns
        -------
        LabelSets
            With all labels that are mentioned.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.structures import LabelSets
        >>> LabelSets.of(np.array([[True, False], [True, True]]), 2).by_type
        {0: [0], 1: [0, 1]}
        """
        if isinstance(given, LabelSets):
            found = given
        elif isinstance(given, Mapping):
            found = cls._of_dict(given)
        else:
            flags = np.asarray(given)
            if flags.dtype != np.bool_ or flags.ndim != 2 or not flags.size or n_labels is None:
                raise ValueError(
                    "The 'label_sets' parameter of Graph must be a dict from node types to lists of labels, or where "
                    "n_labels is given a boolean array of shape (n_node_types, n_labels). "
                    f"Got {type(given).__name__} of shape {np.shape(given)} instead."
                )
            types, labels = (Labels(np.arange(n), "int") for n in flags.shape)
            found = cls(types, labels, np.ascontiguousarray(flags))
        if n_labels not in (None, found.flags.shape[1]):
            raise ValueError(
                f"The 'label_sets' parameter of Graph must have {n_labels} labels, as many as n_labels says. "
                f"Got {found.flags.shape[1]} instead."
            )
        empty = np.flatnonzero(~found.flags.any(axis=1))
        if empty.size:
            name = found.types.classes.tolist()[empty[0]]
            raise ValueError(f"The 'label_sets' parameter of Graph has no label for nodes of type {name!r}.")
        return found

    @classmethod
    def _of_dict(cls, given: Mapping[Any, Any]) -> LabelSets:
        each = {}
        for name, labels in given.items():
            if isinstance(labels, (str, bytes)) or not hasattr(labels, "__iter__"):
                raise ValueError(
                    f"The 'label_sets' parameter of Graph must have a list of labels for each node type. "
                    f"Got {labels!r} for {name!r}."
                )
            each[name] = list(labels)
        types = Labels.fit(list(each), name="the node types of label_sets")
        mentioned = [label for labels in each.values() for label in labels]
        labels = Labels.fit(mentioned, name="label_sets")
        flags = np.zeros((len(types), len(labels)), dtype=bool)
        for at, name in enumerate(types.classes.tolist()):
            if each[name]:
                flags[at, labels.encode(each[name], name="label_sets")] = True
        return cls(types, labels, flags)

    @classmethod
    def seen(cls, types: Labels, names: Sequence[Any], codes: Codes, node_types: Codes) -> LabelSets:
        """Find the labels that nodes of each type have in training data.

        Parameters
        ----------
        types : Labels
            Names of the types.
        names : sequence
            Names of the labels.
        codes : int32 array of shape (n_nodes,)
            Labels; -1 where one is not known.
        node_types : int32 array of shape (n_nodes,)
            Types.

        Returns
        -------
        LabelSets
            The sets.

        Examples
        --------
        >>> import numpy as np
        >>> from dualfield.data import Labels
        >>> from dualfield.structures import LabelSets
        >>> LabelSets.seen(Labels.fit(["a", "b"]), [5, 6], np.array([1, 0, 0]), np.array([0, 1, 0]))
        LabelSets({'a': [5, 6], 'b': [5]})
        """
        flags = np.zeros((len(types), len(names)), dtype=bool)
        known = codes >= 0
        flags[node_types[known], codes[known]] = True
        empty = np.flatnonzero(~flags.any(axis=1))
        if empty.size:
            name = types.classes.tolist()[empty[0]]
            raise ValueError(
                f"No node of type {name!r} has a known label: say which ones it may have by Graph(label_sets=...)."
            )
        return cls(types, Labels.fit(list(names)), flags)

    @property
    def by_type(self) -> dict[Any, list[Any]]:
        """The labels of each type."""
        names = self.labels.classes
        return {kind: names[row].tolist() for kind, row in zip(self.types.classes.tolist(), self.flags, strict=True)}

    def for_labels(self, names: Sequence[Any]) -> LabelSets:
        """Return the same sets for the labels of training data; labels that those do not have are left out.

        Parameters
        ----------
        names : sequence
            Labels in the order of their codes.

        Returns
        -------
        LabelSets
            Of these labels.
        """
        code = {name: at for at, name in enumerate(self.labels.classes.tolist())}
        at = np.array([code.get(name, -1) for name in names])
        flags = np.where(at >= 0, self.flags[:, np.maximum(at, 0)], False)
        empty = np.flatnonzero(~flags.any(axis=1))
        if empty.size:
            kind = self.types.classes.tolist()[empty[0]]
            raise ValueError(
                f"label_sets has {self.by_type[kind]} for nodes of type {kind!r}, none of which is among the labels of "
                "the training data."
            )
        return LabelSets(self.types, Labels.fit(list(names)), flags)

    def over_states(self, label: NDArray[np.int64]) -> LabelSets:
        """Return the sets of states that belong to labels.

        Parameters
        ----------
        label : int array of shape (n_states,)
            The label of each state.

        Returns
        -------
        LabelSets
            A type has the states of its labels.
        """
        flags = np.ascontiguousarray(self.flags[:, label])
        return LabelSets(self.types, Labels(np.arange(len(label)), "int"), flags)

    def check(self, names: Sequence[Any], codes: Codes, node_types: Codes, shape: Shape) -> None:
        """Raise an error that names the first node whose label its type does not have.

        Parameters
        ----------
        names : sequence
            Labels in the order of their codes.
        codes, node_types : int32 array of shape (n_nodes,)
            Labels, -1 where one is not known, and types of the nodes.
        shape : Shape
            Which example they belong to.
        """
        known = np.flatnonzero(codes >= 0)
        wrong = known[~self.flags[node_types[known], codes[known]]]
        if not wrong.size:
            return
        node = int(wrong[0])
        kind = self.types.classes.tolist()[node_types[node]]
        raise ValueError(
            f"y{shape.place(node)} is {names[codes[node]]!r}; the labels of nodes of type {kind!r} are "
            f"{self.by_type[kind]}."
        )

    def record(self) -> Fields:
        """Return the record of the sets."""
        return {"types": self.types.record(), "labels": self.labels.record(), "flags": self.flags}

    @classmethod
    def from_record(cls, record: Record) -> LabelSets:
        """Build label sets from their record, which is checked."""
        types, labels = (Labels.from_record(record.child(name)) for name in ("types", "labels"))
        flags = np.array(record.array("flags", np.bool_, (len(types), len(labels))))
        record.check(bool(flags.any(axis=1).all()), "every type of nodes must have a label.")
        return cls(types, labels, flags)

    def _parts(self) -> tuple[list[Any], list[Any], bytes]:
        return self.types.classes.tolist(), self.labels.classes.tolist(), self.flags.tobytes()

    def __eq__(self, other: object) -> bool:
        return self._parts() == other._parts() if isinstance(other, LabelSets) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.flags.tobytes())

    def __repr__(self) -> str:
        return f"LabelSets({self.by_type})"
