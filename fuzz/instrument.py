"""Lets the fuzzer see which lines of the library an input reaches."""

import gc
import sys
from pathlib import Path
from types import FunctionType

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))  # for what the harnesses share with the tests


def instrument_library() -> None:
    """Instrument all functions of the library that are loaded.

    The usual way, while modules are imported, does not get on with libraries that are installed in place.
    """
    functions = [one for one in gc.get_objects() if isinstance(one, FunctionType)]
    found = [one for one in functions if (one.__module__ or "").startswith("dualfield")]
    for function in found:
        atheris.instrument_func(function)


def seed_folder() -> Path | None:
    """Return the folder among the arguments, where inputs to begin with belong."""
    return next((Path(argument) for argument in sys.argv[1:] if Path(argument).is_dir()), None)
