"""Inference on chains

Forward-backward and Viterbi with shared transitions, sequences of 5 to 200 nodes, beside hmmlearn's native routines,
beside NumPy, and beside the matrix products that hold the same floating-point work with its order taken away (BLAS, one
thread).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.memory import peak_megabytes
from dualfield import _native
from dualfield.structures import Chain, Scores

# Number of labels, sequences for us, sequences for the slow peers (nanoseconds per node are compared).
SIZES = [(5, 3000, 600), (22, 1500, 200), (50, 600, 50), (200, 120, 8)]
N_ROUNDS = 7


def make_batch(n_labels: int, n_sequences: int) -> Scores:
    """Sequences of 5 to 200 nodes, normal scores, shared transitions."""
    rng = np.random.default_rng(n_labels)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(5, 201, n_sequences))])
    node = rng.standard_normal((offsets[-1], n_labels))
    return Scores(node, offsets, rng.standard_normal((n_labels, n_labels)))


def numpy_marginals(node: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Scaled forward-backward of one sequence, a vector-matrix product for each node."""
    factor = np.exp(node - node.max(axis=1, keepdims=True))
    alpha, beta, scale = np.empty_like(factor), np.ones_like(factor), np.empty(len(factor))
    row = factor[0]
    for t in range(len(factor)):
        row = factor[t] if t == 0 else (alpha[t - 1] @ table) * factor[t]
        scale[t] = row.sum()
        alpha[t] = row / scale[t]
    for t in range(len(factor) - 2, -1, -1):
        beta[t] = table @ (factor[t + 1] * beta[t + 1]) / scale[t + 1]
    return alpha * beta


def numpy_viterbi(node: np.ndarray, transition: np.ndarray) -> np.ndarray:
    back = np.empty(node.shape, dtype=np.intp)
    row = node[0]
    for t in range(1, len(node)):
        candidates = row[:, None] + transition
        back[t] = candidates.argmax(axis=0)
        row = candidates.max(axis=0) + node[t]
    labels = np.empty(len(node), dtype=np.intp)
    labels[-1] = row.argmax()
    for t in range(len(node) - 1, 0, -1):
        labels[t - 1] = back[t, labels[t]]
    return labels


class HmmLearn:
    """The native routines of hmmlearn on the same scores, exponentiated: they do not ask that rows sum to 1."""

    def __init__(self, scores: Scores) -> None:
        from hmmlearn import _hmmc

        assert scores.transition is not None
        self.native = _hmmc
        self.scores = scores
        self.transition = scores.transition
        self.table = np.exp(scores.transition - scores.transition.max())
        self.start = np.ones(scores.n_labels)

    def marginals(self, node: np.ndarray) -> np.ndarray:
        factor = np.exp(node - node.max(axis=1, keepdims=True))
        _, alpha, scale = self.native.forward_scaling(self.start, self.table, factor)
        beta = self.native.backward_scaling(self.start, self.table, factor, scale)
        posterior = alpha * beta
        return posterior / posterior.sum(axis=1, keepdims=True)

    def viterbi(self, node: np.ndarray) -> np.ndarray:
        return np.asarray(self.native.viterbi(self.start, self.table, node)[1])


def nanoseconds(
    calls: dict[str, Callable[[], Any]], nodes: dict[str, int], n_rounds: int = N_ROUNDS
) -> dict[str, float]:
    """Best of several interleaved rounds, per node."""
    best = dict.fromkeys(calls, np.inf)
    for _ in range(n_rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - start)
    return {name: 1e9 * best[name] / nodes[name] for name in calls}


def check(chain: Chain, scores: Scores, peer: HmmLearn, table: np.ndarray) -> None:
    """Refuse to time what is wrong: all implementations must agree on the first sequences."""
    answer, best = chain.marginals(scores).node, chain.argmax(scores)
    for i in range(3):
        rows = slice(*scores.offsets[i : i + 2])
        node = scores.node[rows]
        np.testing.assert_allclose(answer[rows], numpy_marginals(node, table), atol=1e-10)
        np.testing.assert_allclose(answer[rows], peer.marginals(node), atol=1e-10)
        np.testing.assert_array_equal(best[rows], numpy_viterbi(node, peer.transition))
        np.testing.assert_array_equal(best[rows], peer.viterbi(node))


def measure(n_labels: int, n_ours: int, n_theirs: int) -> dict[str, Any]:
    scores, chain = make_batch(n_labels, n_ours), Chain(n_labels)
    assert scores.transition is not None
    table = np.exp(scores.transition - scores.transition.max())
    peer = HmmLearn(scores)
    check(chain, scores, peer, table)

    few = [scores.node[slice(*scores.offsets[i : i + 2])] for i in range(n_theirs)]
    n_all, n_few = scores.n_nodes, sum(len(node) for node in few)
    rows = np.random.default_rng(0).random((n_all, n_labels))

    def matrix_products() -> None:
        # The floating-point work of forward and backward, free of its order: all nodes at once.
        np.matmul(rows, table)
        np.matmul(rows, table.T)

    ours = {
        "marginals": lambda: chain.marginals(scores),
        "marginals_2_threads": lambda: chain.marginals(scores, n_jobs=2),
        "marginals_and_clique_sums": lambda: chain.marginals(scores, cliques="sum"),
        "viterbi": lambda: chain.argmax(scores),
        "viterbi_2_threads": lambda: chain.argmax(scores, n_jobs=2),
        "matrix_products": matrix_products,
    }
    theirs = {
        "hmmlearn_marginals": lambda: [peer.marginals(node) for node in few],
        "hmmlearn_viterbi": lambda: [peer.viterbi(node) for node in few],
        "numpy_marginals": lambda: [numpy_marginals(node, table) for node in few],
        "numpy_viterbi": lambda: [numpy_viterbi(node, peer.transition) for node in few],
    }
    each = nanoseconds({**ours, **theirs}, {**dict.fromkeys(ours, n_all), **dict.fromkeys(theirs, n_few)})
    return {
        "n_labels": n_labels,
        "n_nodes": n_all,
        "nanoseconds_per_node": each,
        "ratios": {
            "marginals_times_hmmlearn": each["hmmlearn_marginals"] / each["marginals"],
            "viterbi_times_hmmlearn": each["hmmlearn_viterbi"] / each["viterbi"],
            "marginals_times_numpy": each["numpy_marginals"] / each["marginals"],
            "viterbi_times_numpy": each["numpy_viterbi"] / each["viterbi"],
            "marginals_over_matrix_products": each["marginals"] / each["matrix_products"],
            "viterbi_over_matrix_products": each["viterbi"] / each["matrix_products"],
            "marginals_two_threads_speed_up": each["marginals"] / each["marginals_2_threads"],
            "viterbi_two_threads_speed_up": each["viterbi"] / each["viterbi_2_threads"],
        },
    }


def measure_memory(n_labels: int = 22, length: int = 100) -> list[dict[str, float]]:
    """Peak memory that a marginals call adds, and the size of its result."""
    chain, rows = Chain(n_labels), []
    for n_sequences in (1000, 2000, 4000, 8000):
        n_nodes = n_sequences * length
        scores = Scores(np.full((n_nodes, n_labels), 0.5), np.arange(0, n_nodes + 1, length))
        chain.marginals(scores)
        added = peak_megabytes(lambda scores=scores: chain.marginals(scores))
        rows.append({"n_nodes": n_nodes, "added_megabytes": added, "result_megabytes": scores.node.nbytes / 2**20})
    return rows


def measure_orders() -> list[dict[str, float]]:
    """What a higher order costs for 26 labels, all windows or only those that were seen."""
    rng = np.random.default_rng(0)
    scores = make_batch(26, 60)
    labels = rng.choice(26, size=scores.n_nodes, p=rng.dirichlet(np.full(26, 0.3)))
    rows = []
    for order in (1, 2, 3):
        for seen in (False, True) if order < 3 else (True,):
            chain = Chain.from_labels(labels, scores.offsets, n_labels=26, order=order) if seen else Chain(26, order)
            batch = Scores(scores.node, scores.offsets, rng.standard_normal(chain.n_cliques) if order > 1 else None)
            call = {"marginals": lambda chain=chain, batch=batch: chain.marginals(batch)}
            per_node = nanoseconds(call, {"marginals": scores.n_nodes}, 3)["marginals"]
            rows.append(
                {
                    "order": order,
                    "windows": int(chain.n_cliques),
                    "only_seen": seen,
                    "nanoseconds_per_node": per_node,
                }
            )
    return rows


def run() -> dict[str, Any]:
    with threadpool_limits(1):
        cases = [measure(*size) for size in SIZES]
    return {
        "name": "chain_inference",
        "instruction_set": _native.instruction_set(),
        "cases": cases,
        "memory": measure_memory(),
        "orders": measure_orders(),
    }


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    lines = []
    for query, title in (("marginals", "marginals"), ("viterbi", "Viterbi")):
        lines += [
            f"| labels | {title}, ns/node | × hmmlearn | × NumPy | ÷ matrix products | × on two threads |",
            "|" + "---|" * 6,
        ]
        for case in result["cases"]:
            ratio = case["ratios"]
            cells = [
                str(case["n_labels"]),
                f"{case['nanoseconds_per_node'][query]:.0f}",
                f"{ratio[query + '_times_hmmlearn']:.1f}",
                f"{ratio[query + '_times_numpy']:.0f}",
                f"{ratio[query + '_over_matrix_products']:.2f}",
                f"{ratio[query + '_two_threads_speed_up']:.2f}",
            ]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    lines += ["| nodes (22 labels) | memory added, MB | of it the result, MB |", "|---|---|---|"]
    lines += [
        f"| {row['n_nodes']:,} | {row['added_megabytes']:.1f} | {row['result_megabytes']:.1f} |"
        for row in result["memory"]
    ]
    lines += ["", "| order (26 labels) | windows | marginals, ns/node |", "|---|---|---|"]
    lines += [
        f"| {row['order']}{', seen only' if row['only_seen'] else ''} | {row['windows']:,} "
        f"| {row['nanoseconds_per_node']:,.0f} |"
        for row in result["orders"]
    ]
    return "\n".join(lines)
