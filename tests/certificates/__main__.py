"""Many more problems than the suite has time for: ``python -m tests.certificates --problems 100000``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.certificates.claims import violated
from tests.certificates.hostile import FAMILIES, WITH_KERNEL, indefinite
from tests.certificates.precision import in_single_precision

Task = tuple[str, str, int]  # kind, family, seed


def tasks(n_problems: int, first: int, families: list[str]) -> Iterator[Task]:
    """Families in turn, each with the next seed; kernels also in single precision, and kernels that are none."""
    kinds = [("plain", family) for family in families]
    kinds += [(kind, family) for kind in ("single", "indefinite") for family in families if family in WITH_KERNEL]
    for at in range(n_problems):
        kind, family = kinds[at % len(kinds)]
        yield kind, family, first + at // len(kinds)


def run(task: Task) -> tuple[Task, list[str], float]:
    kind, family, seed = task
    begin = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        if kind == "single":
            in_single_precision(patch)
        claims = violated(indefinite(family, seed) if kind == "indefinite" else FAMILIES[family](seed))
    return task, claims, time.monotonic() - begin


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=1_000, help="the first seed; the suite has those below 1000")
    parser.add_argument("--jobs", type=int, default=None)
    parser.add_argument("--families", nargs="*", default=list(FAMILIES), choices=list(FAMILIES))
    options = parser.parse_args()
    count, broken, slowest = Counter(), Counter(), (0.0, None)
    with ProcessPoolExecutor(options.jobs) as pool:
        for task, claims, seconds in pool.map(
            run, tasks(options.problems, options.first, options.families), chunksize=20
        ):
            count[task[:2]] += 1
            slowest = max(slowest, (seconds, task))
            if claims:
                broken[task[:2]] += 1
                print(*task, *claims, sep="\t", flush=True)
    for kind in count:
        print(f"{kind[0]:10} {kind[1]:36} {count[kind]:7} problems, {broken[kind]:5} with a false claim")
    print(f"{count.total()} problems, {broken.total()} with a false claim; slowest {slowest[1]} {slowest[0]:.1f} s")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
