"""The table of a search, with the keys that scikit-learn's searches have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dualfield.data.arrays import Floats

__all__ = ["Results"]


@dataclass(frozen=True, eq=False)
class Results:
    """Scores and times of all candidates on all folds.

    Parameters
    ----------
    candidates : list of dict
        Parameters by name; the same names in each.
    scores, fit_times, score_times : array of shape (n_candidates, n_folds)
        Higher scores are better; seconds.
    scoring : str
        Name of the score.

    Examples
    --------
    >>> import numpy as np
    >>> from dualfield.tuning import Results
    >>> times = np.ones((2, 2))
    >>> results = Results([{"C": 1.0}, {"C": 10.0}], np.array([[0.5, 0.6], [0.8, 0.7]]), times, times, "accuracy")
    >>> results.best, results.edge()
    (1, ('C', 10.0, 'largest'))
    """

    candidates: list[dict[str, Any]]
    scores: Floats
    fit_times: Floats
    score_times: Floats
    scoring: str

    @property
    def means(self) -> Floats:
        """Mean score of each candidate."""
        found: Floats = self.scores.mean(axis=1)
        return found

    @property
    def best(self) -> int:
        """The first candidate with the best mean score: of equal ones, that of the smallest C."""
        return int(np.argmax(np.where(np.isnan(self.means), -np.inf, self.means)))

    def cv_results(self) -> dict[str, Any]:
        """Return the table as ``cv_results_`` of GridSearchCV.

        Returns
        -------
        dict
            Arrays by name: parameters, scores of folds, means, standard deviations, ranks and times.
        """
        table: dict[str, Any] = {}
        for name, times in (("fit_time", self.fit_times), ("score_time", self.score_times)):
            table[f"mean_{name}"], table[f"std_{name}"] = times.mean(axis=1), times.std(axis=1)
        for name in self.candidates[0]:
            values = [params[name] for params in self.candidates]
            table[f"param_{name}"] = np.ma.MaskedArray(np.array(values), mask=np.zeros(len(values), dtype=bool))
        table["params"] = self.candidates
        for fold, scores in enumerate(self.scores.T):
            table[f"split{fold}_test_score"] = scores
        table["mean_test_score"], table["std_test_score"] = self.means, self.scores.std(axis=1)
        ordered = np.where(np.isnan(self.means), -np.inf, self.means)
        table["rank_test_score"] = np.array([1 + int((ordered > one).sum()) for one in ordered], dtype=np.int32)
        return table

    def edge(self) -> tuple[str, float, str] | None:
        """Tell whether the best C is the smallest or the largest of those tried.

        Returns
        -------
        (str, float, str) or None
            "C", its value, and "smallest" or "largest"; None if there are values on both sides, or only one.
        """
        Cs, best = sorted({params["C"] for params in self.candidates}), self.candidates[self.best]["C"]
        if len(Cs) == 1 or best not in (Cs[0], Cs[-1]):
            return None
        return "C", best, "smallest" if best == Cs[0] else "largest"
