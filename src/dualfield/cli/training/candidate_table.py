"""The table of ``dualfield tune``: candidates, their scores as they come in, and how both are shown."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click

from dualfield.cli.program import tell

SCORE_NAMES = {"span_f1": "F1", "accuracy": "accuracy", "neg_log_loss": "log-loss", "evidence": "log-evidence"}


@dataclass(kw_only=True)
class CandidateTable:
    """All candidates of all losses, and their scores as they come in."""

    losses: list[str]
    Cs: list[float]
    orders: list[int]
    min_freqs: list[int]
    n_folds: int
    scoring: str
    name: str  # of the score, as it is shown
    scores: dict[tuple[Any, ...], dict[int, float]] = field(default_factory=dict)

    @property
    def n_fits(self) -> int:
        """How many fits there are."""
        return len(self.keys()) * self.n_folds

    def keys(self) -> list[tuple[str, int, int, float]]:
        """Return loss, order, min_freq and C of all candidates."""
        return [
            (loss, order, least, C)
            for loss in self.losses
            for order in self.orders
            for least in self.min_freqs
            for C in self.Cs
        ]

    def add(self, loss: str, params: dict[str, Any], fold: int, score: float) -> tuple[Any, ...]:
        """Take note of a score; return the candidate."""
        key = (loss, params.get("order", self.orders[0]), params.get("min_freq", self.min_freqs[0]), params["C"])
        self.scores.setdefault(key, {})[fold] = score
        return key

    def mean(self, key: tuple[Any, ...]) -> float:
        """Return the mean over the folds so far."""
        import numpy as np

        found = self.scores[key]
        return float(np.mean([found[fold] for fold in sorted(found)]))

    def spread(self, key: tuple[Any, ...]) -> float:
        """Return the standard deviation over the folds."""
        import numpy as np

        found = self.scores[key]
        return float(np.std([found[fold] for fold in sorted(found)]))

    def shown(self, score: float) -> str:
        """Return a score as it is shown: shares in percent, the log-loss without its sign."""
        if self.scoring == "evidence":
            return f"{score:.2f}"
        return f"{-score:.4f}" if self.scoring == "neg_log_loss" else f"{100 * score:.2f}"

    def named(self, key: tuple[Any, ...]) -> str:
        """Return what distinguishes a candidate."""
        loss, order, least, C = key
        parts = [f"C={C:g}", f"--loss {loss}" if len(self.losses) > 1 else ""]
        parts += [f"--order {order}" if len(self.orders) > 1 else ""]
        parts += [f"--min-freq {least}" if len(self.min_freqs) > 1 else ""]
        return " ".join(part for part in parts if part)

    def best_key(self, loss: str, search: Any) -> tuple[Any, ...]:
        """Return the candidate that a search has found best."""
        found = search.best_params_
        return (loss, found.get("order", self.orders[0]), found.get("min_freq", self.min_freqs[0]), found["C"])

    def text(self, loss: str, search: Any) -> str:
        """Lay out the table; the winner has a star."""
        best, name = self.best_key(loss, search), self.name
        columns = [("loss", len(self.losses) > 1), ("order", len(self.orders) > 1)]
        columns += [("min-freq", len(self.min_freqs) > 1), ("C", True)]
        wanted, wide = [at for at, (_, is_shown) in enumerate(columns) if is_shown], max(10, len(name) + 2)
        lines = ["  " + "".join(f"{columns[at][0]:>9}" for at in wanted) + f"{name:>{wide}}"]
        lines[0] += f"{'±':>9}" * (self.n_folds > 1)
        for key in self.keys():
            cells = "".join(f"{key[at] if at < 3 else format(key[at], 'g'):>9}" for at in wanted)
            spread = f"{self.shown(abs(self.spread(key))).lstrip('-'):>9}" * (self.n_folds > 1)
            lines.append(f"{'*' if key == best else ' '} {cells}{self.shown(self.mean(key)):>{wide}}{spread}")
        kind = "" if self.scoring == "evidence" else "dev " if self.n_folds == 1 else "mean "
        found = f"Best: {self.named(best)}, {kind}{name} {self.shown(self.mean(best))}"
        return "\n".join([*lines, found])

    def record(self, loss: str, search: Any) -> dict[str, Any]:
        """Return the table for JSON; scores are those of the library, higher is better."""

        def one(key: tuple[Any, ...]) -> dict[str, Any]:
            named = dict(zip(("loss", "order", "min_freq", "C"), key, strict=True))
            found = self.scores[key]
            folds = [found[fold] for fold in sorted(found)]
            return named | {"mean_score": self.mean(key), "std_score": self.spread(key), "scores": folds}

        edge = search.results_.edge()
        return {
            "scoring": self.scoring,
            "folds": self.n_folds,
            "best": one(self.best_key(loss, search)),
            "edge": None if edge is None else edge[2],
            "candidates": [one(key) for key in self.keys()],
        }

    def cv_results(self) -> dict[str, Any]:
        """Return the table with the keys of GridSearchCV, parameters only where there are several values."""
        keys = self.keys()
        several: dict[str, tuple[int, list[Any]]] = {
            "loss": (0, self.losses),
            "order": (1, self.orders),
            "min_freq": (2, self.min_freqs),
        }
        found: dict[str, Any] = {"param_C": [key[3] for key in keys]}
        for name, (at, values) in several.items():
            if len(values) > 1:
                found[f"param_{name}"] = [key[at] for key in keys]
        for fold in range(self.n_folds):
            found[f"split{fold}_test_score"] = [self.scores[key][fold] for key in keys]
        found["mean_test_score"] = [self.mean(key) for key in keys]
        found["std_test_score"] = [self.spread(key) for key in keys]
        return found


class TuningProgress:
    """Shows scores as they come in: on a terminal one line that changes, else a line for each candidate."""

    def __init__(self, table: CandidateTable, *, quiet: bool) -> None:
        self._table, self._quiet, self._lock, self._n = table, quiet, threading.Lock(), 0
        self._live = sys.stderr.isatty() and not quiet

    def __enter__(self) -> TuningProgress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._live:
            click.echo("\r\033[K", err=True, nl=False)

    def of(self, loss: str) -> Callable[[dict[str, Any], int, float], None]:
        """Return the callback of a search."""

        def tell_score(params: dict[str, Any], fold: int, score: float) -> None:
            with self._lock:  # folds run in threads
                self._take(self._table.add(loss, params, fold, score))

        return tell_score

    def _take(self, key: tuple[Any, ...]) -> None:
        self._n += 1
        table = self._table
        if self._live:
            top = max(table.scores, key=table.mean)
            best = f"best so far {table.name} {table.shown(table.mean(top))}, {table.named(top)}"
            click.echo(f"\r\033[K  {self._n} of {table.n_fits} fits, {best}"[:120], err=True, nl=False)
        elif not self._quiet and len(table.scores[key]) == table.n_folds:
            tell(f"  {self._n} of {table.n_fits} fits, {table.named(key)}: {table.shown(table.mean(key))}")
