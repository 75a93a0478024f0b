"""Every public name explains itself: summary, parameters, and for classes and functions an example that runs."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import click
import pytest
from numpydoc.docscrape import NumpyDocString

import dualfield
from dualfield.cli import main

MARKS = "*`"
# Methods that many classes have, told once: in dualfield.data.records.
TOLD_ONCE = ("record", "from_record")


def public_modules() -> list[str]:
    """Return the modules without an underscore in their path that say what they offer."""
    names = [module.name for module in pkgutil.walk_packages(dualfield.__path__, "dualfield.")]
    public = [name for name in names if not any(part.startswith("_") for part in name.split("."))]
    return [name for name in public if hasattr(importlib.import_module(name), "__all__")]


def public_names() -> dict[str, Any]:
    """Return what public modules offer, each object once, under the shortest path."""
    found: dict[str, Any] = {}
    for module in sorted(public_modules(), key=len):
        members = importlib.import_module(module)
        for name in members.__all__:
            member = getattr(members, name)
            if not any(member is other for other in found.values()):
                found[f"{module}.{name}"] = member
    return found


def public_members(owner: type) -> Iterator[tuple[str, Any]]:
    """Return public methods and properties that a class defines itself; what a base class offers is checked there."""
    fields = {field.name for field in dataclasses.fields(owner)} if dataclasses.is_dataclass(owner) else set()
    for name, member in vars(owner).items():
        if name.startswith("_") or name in fields:
            continue
        if isinstance(member, classmethod | staticmethod):
            yield name, member.__func__
        elif inspect.isfunction(member) or isinstance(member, property | functools.cached_property):
            yield name, member


def parameters_of(function: Any) -> list[str]:
    """Return the names of the parameters that a caller may pass."""
    parameters = inspect.signature(function).parameters.values()
    return [one.name for one in parameters if one.name not in ("self", "cls") and not one.name.startswith("_")]


def documented(sections: list[Any]) -> set[str]:
    """Return the names in sections of parameters or attributes; one entry may name several."""
    return {name.strip().strip(MARKS) for entry in sections for name in entry.name.split(",")}


def faults(member: Any, parameters: list[str], *, is_class: bool = False, is_method: bool = False) -> list[str]:
    """Return what is missing in a docstring: a summary, parameters and, but for methods, an example."""
    text = inspect.cleandoc(member.__doc__ or "")
    if not text:
        return ["no docstring"]
    docstring = NumpyDocString(text)
    found = []
    if not "".join(docstring["Summary"]).strip():
        found.append("no summary")
    named = documented(docstring["Parameters"] + docstring["Other Parameters"])
    # A record may call its fields attributes.
    attributes = documented(docstring["Attributes"]) if is_class else set()
    found += [f"parameter '{name}' is not described" for name in parameters if name not in named | attributes]
    found += [f"'{name}' is described but is no parameter" for name in sorted(named - set(parameters))]
    if not is_method and not any(line.lstrip().startswith(">>>") for line in docstring["Examples"]):
        found.append("no example")
    if ">>> callable(" in text:
        found.append("an example that shows nothing")
    return found


def class_parameters(owner: type) -> list[str]:
    """Return the parameters of a constructor that users call; an abstract class and a plain subclass have none."""
    if inspect.isabstract(owner) or "__init__" not in vars(owner):
        return []
    return parameters_of(owner.__init__)


def all_faults(path: str, member: Any) -> list[str]:
    """Return the faults of a public name and of what belongs to it."""
    if isinstance(member, click.Command):
        return command_faults(path, member)
    if not inspect.isclass(member):
        return [f"{path}: {fault}" for fault in faults(member, parameters_of(member))]
    found = [f"{path}: {fault}" for fault in faults(member, class_parameters(member), is_class=True)]
    for name, part in public_members(member):
        if isinstance(part, property | functools.cached_property) or name in TOLD_ONCE:
            if not inspect.getdoc(part):
                found.append(f"{path}.{name}: no docstring")
        elif any(name in vars(base) for base in member.__mro__[1:-1] if base.__module__.startswith("dualfield.")):
            # What a method takes and returns is told where it was first defined.
            found += [] if inspect.getdoc(part) else [f"{path}.{name}: no docstring"]
        else:
            found += [f"{path}.{name}: {fault}" for fault in faults(part, parameters_of(part), is_method=True)]
    return found


def command_faults(path: str, command: click.Command) -> list[str]:
    """Return the faults of the help of a command, of its options and of its sub-commands."""
    found = [] if (command.help or "").strip() else [f"{path}: no help"]
    for option in command.params:
        if isinstance(option, click.Option) and not option.help:
            found.append(f"{path}: option {option.opts[0]} has no help")
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            found += [f"{path} {name}: cannot be found"] if child is None else command_faults(f"{path} {name}", child)
    return found


@pytest.mark.parametrize("path", public_names())
def test_docstring(path):
    assert all_faults(path, public_names()[path]) == []


@pytest.mark.parametrize("name", ["dualfield", *public_modules()])
def test_module_docstring(name):
    assert (importlib.import_module(name).__doc__ or "").strip()


def test_command_line_help():
    assert command_faults("dualfield", main) == []


def test_public_names_are_found():
    assert {"dualfield.structures.Chain", "dualfield.data.Batch", "dualfield.datasets.load_digit_words"} <= set(
        public_names()
    )


# The checks themselves, on docstrings that they must refuse.


def well_documented(first, second=1, *rest):
    """Do something.

    Parameters
    ----------
    first, second
        Two things.
    *rest
        Others.

    Examples
    --------
    >>> 1 + 1
    2
    """


def changed(old, new):
    return SimpleNamespace(__doc__=inspect.cleandoc(well_documented.__doc__).replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("first, second", "first", "parameter 'second' is not described"),
        ("first, second", "first, second, third", "'third' is described but is no parameter"),
        (">>> 1 + 1\n2", "None.", "no example"),
        ("1 + 1\n2", "callable(print)\nTrue", "an example that shows nothing"),
        ("Do something.\n", "", "no summary"),
    ],
)
def test_fault_is_found(old, new, fault):
    assert faults(well_documented, ["first", "second", "rest"]) == []
    assert faults(changed(old, new), ["first", "second", "rest"]) == [fault]


def test_members_of_classes_are_checked():
    class Owner:
        """Own.

        Examples
        --------
        >>> 1
        1
        """

        @property
        def bare(self):
            return 1

        def method(self, x):
            """Return x."""

        @classmethod
        def make(cls):
            return cls()

    assert all_faults("Owner", Owner) == [
        "Owner.bare: no docstring",
        "Owner.method: parameter 'x' is not described",
        "Owner.make: no docstring",
    ]


def test_commands_are_checked():
    @click.group()
    def group():
        """Group."""

    @group.command()
    @click.option("--size")
    def child(size):
        pass

    assert command_faults("g", group) == ["g child: no help", "g child: option --size has no help"]
