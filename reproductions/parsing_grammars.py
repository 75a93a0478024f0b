"""Parsers with a grammar: rules of the training trees, with probabilities or with weights."""

from typing import Any

from dualfield import CRF, DiscriminativePCFG, StructuredSVM
from dualfield.structures import Grammar
from reproductions.records import Settings


def grammar(given_tags: bool, **settings: Any) -> Grammar:
    """Return a grammar of tags, or of words: those of a model of features are told apart by them alone."""
    return Grammar(**settings) if given_tags else Grammar(tags="predicted", **settings)


def has_tags(X: Any) -> bool:
    """Return whether sentences have tags."""
    return not isinstance(X[0][0], str)


def fit_counted(settings: Settings, smoothing: float, X: Any, y: Any, **more: Any) -> Any:
    """Count rules; words without tags are terminals, rare ones by their class."""
    structure = grammar(has_tags(X), lexicon="seen", **more)
    return DiscriminativePCFG(eta=0.0, structure=structure, smoothing=smoothing, n_jobs=settings.threads).fit(X, y)


def fit_markovised(settings: Settings, smoothing: float, X: Any, y: Any) -> Any:
    """Count rules whose symbols know the bracket above."""
    return fit_counted(settings, smoothing, X, y, vertical=2, horizontal=1)


def fit_discriminative(settings: Settings, eta: float, X: Any, y: Any) -> Any:
    """Train probabilities of rules by restricted simplicial decomposition."""
    structure = grammar(has_tags(X), lexicon="seen")
    return DiscriminativePCFG(eta=eta, structure=structure, n_jobs=settings.threads).fit(X, y)


def _weighted(X: Any) -> Grammar:
    return grammar(True) if has_tags(X) else grammar(False, word_features="default")


def fit_grammar_likelihood(settings: Settings, C: float, X: Any, y: Any) -> Any:
    """Train a CRF on rules, and on features of words where there are no tags."""
    model = CRF(_weighted(X), C=C, solver="block_dual", tol=1e-3, n_jobs=settings.threads, random_state=settings.seed)
    return model.fit(X, y)


def fit_grammar_margin(settings: Settings, C: float, X: Any, y: Any) -> Any:
    """Train a structural SVM on the same."""
    model = StructuredSVM(_weighted(X), C=C, tol=2e-2, n_jobs=settings.threads, random_state=settings.seed)
    return model.fit(X, y)


def fit_grammar_perceptron(settings: Settings, passes: float, X: Any, y: Any) -> Any:
    """Train an averaged perceptron on the same."""
    model = CRF(
        _weighted(X), solver="perceptron", max_iter=int(passes), n_jobs=settings.threads, random_state=settings.seed
    )
    return model.fit(X, y)
