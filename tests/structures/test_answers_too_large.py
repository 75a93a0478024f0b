"""Questions whose answers no memory can hold are refused; sizes that wrap around would write out of bounds."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield.structures import Chain, Scores, Single

NODE = np.array([[0.0, 1.0, 0.5], [0.25, 0.0, 0.0], [0.0, 0.0, 2.0]])


@pytest.mark.parametrize("make", [lambda: Chain(3), lambda: Chain(3, 2), lambda: Single(3)])
@pytest.mark.parametrize("count", [2**56, 2**62, 2**63, 2**64, 2**64 + 1, 10**30])
def test_counts_that_no_memory_holds(make, count):
    structure = make()
    with pytest.raises(ValueError, match=f"The 'k' parameter of k_best must give an answer .* Got {count}"):
        structure.k_best(NODE, count)
    with pytest.raises(ValueError, match=f"The 'n_samples' parameter of sample must give an answer .* Got {count}"):
        structure.sample(NODE, count)
    with pytest.raises(ValueError, match="n_samples"):
        structure.sample(NODE, count, temperature=0.0)


@pytest.mark.parametrize("count", [2**62, 2**63, 2**64 - 1, (2**64 - 1) // 3 + 1, 2**64 // 12 + 1])
def test_native_sizes_are_checked_as_well(count):
    """Without the check in Python: products of sizes that wrap around."""
    chain = Chain(3)._bind(NODE, None, 1.0, None)
    single = Single(3)._bind(NODE, None, 1.0, None)
    for oracle in (chain, single):
        for ask in (lambda o: o.k_best(count), lambda o: o.sample(count, 0)):
            with pytest.raises((ValueError, MemoryError)):
                ask(oracle)


@pytest.mark.parametrize(("size", "n_nodes"), [((2, 1), 5), ((2, 2), 4), ((3, 1), 3)])
def test_more_labellings_than_there_are(size, n_nodes):
    """Ranks beyond the number of labellings cost nothing but their place in the answer."""
    rng, chain = np.random.default_rng(0), Chain(*size)
    scores = Scores(rng.standard_normal((n_nodes + 1, chain.n_labels)), [0, n_nodes, n_nodes + 1])
    total = chain.n_labels**n_nodes
    best = chain.k_best(scores, 5000)
    assert best.labels.shape == (5000, n_nodes + 1)
    assert len({tuple(row) for row in best.labels[:total, :n_nodes].tolist()}) == total
    assert (best.labels[total:] == -1).all()
    assert (best.scores[0, total:] == -np.inf).all()
    assert (best.labels[chain.n_labels :, n_nodes] == -1).all()
    assert (np.diff(best.scores[0, :total]) <= 0.0).all()
    few = chain.k_best(scores, 7)
    np.testing.assert_array_equal(few.labels, best.labels[:7])
