"""What is searched: values of C and other settings, and the data on which each is fitted and scored."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.checks import check_integer, check_number
from dualfield.structures.registry import structure_of

__all__ = ["Grid", "Splits"]

_LOW, _HIGH = -1.0, 2.0  # powers of ten between which an int lays values of C


@dataclass(frozen=True)
class Grid:
    """Values of C, and of other parameters, all of which are combined.

    Parameters
    ----------
    Cs : tuple of float
        In rising order.
    others : dict
        From "order" and "min_freq" to their values, where these are searched.

    Examples
    --------
    >>> from dualfield.tuning import Grid
    >>> grid = Grid.read("CRFCV", 4, order=[1, 2])
    >>> [float(C) for C in grid.Cs], grid.settings()
    ([0.1, 1.0, 10.0, 100.0], [{'order': 1}, {'order': 2}])
    >>> grid.candidates()[:3]
    [{'C': 0.1, 'order': 1}, {'C': 0.1, 'order': 2}, {'C': 1.0, 'order': 1}]
    """

    Cs: tuple[float, ...]
    others: dict[str, tuple[int, ...]]

    @classmethod
    def read(cls, owner: str, Cs: Any, order: Any = None, min_freq: Any = None) -> Grid:
        """Check what users pass.

        Parameters
        ----------
        owner : str
            The estimator, for error messages.
        Cs : int or list of float
            So many values between 0.1 and 100, in equal steps of the logarithm; or the values.
        order, min_freq : int, list of int or None
            Values; None: not searched.

        Returns
        -------
        Grid
            Sorted, without repetitions.
        """
        if isinstance(Cs, (int, np.integer)) and not isinstance(Cs, bool):
            check_integer(owner, "Cs", Cs, 1)
            values = [float(f"{C:.3g}") for C in np.logspace(_LOW, _HIGH, int(Cs))] if Cs > 1 else [1.0]
        else:
            values = _listed(owner, "Cs", Cs, "an int or a list of floats above 0")
            for C in values:
                check_number(owner, "Cs", C, 0.0, open_low=True)
        others = {}
        for name, given, low in (("min_freq", min_freq, 0), ("order", order, 1)):
            if given is not None:
                found = [given] if isinstance(given, (int, np.integer)) else _listed(owner, name, given, "ints")
                for value in found:
                    check_integer(owner, name, value, low)
                others[name] = tuple(sorted({int(value) for value in found}))
        return cls(tuple(sorted({float(C) for C in values})), others)

    def settings(self) -> list[dict[str, int]]:
        """Return the combinations of all parameters but C.

        Returns
        -------
        list of dict
            One for each path over C.
        """
        return [dict(zip(self.others, values, strict=True)) for values in itertools.product(*self.others.values())]

    def candidates(self) -> list[dict[str, Any]]:
        """Return all combinations, in the order of scikit-learn's ParameterGrid.

        Returns
        -------
        list of dict
            Parameters by name.
        """
        return [{"C": C, **setting} for C in self.Cs for setting in self.settings()]


def with_setting(estimator: Any, params: dict[str, Any]) -> Any:
    """Set the parameters of a candidate; ``order`` is that of the structure."""
    owner, rest = type(estimator).__name__, dict(params)
    order = rest.pop("order", None)
    if order is not None:
        before: Any = structure_of(owner, estimator.structure)
        if not hasattr(before, "order") or before.n_labels:
            raise ValueError(f"The 'order' parameter needs structure='chain'. Got {estimator.structure!r} instead.")
        rest["structure"] = before.name if order == 1 else type(before)(order=order)
    return estimator.set_params(**rest)


def _listed(owner: str, name: str, given: Any, expected: str) -> list[Any]:
    found = list(given) if isinstance(given, Iterable) and not isinstance(given, (str, bytes, dict)) else []
    if not found:
        raise ValueError(f"The {name!r} parameter of {owner} must be {expected}. Got {given!r} instead.")
    return found


@dataclass(frozen=True, eq=False)
class Splits:
    """Indices of the examples on which each fold is trained and scored.

    Parameters
    ----------
    folds : list of (array, array)
        Training and held-out examples; of separate held-out data all, counted from 0.

    Examples
    --------
    >>> from dualfield.tuning import Splits
    >>> [test.tolist() for _, test in Splits.of(2, [0, 1, 2, 3], None).folds]
    [[0, 1], [2, 3]]
    """

    folds: list[tuple[NDArray[np.int64], NDArray[np.int64]]]

    @classmethod
    def of(cls, cv: Any, X: Sequence[Any], y: Any, groups: Any = None, *, classifier: bool = False) -> Splits:
        """Split examples as scikit-learn does.

        Parameters
        ----------
        cv : int, splitter, iterable or None
            Folds; None: five, without shuffling.
        X : sequence
            Examples, of which the number counts.
        y : array or None
            Their classes, if they are single nodes.
        groups : sequence, default=None
            For splitters by groups, such as documents.
        classifier : bool, default=False
            Whether folds are stratified by class.

        Returns
        -------
        Splits
            The folds.
        """
        from sklearn.model_selection import check_cv

        n = X.shape[0] if hasattr(X, "shape") else len(X)
        splitter = check_cv(cv, y, classifier=classifier)
        found = [(np.asarray(a), np.asarray(b)) for a, b in splitter.split(np.zeros(n), y, groups)]
        folds = [tuple(np.flatnonzero(part) if part.dtype == bool else part for part in fold) for fold in found]
        for at, (train, test) in enumerate(folds):
            if not len(train) or not len(test):
                raise ValueError(f"cv gives an empty part in fold {at}: both must have examples.")
        return cls([(train.astype(np.int64), test.astype(np.int64)) for train, test in folds])

    @classmethod
    def held_out(cls, X: Any, X_dev: Any) -> Splits:
        """Return the one fold of separate held-out data.

        Parameters
        ----------
        X, X_dev : sequence
            Examples, of which the numbers count.

        Returns
        -------
        Splits
            All of the first for training, all of the second held out.
        """
        sizes = [one.shape[0] if hasattr(one, "shape") else len(one) for one in (X, X_dev)]
        return cls([(np.arange(sizes[0]), np.arange(sizes[1]))])
