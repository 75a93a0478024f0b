"""What a fit of labels that depend on each other has found: a frozen value that answers every question."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data import Batch, Labels, Vocabulary
from dualfield.data.arrays import Floats
from dualfield.data.checks import check_column_names
from dualfield.data.mapped_vocabulary import read_vocabulary
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.data.states import allowed_states
from dualfield.data.value_records import names_record, read_names
from dualfield.features import Template
from dualfield.features.reading import read_examples
from dualfield.models.labelling_order import LabellingOrder, labelling_order
from dualfield.models.listings import RankedLabellings
from dualfield.models.possible import need_labellings, possible_examples, predicted_where_possible
from dualfield.models.spans import predict_spans
from dualfield.models.temperature_scaling import Calibration, HeldOut
from dualfield.scores import Expansion, LinearScores
from dualfield.scores.stored import LinearWeights, Scored, StoredWeights
from dualfield.structures import Bounds, Scores, Structure
from dualfield.structures.registry import structure_from_record

NOT_CALIBRATED = (
    "Margins are not probabilities. Call calibrate(X, y) with data that the model was not trained on; it chooses the "
    "temperature at which they are."
)
NO_SPREAD = (
    "predict_spans(return_std=True) needs several models, whose answers differ: a BaggedTagger or a BayesianCRF with "
    "prediction='draws'."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class StructuredModel:
    """A structure with linear or kernel scores: it reads input, scores it, and answers.

    Weights are in memory, or in a mapped file that is looked up for every batch until all of them are asked for.
    Questions take the number of threads; answers do not depend on it.

    Parameters
    ----------
    labels : Labels
        Names and codes.
    structure : Structure
        How the labels of an example depend on each other.
    vocabulary, pair_vocabulary : Vocabulary or None
        Attributes of nodes, and those that score pairs of labels; None: input is numeric, or there are none.
    weights : LinearWeights or StoredWeights
        The score map and its weights.
    expansion : Expansion, default=None
        Node scores from a kernel; its columns are those that the weights take.
    pair_expansion : Expansion, default=None
        Scores of edges from a kernel, likewise.
    template : Template, default=None
        What makes attributes of columns; None: items come with attributes.
    temperature : float, default=1.0
        p(y | x) is proportional to exp(score(y) / T). None: scores are margins, which need a calibration first.
    calibration : Calibration, default=None
        The temperature that held-out data chose, which then takes the place of the other.
    column_names : tuple of str, default=None
        Names of the columns, where the training data had names.
    relaxation : str, default=None
        The relaxation that it was trained with; None: with exact answers.
    has_edge_features : bool, default=False
        Whether edges come with features of their own, which score pairs of labels.

    Examples
    --------
    >>> from dualfield import CRF
    >>> model = CRF().fit([[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]]).model_
    >>> model.predict([[["a"], ["b"]]])
    [['x', 'y']]
    """

    labels: Labels
    structure: Structure
    vocabulary: Vocabulary | None
    pair_vocabulary: Vocabulary | None
    weights: LinearWeights | StoredWeights
    expansion: Expansion | None = None
    pair_expansion: Expansion | None = None
    template: Template | None = None
    temperature: float | None = 1.0
    calibration: Calibration | None = None
    column_names: tuple[str, ...] | None = None
    relaxation: str | None = None
    has_edge_features: bool = False

    def __post_init__(self) -> None:
        """Check that the template makes what the vocabularies hold: attributes of tokens, and of pairs or not."""
        own_pairs = self.pair_vocabulary is not None and self.pair_vocabulary is not self.vocabulary
        given = self.template
        makes_pairs = given is not None and given.has_pairs
        fits = not makes_pairs if self.has_edge_features else own_pairs == makes_pairs
        if not fits or (given is not None and self.vocabulary is None):
            raise ValueError("The template does not make the attributes that the model has weights for.")

    # What it consists of

    def calibrated(self, calibration: Calibration | None) -> Self:
        """Return the same model with another temperature of its probabilities; None: that of the fit."""
        return replace(self, calibration=calibration)

    def with_parameters(self, parameters: Floats) -> Self:
        """Return the same model with other weights."""
        return replace(self, weights=LinearWeights(self.score_map, parameters))

    @property
    def classes(self) -> NDArray[Any]:
        """The labels, in the order of their codes."""
        return self.labels.classes

    @property
    def names(self) -> list[Any]:
        """The labels as a list."""
        names: list[Any] = self.labels.classes.tolist()
        return names

    @property
    def score_map(self) -> LinearScores:
        """Which features there are."""
        return self.weights.score_map

    @property
    def parameters(self) -> Floats:
        """Their weights, in the order of the score map."""
        return self.weights.parameters

    @property
    def n_features(self) -> int:
        """Number of weights, and of coefficients of a kernel."""
        n = self.weights.n_features + (0 if self.expansion is None else self.expansion.coefficients.size)
        pairs = self.pair_expansion
        return n if pairs is None else n + pairs.coefficients.size - pairs.n_labels  # whose columns score as they are

    @property
    def n_columns(self) -> int:
        """Columns of the input."""
        return self.weights.n_columns if self.expansion is None else self.expansion.n_columns

    @property
    def coef(self) -> scipy.sparse.csr_array | Floats:
        """Weights of the columns, shape (n_labels, n_columns): sparse for attributes, dense for numeric input."""
        self.need_columns("coef_")
        weights = self.score_map.state_weights(self.parameters)
        return weights if self.vocabulary is not None else weights.toarray()

    @property
    def transitions(self) -> Floats:
        """Weights of cliques, in the shape that the structure shows them in."""
        return self.structure.table_of(self.score_map.unpack_shared(self.parameters)[0])

    @property
    def start(self) -> Floats:
        """Weights of the first label."""
        return self.score_map.unpack(self.parameters).start

    @property
    def stop(self) -> Floats:
        """Weights of the last label."""
        return self.score_map.unpack(self.parameters).stop

    @property
    def probability_temperature(self) -> float:
        """T of the probabilities: that of the calibration, or of the training; margins have none before the first."""
        if self.calibration is not None:
            return self.calibration.temperature
        if self.temperature is not None:
            return self.temperature
        from sklearn.exceptions import NotFittedError  # slow to import, and seldom needed

        raise NotFittedError(NOT_CALIBRATED)

    @property
    def is_matrix(self) -> bool:
        """Whether input is a matrix, with a row for each example."""
        return self.structure.is_flat and self.vocabulary is None

    @property
    def looks_up(self) -> bool:
        """Whether weights are looked up in a mapped file, as input needs them."""
        stored = self.weights
        # Columns of numbers that node types have are checked against all attributes.
        waits = isinstance(stored, StoredWeights) and not stored.is_read and self.structure.label_sets is None
        return waits and self.vocabulary is not None and not self.has_kernel and not self.has_edge_features

    @property
    def has_kernel(self) -> bool:
        """Whether nodes or edges are scored by a kernel."""
        return self.expansion is not None or self.pair_expansion is not None

    def need_columns(self, what: str) -> None:
        """Raise where scores come from a kernel, which gives columns no weights."""
        if self.has_kernel:
            raise AttributeError(
                f"{what} needs weights of columns. With a kernel see expansion_, pair_expansion_ and transitions_."
            )

    # From input to scores

    def read(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> tuple[Batch, Batch | None]:
        """Turn input into rows of the columns seen in training; the second batch has those that score label pairs."""
        numeric = None if self.vocabulary is not None else self.n_columns
        nodes, pairs = read_examples(
            self.structure,
            X,
            lengths,
            self.template,
            self.vocabulary,
            self.pair_vocabulary,
            n_columns=numeric,
            n_edge_columns=self.n_edge_columns,
            n_threads=n_threads,
        )
        if self.template is None or isinstance(X, Batch):
            check_column_names(self.column_names, nodes, "as in training")
        if self.has_edge_features:
            pairs = self._no_edges(nodes) if pairs is None else pairs
        elif self.template is None or isinstance(X, Batch):
            if pairs is not None:
                raise ValueError("X has edge features; the training data had none.")
            is_linear = self.weights.has_pairs and self.pair_expansion is None
            pairs = self.structure.pair_batch(nodes) if is_linear else None
        return nodes, pairs if self.weights.has_pairs else None

    def _no_edges(self, nodes: Batch) -> Batch:
        """Return the features of no edges, which is what graphs without edges have."""
        offsets = self.structure.edge_offsets(nodes.shape)
        if offsets[-1]:
            raise ValueError("X has no edge features; the training data had some.")
        width = self._n_pair_columns or 0
        return Batch(offsets, width, np.zeros((0, width)))

    @property
    def _n_pair_columns(self) -> int | None:
        """Columns of what scores edges; None if nothing does."""
        pair = self.score_map.pair if self.pair_expansion is None else self.pair_expansion
        return None if pair is None else pair.n_columns

    @property
    def n_edge_columns(self) -> int | None:
        """Columns of numbers that edges come with; None if they have attributes, or nothing."""
        return self._n_pair_columns if self.has_edge_features and self.pair_vocabulary is None else None

    def scored(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> Scored:
        """Read input, and find the weights that score it: all, or those in a mapped file that it needs."""
        stored = self.weights
        if self.looks_up and not isinstance(X, Batch):
            assert isinstance(stored, StoredWeights)
            assert self.vocabulary is not None
            growing = Vocabulary() if self.template is None else None
            nodes, pairs = read_examples(self.structure, X, lengths, self.template, growing, grow=growing is not None)
            pairs = self.structure.pair_batch(nodes) if self.template is None else pairs
            return stored.scored(nodes, pairs, self.vocabulary, self.pair_vocabulary)
        nodes, pairs = self.read(X, lengths, n_threads)
        if self.pair_expansion is not None:
            pairs = self.pair_expansion.pair_columns(self.structure, nodes, pairs, n_threads)
        nodes = nodes if self.expansion is None else self.expansion.columns(nodes, n_threads)
        return Scored(self.score_map, self.parameters, nodes, pairs)

    def scores(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1, *, known: Any = None) -> Scores:
        """Return the scores of all labels and transitions, or of those that agree with what is known of the labels."""
        scores = self._all_scores(X, lengths, n_threads)
        return scores if known is None else scores.only(self.possible_labels(known, scores.shape))

    def _all_scores(self, X: Any, lengths: ArrayLike | None, n_threads: int) -> Scores:
        read = self.scored(X, lengths, n_threads)
        return read.score_map.scores(read.parameters, read.nodes, read.pairs, n_threads)

    def possible_labels(self, known: Any, shape: Shape, name: str = "known") -> NDArray[np.bool_]:
        """Return the same as :meth:`allowed_labels`, or raise an error that says what no tree agrees with."""
        allowed = self.allowed_labels(known, shape, name)
        need_labellings(self.structure, shape, allowed, name)
        return allowed

    def allowed_labels(self, known: Any, shape: Shape, name: str = "known") -> NDArray[np.bool_]:
        """Return which labels nodes may have, given labels, sets of labels, and None where nothing is known."""
        if self.structure.is_flat:
            allowed = allowed_states(known, shape.offsets, self.labels, name=name)
        else:
            allowed = shape.read_known(known, self.labels, name)
        sets = self.structure.part_sets(shape)
        if sets is not None:
            own = sets.nodes[sets.set_of_node]
            none = np.flatnonzero(~(allowed & own).any(axis=1))
            if none.size:
                node = int(none[0])
                given, fitting = (self.classes[flags[node]].tolist() for flags in (allowed, own))
                raise ValueError(f"{name}{shape.place(node)} allows {given}; the type of this node has {fitting}.")
        return allowed

    def decoded(self, codes: NDArray[np.int32], shape: Shape) -> Any:
        """Return labels as users pass them: for each example, or in a row where every node is one."""
        if self.structure.is_flat:
            return self.labels.decode(codes, None)
        return shape.decode(self.labels, codes)

    def encoded(self, y: Any, shape: Shape, *, as_trained: bool = False) -> NDArray[np.int32]:
        """Return the codes of labels that users pass; `as_trained`: of what training makes of them."""
        if not self.structure.is_flat:
            read = (shape.read_training if as_trained else shape.read_labels)(y, self.labels)
            if read.allowed is not None:
                raise ValueError("y must have the label of every node: the probability is that of one labelling.")
            return read.codes
        targets, n = np.asarray(y), shape.n_nodes
        if targets.shape != (n,):
            raise ValueError(f"y must have shape ({n},), a label for each row of X. Got {targets.shape}.")
        unknown = sorted(set(targets.tolist()) - set(self.names), key=str)
        if unknown:
            raise ValueError(f"y has labels not seen in training: {unknown}.")
        return np.searchsorted(self.classes, targets).astype(np.int32)

    # Answers

    def predict(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1, *, known: Any = None) -> Any:
        """Return the best labelling of each example, of those that agree with what is known."""
        if known is not None:
            return self.bounded_predict(X, lengths, n_threads, known=known)[0]
        score_map, parameters, nodes, pairs = self.scored(X, lengths, n_threads)
        if not self.structure.tags_natively(nodes.shape):
            scores = score_map.scores(parameters, nodes, pairs, n_threads)
            return self.decoded(self.structure.argmax(scores, n_jobs=n_threads), scores.shape)
        return self.decoded(_native.tag(score_map.bind(nodes, pairs), parameters, n_threads), nodes.shape)

    def predict_possible(self, X: Any, n_threads: int = 1, *, known: Any = None) -> tuple[list[Any], dict[int, str]]:
        """Return the best labelling of each example, None for those that have none, and why they have none."""
        X = X if isinstance(X, Batch) else list(X)
        scores = self._all_scores(X, None, n_threads)
        scores = scores if known is None else scores.only(self.allowed_labels(known, scores.shape))
        reasons = self.structure.why_impossible(scores, n_jobs=n_threads)

        def predict(some: Any, places: list[int]) -> Any:
            return self.predict(some, None, n_threads, known=None if known is None else [known[i] for i in places])

        return predicted_where_possible(X, scores.n_examples, reasons, predict), reasons

    def bounded_predict(
        self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1, *, known: Any = None
    ) -> tuple[Any, Bounds]:
        """Return the best labelling of each example that was found, with its score and a bound for all of them."""
        scores = self.scores(X, lengths, n_threads, known=known)
        found = self.structure.bounded_argmax(scores, n_jobs=n_threads)
        return self.decoded(found.labels, scores.shape), found.bounds

    def best_codes(
        self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1
    ) -> tuple[Shape, NDArray[np.int32]]:
        """Return the shape of examples, and the codes of what is predicted for them."""
        scores = self.scores(X, lengths, n_threads)
        return scores.shape, self.structure.argmax(scores, n_jobs=n_threads)

    def node_probabilities(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> Floats:
        """Return the probabilities of labels, a row for each node of all examples."""
        scores = self.scores(X, lengths, n_threads)
        return self.structure.marginals(scores, temperature=self.probability_temperature, n_jobs=n_threads).node

    def predict_proba(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        n_threads: int = 1,
        *,
        pairwise: bool = False,
        known: Any = None,
    ) -> Any:
        """Return the probability of each label at each node, and with `pairwise` of labels of neighbours."""
        self.need_pairs(pairwise)
        scores = self.scores(X, lengths, n_threads, known=known)
        self.need_exact("predict_proba", scores)
        return self.marginals(scores, n_threads, pairwise=pairwise)

    def beliefs(
        self,
        X: Any,
        lengths: ArrayLike | None = None,
        n_threads: int = 1,
        *,
        pairwise: bool = False,
        known: Any = None,
    ) -> Any:
        """Return probabilities, or where answers are bounds the beliefs that the bounds have."""
        return self.marginals(self.scores(X, lengths, n_threads, known=known), n_threads, pairwise=pairwise)

    def need_pairs(self, pairwise: bool) -> None:
        """Refuse a question about pairs of labels where the structure has none."""
        reason = self.structure.no_pairs if pairwise else None
        if reason is not None:
            raise ValueError(f"pairwise {reason}")

    def need_exact(self, question: str, scores: Scores) -> None:
        """Refuse a question about probabilities where there are only bounds."""
        if self.structure.no_sums is not None:
            raise ValueError(f"{question} needs exact answers: {self.structure.no_sums}")
        if self.structure.relaxation(scores.shape) is not None:
            raise ValueError(
                f"{question} needs exact answers: the beliefs of inference='trw' are not probabilities, and can be far "
                "from them. Raise the budget of the structure, ask about smaller graphs, or see beliefs."
            )

    def marginals(self, scores: Scores, n_threads: int = 1, *, pairwise: bool = False) -> Any:
        """Return probabilities under given scores, cut into examples."""
        cliques = "each" if pairwise else None
        answer = self.structure.marginals(
            scores, cliques=cliques, temperature=self.probability_temperature, n_jobs=n_threads
        )
        return self.by_example(answer.node, answer.clique, scores.shape)

    def by_example(self, node: Floats, clique: Floats | None, shape: Shape) -> Any:
        """Cut probabilities of labels, and of pairs, into those of each example."""
        if self.structure.is_flat:
            return node
        nodes = shape.arranged(split_rows(node, shape.offsets))
        return nodes if clique is None else (nodes, split_rows(clique, self.structure.edge_offsets(shape)))

    def log_probabilities(self, X: Any, y: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> Floats:
        """Return the log-probability of given labellings."""
        scores, T = self.scores(X, lengths, n_threads), self.probability_temperature
        self.need_exact("score_sequences", scores)
        codes = self.encoded(y, scores.shape)
        total = self.structure.log_partition(scores, temperature=T, n_jobs=n_threads)
        return np.asarray((self.structure.score(scores, codes, n_jobs=n_threads) - total) / T)

    def labelling_order(
        self, owner: str, X: Any, by: str, per: str, lengths: ArrayLike | None = None, n_threads: int = 1
    ) -> LabellingOrder:
        """Order examples by how little is known about their labels."""
        scores, T = self.scores(X, lengths, n_threads), self.probability_temperature
        self.need_exact("rank_for_labelling", scores)
        answer = self.structure.marginals(scores, temperature=T, n_jobs=n_threads)
        log_best = None
        if by == "least_confidence":
            best = self.structure.log_partition(scores, temperature=0.0, n_jobs=n_threads)
            log_best = np.asarray((best - answer.log_partition) / T)
        rows = split_rows(answer.node, scores.offsets)
        return labelling_order(owner, by, per, rows, log_best, n_tokens=scores.shape.n_tokens)

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
        """Return the spans of the best labelling of each sequence, with their probabilities."""
        if return_std:
            raise ValueError(NO_SPREAD)
        scores, T = self.scores(X, lengths, n_threads), self.probability_temperature
        return predict_spans(self.structure, scores, self.names, outside, min_proba, T, n_threads)

    def held_out(self, X: Any, y: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> HeldOut:
        """Return the scores of examples that it was not trained on, and their labels.

        Sentences that a grammar cannot parse are left out, and a warning says which they are.
        """
        X, y, lengths = possible_examples(self, X, y, lengths, n_threads)
        scores = self.scores(X, lengths, n_threads)
        self.need_exact("calibrate", scores)
        return HeldOut(self.structure, scores, self.encoded(y, scores.shape, as_trained=True))

    def k_best(
        self, X: Any, k: int, lengths: ArrayLike | None = None, n_threads: int = 1, *, known: Any = None
    ) -> list[list[tuple[Any, float]]]:
        """Return up to k labellings of each example with their probabilities, best first."""
        scores, T = self.scores(X, lengths, n_threads, known=known), self.probability_temperature
        best = self.structure.k_best(scores, k, n_jobs=n_threads)
        total = self.structure.log_partition(scores, temperature=T, n_jobs=n_threads)
        probability, found = np.exp((best.scores - total[:, None]) / T), np.isfinite(best.scores)
        ranked = [self.decoded(np.maximum(codes, 0), scores.shape) for codes in best.labels]
        return RankedLabellings(
            RankedLabellings((ranked[r][i], float(probability[i, r])) for r in range(k) if found[i, r])
            for i in range(scores.n_examples)
        )

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
        """Draw labellings of each example."""
        scores = self.scores(X, lengths, n_threads, known=known)
        draws = self.structure.sample(
            scores, n_samples, random_state=random_state, temperature=self.probability_temperature, n_jobs=n_threads
        )
        by_draw = [self.decoded(codes, scores.shape) for codes in draws]
        return [[one[i] for one in by_draw] for i in range(scores.n_examples)]

    # Records

    def record(self) -> Fields:
        """Return what the model consists of."""
        return {
            "labels": self.labels.record(),
            "expansion": None if self.expansion is None else self.expansion.record(),
            "pair_expansion": None if self.pair_expansion is None else self.pair_expansion.record(),
            "names": names_record(self.column_names),
            "template": None if self.template is None else self.template.record(),
            "temperature": self.temperature,
            "calibration": None if self.calibration is None else self.calibration.record(),
            "structure": self.structure.record(),
            "relaxation": self.relaxation,
            **vocabularies_record(self.vocabulary, self.pair_vocabulary),
            "edge_features": self.has_edge_features,
            "weights": self.weights.record(),
        }

    @classmethod
    def from_record(cls, record: Record) -> StructuredModel:
        """Make a model of its record, which is checked; the weights of a mapped file stay there."""
        labels, expansion = Labels.from_record(record.child("labels")), None
        if record.has("expansion"):
            expansion = Expansion.from_record(record.child("expansion"), len(labels))
        structure = structure_from_record(record.child("structure"))
        n, found = len(labels), structure.n_labels
        record.check(found == n, f"its structure must have {n} labels. Got {found}.")
        weights = StoredWeights(record.child("weights"), structure)
        n_columns = weights.n_columns if expansion is None else expansion.n_columns
        pair_expansion = _read_pairs(record, structure, weights, n_columns)
        n_pairs = None if weights.pair is None else (pair_expansion or weights.pair).n_columns
        vocabulary, pair_vocabulary = read_vocabularies(record, n_columns, weights, n_pairs)
        names = read_names(record, "names", n_columns)
        return cls(
            labels=labels,
            structure=structure,
            vocabulary=vocabulary,
            pair_vocabulary=pair_vocabulary,
            weights=weights if record.source.is_mapped else weights.whole,
            expansion=expansion,
            pair_expansion=pair_expansion,
            template=Template.from_record(record.child("template")) if record.has("template") else None,
            temperature=record.number("temperature", above=0.0) if record.has("temperature") else None,
            calibration=Calibration.from_record(record.child("calibration")) if record.has("calibration") else None,
            column_names=None if names is None else tuple(names),
            relaxation=record.text("relaxation", ("trw", "max_flow")) if record.has("relaxation") else None,
            has_edge_features=record.flag("edge_features"),
        )


def _read_pairs(record: Record, structure: Structure, weights: StoredWeights, n_columns: int) -> Expansion | None:
    """Return the scores of edges that come from a kernel, checked against the columns that they stand for."""
    if not record.has("pair_expansion"):
        return None
    record.check(structure.no_pairs is None, "its kernel scores pairs of nodes, which its structure does not have.")
    width = structure.edge_width
    found = 0 if weights.pair is None else weights.pair.n_columns
    record.check(found == width, f"its kernel scores {width} pairs of labels, for which it has {found} columns.")
    has_features = record.flag("edge_features") or record.text("pair_attributes") != "none"
    own = None if has_features else 2 * n_columns
    return Expansion.from_record(record.child("pair_expansion"), width, own)


def vocabularies_record(vocabulary: Vocabulary | None, pair_vocabulary: Vocabulary | None) -> Fields:
    """Return the attributes of nodes and pairs, which may be the same."""
    kind = "none" if pair_vocabulary is None else "shared" if pair_vocabulary is vocabulary else "own"
    return {
        "vocabulary": None if vocabulary is None else vocabulary.record(),
        "pair_attributes": kind,
        "pair_vocabulary": pair_vocabulary.record() if pair_vocabulary is not None and kind == "own" else None,
    }


def read_vocabularies(
    record: Record, n_columns: int, weights: StoredWeights, n_pairs: int | None
) -> tuple[Vocabulary | None, Vocabulary | None]:
    """Return the attributes of nodes and pairs, checked against the columns that score them; None: none score pairs."""
    words = read_vocabulary(record.child("vocabulary"), n_columns) if record.has("vocabulary") else None
    kind = record.text("pair_attributes", ("none", "shared", "own"))
    is_own = kind == "own"
    record.check(record.has("pair_vocabulary") == is_own, "it has attributes of pairs that it does not use.")
    if is_own:
        own = record.child("pair_vocabulary")
        return words, read_vocabulary(own, own.shape("offsets")[0] - 1 if n_pairs is None else n_pairs)
    if kind == "none":
        return words, None
    width = weights.n_columns
    record.check(n_pairs in (width, None), f"it has {n_pairs} columns of pairs for {width} attributes.")
    return words, words


def split_rows(rows: NDArray[Any], offsets: Sequence[int] | NDArray[Any]) -> list[NDArray[Any]]:
    """Return the rows of each example."""
    return [rows[a:b] for a, b in itertools.pairwise(offsets)]
