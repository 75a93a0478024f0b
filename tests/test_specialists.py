"""No concrete structure is named outside ``structures/``, but by specialists: what works for one does for all."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src" / "dualfield"
CONCRETE = {"Chain", "Dependency", "Grammar", "Graph", "Hypergraph", "SemiMarkov", "Single", "Spans", "Tree"}
# Who may name one, and why. A file that no longer does must leave the list.
SPECIALISTS = {
    "cli/digit_reader.py": "the demo shows what transitions add to single digits",
    "cli/training/fit.py": "--order is an option of sequences",
    "cli/training/tree_structures.py": "the names that --structure has for trees in brackets",
    "estimators/graphical.py": "cliques of sequences are put together by chains",
    "estimators/graphical_parameters.py": "cliques of sequences are put together by chains",
    "models/graphical/clique_readers.py": "cliques of sequences are put together by chains",
    "models/graphical/clique_shapes.py": "nodes alone are graphs without edges",
    "models/corpus_training.py": "compiled corpora have sequences",
    "models/kernel/parts.py": "partitions with a kernel are sequences, of order 1",
    "models/partitioned_data.py": "partitions tell pairs of labels, which are the cliques of chains",
    "models/generative/pcfg.py": "tables of probabilistic grammars",
    "models/spans.py": "spans are parts of sequences",
    "models/training_data.py": "single nodes are trained as chains of one node, by swaps",
    "objectives/planes_slack.py": "rescaled slacks are for chains",
    "objectives/streamed.py": "compiled corpora have sequences",
    "persistence/checkpoint.py": "the fingerprint of a chain has its windows",
    "persistence/crfsuite_export.py": "CRFsuite's models are chains",
    "persistence/crfsuite_import.py": "CRFsuite's models are chains",
    "scores/tables.py": "tables of hidden Markov models",
    "solvers/kernel/labelling_smo.py": "lists the windows of short chains",
    "solvers/needs.py": "says who needs a chain",
    "solvers/planes/marginal_qp.py": "the flows of chains",
    "solvers/prototypes.py": "the smallest objective of each kind",
}
NATIVE = {
    "solvers/dual/flow_swap.cpp": "swaps of segments",
    "solvers/dual/local_tables.hpp": "certificates of the relaxed hinge ask tree-reweighted bounds",
    "solvers/dual/flow_ascent.hpp": "swaps of segments",
    "solvers/kernel/kernel_flows.cpp": "swaps of segments",
    "solvers/streamed/flow_visits.hpp": "swaps of segments",
    "streaming/corpus_blocks.cpp": "compiled corpora have sequences",
    "solvers/kernel/kernel_soft_dual.cpp": "chooses swaps for chains of order 1",
}


def named_in(path: Path) -> set[str]:
    """Return the concrete structures that the code of a module names, whatever its docstrings say."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dualfield.structures"):
            names |= {alias.name for alias in node.names}
    return names & CONCRETE


def test_python():
    others = [path for path in SOURCES.rglob("*.py") if path.relative_to(SOURCES).parts[0] != "structures"]
    found = {path.relative_to(SOURCES).as_posix() for path in others if named_in(path)}
    assert found == set(SPECIALISTS)


@pytest.mark.parametrize("half", ["src", "include/dualfield"])
def test_native(half):
    folder = ROOT / "native" / half
    found = set()
    for path in [*folder.rglob("*.cpp"), *folder.rglob("*.hpp")]:
        place = path.relative_to(folder)
        names = ("ChainStructure", "GraphStructure", "TreeStructure", "SingleStructure", "ChainTopology")
        if place.parts[0] not in ("structures", "vector") and any(name in path.read_text("utf-8") for name in names):
            found.add(place.as_posix())
    assert found == (set(NATIVE) if half == "src" else {"streaming/corpus_blocks.hpp"})


def test_a_name_in_code_is_found(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('"""Chain."""\nfrom dualfield.structures import Tree\n\nmodel = Single(3)\n', encoding="utf-8")
    assert named_in(path) == {"Tree", "Single"}
