"""A posterior distribution of weights: what a Bayesian fit has found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data.arrays import Floats
from dualfield.data.records import Fields, Record
from dualfield.models.bayes.ensemble import EnsembleModel
from dualfield.models.structured import StructuredModel
from dualfield.scores.stored import LinearWeights
from dualfield.solvers.bayes.ep_prediction import predictive_scores
from dualfield.solvers.bayes.gaussian import Gaussian
from dualfield.structures import Scores

NO_LAPLACE = (
    "inference='laplace' has an evidence and covariances, but no predictions: averages over this Gaussian around the "
    "mode were bad wherever they were measured. Use calibrate(X, y, cv=5) of a CRF, a BaggedTagger, or inference='vb'."
)


@dataclass(frozen=True, eq=False)
class WeightDraws:
    """Draws from a Gaussian over weights, made again whenever they are asked for.

    Parameters
    ----------
    gaussian : Gaussian
        Of the weights that there are.
    places : int array of shape (d,)
        Where they are in the vector of parameters.
    size : int
        Length of that vector.
    n : int
        How many draws.
    seed : int
        Seed.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.models.bayes.model import WeightDraws
    >>> from dualfield.solvers.bayes.gaussian import Gaussian
    >>> draws = WeightDraws(Gaussian(np.ones(2), np.ones(2)), np.array([0, 2]), 4, 6, 0)
    >>> len(draws), np.mean(list(draws), axis=0)
    (6, array([1., 0., 1., 0.]))
    """

    gaussian: Gaussian
    places: NDArray[np.int64]
    size: int
    n: int
    seed: int

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[Floats]:
        for draw in self.gaussian.draws(self.n, self.seed):
            whole = np.zeros(self.size)
            whole[self.places] = draw
            yield whole


@dataclass(frozen=True, eq=False, kw_only=True)
class BayesianModel(EnsembleModel):
    """An ensemble whose weights are draws from a posterior; those of the base class are its mode.

    Parameters
    ----------
    inference : str
        How the posterior was found.
    prediction : {"draws", "ep"}
        Answers are averages over draws, or those of one distribution of labellings by expectation propagation.
    log_evidence : float
        Laplace's approximation of log p(y | X, C).
    elbo, elbo_error : float
        A lower bound of log p(y | X, C) by draws, and its standard error, of variational fits; else NaN.
    converged : bool
        Whether the inference ended at its tolerance.
    mean, std : array of shape (n_parameters,)
        Of the weights; zeros where there is none.
    """

    inference: str
    prediction: str
    log_evidence: float
    elbo: float
    elbo_error: float
    converged: bool
    mean: Floats
    std: Floats

    @property
    def n_models(self) -> int:
        """Number of distributions that are averaged."""
        return 1 if self.prediction == "ep" else len(self.draws)

    def each_scores(
        self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1, *, known: Any = None
    ) -> Iterator[Scores]:
        """Yield the scores by each draw, or those by EP; not where averages are known to be bad."""
        if self.inference == "laplace":
            raise ValueError(NO_LAPLACE)
        if self.prediction == "draws":
            return super().each_scores(X, lengths, n_threads, known=known)
        assert self.temperature is not None
        read = self.scored(X, lengths, n_threads)
        scores = predictive_scores(read.score_map, read.nodes, self.draws.gaussian, self.temperature)
        return iter([scores if known is None else scores.only(self.allowed_labels(known, scores.shape))])

    @classmethod
    def of_gaussian(
        cls, model: StructuredModel, gaussian: Gaussian, n_draws: int, seed: int, **facts: Any
    ) -> BayesianModel:
        """Return the model of a Gaussian over the weights."""
        places = np.flatnonzero(model.score_map.used)
        draws = WeightDraws(gaussian, places, model.parameters.size, n_draws, seed)
        return cls._with(model, draws, gaussian.mean, gaussian.std, places, facts)

    @classmethod
    def of_draws(cls, model: StructuredModel, points: Floats, mean: Floats, std: Floats, **facts: Any) -> BayesianModel:
        """Return the model of draws from the posterior itself, of shape (n_draws, d), and what more of them tell."""
        places = np.flatnonzero(model.score_map.used)
        draws = np.zeros((len(points), model.parameters.size))
        draws[:, places] = points
        return cls._with(model, draws, mean, std, places, facts)

    @classmethod
    def _with(
        cls,
        model: StructuredModel,
        draws: Any,
        mean: Floats,
        std: Floats,
        places: NDArray[np.int64],
        facts: dict[str, Any],
    ) -> BayesianModel:
        whole = np.zeros((2, model.parameters.size))
        whole[:, places] = mean, std
        ensemble = EnsembleModel.of(model, draws)
        return cls(**vars(ensemble), mean=whole[0], std=whole[1], **facts)

    # Records

    def record(self) -> Fields:
        """Return what the model consists of."""
        draws, used = self.draws, self.score_map.used
        facts: Fields = {
            "model": StructuredModel.record(self),
            "inference": self.inference,
            "prediction": self.prediction,
            "log_evidence": self.log_evidence,
            "elbo": self.elbo,
            "elbo_error": self.elbo_error,
            "converged": self.converged,
        }
        if isinstance(draws, WeightDraws):
            return facts | {"gaussian": draws.gaussian.record(), "n_draws": draws.n, "seed": draws.seed, "draws": None}
        return facts | {"gaussian": None, "draws": draws[:, used], "mean": self.mean[used], "std": self.std[used]}

    @classmethod
    def from_record(cls, record: Record) -> BayesianModel:
        """Make a model of its record, which is checked."""
        model = StructuredModel.from_record(record.child("model"))
        whole = model.weights if isinstance(model.weights, LinearWeights) else model.weights.whole
        model, size = replace(model, weights=whole), int(whole.score_map.used.sum())
        facts = {
            "inference": record.text("inference", ("vb", "power_ep", "hmc", "laplace")),
            "prediction": record.text("prediction", ("draws", "ep")),
            "log_evidence": record.number("log_evidence"),
            "elbo": record.number("elbo"),
            "elbo_error": record.number("elbo_error"),
            "converged": record.flag("converged"),
        }
        is_drawn = record.has("draws")
        record.check(not is_drawn or facts["prediction"] == "draws", "predictions by EP need a Gaussian.")
        record.check(record.has("gaussian") != is_drawn, "it must have a Gaussian of its weights, or draws.")
        if not is_drawn:
            gaussian = Gaussian.from_record(record.child("gaussian"), size)
            return cls.of_gaussian(model, gaussian, record.integer("n_draws", 1), record.integer("seed", 0), **facts)
        points = np.array(record.array("draws", np.float64, (None, size), finite=True))
        record.check(len(points) > 0, "it must have at least one draw.")
        mean, std = (np.array(record.array(name, np.float64, (size,), finite=True)) for name in ("mean", "std"))
        return cls.of_draws(model, points, mean, std, **facts)
