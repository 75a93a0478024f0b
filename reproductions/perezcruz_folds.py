"""The models of Pérez-Cruz et al. (2007), and their errors on the folds, which run side by side."""

import copy
import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from dualfield.estimators import ConditionalGraphicalModel
from reproductions.fits import stop_if_interrupted
from reproductions.perezcruz_data import Words, fold_split, handwritten_words
from reproductions.records import Settings

GRAPH1, GRAPH2, GRAPH3 = "Graph1", "Graph2", "Graph3"
CLAMPED_A, CLAMPED_B, CLAMPED_C = "clamped Graph2 (a)", "clamped Graph2 (b)", "clamped Graph2 (c)"

# C, kernel and M are the paper's. One classifier for each position is what its figures say, not its text.
SETUP: Mapping[str, Any] = {"C": 5.0, "gamma": "clique", "tying": "position", "unseen": "-inf"}

# What is trained; the models of letters of variant (a) are those of Graph1, which needs no training of its own.
TRAININGS: Mapping[str, Mapping[str, Any]] = {
    CLAMPED_A: {"graph": 1, "features": "tied_separately"},
    GRAPH2: {"graph": 1},
    GRAPH3: {"graph": 2},
    CLAMPED_B: {"graph": 1, "features": "tied"},
    CLAMPED_C: {"graph": 1, "features": "tied_printed"},
}
READINGS = (
    "The clamped feature is read in three ways. (a) Letters are trained as for Graph1 and summed over the pairs that "
    "training has seen at a position. (b) The tied weights of the text, trained together over these pairs. (c) The "
    "kernel that the paper prints, which ties nothing. Variant (a) counts the letters inside a word twice, once for "
    "each of their pairs."
)

# Letter and word error, each with what follows ±: Tables 1.2 and 1.3, and the text below them.
_CLAMPED_1 = ((0.097, 0.0006), (0.327, 0.0012))
_CLAMPED_9 = ((0.025, 0.0003), (0.120, 0.0019))
PAPER = {
    "1/9": {
        GRAPH1: ((0.271, 0.0009), (0.795, 0.0012)),
        GRAPH2: ((0.125, 0.0011), (0.369, 0.0013)),
        GRAPH3: ((0.058, 0.0005), (0.195, 0.0009)),
        **dict.fromkeys((CLAMPED_A, CLAMPED_B, CLAMPED_C), _CLAMPED_1),
    },
    "9/1": {
        GRAPH1: ((0.126, 0.0009), (0.528, 0.0037)),
        GRAPH2: ((0.031, 0.0003), (0.133, 0.0015)),
        GRAPH3: ((0.027, 0.0004), (0.128, 0.0019)),
        **dict.fromkeys((CLAMPED_A, CLAMPED_B, CLAMPED_C), _CLAMPED_9),
    },
}


@dataclass(frozen=True, slots=True)
class Errors:
    """Letter and word errors of a model, one for each fold or split.

    Examples
    --------
    >>> from reproductions.perezcruz_folds import Errors
    >>> mean, deviation, error = Errors("Graph1", (0.1, 0.3), (0.5, 0.7)).of("letter")
    >>> round(mean, 3), round(deviation, 3), round(error, 3)
    (0.2, 0.141, 0.1)
    """

    model: str
    letter: tuple[float, ...]
    word: tuple[float, ...]

    def of(self, kind: str) -> tuple[float, float, float]:
        """Return mean, standard deviation (n - 1 below) and standard error of the mean; `kind` is letter or word."""
        values = np.asarray(getattr(self, kind))
        deviation = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
        return float(values.mean()), deviation, deviation / float(np.sqrt(len(values)))


def fold_errors(
    settings: Settings, direction: str, folds: Sequence[int], trainings: Sequence[str], setup: Mapping[str, Any]
) -> tuple[tuple[Errors, ...], float]:
    """Train and test on each fold.

    Parameters
    ----------
    settings : Settings
        As many folds run at a time as there are threads, each in a process with one thread.
    direction : {"1/9", "9/1"}
        Train on one fold, or on all but one.
    folds : sequence of int
        Which folds.
    trainings : sequence of str
        Keys of TRAININGS.
    setup : mapping
        Parameters of all models.

    Returns
    -------
    tuple of Errors, float
        One for each model in the order of the paper, and wall-clock seconds.
    """
    began = time.perf_counter()
    tasks = (joblib.delayed(_measure)(settings, direction, fold, tuple(trainings), dict(setup)) for fold in folds)
    measured = joblib.Parallel(n_jobs=settings.threads)(tasks)
    found = tuple(
        Errors(model, tuple(one[model][0] for one in measured), tuple(one[model][1] for one in measured))
        for model in PAPER[direction]
        if model in measured[0]
    )
    return found, time.perf_counter() - began


def _measure(
    settings: Settings, direction: str, fold: int, trainings: Sequence[str], setup: Mapping[str, Any]
) -> dict[str, tuple[float, float]]:
    """Return letter and word error of each model on one fold."""
    train, test = fold_split(handwritten_words(settings), direction, fold)
    found = {}
    for name in trainings:
        model = fit_words(train, settings.seed, **{**TRAININGS[name], **setup})
        found[name] = test.errors(predict_words(model, test))
        if name == CLAMPED_A:
            found[GRAPH1] = test.errors(predict_words(letters_alone(model), test))
    return found


def fit_words(train: Words, seed: int, **parameters: Any) -> ConditionalGraphicalModel:
    """Fit a conditional graphical model to words."""
    model = ConditionalGraphicalModel(random_state=seed, **parameters)
    model.fit(train.X, train.y, lengths=train.lengths)
    stop_if_interrupted(model)
    return model


def predict_words(model: Any, test: Words) -> Any:
    """Return the predicted letters of all words, one after another."""
    return np.concatenate(model.predict(test.X, lengths=test.lengths))


def letters_alone(model: ConditionalGraphicalModel) -> ConditionalGraphicalModel:
    """Return Graph1 from a fitted model of variant (a), whose models of letters are the same ones."""
    alone: ConditionalGraphicalModel = copy.copy(model).set_params(graph=0, features="joint")
    alone._remember()
    alone._model = dataclasses.replace(model.model_, graph=0, features="joint")
    return alone
