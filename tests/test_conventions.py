"""Conventions of CONTRIBUTING.md: long records are built by keyword, a new part edits few files, states stand once."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest

import dualfield

ROOT = Path(__file__).parents[1]

# Records.

FEW_FIELDS = 5
MOST_BY_POSITION = 3


def by_position(record: Any) -> int:
    """Return how many fields a record with more than five takes by position; 0 for shorter ones and other classes."""
    if "__dataclass_fields__" in vars(record):  # decorated itself, not only derived from one
        fields = [field for field in dataclasses.fields(record) if field.init]
        return sum(not field.kw_only for field in fields) if len(fields) > FEW_FIELDS else 0
    names = getattr(record, "_fields", ()) if issubclass(record, tuple) else ()
    return len(names) if len(names) > FEW_FIELDS else 0


def own_records() -> dict[str, type]:
    """Return the classes of the package, each where it is defined."""
    modules = [importlib.import_module(found.name) for found in pkgutil.walk_packages(dualfield.__path__, "dualfield.")]
    classes = [one for module in modules for one in vars(module).values() if inspect.isclass(one)]
    return {f"{one.__module__}.{one.__qualname__}": one for one in classes if one.__module__.startswith("dualfield.")}


def test_long_records_are_built_by_keyword():
    assert [name for name, one in own_records().items() if by_position(one) > MOST_BY_POSITION] == []


def test_fields_by_position_are_counted():
    names = list("abcdef")
    assert by_position(dataclasses.make_dataclass("Long", names)) == 6
    assert by_position(dataclasses.make_dataclass("Keywords", names, kw_only=True)) == 0
    assert by_position(dataclasses.make_dataclass("Short", names[:5])) == 0
    mixed = [("a", int), ("_", dataclasses.KW_ONLY), *((name, int) for name in names[1:])]
    assert by_position(dataclasses.make_dataclass("Mixed", mixed)) == 1


# New parts.

MOST_EDITED = 5


def files_to_edit(part: str) -> list[str]:
    """Return the existing files that a new part edits, as its section of CONTRIBUTING.md lists them."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = re.search(rf"^### {part}\n(.*?)(?=^##)", text, re.MULTILINE | re.DOTALL)
    assert section, f"CONTRIBUTING.md has no section '{part}'"
    line = re.search(r"^Files to edit: (.*?)\n\n", section[1], re.MULTILINE | re.DOTALL)
    assert line, f"the section '{part}' has no line 'Files to edit: ...'"
    return re.findall(r"`([^`]+)`", line[1])


@pytest.mark.parametrize("part", ["A structure", "A solver", "An estimator"])
def test_a_new_part_edits_few_files(part):
    files = files_to_edit(part)
    assert 0 < len(files) <= MOST_EDITED
    assert [name for name in files if not (ROOT / name).is_file()] == []


# States.

STATUS = re.compile(
    r"""
    \b(?:is|are|was|were|be|been|still|only)\ (?:planned|to\ come)\b
    | \bplanned(?::|\ for)
    | \b(?:is|are|do|does)\ not(?:\ (?:there|exist|built|implemented|supported|available))?,?\ yet\b
    | \bnot\ yet\ (?:built|implemented|there|supported|available)\b
    | \b(?:in\ a\ later|in\ the\ next|in\ a\ future)\ (?:version|release)\b
    | \b(?:will\ be|to\ be)\ (?:built|implemented|added|supported)\b
    | \bwork\ in\ progress\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Decision records describe the day of the decision; the page on the state is the one place for it.
STATELESS = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "README.md",
    *(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if not {"_build", "decisions", "gallery", "state.md"} & set(page.parts)
    ),
    *(ROOT / "src").rglob("*.py"),
]


def status_sentences(text: str) -> list[str]:
    """Return what a text says about the state of the library, such as 'is planned' or 'not built yet'."""
    return [match[0] for match in STATUS.finditer(re.sub(r"[#\s]+", " ", text))]


@pytest.mark.parametrize("path", STATELESS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_states_stand_in_one_place(path):
    assert status_sentences(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "A solver: the layer is planned.",
        "Planned: the other estimators.",
        "The other estimators are not there yet.",
        "Graphs with circles do not, yet.",
        "Grids\nare not supported\nyet.",
        "It will be added.",
        "graphs are to come",
    ],
)
def test_status_sentence_is_found(text):
    assert status_sentences(text) != []


@pytest.mark.parametrize(
    "text",
    [
        "Number of labels. None: not known yet, for models that find them in their training data.",
        "Neighbours that were not joined yet (min-fill).",
        "The folder 'x' does not exist.",
        "If there is no point yet, zero weights.",
        "The Hessian for coordinates that it does not have yet.",
        "A structure that does not know its labels yet.",
        "Lines, which have no line break yet.",
        "sequences to come",
        "Wheels for all later versions.",
    ],
)
def test_ordinary_words_are_no_status(text):
    assert status_sentences(text) == []
