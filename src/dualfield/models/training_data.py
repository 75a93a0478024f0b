"""From what users pass to what the objective of a structured model is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dualfield.data import Batch, CompiledCorpus, Labels
from dualfield.data.arrays import Floats
from dualfield.data.checks import check_column_names
from dualfield.data.costs import cost_table
from dualfield.data.partial_labels import PartialLabels
from dualfield.data.shapes import Shape
from dualfield.data.weights import example_weights
from dualfield.features import Template
from dualfield.features.reading import read_examples
from dualfield.models.possible import need_examples, need_labellings
from dualfield.models.structured import StructuredModel
from dualfield.objectives import Examples
from dualfield.scores import LinearScores
from dualfield.scores.kernel import Expansions
from dualfield.scores.selection import build_score_map, pair_columns
from dualfield.scores.stored import LinearWeights
from dualfield.structures import Chain, Structure
from dualfield.structures.checks import n_threads
from dualfield.structures.registry import structure_of


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingData:
    """Everything that a fit needs, checked.

    Parameters
    ----------
    nodes, pairs : Batch
        Features of nodes, and those of pairs of labels; None if there are none.
    labels : Labels
        Names of the labels.
    codes : int32 array of shape (n_nodes,)
        True labels; -1 where one is not known.
    allowed : bool array of shape (n_nodes, n_labels) or None
        What is known of them; None: all of them are.
    structure : Structure
        For these labels.
    score_map : LinearScores
        Which features there are.
    weights : array of shape (n_examples,)
        C times the weight of each example.
    cost : array of shape (n_labels, n_labels) or None
        Δ of the formula; None: wrong labels cost nothing.
    template : Template or None
        What made the attributes.
    has_edge_features : bool, default=False
        Whether the pairs are features that edges came with.
    """

    nodes: Batch
    pairs: Batch | None
    labels: Labels
    codes: NDArray[np.int32]
    allowed: NDArray[np.bool_] | None
    structure: Structure
    score_map: LinearScores
    weights: Floats
    cost: Floats | None
    template: Template | None
    has_edge_features: bool = False

    @cached_property
    def relaxation(self) -> str | None:
        """The relaxation that a fit works with; None: exact answers."""
        return self.structure.relaxation(self.nodes.shape)

    def need_exact(self, owner: str, reason: str) -> None:
        """Refuse a relaxation."""
        if self.relaxation is not None:
            more = "Raise the budget of the structure, or leave out edges."
            remedy = more if self.structure.is_native else "Use inference='exact'."
            raise ValueError(
                f"{owner} needs exact inference: {reason}, which inference={self.relaxation!r} only bounds. {remedy}"
            )

    @property
    def examples(self) -> Examples:
        """What an objective sees of them; labels that are not known are 0 there, and not looked at."""
        codes = np.maximum(self.codes, 0)
        return Examples(nodes=self.nodes, pairs=self.pairs, labels=codes, weights=self.weights, allowed=self.allowed)

    @property
    def edge_ends(self) -> NDArray[np.int64]:
        """The nodes of each edge, shape (n_edges, 2)."""
        return self.structure.edge_ends(self.nodes.shape)

    def as_chains(self) -> TrainingData:
        """Return single nodes as chains of one node, which more solvers of the hinge can take; others as they are.

        The parameters of the chains begin with those of the single nodes; weights of transitions follow, all zero.
        """
        if not self.structure.is_flat:
            return self
        chain = Chain(self.structure.n_labels)
        mask = np.zeros(chain.n_cliques, dtype=bool)
        return replace(self, structure=chain, score_map=LinearScores(chain, self.score_map.node, None, mask))

    def model(
        self, parameters: Floats, temperature: float | None, expansions: Expansions | None = None
    ) -> StructuredModel:
        """Return the model with given parameters, and scores from kernels."""
        expansions = Expansions(None, None) if expansions is None else expansions
        return StructuredModel(
            labels=self.labels,
            structure=self.structure,
            vocabulary=self.nodes.vocabulary,
            pair_vocabulary=None if self.pairs is None else self.pairs.vocabulary,
            weights=LinearWeights(self.score_map, parameters),
            expansion=expansions.nodes,
            pair_expansion=expansions.pairs,
            template=self.template,
            temperature=temperature,
            column_names=self.nodes.column_names,
            relaxation=self.relaxation,
            has_edge_features=self.has_edge_features,
        )


def template_of(template: Any, X: Any = None) -> Template | None:
    """Return the template that a parameter stands for: itself, its text, or "default" or "chunking", built-in ones.

    The default template is made for the columns of the tokens of `X`.
    """
    if template is None or isinstance(template, Template):
        return template
    if template == "chunking":
        return Template.chunking()
    if template == "default":
        token = next((token for sentence in X for token in sentence), ("",)) if X is not None else ("",)
        return Template.default(1 if isinstance(token, str) else len(token))
    return Template.parse(str(template))


def corpus_template(corpus: CompiledCorpus, template: Any) -> Template | None:
    """Return the template that a corpus was compiled with, which must be that of the parameter if this is given."""
    own = None if corpus.template is None else Template(*corpus.template)
    if template is None:
        return own
    is_default = isinstance(template, str) and template == "default"
    wanted = Template.default(own.n_columns) if is_default and own is not None else template_of(template)
    if own is None or wanted is None or (own.text, own.syntax) != (wanted.text, wanted.syntax):
        made = "no template" if own is None else "another template"
        raise ValueError(
            "The 'template' parameter must be None, or the template that the corpus was compiled with: "
            f"{corpus.path} was compiled with {made}."
        )
    return own


def structured_cost(settings: Any, labels: Labels, *, hinge: bool) -> Floats | None:
    """Return the cost of each label by true label; None if wrong labels cost nothing, which hinges cannot do with."""
    owner, names = type(settings).__name__, labels.classes.tolist()
    if hinge:
        return cost_table(owner, "cost", settings.cost, names, callables=True)
    return (
        None if settings.cost is None else cost_table(owner, "cost", settings.cost, names, negative=True, also="None")
    )


def read_training_data(
    settings: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    lengths: ArrayLike | None,
    *,
    hinge: bool,
    known: Labels | None = None,
    grown_from: StructuredModel | None = None,
    is_latent: bool = False,
) -> TrainingData:
    """Read and check everything, and lay out the features.

    `settings` has the parameters of the estimator; `y` may have been read already. Labels may be `known`, and
    vocabularies and features be `grown_from` those of an earlier model. `is_latent` lets costs go with labels that are
    known only in part.
    """
    owner = type(settings).__name__
    if settings.template == "default":
        X = list(X)  # which is looked at twice
    template = template_of(settings.template, X)
    prototype, constraints = structure_of(owner, settings.structure), settings.constraints
    if grown_from is not None and grown_from.structure.label_sets is not None:
        prototype, constraints = grown_from.structure, None  # a part of the data may not have all types and labels
    truth = TrueLabels(y, known)
    growing = truth.growing(prototype, settings.features)
    threads = n_threads(settings.n_jobs)
    nodes, pairs = _read_nodes(prototype, template, X, lengths, grown_from, growing, threads)
    labels, codes, allowed, left_out = truth.of(nodes.shape)
    structure = prototype.for_labels(labels.classes.tolist(), codes, nodes.shape, constraints, owner)
    if allowed is not None:
        need_labellings(structure, nodes.shape, allowed, "y")
    chosen = pair_columns(settings.pair_features, nodes, owner)
    for name, what, wanted, has in (
        ("pair_features", "edges", chosen is not None, structure.has_edges),
        ("start_stop", "first and last label", bool(settings.start_stop), structure.n_ends > 0),
    ):
        if wanted and not has:
            kind = type(structure).__name__
            raise ValueError(f"The {name!r} parameter of {owner} must be False: a {kind} has no {what}.")
    kernel_on = None if settings.kernel is None else settings.kernel_on
    if kernel_on is not None:
        _check_kernel(owner, kernel_on, structure, nodes, pairs)
    has_edge_features = pairs is not None and not (template is not None and template.has_pairs)
    if has_edge_features:
        _check_edge_features(settings, owner)
    elif pairs is None and chosen is not None:
        pairs = structure.pair_batch(nodes)
    is_matrix = structure.is_flat and nodes.vocabulary is None  # whose columns have weights for every class
    score_map = build_score_map(
        structure,
        nodes,
        pairs,
        codes,
        everything=settings.features == "all" or is_matrix,
        min_freq=int(settings.min_freq),
        chosen=chosen,
        with_ends=bool(settings.start_stop),
        with_transitions=template is None or template.has_transitions,
        old=None if grown_from is None else grown_from.score_map,
        kernel_on=kernel_on,
    )
    weights = float(settings.C) * example_weights(nodes, labels, codes, sample_weight, settings.class_weight, owner)
    if left_out is not None:
        need_examples(prototype, left_out)
        weights = np.where(left_out, 0.0, weights)
    if not weights.any():
        raise ValueError("sample_weight and class_weight must leave an example with a weight above zero.")
    cost = structured_cost(settings, labels, hinge=hinge)
    if cost is not None and allowed is not None and not is_latent:
        raise ValueError(
            "cost needs the true label of every node: it cannot be used with partly labelled y. Use "
            "LatentStructuredSVM, for which the rest is hidden."
        )
    data = TrainingData(
        nodes=nodes,
        pairs=pairs,
        labels=labels,
        codes=codes,
        allowed=allowed,
        structure=structure,
        score_map=score_map,
        weights=weights,
        cost=cost,
        template=template,
        has_edge_features=has_edge_features,
    )
    if not hinge and structure.no_sums is not None:
        raise ValueError(f"{owner} needs sums over labellings: {structure.no_sums}")
    if allowed is not None:
        data.need_exact(owner, "the likelihood of partly labelled y is a difference of sums over labellings")
    return data


class TrueLabels:
    """The labels of training data: read when the shape of the examples is known, and once.

    Parameters
    ----------
    y : list or PartialLabels
        Labels as users pass them, or read already.
    known : Labels, default=None
        Those of an earlier fit.
    """

    def __init__(self, y: Any, known: Labels | None = None) -> None:
        self._y, self._known = y, known
        self._read = y if isinstance(y, PartialLabels) else None

    def of(self, shape: Shape) -> PartialLabels:
        """Return them for examples of a shape."""
        if self._read is None:
            self._read = shape.read_training(self._y, self._known)
        return self._read

    def growing(self, structure: Structure, features: str) -> Callable[[Shape], NDArray[np.bool_]] | None:
        """Return what tells the candidates that may be in the output, where only their attributes get weights.

        There are many more candidates than that, and millions of attributes that no weight would ever be given to.
        """
        empty = structure.empty_label
        if empty is None or features == "all":
            return None

        def chosen(shape: Shape) -> NDArray[np.bool_]:
            labels, codes, allowed, _ = self.of(shape)
            if allowed is None:
                return np.asarray(codes != empty)
            return np.asarray(allowed[:, np.arange(len(labels)) != empty].any(axis=1))

        return chosen


def _check_edge_features(settings: Any, owner: str) -> None:
    """Refuse what does not go together with features that edges come with."""
    if settings.pair_features is not False and settings.pair_features is not None:
        raise ValueError(
            f"The 'pair_features' parameter of {owner} must be False where edges have features of their own. Add those "
            "of the nodes to them."
        )


def _check_kernel(owner: str, kernel_on: str, structure: Structure, nodes: Batch, pairs: Batch | None) -> None:
    """Refuse a kernel on what there is not, or beside linear scores that have no place."""
    if structure.empty_label is not None:
        raise ValueError(
            f"The 'kernel' parameter of {owner} must be None: the candidates of a {type(structure).__name__} have "
            "linear scores."
        )
    if kernel_on == "nodes":
        if pairs is not None:
            raise ValueError(
                f"The 'kernel_on' parameter of {owner} must be 'pairs' or 'both' where edges have features, or a "
                "template makes attributes for pairs of labels, so that the kernel scores them. Got 'nodes' instead."
            )
        return
    if structure.no_pairs is not None:
        raise ValueError(f"kernel_on={kernel_on!r} {structure.no_pairs}")
    ends = structure.edge_ends(nodes.shape)
    if not (ends[:, 0] != ends[:, 1]).any():
        raise ValueError(f"kernel_on={kernel_on!r} needs edges between nodes. X has none.")


def _read_nodes(
    structure: Structure,
    template: Template | None,
    X: Any,
    lengths: ArrayLike | None,
    before: StructuredModel | None,
    growing: Callable[[Shape], NDArray[np.bool_]] | None,
    threads: int,
) -> tuple[Batch, Batch | None]:
    """Read the features of nodes and of pairs, into the vocabularies of an earlier model where there is one."""
    words = (None, None) if before is None else (before.vocabulary, before.pair_vocabulary)
    vocabulary, pair_vocabulary = (None if one is None else one.copy() for one in words)
    grow = vocabulary is not None
    width = None if before is None or grow else before.weights.n_columns
    nodes, pairs = read_examples(
        structure,
        X,
        lengths,
        template,
        vocabulary,
        pair_vocabulary,
        grow=grow if growing is None else growing,
        n_columns=width,
        n_edge_columns=None if before is None else before.n_edge_columns,
        n_threads=threads,
    )
    if before is not None:
        check_column_names(before.column_names, nodes, "as in the calls before")
    if nodes.n_nodes == 0:
        raise ValueError("X must have at least one node. Got none.")
    return nodes, pairs
