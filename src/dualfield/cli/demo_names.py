"""What ``dualfield demo`` does: training, one sentence, a comparison and the report, in one screen."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dualfield.cli.outputs import written_page
from dualfield.cli.training.pass_table import PassTable
from dualfield.datasets import TownNews, load_town_news
from dualfield.estimators import CRF
from dualfield.features import Template
from dualfield.io import write_conll
from dualfield.metrics import sequence_accuracy_score, span_f1_score, span_f1_scorer, token_log_loss
from dualfield.plotting import MarginalsDisplay
from dualfield.plotting.sentence import rounded
from dualfield.report.digit_words_records import percent
from dualfield.report.training_facts import gap_sentences

SENTENCE = "May Weston of Weston Ferries met Mark March near Weston in May ."
_SETTINGS: dict[str, Any] = {"C": 10.0, "random_state": 0}
_FILES = ("news-train.conll", "news-test.conll")
_NEXT = (
    "dualfield demo --save-data .",
    "dualfield train news-train.conll --model news.model --dev news-test.conll",
    'echo "Mark Hale left Ashby in May." | dualfield tag --text --model news.model',
)


def save_news(folder: Path) -> None:
    """Write the sentences in columns, a token and its label in each line, and say where."""
    news = load_town_news()
    for name, X, y in zip(_FILES, (news.X_train, news.X_test), (news.y_train, news.y_test), strict=True):
        rows = [list(zip(tokens, labels, strict=True)) for tokens, labels in zip(X, y, strict=True)]
        write_conll(rows, folder / name)
        click.echo(f"{folder / name}: {len(X)} sentences, {sum(map(len, X)):,} tokens")


def chain_model() -> CRF:
    """Return the CRF of the demo, before it is fitted."""
    return CRF(template="default", constraints="BIO", **_SETTINGS)


def independent_model(constraints: str | None = None) -> CRF:
    """Return one with the same attributes and no weights between neighbouring labels."""
    lines = Template.default().text.splitlines()
    template = Template("\n".join(line for line in lines if line != "b"))
    return CRF(template=template, constraints=constraints, **_SETTINGS)


def show_names(report: Path) -> None:
    """Train, show what the model answers, and write the report."""
    console = Console(highlight=False)
    news = load_town_news()
    n_train, n_test, n_tokens = len(news.X_train), len(news.X_test), sum(map(len, news.X_train))
    console.print(
        f"{n_train} sentences of local news with {n_tokens:,} tokens to train on, and {n_test} held out (dev), in "
        "which most names are new. All names are fictional.\n"
    )
    model = chain_model()
    with PassTable(model.tol, _score_on(news), "F1", factor=10.0) as passes:
        model.fit(news.X_train, news.y_train, monitor=passes)
    console.print(Text(f"\n{model.status_.sentence} {gap_sentences(model)}"))
    console.print()
    console.print("A new sentence, with the exact probability of each name:", style="bold")
    _show_sentence(console, model, SENTENCE.split())
    console.print()
    console.print("The held-out sentences, each label predicted alone and in a chain:", style="bold")
    models = {
        "independent labels": independent_model().fit(news.X_train, news.y_train),
        "and the rules of BIO": independent_model("BIO").fit(news.X_train, news.y_train),
        "chain (CRF)": model,
    }
    console.print(_comparison(models, news))
    with written_page(report):
        title = "Names in local news, all of them fictional"
        model.report(report, news.X_test, news.y_test, title=title, history=passes.history)
    console.print(f"\nScores, errors, weights and sentences: {report}", markup=False, soft_wrap=True)
    console.print(f"Next, type{_activation()}:", markup=False, soft_wrap=True)
    for line in _NEXT:
        console.print(f"  {line}", markup=False, style="bold", soft_wrap=True)


def _activation() -> str:
    """Say what puts the command on the path, if it is not there."""
    script = Path(sys.executable).with_name("activate")
    if shutil.which("dualfield") or not script.exists():
        return ""
    here = Path.cwd()
    return f" (after source {script.relative_to(here) if script.is_relative_to(here) else script})"


def _score_on(news: TownNews) -> Any:
    return lambda model: span_f1_scorer(model, news.X_test, news.y_test)


def _show_sentence(console: Console, model: CRF, words: Sequence[str]) -> None:
    display = MarginalsDisplay.from_estimator(model, words)
    has_colours = console.color_system is not None and not console.no_color
    console.print(display if has_colours else Text(str(display)))
    console.print()
    console.print("Its three most probable labellings:", style="bold")
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_header=False)
    table.add_row("", *words, style="dim")
    (best, _), *_ = ranked = model.k_best([words], 3)[0]
    for labels, probability in ranked:
        cells = [Text(label, "" if label == first else "bold red") for label, first in zip(labels, best, strict=True)]
        table.add_row(f"{rounded(probability)} ", *cells)
    console.print(table)


def _comparison(models: dict[str, CRF], news: TownNews) -> Table:
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("")
    for heading in ("F1 of names", "sentences right", "log-loss per token"):
        table.add_column(heading, justify="right")
    for name, model in models.items():
        predicted, marginals = model.predict(news.X_test), model.predict_proba(news.X_test)
        table.add_row(
            name,
            f"{100.0 * span_f1_score(news.y_test, predicted):.2f}",
            percent(sequence_accuracy_score(news.y_test, predicted)),
            f"{token_log_loss(news.y_test, marginals, model.classes_):.3f}",
        )
    return table
