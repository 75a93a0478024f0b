"""One name is one class, in one registry that is open to users and that everything else reads."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import dualfield
from dualfield import CRF, KernelLogisticRegression, StructuredSVM
from dualfield.cli.solver_names import LISTED, suited_solvers
from dualfield.solvers import (
    LBFGS,
    CuttingPlane,
    FlowSwap,
    NewtonCG,
    Solver,
    Status,
    prototypes,
    register,
    registry,
    solver_classes,
    solver_names,
)
from dualfield.solvers.registry import pick_solver, suited

ROOT = Path(__file__).parents[2]
X = [np.array([[1.0], [-2.0]]), np.array([[-1.0], [0.5], [2.0]]), np.array([[0.3]])]
Y = [["a", "b"], ["b", "a", "a"], ["b"]]


def test_one_name_is_one_class():
    classes = solver_classes()
    assert len(set(classes.values())) == len(classes)
    for name, solver in classes.items():
        assert solver.name == name
        assert re.fullmatch(r"[a-z_]+", name)
        assert issubclass(solver, Solver)
        assert is_dataclass(solver)
        assert not [one for one in fields(solver) if one.name in ("name", "needs")]  # of the class, not settings
        assert getattr(dualfield.solvers, solver.__name__) is solver
    with pytest.raises(TypeError):
        classes["other"] = LBFGS


def test_no_other_module_lists_solvers():
    """Names of three solvers or more in one tuple, list or dict are a table of solvers."""
    tables = []
    for path in sorted((ROOT / "src" / "dualfield").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
                inside = node.keys if isinstance(node, ast.Dict) else node.elts
                names = {one.value for one in inside if isinstance(one, ast.Constant) and isinstance(one.value, str)}
                if len(names & set(solver_names()) - {"auto", "online"}) > 2:
                    tables.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert tables == []


def test_what_objectives_are_for():
    for prototype in (prototypes.objective(1.0), prototypes.objective(0.0), prototypes.kernel_objective(0.0)):
        assert solver_names(prototype)[0] == "auto"
        for name in solver_names():
            assert (solver_classes()[name]().missing(prototype) is None) == (name in solver_names(prototype))
    assert solver_names() == ["auto", *sorted(set(solver_classes()) - {"auto"})]


def test_one_problem_for_solvers_of_gradients_and_of_planes():
    hinge = prototypes.objective(0.0)
    assert suited(CuttingPlane(), hinge) is suited(FlowSwap(), hinge) is hinge
    with pytest.raises(ValueError, match=r"'lbfgs' cannot take this problem\. Its temperature is zero.* Use .*'sgd'"):
        suited(LBFGS(), hinge)


@pytest.mark.parametrize("wrong", ["sag", None, 3, LBFGS, object(), NewtonCG()])
def test_what_is_not_a_solver_for_it(wrong):
    with pytest.raises(ValueError, match=r"The 'solver' parameter of CRF must be one of \['auto', 'arow'.* Got"):
        pick_solver("CRF", wrong, prototypes.objective(1.0))


@dataclass(frozen=True)
class Own:
    """Not derived from anything here: it has what is needed, hands the work on, and remembers what it was given."""

    inner: Solver
    seen: list
    name: ClassVar[str] = "own"

    def missing(self, objective):
        return self.inner.missing(objective)

    def solve(self, objective, rule, start=None, callbacks=None, random_state=None):
        self.seen.append((objective, rule, start))
        found = self.inner.solve(objective, rule, start, callbacks, random_state)
        return type(found)(**{**vars(found), "solver": self.name})


@pytest.mark.parametrize(
    ("estimator", "inner"),
    [
        (CRF(tol=1e-6), "lbfgs"),
        (CRF(tol=1e-6), "block_dual"),
        (CRF(kernel="rbf", tol=1e-6), "kernel_ascent"),
        (StructuredSVM(tol=1e-6), "flow_swap"),
        (StructuredSVM(tol=1e-6), "cutting_plane"),
        (StructuredSVM(tol=1e-6, positive=True), "cutting_plane"),
        (StructuredSVM(kernel="rbf", tol=1e-6), "kernel_ascent"),
    ],
    ids=lambda one: str(one)[:40],
)
def test_a_solver_of_your_own(estimator, inner):
    named = estimator.__class__(**estimator.get_params()).set_params(solver=inner).fit(X, Y)
    seen = []
    model = estimator.set_params(solver=Own(solver_classes()[inner](), seen)).fit(X, Y)
    assert model.solver_ == "own"
    assert len(seen) == 1
    assert seen[0][1].tol == 1e-6
    assert model.status_ is Status.CONVERGED
    assert model.objective_ == pytest.approx(named.objective_, rel=2e-6)
    assert model.predict(X) == named.predict(X)
    with pytest.raises(ValueError, match=r"The 'solver' parameter of .* cannot be saved"):
        model.save("nowhere")


def test_a_solver_of_your_own_for_kernel_machines_and_custom_problems():
    points, classes, seen = np.concatenate(X), np.concatenate(Y), []
    model = KernelLogisticRegression(solver=Own(NewtonCG(), seen)).fit(points, classes)
    assert (model.solver_, len(seen), model.status_) == ("own", 1, Status.CONVERGED)
    again = KernelLogisticRegression(solver=Own(NewtonCG(), seen), warm_start=True).fit(points, classes)
    assert again.fit(points, classes).objective_ == pytest.approx(model.objective_, rel=1e-3)
    problem = prototypes.custom_planes().problem
    custom = StructuredSVM(problem, solver=Own(CuttingPlane(), seen), tol=1e-6).fit([np.eye(2)] * 2, [0, 1])
    named = StructuredSVM(problem, solver="cutting_plane", tol=1e-6).fit([np.eye(2)] * 2, [0, 1])
    assert (custom.solver_, custom.objective_) == ("own", named.objective_)


def test_what_it_lacks_is_said():
    with pytest.raises(ValueError, match=r"solver='own' cannot take this problem\. It penalises absolute .*'lbfgs'"):
        CRF(l1_ratio=0.5, solver=Own(solver_classes()["sgd"](), [])).fit(X, Y)
    with pytest.raises(ValueError, match=r"solver='own' cannot take this problem\. It is not made of planes"):
        KernelLogisticRegression(solver=Own(CuttingPlane(), [])).fit(np.eye(2), [0, 1])


def test_a_registered_solver_has_a_name_everywhere(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_CLASSES", dict(registry._CLASSES))

    @register
    @dataclass(frozen=True)
    class Patient(LBFGS):
        """L-BFGS with a longer memory."""

        name: ClassVar[str] = "patient"
        memory: int = 50

    assert "patient" in solver_names(prototypes.objective(1.0))
    assert "patient" in suited_solvers("sequences", "log")
    assert "patient" not in suited_solvers("sequences", "hinge")
    model = CRF(solver="patient").fit(X, Y)
    model.set_params(solver=Patient(60)).fit(X, Y).save(tmp_path / "model")
    assert dualfield.load(tmp_path / "model").solver == Patient(60)
    with pytest.raises(ValueError, match="'patient' is taken by the solver Patient: one name is one class"):
        register(type("Other", (LBFGS,), {"name": "patient"}))


def rows_of(page: str, heading: str) -> dict[str, list[str]]:
    """Return the rows of the table under a heading of the documentation, by their first cell."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    return {row[0].strip('`"'): row[1:] for row in rows}


def test_the_documentation_has_the_table_of_solvers():
    listed = rows_of("guide/solvers.md", "All solvers")
    listed.pop("name")
    assert {name: row[0].strip("`") for name, row in listed.items()} == {
        name: solver.__name__ for name, solver in solver_classes().items()
    }
    api = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    for solver in solver_classes().values():
        assert f"   solvers.{solver.__name__}\n" in api


def test_the_documentation_says_which_solvers_suit():
    kinds = {
        "CRF": prototypes.objective(1.0),
        "CRF(kernel=...)": prototypes.kernel_objective(1.0),
        "StructuredSVM": prototypes.objective(0.0),
        'StructuredSVM(Graph(inference="trw"))': prototypes.relaxed_hinge(),
        "StructuredSVM(problem)": prototypes.custom_planes(),
        "StructuredSVM(kernel=...)": prototypes.kernel_objective(0.0),
        "KernelLogisticRegression": prototypes.kernel_softmax(),
        "KernelLogisticRegression(label_kernel=function)": prototypes.joint_kernel(),
    }
    listed = rows_of("guide/solvers.md", "Which solvers apply")
    listed.pop("estimator")
    assert {kind: re.findall(r'"(\w+)"', row[0]) for kind, row in listed.items()} == {
        kind: solver_names(prototype) for kind, prototype in kinds.items()
    }


def test_the_guide_of_the_command_line_has_its_choices():
    page = (ROOT / "docs" / "guide" / "command_line.md").read_text(encoding="utf-8")
    row = re.search(r"^\| `--solver` \| (.*) \| `auto` \|$", page, re.MULTILINE)
    assert row is not None
    told = {kind: re.findall(r"`(\w+)`", names) for kind, names in re.findall(r"for (\w+) ([^;]*)", row[1])}
    suited = {
        "sequences": suited_solvers("sequences", "log"),
        "svmlight": suited_solvers("svmlight", "log"),
        "hinge": suited_solvers("sequences", "hinge"),
    }
    assert told == suited == {kind: names.split(", ") for kind, names in LISTED.items()}
