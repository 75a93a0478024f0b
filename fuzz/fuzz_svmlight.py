"""svmlight's examples: they are read, or refused with a ValueError."""

import contextlib
import io
import sys

import atheris
from instrument import instrument_library, seed_folder

from dualfield.io import read_svmlight

SEEDS = {
    "examples": b"1 1:0.5 7:1\n-1 2:1e-3 # a comment\n# another\n+1\n",
    "no labels": b"1:2 3:4\n2:1\n",
    "words": b"yes 1:2\nno 4:1\n\n",
    "hostile": b"1 4294967296:1\n2 9223372036854775808:1\n1 0:1\n1 2:nan 1:inf\n1_0 1:1_0\n",
}


def fuzz(data: bytes) -> None:
    """Read the bytes, with a width that is known and without."""
    for n_features in (None, 8):
        with contextlib.suppress(ValueError):
            X, y = read_svmlight(io.BytesIO(data), n_features=n_features)
            assert y is None or len(y) == X.shape[0]
            assert n_features is None or X.shape[1] == n_features
            assert not X.nnz or 0 <= X.indices.min() <= X.indices.max() < X.shape[1]


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
