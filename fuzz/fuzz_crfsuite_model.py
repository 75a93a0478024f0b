"""Model files of CRFsuite: whatever is in them, `CRF.from_crfsuite` refuses it or gives a model that answers."""

import sys
import tempfile
import warnings
from pathlib import Path

import atheris
from instrument import instrument_library, seed_folder

from dualfield import CRF
from tests.estimators.saved_models import unseen
from tests.estimators.tagging import sentences

FOLDER = Path(tempfile.mkdtemp(prefix="dualfield-fuzz-"))
X = unseen("attributes")


def fuzz(data: bytes) -> None:
    """Read the bytes as a model, and ask it."""
    path = FOLDER / "model"
    path.write_bytes(data)
    try:
        model = CRF.from_crfsuite(path)
        model.predict(X)
        model.predict_proba(X)
    except ValueError:
        pass


def main() -> None:
    """Write a model to begin with into the folder named by the first argument, and run."""
    import pycrfsuite

    warnings.simplefilter("ignore")
    folder = seed_folder()
    if folder is not None:
        trainer = pycrfsuite.Trainer(verbose=False)
        for items, labels in zip(*sentences(), strict=True):
            trainer.append(items, labels)
        trainer.train(str(folder / "small"))
    instrument_library()
    atheris.Setup(sys.argv, fuzz)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
