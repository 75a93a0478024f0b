"""Scorers: as GridSearchCV and cross_val_score call them."""

import pickle

import pytest
from sklearn.base import BaseEstimator
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score

from dualfield import metrics

X = [["B-x", "I-x"], ["O", "B-x"], ["B-x"], ["I-x", "O"]]
SCORERS = [metrics.span_f1_scorer, metrics.token_f1_scorer, metrics.sequence_accuracy_scorer]
SCORES = [metrics.span_f1_score, metrics.token_f1_score, metrics.sequence_accuracy_score]


class Echo(BaseEstimator):
    """Predicts its input, or nothing but O."""

    def __init__(self, silent=False):
        self.silent = silent

    def fit(self, X, y):
        return self

    def predict(self, X):
        return [["O"] * len(sequence) if self.silent else list(sequence) for sequence in X]


@pytest.mark.parametrize(("scorer", "score"), list(zip(SCORERS, SCORES, strict=True)))
def test_scorers_score_predictions(scorer, score):
    y = [["B-x", "I-x"], ["O", "O"], ["B-x"], ["I-x", "O"]]
    assert scorer(Echo(), X, y) == score(y, X) == make_scorer(score)(Echo(), X, y)
    assert 0.0 < scorer(Echo(), X, y) < 1.0


@pytest.mark.parametrize("scorer", SCORERS)
def test_scorers_choose_a_model(scorer):
    search = GridSearchCV(Echo(), {"silent": [True, False]}, scoring=scorer, cv=2).fit(X, X)
    assert search.best_params_ == {"silent": False}
    assert search.best_score_ == 1.0
    assert cross_val_score(Echo(), X, X, scoring=scorer, cv=2).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("scorer", SCORERS)
def test_scorers_go_to_other_processes(scorer):
    assert pickle.loads(pickle.dumps(scorer)) is scorer
