"""Probabilities by one model, with a temperature, by several models, and by posteriors; C right and too large."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dualfield import CRF, BaggedTagger, BayesianCRF
from dualfield.metrics import calibration_bins, calibration_error, token_log_loss
from dualfield.metrics.calibration import confidences
from reproductions.bayesian_data import Drawn, draw
from reproductions.bayesian_loss_tables import present
from reproductions.bayesian_words import draw_words
from reproductions.records import Part, Settings, Task

MODE, TEMPERATURE, BAGGING = "one model", "temperature, 4 folds", "bagging, 10 models"
DIAGONAL, FULL, POWER_EP, HMC = "VB diagonal", "VB full", "power EP", "HMC"
FEW = (MODE, TEMPERATURE, BAGGING, DIAGONAL)  # for any number of weights
ALL = (*FEW, FULL, POWER_EP, HMC)
FACTORS: tuple[float, ...] = (1.0, 10.0, 100.0)
CS = (1.0, 3.0, 10.0, 30.0)
SEEDS, N_TEST, N_BINS = 5, 150, 10
TEXT_SIZES, WORD_SIZES = (20, 50, 200, 1000), (20, 50, 100, 200)


@dataclass(frozen=True, slots=True)
class LossRow:
    """One method on one draw of the training sequences.

    Attributes
    ----------
    n, seed : int
        Training sequences, and which draw of them.
    factor, C : float
        How much too large C is, and C.
    method : str
        How probabilities were found.
    token, sequence, error, calibration : float
        Log-loss of labels and, for each token, of whole labellings; share of wrong labels; calibration error. NaN where
        the method failed.
    seconds : float
        Processor time of the fit.
    bins : tuple of (float, float, int)
        Reliability: mean probability of the most probable label, how often it is right, and number of tokens.
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
    bins: tuple[tuple[float, float, int], ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class LossRows:
    """All methods and values of C on one draw."""

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


def measured(method: str, factor: float, C: float, data: Drawn, seed: int) -> LossRow:
    """Fit one method and score it on the test sequences whose labels occur in training."""
    began, n, nan = time.process_time(), len(data.X), float("nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = fitted(method, C, data.X, data.y, seed)
        except RuntimeError:
            seconds = time.process_time() - began
            return LossRow(n, seed, factor, C, method, nan, nan, nan, nan, seconds, note="failed")
    seconds = time.process_time() - began
    known = set(model.classes_)
    kept = [at for at, labels in enumerate(data.y_test) if known.issuperset(labels)]
    X_test, y_test = [data.X_test[at] for at in kept], [data.y_test[at] for at in kept]
    table = model.predict_proba(X_test)
    bins = calibration_bins(*confidences(y_test, table, model.classes_), n_bins=N_BINS)
    shown = zip(bins.confidence.tolist(), bins.accuracy.tolist(), bins.count.tolist(), strict=True)
    return LossRow(
        n,
        seed,
        factor,
        C,
        method,
        token_log_loss(y_test, table, model.classes_),
        float(-model.score_sequences(X_test, y_test).sum() / sum(map(len, y_test))),
        1.0 - model.score(X_test, y_test),
        calibration_error(y_test, table, model.classes_, n_bins=15),
        seconds,
        tuple((float(a), float(b), int(c)) for a, b, c in shown if c),
        "" if getattr(model, "converged_", True) else "not converged",
    )


def compute(data: Callable[[], Drawn], seed: int, factors: Sequence[float], methods: Sequence[str]) -> LossRows:
    """Choose C by evidence, multiply it, and fit and score all methods."""
    drawn = data()
    C = CRF().evidence(drawn.X, drawn.y, Cs=list(CS)).best.C
    return LossRows(
        tuple(measured(method, factor, factor * C, drawn, seed) for factor in factors for method in methods)
    )


def text_tasks(settings: Settings) -> list[Task[LossRows]]:
    """Return a task for each number and draw of training sentences."""
    return _tasks(settings, draw, TEXT_SIZES, "sentences", ALL)


def word_tasks(settings: Settings) -> list[Task[LossRows]]:
    """Return a task for each number and draw of training words; draws by HMC for the fewest."""
    return _tasks(settings, draw_words, WORD_SIZES, "words", (*FEW, HMC))


def _tasks(
    settings: Settings, source: Callable[..., Drawn], sizes: Sequence[int], what: str, all_methods: Sequence[str]
) -> list[Task[LossRows]]:
    n_test, seeds = N_TEST, SEEDS
    factors: Sequence[float] = FACTORS
    if settings.quick:
        sizes, n_test, seeds, factors, all_methods = (20,), 40, 2, FACTORS[:2], FEW
    found = []
    for n in sizes:
        methods = all_methods if n == sizes[0] else FEW
        for seed in range(seeds):
            data = partial(source, settings, n, seed, n_test)
            found.append(Task(f"{n} {what}, draw {seed}", partial(compute, data, seed, factors, methods)))
    return found


TEXT = "CoNLL-2000 with seven labels"
WORDS = "Handwritten words"
LOSSES = Part("losses", f"{TEXT}: log-loss, error and calibration", (), text_tasks, partial(present, TEXT, "text"))
LETTERS = Part("words", f"{WORDS}: log-loss, error and calibration", (), word_tasks, partial(present, WORDS, "words"))
