"""Imports point to the left: a layer uses only those before it (docs/layers.md), and native code never sees Python."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "dualfield"
NATIVE = ROOT / "native"
INSTRUCTIONS = "add it to a layer in tests/test_layers.py and to the tables of docs/layers.md"

# A layer may import the ones before it.
TRUNK = (
    "_native",
    "data",
    "engines",
    "kernels",
    "structures",
    "scores",
    "regularisers",
    "losses",
    "objectives",
    "solvers",
    "models",
    "persistence",
    "tuning",
    "estimators",
    "dualfield",
    "cli",
)
# Layers of several modules; all others are one module or folder of their own name.
MODULES = {"dualfield": ("dualfield", "attributes", "batch", "labels"), "cli": ("cli", "__main__")}
# Beside the trunk: what a side module may import.
SIDE = {
    "datasets": {"_native", "data"},
    "features": {"_native", "data"},
    "io": {"_native", "data", "structures", "features"},
    "metrics": {"_native", "data"},
    "plotting": {"_native", "data", "structures", "metrics"},
    "report": {"_native", "data", "structures", "metrics", "plotting", "io"},
}
# What the trunk may import of them.
SIDE_OF = {
    "models": {"features", "metrics"},
    "persistence": {"features", "io"},
    "tuning": {"features", "metrics"},
    "estimators": {"features", "io", "metrics", "report"},
    "cli": set(SIDE),
}

LAYER_OF = {module: layer for layer in (*TRUNK, *SIDE) for module in MODULES.get(layer, (layer,))}
MAY_IMPORT = {layer: {layer, *TRUNK[:at], *SIDE_OF.get(layer, ())} for at, layer in enumerate(TRUNK)} | {
    name: {name, *others} for name, others in SIDE.items()
}


def layer_of(module: str) -> str:
    """Return the layer of a dotted module name, or raise KeyError with the reason."""
    parts = module.split(".")
    name = parts[1] if len(parts) > 1 else parts[0]
    if name not in LAYER_OF:
        raise KeyError(f"{module} has no place among the layers: {INSTRUCTIONS}")
    return LAYER_OF[name]


def imported_modules(source: str, module: str, is_package: bool) -> set[str]:
    """Return the dotted names of dualfield's modules that a source imports, wherever in it and in whatever form."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                anchor = module.split(".")[: None if is_package and node.level == 1 else is_package - node.level]
                base = ".".join([*anchor, *base.split(".")] if base else anchor)
            # `from dualfield import batch` imports a module, `from dualfield import __version__` the package itself.
            found |= {f"{base}.{alias.name}" if base == "dualfield" else base for alias in node.names}
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if function in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                found.add(node.args[0].value)
    ours = {name for name in found if name.split(".")[0] == "dualfield"}
    return {"dualfield" if re.fullmatch(r"dualfield\.(__\w+__|\*)", name) else name for name in ours}


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """Return one sentence for each import that points the wrong way, or to a module without a place."""
    try:
        allowed = MAY_IMPORT[layer_of(module)]
    except KeyError as error:
        return [error.args[0]]
    wrong = []
    for other in sorted(imported_modules(source, module, is_package)):
        try:
            if layer_of(other) not in allowed:
                wrong.append(f"{module} ({layer_of(module)}) imports {other} ({layer_of(other)})")
        except KeyError as error:
            wrong.append(f"{module} imports {other}: {error.args[0]}")
    return wrong


def sources() -> dict[str, Path]:
    """Return the dotted name and the file of every module of the package."""
    names = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


@pytest.mark.parametrize("module", sources())
def test_imports_point_left(module):
    path = sources()[module]
    assert violations(path.read_text(encoding="utf-8"), module, path.name == "__init__.py") == []


def test_modules_do_not_import_each_other_in_circles():
    files = sources()
    imports = {
        name: imported_modules(path.read_text(encoding="utf-8"), name, path.name == "__init__.py") - {name}
        for name, path in files.items()
    }
    assert find_circle(imports) is None


def find_circle(imports: dict[str, set[str]]) -> list[str] | None:
    """Return modules that import each other in a circle, if there are any."""
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> list[str] | None:
        if name in trail:
            return [*trail[trail.index(name) :], name]
        if name in done or name not in imports:
            return None
        circles = (visit(other, [*trail, name]) for other in sorted(imports[name]))
        circle = next(filter(None, circles), None)
        done.add(name)
        return circle

    return next(filter(None, (visit(name, []) for name in imports)), None)


def test_every_layer_is_documented():
    page = (ROOT / "docs" / "layers.md").read_text(encoding="utf-8")
    missing = [name for name in {*LAYER_OF, *LAYER_OF.values()} if f"`{name}`" not in page and f"`{name}/`" not in page]
    assert missing == []


# The checker itself, on sources that it must refuse.


@pytest.mark.parametrize(
    ("source", "module", "is_package"),
    [
        ("import dualfield.structures", "dualfield.data.batch", False),
        ("import dualfield.structures as s", "dualfield.data.labels", False),
        ("from dualfield import structures", "dualfield.data.batch", False),
        ("from dualfield.structures import Chain", "dualfield.kernels", False),
        ("from dualfield.structures.chain import Chain", "dualfield.data.batch", False),
        ("from .. import structures", "dualfield.data.batch", False),
        ("from ..structures import Chain", "dualfield.data.batch", False),
        ("from ..estimators import CRF", "dualfield.structures.chain", False),
        ("from ..estimators import CRF", "dualfield.structures", True),
        ("from .. import solvers", "dualfield.regularisers.base", False),
        ("def f():\n    from dualfield.cli import main", "dualfield.estimators.crf", False),
        ("if TYPE_CHECKING:\n    from dualfield.solvers import SMO", "dualfield.objectives", False),
        ("try:\n    import dualfield.cli.demo\nexcept ImportError:\n    pass", "dualfield.datasets", True),
        ("import importlib\nimportlib.import_module('dualfield.estimators')", "dualfield.report.page", False),
        ("from dualfield.estimators import CRF", "dualfield.report", True),
        ("from dualfield.report import page", "dualfield.models", True),
        ("from dualfield.datasets import load_digit_words", "dualfield.structures", True),
        ("from dualfield import __version__", "dualfield.structures.base", False),
        ("from dualfield import *", "dualfield.solvers", True),
        ("import dualfield", "dualfield.data.batch", False),
        ("import dualfield.cli", "dualfield", True),
    ],
)
def test_wrong_direction_is_found(source, module, is_package):
    assert len(violations(source, module, is_package)) == 1


@pytest.mark.parametrize(
    ("source", "module", "is_package"),
    [
        ("import numpy, dualfieldish.cli\nfrom os import path", "dualfield.data.batch", False),
        ("from dualfield import _native", "dualfield.data.batch", False),
        ("from dualfield.data.labels import Labels", "dualfield.data.batch", False),
        ("from .base import Structure", "dualfield.structures.chain", False),
        ("from .base import Structure", "dualfield.structures", True),
        ("from . import base", "dualfield.structures", True),
        ("from ..data.batch import Batch", "dualfield.structures.chain", False),
        ("from dualfield import __version__\nfrom dualfield.report import page", "dualfield.cli.demo", False),
        ("from dualfield.metrics import f1", "dualfield.estimators.base", False),
    ],
)
def test_right_direction_is_accepted(source, module, is_package):
    assert violations(source, module, is_package) == []


def test_module_without_a_place_is_named():
    (message,) = violations("", "dualfield.newcomer")
    assert "dualfield.newcomer has no place" in message
    assert "tests/test_layers.py" in message
    (message,) = violations("from dualfield import newcomer", "dualfield.cli")
    assert "dualfield.newcomer has no place" in message


def test_circle_is_found():
    assert find_circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert find_circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) is None


# Native code.

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")', re.MULTILINE)
CORE = sorted(path for folder in ("include", "src") for path in (NATIVE / folder).rglob("*.[ch]pp"))
# Compiled once for each instruction set, behind the headers of routines_x86.hpp.
VECTOR = sorted(set((NATIVE / "src" / "vector").glob("*.hpp")) - {NATIVE / "src" / "vector" / "routines_x86.hpp"})


def includes(text: str) -> set[str]:
    return {angle or quoted for angle, quoted in INCLUDE.findall(text)}


def all_includes(path: Path) -> set[str]:
    """Return what a file includes, directly or through headers of the core."""
    found, waiting = set(), includes(path.read_text(encoding="utf-8"))
    while waiting:
        name = waiting.pop()
        found.add(name)
        header = NATIVE / "include" / name
        if header.exists():
            waiting |= includes(header.read_text(encoding="utf-8")) - found
    return found


def python_headers(text: str) -> set[str]:
    libraries = ("Python.h", "nanobind", "pybind11", "numpy")
    return {name for name in includes(text) if name.split("/")[0] in libraries}


@pytest.mark.parametrize("path", CORE, ids=lambda path: path.relative_to(NATIVE).as_posix())
def test_core_does_not_know_python(path):
    assert python_headers(path.read_text(encoding="utf-8")) == set()


def test_python_header_is_found():
    assert python_headers('#include <vector>\n# include <Python.h>\n#include "nanobind/ndarray.h"') == {
        "Python.h",
        "nanobind/ndarray.h",
    }


def test_core_is_where_it_is_looked_for():
    assert CORE
    assert VECTOR


@pytest.mark.parametrize("path", VECTOR, ids=lambda path: path.name)
def test_vector_code_is_private_to_each_instruction_set(path):
    text = path.read_text(encoding="utf-8")
    assert re.search(r"^namespace \{$", text, re.MULTILINE), "vector code lives in unnamed namespaces"
    outside = {name for name in all_includes(path) if not (NATIVE / "src" / "vector" / name).exists()}
    before = all_includes(NATIVE / "src" / "vector" / "routines_x86.hpp")
    assert outside <= before, "headers that are not compiled for the baseline first: add them to routines_x86.hpp"


def test_no_inexact_arithmetic():
    lines = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if re.search(r"fast-math|Ofast", line.partition("#")[0])] == []
