"""HMMs trained to predict, as Yu, Bertsekas and Rousu propose, beside counting, perceptron and CRF, measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from reproductions.records import Settings, Task
from reproductions.yu_data import study
from reproductions.yu_models import COUNTED, FIELD, measured, models


@dataclass(frozen=True, slots=True)
class TaggerRow:
    """One model in one study.

    Attributes
    ----------
    data, model, setting : str
        The study, the model, and what was chosen on the development part.
    n_train, n_dev, n_test : int
        Sequences.
    dev, train : float
        Shares of wrong labels.
    test, minus_counted, minus_field : (float, float)
        Share of wrong labels in the test part, and what it is minus that of the counted HMM and of the CRF, each with
        its standard error.
    rounds, gap, lacking, seconds
        Of the last training, see :class:`reproductions.yu_models.Measured`.
    """

    data: str
    model: str
    setting: str
    n_train: int
    n_dev: int
    n_test: int
    dev: float
    train: float
    test: tuple[float, float]
    minus_counted: tuple[float, float]
    minus_field: tuple[float, float]
    rounds: int | None
    gap: float | None
    lacking: int | None
    seconds: float


def share_with_error(wrong: NDArray[np.int64], lengths: NDArray[np.int64]) -> tuple[float, float]:
    r"""Return the share of wrong labels and its standard error, with sequences, not labels, as independent draws.

    With e_k wrong labels of n_k in sequence k the share is r = Σ e_k / Σ n_k, a ratio of two means, and

    .. math:: \mathrm{SE}(r)^2 = \frac{K}{K - 1} \, \frac{\sum_k (e_k - r n_k)^2}{(\sum_k n_k)^2} .

    Parameters
    ----------
    wrong : ndarray of shape (K,)
        e_k; or the differences of two models, for the standard error of the difference of their shares.
    lengths : ndarray of shape (K,)
        n_k.

    Returns
    -------
    float, float
        Share and standard error.

    Examples
    --------
    >>> import numpy as np
    >>> from reproductions.yu_taggers import share_with_error
    >>> share_with_error(np.array([1, 3]), np.array([10, 10]))
    (0.2, 0.1)
    """
    total, count = int(lengths.sum()), len(lengths)
    share = float(wrong.sum() / total)
    residuals = wrong - share * lengths
    spread = count / (count - 1) * float(residuals @ residuals) if count > 1 else float("nan")
    return share, math.sqrt(spread) / total


def compute(settings: Settings, data: str, model: str) -> TaggerRow:
    """Measure one model, and compare it with the counted HMM and the CRF sequence by sequence."""
    whole = study(settings, data)
    one, counted, field = (measured(settings, data, name) for name in (model, COUNTED, FIELD))
    lengths = whole.test.lengths
    return TaggerRow(
        data=data,
        model=model,
        setting=one.setting,
        n_train=len(whole.train.y),
        n_dev=len(whole.dev.y),
        n_test=len(whole.test.y),
        dev=float(one.dev.sum() / whole.dev.lengths.sum()),
        train=float(one.train.sum() / whole.train.lengths.sum()),
        test=share_with_error(one.test, lengths),
        minus_counted=share_with_error(one.test - counted.test, lengths),
        minus_field=share_with_error(one.test - field.test, lengths),
        rounds=one.rounds,
        gap=one.gap,
        lacking=one.lacking,
        seconds=one.seconds,
    )


def tasks(studies: Sequence[str], settings: Settings) -> list[Task[TaggerRow]]:
    """Return one task for each study and model."""
    return [
        Task(f"{data}, {model}", partial(compute, settings, data, model))
        for data in studies
        for model in models(settings, data)
    ]
