"""Fits that replace a model as a whole or leave it as it was, and the parameters that its predictions go by."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

import numpy as np

__all__ = ["Refittable", "fitting"]

Method = TypeVar("Method", bound=Callable[..., Any])


def fitting(method: Method) -> Method:
    """Decorate a method that fits a model: where it raises, the model stays what it was.

    Parameters
    ----------
    method : callable
        ``fit`` or the like, of a :class:`Refittable` model.

    Returns
    -------
    callable
        The same with a memory: attributes are put back on any exception, and the parameters that predictions go by are
        those of this call.

    Examples
    --------
    >>> from dualfield import CRF
    >>> model = CRF().fit([[["a"], ["b"]]], [["x", "y"]])
    >>> model.fit([[["a"], ["b"]]], [["x"]])
    Traceback (most recent call last):
        ...
    ValueError: y[0] has 1 labels; X[0] has 2 nodes.
    >>> model.predict([[["b"]]])
    [['y']]
    """

    @functools.wraps(method)
    def whole(self: Refittable, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            self._remember()
            return method(self, *args, **kwargs)
        except BaseException:
            for name in vars(self).keys() - before.keys():
                del vars(self)[name]
            vars(self).update(before)
            raise

    return cast(Method, whole)


class Refittable:
    """A model whose predictions depend on its last fit only, and not on parameters that were set since.

    Examples
    --------
    >>> from dualfield import CRF
    >>> model = CRF().fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]])
    >>> before = model.predict_proba([[["a"]]])[0]
    >>> after = model.set_params(temperature=10.0).predict_proba([[["a"]]])[0]   # for the next fit
    >>> bool((before == after).all())
    True
    """

    _asked_with: ClassVar[tuple[str, ...]] = ()  # the parameters that predictions go by
    _fit_params: dict[str, Any]

    def _remember(self) -> None:
        """Keep the parameters that predictions go by."""
        self._fit_params = {name: _kept(getattr(self, name)) for name in self._asked_with}

    def _of_fit(self, name: str) -> Any:
        """Return a parameter as it was in the last fit, or as it is where there was none."""
        kept = vars(self).get("_fit_params", {})
        return kept[name] if name in kept else getattr(self, name)


def _kept(value: Any) -> Any:
    """Return a value that does not change with the caller's; what a dict holds may be large, and is shared."""
    if isinstance(value, list):
        return copy.deepcopy(value)
    return copy.copy(value) if isinstance(value, (dict, np.ndarray)) else value
