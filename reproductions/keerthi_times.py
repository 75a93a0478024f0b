"""Table 2 of Keerthi et al. (2005): how long SMO and L-BFGS take to the same primal value, over nine values of C."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dualfield.report import Line
from reproductions.fits import GAP, Fit, fit_timed, seconds_until
from reproductions.keerthi_data import COMMON_DIFFERENCES, SOURCES, binary_problem
from reproductions.records import Cell, Figure, Findings, Part, Settings, Table, Task, cell_text
from reproductions.tuning import gamma_of

_LOG_C = tuple(range(-4, 5))
_CAP, _QUICK_CAP = 5000, 200  # passes of L-BFGS over the kernel matrix
# Seconds of SMO and of BFGS for log10 C = -4 ... 4; None where the authors gave up after 50000 seconds.
_PAPER: dict[str, tuple[tuple[float, ...], tuple[float | None, ...]]] = {
    "banana": (
        (0.6, 0.6, 0.5, 0.3, 0.5, 1.2, 4.0, 41.6, 840.0),
        (23.0, 15.2, 13.4, 55.4, 255.2, 963.1, 3100.0, None, None),
    ),
    "splice": (
        (18.0, 16.7, 14.0, 10.2, 13.2, 22.1, 32.0, 40.0, 54.2),
        (1100.0, 588.2, 760.1, 2300.0, 6100.0, 28800.0, None, None, None),
    ),
    "waveform": (
        (2.4, 2.1, 2.1, 1.5, 2.9, 5.5, 13.0, 20.5, 24.9),
        (69.6, 42.4, 57.2, 156.1, 478.8, 1900.0, 3500.0, 5800.0, None),
    ),
    "image": (
        (40.6, 41.2, 31.1, 25.5, 41.0, 63.2, 99.0, 178.6, 620.0),
        (916.4, 520.2, 671.0, 3200.0, 9200.0, 46000.0, None, None, None),
    ),
}


@dataclass(frozen=True, slots=True)
class TimesRow:
    """One problem at one C: three fits, and when L-BFGS reached the primal value of SMO, if it did."""

    data: str
    log_c: int
    n_train: int
    smo: Fit
    lbfgs: Fit
    lbfgs_seconds: float | None
    default: Fit

    @property
    def ratio(self) -> float | None:
        """Time of L-BFGS over time of SMO."""
        return None if self.lbfgs_seconds is None else self.lbfgs_seconds / self.smo.seconds


def compute(settings: Settings, data: str, log_c: int) -> TimesRow:
    """Run SMO to the gap, then L-BFGS until it reaches the primal value of SMO, then the default solver to the gap."""
    problem = binary_problem(settings, data)
    common: dict[str, Any] = {"C": 10.0**log_c, "kernel": "rbf", "gamma": gamma_of(SOURCES[data].sigma2)}
    smo, _ = fit_timed(problem, settings, solver="smo", **common)
    cap = _QUICK_CAP if settings.quick else _CAP
    lbfgs, model = fit_timed(problem, settings, solver="lbfgs", max_iter=cap, **common)
    # SMO's value is known to the gap only, so two values agree when they differ by less. A solver that reaches the gap
    # has then always reached the value of another one.
    seconds = seconds_until(lbfgs, model, smo.objective * (1.0 + GAP))
    default, _ = fit_timed(problem, settings, solver="auto", **common)
    return TimesRow(data, log_c, len(problem.y), smo, lbfgs, seconds, default)


def tasks(settings: Settings) -> list[Task[TimesRow]]:
    """Return one task per problem and C; a quick run takes three values of C."""
    grid = (-2, 0, 2) if settings.quick else _LOG_C
    return [
        Task(f"{data}, C = 1e{log_c}", partial(compute, settings, data, log_c)) for data in _PAPER for log_c in grid
    ]


def present(rows: Sequence[TimesRow]) -> Findings:
    """Set our times beside the paper's."""
    names = list(dict.fromkeys(row.data for row in rows))
    per_data = {name: [row for row in rows if row.data == name] for name in names}
    return Findings(
        summary=_summary(rows),
        tables=tuple(_table(name, some) for name, some in per_data.items()),
        figures=tuple(_figure(name, some) for name, some in per_data.items()),
        differences=(
            *COMMON_DIFFERENCES,
            "The paper stops SMO when the optimality conditions hold to 1e-6; here SMO and the default solver stop at "
            f"a relative duality gap of {cell_text(GAP)}. The time of L-BFGS is, as in the paper, that "
            f"to the primal value that SMO reached, here to a share of {cell_text(GAP)}; after {_CAP} passes over "
            "the kernel matrix it is stopped.",
        ),
    )


def _summary(rows: Sequence[TimesRow]) -> tuple[str, ...]:
    ours = [row.ratio for row in rows if row.ratio is not None]
    theirs = [ratio for row in rows if (ratio := _paper_ratio(row)) is not None]
    text = f"L-BFGS reached the primal value of SMO in {len(ours)} of {len(rows)} runs"
    text += f", and took {cell_text(float(np.median(ours)))} times as long in the median" if ours else ""
    text += f". In the paper it did in {len(theirs)} of the same {len(rows)} runs"
    text += f", and took {cell_text(float(np.median(theirs)))} times as long in the median." if theirs else "."
    done = sum(row.smo.reached for row in rows), sum(row.default.reached for row in rows)
    faster = [row.smo.seconds / row.default.seconds for row in rows]
    return (
        text,
        f"SMO reached the gap in {done[0]} and the default solver in {done[1]} of {len(rows)} runs; time of SMO over "
        f"time of the default solver: median {cell_text(float(np.median(faster)))}, from "
        f"{cell_text(min(faster))} to {cell_text(max(faster))}.",
    )


def _paper_times(row: TimesRow) -> tuple[float, float | None]:
    smo, bfgs = _PAPER[row.data]
    return smo[_LOG_C.index(row.log_c)], bfgs[_LOG_C.index(row.log_c)]


def _paper_ratio(row: TimesRow) -> float | None:
    smo, bfgs = _paper_times(row)
    return None if bfgs is None else bfgs / smo


def _table(name: str, rows: Sequence[TimesRow]) -> Table:
    return Table(
        title=f"{name}, {rows[0].n_train} training points, σ² = {SOURCES[name].sigma2:g}: seconds to the same primal "
        "value.",
        header=(
            "log10 C",
            "SMO, paper",
            "BFGS, paper",
            "ratio, paper",
            "SMO",
            "L-BFGS",
            "ratio",
            "default",
            "solver chosen",
            "primal, SMO",
            "primal, L-BFGS",
            "primal, default",
        ),
        rows=tuple(_cells(row) for row in rows),
        notes=(
            "Paper: Keerthi et al. (2005), Table 2; a dash where its authors gave up after 50000 seconds. Ratio: "
            "L-BFGS over SMO. The last three columns are the primal values at which each solver ended.",
        ),
    )


def _cells(row: TimesRow) -> tuple[Cell, ...]:
    missed = f"not reached in {cell_text(row.lbfgs.seconds)}"
    return (
        row.log_c,
        *_paper_times(row),
        _paper_ratio(row),
        row.smo.seconds_cell(),
        missed if row.lbfgs_seconds is None else row.lbfgs_seconds,
        row.ratio,
        row.default.seconds_cell(),
        row.default.solver,
        *(f"{fit.objective:.8g}" for fit in (row.smo, row.lbfgs, row.default)),
    )


def _figure(name: str, rows: Sequence[TimesRow]) -> Figure:
    C = tuple(10.0**row.log_c for row in rows)
    nan = float("nan")
    series: dict[str, list[float | None]] = {
        "SMO, paper": [_paper_times(row)[0] for row in rows],
        "SMO": [row.smo.seconds if row.smo.reached else None for row in rows],
        "BFGS, paper": [_paper_times(row)[1] for row in rows],
        "L-BFGS": [row.lbfgs_seconds for row in rows],
        "default": [row.default.seconds if row.default.reached else None for row in rows],
    }
    return Figure(
        name=f"table2-{name}",
        title=f"{name}: seconds to the same primal value, where it was reached",
        lines=tuple(Line(key, C, tuple(nan if y is None else y for y in ys)) for key, ys in series.items()),
        x_axis="C",
        y_axis="seconds",
        log_x=True,
        log_y=True,
    )


TABLE2 = Part(
    name="table2",
    title="Table 2: SMO against L-BFGS",
    data=tuple(source.file for source in SOURCES.values()),
    tasks=tasks,
    present=present,
)
