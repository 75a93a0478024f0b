"""Taggers that see the same symbols: counted and trained HMMs, perceptron and CRF, chosen on held-out data."""

import itertools
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from dualfield.data.symbols import SymbolTable
from dualfield.estimators import CRF, DiscriminativeHMM
from reproductions.fits import stop_if_interrupted
from reproductions.records import Settings
from reproductions.yu_data import (
    LETTERS,
    MORE_SENTENCES,
    SENTENCES,
    Sequences,
    Study,
    attributes,
    study,
)

COUNTED, PERCEPTRON, FIELD = "HMM, counted", "structured perceptron", "CRF"
TRAINED = "HMM, trained, {}, η = {:g}"  # prior, eta
GAPPED = TRAINED + ", gap {:g}"
# Larger ones take many more rounds. With "prob" it is η times the number of sequences that counts.
ETAS: Mapping[str, Mapping[str, Sequence[float]]] = {
    SENTENCES: {"prob": (0.003, 0.01, 0.03, 0.1), "count": (1.0, 3.0)},
    MORE_SENTENCES: {"prob": (0.001, 0.003, 0.01, 0.03), "count": (1.0, 3.0)},
    LETTERS: {"prob": (0.001, 0.003, 0.01, 0.03, 0.1), "count": (1.0, 3.0)},
}
GAP = 1e-2  # relative, of the trained HMMs: the default of the library
GAPS: Sequence[float] = (0.1, 1e-3, 1e-4, 1e-6)  # others, to see what they change
_GAPPED: Sequence[tuple[str, float]] = (("prob", 0.003), ("count", 1.0))
_TIGHT, _BLOCKS = 1e-6, (16, 300)  # the same optimum, found in other ways
EPOCHS = 20
SMOOTHINGS = tuple(itertools.product((0.1, 1.0), (0.003, 0.01, 0.03, 0.1, 0.3)))  # start and transitions; emissions
CS = (0.5, 1.5, 5.0, 15.0, 50.0, 150.0)
_MOST_ROUNDS = 200
_LACKING = 1e-6  # what a row must lack to count as lacking


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One model: its setting, how many labels of each sequence are wrong, and how training went.

    Attributes
    ----------
    setting : str
        What was chosen on the development part; empty where nothing was.
    dev, test, train : ndarray of shape (n_sequences,)
        Wrong labels. The model of `dev` has not seen the development part.
    rounds, gap, lacking, seconds
        Iterations, relative duality gap and number of table rows that sum to less than one, where there are such; and
        wall-clock time of the fit to all training sequences.
    """

    setting: str
    dev: NDArray[np.int64]
    test: NDArray[np.int64]
    train: NDArray[np.int64]
    rounds: int | None
    gap: float | None
    lacking: int | None
    seconds: float


def models(settings: Settings, data: str) -> list[str]:
    """Return the names of all models of a study, those with which others are compared first."""
    return [COUNTED, FIELD, PERCEPTRON, *_trained(settings, data)]


def _trained(settings: Settings, data: str) -> dict[str, dict[str, Any]]:
    """Return the trained HMMs of a study by name, with their parameters."""
    few = slice(1 if settings.quick else None)
    found = {
        TRAINED.format(prior, eta): {"prior": prior, "eta": eta, "tol": GAP}
        for prior, etas in ETAS[data].items()
        for eta in etas[few]
    }
    if data == SENTENCES:
        for prior, eta in _GAPPED[few]:
            same = {"prior": prior, "eta": eta}
            found |= {GAPPED.format(prior, eta, tol): {**same, "tol": tol} for tol in GAPS[few]}
            found |= {
                f"{GAPPED.format(prior, eta, _TIGHT)}, {n_blocks} blocks": {**same, "tol": _TIGHT, "n_blocks": n_blocks}
                for n_blocks in _BLOCKS
            }
    return found


@lru_cache(maxsize=64)  # a model is measured once, and compared several times
def measured(settings: Settings, data: str, model: str) -> Measured:
    """Choose the setting of a model on the development part, fit it to all training sequences, and measure it.

    Parameters
    ----------
    settings : Settings
        Where the data is, threads and seed; a quick run has short grids.
    data : str
        The name of a study.
    model : str
        One of :func:`models`.

    Returns
    -------
    Measured
        The model on development, test and training part.
    """
    whole = study(settings, data)
    candidates = _candidates(settings, data, model)
    tried = [_fitted(settings, whole, whole.fitted, one) for one in candidates]
    on_dev = [tagger.wrong_in(whole.dev) for tagger in tried]
    best = int(np.argmin([wrong.sum() for wrong in on_dev]))
    same = whole.fitted is whole.train
    tagger = tried[best] if same else _fitted(settings, whole, whole.train, candidates[best])
    estimator = tagger.estimator
    # A perceptron minimises nothing, and counting is exact.
    solved = model not in (PERCEPTRON, COUNTED)
    return Measured(
        candidates[best].text if len(candidates) > 1 else "",
        on_dev[best],
        tagger.wrong_in(whole.test),
        tagger.wrong_in(whole.train),
        rounds=int(estimator.n_iter_) if model != COUNTED else None,
        gap=float(estimator.dual_gap_ / (estimator.objective_ - estimator.dual_gap_)) if solved else None,
        lacking=rows_lacking(estimator) if isinstance(estimator, DiscriminativeHMM) else None,
        seconds=tagger.seconds,
    )


def rows_lacking(model: Any) -> int | None:
    """Return how many rows of a model's tables sum to less than one; None where the solver has not converged."""
    mass = np.concatenate([np.ravel(rows) for rows in model.missing_mass_.values()])
    return None if np.isnan(mass).any() else int(np.sum(mass > _LACKING))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One setting: parameters of an estimator, and how to write what was chosen."""

    parameters: Mapping[str, Any]
    text: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Tagger:
    """A fitted model, what it must be given in place of symbols, and how long the fit took."""

    estimator: Any
    table: SymbolTable | None
    seconds: float

    def wrong_in(self, part: Sequences) -> NDArray[np.int64]:
        X = part.X if self.table is None else attributes(part.X, self.table)
        return part.wrong(self.estimator.predict(X))


def _candidates(settings: Settings, data: str, model: str) -> list[_Candidate]:
    """Return the settings among which the development part chooses."""
    if model == COUNTED:
        grid = SMOOTHINGS[:2] if settings.quick else SMOOTHINGS
        return [_counted(*pair) for pair in grid]
    if model == FIELD:
        return [_Candidate({"C": C}, f"C = {C:g}") for C in (CS[:2] if settings.quick else CS)]
    if model == PERCEPTRON:
        return [_Candidate({"solver": "perceptron", "max_iter": EPOCHS})]
    # The reference is that of the counted HMM, with its smoothing.
    chosen = measured(settings, data, COUNTED).setting
    base = next(one for one in _candidates(settings, data, COUNTED) if one.text == chosen)
    return [_Candidate({**base.parameters, **_trained(settings, data)[model], "max_iter": _MOST_ROUNDS})]


def _counted(tables: float, emission: float) -> _Candidate:
    smoothing = {"start": tables, "transition": tables, "emission": emission}
    return _Candidate({"eta": 0.0, "smoothing": smoothing}, f"add {tables:g}, {emission:g}")


def _fitted(settings: Settings, whole: Study, part: Sequences, candidate: _Candidate) -> _Tagger:
    parameters, table = dict(candidate.parameters), None
    X: Any = part.X
    if "eta" in parameters:
        estimator: Any = DiscriminativeHMM(n_jobs=settings.threads, **parameters, **whole.rare)
    else:
        estimator = CRF(features="all", n_jobs=settings.threads, random_state=settings.seed, **parameters)
        table = symbol_table(part, whole.rare)
        X = attributes(X, table)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap stands in the record
        estimator.fit(X, part.y)
    seconds = time.perf_counter() - began
    stop_if_interrupted(estimator)
    return _Tagger(estimator, table, seconds)


def symbol_table(part: Sequences, rare: Mapping[str, Any]) -> SymbolTable:
    """Return the symbols of an HMM that is trained on sequences."""
    flat = list(itertools.chain.from_iterable(part.X))
    values = flat if isinstance(flat[0], str) else np.array(flat, dtype=np.int64)
    return SymbolTable.fit(values, rare.get("min_count", 1), rare.get("rare"))
