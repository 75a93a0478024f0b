"""What fits with latent variables have found: frozen values that predict outputs and latent variables."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from dualfield import _native
from dualfield.data import Batch, Labels, Vocabulary
from dualfield.data.arrays import Floats
from dualfield.data.input_forms import unwrapped
from dualfield.data.mapped_vocabulary import read_vocabulary
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.models.possible import possible_examples, predicted_where_possible
from dualfield.models.structured import StructuredModel
from dualfield.models.temperature_scaling import Calibration, HeldOut
from dualfield.objectives.latent_bags import BagScores, best_in_bags
from dualfield.objectives.latent_custom import LatentModel
from dualfield.objectives.latent_states import StateSpace
from dualfield.structures import Scores, Structure
from dualfield.structures.custom_answers import read_only


@dataclass(frozen=True, eq=False)
class SubstateModel:
    """A model over states, each of which is a label and a sub-state: from inputs to states, to labels, to sub-states.

    Parameters
    ----------
    states : StructuredModel
        Its labels are states, written label/sub-state.
    labels : Labels
        The labels.
    space : StateSpace
        Which states belong to which label.
    is_flat : bool
        Whether every node is an example, with a component of its class.
    arrays : bool
        Whether labels of single nodes came as an array.
    """

    states: StructuredModel
    labels: Labels
    space: StateSpace
    is_flat: bool
    arrays: bool

    @property
    def classes(self) -> NDArray[Any]:
        """The labels."""
        return self.labels.classes

    @property
    def parameters(self) -> Floats:
        """The weights of states."""
        return self.states.parameters

    @property
    def coef(self) -> Any:
        """Weights of columns, a row for each state."""
        return self.states.coef

    def best(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> tuple[Any, Any]:
        """Return labels and sub-states of the best states."""
        score_map, parameters, nodes, pairs = self.states.scored(*self._opened(X, lengths), n_threads)
        states = _native.tag(score_map.bind(nodes, pairs), parameters, n_threads)
        return self.named(self.space.label[states], nodes.shape), self._hidden(states, nodes.shape)

    def predict_possible(self, X: Any, n_threads: int = 1) -> tuple[list[Any], dict[int, str]]:
        """Return labels of the best states, None for examples that have none, and why they have none."""
        X = list(X)
        scores = self.scores(X, None, n_threads)
        reasons = self.states.structure.why_impossible(scores, n_jobs=n_threads)
        found = predicted_where_possible(
            X, scores.n_examples, reasons, lambda some, places: self.best(some, None, n_threads)[0]
        )
        return found, reasons

    def completed(self, X: Any, y: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> Any:
        """Return the sub-states of the best states that agree with given labels."""
        scores = self.scores(X, lengths, n_threads)
        codes, allowed = self._truth(y, scores.shape)
        if allowed is None:
            allowed = np.arange(len(self.labels)) == codes[:, None]
        states = self.states.structure.argmax(scores.only(allowed[:, self.space.label]), n_jobs=n_threads)
        return self._hidden(states, scores.shape)

    def _truth(
        self, y: Any, shape: Shape, *, as_trained: bool = False
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_] | None]:
        """Return the codes of labels, and what nodes may have where these are not all known."""
        if not self.is_flat:
            read = (shape.read_training if as_trained else shape.read_labels)(y, self.labels)
            return read.codes, read.allowed
        codes = self.labels.encode(shape.flat_labels(y), None)
        if len(codes) != shape.n_nodes:
            raise ValueError(f"y must have a label for each of the {shape.n_nodes} rows of X. Got {len(codes)}.")
        return codes, None

    def _hidden(self, states: NDArray[np.int32], shape: Shape) -> Any:
        """Return sub-states, or trees that show them behind labels."""
        if self.states.structure.empty_label is not None:
            return shape.decode(self.states.labels, states)
        return self.cut(self.space.substates(states), shape)

    def marginals(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> tuple[Shape, Floats]:
        """Return shapes, and the probability of each label at each node: the sum over its sub-states."""
        scores = self.scores(X, lengths, n_threads)
        found = self.states.calibration
        T = 1.0 if found is None else found.temperature
        answer = self.states.structure.marginals(scores, temperature=T, n_jobs=n_threads)
        return scores.shape, np.add.reduceat(answer.node, self.space.first, axis=1)

    def most_right(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> Any:
        """Return the most probable label of each node, or the tree whose labels have the largest sum of them."""
        shape, rows = self.marginals(X, lengths, n_threads)
        structure, codes = self.states.structure, rows.argmax(axis=1)
        if structure.empty_label is not None:  # labels that are chosen alone may be no tree of the grammar
            states = structure.argmax(Scores(rows[:, self.space.label], shape=shape), n_jobs=n_threads)
            codes = self.space.label[states]
        return self.named(codes, shape)

    @property
    def calibration(self) -> Calibration | None:
        """How the temperature of the probabilities was chosen, if it was."""
        return self.states.calibration

    def calibrated(self, calibration: Calibration | None) -> SubstateModel:
        """Return the same model with another temperature of its probabilities; None: that of the fit."""
        return replace(self, states=replace(self.states, calibration=calibration))

    def held_out(self, X: Any, y: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> HeldOut:
        """Return the scores of examples that it was not trained on, and their labels."""
        X, y, lengths = possible_examples(self.states, X, y, lengths, n_threads)
        scores = self.scores(X, lengths, n_threads)
        codes, allowed = self._truth(y, scores.shape, as_trained=True)
        if allowed is not None:
            raise ValueError("y must have the label of every node: the log-loss is that of true labels.")
        return HeldOut(self.states.structure, scores, codes, first_states=self.space.first)

    def decision(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> Floats:
        """Return the score of each label of single nodes: the maximum over its sub-states."""
        if not self.is_flat:
            raise AttributeError("decision_function needs LatentPosition or LatentMulticlass.")
        return np.asarray(np.maximum.reduceat(self.scores(X, lengths, n_threads).node, self.space.first, axis=1))

    def scores(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> Scores:
        """Return the scores of states."""
        return self.states.scores(*self._opened(X, lengths), n_threads)

    def _opened(self, X: Any, lengths: ArrayLike | None) -> tuple[Any, ArrayLike | None]:
        return one_node_each(X, lengths) if self.is_flat else (X, lengths)

    def named(self, codes: NDArray[Any], shape: Shape) -> Any:
        """Return labels in the form in which those of training came."""
        if not self.is_flat:
            return shape.decode(self.labels, codes)
        names = self.labels.classes[codes]
        return names if self.arrays else names.tolist()

    def cut(self, values: NDArray[Any], shape: Shape) -> Any:
        """Return values of nodes as one array for each example, or in a row for single nodes."""
        if self.is_flat:
            return values
        return shape.arranged([values[a:b] for a, b in itertools.pairwise(shape.offsets.tolist())])

    def record(self) -> Fields:
        """Return what the model consists of."""
        return {
            "kind": "states",
            "labels": self.labels.record(),
            "sizes": self.space.sizes.tolist(),
            "single": bool(self.is_flat),
            "arrays": bool(self.arrays),
            "states": self.states.record(),
        }

    @classmethod
    def from_record(cls, record: Record) -> SubstateModel:
        """Make a model of its record, which is checked."""
        record.text("kind", ("states",))
        labels = Labels.from_record(record.child("labels"))
        sizes = record.items("sizes", int, len(labels))
        record.check(all(size >= 1 for size in sizes), f"it must have sub-states for each of {len(labels)} labels.")
        states = StructuredModel.from_record(record.child("states"))
        n = states.structure.n_labels
        record.check(n == sum(sizes), f"its structure must have {sum(sizes)} labels. Got {n}.")
        space = StateSpace(np.array(sizes, dtype=np.int64))  # no larger than the weights in the file
        names = state_names(labels, space, states.structure)
        record.check(states.names == names, "its states must be those of its labels.")
        return cls(states, labels, space, record.flag("single"), record.flag("arrays"))


def state_names(labels: Labels, space: StateSpace, structure: Structure) -> list[str]:
    """Return the names of states: label/sub-state; brackets that are not split keep their names."""
    is_bracket = structure.empty_label is not None
    sizes = zip(labels.classes.tolist(), space.sizes.tolist(), strict=True)
    return [name if is_bracket and size == 1 else f"{name}/{h}" for name, size in sizes for h in range(size)]


@dataclass(frozen=True, eq=False)
class BagModel:
    """A trained model of bags of instances.

    Parameters
    ----------
    parameters : array
        The weights.
    scores : BagScores
        How they score instances.
    labels : Labels
        Labels of bags.
    arrays : bool
        Whether labels came as an array.
    vocabulary : Vocabulary or None
        Attributes of instances; None for numbers.
    """

    parameters: Floats
    scores: BagScores
    labels: Labels
    arrays: bool
    vocabulary: Vocabulary | None

    def record(self) -> Fields:
        """Return what the model consists of."""
        if not np.isfinite(self.parameters).all():
            raise ValueError("The model cannot be saved: it has weights that are not finite.")
        return {
            "kind": "bags",
            "labels": self.labels.record(),
            "n_columns": int(self.scores.n_columns),
            "background": int(self.scores.background),
            "intercept": bool(self.scores.intercept),
            "arrays": bool(self.arrays),
            "vocabulary": None if self.vocabulary is None else self.vocabulary.record(),
            "weights": self.parameters,
        }

    is_flat = True

    @property
    def classes(self) -> NDArray[Any]:
        """The labels."""
        return self.labels.classes

    @property
    def coef(self) -> Floats:
        """Weights of columns, a row for each label that has weights."""
        return self.scores.coefficients(self.parameters)[0]

    @property
    def intercept(self) -> Floats:
        """Weights of the constant feature of instances."""
        return self.scores.coefficients(self.parameters)[1]

    @classmethod
    def from_record(cls, record: Record) -> BagModel:
        """Make a model of its record, which is checked."""
        record.text("kind", ("bags",))
        labels = Labels.from_record(record.child("labels"))
        n_columns, background = record.integer("n_columns", 0), record.integer("background", -1, len(labels) - 1)
        record.check(len(labels) >= 2, "bags need two labels.")
        scores = BagScores(n_columns, len(labels), background, record.flag("intercept"))
        weights = np.array(record.array("weights", np.float64, (scores.n_parameters,), finite=True))
        vocabulary = read_vocabulary(record.child("vocabulary"), n_columns) if record.has("vocabulary") else None
        return cls(weights, scores, labels, record.flag("arrays"), vocabulary)

    def best(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> tuple[Any, Any]:
        """Return the best label of each bag, and the instance that speaks for it."""
        best, at = self._best(X, lengths)
        codes = best.argmax(axis=1)
        names = self.labels.classes[codes]
        return names if self.arrays else names.tolist(), self._heard(codes, at)

    def completed(self, X: Any, y: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> Any:
        """Return the instance that speaks most for a given label of each bag."""
        at = self._best(X, lengths)[1]
        codes = self.labels.encode(unwrapped(y))
        if len(codes) != len(at):
            raise ValueError(f"y must have a label for each of the {len(at)} bags. Got {len(codes)}.")
        return self._heard(codes, at)

    def decision(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> Floats:
        """Return the score of each label for each bag."""
        return self._best(X, lengths)[0]

    def _heard(self, codes: NDArray[Any], at: NDArray[Any]) -> NDArray[Any]:
        return np.where(codes == self.scores.background, -1, at[np.arange(len(codes)), codes])

    def _best(self, X: Any, lengths: ArrayLike | None) -> tuple[Floats, NDArray[np.int64]]:
        numeric = None if self.vocabulary is not None else self.scores.n_columns
        batch = read_bags(X, lengths, self.vocabulary, numeric)
        return best_in_bags(self.scores.instances(self.parameters, batch), batch.offsets)


@dataclass(frozen=True, eq=False)
class CustomLatent:
    """A trained user-defined latent model.

    Parameters
    ----------
    latent : LatentModel
        The model.
    parameters : array
        The weights.
    """

    latent: LatentModel
    parameters: Floats

    classes = None
    is_flat = True

    def best(self, X: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> tuple[Any, Any]:
        """Return the best outputs and their latent variables."""
        pairs = [self.latent.infer(read_only(self.parameters), x) for x in X]
        return [y for y, _ in pairs], [h for _, h in pairs]

    def completed(self, X: Any, y: Any, lengths: ArrayLike | None = None, n_threads: int = 1) -> Any:
        """Return the best latent variables of given outputs."""
        w = read_only(self.parameters)
        return [self.latent.complete(w, x, each) for x, each in zip(X, y, strict=True)]

    def score(self, X: Any, y: Any) -> float:
        """Return minus the mean loss of the predictions."""
        found, hidden = self.best(X)
        if len(found) != len(y):
            raise ValueError(f"y must have an entry for each of the {len(found)} examples. Got {len(y)}.")
        loss = self.latent.loss
        return 0.0 - float(np.mean([loss(true, *pair) for true, *pair in zip(y, found, hidden, strict=True)]))

    def record(self) -> Fields:
        """Refuse: it is code."""
        raise ValueError("The model cannot be saved: it was fitted with a user-defined latent model, which is code.")


def one_node_each(X: Any, lengths: ArrayLike | None) -> tuple[Any, ArrayLike | None]:
    """Return rows as examples of one node: matrices as they are, lists wrapped."""
    if lengths is not None:
        raise ValueError("lengths must be None: every row of X is an example of its own.")
    plain: Any = unwrapped(X)
    if isinstance(plain, np.ndarray) or bool(scipy.sparse.issparse(plain)):
        if plain.ndim != 2:
            raise ValueError(f"X must be a matrix with a row for each example. Got shape {plain.shape}.")
        return plain, np.ones(plain.shape[0], dtype=np.int64)
    return [[row] if not isinstance(row, np.ndarray) else row[None] for row in X], None


def read_bags(X: Any, lengths: ArrayLike | None, vocabulary: Vocabulary | None, n_columns: int | None) -> Batch:
    """Read bags, each with at least one instance."""
    batch = Batch.build(X, lengths=lengths, vocabulary=vocabulary, n_columns=n_columns)
    empty = np.flatnonzero(batch.lengths == 0)
    if empty.size or not batch.n_examples:
        what = f"X[{empty[0]}] has none" if empty.size else "there are no bags"
        raise ValueError(f"Every bag must have at least one instance; {what}.")
    return batch
