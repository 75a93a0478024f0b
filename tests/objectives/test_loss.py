"""What a loss is made of must fit together."""

from __future__ import annotations

import numpy as np
import pytest

from dualfield.losses import Loss
from dualfield.objectives import Objective
from tests.objectives.problems import random_problem
from tests.objectives.test_planes import planes_of

COST = 1.0 - np.eye(3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temperature": -1.0}, r"temperature must be a float in \[0, inf\). Got -1.0 instead"),
        ({"temperature": np.nan}, "temperature must be a float"),
        ({"temperature": np.inf}, "temperature must be a float"),
        ({"rescaling": "slacks"}, "rescaling must be 'margin' or 'slack'. Got 'slacks' instead"),
        ({"temperature": 0.0, "rescaling": "slack"}, "rescaling='slack' needs temperature=0 and a cost"),
        ({"temperature": 0.5, "cost": COST, "rescaling": "slack"}, "rescaling='slack' needs temperature=0 and a cost"),
    ],
)
def test_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Loss(**given)


@pytest.mark.parametrize("flags", ["fixed", "unscored"])
def test_slacks_need_all_labels_to_compete(flags):
    problem = random_problem(0)
    given = {flags: np.zeros(problem.batch.n_nodes, dtype=bool)}
    with pytest.raises(ValueError, match="rescaling='slack' needs all labels to compete"):
        planes_of(problem, COST, "slack", **given).planes(np.zeros(problem.score_map.n_parameters))


def test_slacks_of_sequences_are_rescaled_by_the_number_of_wrong_labels():
    problem = random_problem(0)
    with pytest.raises(ValueError, match="by the number of wrong labels only"):
        planes_of(problem, 2.0 * COST, "slack").certify(np.zeros(problem.score_map.n_parameters))


def test_a_hinge_without_cost_is_zero_where_all_labellings_are_even():
    problem = random_problem(0)
    hinge = Objective(problem.score_map, problem.labelled, Loss(0.0))
    assert hinge.certify(np.zeros(hinge.n_parameters)) == (0.0, 0.0)
    assert (hinge.planes(np.zeros(hinge.n_parameters)).offsets == 0.0).all()
