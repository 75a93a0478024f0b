"""A small tagger and data that it has not seen."""

import pytest

from dualfield import CRF
from dualfield.report import DevData
from tests.report.pages import BIO, corpus


@pytest.fixture(scope="module")
def tagger():
    return CRF(C=3.0, min_freq=1, random_state=0).fit(*corpus(40, BIO, 0))


@pytest.fixture(scope="module")
def dev():
    return DevData(*corpus(30, BIO, 1, least=0))
