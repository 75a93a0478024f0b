"""A page for each name that api.md lists: ``docs/api/dualfield.CRF.rst`` and so on, made anew with every build.

The page of a class has a table of its methods, its docstring, and the methods, those of base classes in dualfield
included.
"""

import functools
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

BLOCK = re.compile(r"^\.\. autosummary::\n(?:   :.*\n)*\n(?P<names>(?:   \S+\n)+)", re.M)
# Members that many classes have for model files; dualfield.data.records describes them.
LEFT_OUT = ("record", "from_record")


def listed_names(index: str) -> list[str]:
    """Return the names in the lists of api.md, with the module in front."""
    return [f"dualfield.{name}" for block in BLOCK.finditer(index) for name in block["names"].split()]


def resolve(name: str) -> Any:
    """Return the object behind a dotted name. A function wins over the module of the same name beside it."""
    first, *parts = name.split(".")
    found: Any = importlib.import_module(first)
    for at, part in enumerate(parts, start=2):
        if not hasattr(found, part):
            importlib.import_module(".".join(name.split(".")[:at]))
        found = getattr(found, part)
    return found


def members(owner: type) -> Iterator[tuple[str, str]]:
    """Return the public methods and properties of a class as (directive, name): its own first, then those of bases."""
    seen = set(LEFT_OUT)
    for base in owner.__mro__:
        if not base.__module__.startswith("dualfield."):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") or name in seen:
                continue
            seen.add(name)
            if isinstance(member, property | functools.cached_property):
                yield "autoproperty", name
            elif inspect.isfunction(member) or isinstance(member, classmethod | staticmethod):
                yield "automethod", name


def title_of(name: str, names: list[str]) -> str:
    """Return the last part of a name, which people search for, or its path where two names end alike."""
    short = name.rpartition(".")[2]
    alike = [one for one in names if one.rpartition(".")[2] == short]
    return short if name == min(alike, key=len) else name.removeprefix("dualfield.")


def page(name: str, title: str) -> str:
    """Return the page of a class, a function or an exception."""
    member = resolve(name)
    lines = [title, "=" * len(title), "", ".. currentmodule:: dualfield", ""]
    if not inspect.isclass(member):
        return "\n".join([*lines, f".. autofunction:: {name}", "", *examples(name)])
    is_exception = issubclass(member, BaseException)
    own = [] if is_exception else list(members(member))
    if own:
        lines += [".. autosummary::", "", *(f"   ~{name.removeprefix('dualfield.')}.{one}" for _, one in own), ""]
    lines += [f".. {'autoexception' if is_exception else 'autoclass'}:: {name}", "   :no-members:", ""]
    for directive, one in own:
        lines += [f".. {directive}:: {name}.{one}", ""]
    return "\n".join([*lines, *examples(name)])


def examples(name: str) -> list[str]:
    """Return the lines that show the scripts of the gallery in which a name occurs."""
    return [f".. minigallery:: {name}", "   :add-heading: Examples", "   :heading-level: -", ""]


def write_pages(app: Sphinx) -> None:
    """Write pages that changed, and remove those of names that are listed no more."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    index = (Path(app.srcdir) / "api.md").read_text(encoding="utf-8")
    names = listed_names(index)
    wanted = {folder / f"{name}.rst": page(name, title_of(name, names)) for name in names}
    for old in set(folder.glob("*.rst")) - set(wanted):
        old.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
