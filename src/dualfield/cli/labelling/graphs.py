"""Labels for graphs in JSON: the same objects, with the predicted labels in them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualfield.cli.labelling.json_lines import is_json_lines
from dualfield.cli.models import LoadedModel
from dualfield.cli.reading.graph_data import naming_examples
from dualfield.cli.reading.line_groups import Numbered, counted_from

_PREDICTED = ("labels", "probabilities", "score", "bound", "exact")  # what the prediction takes the place of


@dataclass(frozen=True, eq=False)
class GraphTagger:
    """Labels graphs: each is asked about by itself, so that an answer does not depend on what else is in a file.

    Attributes
    ----------
    loaded : LoadedModel
        The model.
    marginals : str or None
        "best": also the probability of each label; "all": those of all labels. Graphs that are too wide have none.
    """

    loaded: LoadedModel
    marginals: str | None = None

    def tagged(self, name: str, begin: str, groups: Iterator[Numbered]) -> Iterator[list[str]]:
        """Yield a line for each graph: JSON Lines as they come, a list when it is complete."""
        from dualfield.io.json_records import iter_json_records

        read = self.loaded.graph_reader()
        assert read is not None
        if not is_json_lines(begin):
            groups = iter([list(itertools.chain.from_iterable(groups))])
        for group in groups:
            records, X, lines = [], [], []
            with counted_from(group[0][0], name):
                for number, record in iter_json_records([text for _, text in group]):
                    place = f"lines, line {number}"
                    graph = read(record, place)
                    X.append(read.example(graph, place) if len(graph.nodes) else None)
                    lines.append(group[0][0] + number - 1)
                    records.append({key: value for key, value in record.items() if key not in _PREDICTED})
            full = [f"{name}, line {line}" for line, one in zip(lines, X, strict=True) if one is not None]
            with naming_examples(full.__getitem__):
                predictions = self.predictions(X)
            yield [
                json.dumps(record | found, ensure_ascii=False)
                for record, found in zip(records, predictions, strict=True)
            ]

    def predictions(self, X: list[Any]) -> list[dict[str, Any]]:
        """Return what is to be written of each graph; None stands for one without nodes."""
        found: list[dict[str, Any]] = [{"labels": []} for _ in X]
        full = np.array([at for at, one in enumerate(X) if one is not None], dtype=np.int64)
        if not len(full):
            return found
        wide = self.loaded.relaxed([X[at] for at in full])
        for places, ask in ((full[~wide], self._exact), (full[wide], self._bounded)):
            if len(places):
                for at, answer in zip(places, ask([X[at] for at in places]), strict=True):
                    found[at] = answer
        return found

    def _exact(self, X: list[Any]) -> Iterator[dict[str, Any]]:
        model = self.loaded.model
        labellings = [_values(labels) for labels in model.predict(X)]
        if not self.marginals:
            yield from ({"labels": labels} for labels in labellings)
            return
        classes = _values(model.classes_)
        for labels, rows in zip(labellings, model.predict_proba(X), strict=True):
            codes = [classes.index(label) for label in labels]
            best = [round(row[code], 6) for row, code in zip(rows.tolist(), codes, strict=True)]
            every = [dict(zip(self.loaded.names, _rounded(row), strict=True)) for row in rows.tolist()]
            yield {"labels": labels, "probabilities": every if self.marginals == "all" else best}

    def _bounded(self, X: list[Any]) -> Iterator[dict[str, Any]]:
        labellings, bounds = self.loaded.model.predict(X, return_bound=True)
        figures = zip(bounds.score.tolist(), bounds.bound.tolist(), bounds.exact.tolist(), strict=True)
        for labels, (score, bound, exact) in zip(labellings, figures, strict=True):
            yield {"labels": _values(labels), "score": round(score, 6), "bound": round(bound, 6), "exact": exact}


def _values(labels: Any) -> list[Any]:
    """Return labels as JSON knows them."""
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)


def _rounded(row: list[float]) -> list[float]:
    return [round(chance, 6) for chance in row]
