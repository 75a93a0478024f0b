"""Text files: columns and CRFsuite's items are read, or refused with a ValueError."""

import contextlib
import io
import sys

import atheris
from instrument import instrument_library, seed_folder

from dualfield.io import read_conll, read_crfsuite_items

SEEDS = {
    "conll": b"He PRP B-NP\nran\tVBD B-VP\r\n\n-DOCSTART- -X- O\n\nStop VB B-VP\n",
    "items": b"B-NP\tw=the\tlen:3.5\tw\\:x\nO\tw=dog\n\nO\n",
}


def fuzz(data: bytes) -> None:
    """Read the bytes in every way."""
    for separator in (None, "\t"):
        with contextlib.suppress(ValueError):
            read_conll(io.BytesIO(data), separator=separator, comments="#")
    with contextlib.suppress(ValueError):
        read_crfsuite_items(io.BytesIO(data))


def main() -> None:
    """Write texts to begin with into the folder named by the first argument, and run."""
    folder = seed_folder()
    if folder is not None:
        for name, text in SEEDS.items():
            (folder / name).write_bytes(text)
    instrument_library()
    atheris.Setup(sys.argv, fuzz)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
