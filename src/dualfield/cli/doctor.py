"""``dualfield doctor``: what was built, with what it runs, and whether it works."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from dualfield import __version__
from dualfield.cli.help_pages import Command

__all__ = ["doctor"]

_NEEDED = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "safetensors", "rich", "click")
_OPTIONAL = {"matplotlib": "plots, reports and the demo", "pandas": "data frames as input"}


@click.command(cls=Command, examples=["dualfield doctor"])
@click.pass_context
def doctor(ctx: click.Context) -> None:
    """Show what was built and check that it works.

    The check trains a small model, looks at its duality gap, and saves and loads it. The exit code is 1 if something is
    wrong. Put the output into reports of faults.
    """
    for name, value in facts():
        click.echo(f"{name:<20}{value}")
    fault = self_check()
    click.echo(f"{'self check':<20}{fault or 'ok: trained a model, certified its gap, saved it and loaded it'}")
    if fault:
        ctx.exit(1)


def facts() -> list[tuple[str, str]]:
    """Return names and values of all that is worth knowing."""
    found = [
        ("dualfield", __version__),
        ("Python", f"{platform.python_version()}, {platform.python_implementation()}"),
        ("platform", f"{platform.system()} {platform.release()}, {platform.machine()}"),
        *_native_facts(),
        ("cores", f"{_cores()} usable of {os.cpu_count()}"),
        ("BLAS", _blas()),
    ]
    found += [(name, _version(name) or "missing: needed") for name in _NEEDED]
    found += [(name, _version(name) or f"missing: only for {use}") for name, use in _OPTIONAL.items()]
    return [*found, ("DUALFIELD_DATA", _data_folder())]


def _native_facts() -> list[tuple[str, str]]:
    try:
        from dualfield import _native
    except ImportError as error:
        return [("native code", f"cannot be loaded: {error}")]
    sets = ", ".join(_native.instruction_sets())
    return [
        ("native code", Path(_native.__file__ or "").name),
        ("vector extensions", f"{_native.instruction_set()} in use; this processor can run {sets}"),
        ("threads", "threads of C++, no OpenMP; --threads of a command, n_jobs in Python"),
    ]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _blas() -> str:
    """Name the libraries that NumPy and SciPy compute matrix products with."""
    try:
        import scipy.linalg  # noqa: F401  # loads the library that the fits use
        import threadpoolctl
    except ImportError as error:
        return f"not known: {error}"
    pools = [pool for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]
    each = {f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads" for pool in pools}
    return "; ".join(sorted(each)) or "none found"


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _data_folder() -> str:
    folder = os.environ.get("DUALFIELD_DATA")
    if not folder:
        return "not set: only tests and reproductions on real data need it"
    return folder if Path(folder).is_dir() else f"{folder}, which is not a folder"


def self_check() -> str | None:
    """Train, certify, save and load; return what is wrong, or None."""
    tol = 1e-8
    X = [[["w=the"], ["w=dog"], ["w=barks"]], [["w=a"], ["w=dog"]], [["w=dogs"], ["w=bark"]]]
    y = [["DT", "NN", "VB"], ["DT", "NN"], ["NN", "VB"]]
    try:
        from dualfield.estimators import CRF

        model = CRF(C=10.0, tol=tol, random_state=0).fit(X, y)
        dual = model.objective_ - model.dual_gap_
        if not 0.0 <= model.dual_gap_ <= tol * dual:
            return f"failed: the gap is {model.dual_gap_:.3g} at an objective of {model.objective_:.6g}"
        if model.predict(X) != y:
            return f"failed: predicted {model.predict(X)}, expected {y}"
        return _round_trip(model, X)
    except Exception as error:  # whatever it is, it is what the user wants to know
        return f"failed: {type(error).__name__}: {error}"


def _round_trip(model: Any, X: Any) -> str | None:
    import numpy as np

    from dualfield.estimators import load

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        model.save(path)
        again = load(path)
    if not all(np.array_equal(a, b) for a, b in zip(model.predict_proba(X), again.predict_proba(X), strict=True)):
        return "failed: a saved and loaded model gives other probabilities"
    return None if sys.float_info.mant_dig == 53 else "failed: floating-point numbers are not of double precision"
