"""The training report: one page about a fitted model, its training data, and its results on held-out data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from dualfield.plotting import ConvergenceDisplay, TopFeaturesDisplay, TransitionDisplay
from dualfield.plotting.canvas import check_matplotlib
from dualfield.plotting.markup import Html, escape
from dualfield.report.page import page, table
from dualfield.report.training_dev import DevData, evaluated, score_section, sentence_section
from dualfield.report.training_facts import Fact, facts_section, gap_sentences

_STYLE = """
h3 { font-size: 1.05rem; margin: 1.4rem 0 0; }
.facts .data td { text-align: left; vertical-align: top; }
.facts .data th { text-align: left; }
.facts table { min-width: 18rem; max-width: 56rem; }
.facts .fact { overflow-wrap: anywhere; }
.facts .name { display: inline-block; max-width: 100%; }
"""
_NO_DEV = (
    "No dev data were given, so there are no scores, no confusions, no reliability diagram and no sentences here. "
    "Labelled data that the model was not trained on bring them: dev=DevData(X, y) in Python, --dev on the command "
    "line."
)


def training_page(
    model: Any,
    *,
    title: str,
    facts: Iterable[Fact] = (),
    dev: DevData | None = None,
    history: Iterable[tuple[float, float, str, float]] = (),
    sentences: Any = None,
) -> Html:
    """Compose the report of a training.

    Parameters
    ----------
    model : fitted model
        :class:`dualfield.CRF`, the one of :mod:`dualfield.estimators.crfsuite`, :class:`dualfield.StructuredSVM`, or
        :class:`dualfield.KernelLogisticRegression`. One that has no probabilities gets no reliability diagram and no
        sentences.
    title : str
        The heading.
    facts : iterable of (name, value), default=()
        What is shown at the top, before what can be read off the model: files, sizes, versions.
    dev : DevData, default=None
        Data that the model was not trained on. Scores, confusions, reliability and sentences are computed from them.
    history : iterable of (passes, seconds, name of score, value), default=()
        Validation scores during the training.
    sentences : list of lists of str, default=None
        The tokens of the dev data, in place of ``dev.tokens``.

    Returns
    -------
    Html
        A self-contained document for :func:`write_page`.

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> from dualfield import CRF
    >>> from dualfield.report import DevData, training_page
    >>> model = CRF().fit([[["the"], ["dog"]], [["a"], ["dog"]]], [["DT", "NN"], ["DT", "NN"]])
    >>> document = training_page(model, title="Tags", facts=[("file", "a.txt")], dev=DevData([[["the"]]], [["DT"]]))
    >>> "<h1>Tags</h1>" in document, "1 sentence with 1 token" in document
    (True, True)
    """
    check_is_fitted(model)
    check_matplotlib()
    data = None if dev is None else DevData(*dev)
    if data is not None and sentences is not None:
        data = data._replace(tokens=sentences)
    return page(title, _body(model, title, facts, data, history), style=_STYLE)


def _body(
    model: Any, title: str, facts: Iterable[Fact], dev: DevData | None, history: Iterable[Any]
) -> Iterator[object]:
    yield Html(f"<h1>{escape(title)}</h1>")
    yield _paragraph(f"{model.status_.sentence} {gap_sentences(model)}")
    yield from facts_section(model, facts)
    yield Html("<h2>Convergence</h2>")
    course = ConvergenceDisplay.from_estimator(model, history=history)
    yield course.html()
    if course.has_bounds:
        yield _paragraph(
            "The optimum lies between the objective and the lower bound. The relative gap is their distance, divided "
            "by the bound.",
            soft=True,
        )
    result = None if dev is None else evaluated(model, dev)
    yield Html("<h2>Dev data</h2>")
    if result is None:
        yield _paragraph(_NO_DEV)
    elif not result.n_tokens:
        yield _paragraph("The dev data have no labels, so there is nothing to score.")
    else:
        yield from score_section(result)
    if hasattr(model, "structure_"):
        yield from _weights(model)
    if result is not None and result.tokens is not None and result.n_tokens and result.marginals is not None:
        yield Html("<h2>Sentences</h2>")
        yield from sentence_section(result)


def _weights(model: Any) -> Iterator[Html]:
    if not is_classifier(model):
        yield from _transitions(model)
    if getattr(model, "expansion_", None) is not None:
        return  # a kernel gives columns no weights
    yield Html("<h2>Attributes</h2>")
    yield _paragraph(
        "The largest weights of both signs for each label; all bars have the same scale.",
        soft=True,
    )
    yield TopFeaturesDisplay.from_estimator(model).html()


def _transitions(model: Any) -> Iterator[Html]:
    yield Html("<h2>Transitions</h2>")
    if model.structure_.order == 1:
        yield TransitionDisplay.from_estimator(model).html()
    else:
        top = model.top_features(15)
        rows = [(" → ".join(map(str, labels)), f"{weight:+.3f}") for labels, weight in [*top.likely, *top.unlikely]]
        yield table(("labels", "weight"), rows, caption="The largest weights of windows of labels, and the lowest")
    yield _paragraph("A weight above 0 makes the next label more likely after the one on the left.", soft=True)


def _paragraph(text: str, *, soft: bool = False) -> Html:
    look = ' class="soft"' if soft else ""
    return Html(f"<p{look}>{escape(text)}</p>")
