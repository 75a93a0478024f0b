"""Model files: whatever is in them, `load` and what follows refuse it or answer."""

import random
import sys
import tempfile
import warnings
from pathlib import Path

import atheris
from instrument import instrument_library, seed_folder

from dualfield import load
from dualfield.persistence import ModelFileError
from tests.estimators.mutations import Forger, blind
from tests.estimators.saved_models import classifier, forget, points, tagger, unseen

FOLDER = Path(tempfile.mkdtemp(prefix="dualfield-fuzz-"))
INPUT = {"CRF": unseen("attributes"), "KernelLogisticRegression": points("multiclass")}


def fuzz(data: bytes) -> None:
    """Load the bytes as a model, in both ways, and ask it."""
    path = FOLDER / "model"
    path.write_bytes(data)
    for mmap in (False, True):
        try:
            model = load(path, mmap=mmap)
        except ModelFileError:
            continue
        try:
            X = INPUT[type(model).__name__]
            if getattr(model, "template", None) is not None:
                X = unseen("CRF++")
            model.predict(X)
            model.predict_proba(X)
            if hasattr(model, "labels_"):
                model.predict_spans(X)
                model.top_features(3)
                model.explain(X[0])
        except ValueError:  # refused at use, or a sound model that this input does not fit
            pass
        except TypeError as error:
            if "Got attributes instead" not in str(error):
                raise


def changed(data: bytes, max_size: int, seed: int) -> bytes:
    """Change a file, most often as one who knows the format."""
    rng = random.Random(seed)
    path = FOLDER / "source"
    path.write_bytes(data)
    try:
        out = Forger(path).forged(rng) if rng.random() < 0.8 else blind(data, rng)
    except (ModelFileError, ValueError, IndexError):
        out = blind(data, rng) if data else b"\0"
    return out[:max_size]


def main() -> None:
    """Write models to begin with into the folder named by the first argument, and run."""
    warnings.simplefilter("ignore")
    corpus = seed_folder()
    if corpus is not None:
        for name in ("attributes", "BIO", "order 2 BIO", "pairs", "CRF++", "dense", "cost"):
            tagger(name).save(corpus / f"crf {name}")
        for name in ("multiclass", "csr_matrix", "label kernel", "given points"):
            classifier(name).save(corpus / f"klr {name}")
    forget()
    instrument_library()
    atheris.Setup(sys.argv, fuzz, custom_mutator=changed)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
