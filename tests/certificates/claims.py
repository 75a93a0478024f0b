"""What every fit claims, held against exact arithmetic."""

from __future__ import annotations

import warnings

import numpy as np

from dualfield.solvers import Status
from tests.certificates.hostile import Case

# To how many digits the objective must be right.
_DIGITS = 1e-6
# What comparisons in double precision may be off by.
_ROUNDING = 1e-9


def violated(case: Case) -> list[str]:
    """Fit, and list the claims that do not hold; an empty list is what every problem must give."""
    try:
        _fit(case)
    except ValueError as error:
        return [] if case.indefinite else [f"refused: {error}"]
    except Exception as error:  # whatever else comes out of a fit is a finding, too
        return [f"raised {type(error).__name__}: {error}"]
    if case.indefinite:
        model = case.model
        return [f"took a kernel that is none: {model.status_.value}, {model.objective_:.6g}, gap {model.dual_gap_:.3g}"]
    return _claims(case)


def _fit(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = case.model.get_params()
        if case.path:
            case.model.set_params(warm_start=True)
        for step in case.path:
            case.model.set_params(**step).fit(*case.data)
        case.model.set_params(**{name: wanted[name] for step in case.path for name in step}).fit(*case.data)


def _claims(case: Case) -> list[str]:
    model, exact = case.model, case.exact
    claimed, gap = float(model.objective_), float(model.dual_gap_)
    if not (np.isfinite(claimed) and gap >= 0.0):
        return [f"objective {claimed:.6g} with gap {gap:.6g}"]
    point = case.point()
    value, zero = exact.value(point), exact.value(exact.zero())
    best = min(value, zero, exact.value(exact.best()))
    # Objectives are sums in double precision. Gaps of kernel machines cover what that leaves undecided; those of linear
    # models estimate it from gradients, which can be small where scores are large.
    undecided, rounding = exact.rounding(point), _ROUNDING * (abs(value) + abs(best)) + exact.resolution
    if exact.kernel is None:
        rounding += undecided
    out = []
    if not abs(claimed - value) <= _DIGITS * value + undecided:
        out.append(f"claims objective {claimed:.10g}, has {value:.10g}")
    if claimed - gap > best + rounding:
        out.append(f"claims minimum >= {claimed - gap:.10g}, a point has {best:.10g}")
    if value - best > gap + rounding:
        out.append(f"claims distance <= {gap:.4g}, is {value - best:.4g}")
    converged = model.status_ is Status.CONVERGED
    if not converged and case.falls_back and value > zero * (1 + _DIGITS):
        out.append(f"worse than nothing: {value:.6g}, zero weights {zero:.6g}")
    if converged and not case.reduced and gap > 1.001 * case.tol * max(claimed - gap, 0.0) + exact.resolution:
        out.append(f"converged at relative gap {gap / max(claimed - gap, 1e-300):.3g} for tol {case.tol:g}")
    return [
        f"{problem} ({model.solver_ if hasattr(model, 'solver_') else ''} {model.status_.value})" for problem in out
    ]
