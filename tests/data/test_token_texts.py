"""The word of a token is found among its attributes, in the forms in which people write them."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield.data.token_texts import token_texts

CRFSUITE = {
    "bias": 1.0,
    "word.lower()": "madrid",
    "word[-3:]": "rid",
    "word.isupper()": False,
    "postag": "NP",
    "-1:word.lower()": "de",
    "+1:word.lower()": ",",
}


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (CRFSUITE, "madrid"),
        ({"bias": 1.0, "Word": "Rex", "tag": "NN"}, "Rex"),
        ({"pos": "NN", "token": "Rex"}, "Rex"),
        ({"only": "Rex", "n": 3.0}, "Rex"),
        ({"a": "x", "b": "y"}, "token 0"),
        ({"bias": 1.0}, "token 0"),
        (["bias", "w[0]=Rex", "w[-1]=the", "w[0]|w[1]=Rex|barks"], "Rex"),
        (["word.lower=rex", "word[-2:]=ex", "+1:word.lower=barks"], "rex"),
        (["Rex", "NN"], "Rex"),
        (("Rex", "NN"), "Rex"),
        ("Rex", "Rex"),
        (["bias=1", "shape=Xx"], "token 0"),
        (np.zeros(3), "token 0"),
        ([], "token 0"),
    ],
)
def test_the_word(item, text):
    assert token_texts([item], 1) == [text]


def test_what_is_no_sequence_has_numbers():
    assert token_texts(np.zeros((2, 3)), 2) == ["token 0", "token 1"]
    assert token_texts([["a"]], 2) == ["token 0", "token 1"]
