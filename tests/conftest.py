"""Settings of the whole suite."""

import builtins
import os

# Before NumPy is imported, here and in what tests start: otherwise every worker has as many BLAS threads as there are
# cores, which wait for each other most of the time where matrices are small.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

import pytest
from hypothesis import HealthCheck, settings

from tests.slow import pytest_addoption, pytest_configure  # noqa: F401  # hooks, by their names
from tests.warm_python import WarmPython

# A run that decides whether a change lands must not depend on luck, nor on how busy the machine is: the same examples
# every time, no limits on speed. `make torture` draws new ones; what it finds is kept as an explicit example.
_unhurried = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("fixed", derandomize=True, **_unhurried)
settings.register_profile("explore", max_examples=1000, print_blob=True, **_unhurried)
settings.load_profile(os.environ.get("DUALFIELD_HYPOTHESIS", "fixed"))


@pytest.fixture(scope="session")
def warm_python():
    """Start programs without importing the library again."""
    python = WarmPython()
    yield python
    python.close()


@pytest.fixture
def without_matplotlib(monkeypatch):
    """Let matplotlib be missing."""
    real = builtins.__import__

    def without(module, *arguments, **more):
        if module.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'")
        return real(module, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
