"""Labels for lines, group by group: columns, plain text, CRFsuite's items, svmlight's examples, graphs, trees."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import IO, Any

import click

from dualfield.cli.labelling.arcs import ArcTagger
from dualfield.cli.labelling.columns import ColumnTagger
from dualfield.cli.labelling.graphs import GraphTagger
from dualfield.cli.labelling.json_lines import JsonWriter, tagged_json
from dualfield.cli.labelling.labellings import Style, behind, fields, predicted, ranked
from dualfield.cli.labelling.trees import TreeTagger
from dualfield.cli.models import LoadedModel
from dualfield.cli.reading.json_data import json_format
from dualfield.cli.reading.line_groups import Numbered, counted_from, line_groups, opened_as_it_comes
from dualfield.cli.reading.sources import placed, shown
from dualfield.io import AnnotatedText, split_tokens

_PEEK = 1 << 14  # bytes that are looked at to tell columns from JSON


def tagged_lines(loaded: LoadedModel, path: str, style: Style) -> Iterator[list[str]]:
    """Yield lines of output, in groups that belong together, while the input is still coming."""
    name = shown(path)
    with placed(name), opened_as_it_comes(path) as file:
        begin = "" if style.is_text or loaded.kind not in ("conll", "graphs", "trees") else _begin(file, style.encoding)
        is_json = loaded.kind == "conll" and json_format(begin) is not None
        by_sentence = loaded.kind in ("conll", "crfsuite", "conllu", "trees") and not style.is_text and not is_json
        groups = line_groups(file, name, by_sentence=by_sentence, encoding=style.encoding)
        if loaded.kind == "graphs":
            yield from GraphTagger(loaded, style.marginals).tagged(name, begin, groups)
        elif loaded.kind == "trees":
            yield from TreeTagger(loaded, style).tagged(name, begin, groups)
        elif loaded.kind == "conllu":
            yield from ArcTagger(loaded, name, style).tagged(groups)
        elif loaded.kind == "multilabel":
            yield from _tagged_sets(loaded, name, style, groups)
        elif is_json:
            _check_json(loaded, name, style)
            yield from tagged_json(JsonWriter(loaded, style.to, bool(style.marginals)), name, begin, groups)
        elif style.is_text:
            yield from _tagged_text(loaded, style, groups)
        elif loaded.kind == "conll":
            yield from ColumnTagger(loaded, name, style).tagged(groups)
        elif loaded.kind == "crfsuite":
            yield from _tagged_items(loaded, name, style, groups)
        else:
            yield from _tagged_examples(loaded, name, style, groups)


def _begin(file: Any, encoding: str) -> str:
    """Return what is there of the beginning of a file, which is not read."""
    return bytes(file.peek(_PEEK)[:_PEEK]).decode(encoding, errors="replace")


def _check_json(loaded: LoadedModel, name: str, style: Style) -> None:
    """Refuse JSON for a model that reads more than tokens, and what cannot be written of it."""
    loaded.choice(None).check_one_column(name)
    if style.columns is not None or style.labelled is not None:
        raise click.UsageError(f"--columns and --labelled are for files of columns; {name} is JSON.")
    if style.to == "conll":
        raise click.UsageError(f"{name} is JSON: --to is spans, doccano or tokens. `dualfield convert` writes columns.")
    if style.k_best or style.marginals == "all":
        option = "--k-best" if style.k_best else "--marginals all"
        raise click.UsageError(f"{option} is for columns; {name} is JSON, and so is what is written.")


def write_to(file: IO[bytes], groups: Iterator[list[str]]) -> None:
    """Write each group at once, so that the next program in a pipe need not wait."""
    for lines in groups:
        file.write("".join(line + "\n" for line in lines).encode())
        file.flush()


def _tagged_text(loaded: LoadedModel, style: Style, groups: Iterator[Numbered]) -> Iterator[list[str]]:
    """Tag plain text, a sentence in each line: a line for each token with its place, and a blank line."""
    for group in groups:
        sentences = [split_tokens(text) for _, text in group]
        if style.writes_json:
            pairs = zip(group, sentences, strict=True)
            full_texts = [AnnotatedText(text, tokens) for (_, text), tokens in pairs if tokens]
            X = [[(token,) for token, *_ in text.tokens] for text in full_texts]
            yield JsonWriter(loaded, style.to, bool(style.marginals)).lines(X, full_texts)
            continue
        full = [sentence for sentence in sentences if sentence]
        found = iter(predicted(loaded, [[(token,) for token, *_ in sentence] for sentence in full], style))
        lines: list[str] = []
        for sentence in sentences:
            texts = [f"{token} {begin} {end}" for token, begin, end in sentence]
            labellings = next(found) if sentence else []
            if style.k_best:
                lines += ranked(texts, labellings)
            else:
                lines += [behind(*pair) for best in labellings for pair in zip(texts, best.fields, strict=True)]
                lines.append("")
        yield lines


def _tagged_items(loaded: LoadedModel, name: str, style: Style, groups: Iterator[Numbered]) -> Iterator[list[str]]:
    """Tag CRFsuite's items: a line for each, as ``crfsuite tag`` writes them."""
    from dualfield.io import read_crfsuite_items

    labelled = style.labelled
    for group in groups:
        lines = [text for _, text in group]
        if labelled is None and any(lines):
            labelled = _begin_with_labels(loaded, [text.split("\t")[0] for text in lines if text], name)
        given = [f"?\t{text}" if text and labelled is False else text for text in lines]
        with counted_from(group[0][0], name):
            X, _ = read_crfsuite_items(given)
        labellings = predicted(loaded, X, style)
        if style.k_best:
            yield [line for one in labellings for line in ranked([""] * len(one[0].fields), one)]
        else:
            fields = iter([fields for (best,) in labellings for fields in best.fields])
            yield [behind("", next(fields)) if text else "" for text in lines]


def _begin_with_labels(loaded: LoadedModel, firsts: list[str], name: str) -> bool:
    """Tell whether items have a label in front, by what the model knows; in doubt they have, as for CRFsuite."""
    known = set(loaded.names)
    words = loaded.tagger.vocabulary_
    n_labels, n_attributes = (sum(first in held for first in firsts) for held in (known, words))
    if n_labels == n_attributes:
        said = f"{name}: {firsts[0]!r} is taken for the label of the first item; --no-label says that there are none."
        click.echo(said, err=True)
    return n_labels >= n_attributes


def _tagged_examples(loaded: LoadedModel, name: str, style: Style, groups: Iterator[Numbered]) -> Iterator[list[str]]:
    """Classify svmlight's examples: a line for each."""
    from dualfield.io import read_svmlight

    names = loaded.names
    for group in groups:
        with counted_from(group[0][0], name):
            X, _ = read_svmlight([text for _, text in group], n_features=loaded.model.n_features_in_)
        if X.shape[0]:
            rows = loaded.model.predict_proba(X) if style.marginals else None
            yield [" ".join(fields) for fields in fields(loaded.model.predict(X), rows, names, style)]


def _tagged_sets(loaded: LoadedModel, name: str, style: Style, groups: Iterator[Numbered]) -> Iterator[list[str]]:
    """Label svmlight's examples with several labels: a line for each, empty for one that gets none."""
    from dualfield.io import read_svmlight

    graph, names = loaded.label_graph, loaded.names
    assert graph is not None
    for group in groups:
        with counted_from(group[0][0], name):
            rows, _ = read_svmlight([text for _, text in group], n_features=graph.n_features, multilabel=True)
        if not rows.shape[0]:
            continue
        X = graph.graphs(rows)
        labellings = [[bool(label) for label in labels] for labels in loaded.model.predict(X)]
        sets = [",".join(itertools.compress(names, labels)) for labels in labellings]
        if not style.marginals:
            yield sets
            continue
        lines = []
        for labels, listed, chances in zip(labellings, sets, present(loaded, X), strict=True):
            written = [f"{chance:.6f}" for chance in chances]
            every = [f"{one}:{chance}" for one, chance in zip(names, written, strict=True)]
            all_of_them = every if style.marginals == "all" else []
            lines.append(" ".join([listed, ",".join(itertools.compress(written, labels)), *all_of_them]).strip())
        yield lines


def present(loaded: LoadedModel, X: Any) -> list[list[float]]:
    """Return for each row and label the probability that the row has the label."""
    classes = loaded.model.classes_.tolist()
    column = classes.index(1) if 1 in classes else None
    rows = loaded.model.predict_proba(X)
    return [[0.0] * len(one) if column is None else one[:, column].tolist() for one in rows]
