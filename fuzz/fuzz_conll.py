"""Text files: columns, CRFsuite's items and templates are read, or refused with a ValueError."""

import contextlib
import io
import sys

import atheris
from instrument import instrument_library, seed_folder

from dualfield.features import Template
from dualfield.io import read_conll, read_crfsuite_items

SEEDS = {
    "conll": b"He PRP B-NP\nran\tVBD B-VP\r\n\n-DOCSTART- -X- O\n\nStop VB B-VP\n",
    "items": b"B-NP\tw=the\tlen:3.5\tw\\:x\nO\tw=dog\n\nO\n",
    "crf++": b"# words\nU0:%x[-1,0]/%x[0,1]\nU2:%p[0,0,3]%q[0,0,2]%s[0,0]%c[0,0]\nB\n",
    "wapiti": b'u:%X[0,1]\nu1:%t[0,0,"^[a-z]+\\d?"]\n*:%m[1,0,".$"]\nb\n',
}


def fuzz(data: bytes) -> None:
    """Read the bytes in every way."""
    for separator in (None, "\t"):
        with contextlib.suppress(ValueError):
            read_conll(io.BytesIO(data), separator=separator, comments="#")
    with contextlib.suppress(ValueError):
        read_crfsuite_items(io.BytesIO(data))
    with contextlib.suppress(ValueError):
        template = Template.parse(data.decode("utf-8", "replace"))
        template.read([[("The", "DT"), ("d\u00f6g", "NN")], [], [("", "")]])


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
