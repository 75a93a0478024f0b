"""What stands before the first macro of the lines of a template, against the attributes that the lines make."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield.features import Template


@pytest.mark.parametrize(
    "text",
    [
        "U0:%x[0,0]\nU1:%x[-1,1]/%x[0,1]\nB",
        "u:w=%X[0,0] # a %\n  # b\nU:%x[0,1] \nu:bias #\nb",
        "!bare-names\nU0:w=%x[0,0]\r\nU1:a:%p[0,1,2]",
    ],
)
def test_attributes_begin_with_the_prefix_of_their_line(text):
    template = Template(text)
    batch = template.read([[["the", "%D"], ["dog", "N#"]]]).nodes
    names, n = list(batch.vocabulary), len(template.prefixes)
    assert np.diff(batch.indptr).tolist() == [n, n]
    macros = [line.partition("#")[0].count("%") for line in text.split("\n") if line.lower().startswith("u")]
    for prefix, n_macros, *columns in zip(template.prefixes, macros, *batch.indices.reshape(2, n), strict=True):
        rest = [names[column].removeprefix(prefix) for column in columns]
        assert all(names[column].startswith(prefix) for column in columns)
        assert (rest == ["", ""]) == (n_macros == 0)
