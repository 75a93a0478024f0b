"""Text files: columns, CoNLL-U and CRFsuite's items are read, or refused with a ValueError."""

import contextlib
import io
import sys

import atheris
from instrument import instrument_library, seed_folder

from dualfield.io import read_conll, read_conllu, read_crfsuite_items, write_conllu

SEEDS = {
    "conll": b"He PRP B-NP\nran\tVBD B-VP\r\n\n-DOCSTART- -X- O\n\nStop VB B-VP\n",
    "conllu": b"# c\n1-2\tab"
    + b"\t_" * 8
    + b"\n1\ta\t_\tN\t_\t_\t2\tx\t_\t_\n2\tb"
    + b"\t_" * 8
    + b"\n2.1"
    + b"\t_" * 9,
    "items": b"B-NP\tw=the\tlen:3.5\tw\\:x\nO\tw=dog\n\nO\n",
}


def fuzz(data: bytes) -> None:
    """Read the bytes in every way."""
    for separator in (None, "\t"):
        with contextlib.suppress(ValueError):
            read_conll(io.BytesIO(data), separator=separator, comments="#")
    with contextlib.suppress(ValueError):
        read_crfsuite_items(io.BytesIO(data))
    sentences = []
    with contextlib.suppress(ValueError):
        sentences = read_conllu(io.BytesIO(data))
    text = io.StringIO()
    write_conllu(sentences, text)
    if read_conllu(text.getvalue().split("\n")) != sentences:
        raise AssertionError("what was read is not what was written")


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
