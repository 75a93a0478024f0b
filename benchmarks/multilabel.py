"""Several labels for each example: independent, a tree, all pairs

Errors, and CPU seconds of the last fit. *Scene*: 1211 pictures to train on and 1196 to test on, 294 colour features, 6
labels. *Votes*, which we made of the voting records of 1984: 435 members of Congress, 235 drawn to train on; the input
is the party and the first 8 votes (yes, no, unknown), the labels are whether each of the other 8 votes is yes. Every
example is a graph with a node for each label and the weights of each label its own; pairs of labels are edges, each of
a type of its own: none, those of the Chow-Liu tree, or all. CRF and structural SVM (Hamming cost) are linear; the
conditional graphical model (CGM) has an RBF kernel, and sees the input at pairs too. C, and γ of the kernel, were
chosen on a third of the training part that was held back: by the log-loss of labels, for the hinge by the Hamming loss.
Hamming loss and log-loss are means over labels, the latter of marginals, in nats; the subset accuracy is the share of
examples with all labels right. ± is the standard error by 2000 bootstrap samples of the test examples; differences are
to the independent labels of the same model, on the same examples.
"""

from __future__ import annotations

import itertools
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.kernel_logistic_data import markdown
from dualfield import CRF, ConditionalGraphicalModel, StructuredSVM
from dualfield.structures import FlatGraphs, Graph, mutual_information, spanning_tree

NEEDS_DATA = True
GRAPHS = ("independent", "tree", "all pairs")
LINEAR = tuple({"C": C} for C in (0.003, 0.01, 0.03, 0.1, 0.3))
# γ in units of 1 / n_features
HINGE = tuple({"C": C, "gamma": gamma} for C in (0.1, 0.3, 1.0, 3.0) for gamma in (0.5, 2.0, 8.0, 32.0))
LOG = tuple({"C": C, "gamma": gamma} for C in (0.1, 1.0, 10.0, 100.0) for gamma in (0.5, 2.0, 8.0, 32.0))
MODELS = (("CRF", "log", LINEAR), ("StructuredSVM", "hinge", LINEAR), ("CGM", "log", LOG), ("CGM", "hinge", HINGE))
N_SAMPLES, SEED = 2000, 0
Pairs = list[tuple[int, int]]


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows of the input, and a column of 0 and 1 for each label."""

    X: NDArray[np.float64]
    Y: NDArray[np.int64]

    def take(self, rows: NDArray[Any]) -> Examples:
        return Examples(self.X[rows], self.Y[rows])


def file(name: str) -> Any:
    return np.load(Path(os.environ["DUALFIELD_DATA"], f"{name}.npz"))


def scene() -> tuple[Examples, Examples]:
    with file("scene_multilabel") as data:
        every = Examples(data["X"].astype(float), data["Y"].astype(np.int64))
        return every.take(data["train_idx"]), every.take(data["test_idx"])


def votes() -> tuple[Examples, Examples]:
    with file("vote") as data:
        names = data["values"][np.arange(16), data["X"]]
        known = [data["y"][:, None] == ["democrat", "republican"], *(names[:, [at]] == list("yn?") for at in range(8))]
        every = Examples(np.concatenate(known, axis=1).astype(float), (names[:, 8:] == "y").astype(np.int64))
    order = np.random.default_rng(SEED).permutation(len(every.X))
    return every.take(order[:235]), every.take(order[235:])


def edges_of(name: str, Y: NDArray[Any]) -> Pairs:
    """The pairs of labels that are joined."""
    if name == "independent":
        return []
    if name == "tree":
        return spanning_tree(mutual_information(Y))
    return list(itertools.combinations(range(Y.shape[1]), 2))


def as_graphs(X: NDArray[np.float64], n_labels: int, edges: Pairs) -> FlatGraphs:
    """A node for each label, which has the columns of the input and a constant in a block of its own."""
    n, rows = len(X), np.column_stack([X, np.ones(len(X))])
    width = rows.shape[1]
    columns = np.arange(n_labels)[None, :, None] * width + np.arange(width)
    nodes = sparse.csr_array(
        (
            np.repeat(rows[:, None], n_labels, axis=1).ravel(),
            np.repeat(columns, n, axis=0).ravel(),
            np.arange(n * n_labels + 1) * width,
        ),
        shape=(n * n_labels, n_labels * width),
    )
    return FlatGraphs(
        nodes=nodes,
        lengths=np.full(n, n_labels),
        edges=np.tile(np.array(edges, dtype=int).reshape(-1, 2), (n, 1)),
        edge_lengths=np.full(n, len(edges)),
        types=np.tile(np.arange(len(edges)), n),
    )


class Fitted:
    """A model of one of the three kinds, trained, with its predictions as tables."""

    def __init__(self, kind: str, loss: str, edges: Pairs, setting: dict[str, float], train: Examples) -> None:
        self.n_labels, self.edges, self.is_graph = train.Y.shape[1], edges, kind != "CGM"
        self.model: Any
        if kind == "CRF":
            self.model = CRF(Graph(), features="all", **setting)
        elif kind == "StructuredSVM":
            self.model = StructuredSVM(Graph(), features="all", **setting)
        else:
            alone = [(node,) for node in range(self.n_labels)]
            gamma = setting["gamma"] / train.X.shape[1]
            self.model = ConditionalGraphicalModel(
                edges or alone, loss=loss, C=setting["C"], gamma=gamma, tol=1e-3, random_state=SEED
            )
        begun = time.process_time()
        self.model.fit(self.read(train.X), train.Y)
        self.seconds = time.process_time() - begun

    def read(self, X: NDArray[np.float64]) -> Any:
        return as_graphs(X, self.n_labels, self.edges) if self.is_graph else X

    def losses(self, test: Examples) -> dict[str, NDArray[np.float64]]:
        """Hamming loss, whether all labels are right, and the log-loss where there is one, of each example."""
        X = self.read(test.X)
        wrong = np.asarray(self.model.predict(X)) != test.Y
        found = {"hamming": wrong.mean(axis=1), "subset": 1.0 - wrong.any(axis=1)}
        if not isinstance(self.model, StructuredSVM) and hasattr(self.model, "predict_proba"):
            chances = np.asarray(self.model.predict_proba(X))
            true = np.take_along_axis(chances, test.Y[:, :, None], axis=2)[:, :, 0]
            found["log_loss"] = -np.log(np.maximum(true, np.finfo(float).tiny)).mean(axis=1)
        return found


def chosen(kind: str, loss: str, graph: str, settings: Any, train: Examples) -> dict[str, float]:
    """The setting with the lowest loss on a third of the training part."""
    order = np.random.default_rng(SEED).permutation(len(train.X))
    held, kept = train.take(order[: len(order) // 3]), train.take(order[len(order) // 3 :])
    name, edges = "log_loss" if loss == "log" else "hamming", edges_of(graph, kept.Y)
    errors = [Fitted(kind, loss, edges, setting, kept).losses(held)[name].mean() for setting in settings]
    return dict(settings[int(np.argmin(errors))])


def bootstrap(values: NDArray[np.float64]) -> tuple[float, float]:
    """The mean over examples, and its standard error."""
    rng = np.random.default_rng(SEED)
    means = [values[rng.integers(0, len(values), len(values))].mean() for _ in range(N_SAMPLES)]
    return float(values.mean()), float(np.std(means, ddof=1))


def measure(data: str, train: Examples, test: Examples) -> list[dict[str, Any]]:
    found = []
    for kind, loss, settings in MODELS:
        alone: dict[str, NDArray[np.float64]] = {}
        for graph in GRAPHS:
            setting = chosen(kind, loss, graph, settings, train)
            fitted = Fitted(kind, loss, edges_of(graph, train.Y), setting, train)
            losses = fitted.losses(test)
            alone = alone or losses
            model = fitted.model
            found.append(
                {
                    "data": data,
                    "model": kind,
                    "loss": loss,
                    "graph": graph,
                    "setting": setting,
                    "relative_gap": model.dual_gap_ / (model.objective_ - model.dual_gap_),
                    "seconds": fitted.seconds,
                    **{name: bootstrap(values) for name, values in losses.items()},
                    **{f"{name}_difference": bootstrap(values - alone[name]) for name, values in losses.items()},
                }
            )
            print(data, kind, loss, graph, setting, f"{fitted.seconds:.1f} s", flush=True)
    return found


def run() -> dict[str, Any]:
    return {"models": [row for data, read in (("scene", scene), ("votes", votes)) for row in measure(data, *read())]}


def table(result: dict[str, Any]) -> str:
    def shown(one: dict[str, Any], name: str, digits: int) -> str:
        if name not in one:
            return "–"
        mean, error = one[name]
        return (
            f"{mean:+.{digits}f} ± {error:.{digits}f}"
            if "difference" in name
            else f"{mean:.{digits}f} ± {error:.{digits}f}"
        )

    rows = [
        [
            f"{one['data']}, {one['model']}, {one['loss']}",
            one["graph"],
            shown(one, "hamming", 4),
            shown(one, "subset", 3),
            shown(one, "log_loss", 4),
            *(
                "" if one["graph"] == GRAPHS[0] else shown(one, f"{name}_difference", 3)
                for name in ("hamming", "subset")
            ),
            ", ".join(f"{value:g}" for value in one["setting"].values()),
            f"{one['seconds']:.2f}",
            f"{one['relative_gap']:.0e}",
        ]
        for one in result["models"]
    ]
    head = "data, model, loss | pairs | Hamming loss | subset accuracy | log-loss | Hamming, diff. | subset, diff."
    return markdown(f"{head} | C, γ × columns | s | relative gap", rows)
