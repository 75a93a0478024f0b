"""Compiled corpora as the training of an HMM needs them: tables are counted, and sentences stay on disk."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualfield.data import Batch, CompiledCorpus, Labels
from dualfield.data.arrays import Codes, Floats, Ints
from dualfield.data.observations import Observations
from dualfield.data.symbols import Rare, SymbolTable
from dualfield.features import Template
from dualfield.models.corpus_training import REASONS, refuse_given
from dualfield.objectives.planes_corpus import CorpusPlanes
from dualfield.regularisers import TableDivergence
from dualfield.scores.tables import TableLayout, Tables
from dualfield.solvers import Simplicial, Solution, StopRule
from dualfield.solvers.base import Progress

_REASONS = {
    **REASONS,
    "sample_weight": "whose sentences are shuffled: compile sentences more than once",
    "hidden": "whose sentences are shuffled: train on sentences in memory",
}
# Vectors as long as all tables together: while they are counted, and while margins move them.
_COUNTED, _TRAINED = 16, 48
_BYTES_OF_A_SYMBOL = 250  # its text, its places in the table of symbols and in the list of those of the corpus
_COPIES = 5  # of the planes of a mixture, while it is solved for
_MATRICES = 3  # with a row and a column for each plane


@dataclass(frozen=True, eq=False, kw_only=True)
class HMMCorpus:
    """Everything that a fit to a compiled corpus needs, checked; the counterpart of ``HMMData``.

    Parameters
    ----------
    corpus : CompiledCorpus
        The sentences.
    observations, labels, layout
        As in ``HMMData``.
    columns : int32 array of shape (corpus.n_columns,)
        What columns of the corpus are called in the rows of a batch.
    counts : Tables
        How often everything occurs.
    """

    corpus: CompiledCorpus
    observations: Observations
    labels: Labels
    layout: TableLayout
    columns: NDArray[np.int32]
    counts: Tables

    def rows(self, block: int) -> tuple[Batch, Codes]:
        """Return the symbols of a block and their states."""
        found = self.corpus.block(block)
        assert found.nodes.indices is not None
        return Batch(
            found.nodes.offsets,
            int(self.observations.starts[-1]),
            indptr=found.nodes.indptr,
            indices=self.columns[found.nodes.indices],
        ), np.array(found.codes)


class CorpusMargins:
    """The problem with margins on a compiled corpus, near a reference: the counterpart of ``MarginTraining``."""

    n_completions = 0

    def __init__(
        self,
        data: HMMCorpus,
        reference: Tables,
        cost: Floats,
        eta: float,
        floor: float,
        n_threads: int,
        *,
        memory: float,
    ) -> None:
        layout = data.layout
        self._data, self._cost, self._eta, self._memory, self._n_threads = data, cost, eta, memory, n_threads
        self.divergence = TableDivergence(layout.pack(reference), layout.rows(), floor, n_threads)

    def solve(
        self, solver: Simplicial, rule: StopRule, start: Floats | None, callbacks: Progress | None
    ) -> Solution[Floats]:
        """Minimise the objective."""
        data, n_blocks = self._data, self._data.corpus.n_blocks
        bounds = np.linspace(0, n_blocks, solver.n_groups(n_blocks) + 1).astype(np.int64).tolist()
        groups = [range(a, b) for a, b in itertools.pairwise(bounds)]
        # The solver keeps one plane more while it melts some into one.
        most = min(solver.max_columns, int(min(rule.max_passes, 1e9))) + 1
        n_planes = most * len(groups)
        fixed = fixed_bytes(data.corpus, data.layout, trained=True)
        fixed += 8 * n_planes * (_MATRICES * n_planes + 2 * self.divergence.n_rows)

        def check(of_pass: int) -> None:
            least = fixed + _COPIES * most * of_pass
            advice = f" {n_planes} planes are allowed for: fewer max_columns or n_blocks need less."
            check_fits(self._memory, least, f"tables, planes of {of_pass} bytes in a round, and mixtures", advice)

        check(0)
        theta = self.divergence.origin() if start is None else self.divergence.nearest(start)
        problem = CorpusPlanes(
            data.layout,
            groups,
            data.rows,
            eta=self._eta,
            cost=self._cost,
            regulariser=self.divergence,
            check=check,
            n_threads=self._n_threads,
        )
        return solver.solve(problem, rule, theta, callbacks)


def read_hmm_corpus(
    owner: str, corpus: CompiledCorpus, min_count: int, rare: Rare, memory: float, **others: Any
) -> HMMCorpus:
    """Check a corpus and count it; `others` are arguments of fit that must be None."""
    refuse_given(others, _REASONS)
    if corpus.is_weighted or corpus.n_pair_columns is not None:
        what = "weights of attributes" if corpus.is_weighted else "attributes of pairs of labels"
        raise ValueError(f"{corpus.path} has {what}, and {owner} takes symbols. Compile it without.")
    if not corpus.n_nodes:
        raise ValueError(f"{corpus.path} must have at least one token. Got none.")
    corpus.verify()
    streams, first = _streams(owner, corpus)
    prefixes = _prefixes(owner, corpus, int(streams.max()) + 1)
    names = list(corpus.vocabulary)
    tables, columns, start = [], np.empty(corpus.n_columns, dtype=np.int32), 0
    found = corpus.feature_counts()
    owners = np.repeat(np.arange(corpus.n_columns), np.diff(found.indptr))
    totals = np.bincount(owners, found.counts, minlength=corpus.n_columns).astype(np.int64)
    for stream, prefix in enumerate(prefixes):
        symbols = {names[at].removeprefix(prefix): at for at in np.flatnonzero(streams == stream).tolist()}
        distinct = sorted(symbols)
        at, objects = np.array([symbols[name] for name in distinct]), np.empty(len(distinct), dtype=object)
        objects[:] = distinct
        tables.append(SymbolTable.of_counts(objects, totals[at], min_count, rare))
        columns[at] = start + tables[-1].encode(distinct)
        start += tables[-1].unknown + 1
    observations = Observations(tables)
    layout = TableLayout(len(corpus.labels), observations.sizes)
    check_fits(memory, fixed_bytes(corpus, layout, trained=False), "tables")
    return HMMCorpus(
        corpus=corpus,
        observations=observations,
        labels=corpus.labels,
        layout=layout,
        columns=columns,
        counts=_counts(corpus, layout, first, columns[owners]),
    )


def fixed_bytes(corpus: CompiledCorpus, layout: TableLayout, *, trained: bool) -> int:
    """Return the memory that is taken whatever is found: tables, symbols, and the block that is being read."""
    n, width = layout.n_states, len(layout.sizes)
    nodes = int(corpus.block_sizes()[:, 1].max(initial=0))
    vectors = layout.score_map.n_parameters * (_TRAINED if trained else _COUNTED)
    return 8 * vectors + _BYTES_OF_A_SYMBOL * corpus.n_columns + nodes * (24 * n + 64 * width + 64)


def check_fits(memory: float, least: int, what: str, advice: str = "") -> None:
    """Raise where a limit on memory is too low."""
    if least > memory:
        raise ValueError(f"memory must be at least {least} bytes, for {what}. Got {memory:g} instead.{advice}")


def _streams(owner: str, corpus: CompiledCorpus) -> tuple[NDArray[np.int32], Ints]:
    """Return the place that each attribute has in its tokens, and how often sentences begin with each state."""
    places, width = np.full(corpus.n_columns, -1, dtype=np.int32), -1
    first = np.zeros(len(corpus.labels), dtype=np.int64)
    for block in range(corpus.n_blocks):
        found = corpus.block(block)
        nodes = found.nodes
        assert nodes.indptr is not None
        assert nodes.indices is not None
        empty = np.flatnonzero(nodes.lengths == 0)
        if empty.size:
            raise ValueError(
                f"Sentence {empty[0]} of block {block} of {corpus.path} is empty: a sentence must have a token."
            )
        sizes = np.diff(nodes.indptr)
        width = int(sizes[0]) if width < 0 else width
        odd = np.flatnonzero((sizes != width) | (sizes == 0))
        if odd.size:
            raise ValueError(
                f"A token must have one attribute, or as many as there are streams at every token, with {owner}. "
                f"{_token(corpus, block, nodes, int(odd[0]))} has {sizes[odd[0]]}; expected {max(width, 1)}."
            )
        rows, order = nodes.indices.reshape(-1, width), np.arange(width, dtype=np.int32)
        before = places[rows]
        places[rows] = order
        wrong = ((before >= 0) & (before != order)) | (places[rows] != order)
        if wrong.any():
            node, at = np.argwhere(wrong)[0].tolist()
            raise ValueError(
                f"An attribute must be of one stream with {owner}: always the first of its token, always the second, "
                f"and so on. {_token(corpus, block, nodes, node)} has {list(corpus.vocabulary)[rows[node, at]]!r} in "
                "one place, and it or another token in another. Let the attributes of each stream begin with its name."
            )
        first += np.bincount(found.codes[nodes.offsets[:-1]], minlength=first.size)
    return places, first


def _prefixes(owner: str, corpus: CompiledCorpus, n_streams: int) -> list[str]:
    """Return with what the attributes of each stream begin, where a template puts it before symbols."""
    if corpus.template is None:
        return [""] * n_streams
    prefixes = Template(*corpus.template).prefixes
    if len(prefixes) != n_streams:
        raise ValueError(
            f"The template of {corpus.path} must make one attribute of a token with each line, a stream for {owner}. "
            f"It has {len(prefixes)} such lines; tokens have {n_streams} attributes."
        )
    return prefixes


def _counts(corpus: CompiledCorpus, layout: TableLayout, first: Ints, columns: NDArray[np.int32]) -> Tables:
    """Return the tables of counts, given the column of each count of the corpus."""
    n, found = layout.n_states, corpus.feature_counts()
    pairs, times = corpus.transitions()
    transition, emission = np.zeros(n * n), []
    transition[pairs] = times
    for start, size in zip(layout.starts, layout.sizes, strict=True):
        of = np.flatnonzero((columns >= start) & (columns < start + size))
        entries = size * found.outputs[of].astype(np.int64) + (columns[of] - start)
        counts = np.bincount(entries, found.counts[of], minlength=n * size)
        emission.append(counts.astype(np.float64).reshape(n, size))
    return Tables(first.astype(np.float64), transition.reshape(n, n), emission)


def _token(corpus: CompiledCorpus, block: int, nodes: Batch, node: int) -> str:
    sentence = int(np.searchsorted(nodes.offsets, node, side="right")) - 1
    return f"Token {node - nodes.offsets[sentence]} of sentence {sentence} of block {block} of {corpus.path}"
