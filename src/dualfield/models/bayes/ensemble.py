"""Several weights in the place of one: probabilities are the means of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from dualfield.data import Batch
from dualfield.data.arrays import Floats
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.models.labelling_order import LabellingOrder, labelling_order
from dualfield.models.listings import SpanList
from dualfield.models.possible import possible_examples
from dualfield.models.spans import PredictedSpan, SpanInterval, marked_spans, span_probabilities
from dualfield.models.structured import NO_SPREAD, StructuredModel, split_rows
from dualfield.models.temperature_scaling import HeldOut
from dualfield.scores.stored import LinearWeights
from dualfield.structures import Bounds, Scores
from dualfield.structures.checks import draw_seed

NO_LIST = (
    "k_best of averaged probabilities has no exact answer: the best labellings of a mean are not among those of its "
    "terms. Use sample, or predict_proba and predict_spans for the probabilities of parts."
)
# Of the temperature of the training. Below it the models only vote: on labels that some model votes for nothing changes
# any more, and others, of which few held-out examples tell, cost more and more.
_LEAST = 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOutDraws(HeldOut):
    """Scores of several models: labels have the means of their probabilities."""

    others: tuple[Scores, ...] = ()

    def losses(self, temperature: float, n_jobs: int | None) -> Floats:
        """Return -log p(label) of each node at a temperature."""
        rows = np.mean(
            [self.structure.marginals(one, temperature=temperature, n_jobs=n_jobs).node for one in self.others], axis=0
        )
        return np.asarray(-np.log(np.maximum(rows[np.arange(len(self.codes)), self.codes], 1e-300)))


@dataclass(frozen=True, eq=False, kw_only=True)
class EnsembleModel(StructuredModel):
    """A structure with linear scores by each of several weights.

    Probabilities of labels and of their pairs are means over the weights. ``predict`` maximises the expected number of
    right labels among the labellings that the structure allows. The weights of the base class, which ``coef_`` and
    explanations show, are those of one model.

    Parameters
    ----------
    draws : array of shape (n_draws, n_parameters), or WeightDraws
        The weights, or what makes them again and again.

    Examples
    --------
    >>> from dualfield import BaggedTagger, CRF
    >>> X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 3, [["x", "y"], ["y", "x"]] * 3
    >>> BaggedTagger(CRF(), n_estimators=4, random_state=0).fit(X, y).model_.draws.shape[0]
    4
    """

    draws: Any

    @classmethod
    def of(cls, model: StructuredModel, draws: Any) -> Self:
        """Return a model with the weights of several, in the order of the score map."""
        own = {field.name: getattr(model, field.name) for field in fields(StructuredModel)}
        return cls(**own, draws=np.asarray(draws, dtype=np.float64) if isinstance(draws, list) else draws)

    @property
    def n_models(self) -> int:
        """Number of distributions that are averaged."""
        return len(self.draws)

    @property
    def looks_up(self) -> bool:
        """Weights are in memory."""
        return False

    def each_scores(
        self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1, *, known: Any = None
    ) -> Iterator[Scores]:
        """Yield the scores by each of the weights; input is read once."""
        read = self.scored(X, lengths, n_threads)
        allowed = None if known is None else self.allowed_labels(known, read.nodes.shape)
        for draw in self.draws:
            scores = read.score_map.scores(draw, read.nodes, read.pairs, n_threads)
            yield scores if allowed is None else scores.only(allowed)

    def _means(
        self,
        X: Any,
        lengths: ArrayLike | None,
        n_threads: int,
        *,
        pairwise: bool = False,
        known: Any = None,
        question: str | None = "predict_proba",
    ) -> tuple[Scores, Floats, Floats | None]:
        """Return the scores by the last weights, and the mean probabilities of labels and of pairs.

        A question needs exact answers; None: bounds will do.
        """
        node: Any = 0.0
        clique: Any = None
        T = self.probability_temperature
        for scores in self.each_scores(X, lengths, n_threads, known=known):
            if question is not None:
                self.need_exact(question, scores)
            cliques = "each" if pairwise else None
            found = self.structure.marginals(scores, temperature=T, cliques=cliques, n_jobs=n_threads)
            node = node + found.node / self.n_models
            if found.clique is not None:
                clique = found.clique / self.n_models + (0.0 if clique is None else clique)
        return scores, node, clique

    # Answers

    def predict(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1, *, known: Any = None) -> Any:
        """Return the labelling of each example with the largest expected number of right labels."""
        return self.bounded_predict(X, lengths, n_threads, known=known)[0]

    def bounded_predict(
        self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1, *, known: Any = None
    ) -> tuple[Any, Bounds]:
        """Return the same, with the expected numbers."""
        scores, node, _ = self._means(X, lengths, n_threads, known=known, question="predict")
        found = self.structure.bounded_argmax(_expected(scores, node), n_jobs=n_threads)
        return self.decoded(found.labels, scores.shape), found.bounds

    def best_codes(
        self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1
    ) -> tuple[Shape, NDArray[np.int32]]:
        """Return the shape of examples, and the codes of what is predicted for them."""
        scores, node, _ = self._means(X, lengths, n_threads, question="predict")
        return scores.shape, self.structure.argmax(_expected(scores, node), n_jobs=n_threads)

    def predict_possible(self, X: Any, n_threads: int = 1, *, known: Any = None) -> tuple[list[Any], dict[int, str]]:
        """Return what is predicted, None for examples that have no labelling, and why they have none."""
        X = X if isinstance(X, Batch) else list(X)
        found, reasons = super().predict_possible(X, n_threads, known=known)
        # Without reasons the base class takes the best labellings by its own weights, which are those of one model.
        return found if reasons else self.predict(X, None, n_threads, known=known), reasons

    def node_probabilities(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> Floats:
        """Return the mean probabilities of labels, a row for each node of all examples."""
        return self._means(X, lengths, n_threads)[1]

    def predict_proba(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        n_threads: int = 1,
        *,
        pairwise: bool = False,
        known: Any = None,
    ) -> Any:
        """Return the mean probability of each label at each node, and with `pairwise` of labels of neighbours."""
        self.need_pairs(pairwise)
        scores, node, clique = self._means(X, lengths, n_threads, pairwise=pairwise, known=known)
        return self.by_example(node, clique, scores.shape)

    def beliefs(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        n_threads: int = 1,
        *,
        pairwise: bool = False,
        known: Any = None,
    ) -> Any:
        """Return mean probabilities, or where answers are bounds the means of the beliefs that these have."""
        self.need_pairs(pairwise)
        scores, node, clique = self._means(X, lengths, n_threads, pairwise=pairwise, known=known, question=None)
        return self.by_example(node, clique, scores.shape)

    def log_probabilities(self, X: Any, y: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> Floats:
        """Return the logarithm of the mean probability of given labellings."""
        T, found = self.probability_temperature, []
        for scores in self.each_scores(X, lengths, n_threads):
            self.need_exact("score_sequences", scores)
            codes = self.encoded(y, scores.shape)
            total = self.structure.log_partition(scores, temperature=T, n_jobs=n_threads)
            found.append((self.structure.score(scores, codes, n_jobs=n_threads) - total) / T)
        return np.asarray(logsumexp(found, axis=0) - np.log(len(found)))

    def k_best(self, *_: Any, **__: Any) -> Any:
        """Refuse: there is no exact answer."""
        raise ValueError(NO_LIST)

    def sample(
        self,
        X: Any,
        n_samples: int,
        random_state: Any,
        lengths: ArrayLike | None = None,
        n_threads: int = 1,
        *,
        known: Any = None,
    ) -> list[list[Any]]:
        """Draw labellings of each example: for each draw one of the weights, then a labelling under it."""
        rng = np.random.default_rng(draw_seed(random_state))
        owner = rng.integers(self.n_models, size=n_samples)
        by_draw: list[Any] = [None] * n_samples
        n_examples = 0
        for at, scores in enumerate(self.each_scores(X, lengths, n_threads, known=known)):
            mine, n_examples = np.flatnonzero(owner == at), scores.n_examples
            seed, T = int(rng.integers(2**31 - 1)), self.probability_temperature
            drawn = self.structure.sample(scores, len(mine), random_state=seed, temperature=T, n_jobs=n_threads)
            for place, codes in zip(mine.tolist(), drawn, strict=True):
                by_draw[place] = self.decoded(codes, scores.shape)
        return [[one[i] for one in by_draw] for i in range(n_examples)]

    def spans(
        self,
        X: Any,
        outside: str,
        min_proba: float,
        lengths: ArrayLike | None = None,
        n_threads: int = 1,
        *,
        return_std: bool = False,
    ) -> list[list[Any]]:
        """Return the spans of the predicted labellings with the means of their probabilities, and their spread."""
        if return_std and self.n_models < 2:
            raise ValueError(NO_SPREAD)
        scores, node, _ = self._means(X, lengths, n_threads, question="predict_spans")
        codes = self.structure.argmax(_expected(scores, node), n_jobs=n_threads)
        found, T = marked_spans(self.structure, scores, codes, self.names, outside), self.probability_temperature
        each = np.array(
            [
                span_probabilities(self.structure, one, found, self.names, outside, T, n_threads)
                for one in self.each_scores(X, lengths, n_threads)
            ]
        )
        means, stds = each.mean(axis=0), each.std(axis=0, ddof=min(1, self.n_models - 1))
        result: list[list[Any]] = SpanList(SpanList() for _ in range(scores.n_examples))
        for (i, kind, start, stop), p, std in zip(found, means.tolist(), stds.tolist(), strict=True):
            if p >= min_proba:
                span = PredictedSpan(kind, start, stop, p)
                result[i].append(SpanInterval(*span, std) if return_std else span)
        return result

    def labelling_order(
        self, owner: str, X: Any, by: str, per: str, lengths: ArrayLike | None = None, n_threads: int = 1
    ) -> LabellingOrder:
        """Order examples by how little is known about their labels."""
        scores, node, _ = self._means(X, lengths, n_threads, question="rank_for_labelling")
        rows, log_best, draws, T = split_rows(node, scores.offsets), None, None, self.probability_temperature
        if by == "least_confidence":
            best = self.decoded(self.structure.argmax(_expected(scores, node), n_jobs=n_threads), scores.shape)
            log_best = self.log_probabilities(X, best, lengths, n_threads)
        if by == "bald" and self.n_models > 1:
            each = self.each_scores(X, lengths, n_threads)
            draws = [[self.structure.marginals(one, temperature=T, n_jobs=n_threads).node] for one in each]
        return labelling_order(owner, by, per, rows, log_best, draws, scores.shape.n_tokens)

    def held_out(self, X: Any, y: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> HeldOut:
        """Return the scores of examples that it was not trained on, and their labels.

        Sentences that a grammar cannot parse are left out, as by one model.
        """
        X, y, lengths = possible_examples(self, X, y, lengths, n_threads)
        each = tuple(self.each_scores(X, lengths, n_threads))
        self.need_exact("calibrate", each[0])
        codes, least = self.encoded(y, each[0].shape, as_trained=True), _LEAST * (self.temperature or 1.0)
        return HeldOutDraws(self.structure, each[0], codes, least=least, others=each)

    # Records

    def record(self) -> Fields:
        """Return what the model consists of."""
        return {"model": super().record(), "draws": self.draws[:, self.score_map.used]}

    @classmethod
    def from_record(cls, record: Record) -> EnsembleModel:
        """Make a model of its record, which is checked."""
        model = StructuredModel.from_record(record.child("model"))
        whole = model.weights if isinstance(model.weights, LinearWeights) else model.weights.whole
        used = whole.score_map.used
        kept = record.array("draws", np.float64, (None, int(used.sum())), finite=True)
        record.check(len(kept) > 0, "it must have weights of at least one model.")
        draws = np.zeros((len(kept), used.size))
        draws[:, used] = kept
        return cls.of(replace(model, weights=whole), draws)


def _expected(scores: Scores, node: Floats) -> Scores:
    """Return scores under which a labelling scores its expected number of right labels; -inf stays."""
    return Scores(np.where(np.isneginf(scores.node), -np.inf, node), shape=scores.shape)
