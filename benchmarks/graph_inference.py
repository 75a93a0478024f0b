"""Inference on trees and graphs

All marginals, with answers checked beforehand: factor graphs beside the batched NumPy elimination that the library had
(its checks of the input among it), and beside pgmpy's calibration of one graph (its plan not counted, ours neither); a
chain as `Tree` beside `Chain`, shared table, with sums over pairs; and a sweep of tree-reweighted bounds on a grid of
100 × 100 beside a NumPy sweep that updates all messages at once. Microseconds of processor time for each example, best
of interleaved rounds; two threads by the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.numpy_graph import NumpyGraph
from dualfield import _native
from dualfield.structures import Chain, FactorGraph, Scores, Tree, TreeShape

N_ROUNDS = 9
Edges = list[tuple[int, int]]


def binary_tree(n: int) -> Edges:
    return [((t - 1) // 2, t) for t in range(1, n)]


def grid(height: int, width: int) -> Edges:
    at = np.arange(height * width).reshape(height, width)
    pairs = np.concatenate(
        [np.column_stack([at[:, :-1].ravel(), at[:, 1:].ravel()]), np.column_stack([at[:-1].ravel(), at[1:].ravel()])]
    )
    return [(int(a), int(b)) for a, b in pairs]


BATCHES: list[tuple[str, int, Edges, int, int]] = [  # name, nodes, edges, labels, examples
    ("tree of 63 nodes, 4 labels", 63, binary_tree(63), 4, 200),
    ("full graph of 6 nodes, 2 labels", 6, list(combinations(range(6), 2)), 2, 2000),
    ("grid of 5 × 5 nodes, 3 labels", 25, grid(5, 5), 3, 50),
]
ONE_BY_ONE: list[tuple[str, int, Edges, int]] = [
    ("tree of 31 nodes, 3 labels", 31, binary_tree(31), 3),
    ("grid of 5 × 5 nodes, 3 labels", 25, grid(5, 5), 3),
    ("full graph of 6 nodes, 2 labels", 6, list(combinations(range(6), 2)), 2),
]
CHAINS = [(2, 30), (5, 25), (11, 25), (22, 24), (26, 8)]  # labels, length


def seconds(
    calls: dict[str, Callable[[], Any]],
    n_rounds: int = N_ROUNDS,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Best of several interleaved rounds."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(n_rounds):
        for name, call in calls.items():
            start = clock()
            call()
            best[name] = min(best[name], clock() - start)
    return best


def cliques_of(n_nodes: int, edges: Edges) -> list[tuple[int, ...]]:
    return [*((t,) for t in range(n_nodes)), *edges]


def tables_of(cliques: list[tuple[int, ...]], n_labels: int, n_examples: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((n_examples, *(n_labels,) * len(clique))) for clique in cliques]


def measure_batch(name: str, n_nodes: int, edges: Edges, n_labels: int, n_examples: int) -> dict[str, Any]:
    cliques = cliques_of(n_nodes, edges)
    tables = tables_of(cliques, n_labels, n_examples)
    ours, theirs = FactorGraph([n_labels] * n_nodes, cliques), NumpyGraph([n_labels] * n_nodes, cliques)
    for found, wanted in zip(ours.marginals(tables), theirs.marginals(tables), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-11)
    each = seconds({"ours": lambda: ours.marginals(tables), "numpy": lambda: theirs.marginals(tables)})
    many = [np.concatenate([table] * 4) for table in tables]
    wall = seconds(
        {"one": lambda: ours.marginals(many), "two": lambda: ours.marginals(many, n_jobs=2)}, clock=time.perf_counter
    )
    return {
        "name": name,
        "n_examples": n_examples,
        "microseconds": 1e6 * each["ours"] / n_examples,
        "times_numpy": each["numpy"] / each["ours"],
        "two_threads_speed_up": wall["one"] / wall["two"],
    }


def pgmpy_calibration(n_nodes: int, edges: Edges, n_labels: int, tables: list[np.ndarray]) -> Callable[[], Any]:
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.inference import BeliefPropagation
    from pgmpy.models import DiscreteMarkovNetwork

    model = DiscreteMarkovNetwork([(f"v{a}", f"v{b}") for a, b in edges])
    model.add_factors(
        *(
            DiscreteFactor([f"v{node}" for node in clique], [n_labels] * len(clique), np.exp(table[0]).ravel())
            for clique, table in zip(cliques_of(n_nodes, edges), tables, strict=True)
        )
    )
    return lambda: BeliefPropagation(model).calibrate()


def measure_pgmpy() -> dict[str, Any]:
    try:
        import pgmpy  # noqa: F401
    except ImportError:
        return {"skipped": "pgmpy is not installed"}
    cases = []
    for name, n_nodes, edges, n_labels in ONE_BY_ONE:
        cliques = cliques_of(n_nodes, edges)
        tables = tables_of(cliques, n_labels, 200)
        graph = FactorGraph([n_labels] * n_nodes, cliques)
        theirs = pgmpy_calibration(n_nodes, edges, n_labels, tables)
        each = seconds({"ours": lambda graph=graph, tables=tables: graph.marginals(tables)})["ours"] / len(tables[0])
        peer = seconds({"pgmpy": theirs}, 2)["pgmpy"]
        cases.append({"name": name, "microseconds": 1e6 * each, "times_pgmpy": peer / each})
    return {"cases": cases}


def measure_chain(n_labels: int, length: int) -> dict[str, Any]:
    rng = np.random.default_rng(n_labels)
    n = 20_000 // length
    node, table = rng.standard_normal((n * length, n_labels)), rng.standard_normal((n_labels, n_labels))
    offsets = np.arange(0, n * length + 1, length)
    shape = TreeShape(offsets, np.tile(np.arange(-1, length - 1, dtype=np.int32), n))
    chain, tree = Scores(node, offsets, table), Scores(node, transition=table, shape=shape)
    one, two = Chain(n_labels).marginals(chain, cliques="sum"), Tree(n_labels).marginals(tree, cliques="sum")
    np.testing.assert_allclose(two.node, one.node, atol=1e-11)
    np.testing.assert_allclose(two.clique, one.clique, atol=1e-9)
    each = seconds(
        {
            "chain": lambda: Chain(n_labels).marginals(chain, cliques="sum"),
            "tree": lambda: Tree(n_labels).marginals(tree, cliques="sum"),
        }
    )
    wall = seconds(
        {
            "one": lambda: Tree(n_labels).marginals(tree, cliques="sum"),
            "two": lambda: Tree(n_labels).marginals(tree, cliques="sum", n_jobs=2),
        },
        clock=time.perf_counter,
    )
    return {
        "n_labels": n_labels,
        "length": length,
        "tree_nanoseconds_per_node": 1e9 * each["tree"] / (n * length),
        "chain_nanoseconds_per_node": 1e9 * each["chain"] / (n * length),
        "tree_over_chain": each["tree"] / each["chain"],
        "two_threads_speed_up": wall["one"] / wall["two"],
    }


def numpy_sweep(node: np.ndarray, tables: np.ndarray, ends: np.ndarray, messages: np.ndarray, n_forests: int) -> None:
    """One parallel update of all messages [2 E][K] of tree-reweighted belief propagation, in place, damped by half."""
    n_edges, scale = len(tables), float(n_forests)
    source, target = ends[:, 0], ends[:, 1]
    belief = node.copy()
    np.add.at(belief, target, messages[:n_edges])
    np.add.at(belief, source, messages[n_edges:])
    for way, at, other in ((0, source, 1), (1, target, 0)):
        back = messages[other * n_edges : (other + 1) * n_edges]
        cavity = belief[at] - scale * back
        cavity -= cavity.max(axis=1, keepdims=True)
        table = tables if way == 0 else tables.transpose(0, 2, 1)
        sums = np.matmul(np.exp(cavity)[:, None, :], table)[:, 0]
        fresh = np.log(sums) / scale
        fresh -= fresh.max(axis=1, keepdims=True)
        own = messages[way * n_edges : (way + 1) * n_edges]
        own += 0.5 * (fresh - own)


def measure_sweep(n_labels: int, side: int = 100) -> dict[str, Any]:
    rng = np.random.default_rng(n_labels)
    ends = np.array(grid(side, side), dtype=np.int32)
    node = rng.standard_normal((side * side, n_labels))
    pairs = rng.standard_normal((len(ends), n_labels, n_labels))
    offsets, edge_offsets = np.array([0, side * side]), np.array([0, len(ends)])
    own = [node, pairs.reshape(len(ends), -1)]

    def sweeps(count: int) -> Callable[[], Any]:
        twin = _native.RelaxedGraphStructure(
            n_labels, offsets, ends, edge_offsets, None, 1, True, None, tolerance=0.0, most_sweeps=count
        )
        oracle = _native.Oracle(twin, own, None, 1.0, 1)
        return lambda: oracle.log_partition()

    messages, tables = np.zeros((2 * len(ends), n_labels)), np.exp(2.0 * pairs)
    calls = {"few": sweeps(2), "many": sweeps(12), "numpy": lambda: numpy_sweep(node, tables, ends, messages, 2)}
    each = seconds(calls, 5)
    ours = (each["many"] - each["few"]) / 10.0  # a sweep goes there and back: two updates of every message
    return {
        "n_labels": n_labels,
        "milliseconds": 1e3 * ours,
        "times_numpy": 2.0 * each["numpy"] / ours,
    }


def run() -> dict[str, Any]:
    with threadpool_limits(1):
        return {
            "name": "graph_inference",
            "instruction_set": _native.instruction_set(),
            "batches": [measure_batch(*case) for case in BATCHES],
            "pgmpy": measure_pgmpy(),
            "chains": [measure_chain(*case) for case in CHAINS],
            "sweeps": [measure_sweep(n_labels) for n_labels in (2, 11)],
        }


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    lines = ["| all marginals | examples | µs/example | × NumPy | × on two threads |", "|---|---|---|---|---|"]
    lines += [
        f"| {case['name']} | {case['n_examples']} | {case['microseconds']:.2f} | {case['times_numpy']:.1f} "
        f"| {case['two_threads_speed_up']:.2f} |"
        for case in result["batches"]
    ]
    if "cases" in result["pgmpy"]:
        lines += ["", "| all marginals | µs/example | × pgmpy |", "|---|---|---|"]
        lines += [
            f"| {case['name']} | {case['microseconds']:.2f} | {case['times_pgmpy']:,.0f} |"
            for case in result["pgmpy"]["cases"]
        ]
    else:
        lines += ["", f"Beside pgmpy: skipped, {result['pgmpy']['skipped']}."]
    lines += [
        "",
        "| labels | length | `Tree`, ns/node | `Chain`, ns/node | tree ÷ chain | × on two threads |",
        "|" + "---|" * 6,
    ]
    lines += [
        f"| {row['n_labels']} | {row['length']} | {row['tree_nanoseconds_per_node']:.0f} "
        f"| {row['chain_nanoseconds_per_node']:.0f} | {row['tree_over_chain']:.2f} "
        f"| {row['two_threads_speed_up']:.2f} |"
        for row in result["chains"]
    ]
    lines += ["", "| labels (grid of 100 × 100) | a sweep there and back, ms | × NumPy |", "|---|---|---|"]
    lines += [
        f"| {row['n_labels']} | {row['milliseconds']:.2f} | {row['times_numpy']:.1f} |" for row in result["sweeps"]
    ]
    return "\n".join(lines)
