"""The training report: one page about a fitted model, its training data, and its results on held-out data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sklearn.utils.validation import check_is_fitted

from dualfield.plotting import ConvergenceDisplay, TopFeaturesDisplay, TransitionDisplay
from dualfield.plotting.canvas import check_matplotlib
from dualfield.plotting.markup import Html, escape
from dualfield.plotting.parse_trees.parsed import is_parser
from dualfield.plotting.tables import table
from dualfield.report.page import page
from dualfield.report.training_dev import DevData, evaluated, has_single_nodes
from dualfield.report.training_errors import error_section
from dualfield.report.training_facts import Fact, facts_section, gap_sentences
from dualfield.report.training_graphs import has_graphs
from dualfield.report.training_scores import score_section
from dualfield.report.training_tree_tables import read_trees, text_table
from dualfield.report.training_trees import tree_section

_STYLE = """
h3 { font-size: 1.05rem; margin: 1.4rem 0 0; }
.facts .data td { text-align: left; vertical-align: top; }
.facts .data th { text-align: left; }
.facts table { min-width: min(100%, 18rem); max-width: 100%; }
.facts .fact { overflow-wrap: anywhere; }
.facts .name { display: inline-block; max-width: 100%; }
.kinds small { display: block; color: var(--soft); font-size: .8rem; white-space: normal; }
.kinds .data th:last-child, .kinds .data td:last-child { text-align: left; }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 430px), 1fr)); gap: 0 2.5rem; }
.columns > div { min-width: 0; }
.columns .charts { margin-top: .6rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 300px), 1fr)); }
"""
_MOST_TYPES = 4  # tables of edges that are shown
_NO_DEV = (
    "No held-out data were given, so there are no scores, no errors, no reliability diagram and no examples here. "
    "Labelled data that the model was not trained on bring them: model.report(path, X, y) or dev=DevData(X, y) in "
    "Python, --dev on the command line."
)


def training_page(
    model: Any,
    *,
    title: str,
    facts: Iterable[Fact] = (),
    dev: DevData | None = None,
    history: Iterable[tuple[float, float, str, float]] = (),
    sentences: Any = None,
    command: str | None = None,
) -> Html:
    """Compose the report of a training.

    Parameters
    ----------
    model : fitted model
        :class:`dualfield.CRF`, the one of :mod:`dualfield.estimators.crfsuite`, :class:`dualfield.StructuredSVM`, or
        :class:`dualfield.KernelLogisticRegression`, or another one that predicts labels. One that has no probabilities
        gets no log-loss and no reliability diagram.
    title : str
        The heading.
    facts : iterable of (name, value), default=()
        What is shown at the end, before what can be read off the model: files, sizes, versions.
    dev : DevData, default=None
        Data that the model was not trained on. Scores, errors, reliability and sentences are computed from them.
    history : iterable of (passes, seconds, name of score, value), default=()
        Validation scores during the training.
    sentences : list of lists of str, default=None
        The tokens of the dev data, in place of ``dev.tokens``.
    command : str, default=None
        The command line that made the page, which is shown at the end.

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
    return page(title, _body(model, title, data, history, facts_section(model, facts, command)), style=_STYLE)


def _body(
    model: Any, title: str, dev: DevData | None, history: Iterable[Any], facts: Iterable[object]
) -> Iterator[object]:
    yield Html(f"<h1>{escape(title)}</h1>")
    trees = read_trees(model, dev.X, dev.y, dev.tokens) if dev is not None and is_parser(model) else None
    result = None if dev is None or trees is not None else evaluated(model, dev)
    if trees is not None:
        yield from tree_section(trees)
    elif result is None:
        yield _paragraph(_NO_DEV)
    elif not result.n_tokens:
        yield _paragraph("The held-out data have no labels, so there is nothing to score.")
    else:
        yield from score_section(result)
        yield Html("<h2>Errors</h2>")
        yield from error_section(result)
    yield from _model_section(model, dev)
    yield Html("<h2>Training</h2>")
    yield _paragraph(f"{model.status_.sentence} {gap_sentences(model)}")
    course = ConvergenceDisplay.from_estimator(model, history=history)
    yield course.html()
    if course.has_bounds:
        yield _paragraph(
            "The optimum lies between the objective and the lower bound. The relative gap is their distance, divided "
            "by the bound.",
            soft=True,
        )
    yield from facts


def _model_section(model: Any, dev: DevData | None) -> Iterator[Html]:
    """Show the weights of transitions and attributes, where the model has them."""
    parts = []
    if getattr(model, "label_graph_", None) is not None:
        return  # columns and tables belong to labels and pairs of labels: `dualfield inspect` names them
    if not has_single_nodes(model) and hasattr(getattr(model, "structure_", None), "order"):
        parts += [Html("<h3>Transitions</h3>"), *_transitions(model)]
    elif has_graphs(model):
        parts += _edge_tables(model)
    # A kernel gives columns no weights.
    if hasattr(model, "coef_") and hasattr(model, "vocabulary_") and getattr(model, "expansion_", None) is None:
        note = "The largest weights of both signs for each label; all bars have the same scale."
        parts += [Html("<h3>Attributes</h3>"), _paragraph(note, soft=True)]
        parts.append(TopFeaturesDisplay.from_estimator(model).html())
        if dev is not None and is_parser(model):
            parts += text_table(model, dev.X)
    if parts:
        yield from [Html("<h2>Model</h2>"), *parts]


def _edge_tables(model: Any) -> Iterator[Html]:
    """Show the table of each type of edge."""
    n_types = model.structure_.n_types
    shown = min(n_types, _MOST_TYPES)
    yield Html("<h3>Edges</h3>")
    for kind in range(shown):
        if n_types > 1:
            yield Html(f"<h4>Type {kind}</h4>")
        yield TransitionDisplay.from_estimator(model, edge_type=kind).html()
    more = f" These are the first {shown} of {n_types} types of edges." if shown < n_types else ""
    text = "A weight above 0 makes a label more likely at the end of an edge that comes from the label on the left."
    yield _paragraph(text + more, soft=True)


def _transitions(model: Any) -> Iterator[Html]:
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
