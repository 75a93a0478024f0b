"""The option ``--solver``: its choices are those of the registry that suit the data and the loss."""

from __future__ import annotations

import click

# What the help lists: to read the registry takes longer than people wait for help, and a test compares the two.
LISTED = {
    "sequences": "auto, arow, block_dual, lbfgs, passive_aggressive, perceptron, sgd",
    "svmlight": "auto, lbfgs, newton, online, smo, working_set",
    "hinge": (
        "auto, cutting_plane, flow_swap, frank_wolfe, labelling_set, marginal, path_blocks, plane_sgd, sgd, simplicial"
    ),
}


def suited_solvers(data: str, loss: str) -> list[str]:
    """Return the names of the solvers for a kind of data, "sequences" or "svmlight", and a loss, "log" or "hinge"."""
    from dualfield.solvers import prototypes, solver_names

    if loss == "hinge":
        return solver_names(prototypes.objective(0.0))
    return solver_names(prototypes.kernel_softmax() if data == "svmlight" else prototypes.objective(1.0))


def known_solver(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Take a name of the registry, which is read where there is a value: solvers take a while to import."""
    from dualfield.solvers import solver_names

    if value not in solver_names():
        raise click.BadParameter(f"{value!r} is not one of {', '.join(map(repr, solver_names()))}.", ctx, param)
    return value


def begun(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names that begin as what was typed."""
    from dualfield.solvers import solver_names

    return [name for name in solver_names() if name.startswith(incomplete)]
