"""A solver at work for an estimator: progress, a monitor that looks on, and states that are kept in a file."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dualfield._native import StateError
from dualfield.data import CompiledCorpus
from dualfield.data.arrays import Floats
from dualfield.data.checks import fixed_random_state
from dualfield.models.carry_over import carry_over
from dualfield.models.corpus_training import CorpusData, read_corpus, storage_of
from dualfield.models.kernel.training import fit_with_kernel
from dualfield.models.partitioned_data import PartitionedData
from dualfield.models.structured import StructuredModel
from dualfield.models.training_data import TrainingData
from dualfield.persistence.checkpoint import Checkpoint, fingerprint
from dualfield.regularisers import Regulariser
from dualfield.scores.kernel import Expansions
from dualfield.solvers import Moment, Solution, Status, StopRule, Trace
from dualfield.solvers.callbacks import FitCallbacks
from dualfield.solvers.kept_state import refuse_unused
from dualfield.solvers.progress import ProgressLine
from dualfield.solvers.registry import suited

Solve = Callable[[FitCallbacks, int], Solution[Floats]]
Monitor = Callable[[Moment, Any], Any]


def run(
    estimator: Any,
    solve: Solve,
    *,
    data: TrainingData | PartitionedData | None = None,
    start: Floats | None = None,
    monitor: Monitor | None = None,
    checkpoint: Checkpoint | None = None,
    model_at: Callable[[Floats], Any] | None = None,
) -> Solution[Floats]:
    """Call a solver with callbacks that show progress, let a monitor see the model of a moment, and keep states."""
    seed = int(fixed_random_state(getattr(estimator, "random_state", None)).randint(2**31 - 1))
    states = None
    if checkpoint is not None and data is not None:
        states = checkpoint.open(fingerprint(estimator, data, start), seed)
        seed = states.seed
    with ProgressLine(type(estimator).__name__, int(estimator.verbose)) as line:
        callbacks = FitCallbacks(
            line,
            None if monitor is None else lambda moment, w: monitor(moment, _at(estimator, moment, w, model_at)),
            None if states is None else states.keep,
            None if states is None else states.is_due,
            None if states is None else states.resume,
        )
        try:
            if data is not None and callbacks.resume is not None:
                refuse_unused(callbacks.resume, data.score_map.used)
            solution = solve(callbacks, seed)
        except StateError as error:
            raise error if states is None else states.refused(error) from None
        callbacks.last(solution.moment, solution.parameters)
        line.end(f"{solution.status.value}, relative gap {solution.relative_gap:.1e}.")
    if states is not None:
        states.close(solution.status)
    return solution


def run_with_kernel(
    estimator: Any,
    data: TrainingData,
    temperature: float,
    solver: Any,
    old: StructuredModel | None,
    **looking_on: Any,
) -> tuple[Solution[Floats], Expansions]:
    """Train with scores from a kernel."""
    for name, value in looking_on.items():
        if value is not None:
            raise ValueError(f"{name} must be None with a kernel: the model is there at the end of the fit only.")
    found: list[Expansions] = []

    def solve(callbacks: FitCallbacks, seed: int) -> Solution[Floats]:
        solution, expansions = fit_with_kernel(estimator, data, temperature, solver, old, callbacks, seed)
        found.append(expansions)
        return solution

    return run(estimator, solve, data=data), found[0]


def run_on_corpus(
    estimator: Any,
    corpus: CompiledCorpus,
    solver: Any,
    penalty: Regulariser | None,
    temperature: float,
    *,
    old: Any = None,
    monitor: Monitor | None = None,
    checkpoint: Any = None,
    memory: float | None = None,
    **others: Any,
) -> tuple[Solution[Floats], CorpusData]:
    """Train on a compiled corpus; a temperature of 0 is the hinge. `others` are arguments of fit that must be None."""
    is_hinge, kept = temperature == 0.0, Checkpoint.of(checkpoint)
    storage = storage_of(type(estimator).__name__, memory, None if kept is None else kept.blocks_path)
    data = read_corpus(estimator, corpus, hinge=is_hinge, **others)
    objective = suited(solver, data.objective(estimator, penalty, temperature, storage))
    rule = StopRule.of(solver, estimator.tol, estimator.max_iter)
    start = carry_over(old, data) if isinstance(old, StructuredModel) else None
    try:
        solution = run(
            estimator,
            lambda callbacks, seed: solver.solve(objective, rule, start, callbacks, seed),
            data=data,
            start=start,
            monitor=monitor,
            checkpoint=kept,
            model_at=lambda w: data.model(w, None if is_hinge else temperature),
        )
    except BaseException:
        if kept is not None and not Path(kept.path).exists():
            kept.discard()  # states that no checkpoint points to
        raise
    return solution, data


def is_streamed(X: Any, solver: Any, client: Any = None) -> bool:
    """Whether a corpus is read block by block by a solver of the dual; clusters and L-BFGS take its partitions."""
    return isinstance(X, CompiledCorpus) and client is None and getattr(solver, "name", solver) != "lbfgs"


def check_memory(memory: Any) -> None:
    """Refuse a limit where none is kept to."""
    if memory is not None:
        raise ValueError(
            "memory must be None unless X is a CompiledCorpus that is trained on out of core, without a client and not "
            f"by solver='lbfgs'. Got {memory!r:.50} instead."
        )


def _at(estimator: Any, moment: Moment, parameters: Floats, model_at: Callable[[Floats], Any] | None) -> Any:
    """Return the estimator with the model of a moment."""
    there = copy.copy(estimator)
    solution = Solution(
        parameters=parameters,
        objective=moment.objective,
        gap=moment.gap,
        status=Status.STOPPED,
        n_iter=1,
        trace=Trace.from_rows(np.array([dataclasses.astuple(moment)])),
        solver="monitor",
    )
    there._keep(None if model_at is None else model_at(parameters), solution)
    return there
