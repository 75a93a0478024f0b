"""What ``dualfield inspect`` says about a compiled corpus."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dualfield.data import CompiledCorpus


def show_corpus(path: Path, as_json: bool) -> None:
    """Print sizes and origin of the corpus in a folder."""
    from dualfield.data import CompiledCorpus

    corpus = CompiledCorpus(path)
    if as_json:
        click.echo(json.dumps(_record(corpus, path), ensure_ascii=False, indent=1))
        return
    for name, value in _facts(corpus, path):
        click.echo(f"{name:<13}{value}")


def _record(corpus: CompiledCorpus, path: Path) -> dict[str, Any]:
    sizes = ("n_examples", "n_nodes", "n_entries", "n_columns", "n_pair_columns", "n_parts", "n_blocks")
    return {
        "corpus": str(path),
        **{name: getattr(corpus, name) for name in sizes},
        "labels": corpus.labels.classes.tolist(),
        "template": None if corpus.template is None else corpus.template.text,
        "columns": None if corpus.columns is None else corpus.columns._asdict(),
        "form": corpus.form,
        "seed": corpus.seed,
        "sources": list(corpus.sources),
        "bytes": _nbytes(corpus),
    }


def _nbytes(corpus: CompiledCorpus) -> int:
    return sum(file.stat().st_size for file in corpus.path.iterdir())


def _facts(corpus: CompiledCorpus, path: Path) -> Iterator[tuple[str, str]]:
    from dualfield.features import Template
    from dualfield.io import FileColumns

    yield "folder", f"{path}, {_nbytes(corpus):,} bytes, a compiled corpus"
    yield "sentences", f"{corpus.n_examples:,} of {corpus.n_nodes:,} tokens with {corpus.n_entries:,} attributes"
    yield "labels", f"{len(corpus.labels)}: {' '.join(map(str, corpus.labels.classes.tolist()))}"
    pairs = "" if corpus.n_pair_columns is None else f", {corpus.n_pair_columns:,} of pairs"
    counts = corpus.feature_counts()
    yield "attributes", f"{corpus.n_columns:,} distinct{pairs}; {counts.outputs.size:,} occur with a label"
    sizes = corpus.block_sizes()
    mean = sizes[:, 0].mean() if len(sizes) else 0.0
    yield "parts", f"{corpus.n_parts:,}, in {corpus.n_blocks:,} blocks of {mean:,.1f} sentences"
    shown = ", ".join(corpus.sources[:3]) + f" and {len(corpus.sources) - 3} more" * (len(corpus.sources) > 3)
    yield "made from", f"{corpus.form}{': ' * bool(shown)}{shown}; shuffled by the seed {corpus.seed}"
    if corpus.columns is not None:
        yield "columns", str(FileColumns(*corpus.columns))
    if corpus.template is not None:
        yield "template", repr(Template(*corpus.template))[1:-1]
