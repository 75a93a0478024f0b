"""Single precision on problems of any size, which are usually solved in double precision if they are small."""

from __future__ import annotations

from importlib import import_module

import pytest

# Number of points up to which each solver keeps kernel values in double precision.
_LIMITS = [
    ("dualfield.solvers.auto", "SMALL"),
    ("dualfield.solvers.kernel.working_set", "SMALL"),
    ("dualfield.solvers.kernel.smo", "SMALL"),
    ("dualfield.solvers.kernel.newton", "_TINY"),
    ("dualfield.solvers.kernel.ascent", "_TINY"),
]


def in_single_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every kernel solver take problems of a few points for large ones."""
    for module, name in _LIMITS:
        monkeypatch.setattr(import_module(module), name, 0)
