"""Graphs: whatever sizes, cliques, scores and evidence are asked for, they are refused or answered in order."""

import sys
import warnings

import atheris
import numpy as np
from instrument import instrument_library

from dualfield.structures import FactorGraph

SIZES = (1, 1, 2, 2, 3, 4, 0, -1, 2**31, 2**32, 2**62, 2**63, 2**64)
STRANGE = (0.0, 1.0, -1.0, 1e3, -1e3, 1e308, -1e308, 5e-324, float("inf"), float("-inf"), float("nan"))
USUAL = 4  # of the numbers above: those with which answers can be compared


def fuzz(data: bytes) -> None:
    """Build a graph, and ask it all questions."""
    draw = atheris.FuzzedDataProvider(data)
    n_labels = [draw.PickValueInList(list(SIZES)) for _ in range(draw.ConsumeIntInRange(0, 6))]
    cliques = [
        tuple(draw.ConsumeIntInRange(-1, 6) for _ in range(draw.ConsumeIntInRange(0, 4)))
        for _ in range(draw.ConsumeIntInRange(0, 6))
    ]
    max_table = draw.PickValueInList([2**12, 2**12, 0, 1, 2**63])
    try:
        graph = FactorGraph(n_labels, cliques, max_table=min(max_table, 2**20))
        ask(graph, draw)
    except ValueError:
        pass


def ask(graph: FactorGraph, draw: atheris.FuzzedDataProvider) -> None:
    """Ask a graph about scores, most of them usual, some of them not."""
    strange = STRANGE if draw.ConsumeBool() else STRANGE[:USUAL]
    n_examples = draw.ConsumeIntInRange(0, 2)
    tables = []
    for clique in graph.cliques:
        shape = [graph.n_labels[node] for node in clique]
        if np.prod(shape, dtype=float) > 2**12:
            raise ValueError("no memory for this")
        if draw.ConsumeBool():
            shape = [n_examples, *shape]
        numbers = [draw.PickValueInList(list(strange)) for _ in range(min(int(np.prod(shape)), 64))] or [0.0]
        tables.append(np.resize(numbers, shape))
    evidence = None
    if draw.ConsumeBool():
        evidence = np.array(
            [[draw.ConsumeIntInRange(-2, 4) for _ in graph.n_labels] for _ in range(max(n_examples, 1))]
        )
    best, maximum = graph.argmax(tables, evidence=evidence), graph.maximum(tables, evidence=evidence)
    total = graph.log_partition(tables, evidence=evidence)
    graph.marginals(tables, evidence=evidence)
    graph.node_marginals(tables, evidence=evidence)
    value = graph.score(tables, best)
    if strange is not STRANGE:
        assert np.allclose(value, maximum)
        assert (total >= maximum - 1e-9 * np.abs(maximum)).all()


def main() -> None:
    """Run."""
    warnings.simplefilter("ignore")
    instrument_library()
    atheris.Setup(sys.argv, fuzz)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
