"""The solvers by name: one name is one class. What estimators, the command line, files and documentation read."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from dualfield.solvers.solver import Solver

__all__ = ["pick_solver", "refusal", "register", "solver_classes", "solver_names", "suited"]

_CLASSES: dict[str, type[Solver]] = {}
Class = TypeVar("Class", bound=type[Solver])
Objective = TypeVar("Objective")


def register(solver: Class) -> Class:
    """Make a class of solvers known by its name, also to the command line and to model files.

    Parameters
    ----------
    solver : class
        Made without arguments it has its default settings.

    Returns
    -------
    class
        The same one: this can be used as a decorator.

    Examples
    --------
    >>> from dualfield.solvers import BlockDual
    >>> from dualfield.solvers.registry import register
    >>> class Other(BlockDual):
    ...     pass
    >>> register(Other)
    Traceback (most recent call last):
        ...
    ValueError: The name 'block_dual' is taken by the solver BlockDual: one name is one class.
    """
    known = _CLASSES.setdefault(solver.name, solver)
    if known is not solver:
        raise ValueError(f"The name {solver.name!r} is taken by the solver {known.__name__}: one name is one class.")
    return solver


def solver_classes() -> Mapping[str, type[Solver]]:
    """Return all solvers that have a name.

    Returns
    -------
    mapping from str to class
        It changes when more are registered.

    Examples
    --------
    >>> from dualfield.solvers.registry import solver_classes
    >>> solver_classes()["lbfgs"]()
    LBFGS(memory=None, begin='zero')
    """
    return MappingProxyType(_CLASSES)


def solver_names(objective: Any = None) -> list[str]:
    """Return the names of the solvers that can take an objective.

    Parameters
    ----------
    objective : objective, default=None
        What is to be minimised. None: all names are returned.

    Returns
    -------
    list of str
        "auto" first, the others by the alphabet.

    Examples
    --------
    >>> from dualfield.solvers import prototypes
    >>> from dualfield.solvers.registry import solver_names
    >>> solver_names(prototypes.objective(temperature=1.0))
    ['auto', 'arow', 'block_dual', 'lbfgs', 'passive_aggressive', 'perceptron', 'sgd']
    """
    names = sorted(_CLASSES, key=lambda name: (name != "auto", name))
    return [name for name in names if objective is None or _CLASSES[name]().missing(objective) is None]


def pick_solver(owner: str, solver: Any, prototype: Any, *others: Any) -> Any:
    """Return a solver by its name, or the object itself; to be called before there are data.

    Parameters
    ----------
    owner : str
        The estimator, for errors.
    solver : str or object
        What its user has chosen. Objects of users need ``name``, ``missing`` and ``solve``.
    prototype : objective
        What the estimator will minimise, see :mod:`dualfield.solvers.prototypes`.
    *others : objective
        What else it may minimise, for some data: a solver that suits one of them will do.

    Returns
    -------
    solver
        One that may be able to take the problem.

    Examples
    --------
    >>> from dualfield.solvers import prototypes
    >>> from dualfield.solvers.registry import pick_solver
    >>> pick_solver("CRF", "lbfgs", prototypes.objective(temperature=1.0))
    LBFGS(memory=None, begin='zero')
    >>> pick_solver("CRF", "newton", prototypes.objective(temperature=1.0))
    Traceback (most recent call last):
        ...
    ValueError: The 'solver' parameter of CRF must be one of ['auto', 'arow', 'block_dual', 'lbfgs', 'passive_...
    """
    found = _CLASSES[solver]() if isinstance(solver, str) and solver in _CLASSES else solver
    is_solver = isinstance(getattr(found, "name", None), str) and all(
        callable(getattr(found, name, None)) for name in ("missing", "solve")
    )
    # With other settings, or for objects of users, more may be needed than a prototype has.
    is_known = type(found) in _CLASSES.values()
    reasons = [type(found)().missing(one) for one in (prototype, *others)] if is_known else []
    reason = None if None in reasons or not reasons else reasons[0]
    if is_solver and not isinstance(found, type) and reason is None:
        return found
    why = f" {reason}" if reason else ""
    names = solver_names(prototype)
    names += [name for other in others for name in solver_names(other) if name not in names]
    raise ValueError(
        f"The 'solver' parameter of {owner} must be one of {names}, an object of dualfield.solvers "
        f"that suits, or a user-defined one with name, missing and solve. Got {solver!r} instead.{why}"
    )


def suited(solver: Any, objective: Objective) -> Objective:
    """Return an objective that a solver can take, or raise an error that names the solvers that can.

    Parameters
    ----------
    solver : solver
        Is asked what is missing.
    objective : objective
        What is to be minimised.

    Returns
    -------
    objective
        The same one.

    Examples
    --------
    >>> from dualfield.solvers import FlowSwap, prototypes
    >>> from dualfield.solvers.registry import suited
    >>> hinge = prototypes.objective(temperature=0.0)
    >>> suited(FlowSwap(), hinge) is hinge
    True
    >>> suited(FlowSwap(), prototypes.objective(temperature=1.0))
    Traceback (most recent call last):
        ...
    ValueError: solver='flow_swap' cannot take this problem. It has a temperature above zero: ...
    """
    reason = solver.missing(objective)
    if reason is None:
        return objective
    raise refusal(solver, reason, objective)


def refusal(solver: Any, reason: str, objective: Any) -> ValueError:
    """Return the error of a solver that cannot take a problem.

    Parameters
    ----------
    solver : solver
        Which one.
    reason : str
        A sentence that says what is missing.
    objective : objective
        Solvers that take it are named.

    Returns
    -------
    ValueError
        To be raised.

    Examples
    --------
    >>> from dualfield.solvers import BlockDual, prototypes
    >>> from dualfield.solvers.registry import refusal
    >>> refusal(BlockDual(), "There is no room.", prototypes.kernel_objective(temperature=0.0))
    ValueError("solver='block_dual' cannot take this problem. There is no room. Use solver='auto' or 'kernel_ascent'.")
    """
    names = [repr(name) for name in solver_names(objective) if name != solver.name]
    listed = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    remedy = f" Use solver={listed}." if names else ""
    return ValueError(f"solver={solver.name!r} cannot take this problem. {reason}{remedy}")
