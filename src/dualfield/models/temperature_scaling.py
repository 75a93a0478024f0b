"""One temperature for all probabilities, chosen on data that the model was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data.arrays import Floats
from dualfield.data.records import Fields, Record
from dualfield.structures import Scores, Structure
from dualfield.structures.checks import n_threads
from dualfield.structures.registry import structure_of

__all__ = ["Calibration", "choose_temperature", "held_out_rows"]

_GRID = np.linspace(-9.0, 9.0, 7)  # of log T, beside the spread of the scores
_SAME = 1e-6  # nats for each label: log-losses that differ by less are as good
_ENOUGH = 1e-5  # of log T: the log-loss is flat there, and differs by its square


@dataclass(frozen=True)
class Calibration:
    """How a temperature was chosen.

    Attributes
    ----------
    temperature : float
        T, by which scores are divided.
    log_loss : float
        Mean of -log p(label) over nodes at T.
    log_loss_at_one : float
        The same at T = 1, which takes margins for log-odds.
    n_nodes : int
        Nodes that it was chosen on.
    open_end : {"", "small", "large"}
        Whether the log-loss is as small at the smallest T of the search, or at the largest.

    Examples
    --------
    >>> from dualfield.models.temperature_scaling import Calibration
    >>> Calibration(0.5, 0.1, 0.2, 100).temperature
    0.5
    """

    temperature: float
    log_loss: float
    log_loss_at_one: float
    n_nodes: int
    open_end: str = ""

    @property
    def doubt(self) -> str | None:
        """What is to be said where the labels do not tell how small, or how large, T may be; None: they do."""
        if not self.open_end:
            return None
        given, at = f"{self.n_nodes:,} labels that calibrate was given", f"at T = {self.temperature:.2g}"
        if self.open_end == "large":
            return (
                f"The {given} are no more probable under the model than by chance, and do not say how large T may be: "
                f"{at} all labellings are about as probable. See whether they are the labels of these examples."
            )
        is_right = self.log_loss <= _SAME
        found = f"All {given} are predicted right. That does not say" if is_right else f"The {given} do not say"
        return (
            f"{found} how small T may be: {at} all probabilities are as close to 0 or 1 as they come. Use more "
            "examples, on which the model was not trained."
        )

    def record(self) -> Fields:
        """Return what it consists of."""
        return asdict(self)

    @classmethod
    def from_record(cls, record: Record) -> Calibration:
        """Make a calibration of its record, which is checked."""
        log_loss, at_one = record.number("log_loss"), record.number("log_loss_at_one")
        temperature, n_nodes = record.number("temperature", above=0.0), record.integer("n_nodes")
        has_end = "open_end" in record.names()  # older files do not have it
        open_end = record.text("open_end", ("", "small", "large")) if has_end else ""
        return cls(temperature, log_loss, at_one, n_nodes, open_end)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores of examples that a model was not trained on, and their true labels.

    Attributes
    ----------
    structure : Structure
        Gives the marginals.
    scores : Scores
        Of the examples.
    codes : int32 array of shape (n_nodes,)
        The true labels.
    first_states : int array of shape (n_classes,), default=None
        Where labels have several states: the first of each, and its probability is that of all of them.
    least : float, default=0
        The smallest temperature that the search may go to.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.models.temperature_scaling import HeldOut
    >>> from dualfield.structures import Scores, Single
    >>> one = HeldOut(Single(2), Scores(np.array([[2.0, 0.0]])), np.array([0], dtype=np.int32))
    >>> one.losses(1.0, None).round(3)
    array([0.127])
    """

    structure: Structure
    scores: Scores
    codes: NDArray[np.int32]
    _: KW_ONLY
    first_states: NDArray[np.int64] | None = None
    least: float = 0.0

    @property
    def values(self) -> Floats:
        """What the temperature divides: the scores of labels, or those of cliques where labels have none."""
        for table in (self.scores.node, self.scores.transition):
            found = np.zeros(0) if table is None else table[np.isfinite(table)]
            if found.size and np.ptp(found) > 0.0:
                return found
        return np.zeros(0)

    def losses(self, temperature: float, n_jobs: int | None) -> Floats:
        """Return -log p(label) of each node at a temperature."""
        rows = self.structure.marginals(self.scores, temperature=temperature, n_jobs=n_jobs).node
        if self.first_states is not None:
            rows = np.add.reduceat(rows, self.first_states, axis=1)
        found: Floats = -np.log(np.maximum(rows[np.arange(len(self.codes)), self.codes], 1e-300))
        return found


def held_out_rows(classes: NDArray[Any], scores: Floats, y: Any) -> HeldOut:
    """Return the scores of rows that a model was not trained on, each with one class.

    Parameters
    ----------
    classes : array of shape (n_classes,)
        In the order of the scores.
    scores : array of shape (n, n_classes)
        Up to a constant for each row, logarithms of probabilities.
    y : array of shape (n,)
        The true classes.

    Returns
    -------
    HeldOut
        What a temperature is chosen by.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.models.temperature_scaling import held_out_rows
    >>> held_out_rows(np.array(["no", "yes"]), np.array([[2.0, 0.0]]), ["no"]).losses(1.0, None).round(3)
    array([0.127])
    """
    targets = np.asarray(y)
    if targets.shape != scores.shape[:1]:
        raise ValueError(f"y must have shape ({len(scores)},), a label for each row of X. Got {targets.shape}.")
    code_of = {label: code for code, label in enumerate(classes.tolist())}
    unknown = sorted(set(targets.tolist()) - code_of.keys(), key=str)
    if unknown:
        raise ValueError(f"y has labels not seen in training: {unknown}.")
    codes = np.array([code_of[label] for label in targets.tolist()], dtype=np.int32)
    rows = Scores(scores, np.arange(len(scores) + 1))
    return HeldOut(structure_of("held_out_rows", "single").for_labels(classes.tolist(), codes, rows.shape), rows, codes)


def choose_temperature(parts: Sequence[Any], n_jobs: int | None = None) -> Calibration:
    r"""Find the temperature at which the marginals of the true labels have the smallest log-loss.

    .. math::
        \min_T \; - \frac{1}{N} \sum_t \log p_T(y_t \mid x), \qquad p_T(y \mid x) \propto \exp(\mathrm{score}(y) / T)

    A search over a grid of log T, from where all labels are as likely to where only the best one is, refined around
    its best point.

    Parameters
    ----------
    parts : sequence of HeldOut
        Held-out examples, or others with ``codes``, ``values``, ``losses`` and ``least``; several parts are those of
        the folds of a cross-validation, each with a model of its own.
    n_jobs : int, default=None
        Number of threads.

    Returns
    -------
    Calibration
        The temperature and its log-loss.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.models.temperature_scaling import HeldOut, choose_temperature
    >>> from dualfield.structures import Scores, Single
    >>> node = np.array([[2.0, 0.0]] * 4)                     # right three times out of four
    >>> part = HeldOut(Single(2), Scores(node, np.arange(5)), np.array([0, 0, 0, 1], dtype=np.int32))
    >>> found = choose_temperature([part])
    >>> round(found.temperature, 3)                           # exp(2 / T) = 3
    1.82
    """
    import scipy.optimize  # slow to import, and predictions do without

    n_nodes, threads = sum(len(part.codes) for part in parts), n_threads(n_jobs)
    values = np.concatenate([part.values for part in parts])
    spread = float(np.std(values)) if values.size else 0.0

    def log_loss(log_temperature: float) -> float:
        temperature = float(np.exp(log_temperature))
        return float(np.concatenate([part.losses(temperature, threads) for part in parts]).mean())

    at_one = log_loss(0.0)
    if not spread > 0.0:  # the model says nothing: every temperature is as good
        return Calibration(1.0, at_one, at_one, n_nodes)
    with np.errstate(divide="ignore"):
        grid = np.unique(np.maximum(np.log(spread) + _GRID, np.log(max(part.least for part in parts))))
    losses = [log_loss(at) for at in grid]
    best = min(range(len(grid)), key=lambda place: (losses[place], abs(grid[place])))  # of equal ones, that near T = 1
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = scipy.optimize.minimize_scalar(log_loss, bounds=(low, high), method="bounded", options={"xatol": _ENOUGH})
    tried = [(at_one, 0.0), (losses[best], float(grid[best])), (float(found.fun), float(found.x))]
    least, at = min(tried, key=lambda one: (one[0], abs(one[1])))
    is_small, is_large = losses[0] <= least + _SAME and at < 0.0, losses[-1] <= least + _SAME and at > 0.0
    open_end = "small" if is_small else "large" if is_large else ""
    return Calibration(float(np.exp(at)), least, at_one, n_nodes, open_end)
