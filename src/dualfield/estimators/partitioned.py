"""Fits to partitions, here or on a cluster: what estimators call where labels are inside of what they are given."""

from __future__ import annotations

from typing import Any

from dualfield.data import CompiledCorpus
from dualfield.data.arrays import Floats
from dualfield.data.point_parts import PointPart, client_of_parts, point_parts
from dualfield.engines import engine_of
from dualfield.estimators.running import run
from dualfield.io.partition_files import partition_files, read_file
from dualfield.models.kernel.parts import KernelPartsFit, fit_kernel_parts
from dualfield.models.part_sources import PartSource, client_of, files_of, is_partitioned, part_source
from dualfield.models.partitioned_data import PartitionedData, read_partitions
from dualfield.persistence.checkpoint import Checkpoint
from dualfield.regularisers import ElasticNet
from dualfield.solvers import Solution, StopRule
from dualfield.solvers.callbacks import FitCallbacks
from dualfield.solvers.primal.relay import solve_in_turn
from dualfield.solvers.registry import suited

PARTITION_ATTRIBUTES = ("n_partitions_", "n_rounds_", "bytes_moved_")


def refuse_client(owner: str, client: Any) -> None:
    """Raise if there is a client for data that are not in partitions."""
    if client is not None:
        raise ValueError(
            f"The 'client' argument of {owner}.fit is for partitions: a compiled corpus, files, a Dask bag, delayed "
            "values or futures as X, without y. Got other data."
        )


def refuse_weights(owner: str, **given: Any) -> None:
    """Raise if there is something for the sequences of partitions, which nobody has counted."""
    for name, value in sorted(given.items()):
        if value is not None:
            raise ValueError(f"The {name!r} argument of {owner}.fit must be None for partitions.")


def refuse_partitions(owner: str, X: Any, y: Any, client: Any) -> None:
    """Raise if the data are partitions, which only models with landmarks are trained on by cutting planes."""
    if isinstance(X, CompiledCorpus) and client is not None:
        raise ValueError(
            f"The 'client' argument of {owner}.fit must be None for a CompiledCorpus, which {owner} is trained on out "
            f"of core, on one machine. Got {type(client).__name__} instead."
        )
    if is_partitioned(X, y):
        raise ValueError(
            f"X must be sentences with labels y, or without a client a CompiledCorpus: {owner} takes other partitions "
            "only with kernel and kernel_approx. Compile the files by dualfield.io.compile_corpus."
        )


def fit_partitions(
    model: Any, parts: Any, solver: Any, client: Any, monitor: Any, checkpoint: Checkpoint | None
) -> Solution[Floats]:
    """Fit a CRF to partitions, let it keep the result, and return the solution."""
    with engine_of(client_of(parts) if client is None else client) as engine:
        source = _source(model, parts, engine)
        data = read_partitions(model, source, engine, float(model.temperature))
        try:
            if source.template is None and files_of(parts) and not len(data.vocabulary):
                raise ValueError(
                    f"{source.names[0]} and the other files have no attributes, if they are CRFsuite's items. Columns "
                    f"need a 'template', such as {type(model).__name__}(template='default')."
                )
            return _fit(model, data, solver, monitor, checkpoint)
        finally:
            data.release()


def kernel_partitions(model: Any, X: Any, y: Any) -> list[PointPart] | None:
    """Return the partitions that a model with a kernel is given; None for other data, and without a kernel."""
    return None if model.kernel is None else point_parts(X, y, of_sequences=True)


def fit_kernel_partitions(
    model: Any, parts: list[PointPart], client: Any, temperature: float, **looking_on: Any
) -> Solution[Floats]:
    """Fit a model with a kernel and landmarks to partitions, let it keep the result, and return the solution."""
    for name, value in sorted(looking_on.items()):
        if value is not None:
            raise ValueError(f"{name} must be None with a kernel: the model is there at the end of the fit only.")
    rule, found = StopRule.of(None, model.tol, model.max_iter), list[KernelPartsFit]()
    with engine_of(client_of_parts(parts) if client is None else client) as engine:

        def solve(callbacks: FitCallbacks, seed: int) -> Solution[Floats]:
            found.append(
                fit_kernel_parts(
                    model, parts, engine, temperature=temperature, rule=rule, callbacks=callbacks, seed=seed
                )
            )
            return found[0].solution

        solution = run(model, solve)
    model._keep(found[0].model, solution)
    model.n_partitions_, model.n_rounds_ = len(parts), found[0].n_rounds
    return solution


def _source(model: Any, parts: Any, engine: Any) -> PartSource:
    if not files_of(parts):
        return part_source(parts, model.template, engine)
    files = partition_files(parts, template=model.template)
    model.file_columns_ = files.columns
    return PartSource(items=files.items(), read=read_file, names=files.names, template=files.template)


def _fit(
    model: Any, data: PartitionedData, solver: Any, monitor: Any, checkpoint: Checkpoint | None
) -> Solution[Floats]:
    objective = data.objective(ElasticNet(float(model.l1_ratio)) if model.l1_ratio > 0.0 else None)
    suited(solver, objective)
    rule = StopRule.of(solver, model.tol, model.max_iter)

    def solve(callbacks: FitCallbacks, seed: int) -> Any:
        if getattr(solver, "safeguarded", False):
            return solver.solve(objective, rule, None, callbacks, seed)
        return solve_in_turn([solver], objective, rule, None, callbacks, seed)

    temperature = float(model.temperature)
    solution = run(
        model,
        solve,
        data=data,
        monitor=monitor,
        checkpoint=checkpoint,
        model_at=lambda w: data.model(w, temperature),
    )
    model._keep(data.model(solution.parameters, temperature), solution)
    model.n_partitions_, model.n_rounds_ = len(data.parts), objective.n_rounds
    model.bytes_moved_ = objective.bytes_up
    return solution
