"""Inference on dependency trees

All marginals of projective trees with one child of the root, log-partitions checked to 1e-10 beforehand: `Dependency`
beside torch-struct's Eisner algorithm, in double precision on one thread, with `multiroot=False`; the k best trees and
the best one. Potentials of torch-struct are made beforehand, ours are read in the call. Microseconds of processor time
for each sentence, best of interleaved rounds; two threads by the clock.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.graph_inference import seconds
from dualfield import _native
from dualfield.structures import ArcShape, Dependency, Scores

CASES = [(10, 64), (25, 16), (40, 8)]  # words, sentences
REPEATS = 20  # calls of ours in a round: one alone is over before the clock has moved much


def potentials(rows: np.ndarray) -> np.ndarray:
    """Scores of arcs by head and child, those from the root on the diagonal, as torch-struct has them."""
    n_sentences, n = len(rows), round(rows.shape[1] ** 0.5)
    found = np.zeros((n_sentences, n, n))
    children, places = np.divmod(np.arange(n * n), n)
    heads = places + (places > children)
    found[:, np.where(heads == 0, children, heads - 1), children] = rows
    return found


def measure(n: int, n_sentences: int) -> dict[str, Any]:
    rng = np.random.default_rng(n)
    structure = Dependency(["", "arc"])
    rows = rng.standard_normal((n_sentences, n * n))

    def scores(times: int) -> Scores:
        node = np.zeros((times * rows.size, 2))
        node[:, 1] = np.tile(rows.ravel(), times)
        return Scores(node, shape=ArcShape(np.arange(0, times * rows.size + 1, n * n)))

    few, many = scores(1), scores(100)
    wall = seconds(
        {"one": lambda: structure.marginals(many), "two": lambda: structure.marginals(many, n_jobs=2)},
        clock=time.perf_counter,
    )
    answer: dict[str, Any] = {"n_words": n, "two_threads_speed_up": wall["one"] / wall["two"]}
    calls: dict[str, Any] = {
        "marginals": lambda: [structure.marginals(few) for _ in range(REPEATS)],
        "argmax": lambda: [structure.argmax(few) for _ in range(REPEATS)],
        "k_best": lambda: [structure.k_best(few, 10) for _ in range(REPEATS)],
    }
    try:
        import torch
        import torch_struct
    except ImportError:
        answer["skipped"] = "torch-struct is not installed"
    else:
        torch.set_num_threads(1)
        theirs = torch.tensor(potentials(rows), requires_grad=True)  # it does not work without
        peer = torch_struct.DependencyCRF(theirs, multiroot=False)
        np.testing.assert_allclose(peer.partition.detach().numpy(), structure.log_partition(few), rtol=1e-10)
        marginals = potentials(structure.marginals(few).node[:, 1].reshape(n_sentences, -1))
        np.testing.assert_allclose(peer.marginals.detach().numpy(), marginals, atol=1e-10)
        calls["torch"] = lambda: torch_struct.DependencyCRF(theirs, multiroot=False).marginals
        calls["torch argmax"] = lambda: torch_struct.DependencyCRF(theirs, multiroot=False).argmax
    each = seconds(calls, 5)
    for name in ("marginals", "argmax", "k_best"):
        each[name] /= REPEATS
        answer[f"{name}_microseconds"] = 1e6 * each[name] / n_sentences
    if "torch" in each:
        answer["times_torch_struct"] = each["torch"] / each["marginals"]
        answer["argmax_times_torch_struct"] = each["torch argmax"] / each["argmax"]
    return answer


def run() -> dict[str, Any]:
    with threadpool_limits(1):
        return {
            "name": "dependency_inference",
            "instruction_set": _native.instruction_set(),
            "cases": [measure(*case) for case in CASES],
        }


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    lines = [
        "| words | marginals, µs | × torch-struct | argmax, µs | × torch-struct | 10 best, µs | × on two threads |",
        "|" + "---|" * 7,
    ]
    for case in result["cases"]:
        peers = [
            f"{case[name]:,.0f}" if name in case else "not installed"
            for name in ("times_torch_struct", "argmax_times_torch_struct")
        ]
        lines.append(
            f"| {case['n_words']} | {case['marginals_microseconds']:.1f} | {peers[0]} | "
            f"{case['argmax_microseconds']:.1f} | {peers[1]} | {case['k_best_microseconds']:.0f} | "
            f"{case['two_threads_speed_up']:.2f} |"
        )
    return "\n".join(lines)
