"""Probabilities by one model, with a temperature, by several models, and by posteriors; C right and too large."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dualfield import CRF, BaggedTagger, BayesianCRF
from dualfield.metrics import calibration_error, token_log_loss
from reproductions.bayesian_data import draw
from reproductions.records import Cell, Findings, Part, Settings, Table, Task

MODE, TEMPERATURE, BAGGING = "one model", "temperature, 4 folds", "bagging, 10 models"
DIAGONAL, FULL, POWER_EP, HMC = "VB diagonal", "VB full", "power EP", "HMC"
FEW = (MODE, TEMPERATURE, BAGGING, DIAGONAL)  # for any number of weights
ALL = (*FEW, FULL, POWER_EP, HMC)
FACTORS = (1.0, 10.0, 100.0)
SIZES, SEEDS, N_TEST = (20, 50, 200), 5, 150


@dataclass(frozen=True, slots=True)
class LossRow:
    """One method on one draw of the training sentences.

    Attributes
    ----------
    n, seed : int
        Training sentences, and which draw of them.
    factor, C : float
        How much too large C is, and C.
    method : str
        How probabilities were found.
    token, sequence, error, calibration : float
        Log-loss of labels and, for each token, of whole labellings; share of wrong labels; calibration error. NaN where
        the method failed.
    seconds : float
        Processor time of the fit.
    note : str
        Whether it converged.
    """

    n: int
    seed: int
    factor: float
    C: float
    method: str
    token: float
    sequence: float
    error: float
    calibration: float
    seconds: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class LossRows:
    """All methods on one draw, with one C."""

    methods: tuple[LossRow, ...]


def fitted(method: str, C: float, X: Any, y: Any, seed: int) -> Any:
    """Fit one method."""
    if method == BAGGING:
        return BaggedTagger(CRF(C=C), random_state=seed).fit(X, y)
    if method in (MODE, TEMPERATURE):
        model = CRF(C=C).fit(X, y)
        return model if method == MODE else model.calibrate(X, y, cv=4)
    inference: Any = {POWER_EP: "power_ep", HMC: "hmc"}.get(method, "vb")
    covariance: Any = "full" if method == FULL else "diagonal"
    return BayesianCRF(C=C, inference=inference, covariance=covariance, random_state=seed).fit(X, y)


def compute(settings: Settings, n: int, seed: int, factor: float, methods: Sequence[str]) -> LossRows:
    """Choose C by evidence, multiply it, and fit and score all methods."""
    data = draw(settings, n, seed, 40 if settings.quick else N_TEST)
    C = factor * CRF().evidence(data.X, data.y, Cs=[1.0, 3.0, 10.0, 30.0]).best.C
    n_tokens, rows = sum(map(len, data.y_test)), []
    for method in methods:
        began, note = time.process_time(), ""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = fitted(method, C, data.X, data.y, seed)
            except RuntimeError:
                nan = float("nan")
                seconds = time.process_time() - began
                rows.append(LossRow(n, seed, factor, C, method, nan, nan, nan, nan, seconds, "failed"))
                continue
        seconds = time.process_time() - began
        if not getattr(model, "converged_", True):
            note = "not converged"
        table = model.predict_proba(data.X_test)
        known = set(model.classes_)
        kept = [at for at, labels in enumerate(data.y_test) if known.issuperset(labels)]
        X_test, y_test, table = ([part[at] for at in kept] for part in (data.X_test, data.y_test, table))
        n_tokens = sum(map(len, y_test))
        rows.append(
            LossRow(
                n,
                seed,
                factor,
                C,
                method,
                token_log_loss(y_test, table, model.classes_),
                float(-model.score_sequences(X_test, y_test).sum() / n_tokens),
                1.0 - model.score(X_test, y_test),
                calibration_error(y_test, table, model.classes_, n_bins=15),
                seconds,
                note,
            )
        )
    return LossRows(tuple(rows))


def tasks(settings: Settings) -> list[Task[LossRows]]:
    """Return a task for each draw and factor."""
    sizes, seeds = ((20,), 2) if settings.quick else (SIZES, SEEDS)
    found = []
    for n in sizes:
        methods = (MODE, TEMPERATURE, BAGGING, DIAGONAL) if settings.quick or n > 20 else ALL
        for seed in range(seeds):
            for factor in FACTORS[:2] if settings.quick else FACTORS:
                label = f"{n} sentences, draw {seed}, {factor:g} C"
                found.append(Task(label, partial(compute, settings, n, seed, factor, methods)))
    return found


def present(rows: Sequence[LossRows]) -> Findings:
    """Lay out means and standard errors over the draws."""
    flat = [row for some in rows for row in some.methods]
    header = (
        "sentences",
        "C",
        "method",
        "log-loss of labels",
        "of labellings",
        "error %",
        "calibration",
        "CPU s",
        "note",
    )
    body: list[tuple[Cell, ...]] = []
    means: dict[tuple[int, float, str], float] = {}
    for n, factor, method in dict.fromkeys((row.n, row.factor, row.method) for row in flat):
        some = [row for row in flat if (row.n, row.factor, row.method) == (n, factor, method)]
        values = np.array([(row.token, row.sequence, 100 * row.error, row.calibration, row.seconds) for row in some])
        good = values[np.isfinite(values[:, 0])]
        n_odd = sum(bool(row.note) for row in some)
        note = f"{n_odd} of {len(some)} {max(some, key=lambda row: row.note).note}" if n_odd else ""
        if not len(good):
            body.append((n, f"{factor:g} x", method, None, None, None, None, float(values[:, 4].mean()), note))
            continue
        error = good[:, 0].std(ddof=1) / np.sqrt(len(good)) if len(good) > 1 else float("nan")
        means[n, factor, method] = float(good[:, 0].mean())
        token = f"{good[:, 0].mean():.3f} ± {error:.3f}"
        rest = [float(one) for one in good[:, 1:].mean(axis=0)]
        body.append((n, f"{factor:g} x", method, token, *rest, note))
    smallest = min(row.n for row in flat)
    best = {
        factor: min((means[key], key[2]) for key in means if key[:2] == (smallest, factor))
        for factor in dict.fromkeys(row.factor for row in flat)
    }
    said = "; ".join(f"{factor:g} C: {method}, {value:.3f}" for factor, (value, method) in best.items())
    return Findings(
        summary=(f"Smallest log-loss of labels with {smallest} sentences, C by evidence and times a factor: {said}.",),
        tables=(
            Table(
                "CoNLL-2000 with seven labels; means over draws of the training sentences, with standard errors.",
                header,
                tuple(body),
                (
                    "C is chosen by evidence from 1, 3, 10 and 30, and multiplied.",
                    "Log-losses of labellings are for each token; those of averages are too large with few draws.",
                ),
            ),
        ),
        differences=("The paper has other data: questions in frequently asked questions, and sketches.",),
    )


LOSSES = Part("losses", "Log-loss, error and calibration", (), tasks, present)
