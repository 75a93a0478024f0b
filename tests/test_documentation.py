"""The documentation says what is true today: examples run, links lead somewhere, and the table of states is right."""

from __future__ import annotations

import doctest
import fnmatch
import importlib
import importlib.util
import pkgutil
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import dualfield

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *PAGES]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<kind>\S*)")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
OUTSIDE = re.compile(r"^(https?:|mailto:)")


def load_script(name: str) -> ModuleType:
    """Import a file of the repository that belongs to no package."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, ROOT / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def split_fences(text: str) -> tuple[str, str]:
    """Return the text outside fenced blocks and the text inside them; lines of the other kind are left empty."""
    prose, code, ticks = [], [], ""
    for line in text.splitlines():
        fence = FENCE.match(line)
        if fence and (not ticks or (fence["ticks"] == ticks and not fence["kind"])):
            ticks = "" if ticks else fence["ticks"]
            prose.append("")
            code.append("")
        else:
            prose.append("" if ticks else line)
            code.append(line if ticks else "")
    return "\n".join(prose), "\n".join(code)


def examples_of(text: str, name: str) -> doctest.DocTest:
    return doctest.DocTestParser().get_doctest(split_fences(text)[1], {}, name, name, 0)


def broken_links(text: str, folder: Path) -> list[str]:
    targets = [match["target"] for match in LINK.finditer(split_fences(text)[0])]
    files = [target.partition("#")[0] for target in targets if not OUTSIDE.match(target)]
    return [file for file in files if file and not (folder / file).exists()]


def states(text: str) -> dict[str, str]:
    """Return the names in the first column of tables that have a column 'state', with that state."""
    found: dict[str, str] = {}
    column: int | None = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            column = None
        elif "state" in cells:
            column = cells.index("state")
        elif column is not None and not set(cells[0]) <= set("-: "):
            found |= dict.fromkeys(re.findall(r"`([\w.]+)`", cells[0]), cells[column])
    return found


def exists(name: str) -> bool:
    """Tell whether a dotted name, of a module or of its member, can be imported; a bare name is one of dualfield's."""
    path = name if name.startswith("dualfield") else f"dualfield.{name}"
    module, _, member = path.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), member) or bool(importlib.import_module(path))
    except ImportError:
        return False


def listed_pages(page: Path) -> set[Path]:
    """Return the pages in the toctrees of a page."""
    entries: list[str] = []
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if re.match(r"^(`{3,}|:{3,})\{toctree\}", line):
            inside = True
        elif inside and re.match(r"^(`{3,}|:{3,})\s*$", line):
            inside = False
        elif inside and line.strip() and not line.startswith(":"):
            entries.append((page.parent.relative_to(DOCS) / line.strip()).as_posix())
    names = {path.relative_to(DOCS).with_suffix("").as_posix(): path for path in PAGES}
    return {path for name, path in names.items() for entry in entries if fnmatch.fnmatch(name, entry)}


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_examples_run(path):
    test = examples_of(path.read_text(encoding="utf-8"), name_of(path))
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False).run(test, out=said.append)
    assert result.failed == 0, "".join(said)


def test_guide_is_made_of_examples():
    for page in (DOCS / "guide" / "structures.md", DOCS / "formula.md", DOCS / "guide" / "ner.md", ROOT / "README.md"):
        assert examples_of(page.read_text(encoding="utf-8"), name_of(page)).examples, f"{name_of(page)} has no example"


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_links_lead_to_files(path):
    assert broken_links(path.read_text(encoding="utf-8"), path.parent) == []


def test_every_page_can_be_reached():
    reached, waiting = set(), {DOCS / "index.md"}
    while waiting:
        page = waiting.pop()
        reached.add(page)
        waiting |= listed_pages(page) - reached
    assert sorted(map(name_of, set(PAGES) - reached)) == [], "pages that no toctree lists"


def test_api_lists_every_public_name():
    """What a package offers stands in docs/api.md, one line each, from which docs/api_pages.py makes the pages."""
    pages = load_script("docs/api_pages.py")
    listed = [pages.resolve(name) for name in pages.listed_names((DOCS / "api.md").read_text(encoding="utf-8"))]
    packages = [one.name for one in pkgutil.iter_modules(dualfield.__path__, "dualfield.") if one.name[10] != "_"]
    missing = [
        f"{package}.{name}"
        for package in ["dualfield", *packages]
        if package not in ("dualfield.cli", "dualfield.models")
        for name in getattr(importlib.import_module(package), "__all__", ())
        if not any(getattr(importlib.import_module(package), name) is one for one in listed)
    ]
    assert missing == [], "add a line for each to docs/api.md"
    assert len({id(one) for one in listed}) == len(listed), "a name stands in docs/api.md twice"


def test_states():
    found = states((DOCS / "state.md").read_text(encoding="utf-8"))
    assert {"CRF", "dualfield.structures.Chain"} <= set(found)
    assert set(found.values()) <= {"available", "planned"}
    for name, state in found.items():
        assert exists(name) == (state == "available"), f"docs/state.md says that {name} is {state}"


def test_readme_names_the_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme


def from_an_index(text: str) -> list[str]:
    """Return the commands in a text that install the library by its name, which no package index has."""
    return re.findall(r"pip install (?:-\S+\s+)*[\"']?dualfield\b(?!/)[^\s`]*", " ".join(text.split()))


def test_nobody_is_sent_to_an_index_that_has_no_such_package():
    folders = [(ROOT / folder).rglob("*.*") for folder in ("src", "docs", "examples", "benchmarks", "reproductions")]
    files = {path for paths in folders for path in paths if path.suffix in (".py", ".md", ".ipynb")}
    files |= {*TEXTS, *ROOT.glob("*.toml"), ROOT / "Makefile"}
    texts = {path: path.read_text(encoding="utf-8") for path in files if "_build" not in path.parts}
    assert {name_of(path): found for path, text in texts.items() if (found := from_an_index(text))} == {}


def test_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == dualfield.__version__


# The checks themselves, on texts that they must refuse.


def test_failing_example_is_found():
    test = examples_of("```python\n>>> 1 + 1\n3\n```\n", "text")
    assert doctest.DocTestRunner(verbose=False).run(test, out=lambda text: None).failed == 1


def test_only_fenced_examples_count():
    text = "Prose with >>> in it\n\n````text\n```\n>>> 1\n1\n```\n````\nmore\n```python\n>>> 2\n2\n```\n"
    assert [example.source for example in examples_of(text, "text").examples] == ["1\n", "2\n"]


def test_broken_link_is_found(tmp_path):
    (tmp_path / "there.md").touch()
    text = "[a](there.md#part) [b](gone.md) [c](https://example.org/x) [d](#here)\n```\n[e](code.md)\n```\n"
    assert broken_links(text, tmp_path) == ["gone.md"]


def test_installation_from_an_index_is_found():
    assert from_an_index('run `pip install\n"dualfield[report]"` or pip install -U dualfield') == [
        'pip install "dualfield[report]"',
        "pip install -U dualfield",
    ]
    assert from_an_index('pip install . and pip install ".[report]", pip install dist/dualfield-0.1.whl') == []


def test_states_are_read():
    other = "| a | b |\n|---|---|\n| `No` | planned |\n\n"
    text = other + "| name | state |\n|---|---|\n| `x.Y`, `Z` | planned |\n| `W` | available |\n"
    assert states(text) == {"x.Y": "planned", "Z": "planned", "W": "available"}


def test_exists():
    assert exists("dualfield.structures.Chain")
    assert exists("dualfield.structures")
    assert not exists("dualfield.structures.Chains")
    assert not exists("NoSuchEstimator")


def test_the_states_list_every_model_that_can_be_saved():
    from dualfield.estimators.loading import ESTIMATORS

    found = states((DOCS / "state.md").read_text(encoding="utf-8"))
    names = {name for name, state in found.items() if state == "available" and "." not in name}
    assert names == {one.__name__ for one in ESTIMATORS.values()}


def test_the_guide_gives_the_arguments_in_their_order():
    """Tables of methods name arguments as the methods do."""
    import inspect

    from dualfield.structures import Chain, FactorGraph

    text = (DOCS / "guide" / "structures.md").read_text(encoding="utf-8")
    for structure, first in ((Chain, "scores"), (FactorGraph, "tables")):
        rows = re.findall(r"^\| `(\w+)\((\w+(?:, \w+)*)\)`", text, re.MULTILINE)
        told = [(name, names.split(", ")) for name, names in rows if first in names.split(", ")]
        assert told
        for name, names in told:
            known = [*inspect.signature(getattr(structure, name)).parameters][1:]
            assert names == known[: len(names)], f"{structure.__name__}.{name}"
