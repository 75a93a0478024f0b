"""Checkpoints: whatever is in them, a fit refuses to go on or ends with a certificate that holds."""

import random
import sys
import tempfile
import warnings
from pathlib import Path

import atheris
from instrument import instrument_library, seed_folder

from dualfield.estimators import Checkpoint
from dualfield.persistence.header import CHECKPOINT
from tests.estimators.checkpoint_fits import SOLVERS, begun, minimum, model, problem
from tests.estimators.mutations import Forger, blind

FOLDER = Path(tempfile.mkdtemp(prefix="dualfield-fuzz-"))
OVERFLOW = ("not finite any more", "steps are too long")  # what a solver says of scores beyond all bounds


def fuzz(data: bytes) -> None:
    """Go on from the bytes with the solver that they name; any other refuses them as those of another fit."""
    path = FOLDER / "checkpoint"
    path.write_bytes(data)
    for solver in [name for name in SOLVERS if f"'{name}'".encode() in data] or SOLVERS[:1]:
        try:
            fitted = model(solver).fit(*problem(), checkpoint=Checkpoint(path, every=1e9, remove=False))
        except (ValueError, RuntimeError) as error:
            if str(path) not in str(error) and not any(part in str(error) for part in OVERFLOW):
                raise
            continue
        if fitted.objective_ - fitted.dual_gap_ > minimum(solver) * (1 + 1e-6):
            raise AssertionError(f"{solver}: the bound is above the minimum, {minimum(solver)}")


def changed(data: bytes, max_size: int, seed: int) -> bytes:
    """Change a checkpoint: most often its arrays, with digests that agree."""
    rng = random.Random(seed)
    path = FOLDER / "source"
    path.write_bytes(data)
    try:
        out = Forger(path, CHECKPOINT).forged(rng, share=0.02) if rng.random() < 0.9 else blind(data, rng)
    except (ValueError, IndexError):
        out = blind(data, rng) if data else b"\0"
    return out[:max_size]


def main() -> None:
    """Write checkpoints to begin with into the folder named by the first argument, and run."""
    warnings.simplefilter("ignore")
    corpus = seed_folder()
    for solver in SOLVERS:
        minimum(solver)
        if corpus is not None:
            begun(solver, corpus / solver)
    instrument_library()
    atheris.Setup(sys.argv, fuzz, custom_mutator=changed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
