"""Trees of weighted context-free grammars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from dualfield import _native
from dualfield.data.arrays import Codes, Floats
from dualfield.data.input_forms import read_sentences
from dualfield.data.labels import Labels
from dualfield.data.parse_trees.trees import ParseTree
from dualfield.data.records import Fields, Record
from dualfield.data.shapes import Shape
from dualfield.structures.base import Structure
from dualfield.structures.opened import Opened
from dualfield.structures.parse_trees.ambiguity import check_one_derivation
from dualfield.structures.parse_trees.binarisation import Binarisation
from dualfield.structures.parse_trees.blame import with_brackets
from dualfield.structures.parse_trees.bracket_agreement import bracket_agreement
from dualfield.structures.parse_trees.grammar_features import Features
from dualfield.structures.parse_trees.grammar_input import Normaliser, read_nltk, read_productions
from dualfield.structures.parse_trees.grammar_rules import GrammarRules
from dualfield.structures.parse_trees.grammar_settings import GrammarSettings
from dualfield.structures.parse_trees.grammar_shape import GrammarShape, TaggedShape
from dualfield.structures.parse_trees.span_features import taken_apart
from dualfield.structures.scores import Scores

__all__ = ["Grammar"]


class Grammar(Structure):
    r"""The trees of a sentence under a context-free grammar, with scores of rules and of labelled spans.

    .. math::
        \mathrm{score}(y) = \sum_{A \to B\,C} w_{A \to B\,C} + \sum_{A \to t} w_{A \to t} + w_{\mathrm{root}} +
        \sum_{(i, j)} \mathrm{span}[i, j, y_{ij}]

    Rows are spans, all n (n + 1) / 2 of a sentence of n words. The label of a row is that of the bracket there, a unary
    chain as one label, ``"S+VP"``; the empty label says that there is none. Brackets with more than two parts are made
    of two at a time by symbols without a label, in one way: a tree has one derivation.

    Every question is answered exactly, by CKY: in time n³ for each pair of symbols that rules have on their right-hand
    side and that the sentence can have, in memory n² for each symbol. :meth:`argmax` gives, among equally good trees,
    from the top the one by the first rule of the grammar, then the one with the shortest left part.

    In estimators X is sentences of (word, tag), and y trees: :class:`dualfield.data.ParseTree`, brackets, trees of NLTK
    or spans; see :class:`SpanShape`. The rules are those of the training trees, unless they are given. A sentence
    without a parse is an error that says which and why.

    Parameters
    ----------
    rules : GrammarRules, default=None
        The rules, as :meth:`from_treebank`, :meth:`from_rules` and :meth:`from_nltk` make them. None: not known yet,
        for models that read them off their training trees.
    binarise : {"right", "left"}, default="right"
        Which parts of a bracket with more than two are joined first: those on the right, or those on the left.
    horizontal : int, default=1
        How many parts before them the symbols remember that join the others; None: all.
    vertical : int, default=1
        How many labels, from a bracket upwards, its symbol has: 2 tells noun phrases of sentences from those of verb
        phrases.
    tags : {"given", "predicted"}, default="given"
        Whether sentences come with tags, which are the terminals, or tags are part of the output: the labels of words
        are then ``"NN"``, or ``"NP+NN"`` with brackets above the tag.
    lexicon : {"open", "seen"}, default="open"
        Where tags are predicted: whether every word may have every tag, which features of words then tell apart, or
        words are terminals and have the tags that they were seen with. Words seen less than twice are known by their
        class, such as capitals, numbers, or an ending.
    column : int, default=1
        Which column of tokens that are tuples is the terminal, where tags are given.
    span_features : "default", list of str or callable, default=None
        Features of spans, which score their labels, as those of :class:`Spans`; None: rules alone score.
    word_features : "default", list of str or callable, default=None
        The same for words: spans of one word then have these and no others. "default" is made for tags that are
        predicted: the word, its neighbours, its shape and its last letters.
    output : {"tree", "brackets", "nltk", "spans", "labels"}, default=None
        The form of predicted trees; None: that of the training trees. See :class:`SpanShape`.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.structures import Grammar, Scores
    >>> rules = ["S -> N VP", "N -> 'dogs' | 'cats' | N PP", "VP -> V N | VP PP", "PP -> P N", "V -> 'see'"]
    >>> grammar = Grammar.from_rules([*rules, "P -> 'with'"])
    >>> shape = grammar.shape([["dogs", "see", "cats", "with", "dogs"]])
    >>> scores = Scores(np.zeros((shape.n_nodes, grammar.n_labels)), shape=shape)
    >>> float(np.exp(grammar.log_partition(scores)[0]).round(6))  # trees
    2.0
    >>> print(*grammar.trees(shape, grammar.argmax(scores)))
    (S (N dogs) (VP (V see) (N (N cats) (PP (P with) (N dogs)))))
    """

    name = "grammar"
    empty_label = 0
    has_same_parts = False
    counts_impossible = True

    def __init__(
        self,
        rules: GrammarRules | None = None,
        *,
        binarise: Literal["right", "left"] = "right",
        horizontal: int | None = 1,
        vertical: int = 1,
        tags: Literal["given", "predicted"] = "given",
        lexicon: Literal["open", "seen"] = "open",
        column: int = 1,
        span_features: Features = None,
        word_features: Features = None,
        output: str | None = None,
    ) -> None:
        if rules is not None and not isinstance(rules, GrammarRules):
            raise ValueError(
                "The 'rules' parameter of Grammar must be what Grammar.from_treebank, from_rules or from_nltk make. "
                f"Got {type(rules).__name__} instead."
            )
        self.rules = rules
        self.settings = GrammarSettings(
            binarise=binarise,
            horizontal=horizontal,
            vertical=vertical,
            tags=tags,
            lexicon=lexicon,
            column=column,
            span_features=span_features,
            word_features=word_features,
            output=output,
        )
        self.n_labels = 0 if rules is None else len(rules.labels)
        self._split_from: tuple[GrammarRules, NDArray[np.int64]] | None = None

    @classmethod
    def from_treebank(cls, trees: Iterable[Any], **settings: Any) -> Grammar:
        """Read the rules off trees.

        Parameters
        ----------
        trees : iterable of ParseTree, str or nltk.Tree
            The trees; see :func:`dualfield.data.clean_tree`.
        **settings
            Parameters of the class: `binarise`, `horizontal`, `vertical`, `tags` and others.

        Returns
        -------
        Grammar
            With the labels of the trees.

        Examples
        --------
        >>> from dualfield.structures import Grammar
        >>> grammar = Grammar.from_treebank(["(NP (DT a) (JJ big) (NN dog))", "(NP (NN dog))"])
        >>> grammar.rule_names
        ['NP -> DT @NP|DT', '@NP|DT -> JJ NN', "DT -> 'DT'", "JJ -> 'JJ'", "NN -> 'NN'", "NP -> 'NN'", '-> NP']
        """
        empty = cls(None, **settings)
        read = [ParseTree.of(tree) for tree in trees]
        if not read:
            raise ValueError("trees must have at least one tree. Got none.")
        shape = empty.shape([tree.tokens() for tree in read])
        found = shape.read_labels(read, name="trees")
        shape.forms.clear()  # predictions have the form of the trees that a model is trained on
        return empty.for_labels(found.labels.classes.tolist(), found.codes, shape, owner="Grammar")

    @classmethod
    def from_rules(cls, rules: Any, start: str | None = None, *, column: int = 0) -> Grammar:
        """Make a grammar of rules as one writes them.

        Rules may be of any length. Unary rules A → B become chains, labels ``"A+B"``, without repetitions. Symbols that
        begin with ``"@"`` have no label; they may not make a tree ambiguous.

        Parameters
        ----------
        rules : list, or str with a rule in each line
            Texts, ``"NP -> DT NN | 'it'"``, with probabilities behind them in square brackets, or tuples (parent,
            children) or (parent, children, probability). Terminals are in quotes, or are no parents of rules.
        start : str, default=None
            The symbol of whole sentences; None: the parent of the first rule.
        column : int, default=0
            Which column of tokens that are tuples is the terminal. 0: words, whose tags are part of the output; others:
            tags, which are given.

        Returns
        -------
        Grammar
            With ``log_probabilities``, which are 0 where rules have none.

        Examples
        --------
        >>> from dualfield.structures import Grammar
        >>> grammar = Grammar.from_rules(["S -> A A [1.0]", "A -> 'a' [0.25] | 'b' [0.75]"])
        >>> dict(zip(grammar.rule_names, grammar.log_probabilities.round(3).tolist()))
        {'S -> A A': 0.0, "A -> 'a'": -1.386, "A -> 'b'": -0.288, '-> S': 0.0}
        """
        productions = read_productions(rules)
        return cls._normalised(productions, productions[0].parent if start is None else str(start), column)

    @classmethod
    def from_nltk(cls, grammar: Any, *, column: int = 0) -> Grammar:
        """Make a grammar of one of NLTK.

        Parameters
        ----------
        grammar : nltk.CFG or nltk.PCFG
            Or anything with ``start()`` and ``productions()`` whose items have ``lhs()``, ``rhs()`` and, if they have
            probabilities, ``prob()``.
        column : int, default=0
            As in :meth:`from_rules`.

        Returns
        -------
        Grammar
            With the probabilities in ``log_probabilities``.
        """
        productions, start = read_nltk(grammar)
        return cls._normalised(productions, start, column)

    @classmethod
    def _normalised(cls, productions: Sequence[Any], start: str, column: int) -> Grammar:
        rules = Normaliser(productions, [start]).builder.finish(with_scores=True)
        check_one_derivation(rules)
        tags: Literal["given", "predicted"] = "given" if column else "predicted"
        return cls(rules, tags=tags, lexicon="seen", column=column)

    @property
    def labels(self) -> list[str] | None:
        """The labels in the order of their codes, the empty one first; None: not known yet."""
        return None if self.rules is None else list(self.rules.labels)

    @property
    def _known(self) -> GrammarRules:
        if self.rules is None:
            raise ValueError("This grammar has no rules yet: see Grammar.from_treebank, from_rules and from_nltk.")
        return self.rules

    @property
    def n_columns(self) -> int:
        """How many columns of tokens it reads: words alone, or words and tags."""
        return 1 if self.settings.tags == "predicted" else self.settings.column + 1

    @property
    def log_probabilities(self) -> Floats | None:
        """The logarithms of the probabilities of rules, shape (n_cliques,), where they came with some."""
        return self._known.scores

    @property
    def n_cliques(self) -> int:
        """Number of shared scores: binary rules, lexical rules, roots."""
        return 0 if self.rules is None else self.rules.n_rules

    @cached_property
    def rule_names(self) -> list[str]:
        """The rules as text, in the order of their scores: binary rules, lexical rules, roots."""
        return self._known.names()

    @property
    def cliques(self) -> Codes:
        """The labels of the symbols of each rule, parent first; -1 for none."""
        return self._known.clique_labels()

    def clique_names(self, names: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Return the rules as text."""
        return [(name,) for name in self.rule_names]

    def shape(self, X: Sequence[Any]) -> GrammarShape:
        """Return the shape of sentences, which :class:`Scores` needs.

        Parameters
        ----------
        X : list of sentences
            Lists of tokens: (word, tag), or str.

        Returns
        -------
        GrammarShape
            Their sizes and tokens.

        Examples
        --------
        >>> from dualfield.structures import Grammar
        >>> Grammar().shape([["a", "b"], ["c"]]).lengths
        array([3, 1])
        """
        sentences = read_sentences(X)
        kind = GrammarShape if self.settings.tags == "given" else TaggedShape
        return kind.of_words([len(sentence) for sentence in sentences], sentences, self.settings.output)

    def open(self, X: Any, lengths: ArrayLike | None = None) -> Opened:
        """Take sentences apart, or tuples (sentence, rows): spans, with their features, and tokens."""
        tokens, rows = taken_apart(X, lengths)
        if tokens is None:
            raise ValueError("X must be sentences, or tuples (sentence, rows): a Grammar needs the words. Got rows.")
        shape, features = self.shape(tokens), self.settings.features
        if rows is not None:
            return Opened(rows, None, shape.with_rows)
        if features.are_none:
            return Opened(csr_array((shape.n_nodes, 0)), shape.lengths, lambda offsets: shape)
        return Opened(features.rows(tokens), None, lambda offsets: shape)

    def trees(self, shape: GrammarShape, codes: Codes) -> list[Any]:
        """Return labellings as trees.

        Parameters
        ----------
        shape : GrammarShape
            The sentences.
        codes : int32 array of shape (n_rows,)
            A label for each span, as from :meth:`argmax`.

        Returns
        -------
        list of ParseTree
            One for each sentence.
        """
        return shape.decode(Labels.fit(list(self._known.labels)), codes)

    def native(self, shape: Shape, *, with_edges: bool = False, with_ends: bool = False) -> _native.GrammarStructure:
        """Create the native twin for given sentences."""
        rules = self._known
        if not isinstance(shape, GrammarShape):
            raise ValueError(f"A Grammar needs the shape of sentences: Grammar.shape(X). Got {type(shape).__name__}.")
        # The rules are put in order once for the questions about the same sentences.
        kept: dict[int, tuple[GrammarRules, _native.GrammarStructure]] = shape.__dict__.setdefault("_twins", {})
        if id(rules) not in kept:
            terminals, unknown = self.settings.terminals.codes(shape, rules)
            kept[id(rules)] = (
                rules,
                _native.GrammarStructure(
                    binary=rules.binary,
                    lexical=rules.lexical,
                    roots=rules.roots,
                    labels=rules.symbol_labels,
                    offsets=shape.offsets,
                    word_offsets=shape.word_offsets,
                    terminals=terminals,
                    label_names=list(rules.labels),
                    terminal_names=list(rules.terminals),
                    unknown_names=unknown,
                    unknown_hint=self.settings.terminals.hint(shape) if unknown else "",
                ),
            )
        return kept[id(rules)][1]

    def _parts(self, scores: Scores) -> tuple[Floats | None, Floats | None]:
        if scores.transition is None:
            return None, None
        if scores.transition.shape != (self.n_cliques,):
            raise ValueError(
                f"transition must have shape ({self.n_cliques},), one for each rule and root. Got "
                f"{scores.transition.shape} instead."
            )
        if not (scores.transition < np.inf).all():
            raise ValueError("transition must be finite, or -inf for what is forbidden. Got NaN or +inf instead.")
        return scores.transition, None

    def for_labels(
        self, names: Sequence[Any], codes: Codes, shape: Shape, constraints: Any = None, owner: str = "CRF"
    ) -> Grammar:
        """Return the grammar for the labels of training data, with the rules of its trees unless they are given."""
        labels = [str(name) for name in names]
        if constraints is not None:
            raise ValueError(f"The 'constraints' parameter of {owner} must be None: a Grammar has rules.")
        if not labels or labels[0] != "":
            raise ValueError(f"The labels of spans must begin with the empty one, for no bracket. Got {labels!r:.200}.")
        assert isinstance(shape, GrammarShape)
        if self.rules is None:
            how = self.settings
            reader = Binarisation(how.binarise, how.horizontal, how.vertical, how.tags)
            return self._with_rules(
                reader.read(labels, codes, shape, self.settings.terminals.of_training(shape)), shape
            )
        if self.labels != labels:
            missing, more = sorted({*self.rules.labels} - {*labels}), sorted({*labels} - {*self.rules.labels})
            raise ValueError(
                f"structure has other labels than y: {missing!r:.200} only in the grammar, {more!r:.200} only in y. "
                "Use structure='grammar', which reads its rules off y, or make the grammar of the same trees."
            )
        return self._with_rules(self.rules, shape)

    def _with_rules(self, rules: GrammarRules, shape: GrammarShape) -> Grammar:
        settings = self.settings
        if settings.output is None and shape.forms:
            settings = replace(settings, output=shape.forms[0])
        return self._of(rules, settings)

    @classmethod
    def _of(cls, rules: GrammarRules | None, settings: GrammarSettings) -> Grammar:
        return cls(rules, **{one.name: getattr(settings, one.name) for one in fields(settings)})

    def why_impossible(self, scores: Scores | ArrayLike, *, n_jobs: int | None = None) -> dict[int, str]:
        """Return which sentences have no tree, and which word or bracket is the cause."""
        reasons = super().why_impossible(scores, n_jobs=n_jobs)
        return with_brackets(self, self._read_scores(scores), reasons, self.labels) if reasons else reasons

    def agreement(self, predicted: Any, y: Any) -> float | None:
        """Return the F1 of labelled brackets."""
        return bracket_agreement(predicted, y)

    def over_states(self, label: NDArray[np.int64]) -> Grammar:
        """Return the grammar over states that belong to labels: each rule, once for all states of its symbols."""
        rules, origin = self._known.over_states(label)
        found = self._of(rules, self.settings)
        found._split_from = self._known, origin
        return found

    def matched_cliques(self, old: Structure, labels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Find rules in another grammar, by the names of their symbols, or in the one that was split."""
        if not isinstance(old, Grammar) or old.rules is None:
            return super().matched_cliques(old, labels)
        if self._split_from is not None and self._split_from[0] is old.rules:
            return self._split_from[1]
        known = {key: at for at, key in enumerate(old.rules.keys)}
        return np.array([known.get(key, -1) for key in self._known.keys], dtype=np.int64)

    def record(self) -> Fields:
        """Return the record of the structure."""
        return {
            "kind": self.name,
            "rules": None if self.rules is None else self.rules.record(),
            "settings": self.settings.record(),
        }

    @classmethod
    def from_record(cls, record: Record) -> Grammar:
        """Build a structure from its record, which is checked."""
        record.text("kind", (cls.name,))
        rules = GrammarRules.from_record(record.child("rules")) if record.has("rules") else None
        return cls._of(rules, GrammarSettings.from_record(record.child("settings")))

    def _key(self) -> tuple[Any, ...]:
        return (None if self.rules is None else (self.rules.labels, self.rules.keys)), self.settings

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Grammar) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.n_cliques, self.n_labels, self.settings.tags))

    def __repr__(self) -> str:
        how = self.settings
        known = "" if self.rules is None else f"<{self.n_cliques} rules, {self.n_labels} labels>, "
        return (
            f"Grammar({known}binarise={how.binarise!r}, horizontal={how.horizontal}, vertical={how.vertical}, "
            f"tags={how.tags!r})"
        )
