"""A small corpus in six files of CRFsuite's items, one of them empty, with a label that only the last one has."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def write_corpus(folder: Path, n: int = 120) -> list[Path]:
    rng = np.random.default_rng(0)
    folder.mkdir(exist_ok=True)
    cuts = [0, n // 5, n // 5, 2 * n // 5, 3 * n // 5, 4 * n // 5, n]
    sentences = []
    for at in range(n):
        tags = rng.integers(0, 3, size=int(rng.integers(2, 12)))
        words = [int(tag) * 9 + int(rng.zipf(1.6)) % 40 for tag in tags]
        labels = [f"L{(int(tag) + int(rng.integers(0, 6) == 0)) % 3}" for tag in tags]
        labels[-1] = "rare" if at == n - 1 else labels[-1]
        sentences.append("".join(f"{a}\tw={b}\ts={b % 7}\n" for a, b in zip(labels, words, strict=True)))
    paths = []
    for at in range(6):
        paths.append(folder / f"part{at}.txt")
        paths[-1].write_text("".join(f"{one}\n" for one in sentences[cuts[at] : cuts[at + 1]]))
    return paths
