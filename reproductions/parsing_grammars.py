"""Parsers with a grammar: rules of the training trees, with probabilities or with weights."""

from typing import Any

from dualfield import CRF, DiscriminativePCFG, StructuredSVM
from dualfield.structures import Grammar
from reproductions.records import Settings


class WhereParsed:
    """A model that has no tree, None, for sentences that its grammar cannot parse.

    Parameters
    ----------
    model : estimator
        Fitted.
    is_certified : bool, default=True
        Whether it has a duality gap.
    """

    def __init__(self, model: Any, *, is_certified: bool = True) -> None:
        self.model = model
        if is_certified:
            self.dual_gap_, self.objective_ = model.dual_gap_, max(model.objective_, 1e-300)

    def predict(self, X: Any) -> list[Any]:
        """Return trees, or None."""
        fits = self.model.structure_.is_possible(self.model.model_.scores(X)).tolist()
        found = iter(self.model.predict([sentence for sentence, has in zip(X, fits, strict=True) if has]))
        return [next(found) if has else None for has in fits]


def fit_counted(settings: Settings, smoothing: float, X: Any, y: Any) -> Any:
    """Count rules."""
    model = DiscriminativePCFG(eta=0.0, smoothing=smoothing, n_jobs=settings.threads).fit(X, y)
    return WhereParsed(model, is_certified=False)


def fit_markovised(settings: Settings, smoothing: float, X: Any, y: Any) -> Any:
    """Count rules whose symbols know the bracket above."""
    grammar = Grammar(vertical=2, horizontal=1)
    model = DiscriminativePCFG(eta=0.0, structure=grammar, smoothing=smoothing, n_jobs=settings.threads).fit(X, y)
    return WhereParsed(model, is_certified=False)


def fit_discriminative(settings: Settings, eta: float, X: Any, y: Any) -> Any:
    """Train probabilities of rules by restricted simplicial decomposition."""
    return WhereParsed(DiscriminativePCFG(eta=eta, n_jobs=settings.threads).fit(X, y))


def fit_grammar_likelihood(settings: Settings, C: float, X: Any, y: Any) -> Any:
    """Train a CRF on rules."""
    model = CRF("grammar", C=C, solver="block_dual", tol=1e-3, n_jobs=settings.threads, random_state=settings.seed)
    return WhereParsed(model.fit(X, y))


def fit_grammar_margin(settings: Settings, C: float, X: Any, y: Any) -> Any:
    """Train a structural SVM on rules."""
    model = StructuredSVM("grammar", C=C, tol=2e-2, n_jobs=settings.threads, random_state=settings.seed)
    return WhereParsed(model.fit(X, y))


def fit_grammar_perceptron(settings: Settings, passes: float, X: Any, y: Any) -> Any:
    """Train an averaged perceptron on rules."""
    model = CRF(
        "grammar", solver="perceptron", max_iter=int(passes), n_jobs=settings.threads, random_state=settings.seed
    )
    return WhereParsed(model.fit(X, y), is_certified=False)
