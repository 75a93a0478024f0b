"""Inference on segments

All marginals of semi-Markov models with scores of tokens, of lengths and of neighbouring kinds, log-partitions checked
to 1e-10 beforehand: `SemiMarkov` beside torch-struct, which sums the same segmentations in a tree of matrices made for
graphics cards, in double precision on one thread. Its potentials are made beforehand, ours in the call. Processor time
for each token, best of interleaved rounds; two threads by the clock.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.graph_inference import seconds
from dualfield import _native
from dualfield.structures import Scores, SemiMarkov

CASES = [(4, 4, 24, 16), (8, 4, 24, 16), (8, 8, 24, 16)]  # kinds, longest segment, tokens, sentences


def labels_of(n_kinds: int) -> list[str]:
    return [f"{letter}-{kind}" for letter in "BI" for kind in range(n_kinds)]


def potentials(node: np.ndarray, pairs: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Scores of every segment by first token, length, its kind and the kind before it, as torch-struct has them."""
    n_sentences, n, width = node.shape
    kinds, most = lengths.shape
    begin, inside = node[:, :, :kinds], node[:, :, kinds:width]
    sums = np.concatenate([np.zeros((n_sentences, 1, kinds)), np.cumsum(inside, axis=1)], axis=1)
    found = np.full((n_sentences, n, most + 1, kinds, kinds), -1e9)
    for length in range(1, most + 1):
        for first in range(n - length + 1):
            own = begin[:, first] + sums[:, first + length] - sums[:, first + 1] + lengths[:, length - 1]
            if first:
                found[:, first, length] = own[:, :, None] + pairs.T
            else:
                found[:, 0, length, :, 0] = own  # nothing is before the first: let kind 0 stand there
    return found


def measure(n_kinds: int, most: int, n: int, n_sentences: int) -> dict[str, Any]:
    rng = np.random.default_rng(n_kinds * most)
    structure = SemiMarkov(labels_of(n_kinds), most, outside="O")
    node = rng.standard_normal((n_sentences, n, 2 * n_kinds))
    pairs, lengths = rng.standard_normal((n_kinds, n_kinds)), rng.standard_normal((n_kinds, most))
    shared = np.concatenate([pairs.ravel(), lengths.ravel()])
    scores = Scores(node.reshape(-1, 2 * n_kinds), np.arange(0, n_sentences * n + 1, n), shared)
    many = Scores(np.tile(scores.node, (50, 1)), np.arange(0, 50 * n_sentences * n + 1, n), shared)
    wall = seconds(
        {"one": lambda: structure.marginals(many), "two": lambda: structure.marginals(many, n_jobs=2)},
        clock=time.perf_counter,
    )
    answer = {
        "n_kinds": n_kinds,
        "max_length": most,
        "n_tokens": n,
        "two_threads_speed_up": wall["one"] / wall["two"],
    }
    calls = {"ours": lambda: structure.marginals(scores, cliques="sum")}
    try:
        import torch
        import torch_struct
    except ImportError:
        answer["skipped"] = "torch-struct is not installed"
    else:
        torch.set_num_threads(1)
        theirs = torch.tensor(potentials(node, pairs, lengths))
        np.testing.assert_allclose(
            torch_struct.SemiMarkovCRF(theirs).partition.detach().numpy(), structure.log_partition(scores), rtol=1e-10
        )
        calls["torch"] = lambda: torch_struct.SemiMarkovCRF(theirs.clone()).marginals
    each = seconds(calls, 5)
    answer["nanoseconds_per_token"] = 1e9 * each["ours"] / (n * n_sentences)
    if "torch" in each:
        answer["times_torch_struct"] = each["torch"] / each["ours"]
    return answer


def run() -> dict[str, Any]:
    with threadpool_limits(1):
        return {
            "name": "segment_inference",
            "instruction_set": _native.instruction_set(),
            "cases": [measure(*case) for case in CASES],
        }


def table(result: dict[str, Any]) -> str:
    """The figures to look at, as Markdown."""
    lines = ["| kinds | longest | tokens | ns/token | × torch-struct | × on two threads |", "|" + "---|" * 6]
    for case in result["cases"]:
        peer = f"{case['times_torch_struct']:,.0f}" if "times_torch_struct" in case else "not installed"
        lines.append(
            f"| {case['n_kinds']} | {case['max_length']} | {case['n_tokens']} | {case['nanoseconds_per_token']:.0f} "
            f"| {peer} | {case['two_threads_speed_up']:.2f} |"
        )
    return "\n".join(lines)
